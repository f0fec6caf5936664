//! The head that came last: servers send the same one over and over.

use super::head::Head;

/// Longer heads are not kept: copying them would cost more than it saves.
const BYTES_MAX: usize = 1_024;

/// The latest head and what it means; one per worker, with one value of [`Limits`](crate::Limits).
/// A reply that starts with the same bytes has the same head, which is not parsed again.
#[derive(Clone, Debug, Default)]
pub struct KnownHead {
    /// With the empty line that ends it; empty before there is one.
    bytes: Vec<u8>,
    /// What it means, as part of a reply to HEAD or of another one.
    meaning: Option<(Head, bool)>,
}

impl KnownHead {
    /// The head that `bytes` start with, if it is the latest one.
    #[inline]
    pub(super) fn find(&self, bytes: &[u8], head_request: bool) -> Option<Head> {
        let (head, of_head_request) = self.meaning?;
        (of_head_request == head_request && bytes.starts_with(&self.bytes)).then_some(head)
    }

    /// Keeps the head that `bytes` start with, of a final reply.
    pub(super) fn keep(&mut self, bytes: &[u8], head: Head, head_request: bool) {
        if head.len > BYTES_MAX {
            return;
        }
        self.bytes.clear();
        self.bytes.extend_from_slice(&bytes[..head.len]);
        self.meaning = Some((head, head_request));
    }
}
