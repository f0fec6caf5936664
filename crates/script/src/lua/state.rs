//! Making a Lua state with what scripts find in it, and calls that are not hot.

use std::ffi::{CStr, CString};
use std::path::Path;
use std::ptr::NonNull;
use std::sync::Arc;

use mlua_sys as ffi;

use super::native::{self, Context};
use super::owner::{BOTTOM, FUNCTIONS, State};
use super::text;
use crate::script::ScriptError;
use crate::shared::{ScriptTarget, Shared};

const PRELUDE: &[u8] = include_bytes!("prelude.lua");
const CALLS: &[u8] = include_bytes!("calls.lua");

/// What a function is called with.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Argument<'a> {
    Number(f64),
    Text(&'a [u8]),
}

/// What a function has returned.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Answer {
    Boolean(bool),
    Number(f64),
    /// Nil, or what nothing is asked to return.
    Other,
}

/// What a state is made with.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Settings<'a> {
    pub(crate) target: &'a ScriptTarget,
    pub(crate) is_wrk2: bool,
    /// Number of the thread; absent in the main state.
    pub(crate) thread: Option<usize>,
}

impl State {
    /// Makes a state in which a script can be run.
    ///
    /// # Errors
    ///
    /// There is no memory, or the prelude fails.
    pub(crate) fn new(settings: &Settings<'_>, shared: Arc<Shared>) -> Result<Self, ScriptError> {
        let context = Box::new(Context::new(settings.thread, shared));
        // SAFETY: the state is new and this thread's. The context outlives it: it is freed after
        // the state is closed. Every value that is pushed has room (`LUA_MINSTACK`).
        unsafe {
            let raw = ffi::luaL_newstate();
            if raw.is_null() {
                return Err(ScriptError::Memory);
            }
            ffi::luaL_openlibs(raw);
            let context = NonNull::from(Box::leak(context));
            if let Err(message) = run_prelude(raw, settings, context) {
                ffi::lua_close(raw);
                drop(Box::from_raw(context.as_ptr()));
                return Err(ScriptError::Load { message });
            }
            Ok(Self::of(raw, context))
        }
    }

    /// Loads what is in a file and runs it: `text`, or what is read of it.
    ///
    /// # Errors
    ///
    /// As Lua words them.
    pub(crate) fn run_file(&mut self, path: &Path, text: Option<&[u8]>) -> Result<(), ScriptError> {
        use std::os::unix::ffi::OsStrExt;
        let path = path.as_os_str().as_bytes();
        let name = CString::new(path).map_err(|_| ScriptError::Name)?;
        // What Lua calls a file in messages.
        let chunk = [b"@", path].concat();
        let chunk = CString::new(chunk).map_err(|_| ScriptError::Name)?;
        // SAFETY: the state is this thread's; `luaL_loadfile`, `luaL_loadbuffer` and `lua_pcall`
        // return errors.
        unsafe {
            let mut status = match text {
                Some(text) => ffi::luaL_loadbuffer(
                    self.raw(),
                    text.as_ptr().cast(),
                    text.len(),
                    chunk.as_ptr(),
                ),
                None => ffi::luaL_loadfile(self.raw(), name.as_ptr()),
            };
            if status == ffi::LUA_OK {
                status = ffi::lua_pcall(self.raw(), 0, 0, 0);
            }
            if status == ffi::LUA_OK {
                return Ok(());
            }
            Err(ScriptError::Load {
                message: text::pop_message(self.raw()),
            })
        }
    }

    /// Calls a function of the prelude.
    ///
    /// # Errors
    ///
    /// As Lua words them.
    pub(crate) fn call(
        &mut self,
        function: Function,
        arguments: &[Argument<'_>],
    ) -> Result<Answer, String> {
        let count = i32::try_from(arguments.len()).unwrap_or(i32::MAX);
        // SAFETY: the state is this thread's; there is room for the arguments, or nothing is
        // pushed.
        unsafe {
            if ffi::lua_checkstack(self.raw(), count.saturating_add(2)) == 0 {
                return Err(format!("{count} arguments are too many for Lua"));
            }
            ffi::lua_rawgeti_(self.raw(), FUNCTIONS, function.place());
            for argument in arguments {
                match argument {
                    Argument::Number(number) => ffi::lua_pushnumber(self.raw(), *number),
                    Argument::Text(text) => {
                        ffi::lua_pushlstring_(self.raw(), text.as_ptr().cast(), text.len());
                    }
                }
            }
            if ffi::lua_pcall(self.raw(), count, 1, 0) != ffi::LUA_OK {
                return Err(text::pop_message(self.raw()));
            }
            let answer = match ffi::lua_type(self.raw(), -1) {
                ffi::LUA_TBOOLEAN => Answer::Boolean(ffi::lua_toboolean(self.raw(), -1) != 0),
                ffi::LUA_TNUMBER => Answer::Number(ffi::lua_tonumber(self.raw(), -1)),
                _ => Answer::Other,
            };
            ffi::lua_settop(self.raw(), BOTTOM);
            Ok(answer)
        }
    }

    /// Bytes that its values take.
    pub(crate) fn held_bytes(&self) -> u64 {
        // SAFETY: the state is valid as long as `self`, and to ask for its size changes nothing.
        let kib = unsafe { ffi::lua_gc(self.raw(), ffi::LUA_GCCOUNT, 0) };
        u64::try_from(kib).unwrap_or(0) << 10
    }

    /// Whether a global variable is a function.
    pub(crate) fn is_function(&mut self, name: &str) -> Result<bool, String> {
        let answer = self.call(Function::Defines, &[Argument::Text(name.as_bytes())])?;
        Ok(answer == Answer::Boolean(true))
    }
}

/// Runs the prelude and fills the bottom of the stack.
unsafe fn run_prelude(
    raw: *mut ffi::lua_State,
    settings: &Settings<'_>,
    context: NonNull<Context>,
) -> Result<(), String> {
    // SAFETY: called by `State::new` with a new state.
    unsafe {
        load(raw, PRELUDE, c"=wrk.lua")?;
        native::push(raw, context);
        push_settings(raw, settings);
        if ffi::lua_pcall(raw, 2, 1, 0) != ffi::LUA_OK {
            return Err(text::pop_message(raw));
        }
        let given = ffi::lua_gettop(raw);
        load(raw, CALLS, text::CALLS_CHUNK)?;
        ffi::lua_pushvalue(raw, given);
        if ffi::lua_pcall(raw, 1, 0, 0) != ffi::LUA_OK {
            return Err(text::pop_message(raw));
        }
        ffi::lua_createtable(raw, Function::ALL.len() as i32, 0);
        for (function, name) in Function::ALL {
            ffi::lua_pushstring_(raw, name.as_ptr());
            ffi::lua_rawget_(raw, given);
            ffi::lua_rawseti_(raw, -2, function.place());
        }
        ffi::lua_remove(raw, given);
        ffi::lua_pushstring_(raw, FUNCTIONS_KEY.as_ptr());
        ffi::lua_pushvalue(raw, FUNCTIONS);
        ffi::lua_rawset(raw, ffi::LUA_REGISTRYINDEX);

        ffi::lua_createtable(raw, 16, 0);
        ffi::lua_createtable(raw, 0, 0);
        for function in [
            Function::Ask,
            Function::RespondStatus,
            Function::Respond,
            Function::RespondBeside,
            Function::Wait,
        ] {
            ffi::lua_rawgeti_(raw, FUNCTIONS, function.place());
        }
        debug_assert_eq!(ffi::lua_gettop(raw), BOTTOM);
        Ok(())
    }
}

/// Pushes a chunk that is to be called.
unsafe fn load(raw: *mut ffi::lua_State, chunk: &[u8], name: &CStr) -> Result<(), String> {
    // SAFETY: called by `run_prelude`; `luaL_loadbuffer` returns errors.
    unsafe {
        if ffi::luaL_loadbuffer(raw, chunk.as_ptr().cast(), chunk.len(), name.as_ptr())
            != ffi::LUA_OK
        {
            return Err(text::pop_message(raw));
        }
    }
    Ok(())
}

unsafe fn push_settings(raw: *mut ffi::lua_State, settings: &Settings<'_>) {
    let target = settings.target;
    let texts = [
        (c"scheme", Some(target.scheme.as_str())),
        (c"host", Some(target.host.as_str())),
        (c"port", target.port.as_deref()),
        (c"path", Some(target.path.as_str())),
        (c"url", Some(target.url.as_str())),
        (c"architecture", Some(std::env::consts::ARCH)),
    ];
    // SAFETY: called by `run_prelude`; the table is new, so that no metatable is in the way.
    unsafe {
        ffi::lua_createtable(raw, 0, 8);
        for (name, text) in texts {
            if let Some(text) = text {
                ffi::lua_pushlstring_(raw, text.as_ptr().cast(), text.len());
                ffi::lua_setfield(raw, -2, name.as_ptr());
            }
        }
        ffi::lua_pushboolean(raw, settings.is_wrk2.into());
        ffi::lua_setfield(raw, -2, c"is_wrk2".as_ptr());
    }
}

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
    Request,
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
    pub(super) const ALL: [(Self, &'static CStr); 20] = [
        (Self::SetHeader, c"set_header"),
        (Self::SetField, c"set_field"),
        (Self::Resolve, c"resolve"),
        (Self::WithoutAddresses, c"without_addresses"),
        (Self::SetUp, c"setup"),
        (Self::SetThread, c"set_thread"),
        (Self::Init, c"init"),
        (Self::Request, c"request"),
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
        ffi::lua_pushstring_(raw, FUNCTIONS_KEY.as_ptr());
        ffi::lua_rawget_(raw, ffi::LUA_REGISTRYINDEX);
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
