//! LuaJIT through its C interface. All that is unsafe about it is in this folder; what it shows to
//! the rest of the crate is safe.
//!
//! Two things hold everywhere in it:
//!
//! - **No error of Lua's passes a frame of Rust.** Lua raises by unwinding, and brunt is built with
//!   `panic = "abort"`, which ends the process where foreign unwinding reaches Rust. So Lua is
//!   entered by `lua_pcall` alone, functions that Lua calls (`native.rs`) return nil and a message,
//!   which the prelude raises, and what is called outside of `lua_pcall` raises nothing but
//!   `LUA_ERRMEM`, which ends the process anyway.
//! - **A state is used by one thread at a time.** [`State`] is an owner, and not `Sync`.

mod copy;
mod functions;
mod native;
mod state;
mod text;

pub(crate) use functions::Function;
pub(crate) use state::{
    Answer, Argument, Beside, Interrupter, Requested, ResponseArguments, Settings, State,
};
pub(crate) use text::TEXT_BYTES_MAX;

/// Writes out what scripts have printed so far. Scripts print through C's buffers, brunt through
/// Rust's: call it before brunt prints something that comes later.
pub fn flush_script_output() {
    // SAFETY: a null pointer means all streams; C locks each of them.
    unsafe {
        libc::fflush(std::ptr::null_mut());
    }
}
