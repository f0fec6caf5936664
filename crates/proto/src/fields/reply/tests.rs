//! Tests of what the fields of replies mean, as HPACK brings them.

use super::*;
use crate::http2::hpack::{
    Decoder, HpackError, HpackTable, Indexing, STATIC_TABLE, TABLE_BYTES, encode_field,
    encode_indexed,
};

type Read<T> = Result<Result<T, MalformedReply>, HpackError>;

/// One connection, with the latest head.
struct ReplyReader {
    decoder: Decoder<Meaning>,
    known: KnownHead,
}

impl ReplyReader {
    fn new() -> Self {
        Self {
            decoder: Decoder::new(TABLE_BYTES),
            known: KnownHead::default(),
        }
    }

    fn head(&mut self, block: &[u8], limits: &Limits) -> Read<Head> {
        let Self { decoder, known } = self;
        known.head(block, decoder.is_closed(), limits, |scratch, fields| {
            decoder.decode(block, scratch, |field, bytes| fields.add(field, bytes))
        })
    }

    fn trailers(&mut self, block: &[u8]) -> Result<Option<u8>, MalformedReply> {
        let Self { decoder, known } = self;
        let read = known.trailers(&Limits::default(), |scratch, fields| {
            decoder.decode(block, scratch, |field, bytes| fields.add(field, bytes))
        });
        read.unwrap()
    }
}

fn block(fields: &[(&str, &str)], indexing: Indexing) -> Vec<u8> {
    let mut out = Vec::new();
    for (name, value) in fields {
        encode_field(&mut out, name.as_bytes(), value.as_bytes(), indexing);
    }
    out
}

fn read(fields: &[(&str, &str)], limits: &Limits) -> Result<Head, MalformedReply> {
    let mut reader = ReplyReader::new();
    let block = block(fields, Indexing::Without);
    let head = reader.head(&block, limits).unwrap();
    assert_eq!(reader.head(&block, limits).unwrap(), head);
    head
}

fn head(status: u16, content_length: ContentLength) -> Head {
    Head {
        status,
        retry_after: false,
        content_length,
        call_code: None,
    }
}

#[test]
fn well_formed_heads_say_what_matters() {
    use ContentLength::{Absent, Bad, Bytes};
    let name = "content-length";
    let later = Head {
        retry_after: true,
        ..head(503, Absent)
    };
    let most = "18446744073709551615";
    let spaces = &[("a", " b"), ("c", "d\t"), ("e", " ")][..];
    for (status, fields, expected) in [
        ("200", &[][..], head(200, Absent)),
        ("999", &[], head(999, Absent)),
        ("100", &[("a", "")], head(100, Absent)),
        ("200", &[(name, "7")], head(200, Bytes(7))),
        ("200", &[(name, "7, 7"), (name, "7")], head(200, Bytes(7))),
        ("200", &[(name, most)], head(200, Bytes(u64::MAX))),
        ("200", &[(name, "18446744073709551616")], head(200, Bad)),
        ("200", &[(name, "7, 8")], head(200, Bad)),
        ("200", &[(name, "7"), (name, "8")], head(200, Bad)),
        ("200", &[(name, "x"), (name, "8")], head(200, Bad)),
        ("200", &[(name, "+7")], head(200, Bad)),
        ("200", &[(name, "")], head(200, Bad)),
        ("200", &[(name, "7\r\n")], head(200, Bad)),
        ("200", &[("retry-after", "1")], head(200, Absent)),
        ("503", &[("retry-after", "")], later),
        ("200", &[("x", "a\tb\u{e4}\u{1}")], head(200, Absent)),
        // Spaces around a value are accepted.
        ("200", spaces, head(200, Absent)),
        ("200", &[(name, "\t7 , 7 ")], head(200, Bytes(7))),
    ] {
        let fields = [&[(":status", status)], fields].concat();
        let found = read(&fields, &Limits::default());
        assert_eq!(found, Ok(expected), "{fields:?}");
    }
}

#[test]
fn malformed_heads_are_refused() {
    let behind_status = [
        (":status", "200"),
        (":path", "/"),
        (":method", "GET"),
        (":other", "x"),
        ("", "x"),
        ("Date", "x"),
        ("a b", "x"),
        ("a:", "x"),
        ("\u{e4}", "x"),
        ("connection", "close"),
        ("keep-alive", "1"),
        ("proxy-connection", "close"),
        ("transfer-encoding", "chunked"),
        ("upgrade", "h2c"),
        ("a", "b\r\nc: d"),
        ("a", "b\nc"),
        ("a", "b\0"),
    ];
    let mut cases = behind_status
        .map(|field| vec![(":status", "200"), field])
        .to_vec();
    for status in ["", "20", "2000", "099", "+20", " 200"] {
        cases.push(vec![(":status", status)]);
    }
    cases.extend([
        vec![],
        vec![("a", "b")],
        vec![("a", "b"), (":status", "200")],
    ]);
    for fields in cases {
        let found = read(&fields, &Limits::default());
        assert_eq!(found, Err(MalformedReply::Head), "{fields:?}");
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
    let mut reader = ReplyReader::new();
    let mut read = |block: &[u8]| reader.head(block, &Limits::default()).unwrap();
    let expected = Ok(head(301, ContentLength::Bytes(77)));
    assert_eq!(read(&block(&fields, Indexing::Insert)), expected);
    assert_eq!(read(&[0xc0, 0xbf, 0xbe]), expected);
    // Names of the dynamic table with other values.
    let others = [0x0f, 0x31, 0x03, b'4', b'0', b'4', 0x0f, 0x30, 0x01, b'5'];
    assert_eq!(read(&others), Ok(head(404, ContentLength::Bytes(5))));
}

#[test]
fn limits_hold_for_what_is_decoded() {
    use MalformedReply::{HeadTooLarge, TooManyHeaders};
    let (fits, over) = ("x".repeat(25), "x".repeat(26));
    let ok = Ok(head(200, ContentLength::Absent));
    for (head_bytes, header_fields, others, expected) in [
        // 42 bytes, then 33 and the value for each field.
        (100, 2, vec![&fits[..]], ok),
        (100, 2, vec![&over], Err(HeadTooLarge)),
        (1_000, 2, vec![""; 2], ok),
        (1_000, 2, vec![""; 3], Err(TooManyHeaders)),
        (65_536, 256, vec!["b"; 150], ok),
        (65_536, 256, vec!["b"; 256], ok),
        (65_536, 256, vec!["b"; 257], Err(TooManyHeaders)),
    ] {
        let limits = Limits {
            head_bytes,
            header_fields,
            ..Limits::default()
        };
        let others = others.iter().map(|value| ("a", *value));
        let fields: Vec<_> = [(":status", "200")].into_iter().chain(others).collect();
        assert_eq!(read(&fields, &limits), expected, "{}", fields.len());
    }
}

/// A few bytes may refer to a large entry many times: counted, and not copied.
#[test]
fn a_bomb_is_too_large() {
    let mut bomb = vec![0x88];
    encode_field(&mut bomb, b"a", &[b'b'; 4_000], Indexing::Insert);
    for _ in 0..10_000 {
        encode_indexed(&mut bomb, 62);
    }
    let head = ReplyReader::new().head(&bomb, &Limits::default()).unwrap();
    assert_eq!(head, Err(MalformedReply::HeadTooLarge));
}

#[test]
fn trailers_have_no_pseudo_headers() {
    let mut reader = ReplyReader::new();
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
        assert_eq!(reader.trailers(&block), expected, "{fields:?}");
    }
}

#[test]
fn the_first_message_of_a_failed_call_is_kept() {
    let mut reader = ReplyReader::new();
    let long = "x".repeat(513);
    for (status, message, kept) in [
        ("0", "fine", None),
        ("14", "", None),
        ("14", "no backend", Some("no backend")),
        ("12", "no method", Some("no backend")),
        ("12", &long, Some("no backend")),
    ] {
        let fields = [("grpc-status", status), ("grpc-message", message)];
        assert!(reader.trailers(&block(&fields, Indexing::Insert)).is_ok());
        assert_eq!(reader.known.call_message.as_deref(), kept, "{fields:?}");
    }
    assert!(reader.known.take_call_message().is_some());
    let fields = [("grpc-status", "2"), ("grpc-message", &long)];
    let trailers = block(&fields, Indexing::Insert);
    assert_eq!(reader.trailers(&trailers), Ok(Some(2)));
    let kept = reader.known.take_call_message();
    assert_eq!(kept.map(|text| text.len()), Some(CALL_MESSAGE_BYTES_MAX));
}

#[test]
fn the_status_of_a_call_comes_out_of_the_table_too() {
    let mut reader = ReplyReader::new();
    for (status, code) in [("0", 0), ("12", 12)] {
        let insert = block(&[("grpc-status", status)], Indexing::Insert);
        for block in [&insert[..], &[0xbe]] {
            assert_eq!(reader.trailers(block), Ok(Some(code)), "{block:x?}");
        }
    }
}

/// What used or changed the dynamic table is decoded each time.
#[test]
fn only_what_depends_on_no_state_is_known() {
    let limits = Limits::default();
    let mut reader = ReplyReader::new();
    let insert = block(&[(":status", "201")], Indexing::Insert);
    for block in [&insert[..], &insert, &[0xbf]] {
        reader.head(block, &limits).unwrap().unwrap();
    }
    reader.decoder = Decoder::new(TABLE_BYTES);
    assert_eq!(reader.head(&[0xbe], &limits), Err(HpackError::Index));
}

/// Fields that are sent for a table without room are known where there is none, and decoded
/// where there is.
#[test]
fn what_no_table_keeps_is_known_there() {
    let limits = Limits::default();
    let mut reader = ReplyReader::new();
    let insert = block(&[(":status", "201"), ("a", "b")], Indexing::Insert);
    for block in [&[&[0x20][..], &insert].concat(), &insert] {
        reader.head(block, &limits).unwrap().unwrap();
    }
    assert_eq!(reader.known.block, insert);
    assert!(reader.known.needs_closed);
    assert!(reader.decoder.is_closed());

    reader.decoder = Decoder::new(TABLE_BYTES);
    let once = (":status".len() + "201".len() + 32) + ("a".len() + "b".len() + 32);
    for times in 1..=2 {
        reader.head(&insert, &limits).unwrap().unwrap();
        assert_eq!(reader.decoder.size_bytes(), (times * once) as u64);
    }
    reader.head(&[0xbf], &limits).unwrap().unwrap();
}
