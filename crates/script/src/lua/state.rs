//! A Lua state: its owner and what stands at the bottom of its stack, how it is made with what
//! scripts find in it, and the calls of its functions.
//!
//! Those that are made for each request and each response use Lua's stack directly: a function of
//! `calls.lua`, which stands at its bottom, is called, and its results are looked at in place. A
//! general binding takes references, guards and message handlers for the same, several times as
//! much, for each request of a run.

use std::any::Any;
use std::ffi::{CStr, CString};
use std::path::Path;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use brunt_load::Interrupt;
use mlua_sys as ffi;

use super::functions::{FUNCTIONS_KEY, Function, push_function};
use super::native::{self, Context};
use super::text;
use crate::error::ScriptError;
use crate::shared::{ScriptTarget, Shared};

// What is kept at the bottom of the state's stack, where it is reached fastest.
/// The prelude's functions, by their places.
const FUNCTIONS: i32 = 1;
/// Names of header fields, by the place in which they came last.
const HEADER_NAMES: i32 = 2;
/// What `request` gave beside its text, by tag.
const TAGS: i32 = 3;
/// What is called for each request and each response (`calls.lua`).
const ASK: i32 = 4;
const RESPOND_STATUS: i32 = 5;
const RESPOND: i32 = 6;
const RESPOND_BESIDE: i32 = 7;
const WAIT: i32 = 8;
const BOTTOM: i32 = WAIT;

/// A Lua state: an owner of it, for one thread at a time.
#[derive(Debug)]
pub(crate) struct State {
    /// Valid as long as this is.
    pub(super) raw: *mut ffi::lua_State,
    /// What functions that Lua calls know; made by `Box`, and freed after the state.
    context: NonNull<dyn Any + Send>,
    interrupter: Arc<Interrupter>,
}

// SAFETY: nothing of LuaJIT is bound to the thread that made a state, and a state shares nothing
// with others. `State` is the only owner and not `Sync`, so one thread at a time uses it.
unsafe impl Send for State {}

impl State {
    /// What ends a call into this state from another thread.
    pub(crate) fn interrupter(&self) -> Arc<Interrupter> {
        Arc::clone(&self.interrupter)
    }

    /// Makes a state that was interrupted usable again.
    pub(crate) fn resume(&mut self) {
        self.interrupter.resume();
    }
}

impl Drop for State {
    fn drop(&mut self) {
        *self.interrupter.hooked() = None;
        // SAFETY: the state is this thread's and used by nobody any more; the context was made by
        // `Box`, and nothing refers to it when the state is closed.
        unsafe {
            ffi::lua_close(self.raw);
            drop(Box::from_raw(self.context.as_ptr()));
        }
    }
}

/// Ends what a state does.
#[derive(Debug)]
pub(crate) struct Interrupter {
    state: Mutex<Option<Hooked>>,
    is_interrupted: AtomicBool,
}

/// A state and the hook that raises an error in it.
#[derive(Debug)]
struct Hooked {
    raw: *mut ffi::lua_State,
    hook: ffi::lua_Hook,
}

// SAFETY: the pointer is used for `lua_sethook` alone, which LuaJIT allows from any thread, and
// only while the mutex is locked that an owner locks before it closes the state.
unsafe impl Send for Hooked {}

impl Interrupter {
    /// Takes the hook that the prelude has set, and unsets it.
    ///
    /// # Safety
    ///
    /// `raw` is the calling thread's, and a state for as long as the mutex holds it.
    unsafe fn new(raw: *mut ffi::lua_State) -> Self {
        // SAFETY: as promised by the caller.
        let hook = unsafe {
            let hook = ffi::lua_gethook(raw);
            ffi::lua_sethook(raw, None, 0, 0);
            hook
        };
        Self {
            state: Mutex::new(hook.map(|hook| Hooked { raw, hook })),
            is_interrupted: AtomicBool::new(false),
        }
    }

    /// What was interrupted may be called again.
    pub(super) fn resume(&self) {
        if !self.is_interrupted.swap(false, Ordering::Relaxed) {
            return;
        }
        if let Some(hooked) = self.hooked().as_ref() {
            // SAFETY: the state is there while this is locked.
            unsafe {
                ffi::lua_sethook(hooked.raw, None, 0, 0);
            }
        }
    }

    fn hooked(&self) -> MutexGuard<'_, Option<Hooked>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Interrupt for Interrupter {
    fn interrupt(&self) {
        let hooked = self.hooked();
        if let Some(hooked) = hooked.as_ref() {
            self.is_interrupted.store(true, Ordering::Relaxed);
            let events = ffi::LUA_MASKCALL | ffi::LUA_MASKRET | ffi::LUA_MASKCOUNT;
            // SAFETY: the state is there while this is locked, and LuaJIT lets any thread set
            // hooks.
            unsafe {
                ffi::lua_sethook(hooked.raw, Some(hooked.hook), events, 1);
            }
        }
    }
}

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
            Ok(Self {
                raw,
                context,
                // `drop` takes the state from it before that is closed.
                interrupter: Arc::new(Interrupter::new(raw)),
            })
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
                Some(text) => {
                    ffi::luaL_loadbuffer(self.raw, text.as_ptr().cast(), text.len(), chunk.as_ptr())
                }
                None => ffi::luaL_loadfile(self.raw, name.as_ptr()),
            };
            if status == ffi::LUA_OK {
                status = ffi::lua_pcall(self.raw, 0, 0, 0);
            }
            if status == ffi::LUA_OK {
                return Ok(());
            }
            Err(ScriptError::Load {
                message: text::pop_message(self.raw),
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
            if ffi::lua_checkstack(self.raw, count.saturating_add(2)) == 0 {
                return Err(format!("{count} arguments are too many for Lua"));
            }
            ffi::lua_rawgeti_(self.raw, FUNCTIONS, function.place());
            for argument in arguments {
                match argument {
                    Argument::Number(number) => ffi::lua_pushnumber(self.raw, *number),
                    Argument::Text(text) => {
                        ffi::lua_pushlstring_(self.raw, text.as_ptr().cast(), text.len());
                    }
                }
            }
            if ffi::lua_pcall(self.raw, count, 1, 0) != ffi::LUA_OK {
                return Err(text::pop_message(self.raw));
            }
            let answer = match ffi::lua_type(self.raw, -1) {
                ffi::LUA_TBOOLEAN => Answer::Boolean(ffi::lua_toboolean(self.raw, -1) != 0),
                ffi::LUA_TNUMBER => Answer::Number(ffi::lua_tonumber(self.raw, -1)),
                _ => Answer::Other,
            };
            ffi::lua_settop(self.raw, BOTTOM);
            Ok(answer)
        }
    }

    /// Bytes that its values take.
    pub(crate) fn held_bytes(&self) -> u64 {
        // SAFETY: the state is valid as long as `self`, and to ask for its size changes nothing.
        let kib = unsafe { ffi::lua_gc(self.raw, ffi::LUA_GCCOUNT, 0) };
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
        ffi::lua_pushvalue(raw, FUNCTIONS);
        ffi::lua_setfield(raw, ffi::LUA_REGISTRYINDEX, FUNCTIONS_KEY.as_ptr());

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

/// What `request` has given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Requested {
    /// No text: the connection is to send nothing more.
    Nothing,
    /// The text of the call before.
    Same,
    /// Another text, which was appended.
    New,
    /// A text of so many bytes, which is too long.
    TooLong(usize),
}

/// What `response` is called with.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ResponseArguments<'a> {
    pub(crate) status: u16,
    /// The function has no parameters for the fields below.
    pub(crate) is_status_all: bool,
    pub(crate) headers: &'a [(&'a [u8], &'a [u8])],
    pub(crate) body: &'a [u8],
    /// What `request` gave beside its text is kept under this number; 0 without it.
    pub(crate) tag: u32,
}

impl State {
    /// A run begins: the next text is a new one, whatever it is, and the function for responses is
    /// known.
    ///
    /// # Errors
    ///
    /// As Lua words them.
    pub(crate) fn begin(&mut self) -> Result<(), String> {
        self.call(Function::Begin, &[]).map(|_| ())
    }

    /// Calls `request`, and appends what it returns to `text`. A second result is kept under `tag`,
    /// and `beside` tells of it.
    ///
    /// # Errors
    ///
    /// As Lua words them.
    #[inline]
    pub(crate) fn request(
        &mut self,
        text_max: usize,
        text: &mut Vec<u8>,
        tag: u32,
        beside: &mut Beside,
    ) -> Result<Requested, String> {
        let raw = self.raw;
        beside.is_there = false;
        beside.is_response_new = false;
        // SAFETY: the state is this thread's and its stack at the bottom, so that there is room.
        // The text is copied before it is popped. Errors are returned by `lua_pcall`.
        unsafe {
            ffi::lua_pushvalue(raw, ASK);
            if ffi::lua_pcall(raw, 0, ffi::LUA_MULTRET, 0) != ffi::LUA_OK {
                return Err(text::pop_message(raw));
            }
            let results = ffi::lua_gettop(raw) - BOTTOM;
            if results == 0 {
                return Ok(Requested::Same);
            }
            let is_same = results > 1 && ffi::lua_toboolean(raw, BOTTOM + 2) != 0;
            let requested = match text::bytes(raw, BOTTOM + 1) {
                None | Some([]) => Requested::Nothing,
                Some(_) if is_same => Requested::Same,
                Some(bytes) if bytes.len() > text_max => Requested::TooLong(bytes.len()),
                Some(bytes) => {
                    text.extend_from_slice(bytes);
                    Requested::New
                }
            };
            if results > 1 {
                beside.is_response_new = ffi::lua_toboolean(raw, BOTTOM + 4) != 0;
                ffi::lua_settop(raw, BOTTOM + 3);
                self.keep_beside(tag, beside);
            }
            ffi::lua_settop(raw, BOTTOM);
            Ok(requested)
        }
    }

    /// Keeps what is on top of the stack under a tag, unless it is nil.
    unsafe fn keep_beside(&mut self, tag: u32, beside: &mut Beside) {
        let raw = self.raw;
        // SAFETY: called by `request`, with the value on the stack.
        unsafe {
            if ffi::lua_type(raw, -1) == ffi::LUA_TNIL {
                return;
            }
            beside.is_there = true;
            beside.name.clear();
            if ffi::lua_type(raw, -1) == ffi::LUA_TSTRING {
                let name = text::bytes(raw, -1).unwrap_or_default();
                beside.name.extend_from_slice(name);
            }
            ffi::lua_rawseti_(raw, TAGS, tag as i32);
        }
    }

    /// Calls `response`. Gives whether there is another function for responses now.
    ///
    /// # Errors
    ///
    /// As Lua words them.
    #[inline]
    pub(crate) fn response(&mut self, arguments: &ResponseArguments<'_>) -> Result<bool, String> {
        let raw = self.raw;
        // SAFETY: as in `request`; at most eight values are pushed.
        unsafe {
            if arguments.is_status_all {
                ffi::lua_pushvalue(raw, RESPOND_STATUS);
                ffi::lua_pushinteger(raw, arguments.status.into());
                return self.end_response(1);
            }
            let function = match arguments.tag {
                0 => RESPOND,
                _ => RESPOND_BESIDE,
            };
            ffi::lua_pushvalue(raw, function);
            ffi::lua_pushinteger(raw, arguments.status.into());
            ffi::lua_createtable(raw, 0, arguments.headers.len() as i32);
            for (place, (name, value)) in arguments.headers.iter().enumerate() {
                self.push_header_name(place as i32 + 1, name);
                ffi::lua_pushlstring_(raw, value.as_ptr().cast(), value.len());
                ffi::lua_rawset(raw, -3);
            }
            let body = arguments.body;
            ffi::lua_pushlstring_(raw, body.as_ptr().cast(), body.len());
            if arguments.tag == 0 {
                return self.end_response(3);
            }
            ffi::lua_rawgeti_(raw, TAGS, arguments.tag as i32);
            self.end_response(4)
        }
    }

    /// Calls what `response` has pushed, with so many arguments.
    #[inline]
    unsafe fn end_response(&mut self, arguments: i32) -> Result<bool, String> {
        let raw = self.raw;
        // SAFETY: called by `response`.
        unsafe {
            if ffi::lua_pcall(raw, arguments, ffi::LUA_MULTRET, 0) != ffi::LUA_OK {
                return Err(text::pop_message(raw));
            }
            if ffi::lua_gettop(raw) == BOTTOM {
                return Ok(false);
            }
            ffi::lua_settop(raw, BOTTOM);
        }
        Ok(true)
    }

    /// Pushes the name of a header field. Responses of one server have the same fields in the same
    /// places: where the name is the one that was there last, its string is not looked up again.
    unsafe fn push_header_name(&self, place: i32, name: &[u8]) {
        let raw = self.raw;
        // SAFETY: called by `response`, with room for three values.
        unsafe {
            ffi::lua_rawgeti_(raw, HEADER_NAMES, place);
            if ffi::lua_type(raw, -1) == ffi::LUA_TSTRING && text::bytes(raw, -1) == Some(name) {
                return;
            }
            ffi::lua_settop(raw, -2);
            ffi::lua_pushlstring_(raw, name.as_ptr().cast(), name.len());
            ffi::lua_pushvalue(raw, -1);
            ffi::lua_rawseti_(raw, HEADER_NAMES, place);
        }
    }

    /// Calls `delay`: milliseconds, and whether there is another function for responses now.
    ///
    /// # Errors
    ///
    /// As Lua words them.
    pub(crate) fn delay(&mut self) -> Result<(f64, bool), String> {
        let raw = self.raw;
        // SAFETY: as in `request`.
        unsafe {
            ffi::lua_pushvalue(raw, WAIT);
            if ffi::lua_pcall(raw, 0, 2, 0) != ffi::LUA_OK {
                return Err(text::pop_message(raw));
            }
            let delay = ffi::lua_tonumber(raw, BOTTOM + 1);
            let is_response_new = ffi::lua_toboolean(raw, BOTTOM + 2) != 0;
            ffi::lua_settop(raw, BOTTOM);
            Ok((delay, is_response_new))
        }
    }

    /// Forgets what was kept under a tag.
    pub(crate) fn forget(&mut self, tag: u32) {
        let raw = self.raw;
        // SAFETY: as in `request`.
        unsafe {
            ffi::lua_pushnil(raw);
            ffi::lua_rawseti_(raw, TAGS, tag as i32);
        }
    }

    /// How many of its arguments the function for responses can see; all of them where it is no
    /// function.
    pub(crate) fn response_arity(&mut self) -> u32 {
        let raw = self.raw;
        // SAFETY: as in `request`.
        unsafe {
            push_function(raw, Function::Arity);
            ffi::lua_pushstring_(raw, c"response".as_ptr());
            ffi::lua_rawget_(raw, ffi::LUA_GLOBALSINDEX);
            let status = ffi::lua_pcall(raw, 1, 1, 0);
            let arity = ffi::lua_tonumber(raw, -1);
            ffi::lua_settop(raw, -2);
            if status == ffi::LUA_OK {
                arity as u32
            } else {
                u32::MAX
            }
        }
    }
}

/// What else `request` gives or changes.
#[derive(Debug, Default)]
pub(crate) struct Beside {
    /// A second result is kept under the tag.
    pub(crate) is_there: bool,
    /// The second result as bytes, where it is a string.
    pub(crate) name: Vec<u8>,
    /// The script has another function for responses now.
    pub(crate) is_response_new: bool,
}
