//! The provided buffer ring: receive buffers that the kernel takes from and we give back to.

use std::io;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU16, Ordering};

use io_uring::{IoUring, types::BufRingEntry};
use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous, munmap};

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
