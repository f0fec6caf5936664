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
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Pieces {
    number: u64,
    /// Bytes to come; 0: nothing of a number came.
    missing_bytes: u8,
}

impl Pieces {
    /// Nothing of a number.
    pub(super) const EMPTY: Self = Self {
        number: 0,
        missing_bytes: 0,
    };

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
pub enum Side {
    /// It sends requests. It allows no pushes.
    Client,
    /// It answers requests. It pushes nothing.
    Server,
}

/// What a frame is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A part of a message's content.
    Data,
    /// A field section: a head, an interim one, or trailers.
    Headers,
    /// A push is not wanted.
    CancelPush,
    /// How the sender uses the connection.
    Settings,
    /// A request that the server makes up.
    PushPromise,
    /// The sender ends the connection.
    GoAway,
    /// How many pushes the client takes.
    MaxPushId,
    /// A type of HTTP/2 that HTTP/3 has not, which may not be sent (section 7.2.8).
    Http2(u8),
    /// A type that RFC 9114 does not define; to be passed over.
    Other(u64),
}

impl Kind {
    /// The type with this number.
    #[inline]
    pub const fn of(number: u64) -> Self {
        match number {
            0x0 => Self::Data,
            0x1 => Self::Headers,
            0x3 => Self::CancelPush,
            0x4 => Self::Settings,
            0x5 => Self::PushPromise,
            0x7 => Self::GoAway,
            0xd => Self::MaxPushId,
            0x2 | 0x6 | 0x8 | 0x9 => Self::Http2(number as u8),
            _ => Self::Other(number),
        }
    }

    /// Its number on the wire.
    #[inline]
    pub const fn number(self) -> u64 {
        match self {
            Self::Data => 0x0,
            Self::Headers => 0x1,
            Self::CancelPush => 0x3,
            Self::Settings => 0x4,
            Self::PushPromise => 0x5,
            Self::GoAway => 0x7,
            Self::MaxPushId => 0xd,
            Self::Http2(number) => number as u64,
            Self::Other(number) => number,
        }
    }
}

/// What a unidirectional stream is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StreamKind {
    /// Frames about the connection as a whole; one per side.
    Control,
    /// A pushed reply.
    Push,
    /// Insertions into the dynamic table of QPACK; at most one per side.
    QpackEncoder,
    /// Acknowledgements of QPACK; at most one per side.
    QpackDecoder,
    /// A type that neither RFC defines; to be passed over.
    Other(u64),
}

impl StreamKind {
    /// The type with this number.
    pub const fn of(number: u64) -> Self {
        match number {
            0x0 => Self::Control,
            0x1 => Self::Push,
            0x2 => Self::QpackEncoder,
            0x3 => Self::QpackDecoder,
            _ => Self::Other(number),
        }
    }

    /// Its number on the wire.
    pub const fn number(self) -> u64 {
        match self {
            Self::Control => 0x0,
            Self::Push => 0x1,
            Self::QpackEncoder => 0x2,
            Self::QpackDecoder => 0x3,
            Self::Other(number) => number,
        }
    }
}

/// Appends the header of a frame, whose payload of `payload_bytes` is to follow.
#[inline]
pub fn write_header(out: &mut Vec<u8>, kind: Kind, payload_bytes: u64) {
    put_varint(out, kind.number());
    put_varint(out, payload_bytes);
}

/// Appends what a control stream begins with: its type and a SETTINGS frame.
pub fn write_control_opening(out: &mut Vec<u8>, settings: &[Setting]) {
    put_varint(out, StreamKind::Control.number());
    let bytes: usize = settings
        .iter()
        .map(|setting| {
            let (id, value) = setting.parts();
            varint_bytes(id) + varint_bytes(value)
        })
        .sum();
    write_header(out, Kind::Settings, bytes as u64);
    for setting in settings {
        let (id, value) = setting.parts();
        put_varint(out, id);
        put_varint(out, value);
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

/// A setting of a SETTINGS frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Setting {
    /// Bytes of the dynamic table that the peer's encoder may use. Initially 0.
    QpackMaxTableCapacity(u64),
    /// Bytes of a field section once decoded. Initially without limit. Advice only.
    MaxFieldSectionSize(u64),
    /// Streams that may wait for insertions into the dynamic table. Initially 0.
    QpackBlockedStreams(u64),
    /// A setting of HTTP/2 that HTTP/3 has not, which may not be sent (RFC 9114 section 7.2.4.1).
    Http2 {
        /// Its identifier.
        id: u8,
        /// Its value.
        value: u64,
    },
    /// A setting that neither RFC defines; to be passed over.
    Other {
        /// Its identifier.
        id: u64,
        /// Its value.
        value: u64,
    },
}

impl Setting {
    /// The setting with this identifier.
    pub const fn of(id: u64, value: u64) -> Self {
        match id {
            0x1 => Self::QpackMaxTableCapacity(value),
            0x6 => Self::MaxFieldSectionSize(value),
            0x7 => Self::QpackBlockedStreams(value),
            // RFC 9114 section 11.2.2.
            0x0 | 0x2 | 0x3 | 0x4 | 0x5 => Self::Http2 {
                id: id as u8,
                value,
            },
            _ => Self::Other { id, value },
        }
    }

    /// Its identifier and value.
    pub const fn parts(self) -> (u64, u64) {
        match self {
            Self::QpackMaxTableCapacity(value) => (0x1, value),
            Self::MaxFieldSectionSize(value) => (0x6, value),
            Self::QpackBlockedStreams(value) => (0x7, value),
            Self::Http2 { id, value } => (id as u64, value),
            Self::Other { id, value } => (id, value),
        }
    }
}

/// What the peer's SETTINGS say; absent where they do not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Settings {
    /// Bytes of the dynamic table that our encoder might use.
    pub qpack_max_table_capacity: Option<u64>,
    /// Bytes of a field section that the peer takes.
    pub max_field_section_size: Option<u64>,
    /// Streams that might wait for insertions of our encoder.
    pub qpack_blocked_streams: Option<u64>,
}

/// A setting may not be there, or came twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Forbidden;

impl Settings {
    /// Takes a setting.
    pub(super) fn add(&mut self, setting: Setting) -> Result<(), Forbidden> {
        let (known, value) = match setting {
            Setting::QpackMaxTableCapacity(bytes) => (&mut self.qpack_max_table_capacity, bytes),
            Setting::MaxFieldSectionSize(bytes) => (&mut self.max_field_section_size, bytes),
            Setting::QpackBlockedStreams(streams) => (&mut self.qpack_blocked_streams, streams),
            Setting::Http2 { .. } => return Err(Forbidden),
            Setting::Other { .. } => return Ok(()),
        };
        match known.replace(value) {
            None => Ok(()),
            Some(_) => Err(Forbidden),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn numbers_come_back() {
        for number in (0..0x50).chain([VARINT_MAX]) {
            assert_eq!(Kind::of(number).number(), number);
            assert_eq!(StreamKind::of(number).number(), number);
        }
        // RFC 9114 section 7.2.8.
        let reserved = (0..0x50).filter(|&number| matches!(Kind::of(number), Kind::Http2(_)));
        assert_eq!(reserved.collect::<Vec<_>>(), [2, 6, 8, 9]);
    }

    #[test]
    fn frames_are_written() {
        let written = |write: &dyn Fn(&mut Vec<u8>)| {
            let mut out = Vec::new();
            write(&mut out);
            out
        };
        let settings = [
            Setting::MaxFieldSectionSize(65_536),
            Setting::Other { id: 0x21, value: 1 },
        ];
        assert_eq!(
            written(&|out| write_control_opening(out, &settings)),
            [0x00, 0x04, 0x07, 0x06, 0x80, 0x01, 0x00, 0x00, 0x21, 0x01]
        );
        assert_eq!(written(&|out| write_control_opening(out, &[])), [0, 4, 0]);
        assert_eq!(written(&|out| write_go_away(out, 400)), [7, 2, 0x41, 0x90]);
        assert_eq!(
            written(&|out| write_header(out, Kind::Data, 70)),
            [0, 0x40, 70]
        );
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

    #[test]
    fn identifiers_come_back_and_those_of_http2_are_forbidden() {
        for id in 0..0x40 {
            let setting = Setting::of(id, 77);
            assert_eq!(setting.parts(), (id, 77));
            let is_forbidden = matches!(id, 0 | 2..=5);
            let added = Settings::default().add(setting);
            assert_eq!(added.is_err(), is_forbidden, "{id}");
        }
    }

    #[test]
    fn what_is_known_may_come_once() {
        let mut settings = Settings::default();
        for id in [1, 6, 7, 0x21, 0x21] {
            assert_eq!(settings.add(Setting::of(id, id * 10)), Ok(()));
        }
        let expected = Settings {
            qpack_max_table_capacity: Some(10),
            max_field_section_size: Some(60),
            qpack_blocked_streams: Some(70),
        };
        assert_eq!(settings, expected);
        for id in [1, 6, 7] {
            assert_eq!(settings.add(Setting::of(id, 0)), Err(Forbidden), "{id}");
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
            (
                &[0xc2, 0x19, 0x7c, 0x5e, 0xff, 0x14, 0xe8, 0x8c][..],
                151_288_809_941_952_652,
            ),
            (&[0x9d, 0x7f, 0x3e, 0x7d], 494_878_333),
            (&[0x7b, 0xbd], 15_293),
            (&[0x25], 37),
        ] {
            assert_eq!(taken(bytes), (Some(number), 0));
            let mut out = Vec::new();
            put_varint(&mut out, number);
            assert_eq!(out, bytes);
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
            let (mut pieces, mut found) = (Pieces::EMPTY, Vec::new());
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
