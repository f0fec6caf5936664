//! Frames (RFC 9114 section 7), types of unidirectional streams (section 6.2) and the
//! variable-length integers in them (RFC 9000 section 16), for both sides of a connection.

use super::qpack;

/// The highest variable-length integer.
pub const VARINT_MAX: u64 = (1 << 62) - 1;

/// Bytes of the shortest form of `number`, which is [`VARINT_MAX`] at most.
#[inline]
pub const fn varint_bytes(number: u64) -> usize {
    match number {
        0..0x40 => 1,
        0x40..0x4000 => 2,
        0x4000..0x4000_0000 => 4,
        _ => 8,
    }
}

/// Appends `number` in its shortest form. Of one above [`VARINT_MAX`] the low 62 bits are written.
#[inline]
pub fn put_varint(out: &mut Vec<u8>, number: u64) {
    match varint_bytes(number) {
        1 => out.push(number as u8),
        2 => out.extend_from_slice(&(0x4000 | number as u16).to_be_bytes()),
        4 => out.extend_from_slice(&(0x8000_0000 | number as u32).to_be_bytes()),
        _ => out.extend_from_slice(&(0xc000_0000_0000_0000 | number).to_be_bytes()),
    }
}

/// Takes a number off `rest`, in any form; `None`, and `rest` as it was, where it is not whole.
#[inline]
pub fn take_varint(rest: &mut &[u8]) -> Option<u64> {
    let (&first, mut tail) = rest.split_first()?;
    let mut number = u64::from(first & 0x3f);
    if first >= 0x40 {
        let (more, after) = tail.split_at_checked(bytes_after(first))?;
        for &byte in more {
            number = number << 8 | u64::from(byte);
        }
        tail = after;
    }
    *rest = tail;
    Some(number)
}

/// Bytes behind the first one.
#[inline]
const fn bytes_after(first: u8) -> usize {
    (1 << (first >> 6)) - 1
}

/// A number that may come in pieces.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Pieces {
    number: u64,
    /// Bytes to come; 0: nothing of a number came.
    missing_bytes: u8,
}

impl Pieces {
    /// Whether nothing of a number came.
    #[inline]
    pub(super) fn is_empty(self) -> bool {
        self.missing_bytes == 0
    }

    /// Takes a number off `rest`; `None` where all of `rest` was taken and more is to come.
    #[inline]
    pub(super) fn take(&mut self, rest: &mut &[u8]) -> Option<u64> {
        if self.is_empty()
            && let number @ Some(_) = take_varint(rest)
        {
            return number;
        }
        self.take_piece(rest)
    }

    #[cold]
    fn take_piece(&mut self, rest: &mut &[u8]) -> Option<u64> {
        while let Some((&byte, tail)) = rest.split_first() {
            *rest = tail;
            if self.missing_bytes == 0 {
                self.number = u64::from(byte & 0x3f);
                self.missing_bytes = bytes_after(byte) as u8;
            } else {
                self.number = self.number << 8 | u64::from(byte);
                self.missing_bytes -= 1;
            }
            if self.missing_bytes == 0 {
                return Some(self.number);
            }
        }
        None
    }
}

/// Which side of a connection reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    /// It sends requests. It allows no pushes.
    Client,
    /// It answers requests. It pushes nothing.
    Server,
}

numbered! {
    /// What a frame is.
    enum Kind(u64) {
        /// A part of a message's content.
        Data = 0x0,
        /// A field section: a head, an interim one, or trailers.
        Headers = 0x1,
        /// A push is not wanted.
        CancelPush = 0x3,
        /// How the sender uses the connection.
        Settings = 0x4,
        /// A request that the server makes up.
        PushPromise = 0x5,
        /// The sender ends the connection.
        GoAway = 0x7,
        /// How many pushes the client takes.
        MaxPushId = 0xd,
        else "A type that RFC 9114 does not define; to be passed over. Those of HTTP/2 may not \
              be sent.",
    }
}

impl Kind {
    /// A type of HTTP/2 that HTTP/3 has not (RFC 9114 section 7.2.8).
    pub(super) const fn is_of_http2(self) -> bool {
        matches!(self, Self::Other(0x2 | 0x6 | 0x8 | 0x9))
    }
}

numbered! {
    /// What a unidirectional stream is for.
    enum StreamKind(u64) {
        /// Frames about the connection as a whole; one per side.
        Control = 0x0,
        /// A pushed reply.
        Push = 0x1,
        /// Insertions into the dynamic table of QPACK; at most one per side.
        QpackEncoder = 0x2,
        /// Acknowledgements of QPACK; at most one per side.
        QpackDecoder = 0x3,
        else "A type that neither RFC defines; to be passed over.",
    }
}

/// Appends the header of a frame, whose payload of `payload_bytes` is to follow.
#[inline]
pub fn write_header(out: &mut Vec<u8>, kind: Kind, payload_bytes: u64) {
    put_varint(out, kind.number());
    put_varint(out, payload_bytes);
}

/// Appends what a control stream begins with: its type and a SETTINGS frame.
pub fn write_control_opening(out: &mut Vec<u8>, settings: &[(Setting, u64)]) {
    put_varint(out, StreamKind::Control.number());
    let bytes: usize = settings
        .iter()
        .map(|(setting, value)| varint_bytes(setting.number()) + varint_bytes(*value))
        .sum();
    write_header(out, Kind::Settings, bytes as u64);
    for (setting, value) in settings {
        put_varint(out, setting.number());
        put_varint(out, *value);
    }
}

/// Appends a GOAWAY frame (section 5.2). `id`: of a server, the first stream of the client that was
/// not and will not be processed; of a client, the first push.
pub fn write_go_away(out: &mut Vec<u8>, id: u64) {
    write_header(out, Kind::GoAway, varint_bytes(id) as u64);
    put_varint(out, id);
}

/// Appends a HEADERS frame; `write` appends the fields to what it gets, each by
/// [`encode_field`](qpack::encode_field).
pub fn write_head(out: &mut Vec<u8>, write: impl FnOnce(&mut Vec<u8>)) {
    /// The length is written in two bytes, and in four where that is not enough.
    const LENGTH_MAX: usize = 0x3fff;
    put_varint(out, Kind::Headers.number());
    let start = out.len() + 2;
    out.extend_from_slice(&[0, 0]);
    qpack::encode_prefix(out);
    write(out);
    let bytes = out.len() - start;
    if bytes <= LENGTH_MAX {
        out[start - 2..start].copy_from_slice(&(0x4000 | bytes as u16).to_be_bytes());
    } else {
        let length = 0x8000_0000 | bytes as u32;
        out.splice(start - 2..start, length.to_be_bytes());
    }
}

numbered! {
    /// What a setting of a SETTINGS frame is about.
    enum Setting(u64) {
        /// Bytes of the dynamic table that the peer's encoder may use. Initially 0.
        QpackMaxTableCapacity = 0x1,
        /// Bytes of a field section once decoded. Initially without limit. Advice only.
        MaxFieldSectionSize = 0x6,
        /// Streams that may wait for insertions into the dynamic table. Initially 0.
        QpackBlockedStreams = 0x7,
        else "A setting that neither RFC defines; to be passed over. Those of HTTP/2 may not be \
              sent.",
    }
}

impl Setting {
    /// A setting of HTTP/2 that HTTP/3 has not (RFC 9114 sections 7.2.4.1 and 11.2.2).
    pub(super) const fn is_of_http2(self) -> bool {
        matches!(self, Self::Other(0 | 2..=5))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::test_support::{hex, written};

    #[test]
    fn numbers_come_back() {
        for number in (0..0x50).chain([VARINT_MAX]) {
            assert_eq!(Kind::of(number).number(), number);
            assert_eq!(StreamKind::of(number).number(), number);
            assert_eq!(Setting::of(number).number(), number);
        }
        // RFC 9114 section 7.2.8.
        let reserved = (0..0x50).filter(|&number| Kind::of(number).is_of_http2());
        assert_eq!(reserved.collect::<Vec<_>>(), [2, 6, 8, 9]);
    }

    #[test]
    fn frames_are_written() {
        let settings = [
            (Setting::MaxFieldSectionSize, 65_536),
            (Setting::of(0x21), 1),
        ];
        let opening = written(|out| write_control_opening(out, &settings));
        assert_eq!(opening, [0, 4, 7, 6, 0x80, 1, 0, 0, 0x21, 1]);
        assert_eq!(written(|out| write_control_opening(out, &[])), [0, 4, 0]);
        assert_eq!(written(|out| write_go_away(out, 400)), [7, 2, 0x41, 0x90]);
        let header = written(|out| write_header(out, Kind::Data, 70));
        assert_eq!(header, [0, 0x40, 70]);
    }

    #[test]
    fn heads_of_any_length_are_written() {
        for (bytes, length) in [
            (0, &[0x40, 0x02][..]),
            (0x3ffd, &[0x7f, 0xff]),
            (0x3ffe, &[0x80, 0x00, 0x40, 0x00]),
        ] {
            let mut out = vec![9];
            write_head(&mut out, |out| out.resize(out.len() + bytes, 7));
            let expected = [&[9, 1][..], length, &[0, 0], &vec![7; bytes]].concat();
            assert_eq!(out, expected);
        }
    }

    fn taken(bytes: &[u8]) -> (Option<u64>, usize) {
        let mut rest = bytes;
        let number = take_varint(&mut rest);
        (number, rest.len())
    }

    /// RFC 9000 appendix A.1.
    #[test]
    fn numbers_of_the_rfc() {
        for (bytes, number) in [
            ("c2197c5eff14e88c", 151_288_809_941_952_652),
            ("9d7f3e7d", 494_878_333),
            ("7bbd", 15_293),
            ("25", 37),
        ] {
            assert_eq!(taken(&hex(bytes)), (Some(number), 0));
            assert_eq!(written(|out| put_varint(out, number)), hex(bytes));
        }
        assert_eq!(taken(&[0x40, 0x25]), (Some(37), 0));
    }

    #[test]
    fn edges_come_back_in_their_shortest_form() {
        for (number, bytes) in [
            (0, 1),
            (63, 1),
            (64, 2),
            (16_383, 2),
            (16_384, 4),
            ((1 << 30) - 1, 4),
            (1 << 30, 8),
            (VARINT_MAX, 8),
        ] {
            let mut out = Vec::new();
            put_varint(&mut out, number);
            assert_eq!((out.len(), varint_bytes(number)), (bytes, bytes));
            out.push(7);
            assert_eq!(taken(&out), (Some(number), 1));
            for cut in 0..bytes {
                assert_eq!(taken(&out[..cut]), (None, cut));
            }
        }
    }

    proptest! {
        #[test]
        fn numbers_come_back_in_pieces(
            numbers in prop::collection::vec((0..=VARINT_MAX, 0_u32..62), 1..10),
            step in 1_usize..9,
        ) {
            let numbers: Vec<u64> = numbers.iter().map(|(number, shift)| number >> shift).collect();
            let mut wire = Vec::new();
            for &number in &numbers {
                put_varint(&mut wire, number);
            }
            let (mut pieces, mut found) = (Pieces::default(), Vec::new());
            for mut piece in wire.chunks(step) {
                while let Some(number) = pieces.take(&mut piece) {
                    found.push(number);
                }
                prop_assert!(piece.is_empty());
            }
            prop_assert!(pieces.is_empty());
            prop_assert_eq!(found, numbers);
        }
    }
}
