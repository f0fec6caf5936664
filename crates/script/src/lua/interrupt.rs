//! Ending a call into Lua from another thread.
//!
//! LuaJIT lets another thread set a hook (`lj_record.c`, `LUAJIT_ENABLE_CHECKHOOK`): the
//! interpreter sees it at once, compiled code at its next loop or call where LuaJIT was built so,
//! which `.cargo/config.toml` does.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use brunt_load::Interrupt;
use mlua_sys as ffi;

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
// only while the mutex is locked that `disarm` locks before the state is closed.
unsafe impl Send for Hooked {}

impl Interrupter {
    /// Takes the hook that the prelude has set, and unsets it.
    ///
    /// # Safety
    ///
    /// `raw` is a state until `disarm` has returned, and the calling thread's.
    pub(super) unsafe fn new(raw: *mut ffi::lua_State) -> Self {
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

    /// The state is about to be closed.
    pub(super) fn disarm(&self) {
        *self.hooked() = None;
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
