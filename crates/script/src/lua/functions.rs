//! The functions of the prelude that Rust calls, by name, and where they stand in a state.

use std::ffi::CStr;

use mlua_sys as ffi;

/// Where the prelude's functions are kept in Lua's registry.
pub(super) const FUNCTIONS_KEY: &CStr = c"brunt";

/// What the prelude gives Rust.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Function {
    SetHeader,
    SetField,
    Resolve,
    WithoutAddresses,
    SetUp,
    SetThread,
    Init,
    Defines,
    Arity,
    TearDown,
    Done,
    AddressIds,
    NewAddress,
    Begin,
    Ask,
    RespondStatus,
    Respond,
    RespondBeside,
    Wait,
}

impl Function {
    pub(super) const ALL: [(Self, &'static CStr); 19] = [
        (Self::SetHeader, c"set_header"),
        (Self::SetField, c"set_field"),
        (Self::Resolve, c"resolve"),
        (Self::WithoutAddresses, c"without_addresses"),
        (Self::SetUp, c"setup"),
        (Self::SetThread, c"set_thread"),
        (Self::Init, c"init"),
        (Self::Defines, c"defines"),
        (Self::Arity, c"arity"),
        (Self::TearDown, c"teardown"),
        (Self::Done, c"done"),
        (Self::AddressIds, c"address_ids"),
        (Self::NewAddress, c"new_address"),
        (Self::Begin, c"begin"),
        (Self::Ask, c"ask"),
        (Self::RespondStatus, c"respond_status"),
        (Self::Respond, c"respond"),
        (Self::RespondBeside, c"respond_beside"),
        (Self::Wait, c"wait"),
    ];

    /// The function's place in the table of functions.
    pub(super) fn place(self) -> i32 {
        self as i32 + 1
    }
}

/// Pushes one of the prelude's values.
///
/// # Safety
///
/// `raw` is a state in which the prelude was run, or a coroutine of one, with room for two values.
pub(super) unsafe fn push_function(raw: *mut ffi::lua_State, function: Function) {
    // SAFETY: as promised by the caller. The registry has no metatable.
    unsafe {
        ffi::lua_getfield_(raw, ffi::LUA_REGISTRYINDEX, FUNCTIONS_KEY.as_ptr());
        ffi::lua_rawgeti_(raw, -1, function.place());
        ffi::lua_remove(raw, -2);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_stand_in_their_places() {
        for (place, (function, _)) in Function::ALL.iter().enumerate() {
            assert_eq!(function.place(), place as i32 + 1);
        }
    }
}
