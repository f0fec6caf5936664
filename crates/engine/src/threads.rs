//! The only file that starts threads; and how exactly they wake up.

use std::io;
use std::num::NonZeroU64;
use std::thread::{Builder, JoinHandle};

/// Stack of a worker: its frames are small, and no input makes it recurse.
const STACK_BYTES: usize = 256 * 1024;

/// Starts a named thread (names are cut to 15 bytes by the kernel).
///
/// # Errors
///
/// The system refuses another thread.
pub fn spawn<T: Send + 'static>(
    name: &str,
    body: impl FnOnce() -> T + Send + 'static,
) -> io::Result<JoinHandle<T>> {
    Builder::new()
        .name(name.to_owned())
        .stack_size(STACK_BYTES)
        .spawn(body)
}

/// The calling thread's sleeps end when they should, and not up to 50 µs later.
pub fn precise_timers() {
    let slack_ns = NonZeroU64::MIN;
    // Without it brunt is only a little later.
    let _ = rustix::thread::set_current_timer_slack(Some(slack_ns));
}

/// Sleeps, for threads that only watch; and for workers that gather what comes meanwhile.
pub fn sleep(ns: u64) {
    std::thread::sleep(std::time::Duration::from_nanos(ns));
}
