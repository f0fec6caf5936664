//! One io_uring instance with its file table and receive buffers.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

use io_uring::squeue::{self, Flags};
pub(super) use io_uring::types::Timespec;
use io_uring::types::{DestinationSlot, Fd, Fixed, SubmitArgs};
use io_uring::{IoUring, cqueue, opcode};

use super::buffers::{Buffers, GROUP};

/// Entries of the submission queue.
const SUBMISSIONS: u32 = 256;
/// Entries of the completion queue; the kernel keeps what does not fit.
const COMPLETIONS: u32 = 4_096;
/// Sends that are handed over together: more would save little, and each waits for the others.
const BATCH: u32 = 16;
/// SO_LINGER with no time: closing resets the connection.
static NO_LINGER: libc::linger = libc::linger {
    l_onoff: 1,
    l_linger: 0,
};
/// Flags of io_uring_enter(2).
const ENTER_GETEVENTS: u32 = 1;
const ENTER_EXT_ARG: u32 = 8;
/// How often a full queue is handed over before its entry is given up as refused.
const PUSH_ATTEMPTS: u32 = 8;

/// A ring, its sparse file table, and its buffers.
pub(super) struct Ring {
    // Declared first: dropped before the buffers that it refers to. Once the descriptor is closed
    // the kernel only cancels what was under way: it moves no more bytes. (Cancelling before that,
    // with IORING_REGISTER_SYNC_CANCEL, takes time quadratic in the armed receives.)
    ring: IoUring,
    pub(super) buffers: Buffers,
    /// Submissions queued and not yet handed over.
    queued: u32,
    /// How often the queue was handed over: tells whether a given submission still waits.
    pub(super) handovers: u32,
}

impl Ring {
    /// Makes a ring with a file table of `files` places and `buffers` receive buffers.
    pub(super) fn new(files: u32, buffers: u16) -> io::Result<Self> {
        let ring = IoUring::builder()
            .setup_cqsize(COMPLETIONS)
            .setup_single_issuer()
            .setup_defer_taskrun()
            .setup_submit_all()
            .setup_clamp()
            .build(SUBMISSIONS)?;
        ring.submitter().register_files_sparse(files)?;
        let buffers = Buffers::register(&ring, buffers)?;
        Ok(Self {
            ring,
            buffers,
            queued: 0,
            handovers: 0,
        })
    }

    /// Puts `socket` into the file table at `place`.
    pub(super) fn set_file(&mut self, place: u32, socket: i32) -> io::Result<()> {
        self.ring
            .submitter()
            .register_files_update(place, &[socket])
            .map(drop)
    }

    /// Empties `place` of the file table: the socket closes once nothing is under way on it.
    pub(super) fn clear_file(&mut self, place: u32) {
        // Clearing an empty place is all that could fail.
        let _ = self.ring.submitter().register_files_update(place, &[-1]);
    }

    /// Queues a connection attempt.
    ///
    /// # Safety
    ///
    /// `address` must stay where it is for the life of the ring.
    pub(super) unsafe fn connect(
        &mut self,
        place: u32,
        address: &socket2::SockAddr,
        user_data: u64,
    ) -> io::Result<()> {
        let entry = opcode::Connect::new(Fixed(place), address.as_ptr().cast(), address.len())
            .build()
            .user_data(user_data);
        // SAFETY: the address outlives the operation, by this function's own contract.
        unsafe { self.push(&entry) }
    }

    /// Queues one accept into `place`.
    pub(super) fn accept(&mut self, listener: i32, place: u32, user_data: u64) -> io::Result<()> {
        let target = DestinationSlot::try_from_slot_target(place)
            .map_err(|place| io::Error::other(format!("no such place: {place}")))?;
        let entry = opcode::Accept::new(Fd(listener), std::ptr::null_mut(), std::ptr::null_mut())
            .file_index(Some(target))
            .build()
            .user_data(user_data);
        // SAFETY: no memory of ours is involved.
        unsafe { self.push(&entry) }
    }

    /// Queues a receive that stays armed, into the ring's buffers.
    pub(super) fn receive(&mut self, place: u32, user_data: u64) -> io::Result<()> {
        let entry = opcode::RecvMulti::new(Fixed(place), GROUP)
            .build()
            .user_data(user_data);
        // SAFETY: the buffers belong to the ring and are dropped after it.
        unsafe { self.push(&entry) }
    }

    /// Queues a send of all of `bytes`. A `silent` one completes with an event only if it fails.
    ///
    /// # Safety
    ///
    /// `bytes` must stay where they are until the send's completion, or for the life of the ring.
    pub(super) unsafe fn send(
        &mut self,
        place: u32,
        bytes: &[u8],
        silent: bool,
        user_data: u64,
    ) -> io::Result<()> {
        let mut entry = opcode::Send::new(Fixed(place), bytes.as_ptr(), bytes.len() as u32)
            .flags(libc::MSG_NOSIGNAL | libc::MSG_WAITALL)
            .build()
            .user_data(user_data);
        if silent {
            entry = entry.flags(Flags::SKIP_SUCCESS);
        }
        // SAFETY: the bytes outlive the operation, by this function's own contract.
        unsafe { self.push(&entry) }
    }

    /// Queues the cancellation of the operation with `target` as its user data.
    pub(super) fn cancel(&mut self, target: u64, user_data: u64) -> io::Result<()> {
        let entry = opcode::AsyncCancel::new(target)
            .build()
            .user_data(user_data);
        // SAFETY: no memory of ours is involved.
        unsafe { self.push(&entry) }
    }

    /// Queues that the socket at `place` is to send a reset when it is closed.
    pub(super) fn reset_on_close(&mut self, place: u32, user_data: u64) -> io::Result<()> {
        let entry = opcode::SetSockOpt::new(
            Fixed(place),
            libc::SOL_SOCKET as u32,
            libc::SO_LINGER as u32,
            std::ptr::from_ref(&NO_LINGER).cast(),
            size_of::<libc::linger>() as u32,
        )
        .build()
        .user_data(user_data);
        // SAFETY: the option is a static.
        unsafe { self.push(&entry) }
    }

    /// Hands the queue over if a batch has gathered.
    pub(super) fn submit_batch(&mut self) -> io::Result<()> {
        if self.queued >= BATCH {
            self.submit()
        } else {
            Ok(())
        }
    }

    /// Hands the queue over without waiting.
    pub(super) fn submit(&mut self) -> io::Result<()> {
        if self.queued == 0 {
            return Ok(());
        }
        self.enter(0, None, 0)
    }

    /// Hands the queue over, lets the kernel do the work that it has put off, and waits for a
    /// completion, `timeout` at most.
    pub(super) fn submit_and_wait(&mut self, timeout: Option<Timespec>) -> io::Result<()> {
        self.enter(1, timeout, ENTER_GETEVENTS)
    }

    /// Hands the queue over and lets the kernel do the work that it has put off, without waiting.
    pub(super) fn submit_and_run(&mut self) -> io::Result<()> {
        self.enter(0, None, ENTER_GETEVENTS)
    }

    /// Moves what has completed to `into`.
    pub(super) fn drain(&mut self, into: &mut Vec<cqueue::Entry>) {
        into.extend(self.ring.completion());
    }

    /// The descriptor, to wait for several rings at once.
    pub(super) fn descriptor(&self) -> BorrowedFd<'_> {
        // SAFETY: the descriptor is open as long as the ring, which the result borrows.
        unsafe { BorrowedFd::borrow_raw(self.ring.as_raw_fd()) }
    }

    fn enter(&mut self, want: u32, timeout: Option<Timespec>, flags: u32) -> io::Result<()> {
        self.handovers = self.handovers.wrapping_add(1);
        let submitter = self.ring.submitter();
        // SAFETY: the flags match the argument that is passed, and what the queued entries point
        // to outlives them by the contract of `push`.
        let outcome = unsafe {
            match timeout {
                Some(timeout) => {
                    let arguments = SubmitArgs::new().timespec(&timeout);
                    submitter.enter(self.queued, want, flags | ENTER_EXT_ARG, Some(&arguments))
                }
                None => submitter.enter::<libc::sigset_t>(self.queued, want, flags, None),
            }
        };
        match outcome {
            Ok(taken) => {
                self.queued = self.queued.saturating_sub(taken as u32);
                Ok(())
            }
            Err(error) => match error.raw_os_error() {
                // The time is over, a signal came, or completions must be taken first.
                Some(libc::ETIME | libc::EINTR | libc::EBUSY | libc::EAGAIN) => Ok(()),
                _ => Err(error),
            },
        }
    }

    /// # Safety
    ///
    /// What `entry` points to must outlive the operation.
    unsafe fn push(&mut self, entry: &squeue::Entry) -> io::Result<()> {
        for _ in 0..PUSH_ATTEMPTS {
            // SAFETY: passed on to the caller.
            if unsafe { self.ring.submission().push(entry) }.is_ok() {
                self.queued += 1;
                return Ok(());
            }
            // Full: handing over empties it.
            self.submit()?;
        }
        Err(io::Error::new(
            io::ErrorKind::ResourceBusy,
            "io_uring takes no more submissions",
        ))
    }
}
