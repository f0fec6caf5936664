//! Waits at an epoll instance that end on the nanosecond, also where there is no epoll_pwait2:
//! before Linux 5.11, in emulators, and under filters that refuse it.

use std::os::fd::{AsRawFd, BorrowedFd};

use rustix::buffer::spare_capacity;
use rustix::event::{PollFd, PollFlags, Timespec, epoll, poll};
use rustix::io::Result;

use crate::socket::last_errno;

/// How an instance is waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wait {
    /// By epoll_pwait2.
    Pwait2,
    /// By ppoll, which also takes nanoseconds, and then by epoll_wait without a wait: that one
    /// would round to milliseconds.
    Ppoll,
}

impl Wait {
    /// How the kernel lets `epoll`, to which nothing was added yet, be waited for.
    pub(super) fn of_kernel(epoll: BorrowedFd<'_>) -> Self {
        let mut ready = Vec::with_capacity(1);
        // A filter may refuse with any error.
        match Self::Pwait2.wait(epoll, &mut ready, Some(0)) {
            Ok(()) => Self::Pwait2,
            Err(_) => Self::Ppoll,
        }
    }

    /// Adds what is ready to `ready`, as far as it has room, after a wait of `timeout_ns` at most
    /// (without an end when absent).
    ///
    /// # Errors
    ///
    /// As epoll_wait. A signal ends a wait with EINTR.
    pub(super) fn wait(
        self,
        epoll: BorrowedFd<'_>,
        ready: &mut Vec<epoll::Event>,
        timeout_ns: Option<u64>,
    ) -> Result<()> {
        let timeout = timeout_ns.map(timespec);
        match self {
            Self::Pwait2 => {
                epoll::wait(epoll, spare_capacity(ready), timeout.as_ref())?;
            }
            Self::Ppoll => {
                if timeout_ns != Some(0) {
                    let mut polled = [PollFd::from_borrowed_fd(epoll, PollFlags::IN)];
                    poll(&mut polled, timeout.as_ref())?;
                }
                take_ready(epoll, ready)?;
            }
        }
        Ok(())
    }
}

// Both are the kernel's `struct epoll_event`.
const _: () = assert!(size_of::<epoll::Event>() == size_of::<libc::epoll_event>());
const _: () = assert!(align_of::<epoll::Event>() == align_of::<libc::epoll_event>());

/// As epoll_wait without a wait.
fn take_ready(epoll: BorrowedFd<'_>, ready: &mut Vec<epoll::Event>) -> Result<()> {
    let room = ready.spare_capacity_mut();
    let (start, length) = (room.as_mut_ptr(), room.len());
    let length = i32::try_from(length).unwrap_or(i32::MAX);
    // SAFETY: `start` has room for `length` events, and the layout is that of the kernel.
    let count = unsafe { libc::epoll_wait(epoll.as_raw_fd(), start.cast(), length, 0) };
    let Ok(count) = usize::try_from(count) else {
        return Err(last_errno());
    };
    // SAFETY: the kernel wrote so many events behind those that were there.
    unsafe { ready.set_len(ready.len() + count) };
    Ok(())
}

/// The kernel's form of a time.
pub(crate) fn timespec(ns: u64) -> Timespec {
    Timespec {
        tv_sec: (ns / 1_000_000_000) as i64,
        tv_nsec: (ns % 1_000_000_000) as i64,
    }
}
