//! Messages that were filled in, kept until their echoes come.

use std::collections::VecDeque;

/// Messages that were filled in and whose echoes are awaited, oldest first.
#[derive(Debug, Default)]
pub(super) struct Rendered {
    bytes: Vec<u8>,
    /// Where the oldest one begins.
    start: usize,
    lengths: VecDeque<usize>,
}

impl Rendered {
    /// One was written.
    pub(super) fn push(&mut self, message: &[u8]) {
        if self.start > self.bytes.len() / 2 {
            self.bytes.drain(..self.start);
            self.start = 0;
        }
        self.bytes.extend_from_slice(message);
        self.lengths.push_back(message.len());
    }

    /// The oldest one.
    pub(super) fn first(&self) -> &[u8] {
        let length = self.lengths.front().copied().unwrap_or(0);
        &self.bytes[self.start..self.start + length]
    }

    /// The oldest one is no more.
    pub(super) fn pop(&mut self) {
        self.start += self.lengths.pop_front().unwrap_or(0);
        if self.lengths.is_empty() {
            self.bytes.clear();
            self.start = 0;
        }
    }
}
