//! Copies of values from one state to another, or within one.

use std::ffi::CStr;

use mlua_sys as ffi;

use super::functions::{Function, push_function};
use super::text;

/// Tables may be nested so deep; a table that holds itself is refused by that, too.
const DEPTH_MAX: usize = 100;

/// Longer strings are not copied: Lua has no error to raise between two states where there is no
/// memory for them.
const STRING_BYTES_MAX: usize = 64 << 20;

/// Values that one step needs on a stack, at most.
const STACK_PER_LEVEL: i32 = 8;

/// Pushes a copy of the value at `index` of `source` on `destination`'s stack, which is left as it
/// was where that fails.
///
/// # Safety
///
/// Both are states of this thread's, or one and the same; `index` is an absolute one.
pub(super) unsafe fn copy(
    source: *mut ffi::lua_State,
    destination: *mut ffi::lua_State,
    index: i32,
) -> Result<(), String> {
    // SAFETY: as promised by the caller.
    unsafe {
        let top = ffi::lua_gettop(destination);
        copy_at(source, destination, index, 0).inspect_err(|_| ffi::lua_settop(destination, top))
    }
}

unsafe fn copy_at(
    source: *mut ffi::lua_State,
    destination: *mut ffi::lua_State,
    index: i32,
    depth: usize,
) -> Result<(), String> {
    // SAFETY: as promised by the caller of `copy`; there is room for what is pushed.
    unsafe {
        if depth > DEPTH_MAX
            || ffi::lua_checkstack(source, STACK_PER_LEVEL) == 0
            || ffi::lua_checkstack(destination, STACK_PER_LEVEL) == 0
        {
            return Err(format!(
                "cannot transfer a table that is nested more than {DEPTH_MAX} times to thread"
            ));
        }
        match ffi::lua_type(source, index) {
            ffi::LUA_TNIL => ffi::lua_pushnil(destination),
            ffi::LUA_TBOOLEAN => {
                ffi::lua_pushboolean(destination, ffi::lua_toboolean(source, index));
            }
            ffi::LUA_TNUMBER => {
                ffi::lua_pushnumber(destination, ffi::lua_tonumber(source, index));
            }
            ffi::LUA_TSTRING => {
                let bytes = text::bytes(source, index).unwrap_or_default();
                if bytes.len() > STRING_BYTES_MAX {
                    let length = bytes.len();
                    return Err(format!(
                        "cannot transfer a string of {length} bytes to thread: at most \
                         {STRING_BYTES_MAX}"
                    ));
                }
                ffi::lua_pushlstring_(destination, bytes.as_ptr().cast(), bytes.len());
            }
            ffi::LUA_TTABLE => copy_table(source, destination, index, depth)?,
            kind => {
                let is_copied =
                    kind == ffi::LUA_TUSERDATA && copy_address(source, destination, index);
                if !is_copied {
                    let kind = CStr::from_ptr(ffi::lua_typename(source, kind)).to_string_lossy();
                    return Err(format!("cannot transfer '{kind}' to thread"));
                }
            }
        }
        Ok(())
    }
}

unsafe fn copy_table(
    source: *mut ffi::lua_State,
    destination: *mut ffi::lua_State,
    index: i32,
    depth: usize,
) -> Result<(), String> {
    // SAFETY: as promised by the caller of `copy`. Keys are never nil or NaN: they were keys.
    unsafe {
        let top = ffi::lua_gettop(source);
        ffi::lua_createtable(destination, 0, 0);
        let table = ffi::lua_gettop(destination);
        ffi::lua_pushnil(source);
        loop {
            let key = ffi::lua_gettop(source);
            if ffi::lua_next(source, index) == 0 {
                break;
            }
            let value = key + 1;
            let copied = copy_at(source, destination, key, depth + 1)
                .and_then(|()| copy_at(source, destination, value, depth + 1));
            if let Err(message) = copied {
                if source != destination {
                    ffi::lua_settop(source, top);
                }
                return Err(message);
            }
            ffi::lua_rawset(destination, table);
            ffi::lua_settop(source, key);
        }
        Ok(())
    }
}

/// Addresses may go from thread to thread; other userdata may not.
unsafe fn copy_address(
    source: *mut ffi::lua_State,
    destination: *mut ffi::lua_State,
    index: i32,
) -> bool {
    // SAFETY: as promised by the caller of `copy`.
    unsafe {
        push_function(source, Function::AddressIds);
        ffi::lua_pushvalue(source, index);
        ffi::lua_rawget_(source, -2);
        let is_address = ffi::lua_type(source, -1) == ffi::LUA_TNUMBER;
        let id = ffi::lua_tonumber(source, -1);
        ffi::lua_settop(source, -3);
        if !is_address {
            return false;
        }
        push_function(destination, Function::NewAddress);
        ffi::lua_pushnumber(destination, id);
        if ffi::lua_pcall(destination, 1, 1, 0) != ffi::LUA_OK {
            ffi::lua_settop(destination, -2);
            return false;
        }
        true
    }
}
