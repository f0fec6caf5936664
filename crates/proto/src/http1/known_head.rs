//! The head that came last: servers send the same one over and over.

use super::head::Head;
use super::request_text::RequestKind;

/// Longer heads are not kept: copying them would cost more than it saves.
const BYTES_MAX: usize = 1_024;

/// The latest head and what it means; one per worker, with one value of [`Limits`](crate::Limits).
/// A reply that starts with the same bytes has the same head, which is not parsed again.
#[derive(Clone, Debug, Default)]
pub struct KnownHead {
    /// The bytes of the head, with the empty line that ends it; empty before there is one.
    bytes: Vec<u8>,
    /// What the head means, as part of a reply to this kind of request.
    meaning: Option<(Head, RequestKind)>,
}

impl KnownHead {
    /// The head that `bytes` start with, if it is the latest one.
    #[inline]
    pub(super) fn find(&self, bytes: &[u8], kind: RequestKind) -> Option<Head> {
        let (head, of_kind) = self.meaning?;
        (of_kind == kind && bytes.starts_with(&self.bytes)).then_some(head)
    }

    /// Keeps the head that `bytes` start with, of a final reply.
    pub(super) fn keep(&mut self, bytes: &[u8], head: Head, kind: RequestKind) {
        if head.len > BYTES_MAX {
            return;
        }
        self.bytes.clear();
        self.bytes.extend_from_slice(&bytes[..head.len]);
        self.meaning = Some((head, kind));
    }
}
