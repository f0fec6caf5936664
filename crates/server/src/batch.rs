//! Answers gathered for one send.

use crate::answer::After;
use crate::http1::reply::NULL_ANSWER;
use crate::pattern;

/// Null answers of HTTP/1.1 that one send can hold.
pub(crate) const NULL_ANSWERS_MAX: u32 = 256;
/// Answers are gathered up to about this many bytes before they are sent.
const BATCH_BYTES_MAX: usize = 64 * 1024;

/// The null answer of HTTP/1.1 as often as one send can hold.
pub(crate) fn null_payload() -> Vec<u8> {
    NULL_ANSWER.repeat(NULL_ANSWERS_MAX as usize)
}

/// Answers gathered for one send: either only null answers of HTTP/1.1, which need no copy, or
/// bytes.
#[derive(Debug)]
pub(crate) struct Batch {
    nulls: u32,
    bytes: Vec<u8>,
    /// How many of the bytes are counted as sent already, or are not to be counted.
    settled: u64,
    /// Whether nothing more is to be added.
    sealed: bool,
    /// Bytes with which the batch is full.
    bytes_max: usize,
    /// Whether what is sent from a payload takes memory as well, since it is encrypted.
    copies_payloads: bool,
}

impl Default for Batch {
    fn default() -> Self {
        Self::new(false)
    }
}

/// What to do once what was written into a batch is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// Go on.
    GoOn,
    /// Go on: what was written is an answer that was to be sent at this instant.
    Answer { due_ns: u64 },
    /// Nothing was written: send this part of the pattern payload, then go on.
    Pattern { start: u32, end: u32 },
    /// Wait for more input.
    Input,
    /// Come back at this instant.
    Wait { until_ns: u64 },
    /// What was in hand is complete.
    End(After),
    /// The room for a message is used up.
    Overflow,
}

/// What a batch holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Content {
    Nothing,
    /// So many null answers.
    Nulls(u32),
    Bytes,
}

impl Batch {
    /// An empty one. With `copies_payloads`, what is sent from a payload takes memory as well.
    pub(crate) fn new(copies_payloads: bool) -> Self {
        Self {
            nulls: 0,
            bytes: Vec::new(),
            settled: 0,
            sealed: false,
            bytes_max: BATCH_BYTES_MAX,
            copies_payloads,
        }
    }

    /// Adds a null answer of HTTP/1.1.
    pub(crate) fn push_null(&mut self) {
        if self.bytes.is_empty() {
            self.nulls += 1;
        } else {
            self.bytes.extend_from_slice(NULL_ANSWER);
        }
    }

    /// The bytes, to append to.
    pub(crate) fn bytes(&mut self) -> &mut Vec<u8> {
        for _ in 0..std::mem::take(&mut self.nulls) {
            self.bytes.extend_from_slice(NULL_ANSWER);
        }
        &mut self.bytes
    }

    /// Lets nothing more in: what is in it is not to wait for the answers behind it.
    pub(crate) fn seal(&mut self) {
        self.sealed = true;
    }

    /// Whether the batch should be sent before more is added.
    pub(crate) fn is_full(&self) -> bool {
        self.sealed || self.nulls >= NULL_ANSWERS_MAX || self.bytes.len() >= self.bytes_max
    }

    /// Has it be full so early that it fits into `grant_bytes`, with what may come beyond that: a
    /// frame that begins before it is full. Until its bytes are taken out, or it is cleared.
    pub(crate) fn fit_into(&mut self, grant_bytes: usize) {
        self.bytes_max = (grant_bytes / 8 * 3).clamp(1, BATCH_BYTES_MAX);
    }

    /// Bytes of a body that may be added at once.
    pub(crate) fn piece_bytes_max(&self) -> usize {
        self.bytes_max
    }

    /// Bytes of the pattern that may be sent at once from its payload.
    pub(crate) fn pattern_bytes_max(&self) -> u64 {
        if self.copies_payloads {
            self.bytes_max as u64
        } else {
            pattern::PIECE_BYTES_MAX
        }
    }

    /// Gives back memory that it does not need, beyond so many bytes.
    pub(crate) fn trim(&mut self, bytes: usize) {
        self.bytes.shrink_to(bytes);
    }

    /// Bytes in it.
    pub(crate) fn length(&self) -> usize {
        self.nulls as usize * NULL_ANSWER.len() + self.bytes.len()
    }

    /// Bytes of memory that it has.
    pub(crate) fn capacity(&self) -> usize {
        self.bytes.capacity()
    }

    pub(crate) fn content(&self) -> Content {
        match (self.nulls, self.bytes.is_empty()) {
            (0, true) => Content::Nothing,
            (nulls, true) => Content::Nulls(nulls),
            (_, false) => Content::Bytes,
        }
    }

    /// Bytes that still have to be counted as sent; from now on they are.
    pub(crate) fn settle(&mut self) -> u64 {
        let length = self.length() as u64;
        length - std::mem::replace(&mut self.settled, length)
    }

    /// Takes the bytes out and leaves the batch empty, with `empty` to fill next.
    pub(crate) fn take_bytes(&mut self, empty: Vec<u8>) -> Vec<u8> {
        let bytes = std::mem::replace(&mut self.bytes, empty);
        self.clear();
        bytes
    }

    /// Takes in what another batch holds, which is left without memory.
    pub(crate) fn absorb(&mut self, other: &mut Self) {
        let mut other = std::mem::replace(other, Self::new(other.copies_payloads));
        let settled = other.settled;
        self.bytes().append(other.bytes());
        self.settled += settled;
        self.sealed |= other.sealed;
    }

    /// Leaves the batch empty.
    pub(crate) fn clear(&mut self) {
        self.nulls = 0;
        self.settled = 0;
        self.sealed = false;
        self.bytes_max = BATCH_BYTES_MAX;
        self.bytes.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_batch_is_as_large_as_there_is_room_for() {
        for (grant_bytes, full_bytes) in [(usize::MAX, BATCH_BYTES_MAX), (8_000, 3_000), (0, 1)] {
            let mut batch = Batch::default();
            batch.fit_into(grant_bytes);
            while !batch.is_full() {
                batch.bytes().push(b'x');
            }
            assert_eq!(batch.length(), full_bytes);
            assert!(batch.capacity() >= full_bytes);
            batch.clear();
            batch.bytes().resize(BATCH_BYTES_MAX - 1, b'x');
            assert!(!batch.is_full());
        }
    }

    #[test]
    fn a_batch_keeps_order_and_counts_each_byte_once() {
        let mut batch = Batch::default();
        assert_eq!(batch.content(), Content::Nothing);
        batch.push_null();
        batch.push_null();
        assert_eq!(batch.content(), Content::Nulls(2));
        assert_eq!(batch.settle(), 2 * NULL_ANSWER.len() as u64);
        batch.bytes().extend_from_slice(b"x");
        batch.push_null();
        assert_eq!(batch.content(), Content::Bytes);
        assert_eq!(batch.settle(), 1 + NULL_ANSWER.len() as u64);
        let bytes = batch.take_bytes(Vec::new());
        assert_eq!(
            bytes,
            [NULL_ANSWER, NULL_ANSWER, b"x", NULL_ANSWER].concat()
        );
        assert_eq!((batch.content(), batch.settle()), (Content::Nothing, 0));
        batch.push_null();
        batch.seal();
        assert!(batch.is_full());
        batch.clear();
        assert!(!batch.is_full());
        batch.bytes().push(b'x');
        batch.seal();
        batch.take_bytes(Vec::new());
        assert!(!batch.is_full());
        // Another one, of whose bytes one is counted already.
        let mut other = Batch::default();
        other.push_null();
        assert_eq!(other.settle(), NULL_ANSWER.len() as u64);
        other.bytes().push(b'y');
        other.seal();
        batch.bytes().push(b'x');
        batch.absorb(&mut other);
        assert_eq!((batch.settle(), batch.is_full()), (2, true));
        assert_eq!(other.content(), Content::Nothing);
        assert_eq!(
            batch.take_bytes(Vec::new()),
            [b"x", NULL_ANSWER, b"y"].concat()
        );
    }
}
