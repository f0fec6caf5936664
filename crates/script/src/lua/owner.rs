//! The owner of a Lua state, and what stands at the bottom of its stack.

use std::any::Any;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use brunt_load::Interrupt;
use mlua_sys as ffi;

// What is kept at the bottom of the state's stack, where it is reached fastest.
/// The prelude's functions, by their places.
pub(super) const FUNCTIONS: i32 = 1;
/// Names of header fields, by the place in which they came last.
pub(super) const HEADER_NAMES: i32 = 2;
/// What `request` gave beside its text, by tag.
pub(super) const TAGS: i32 = 3;
/// What is called for each request and each response (`calls.lua`).
pub(super) const ASK: i32 = 4;
pub(super) const RESPOND_STATUS: i32 = 5;
pub(super) const RESPOND: i32 = 6;
pub(super) const RESPOND_BESIDE: i32 = 7;
pub(super) const WAIT: i32 = 8;
pub(super) const BOTTOM: i32 = WAIT;

/// A Lua state: an owner of it, for one thread at a time.
#[derive(Debug)]
pub(crate) struct State {
    raw: *mut ffi::lua_State,
    /// What functions that Lua calls know; made by `Box`, and freed after the state.
    context: NonNull<dyn Any + Send>,
    interrupter: Arc<Interrupter>,
}

// SAFETY: nothing of LuaJIT is bound to the thread that made a state, and a state shares nothing
// with others. `State` is the only owner and not `Sync`, so one thread at a time uses it.
unsafe impl Send for State {}

impl State {
    /// Takes a state in which the prelude was run.
    ///
    /// # Safety
    ///
    /// `raw` is a state of this thread's that nobody else closes; `context` was made by `Box`, and
    /// is referred to by nothing but the state.
    pub(super) unsafe fn of(raw: *mut ffi::lua_State, context: NonNull<dyn Any + Send>) -> Self {
        // SAFETY: as promised by the caller; `drop` disarms it before the state is closed.
        let interrupter = unsafe { Interrupter::new(raw) };
        Self {
            raw,
            context,
            interrupter: Arc::new(interrupter),
        }
    }

    /// What ends a call into this state from another thread.
    pub(crate) fn interrupter(&self) -> Arc<Interrupter> {
        Arc::clone(&self.interrupter)
    }

    /// Makes a state that was interrupted usable again.
    pub(crate) fn resume(&mut self) {
        self.interrupter.resume();
    }

    /// For this folder alone: valid as long as the state is.
    pub(super) fn raw(&self) -> *mut ffi::lua_State {
        self.raw
    }
}

impl Drop for State {
    fn drop(&mut self) {
        self.interrupter.disarm();
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
