//! Functions in Rust that the prelude calls. None of them raises an error: they return nil, or
//! false, and a message.

use std::cell::RefCell;
use std::ffi::CStr;
use std::io;
use std::net::{SocketAddr, TcpStream, ToSocketAddrs};
use std::ptr::NonNull;
use std::sync::Arc;
use std::time::{Duration, UNIX_EPOCH};

use mlua_sys as ffi;

use super::copy;
use super::text::{self, TEXT_BYTES_MAX, Unfit};
use crate::error::ScriptError;
use crate::shared::Shared;

const JSON: &[u8] = include_bytes!("json.lua");

/// `wrk.connect` waits so long.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// `socket.sleep` sleeps no longer, however much it is asked to.
const SLEEP_MAX: Duration = Duration::from_secs(3_600);

/// A list of services and their ports, for `wrk.lookup`.
const SERVICES: &str = "/etc/services";

/// What the native functions know of the Lua state that calls them.
#[derive(Debug)]
pub(crate) struct Context {
    /// Number of the thread; absent in the main state.
    thread: Option<usize>,
    shared: Arc<Shared>,
    /// Where requests are put together.
    text: RefCell<Vec<u8>>,
}

impl Context {
    pub(super) fn new(thread: Option<usize>, shared: Arc<Shared>) -> Self {
        Self {
            thread,
            shared,
            text: RefCell::default(),
        }
    }
}

/// Pushes the table of these functions.
///
/// # Safety
///
/// `raw` is a state of this thread's, and `context` valid until it is closed.
pub(super) unsafe fn push(raw: *mut ffi::lua_State, context: NonNull<Context>) {
    let functions: [(&CStr, ffi::lua_CFunction); 13] = [
        (c"address", address),
        (c"address_text", address_text),
        (c"connect", connect),
        (c"format", format_request),
        (c"get", get),
        (c"json", json),
        (c"lookup", lookup),
        (c"set", set),
        (c"set_address", set_address),
        (c"sleep", sleep),
        (c"statistic", statistic),
        (c"stop", stop),
        (c"time_us", time_us),
    ];
    // SAFETY: as promised by the caller; the table is new, so that no metatable is in the way.
    unsafe {
        ffi::lua_createtable(raw, 0, functions.len() as i32 + 1);
        for (name, function) in functions {
            ffi::lua_pushlightuserdata(raw, context.as_ptr().cast());
            ffi::lua_pushcclosure(raw, function, 1);
            ffi::lua_setfield(raw, -2, name.as_ptr());
        }
        ffi::lua_pushlightuserdata(raw, std::ptr::null_mut());
        ffi::lua_setfield(raw, -2, c"null".as_ptr());
    }
}

/// The context of the function that is being called.
///
/// # Safety
///
/// Called by a function that `push` has made; the reference ends with the call.
unsafe fn context<'a>(raw: *mut ffi::lua_State) -> &'a Context {
    // SAFETY: `push` has put it there, and it outlives the state. Nobody writes to it but through
    // `RefCell`.
    unsafe { &*ffi::lua_touserdata(raw, ffi::lua_upvalueindex(1)).cast::<Context>() }
}

/// The argument at `index` as a number that counts something.
///
/// # Safety
///
/// `raw` is a state of this thread's.
unsafe fn count(raw: *mut ffi::lua_State, index: i32) -> usize {
    // SAFETY: as promised by the caller.
    unsafe { ffi::lua_tonumber(raw, index) as usize }
}

unsafe fn push_text(raw: *mut ffi::lua_State, text: &[u8]) {
    // SAFETY: called with a state of this thread's that has room for a value.
    unsafe { ffi::lua_pushlstring_(raw, text.as_ptr().cast(), text.len()) }
}

/// `address(thread)`: the number of its address, or nil.
unsafe extern "C-unwind" fn address(raw: *mut ffi::lua_State) -> i32 {
    // SAFETY: Lua calls it with the state of this thread and room for `LUA_MINSTACK` values.
    unsafe {
        match context(raw).shared.thread_address(count(raw, 1)) {
            Some(id) => ffi::lua_pushnumber(raw, id as f64),
            None => ffi::lua_pushnil(raw),
        }
    }
    1
}

/// `set_address(thread, address)`.
unsafe extern "C-unwind" fn set_address(raw: *mut ffi::lua_State) -> i32 {
    // SAFETY: as in `address`.
    unsafe {
        let (thread, id) = (count(raw, 1), count(raw, 2));
        context(raw).shared.set_thread_address(thread, id);
    }
    0
}

/// `address_text(address)`: `ADDRESS:PORT`, without brackets.
unsafe extern "C-unwind" fn address_text(raw: *mut ffi::lua_State) -> i32 {
    // SAFETY: as in `address`.
    unsafe {
        let text = match context(raw).shared.address(count(raw, 1)) {
            Some(SocketAddr::V6(v6)) if v6.scope_id() != 0 => {
                format!("{}%{}:{}", v6.ip(), v6.scope_id(), v6.port())
            }
            Some(known) => format!("{}:{}", known.ip(), known.port()),
            None => String::new(),
        };
        push_text(raw, text.as_bytes());
    }
    1
}

/// `lookup(host, service)`: the numbers of its addresses, or nil and a message.
unsafe extern "C-unwind" fn lookup(raw: *mut ffi::lua_State) -> i32 {
    // SAFETY: as in `address`. What is pushed beyond `LUA_MINSTACK` is checked for.
    unsafe {
        let shared = &context(raw).shared;
        let host = text::bytes(raw, 1).map(String::from_utf8_lossy);
        let service = text::bytes(raw, 2).map(String::from_utf8_lossy);
        let (host, service) = (host.unwrap_or_default(), service.unwrap_or_default());
        let reason = match resolve(&host, &service) {
            Ok(found) => {
                let ids = found
                    .into_iter()
                    .filter_map(|found| shared.address_id(found));
                let ids: Vec<_> = ids.collect();
                if ids.is_empty() {
                    "there are too many addresses".to_owned()
                } else if ffi::lua_checkstack(raw, ids.len() as i32) == 0 {
                    "there are more addresses than Lua has room for".to_owned()
                } else {
                    for id in &ids {
                        ffi::lua_pushnumber(raw, *id as f64);
                    }
                    return ids.len() as i32;
                }
            }
            Err(reason) => reason,
        };
        let error = ScriptError::Resolve {
            host: host.into_owned(),
            service: service.into_owned(),
            reason,
        };
        ffi::lua_pushnil(raw);
        push_text(raw, error.to_string().as_bytes());
        shared.notes().failure = Some(error);
    }
    2
}

/// The addresses of a host; `service` is a port or the name of one.
fn resolve(host: &str, service: &str) -> Result<Vec<SocketAddr>, String> {
    let port = match service.parse() {
        Ok(port) => port,
        Err(_) => service_port(service).ok_or("Servname not supported for ai_socktype")?,
    };
    match (host, port).to_socket_addrs() {
        Ok(found) => Ok(found.collect()),
        Err(error) => {
            let reason = error.to_string();
            let reason = reason.rsplit_once(": ").map_or(&*reason, |(_, last)| last);
            Err(reason.to_owned())
        }
    }
}

/// The port of a service of TCP.
fn service_port(service: &str) -> Option<u16> {
    match service {
        "" => Some(0),
        "http" => Some(80),
        "https" => Some(443),
        _ => port_in(&std::fs::read_to_string(SERVICES).ok()?, service),
    }
}

/// The port of a service of TCP, in a list as `/etc/services` is one.
fn port_in(services: &str, service: &str) -> Option<u16> {
    services.lines().find_map(|line| {
        let line = line.split('#').next()?;
        let mut words = line.split_whitespace();
        let name = words.next()?;
        let port = words.next()?.strip_suffix("/tcp")?;
        (name == service || words.any(|alias| alias == service))
            .then(|| port.parse().ok())
            .flatten()
    })
}

/// `connect(address)`: whether it takes a connection.
unsafe extern "C-unwind" fn connect(raw: *mut ffi::lua_State) -> i32 {
    // SAFETY: as in `address`.
    unsafe {
        let shared = &context(raw).shared;
        let is_connected = shared.address(count(raw, 1)).is_some_and(|address| {
            TcpStream::connect_timeout(&address, CONNECT_TIMEOUT)
                .inspect(|_| shared.notes().connected = Some(address))
                .inspect_err(|error| shared.notes().connect_error = Some(words_of(error)))
                .is_ok()
        });
        ffi::lua_pushboolean(raw, is_connected.into());
    }
    1
}

/// Why a connection was not made, without the number that Rust adds to the system's words.
fn words_of(error: &io::Error) -> String {
    let text = error.to_string();
    let words = text.split(" (os error").next();
    words.unwrap_or_default().to_owned()
}

/// `format(method, path, headers, body)`, with a table and all four arguments: the text of a
/// request; nil where it needs Lua to put together, and a message where it is too long.
unsafe extern "C-unwind" fn format_request(raw: *mut ffi::lua_State) -> i32 {
    // SAFETY: as in `address`; at most five values are pushed. The table is not changed while it is
    // traversed, and keys are not changed into strings in place.
    unsafe {
        let mut text = context(raw).text.borrow_mut();
        text.clear();
        match append_request(raw, &mut text) {
            Ok(()) => push_text(raw, &text),
            Err(Unfit::NeedsLua) => {
                ffi::lua_settop(raw, 0);
                ffi::lua_pushnil(raw);
            }
            Err(Unfit::TooLong) => {
                ffi::lua_settop(raw, 0);
                ffi::lua_pushnil(raw);
                let message = format!("a request of more than {TEXT_BYTES_MAX} bytes is not sent");
                push_text(raw, message.as_bytes());
                return 2;
            }
        }
    }
    1
}

/// Appends the request whose parts are at 1 to 4 of the stack.
unsafe fn append_request(raw: *mut ffi::lua_State, text: &mut Vec<u8>) -> Result<(), Unfit> {
    // SAFETY: called by `format_request`.
    unsafe {
        text::append(raw, 1, text)?;
        text.push(b' ');
        text::append(raw, 2, text)?;
        text.extend_from_slice(b" HTTP/1.1\r\n");
        ffi::lua_pushnil(raw);
        while ffi::lua_next(raw, 3) != 0 {
            let (name, value) = (ffi::lua_type(raw, 5), ffi::lua_type(raw, 6));
            if name == ffi::LUA_TSTRING && value == ffi::LUA_TSTRING {
                text::append_line(raw, text)?;
            } else {
                text::append(raw, 5, text)?;
                text.extend_from_slice(b": ");
                text::append(raw, 6, text)?;
                text.extend_from_slice(b"\r\n");
            }
            ffi::lua_settop(raw, 5);
        }
        text.extend_from_slice(b"\r\n");
        match ffi::lua_type(raw, 4) {
            ffi::LUA_TNIL => Ok(()),
            ffi::LUA_TBOOLEAN if ffi::lua_toboolean(raw, 4) == 0 => Ok(()),
            ffi::LUA_TBOOLEAN => Err(Unfit::NeedsLua),
            _ => text::append(raw, 4, text),
        }
    }
}

/// `get(thread, name)`: true and a copy of its global variable, or false and a message.
unsafe extern "C-unwind" fn get(raw: *mut ffi::lua_State) -> i32 {
    // SAFETY: as in `address`; the other state is locked, so that no other thread uses it.
    unsafe {
        let context = context(raw);
        let thread = count(raw, 1);
        let Some(name) = text::bytes(raw, 2) else {
            return refuse(raw, "bad argument #1 to 'get' (string expected)");
        };
        if context.thread == Some(thread) {
            return answer_copy(raw, raw, name);
        }
        match context.shared.state(thread).as_deref() {
            Some(Some(state)) => answer_copy(raw, state.raw, name),
            _ => refuse(raw, &is_away(thread)),
        }
    }
}

/// Pushes true and a copy of a global variable of `source`, or false and a message.
unsafe fn answer_copy(raw: *mut ffi::lua_State, source: *mut ffi::lua_State, name: &[u8]) -> i32 {
    // SAFETY: called by `get`.
    unsafe {
        if ffi::lua_checkstack(source, 2) == 0 {
            return refuse(raw, "Lua's stack is full");
        }
        push_text(source, name);
        ffi::lua_rawget_(source, ffi::LUA_GLOBALSINDEX);
        let value = ffi::lua_gettop(source);
        ffi::lua_pushboolean(raw, 1);
        let copied = copy::copy(source, raw, value);
        if source != raw {
            ffi::lua_settop(source, value - 1);
        }
        match copied {
            Ok(()) => 2,
            Err(message) => refuse(raw, &message),
        }
    }
}

/// `set(thread, name, value)`: true, or false and a message.
unsafe extern "C-unwind" fn set(raw: *mut ffi::lua_State) -> i32 {
    // SAFETY: as in `get`.
    unsafe {
        let context = context(raw);
        ffi::lua_settop(raw, 3);
        let thread = count(raw, 1);
        let Some(name) = text::bytes(raw, 2) else {
            return refuse(raw, "bad argument #1 to 'set' (string expected)");
        };
        let set = if context.thread == Some(thread) {
            set_copy(raw, raw, name)
        } else {
            match context.shared.state(thread).as_deref() {
                Some(Some(state)) => set_copy(raw, state.raw, name),
                _ => Err(is_away(thread)),
            }
        };
        match set {
            Ok(()) => {
                ffi::lua_pushboolean(raw, 1);
                1
            }
            Err(message) => refuse(raw, &message),
        }
    }
}

/// Sets a global variable of `destination` to a copy of the value at 3.
unsafe fn set_copy(
    raw: *mut ffi::lua_State,
    destination: *mut ffi::lua_State,
    name: &[u8],
) -> Result<(), String> {
    // SAFETY: called by `set`.
    unsafe {
        if ffi::lua_checkstack(destination, 2) == 0 {
            return Err("Lua's stack is full".to_owned());
        }
        let top = ffi::lua_gettop(destination);
        push_text(destination, name);
        copy::copy(raw, destination, 3).inspect_err(|_| ffi::lua_settop(destination, top))?;
        ffi::lua_rawset(destination, ffi::LUA_GLOBALSINDEX);
        Ok(())
    }
}

fn is_away(thread: usize) -> String {
    format!("thread {} has not come back from the script", thread + 1)
}

/// Pushes false and a message.
unsafe fn refuse(raw: *mut ffi::lua_State, message: &str) -> i32 {
    // SAFETY: called by functions that Lua calls.
    unsafe {
        ffi::lua_pushboolean(raw, 0);
        push_text(raw, message.as_bytes());
    }
    2
}

/// `stop(thread)`.
unsafe extern "C-unwind" fn stop(raw: *mut ffi::lua_State) -> i32 {
    // SAFETY: as in `address`.
    unsafe { context(raw).shared.stop(count(raw, 1)) }
    0
}

/// `statistic(which, what, number)`: one number, or a value and its count.
unsafe extern "C-unwind" fn statistic(raw: *mut ffi::lua_State) -> i32 {
    // SAFETY: as in `address`.
    unsafe {
        let notes = context(raw).shared.notes();
        let Some(outcome) = notes.outcome.as_ref() else {
            return 0;
        };
        let values = match count(raw, 1) {
            0 => &outcome.latency,
            _ => &outcome.requests,
        };
        let number = ffi::lua_tonumber(raw, 3);
        let answer = match text::bytes(raw, 2).unwrap_or_default() {
            b"min" => values.min() as f64,
            b"max" => values.max() as f64,
            b"mean" => values.mean(),
            b"stdev" => values.stdev(),
            b"percentile" => values.percentile(number) as f64,
            b"percentile_by_hdr" => values.percentile_by_hdr(number) as f64,
            b"count" => values.total() as f64,
            b"distinct" => values.values().len() as f64,
            b"nth" => {
                // wrk converts first and subtracts after: what is below 1 is out of range.
                let (value, count) = values.nth((number as u64).wrapping_sub(1));
                ffi::lua_pushnumber(raw, value as f64);
                ffi::lua_pushnumber(raw, count as f64);
                return 2;
            }
            _ => return 0,
        };
        ffi::lua_pushnumber(raw, answer);
    }
    1
}

/// `time_us()`: microseconds of the wall clock.
#[expect(
    clippy::disallowed_methods,
    reason = "scripts ask for the wall clock; nothing of brunt's own is decided by it"
)]
unsafe extern "C-unwind" fn time_us(raw: *mut ffi::lua_State) -> i32 {
    let now = std::time::SystemTime::now().duration_since(UNIX_EPOCH);
    // SAFETY: as in `address`.
    unsafe {
        ffi::lua_pushnumber(raw, now.map_or(0.0, |now| now.as_micros() as f64));
    }
    1
}

/// `sleep(seconds)`.
unsafe extern "C-unwind" fn sleep(raw: *mut ffi::lua_State) -> i32 {
    // SAFETY: as in `address`.
    let seconds = unsafe { ffi::lua_tonumber(raw, 1) };
    let duration = Duration::try_from_secs_f64(seconds.max(0.0)).unwrap_or(SLEEP_MAX);
    std::thread::sleep(duration.min(SLEEP_MAX));
    0
}

/// `json()`: the chunk of the stand-in for cjson; nil and a message where it cannot be loaded.
unsafe extern "C-unwind" fn json(raw: *mut ffi::lua_State) -> i32 {
    // SAFETY: as in `address`; `luaL_loadbuffer` returns errors.
    unsafe {
        let name = c"=cjson.lua".as_ptr();
        if ffi::luaL_loadbuffer(raw, JSON.as_ptr().cast(), JSON.len(), name) == ffi::LUA_OK {
            return 1;
        }
        ffi::lua_pushnil(raw);
        ffi::lua_insert(raw, -2);
    }
    2
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn services_are_those_of_tcp() {
        let list = "# a comment\nntp 123/udp\nhttp-alt\t8080/tcp webcache # another\nx 1/tcp\n";
        assert_eq!(port_in(list, "http-alt"), Some(8_080));
        assert_eq!(port_in(list, "webcache"), Some(8_080));
        assert_eq!(port_in(list, "ntp"), None);
        assert_eq!(port_in(list, "another"), None);
    }

    #[test]
    fn names_of_services_stand_for_ports() {
        let loopback = |port| Ok(vec![SocketAddr::from(([127, 0, 0, 1], port))]);
        assert_eq!(resolve("127.0.0.1", "8080"), loopback(8_080));
        assert_eq!(resolve("127.0.0.1", "https"), loopback(443));
        assert!(resolve("127.0.0.1", "no such service").is_err());
    }
}
