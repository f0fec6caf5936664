//! What the server keeps of one connection: next to nothing while it is idle.

use crate::request::Reader;
use crate::stream::{After, Stream};

/// Input that may wait on one connection while a reply is under way.
pub(crate) const INPUT_BYTES_MAX: usize = 1 << 20;

/// One slot's connection.
#[derive(Debug, Default)]
pub(crate) struct Connection {
    /// Whether there is a connection in the slot.
    pub(crate) open: bool,
    /// Whether a send is under way.
    pub(crate) sending: bool,
    /// Whether the peer has closed its side.
    pub(crate) ended: bool,
    /// What to do when nothing is under way; other than `KeepOpen`, no input matters any more.
    pub(crate) after: After,
    /// Present while a request or a reply is incomplete.
    pub(crate) work: Option<Box<Work>>,
}

/// An incomplete request or reply.
#[derive(Debug, Default)]
pub(crate) struct Work {
    pub(crate) reader: Reader,
    pub(crate) stream: Option<Stream>,
    /// When the stream wants to go on.
    pub(crate) wake_ns: Option<u64>,
    /// When the answer that is sent next was due, if it had to wait for an instant.
    pub(crate) due_ns: Option<u64>,
    /// From when on a request in the input counts as noticed: the latest input, or the latest
    /// part of a reply before it, whichever came last.
    pub(crate) noticed_ns: u64,
    input: Vec<u8>,
    /// Bytes of `input` that are dealt with.
    taken: usize,
}

impl Work {
    /// Input that is not dealt with, and the reader to deal with it.
    pub(crate) fn parts(&mut self) -> (&mut Reader, &[u8]) {
        (&mut self.reader, &self.input[self.taken..])
    }

    /// Notes that `count` bytes of input are dealt with.
    pub(crate) fn take(&mut self, count: usize) {
        self.taken += count;
    }

    /// Keeps input that was noticed at `now_ns` for later; false when there would be too much of
    /// it.
    pub(crate) fn keep(&mut self, bytes: &[u8], now_ns: u64) -> bool {
        self.noticed_ns = now_ns;
        if self.taken > 0 {
            self.input.drain(..self.taken);
            self.taken = 0;
        }
        if self.input.len() + bytes.len() > INPUT_BYTES_MAX {
            return false;
        }
        self.input.extend_from_slice(bytes);
        true
    }

    /// Whether nothing is incomplete.
    pub(crate) fn is_done(&self) -> bool {
        self.stream.is_none() && self.taken == self.input.len() && self.reader.is_idle()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_idle_connection_is_small() {
        assert!(size_of::<Connection>() <= 16);
    }

    #[test]
    fn input_is_kept_in_order_and_bounded() {
        let mut work = Work::default();
        assert!(work.keep(b"abc", 7));
        work.take(2);
        assert!(work.keep(b"de", 9));
        assert_eq!(work.noticed_ns, 9);
        assert_eq!(work.parts().1, b"cde");
        assert!(!work.is_done());
        work.take(3);
        assert!(work.is_done());
        assert!(work.keep(&vec![0; INPUT_BYTES_MAX], 10));
        assert!(!work.keep(b"x", 11));
    }
}
