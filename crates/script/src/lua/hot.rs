//! The calls that are made for each request and each response. They use Lua's stack directly: a
//! function is looked up by a name that is already a string of Lua's, called, and its result looked
//! at in place, some 50 ns in all. A general binding takes references, guards and message handlers
//! for the same, several times as much, for each request of a run.

use mlua_sys as ffi;

use super::functions::{self, Function};
use super::owner::{
    DELAY, HEADER_NAMES, KNOWN_RESPONSE, LAST_TEXT, REQUEST, RESPONSE, State, TAGS,
};
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
    pub(crate) headers: &'a [(&'a [u8], &'a [u8])],
    pub(crate) body: &'a [u8],
    /// What `request` gave beside its text is kept under this number; 0 without it.
    pub(crate) tag: u32,
}

impl State {
    /// Calls `request`, and appends what it returns to `text`. A second result is kept under `tag`,
    /// and `beside` tells of it.
    ///
    /// # Errors
    ///
    /// As Lua words them.
    pub(crate) fn request(
        &mut self,
        text_max: usize,
        text: &mut Vec<u8>,
        tag: u32,
        beside: &mut Beside,
    ) -> Result<Requested, String> {
        let raw = self.raw();
        // SAFETY: the state is this thread's and its stack at the bottom, so that there is room.
        // The text is copied, and kept, before its value is popped. Errors are returned by
        // `lua_pcall`; the global table is read without metamethods.
        unsafe {
            ffi::lua_pushvalue(raw, REQUEST);
            ffi::lua_rawget_(raw, ffi::LUA_GLOBALSINDEX);
            if ffi::lua_type(raw, -1) != ffi::LUA_TFUNCTION {
                ffi::lua_settop(raw, -2);
                functions::push_function(raw, Function::Request);
            }
            if ffi::lua_pcall(raw, 0, 2, 0) != ffi::LUA_OK {
                return Err(text::pop_message(raw));
            }
            let requested = match text::bytes(raw, -2) {
                None | Some([]) => Requested::Nothing,
                Some(_) if ffi::lua_rawequal(raw, -2, LAST_TEXT) != 0 => Requested::Same,
                Some(bytes) if bytes.len() > text_max => Requested::TooLong(bytes.len()),
                Some(bytes) => {
                    text.extend_from_slice(bytes);
                    ffi::lua_pushvalue(raw, -2);
                    ffi::lua_replace(raw, LAST_TEXT);
                    Requested::New
                }
            };
            beside.is_there = false;
            beside.name.clear();
            if ffi::lua_type(raw, -1) != ffi::LUA_TNIL {
                beside.is_there = true;
                if ffi::lua_type(raw, -1) == ffi::LUA_TSTRING {
                    let name = text::bytes(raw, -1).unwrap_or_default();
                    beside.name.extend_from_slice(name);
                }
                ffi::lua_rawseti_(raw, TAGS, tag as i32);
                ffi::lua_settop(raw, -2);
            } else {
                ffi::lua_settop(raw, -3);
            }
            Ok(requested)
        }
    }

    /// The next text is a new one, whatever it is.
    pub(crate) fn forget_text(&mut self) {
        // SAFETY: as in `request`.
        unsafe {
            ffi::lua_pushnil(self.raw());
            ffi::lua_replace(self.raw(), LAST_TEXT);
        }
    }

    /// Calls `response`.
    ///
    /// # Errors
    ///
    /// As Lua words them.
    pub(crate) fn response(&mut self, arguments: &ResponseArguments<'_>) -> Result<(), String> {
        let raw = self.raw();
        // SAFETY: as in `request`; at most eight values are pushed.
        unsafe {
            ffi::lua_pushvalue(raw, RESPONSE);
            ffi::lua_rawget_(raw, ffi::LUA_GLOBALSINDEX);
            ffi::lua_pushinteger(raw, arguments.status.into());
            ffi::lua_createtable(raw, 0, arguments.headers.len() as i32);
            for (place, (name, value)) in arguments.headers.iter().enumerate() {
                self.push_header_name(place as i32 + 1, name);
                ffi::lua_pushlstring_(raw, value.as_ptr().cast(), value.len());
                ffi::lua_rawset(raw, -3);
            }
            let body = arguments.body;
            ffi::lua_pushlstring_(raw, body.as_ptr().cast(), body.len());
            let mut count = 3;
            if arguments.tag != 0 {
                ffi::lua_rawgeti_(raw, TAGS, arguments.tag as i32);
                count = 4;
            }
            if ffi::lua_pcall(raw, count, 0, 0) != ffi::LUA_OK {
                return Err(text::pop_message(raw));
            }
        }
        Ok(())
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

    /// Calls `delay`: milliseconds.
    ///
    /// # Errors
    ///
    /// As Lua words them.
    pub(crate) fn delay(&mut self) -> Result<f64, String> {
        let raw = self.raw();
        // SAFETY: as in `request`.
        unsafe {
            ffi::lua_pushvalue(raw, DELAY);
            ffi::lua_rawget_(raw, ffi::LUA_GLOBALSINDEX);
            if ffi::lua_pcall(raw, 0, 1, 0) != ffi::LUA_OK {
                return Err(text::pop_message(raw));
            }
            let delay = ffi::lua_tonumber(raw, -1);
            ffi::lua_settop(raw, -2);
            Ok(delay)
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

    /// Whether the function for responses is another one than when this was asked last.
    pub(crate) fn is_response_new(&mut self) -> bool {
        let raw = self.raw();
        // SAFETY: as in `request`. The known one is kept on the stack, so that no other can have
        // its place in memory.
        unsafe {
            ffi::lua_pushvalue(raw, RESPONSE);
            ffi::lua_rawget_(raw, ffi::LUA_GLOBALSINDEX);
            let is_new = ffi::lua_rawequal(raw, -1, KNOWN_RESPONSE) == 0;
            ffi::lua_replace(raw, KNOWN_RESPONSE);
            is_new
        }
    }

    /// How many of its arguments the function for responses can see; all of them where it is no
    /// function.
    pub(crate) fn response_arity(&mut self) -> u32 {
        let raw = self.raw();
        // SAFETY: as in `request`.
        unsafe {
            functions::push_function(raw, Function::Arity);
            ffi::lua_pushvalue(raw, RESPONSE);
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

/// What `request` gives beside its text.
#[derive(Debug, Default)]
pub(crate) struct Beside {
    /// It is kept under the tag.
    pub(crate) is_there: bool,
    /// Its bytes, where it is a string.
    pub(crate) name: Vec<u8>,
}
