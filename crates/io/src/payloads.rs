//! What backends have in common: payloads held for their whole life, and buffers to reuse.

use std::sync::Arc;

use crate::backend::{Outgoing, PayloadId};
use crate::transport::Transport;

/// Buffers kept for reuse; more are given back to the allocator.
const SPARE_BUFFERS_MAX: usize = 256;
/// A buffer that grew beyond this is not kept.
const SPARE_BUFFER_BYTES_MAX: usize = 64 * 1024;

/// Payloads and spare buffers of one backend.
#[derive(Debug, Default)]
pub struct Payloads {
    shared: Vec<Arc<[u8]>>,
    spare: Vec<Vec<u8>>,
}

impl Payloads {
    /// Keeps `bytes` for the life of the backend. Their address never changes.
    pub fn add(&mut self, bytes: Arc<[u8]>) -> PayloadId {
        self.shared.push(bytes);
        PayloadId(self.shared.len() as u32 - 1)
    }

    /// The bytes of `outgoing`.
    #[inline]
    pub fn bytes<'a>(&'a self, outgoing: &'a Outgoing) -> &'a [u8] {
        match outgoing {
            Outgoing::Shared {
                payload,
                start,
                end,
            } => &self.shared[payload.0 as usize][*start as usize..*end as usize],
            Outgoing::Owned(bytes) => bytes,
        }
    }

    /// An empty buffer.
    pub fn take_buffer(&mut self) -> Vec<u8> {
        self.spare.pop().unwrap_or_default()
    }

    /// Gives back what was sent.
    pub fn recycle<T: Transport>(&mut self, outgoing: T::Outgoing) {
        if let Some(mut buffer) = T::buffer_of(outgoing)
            && self.spare.len() < SPARE_BUFFERS_MAX
            && buffer.capacity() <= SPARE_BUFFER_BYTES_MAX
        {
            buffer.clear();
            self.spare.push(buffer);
        }
    }
}
