//! What a client needs of a reply's field blocks: the status, the length of the body, when to
//! retry, and whether the block is well formed (RFC 9113 sections 8.2 and 8.3).

use super::hpack::{Decoder, FIELD_OVERHEAD_BYTES, HpackError, Keep, is_text};
use super::reply::MalformedReply;
use crate::Limits;
use crate::field_value::{decimal, list};

/// What a well-formed head says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Head {
    /// Status code, 100 to 999.
    pub(super) status: u16,
    /// It reports an error, and says when to ask again (RFC 9110 section 10.2.3).
    pub(super) retry_after: bool,
    pub(super) content_length: ContentLength,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum ContentLength {
    #[default]
    Absent,
    Bytes(u64),
    /// Malformed, or it contradicts itself.
    Bad,
}

/// What a name means to a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Name {
    Status,
    ContentLength,
    RetryAfter,
    Other,
    /// It must not be in a reply.
    Bad,
}

/// What a field means to a client; all that the dynamic table keeps of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Meaning {
    name: Name,
    /// The value is not well formed.
    is_bad: bool,
    /// The value, where it is a number of interest.
    number: u64,
}

impl Keep for Meaning {
    type Name<'a> = Name;
    type Field<'a> = Self;

    fn name(bytes: &[u8]) -> Name {
        match bytes {
            b":status" => Name::Status,
            b"content-length" => Name::ContentLength,
            b"retry-after" => Name::RetryAfter,
            // RFC 9113 section 8.2.2.
            b"" | b"connection" | b"keep-alive" | b"proxy-connection" | b"transfer-encoding"
            | b"upgrade" => Name::Bad,
            _ if bytes.iter().all(|&byte| is_name_byte(byte)) => Name::Other,
            _ => Name::Bad,
        }
    }

    #[inline]
    fn static_name<'a>(index: usize) -> Self::Name<'a> {
        match index {
            8..=14 => Name::Status,
            28 => Name::ContentLength,
            53 => Name::RetryAfter,
            // Pseudo-headers of requests, and transfer-encoding.
            1..=7 | 57 => Name::Bad,
            _ => Name::Other,
        }
    }

    #[inline]
    fn static_field<'a>(index: usize) -> Self::Field<'a> {
        let status = match index {
            8 => 200,
            9 => 204,
            10 => 206,
            11 => 304,
            12 => 400,
            13 => 404,
            14 => 500,
            _ => return Self::field(Self::static_name(index), b""),
        };
        Self {
            name: Name::Status,
            is_bad: false,
            number: status,
        }
    }

    fn field(name: Name, value: &[u8]) -> Self {
        let number = match name {
            Name::Status => status(value),
            Name::ContentLength => content_length(value),
            // But for spaces around a value (RFC 9113 section 8.2.1): servers send them on as
            // applications set them, and clients accept them, as in HTTP/1.1.
            Name::RetryAfter | Name::Other | Name::Bad => is_text(value).then_some(0),
        };
        Self {
            name,
            is_bad: number.is_none(),
            number: number.unwrap_or(0),
        }
    }

    #[inline]
    fn unread_field<'a>(name: Self::Name<'a>, is_text: bool) -> Option<Self::Field<'a>> {
        match name {
            Name::Status | Name::ContentLength => None,
            Name::RetryAfter | Name::Other | Name::Bad => Some(Self {
                name,
                is_bad: !is_text,
                number: 0,
            }),
        }
    }

    fn keep(field: Self) -> Self {
        field
    }

    fn kept_name(&self) -> Name {
        self.name
    }

    #[inline]
    fn kept_field(&self) -> Self {
        *self
    }
}

/// Whether `byte` may stand in a name: in a token (RFC 9110 section 5.6.2), not in upper case
/// (RFC 9113 section 8.2.1).
fn is_name_byte(byte: u8) -> bool {
    byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

fn status(value: &[u8]) -> Option<u64> {
    (value.len() == 3)
        .then(|| decimal(value))
        .flatten()
        .filter(|status| *status >= 100)
}

/// RFC 9110 section 8.6: a repeated value is allowed, a different one is not.
fn content_length(value: &[u8]) -> Option<u64> {
    let mut items = list(value);
    let first = decimal(items.next()?)?;
    items
        .all(|item| decimal(item) == Some(first))
        .then_some(first)
}

/// What the fields of one block add up to.
#[derive(Debug, Default)]
struct Block {
    /// Regular fields, without pseudo-header fields.
    fields: u32,
    /// Bytes of the fields, as [`Limits::head_bytes`] counts them.
    bytes: u64,
    /// Whether a field came that is not well formed.
    is_bad: bool,
    has_pseudo: bool,
    has_regular: bool,
    status: Option<u16>,
    retry_after: bool,
    content_length: ContentLength,
}

impl Block {
    #[inline]
    fn add(&mut self, field: Meaning, bytes: usize) {
        self.bytes += bytes as u64 + u64::from(FIELD_OVERHEAD_BYTES);
        match field.name {
            Name::Status => {
                // Before all regular fields, and once (RFC 9113 section 8.3).
                self.is_bad |= field.is_bad || self.has_pseudo || self.has_regular;
                self.has_pseudo = true;
                self.status = u16::try_from(field.number).ok();
                return;
            }
            Name::ContentLength => {
                self.content_length = match self.content_length {
                    _ if field.is_bad => ContentLength::Bad,
                    ContentLength::Absent => ContentLength::Bytes(field.number),
                    ContentLength::Bytes(bytes) if bytes == field.number => {
                        ContentLength::Bytes(bytes)
                    }
                    _ => ContentLength::Bad,
                };
            }
            Name::RetryAfter => {
                self.retry_after = true;
                self.is_bad |= field.is_bad;
            }
            Name::Other => self.is_bad |= field.is_bad,
            Name::Bad => self.is_bad = true,
        }
        self.fields += 1;
        self.has_regular = true;
    }

    fn check(&self, limits: &Limits) -> Result<(), MalformedReply> {
        if self.bytes > limits.head_bytes.into() {
            Err(MalformedReply::HeadTooLarge)
        } else if self.fields > limits.header_fields.into() {
            Err(MalformedReply::TooManyHeaders)
        } else if self.is_bad {
            Err(MalformedReply::Head)
        } else {
            Ok(())
        }
    }

    fn head(&self, limits: &Limits) -> Result<Head, MalformedReply> {
        self.check(limits)?;
        let status = self.status.ok_or(MalformedReply::Head)?;
        Ok(Head {
            status,
            retry_after: status >= 400 && self.retry_after,
            content_length: self.content_length,
        })
    }

    fn trailers(&self, limits: &Limits) -> Result<(), MalformedReply> {
        self.check(limits)?;
        if self.has_pseudo {
            return Err(MalformedReply::Head);
        }
        Ok(())
    }
}

/// The latest head and what it meant; one per worker, with one value of [`Limits`]. Servers send
/// the same head over and over, and equal bytes that depend on no state of the connection mean an
/// equal head.
#[derive(Clone, Debug, Default)]
pub struct KnownHead {
    block: Vec<u8>,
    /// What `block` means; `None` before there is one.
    head: Option<Head>,
    /// It has fields for the dynamic table. Servers that do without the table (nginx) send such
    /// ones all the same, for a table without room.
    needs_closed: bool,
    /// Where strings are decoded.
    scratch: Vec<u8>,
}

impl KnownHead {
    /// Reads the block of a head.
    #[inline]
    pub(super) fn head(
        &mut self,
        decoder: &mut Decoder<Meaning>,
        block: &[u8],
        limits: &Limits,
    ) -> Result<Result<Head, MalformedReply>, HpackError> {
        match self.head {
            Some(head) if self.block == block && (!self.needs_closed || decoder.is_closed()) => {
                Ok(Ok(head))
            }
            _ => self.new_head(decoder, block, limits),
        }
    }

    fn new_head(
        &mut self,
        decoder: &mut Decoder<Meaning>,
        block: &[u8],
        limits: &Limits,
    ) -> Result<Result<Head, MalformedReply>, HpackError> {
        let mut fields = Block::default();
        let decoded = decoder.decode(block, &mut self.scratch, |field, bytes| {
            fields.add(field, bytes);
        })?;
        let head = fields.head(limits);
        if decoded.is_stateless
            && let Ok(head) = head
        {
            self.block.clear();
            self.block.extend_from_slice(block);
            self.head = Some(head);
            self.needs_closed = decoded.needs_closed;
        }
        Ok(head)
    }

    /// Reads the block of trailers.
    pub(super) fn trailers(
        &mut self,
        decoder: &mut Decoder<Meaning>,
        block: &[u8],
        limits: &Limits,
    ) -> Result<Result<(), MalformedReply>, HpackError> {
        let mut fields = Block::default();
        decoder.decode(block, &mut self.scratch, |field, bytes| {
            fields.add(field, bytes);
        })?;
        Ok(fields.trailers(limits))
    }

    /// Reads a block that nobody waits for: the dynamic table needs it (RFC 9113 section 4.3).
    pub(super) fn skip(
        &mut self,
        decoder: &mut Decoder<Meaning>,
        block: &[u8],
    ) -> Result<(), HpackError> {
        decoder.decode(block, &mut self.scratch, |_, _| {})?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::hpack::{Indexing, STATIC_TABLE, TABLE_BYTES, encode_field, encode_indexed};
    use super::*;

    type Read = Result<Head, MalformedReply>;

    fn block(fields: &[(&str, &str)], indexing: Indexing) -> Vec<u8> {
        let mut out = Vec::new();
        for (name, value) in fields {
            encode_field(&mut out, name.as_bytes(), value.as_bytes(), indexing);
        }
        out
    }

    fn read(fields: &[(&str, &str)], limits: &Limits) -> Read {
        let mut decoder = Decoder::new(TABLE_BYTES);
        let mut known = KnownHead::default();
        let block = block(fields, Indexing::Without);
        let head = known.head(&mut decoder, &block, limits).unwrap();
        assert_eq!(known.head(&mut decoder, &block, limits).unwrap(), head);
        head
    }

    fn head(status: u16, content_length: ContentLength) -> Read {
        Ok(Head {
            status,
            retry_after: false,
            content_length,
        })
    }

    #[test]
    fn heads() {
        use ContentLength::{Absent, Bad, Bytes};
        let bad = Err(MalformedReply::Head);
        for (fields, expected) in [
            (&[(":status", "200")][..], head(200, Absent)),
            (&[(":status", "999")], head(999, Absent)),
            (&[(":status", "100"), ("a", "")], head(100, Absent)),
            (
                &[(":status", "200"), ("content-length", "7")],
                head(200, Bytes(7)),
            ),
            (
                &[
                    (":status", "200"),
                    ("content-length", "7, 7"),
                    ("content-length", "7"),
                ],
                head(200, Bytes(7)),
            ),
            (
                &[
                    (":status", "200"),
                    ("content-length", "18446744073709551615"),
                ],
                head(200, Bytes(u64::MAX)),
            ),
            (
                &[
                    (":status", "200"),
                    ("content-length", "18446744073709551616"),
                ],
                head(200, Bad),
            ),
            (
                &[(":status", "200"), ("content-length", "7, 8")],
                head(200, Bad),
            ),
            (
                &[
                    (":status", "200"),
                    ("content-length", "7"),
                    ("content-length", "8"),
                ],
                head(200, Bad),
            ),
            (
                &[
                    (":status", "200"),
                    ("content-length", "x"),
                    ("content-length", "8"),
                ],
                head(200, Bad),
            ),
            (
                &[(":status", "200"), ("content-length", "+7")],
                head(200, Bad),
            ),
            (
                &[(":status", "200"), ("content-length", "")],
                head(200, Bad),
            ),
            (
                &[(":status", "200"), ("retry-after", "1")],
                head(200, Absent),
            ),
            (
                &[(":status", "503"), ("retry-after", "")],
                Ok(Head {
                    status: 503,
                    retry_after: true,
                    content_length: Absent,
                }),
            ),
            (
                &[(":status", "200"), ("x", "a\tb\u{e4}\u{1}")],
                head(200, Absent),
            ),
            (&[], bad),
            (&[("a", "b")], bad),
            (&[(":status", "")], bad),
            (&[(":status", "20")], bad),
            (&[(":status", "2000")], bad),
            (&[(":status", "099")], bad),
            (&[(":status", "+20")], bad),
            (&[(":status", "200"), (":status", "200")], bad),
            (&[("a", "b"), (":status", "200")], bad),
            (&[(":status", "200"), (":path", "/")], bad),
            (&[(":status", "200"), (":method", "GET")], bad),
            (&[(":status", "200"), (":other", "x")], bad),
            (&[(":status", "200"), ("", "x")], bad),
            (&[(":status", "200"), ("Date", "x")], bad),
            (&[(":status", "200"), ("a b", "x")], bad),
            (&[(":status", "200"), ("a:", "x")], bad),
            (&[(":status", "200"), ("\u{e4}", "x")], bad),
            (&[(":status", "200"), ("connection", "close")], bad),
            (&[(":status", "200"), ("keep-alive", "1")], bad),
            (&[(":status", "200"), ("proxy-connection", "close")], bad),
            (&[(":status", "200"), ("transfer-encoding", "chunked")], bad),
            (&[(":status", "200"), ("upgrade", "h2c")], bad),
            (&[(":status", "200"), ("a", "b\r\nc: d")], bad),
            (&[(":status", "200"), ("a", "b\nc")], bad),
            (&[(":status", "200"), ("a", "b\0")], bad),
            (
                &[(":status", "200"), ("content-length", "7\r\n")],
                head(200, Bad),
            ),
            // Spaces around a value are accepted.
            (
                &[(":status", "200"), ("a", " b"), ("c", "d\t"), ("e", " ")],
                head(200, Absent),
            ),
            (
                &[(":status", "200"), ("content-length", "\t7 , 7 ")],
                head(200, Bytes(7)),
            ),
            (&[(":status", " 200")], bad),
        ] {
            assert_eq!(read(fields, &Limits::default()), expected, "{fields:?}");
        }
    }

    /// A field means the same by the static table, as a literal, and out of the dynamic table.
    #[test]
    fn what_is_kept_means_the_same() {
        for index in 1..=STATIC_TABLE.len() {
            let (name, value) = STATIC_TABLE[index - 1];
            assert_eq!(Meaning::static_name(index), Meaning::name(name), "{index}");
            let field = Meaning::field(Meaning::name(name), value);
            assert_eq!(Meaning::static_field(index), field, "{index}");
        }

        let fields = [
            (":status", "301"),
            ("content-length", "77"),
            ("x-other", "1"),
        ];
        let mut decoder = Decoder::new(TABLE_BYTES);
        let mut known = KnownHead::default();
        let mut read = |block: &[u8]| known.head(&mut decoder, block, &Limits::default()).unwrap();
        let expected = head(301, ContentLength::Bytes(77));
        assert_eq!(read(&block(&fields, Indexing::Insert)), expected);
        assert_eq!(read(&[0xc0, 0xbf, 0xbe]), expected);
        // Names of the dynamic table with other values.
        assert_eq!(
            read(&[0x0f, 0x31, 0x03, b'4', b'0', b'4', 0x0f, 0x30, 0x01, b'5']),
            head(404, ContentLength::Bytes(5))
        );
    }

    #[test]
    fn limits_hold_for_what_is_decoded() {
        let limits = Limits {
            head_bytes: 100,
            header_fields: 2,
            ..Limits::default()
        };
        let fields = |values: &[&'static str]| -> Vec<(&str, &str)> {
            let others = values.iter().map(|value| ("a", *value));
            [(":status", "200")].into_iter().chain(others).collect()
        };
        // 42 bytes, then 33 and the value for each field.
        let fits = "x".repeat(25).leak();
        let over = "x".repeat(26).leak();
        assert_eq!(
            read(&fields(&[fits]), &limits),
            head(200, ContentLength::Absent)
        );
        assert_eq!(
            read(&fields(&[over]), &limits),
            Err(MalformedReply::HeadTooLarge)
        );
        let limits = Limits {
            head_bytes: 1_000,
            ..limits
        };
        assert_eq!(
            read(&fields(&["", ""]), &limits),
            head(200, ContentLength::Absent)
        );
        assert_eq!(
            read(&fields(&["", "", ""]), &limits),
            Err(MalformedReply::TooManyHeaders)
        );
    }

    #[test]
    fn up_to_256_fields_are_taken() {
        for (others, expected) in [
            (150, head(200, ContentLength::Absent)),
            (256, head(200, ContentLength::Absent)),
            (257, Err(MalformedReply::TooManyHeaders)),
        ] {
            let mut fields = vec![("a", "b"); others + 1];
            fields[0] = (":status", "200");
            assert_eq!(read(&fields, &Limits::default()), expected, "{others}");
        }
    }

    /// A few bytes may refer to a large entry many times: counted, and not copied.
    #[test]
    fn a_bomb_is_too_large() {
        let mut decoder = Decoder::new(TABLE_BYTES);
        let mut known = KnownHead::default();
        let mut bomb = vec![0x88];
        encode_field(&mut bomb, b"a", &[b'b'; 4_000], Indexing::Insert);
        for _ in 0..10_000 {
            encode_indexed(&mut bomb, 62);
        }
        let limits = Limits::default();
        let head = known.head(&mut decoder, &bomb, &limits).unwrap();
        assert_eq!(head, Err(MalformedReply::HeadTooLarge));
    }

    #[test]
    fn trailers_have_no_pseudo_headers() {
        let mut decoder = Decoder::new(TABLE_BYTES);
        let mut known = KnownHead::default();
        for (fields, expected) in [
            (&[][..], Ok(())),
            (&[("checksum", "x")], Ok(())),
            (&[(":status", "200")], Err(MalformedReply::Head)),
            (&[("Checksum", "x")], Err(MalformedReply::Head)),
        ] {
            let block = block(fields, Indexing::Insert);
            let read = known.trailers(&mut decoder, &block, &Limits::default());
            assert_eq!(read.unwrap(), expected, "{fields:?}");
        }
    }

    /// What used or changed the dynamic table is decoded each time.
    #[test]
    fn only_what_depends_on_no_state_is_known() {
        let limits = Limits::default();
        let mut known = KnownHead::default();
        let mut decoder = Decoder::new(TABLE_BYTES);
        let insert = block(&[(":status", "201")], Indexing::Insert);
        for _ in 0..2 {
            known.head(&mut decoder, &insert, &limits).unwrap().unwrap();
        }
        known.head(&mut decoder, &[0xbf], &limits).unwrap().unwrap();
        let mut other = Decoder::new(TABLE_BYTES);
        assert_eq!(
            known.head(&mut other, &[0xbe], &limits),
            Err(HpackError::Index)
        );
    }

    /// Fields that are sent for a table without room are known where there is none, and decoded
    /// where there is.
    #[test]
    fn what_no_table_keeps_is_known_there() {
        let limits = Limits::default();
        let mut known = KnownHead::default();
        let insert = block(&[(":status", "201"), ("a", "b")], Indexing::Insert);
        let mut closed = Decoder::new(TABLE_BYTES);
        let opening = [&[0x20][..], &insert].concat();
        known.head(&mut closed, &opening, &limits).unwrap().unwrap();
        known.head(&mut closed, &insert, &limits).unwrap().unwrap();
        assert_eq!((&known.block, known.needs_closed), (&insert, true));
        assert!(closed.is_closed());

        let mut open = Decoder::new(TABLE_BYTES);
        let once = (":status".len() + "201".len() + 32) + ("a".len() + "b".len() + 32);
        for times in 1..=2 {
            known.head(&mut open, &insert, &limits).unwrap().unwrap();
            assert_eq!(open.size_bytes(), (times * once) as u64);
        }
        known.head(&mut open, &[0xbf], &limits).unwrap().unwrap();
    }
}
