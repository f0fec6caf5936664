//! The constant bytes of a run, laid out once for all workers: of each request its copies, one
//! after the other, so that several are sent in one piece, and behind them the last one of a
//! connection.

use std::ops::Range;
use std::sync::{Arc, OnceLock};

use brunt_io::backend::PayloadId;

use super::{EncodeError, PayloadPart};

/// Most bytes of each request once: positions have 32 bits.
const BYTES_MAX: usize = 1 << 30;

/// Where the copies of a request lie.
#[derive(Clone, Copy, Debug)]
pub(super) struct Copies {
    start: u32,
    /// Bytes of one of them.
    pub(super) bytes: u32,
    pub(super) count: u32,
    /// Bytes of the last one on a connection, behind them; 0 where it is as the others.
    pub(super) last_bytes: u32,
}

impl Copies {
    /// The copy with this number.
    #[inline]
    pub(super) fn copy(&self, number: u32) -> Range<u32> {
        let start = self.start + number * self.bytes;
        start..start + self.bytes
    }

    /// The copy that `behind` others follow in one piece, as far as there are so many.
    #[inline]
    pub(super) fn before(&self, behind: u32) -> Range<u32> {
        self.copy((self.count - 1).saturating_sub(behind))
    }

    /// Hands over all of them: a request, and the last one on a connection.
    pub(super) fn put(&self, request: &[u8], last: &[u8], put: &mut dyn FnMut(&[u8])) {
        for _ in 0..self.count {
            put(request);
        }
        put(last);
    }

    /// The last one on a connection.
    #[inline]
    pub(super) fn last(&self) -> Range<u32> {
        let start = self.start + self.count * self.bytes;
        start..start + self.last_bytes
    }
}

/// The bytes, for which room is made first. They are written when the run is found to fit this
/// machine.
#[derive(Debug, Default)]
pub(super) struct Payload {
    /// Bytes of each request once.
    bytes: usize,
    /// Those of the further copies, which are there only since requests follow each other.
    pub(super) copies_bytes: usize,
    shared: OnceLock<Arc<[u8]>>,
}

impl Payload {
    /// Makes room for `count` copies of a request of `bytes` bytes, and for the last one.
    ///
    /// # Errors
    ///
    /// All requests have too many bytes.
    pub(super) fn add(
        &mut self,
        bytes: usize,
        count: u32,
        last_bytes: usize,
    ) -> Result<Copies, EncodeError> {
        let start = self.len() as u32;
        self.bytes += bytes + last_bytes;
        self.copies_bytes += bytes.saturating_mul(count as usize - 1);
        if self.bytes > BYTES_MAX {
            return Err(EncodeError::protocol(
                "the requests of the list have more than 1 GiB in all; split it",
            ));
        }
        Ok(Copies {
            start,
            bytes: bytes as u32,
            count,
            last_bytes: last_bytes as u32,
        })
    }

    /// All of its bytes.
    pub(super) fn len(&self) -> usize {
        self.bytes + self.copies_bytes
    }

    /// The bytes. `write` hands the requests over in their order, each with its copies, the first
    /// time.
    #[inline]
    pub(super) fn get(&self, write: impl FnOnce(&mut dyn FnMut(&[u8]))) -> &Arc<[u8]> {
        self.shared.get_or_init(|| {
            // It is large: there is never a second copy of it.
            let mut payload: Arc<[u8]> = (0..self.len()).map(|_| 0).collect();
            let mut rest = Arc::get_mut(&mut payload).unwrap_or_default();
            write(&mut |request| {
                let room = std::mem::take(&mut rest).split_at_mut_checked(request.len());
                if let Some((place, behind)) = room {
                    place.copy_from_slice(request);
                    rest = behind;
                }
            });
            payload
        })
    }
}

impl PayloadPart {
    /// What lies at `range` of a payload.
    #[inline]
    pub(crate) fn of(payload: PayloadId, range: Range<u32>) -> Self {
        Self {
            payload,
            start: range.start,
            end: range.end,
        }
    }
}
