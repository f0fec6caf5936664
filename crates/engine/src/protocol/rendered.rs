//! Messages that were filled in, kept until their echoes come.

use std::collections::VecDeque;

/// Messages that were filled in and whose echoes are awaited, oldest first. A connection without
/// any takes a word for it.
#[derive(Debug, Default)]
pub(super) struct Rendered(Option<Box<Kept>>);

#[derive(Debug, Default)]
struct Kept {
    bytes: Vec<u8>,
    /// Where the oldest one begins.
    start: usize,
    lengths: VecDeque<usize>,
}

impl Rendered {
    /// Keeps a message that was written.
    pub(super) fn push(&mut self, message: &[u8]) {
        let kept = self.0.get_or_insert_default();
        if kept.start > kept.bytes.len() / 2 {
            kept.bytes.drain(..kept.start);
            kept.start = 0;
        }
        kept.bytes.extend_from_slice(message);
        kept.lengths.push_back(message.len());
    }

    /// The oldest one; empty where there is none.
    pub(super) fn first(&self) -> &[u8] {
        let Some(kept) = &self.0 else { return &[] };
        let length = kept.lengths.front().copied().unwrap_or(0);
        &kept.bytes[kept.start..kept.start + length]
    }

    /// The oldest one is no more.
    pub(super) fn pop(&mut self) {
        let Some(kept) = &mut self.0 else { return };
        kept.start += kept.lengths.pop_front().unwrap_or(0);
        if kept.lengths.is_empty() {
            kept.bytes.clear();
            kept.start = 0;
        }
    }
}
