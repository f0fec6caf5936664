//! The only file that starts threads.

use std::io;
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

/// Sleeps; for threads that only watch, never for workers.
pub fn sleep(ns: u64) {
    std::thread::sleep(std::time::Duration::from_nanos(ns));
}
