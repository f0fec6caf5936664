//! The calls that are made for each request and each response. They use Lua's stack directly: a
//! function of `calls.lua`, which stands at its bottom, is called, and its results are looked at in
//! place. A general binding takes references, guards and message handlers for the same, several
//! times as much, for each request of a run.

use mlua_sys as ffi;

use super::owner::{
    ASK, BOTTOM, HEADER_NAMES, RESPOND, RESPOND_BESIDE, RESPOND_STATUS, State, TAGS, WAIT,
};
use super::state::{self, Function};
use super::text;

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
        let raw = self.raw();
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
        let raw = self.raw();
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
        let raw = self.raw();
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
        let raw = self.raw();
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
        let raw = self.raw();
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
        let raw = self.raw();
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
        let raw = self.raw();
        // SAFETY: as in `request`.
        unsafe {
            ffi::lua_pushnil(raw);
            ffi::lua_rawseti_(raw, TAGS, tag as i32);
        }
    }

    /// How many of its arguments the function for responses can see; all of them where it is no
    /// function.
    pub(crate) fn response_arity(&mut self) -> u32 {
        let raw = self.raw();
        // SAFETY: as in `request`.
        unsafe {
            state::push_function(raw, Function::Arity);
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
