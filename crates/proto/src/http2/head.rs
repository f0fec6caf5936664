//! Heads of replies in HPACK, of which the latest is known.

use super::hpack::{Decoder, HpackError};
use crate::Limits;
use crate::fields::reply::MalformedReply;
use crate::fields::reply_head::{Head, Meaning, ReplyFields};

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
    /// Of the first call of gRPC that failed with one.
    call_message: Option<String>,
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
        let mut fields = ReplyFields::default();
        let decoded = decoder.decode(block, &mut self.scratch, |field, bytes| {
            fields.add(field, bytes);
        })?;
        self.keep_message(&mut fields);
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

    /// Reads the block of trailers: the code in `grpc-status`.
    pub(super) fn trailers(
        &mut self,
        decoder: &mut Decoder<Meaning>,
        block: &[u8],
        limits: &Limits,
    ) -> Result<Result<Option<u8>, MalformedReply>, HpackError> {
        let mut fields = ReplyFields::default();
        decoder.decode(block, &mut self.scratch, |field, bytes| {
            fields.add(field, bytes);
        })?;
        self.keep_message(&mut fields);
        Ok(fields.trailers(limits))
    }

    #[inline]
    fn keep_message(&mut self, fields: &mut ReplyFields) {
        if let Some(message) = fields.take_call_message() {
            self.call_message.get_or_insert(message.into());
        }
    }

    /// What the server said of the first call of gRPC that failed (`grpc-message`); once.
    pub fn take_call_message(&mut self) -> Option<String> {
        self.call_message.take()
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
    use super::super::hpack::{
        HpackTable, Indexing, Keep, STATIC_TABLE, TABLE_BYTES, encode_field, encode_indexed,
    };
    use super::*;
    use crate::fields::reply_head::{CALL_MESSAGE_BYTES_MAX, ContentLength};

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
            call_code: None,
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
                    call_code: None,
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
        for (place, (name, value)) in STATIC_TABLE.into_iter().enumerate() {
            let found = Meaning::static_name::<HpackTable>(place);
            assert_eq!(found, Meaning::name(name), "{place}");
            let field = Meaning::field(Meaning::name(name), value);
            assert_eq!(Meaning::static_field::<HpackTable>(place), field, "{place}");
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
            (&[][..], Ok(None)),
            (&[("checksum", "x")], Ok(None)),
            (&[("grpc-status", "0")], Ok(Some(0))),
            (&[("grpc-status", " 0 "), ("grpc-message", "")], Ok(Some(0))),
            (&[("grpc-status", "0"), ("grpc-status", "0")], Ok(Some(0))),
            (&[("grpc-status", "0"), ("grpc-status", "1")], Ok(Some(2))),
            (&[("grpc-status", "12"), ("grpc-status", "0")], Ok(Some(2))),
            (&[("grpc-status", "12")], Ok(Some(12))),
            (&[("grpc-status", "255")], Ok(Some(255))),
            (&[("grpc-status", "256")], Ok(Some(2))),
            (&[("grpc-status", "")], Ok(Some(2))),
            (&[("grpc-status", "-0")], Ok(Some(2))),
            (&[("grpc-status", "0\0")], Err(MalformedReply::Head)),
            (&[(":status", "200")], Err(MalformedReply::Head)),
            (&[("Checksum", "x")], Err(MalformedReply::Head)),
        ] {
            let block = block(fields, Indexing::Insert);
            let read = known.trailers(&mut decoder, &block, &Limits::default());
            assert_eq!(read.unwrap(), expected, "{fields:?}");
        }
    }

    #[test]
    fn the_first_message_of_a_failed_call_is_kept() {
        let mut decoder = Decoder::new(TABLE_BYTES);
        let mut known = KnownHead::default();
        let long = "x".repeat(513);
        for (status, message, kept) in [
            ("0", "fine", None),
            ("14", "", None),
            ("14", "no backend", Some("no backend")),
            ("12", "no method", Some("no backend")),
            ("12", &long, Some("no backend")),
        ] {
            let fields = [("grpc-status", status), ("grpc-message", message)];
            let block = block(&fields, Indexing::Insert);
            let read = known.trailers(&mut decoder, &block, &Limits::default());
            assert!(read.unwrap().is_ok());
            assert_eq!(known.call_message.as_deref(), kept, "{fields:?}");
        }
        assert!(known.take_call_message().is_some());
        let block = block(
            &[("grpc-status", "2"), ("grpc-message", &long)],
            Indexing::Insert,
        );
        let read = known.trailers(&mut decoder, &block, &Limits::default());
        assert_eq!(read.unwrap(), Ok(Some(2)));
        let kept = known.take_call_message();
        assert_eq!(kept.map(|text| text.len()), Some(CALL_MESSAGE_BYTES_MAX));
    }

    #[test]
    fn the_status_of_a_call_comes_out_of_the_table_too() {
        let mut decoder = Decoder::new(TABLE_BYTES);
        let mut known = KnownHead::default();
        for (status, code) in [("0", 0), ("12", 12)] {
            let insert = block(&[("grpc-status", status)], Indexing::Insert);
            for block in [&insert[..], &[0xbe]] {
                let read = known.trailers(&mut decoder, block, &Limits::default());
                assert_eq!(read.unwrap(), Ok(Some(code)), "{block:x?}");
            }
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
