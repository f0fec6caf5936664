//! Answers gathered for one send, and the memory that the connections of a worker may take
//! together.

use std::cell::Cell;
use std::rc::Rc;

use crate::answer::NULL_ANSWER;
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

/// What a batch holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BatchContent {
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

    pub(crate) fn content(&self) -> BatchContent {
        match (self.nulls, self.bytes.is_empty()) {
            (0, true) => BatchContent::Nothing,
            (nulls, true) => BatchContent::Nulls(nulls),
            (_, false) => BatchContent::Bytes,
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

/// A buffer may have this part of what is left of the half that is shared.
const SHARES: usize = 16;
/// What is granted in any case of what is left, a share of it at most.
const GRANT_BYTES_MIN: usize = 4 * 1024;
/// Buffers of one connection that are for input: what waits, and a message of WebSocket.
pub(crate) const INPUT_BUFFERS: usize = 2;
/// Buffers of one connection that are for output: what is being sent, and in HTTP/2 what follows it
/// and what is known of its streams.
pub(crate) const OUTPUT_BUFFERS: usize = 3;

/// Room for buffers of one kind, of one worker. Half of it is shared evenly, so that the head of
/// a request finds room whatever the others do; the other half is for those that have more.
#[derive(Debug)]
pub(crate) struct Room {
    /// What each buffer may always have.
    own_bytes: usize,
    /// Most bytes that the connections with more than their own room may have together.
    shared_bytes_max: usize,
    /// Bytes that these connections have.
    shared_bytes: Cell<usize>,
}

impl Room {
    /// Room for as many bytes, and as many connections with so many buffers each.
    pub(crate) fn new(bytes_max: usize, connections_max: u32, buffers: usize) -> Rc<Self> {
        let buffers = buffers.saturating_mul(connections_max.max(1) as usize);
        Rc::new(Self {
            own_bytes: bytes_max / 2 / buffers,
            shared_bytes_max: bytes_max / 2,
            shared_bytes: Cell::new(0),
        })
    }

    /// What buffers have that have more than their own part.
    #[cfg(test)]
    pub(crate) fn shared_bytes(&self) -> usize {
        self.shared_bytes.get()
    }

    /// What one buffer more is to be made for, where it may be of any length. Such buffers leave
    /// half of what is shared to those that are as long as they are, as far as they can.
    pub(crate) fn grant_bytes(&self) -> usize {
        let left_of = |bytes: usize| bytes.saturating_sub(self.shared_bytes.get()) / SHARES;
        let of_half = left_of(self.shared_bytes_max / 2);
        let of_all = left_of(self.shared_bytes_max);
        self.own_bytes.max(of_half).max(of_all.min(GRANT_BYTES_MIN))
    }

    /// What a buffer of this size takes of what is shared.
    fn shared_part(&self, bytes: usize) -> usize {
        if bytes > self.own_bytes { bytes } else { 0 }
    }
}

/// What one buffer holds of a room; given back when it is dropped.
#[derive(Debug, Default)]
pub(crate) struct Hold {
    room: Option<Rc<Room>>,
    shared_bytes: usize,
}

impl Hold {
    /// Holds `bytes` instead of what was held; false, and no change, when that is more than there
    /// is for one buffer.
    pub(crate) fn set(&mut self, bytes: usize, room: &Rc<Room>) -> bool {
        let wanted_bytes = room.shared_part(bytes);
        let others_bytes = room.shared_bytes.get() - self.shared_bytes;
        let free_bytes = room.shared_bytes_max.saturating_sub(others_bytes);
        if wanted_bytes > self.shared_bytes && wanted_bytes > free_bytes / SHARES {
            return false;
        }
        room.shared_bytes.set(others_bytes + wanted_bytes);
        self.shared_bytes = wanted_bytes;
        self.room.get_or_insert_with(|| Rc::clone(room));
        true
    }

    /// Notes that the buffer has become as large as this.
    pub(crate) fn correct(&mut self, bytes: usize) {
        if let Some(room) = &self.room {
            let part_bytes = room.shared_part(bytes);
            let before_bytes = std::mem::replace(&mut self.shared_bytes, part_bytes);
            let others_bytes = room.shared_bytes.get() - before_bytes;
            room.shared_bytes.set(others_bytes + part_bytes);
        }
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        self.correct(0);
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
        assert_eq!(batch.content(), BatchContent::Nothing);
        batch.push_null();
        batch.push_null();
        assert_eq!(batch.content(), BatchContent::Nulls(2));
        assert_eq!(batch.settle(), 2 * NULL_ANSWER.len() as u64);
        batch.bytes().extend_from_slice(b"x");
        batch.push_null();
        assert_eq!(batch.content(), BatchContent::Bytes);
        assert_eq!(batch.settle(), 1 + NULL_ANSWER.len() as u64);
        let bytes = batch.take_bytes(Vec::new());
        assert_eq!(
            bytes,
            [NULL_ANSWER, NULL_ANSWER, b"x", NULL_ANSWER].concat()
        );
        assert_eq!(
            (batch.content(), batch.settle()),
            (BatchContent::Nothing, 0)
        );
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
        assert_eq!(other.content(), BatchContent::Nothing);
        assert_eq!(
            batch.take_bytes(Vec::new()),
            [b"x", NULL_ANSWER, b"y"].concat()
        );
    }

    #[test]
    fn what_is_free_is_shared_and_given_back() {
        // 100 bytes for each of 160 buffers, 16,000 for those that have more.
        let room = Room::new(32_000, 80, INPUT_BUFFERS);
        let mut first = Hold::default();
        assert!(!first.set(1_001, &room));
        assert!(first.set(1_000, &room));
        let mut second = Hold::default();
        // A share of the rest.
        assert!(!second.set(940, &room));
        assert_eq!(room.grant_bytes(), 937);
        assert!(second.set(937, &room));
        // What is held may stay, or become less, but not grow.
        assert!(!first.set(1_001, &room));
        assert_eq!(room.shared_bytes(), 1_937);
        assert!(first.set(100, &room));
        assert_eq!(room.shared_bytes(), 937);
        first.correct(128);
        assert_eq!(room.shared_bytes(), 1_065);
        drop(second);
        drop(first);
        assert_eq!(room.shared_bytes(), 0);
    }

    #[test]
    fn what_can_be_short_leaves_room_to_what_cannot() {
        let room = Room::new(64 << 20, 100_000, OUTPUT_BUFFERS);
        let hoard: Vec<Hold> = std::iter::repeat_with(|| {
            let mut hold = Hold::default();
            assert!(hold.set(room.grant_bytes(), &room));
            hold
        })
        .take(3_000)
        .collect();
        assert_eq!(room.grant_bytes(), GRANT_BYTES_MIN);
        assert!(Hold::default().set(64 * 1024, &room));
        drop(hoard);
        assert_eq!(room.shared_bytes(), 0);
    }

    #[test]
    fn hoarders_leave_everybody_a_part() {
        let room = Room::new(1 << 20, 1_000, INPUT_BUFFERS);
        let mut hoard = Vec::new();
        for _ in 0..10_000 {
            let mut hold = Hold::default();
            let mut bytes = 1 << 16;
            while !hold.set(bytes, &room) {
                bytes -= bytes.div_ceil(8);
            }
            assert!(bytes >= 200, "{bytes}");
            hoard.push(hold);
            assert!(room.shared_bytes() <= 1 << 19);
        }
        hoard.clear();
        assert_eq!(room.shared_bytes(), 0);
    }
}
