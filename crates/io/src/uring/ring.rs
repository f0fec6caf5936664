//! One io_uring instance with its file table and its provided buffer ring: receive buffers that the
//! kernel takes from and we give back to.

use std::io;
use std::ops::Range;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::ptr::NonNull;
use std::sync::atomic::{self, AtomicU16, Ordering};

use io_uring::squeue::{self, Flags};
use io_uring::types::{BufRingEntry, DestinationSlot, Fd, Fixed, RecvMsgOut, SubmitArgs};
use io_uring::{IoUring, cqueue, opcode};
use rustix::event::{EventfdFlags, eventfd};
use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous, munmap};

use crate::backend::{SendCall, Slot};
use crate::{clock, receive_stamps};

pub(super) use io_uring::types::Timespec;

/// Entries of the submission queue.
const SUBMISSIONS: u32 = 256;
/// Entries of the completion queue; the kernel keeps what does not fit.
const COMPLETIONS: u32 = 4_096;
/// Sends that are submitted together: more would save little, and each waits for the others.
const BATCH: u32 = 16;
/// SO_LINGER with no time: closing resets the connection.
static NO_LINGER: libc::linger = libc::linger {
    l_onoff: 1,
    l_linger: 0,
};
/// Flags of io_uring_enter(2).
const ENTER_GETEVENTS: u32 = 1;
const ENTER_EXT_ARG: u32 = 8;
/// Completions that end a gathering wait early.
const GATHERED: u32 = 64;
/// How often a full queue is submitted before its entry is given up as refused.
const PUSH_ATTEMPTS: u32 = 8;

/// A ring, its sparse file table, and its buffers.
pub(super) struct Ring {
    // Declared first: dropped before the buffers that it refers to. Once the descriptor is closed
    // the kernel only cancels what was in flight: it moves no more bytes. (Cancelling before that,
    // with IORING_REGISTER_SYNC_CANCEL, takes time quadratic in the armed receives.)
    ring: IoUring,
    pub(super) buffers: Buffers,
    /// What the kernel writes to when it has work for this ring while the ring is not entered.
    /// Absent where the worker waits in the ring itself.
    eventfd: Option<OwnedFd>,
    /// What receives with control messages ask for. The kernel may read it while one is armed.
    message: Box<libc::msghdr>,
    /// Entries queued and not yet submitted.
    queued: u32,
    /// How long a wait lasts at least, microseconds.
    gather_us: u32,
    /// Submissions that the kernel has taken. They are numbered from 1 in the order of the queue.
    taken: u64,
    /// Of these, those whose completion has been moved out if they failed at once.
    settled: u64,
    /// Stamped sends in the queue, with their numbers.
    stamped_sends: Vec<(Slot, u64)>,
    /// Stamped sends that were taken, until `take_send_calls`.
    send_calls: Vec<(Slot, SendCall)>,
    /// How many times from now on nothing in the queue is taken.
    #[cfg(test)]
    refusals: u32,
}

/// What a ring's receives are given.
#[derive(Clone, Copy, Debug)]
pub(super) struct Layout {
    /// Receive buffers.
    pub(super) buffers: u16,
    pub(super) buffer_bytes: usize,
    /// Bytes for control messages, in those receives that have any.
    pub(super) control_bytes: usize,
}

impl Ring {
    /// Makes a ring with a file table of `files` places.
    pub(super) fn new(files: u32, layout: Layout) -> io::Result<Self> {
        let ring = IoUring::builder()
            .setup_cqsize(COMPLETIONS)
            .setup_single_issuer()
            .setup_defer_taskrun()
            .setup_taskrun_flag()
            .setup_submit_all()
            .setup_clamp()
            .build(SUBMISSIONS)?;
        ring.submitter().register_files_sparse(files)?;
        let buffers = Buffers::register(&ring, layout.buffers, layout.buffer_bytes)?;
        let mut message = Box::new(receive_stamps::empty_message());
        message.msg_controllen = layout.control_bytes as _;
        let mut made = Self {
            ring,
            buffers,
            eventfd: None,
            message,
            queued: 0,
            gather_us: 0,
            taken: 0,
            settled: 0,
            stamped_sends: Vec::new(),
            send_calls: Vec::new(),
            #[cfg(test)]
            refusals: 0,
        };
        // A filter of system calls may let a ring be made, and not be entered.
        made.enter(0, None, ENTER_GETEVENTS)?;
        Ok(made)
    }

    /// Has nothing in the queue taken the next `count` times that it is submitted, as by a kernel
    /// that lacks memory.
    #[cfg(test)]
    pub(super) fn refuse(&mut self, count: u32) {
        self.refusals = count;
    }

    /// Puts `socket` into the file table at `place`.
    pub(super) fn set_file(&mut self, place: u32, socket: i32) -> io::Result<()> {
        self.ring
            .submitter()
            .register_files_update(place, &[socket])
            .map(drop)
    }

    /// Empties `place` of the file table: the socket closes once nothing is in flight on it.
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

    /// Queues one receive, into one of the ring's buffers.
    pub(super) fn receive_once(&mut self, place: u32, user_data: u64) -> io::Result<()> {
        let entry = opcode::Recv::new(Fixed(place), std::ptr::null_mut(), 0)
            .buf_group(GROUP)
            .build()
            .flags(Flags::BUFFER_SELECT)
            .user_data(user_data);
        // SAFETY: the buffers belong to the ring and are dropped after it.
        unsafe { self.push(&entry) }
    }

    /// Queues one receive on a TCP socket whose bytes, `bytes` of them at most, the kernel throws
    /// away (tcp(7), MSG_TRUNC).
    pub(super) fn discard(&mut self, place: u32, bytes: u32, user_data: u64) -> io::Result<()> {
        let entry = opcode::Recv::new(Fixed(place), std::ptr::null_mut(), bytes)
            .flags(libc::MSG_TRUNC)
            .build()
            .user_data(user_data);
        // SAFETY: with this flag a TCP socket writes nothing to the address, which is null.
        unsafe { self.push(&entry) }
    }

    /// As [`Ring::receive`], with control messages: the kernel puts a header and those
    /// before the bytes.
    pub(super) fn receive_messages(&mut self, place: u32, user_data: u64) -> io::Result<()> {
        let entry = opcode::RecvMsgMulti::new(Fixed(place), &raw const *self.message, GROUP)
            .build()
            .user_data(user_data);
        // SAFETY: the message and the buffers belong to the ring and are dropped after it.
        unsafe { self.push(&entry) }
    }

    /// Where a receive with control messages put the bytes in the first `length` ones of `buffer`,
    /// and what `read` reads of those messages.
    pub(super) fn message<R>(
        &self,
        buffer: u16,
        length: usize,
        read: impl FnOnce(&[u8]) -> R,
    ) -> Option<(Range<usize>, R)> {
        let filled = self.buffers.filled(buffer, length);
        let parts = RecvMsgOut::parse(filled, &self.message).ok()?;
        let end = filled.len();
        let bytes = end - parts.payload_data().len()..end;
        Some((bytes, read(parts.control_data())))
    }

    /// The number of what was queued last.
    pub(super) fn last_number(&self) -> u64 {
        self.taken + u64::from(self.queued)
    }

    /// Whether the kernel has taken the submission with this number: it is in the queue no more.
    pub(super) fn has_taken(&self, number: u64) -> bool {
        number <= self.taken
    }

    /// Whether the submission with this number has been taken, and its completion moved out if it
    /// failed at once.
    pub(super) fn is_settled(&self, number: u64) -> bool {
        number <= self.settled
    }

    /// Hands the queue over. What fails at once completes within the call: if nothing has
    /// completed, everything is settled.
    pub(super) fn submit_and_settle(&mut self) -> io::Result<()> {
        self.submit()?;
        if self.ring.completion().is_empty() && !self.ring.submission().cq_overflow() {
            self.settled = self.taken;
        }
        Ok(())
    }

    /// Notes that what was queued last is a send on stamped `slot`.
    pub(super) fn stamp_send(&mut self, slot: Slot) {
        let number = self.last_number();
        self.stamped_sends.push((slot, number));
    }

    /// Moves out the send calls of stamped slots, first to last.
    pub(super) fn take_send_calls(&mut self) -> std::vec::Drain<'_, (Slot, SendCall)> {
        self.send_calls.drain(..)
    }

    /// Queues the send of a message, which waits until the socket takes it.
    ///
    /// # Safety
    ///
    /// What it points to must stay where it is until the send's completion.
    pub(super) unsafe fn send_message(
        &mut self,
        place: u32,
        message: *const libc::msghdr,
        user_data: u64,
    ) -> io::Result<()> {
        let entry = opcode::SendMsg::new(Fixed(place), message)
            .flags(libc::MSG_NOSIGNAL as u32)
            .build()
            .user_data(user_data);
        // SAFETY: the message outlives the operation, by this function's own contract.
        unsafe { self.push(&entry) }
    }

    /// Queues the send of a message that never waits, and that completes only if the socket does
    /// not take it at once.
    ///
    /// # Safety
    ///
    /// What it points to must stay where it is until the submission [was taken](Self::has_taken).
    pub(super) unsafe fn send_message_silently(
        &mut self,
        place: u32,
        message: *const libc::msghdr,
        user_data: u64,
    ) -> io::Result<()> {
        let entry = opcode::SendMsg::new(Fixed(place), message)
            .flags((libc::MSG_NOSIGNAL | libc::MSG_DONTWAIT) as u32)
            .build()
            .flags(Flags::SKIP_SUCCESS)
            .user_data(user_data);
        // SAFETY: the message outlives the submission, by this function's own contract, and the
        // kernel does not come back to one that never waits.
        unsafe { self.push(&entry) }
    }

    /// Queues a send of all of `bytes`, which waits until the socket takes them.
    ///
    /// # Safety
    ///
    /// `bytes` must stay where they are until the send's completion.
    pub(super) unsafe fn send(
        &mut self,
        place: u32,
        bytes: &[u8],
        user_data: u64,
    ) -> io::Result<()> {
        let entry = opcode::Send::new(Fixed(place), bytes.as_ptr(), bytes.len() as u32)
            .flags(libc::MSG_NOSIGNAL | libc::MSG_WAITALL)
            .build()
            .user_data(user_data);
        // SAFETY: the bytes outlive the operation, by this function's own contract.
        unsafe { self.push(&entry) }
    }

    /// Queues a send that never waits, and that completes only if the socket does not take all of
    /// `bytes` at once: with their count, or with EAGAIN for none.
    ///
    /// # Safety
    ///
    /// `bytes` must stay where they are until the submission [was taken](Self::has_taken).
    pub(super) unsafe fn send_silently(
        &mut self,
        place: u32,
        bytes: &[u8],
        user_data: u64,
    ) -> io::Result<()> {
        // MSG_WAITALL makes a part of them a failure, and so gives it a completion.
        let entry = opcode::Send::new(Fixed(place), bytes.as_ptr(), bytes.len() as u32)
            .flags(libc::MSG_NOSIGNAL | libc::MSG_WAITALL | libc::MSG_DONTWAIT)
            .build()
            .flags(Flags::SKIP_SUCCESS)
            .user_data(user_data);
        // SAFETY: the bytes outlive the submission, by this function's own contract, and the kernel
        // does not come back to one that never waits.
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

    /// Queues that the socket at `place` sends nothing more (FIN).
    pub(super) fn finish(&mut self, place: u32, user_data: u64) -> io::Result<()> {
        let entry = opcode::Shutdown::new(Fixed(place), libc::SHUT_WR)
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
        if self.stamped_sends.is_empty() {
            return self.enter(0, None, 0);
        }
        let from_ns = clock::now_ns();
        self.enter(0, None, 0)?;
        let to_ns = clock::now_ns();
        let (sends, all_taken) = (&mut self.stamped_sends, self.taken);
        let is_taken = |&&(_, number): &&(Slot, u64)| number <= all_taken;
        let count = sends.iter().take_while(is_taken).count();
        let send_call = SendCall { from_ns, to_ns };
        let calls = sends.drain(..count).map(|(slot, _)| (slot, send_call));
        self.send_calls.extend(calls);
        Ok(())
    }

    /// Hands the queue over, lets the kernel do the work that it has put off, and waits for a
    /// completion, `timeout` at most.
    pub(super) fn submit_and_wait(&mut self, timeout: Option<Timespec>) -> io::Result<()> {
        self.submit_stamped()?;
        let want = if self.gather_us > 0 { GATHERED } else { 1 };
        self.enter(want, timeout, ENTER_GETEVENTS)
    }

    /// Lets waits go on for `gather_us` from their start although something has completed, where
    /// the kernel can (6.12).
    pub(super) fn set_gathering(&mut self, gather_us: u32) {
        let is_possible = self.ring.params().is_feature_min_timeout();
        self.gather_us = if is_possible { gather_us } else { 0 };
    }

    /// Hands the queue over and lets the kernel do the work that it has put off, without waiting.
    /// Where there is neither, this is no system call.
    pub(super) fn submit_and_run(&mut self) -> io::Result<()> {
        self.submit_stamped()?;
        if self.has_something_to_do() {
            self.enter(0, None, ENTER_GETEVENTS)?;
        }
        if self.ring.completion().is_empty() && !self.ring.submission().cq_overflow() {
            self.settled = self.taken;
        }
        Ok(())
    }

    /// Hands the queue over by itself if there are stamped sends in it: a call that also waits, or
    /// that does other work, would not show when it took them.
    fn submit_stamped(&mut self) -> io::Result<()> {
        if self.stamped_sends.is_empty() {
            Ok(())
        } else {
            self.submit()
        }
    }

    /// Moves what has completed to `into`.
    pub(super) fn drain(&mut self, into: &mut Vec<cqueue::Entry>) {
        into.extend(self.ring.completion());
        // What the queue had no room for comes with the next wait.
        if !self.ring.submission().cq_overflow() {
            self.settled = self.taken;
        }
    }

    /// Whether there is anything that `drain` would take.
    pub(super) fn has_completions(&mut self) -> bool {
        !self.ring.completion().is_empty()
    }

    /// Whether something is queued, or the kernel has put off work for this ring.
    pub(super) fn has_something_to_do(&mut self) -> bool {
        self.queued > 0 || self.has_work()
    }

    fn has_work(&mut self) -> bool {
        let queue = self.ring.submission();
        queue.taskrun() || queue.cq_overflow()
    }

    /// Has the kernel signal work for this ring from now on; gives the descriptor to be polled.
    pub(super) fn signal(&mut self) -> io::Result<RawFd> {
        let eventfd = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        let raw = eventfd.as_raw_fd();
        self.ring.submitter().register_eventfd(raw)?;
        self.eventfd = Some(eventfd);
        Ok(raw)
    }

    /// What is signalled when the kernel has work for this ring.
    pub(super) fn eventfd(&self) -> Option<RawFd> {
        self.eventfd.as_ref().map(AsRawFd::as_raw_fd)
    }

    /// Queues that each signal of `eventfd` completes in this ring, again and again.
    pub(super) fn poll(&mut self, eventfd: RawFd, user_data: u64) -> io::Result<()> {
        let entry = opcode::PollAdd::new(Fd(eventfd), libc::POLLIN as u32)
            .multi(true)
            .build()
            .user_data(user_data);
        // SAFETY: no memory of ours is involved.
        unsafe { self.push(&entry) }
    }

    /// How many entries are submitted now.
    fn next_submissions(&mut self) -> u32 {
        #[cfg(test)]
        if self.queued > 0 && self.refusals > 0 {
            self.refusals -= 1;
            return 0;
        }
        self.queued
    }

    fn enter(&mut self, want: u32, timeout: Option<Timespec>, flags: u32) -> io::Result<()> {
        let queued = self.next_submissions();
        // What completes within the call is seen after it: it need not wake anybody.
        if self.eventfd.is_some() {
            self.ring.completion().disable_eventfd();
        }
        let submitter = self.ring.submitter();
        // SAFETY: the flags match the argument that is passed, and what the queued entries point
        // to outlives them by the contract of `push`.
        let outcome = unsafe {
            match timeout {
                Some(timeout) => {
                    let arguments = SubmitArgs::new()
                        .timespec(&timeout)
                        .min_wait_usec(self.gather_us);
                    submitter.enter(queued, want, flags | ENTER_EXT_ARG, Some(&arguments))
                }
                None => submitter.enter::<libc::sigset_t>(queued, want, flags, None),
            }
        };
        if self.eventfd.is_some() {
            self.ring.completion().enable_eventfd();
            // Work that came meanwhile was not signalled: whoever calls looks for its flag, after
            // this.
            atomic::fence(Ordering::SeqCst);
        }
        match outcome {
            Ok(taken) => {
                self.queued = self.queued.saturating_sub(taken as u32);
                self.taken += taken as u64;
                Ok(())
            }
            Err(error) => match error.raw_os_error() {
                // The time is over, a signal came, the kernel lacks memory for now, or completions
                // must be taken first. What it has not taken stays in the queue.
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

/// Numbers of rings, a bit each.
#[derive(Debug, Default)]
pub(super) struct RingSet {
    words: Vec<u64>,
}

impl RingSet {
    pub(super) fn insert(&mut self, ring: usize) {
        let word = ring / 64;
        if self.words.len() <= word {
            self.words.resize(word + 1, 0);
        }
        self.words[word] |= 1 << (ring % 64);
    }

    pub(super) fn remove(&mut self, ring: usize) {
        if let Some(word) = self.words.get_mut(ring / 64) {
            *word &= !(1 << (ring % 64));
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.words.iter().all(|&word| word == 0)
    }

    /// The lowest number from `ring` on.
    pub(super) fn first_from(&self, ring: usize) -> Option<usize> {
        let first = ring / 64;
        let mut mask = !0 << (ring % 64);
        for (index, &word) in self.words.iter().enumerate().skip(first) {
            let rest = word & mask;
            if rest != 0 {
                return Some(index * 64 + rest.trailing_zeros() as usize);
            }
            mask = !0;
        }
        None
    }
}

/// The group id; each ring has one group.
pub(super) const GROUP: u16 = 0;
/// Receive buffers shared with the kernel by one ring.
pub(super) struct Buffers {
    memory: NonNull<u8>,
    bytes: usize,
    count: u16,
    /// Bytes of one buffer. What is small touches only the first page of it.
    buffer_bytes: usize,
    tail: u16,
}

impl Buffers {
    /// Maps `count` buffers (a power of two, at most 32,768) of `buffer_bytes` each and registers
    /// them with `ring`.
    pub(super) fn register(ring: &IoUring, count: u16, buffer_bytes: usize) -> io::Result<Self> {
        let entries_bytes = usize::from(count) * size_of::<BufRingEntry>();
        let bytes = entries_bytes.next_multiple_of(4096) + usize::from(count) * buffer_bytes;
        // SAFETY: a new private anonymous mapping overlaps nothing.
        let memory = unsafe {
            mmap_anonymous(
                std::ptr::null_mut(),
                bytes,
                ProtFlags::READ | ProtFlags::WRITE,
                MapFlags::PRIVATE,
            )
        }?;
        let Some(memory) = NonNull::new(memory.cast::<u8>()) else {
            return Err(io::ErrorKind::OutOfMemory.into());
        };
        let mut buffers = Self {
            memory,
            bytes,
            count,
            buffer_bytes,
            tail: 0,
        };
        // SAFETY: the entries lie at the page-aligned start of the mapping, which lives as long as
        // `buffers`; `Ring` drops the ring before its buffers.
        unsafe {
            ring.submitter()
                .register_buf_ring_with_flags(memory.as_ptr() as u64, count, GROUP, 0)
        }?;
        for id in 0..count {
            buffers.put_back(id);
        }
        Ok(buffers)
    }

    /// The first `length` bytes of buffer `id`, which the kernel filled and gave to us.
    pub(super) fn filled(&self, id: u16, length: usize) -> &[u8] {
        let length = length.min(self.buffer_bytes);
        // SAFETY: `address` lies in the mapping with `buffer_bytes` after it; the buffer is ours
        // until `put_back`, which needs `&mut self`, and the kernel initialised `length` bytes
        // (the mapping itself was zeroed).
        unsafe { std::slice::from_raw_parts(self.address(id), length) }
    }

    /// Gives buffer `id` to the kernel again.
    pub(super) fn put_back(&mut self, id: u16) {
        let entries = self.memory.as_ptr().cast::<BufRingEntry>();
        let address = self.address(id) as u64;
        // SAFETY: `tail & (count - 1)` is below `count`, so the entry lies in the mapping; the
        // kernel reads entries only up to the published tail, and this one is beyond it.
        let entry = unsafe { &mut *entries.add(usize::from(self.tail & (self.count - 1))) };
        entry.set_addr(address);
        entry.set_len(self.buffer_bytes as u32);
        entry.set_bid(id);
        self.tail = self.tail.wrapping_add(1);
        // SAFETY: the tail overlays the reserved field of the first entry, is aligned for u16, and
        // is only ever accessed atomically.
        let tail = unsafe { &*BufRingEntry::tail(entries).cast::<AtomicU16>() };
        tail.store(self.tail, Ordering::Release);
    }

    fn address(&self, id: u16) -> *mut u8 {
        debug_assert!(id < self.count);
        let entries_bytes = usize::from(self.count) * size_of::<BufRingEntry>();
        let offset =
            entries_bytes.next_multiple_of(4096) + usize::from(id % self.count) * self.buffer_bytes;
        // SAFETY: `id % count` keeps the offset inside the mapping.
        unsafe { self.memory.as_ptr().add(offset) }
    }
}

impl Drop for Buffers {
    fn drop(&mut self) {
        // SAFETY: the mapping was made in `register` with this length, and the ring that used it
        // has been dropped.
        let outcome = unsafe { munmap(self.memory.as_ptr().cast(), self.bytes) };
        debug_assert!(outcome.is_ok());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(set: &RingSet) -> Vec<usize> {
        let next = |ring: &usize| set.first_from(ring + 1);
        std::iter::successors(set.first_from(0), next).collect()
    }

    #[test]
    fn numbers_come_in_order() {
        let mut set = RingSet::default();
        assert!(set.is_empty());
        assert_eq!(set.first_from(0), None);
        set.remove(200);
        for ring in [130, 64, 0, 63, 5, 64] {
            set.insert(ring);
        }
        assert_eq!(all(&set), [0, 5, 63, 64, 130]);
        assert_eq!(set.first_from(131), None);
        assert_eq!(set.first_from(500), None);
        set.remove(63);
        set.remove(130);
        assert_eq!(all(&set), [0, 5, 64]);
        for ring in all(&set) {
            set.remove(ring);
        }
        assert!(set.is_empty());
    }
}
