//! The only file that starts threads; and how exactly they wake up.
#![expect(
    clippy::disallowed_methods,
    reason = "everything else starts them here"
)]

use std::io;
use std::num::NonZeroU64;
use std::panic;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

use crate::clock;

/// Stack of a thread, as large as the system's default. A worker's own frames are small, and no
/// input makes it recurse; but names are resolved and certificates read with other people's code,
/// and functions of Lua that call others, such as `string.gsub`, have 8 KiB of buffer each. What is
/// not used of it takes no memory.
pub const STACK_BYTES: usize = 8 * 1024 * 1024;
/// How often the thread that waits for another one looks whether it still should.
const LOOK: Duration = Duration::from_millis(10);

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

/// Runs `body` in a thread of its own and waits for what it gives; `None` as soon as `is_cancelled`
/// says that nobody wants it any more. The thread is then detached: for work that blocks and
/// cannot be stopped, such as resolving a name.
///
/// # Errors
///
/// The system refuses another thread.
///
/// # Panics
///
/// As `body` does.
pub fn run_unless<T: Send + 'static>(
    name: &str,
    body: impl FnOnce() -> T + Send + 'static,
    mut is_cancelled: impl FnMut() -> bool,
) -> io::Result<Option<T>> {
    let (sender, receiver) = mpsc::channel();
    let body = move || {
        // Nobody may be waiting any more.
        let _ = sender.send(body());
    };
    let thread = spawn(name, body)?;
    loop {
        match receiver.recv_timeout(LOOK) {
            Ok(outcome) => return Ok(Some(outcome)),
            Err(RecvTimeoutError::Timeout) if is_cancelled() => return Ok(None),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => {
                return match thread.join() {
                    Err(reason) => panic::resume_unwind(reason),
                    Ok(()) => Ok(None),
                };
            }
        }
    }
}

/// The calling thread's sleeps end when they should, and not up to 50 µs later.
pub fn precise_timers() {
    let slack_ns = NonZeroU64::MIN;
    // Without it brunt is only a little later.
    let _ = rustix::thread::set_current_timer_slack(Some(slack_ns));
}

/// Sleeps, for threads that only watch; and for workers that gather what comes meanwhile. It waits
/// for a futex, as everything does that waits for another thread: a sandbox may forbid
/// clock_nanosleep(2), and `std::thread::sleep` panics then.
pub fn sleep(ns: u64) {
    let until_ns = clock::now_ns().saturating_add(ns);
    loop {
        match until_ns.saturating_sub(clock::now_ns()) {
            0 => return,
            left_ns => std::thread::park_timeout(Duration::from_nanos(left_ns)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_blocks_is_waited_for_only_while_it_is_wanted() {
        let done = run_unless("brunt-test", || 7, || false).expect("a thread");
        assert_eq!(done, Some(7));
        let (release, blocked) = mpsc::channel::<()>();
        let body = move || {
            let _ = blocked.recv();
        };
        let mut looks = 0;
        let left = run_unless("brunt-test", body, || {
            looks += 1;
            looks == 2
        });
        assert_eq!(left.expect("a thread"), None);
        assert_eq!(looks, 2);
        drop(release);
    }

    #[test]
    fn a_panic_is_passed_on() {
        let outcome = panic::catch_unwind(|| {
            run_unless("brunt-test", || -> u32 { panic!("on purpose") }, || false)
        });
        assert!(outcome.is_err());
    }
}
