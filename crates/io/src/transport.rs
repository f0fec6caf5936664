//! What a slot is: a byte stream or a datagram socket. It is a type of a backend and of a protocol,
//! so that nothing asks for it on the path of a request.

use std::fmt::Debug;
use std::num::NonZeroU16;

pub use brunt_proto::quic::Ecn;

/// What all slots of a backend are.
pub trait Transport: sealed::Sealed + Copy + Debug + Default + Send + Sync + 'static {
    /// What is sent at once.
    type Outgoing: Debug;
    /// What came at once.
    type Received<'a>: Received;

    /// The buffer in what was sent, for reuse.
    fn buffer_of(outgoing: Self::Outgoing) -> Option<Vec<u8>>;
}

/// Byte streams: TCP or Unix sockets, in clear text or over TLS.
#[derive(Clone, Copy, Debug, Default)]
pub struct Stream;

/// Connected UDP sockets: what is sent is lost, repeated or overtaken without a word.
#[derive(Clone, Copy, Debug, Default)]
pub struct Datagram;

impl Transport for Datagram {
    type Outgoing = OutgoingDatagrams;
    type Received<'a> = ReceivedDatagrams<'a>;

    fn buffer_of(outgoing: OutgoingDatagrams) -> Option<Vec<u8>> {
        Some(outgoing.bytes)
    }
}

/// What came on a slot at once, of which a part may be taken.
pub trait Received: Copy + Debug {
    /// Bytes of it.
    fn byte_count(self) -> usize;

    /// What is left of it without its first `taken` bytes, which are whole datagrams where it
    /// consists of datagrams.
    #[must_use]
    fn after(self, taken: usize) -> Self;
}

impl Received for &[u8] {
    #[inline]
    fn byte_count(self) -> usize {
        self.len()
    }

    #[inline]
    fn after(self, taken: usize) -> Self {
        &self[taken..]
    }
}

/// Datagrams of one slot, sent in this order.
#[derive(Debug, PartialEq, Eq)]
pub struct OutgoingDatagrams {
    /// One behind the other; at least one byte.
    pub bytes: Vec<u8>,
    /// Bytes of each; of the last one what is left.
    pub segment_bytes: NonZeroU16,
    /// The mark of all; absent for none.
    pub ecn: Option<Ecn>,
}

/// Datagrams that came on one slot, in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReceivedDatagrams<'a> {
    /// One behind the other.
    pub bytes: &'a [u8],
    /// Bytes of each; of the last one what is left.
    pub segment_bytes: NonZeroU16,
    /// The mark of all; absent for none.
    pub ecn: Option<Ecn>,
    /// Datagrams that found the socket's buffer full since it was made, before these came.
    pub dropped: u32,
}

impl<'a> ReceivedDatagrams<'a> {
    /// None.
    pub const NONE: Self = Self {
        bytes: &[],
        segment_bytes: NonZeroU16::MIN,
        ecn: None,
        dropped: 0,
    };

    /// Each by itself.
    pub fn segments(self) -> std::slice::Chunks<'a, u8> {
        self.bytes.chunks(self.segment_bytes.get().into())
    }
}

impl Received for ReceivedDatagrams<'_> {
    #[inline]
    fn byte_count(self) -> usize {
        self.bytes.len()
    }

    #[inline]
    fn after(self, taken: usize) -> Self {
        Self {
            bytes: &self.bytes[taken..],
            ..self
        }
    }
}

mod sealed {
    /// A backend gives one or the other.
    pub trait Sealed {}

    impl Sealed for super::Stream {}
    impl Sealed for super::Datagram {}
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn datagrams_keep_their_borders_when_some_are_taken() {
        let received = ReceivedDatagrams {
            bytes: b"aaabbbcc",
            segment_bytes: NonZeroU16::new(3).expect("not 0"),
            ..ReceivedDatagrams::NONE
        };
        let all: Vec<_> = received.segments().collect();
        assert_eq!(all, [b"aaa".as_slice(), b"bbb", b"cc"]);
        let rest: Vec<_> = received.after(3).segments().collect();
        assert_eq!(rest, [b"bbb".as_slice(), b"cc"]);
        assert_eq!(received.after(8).byte_count(), 0);
    }
}
