//! Tests of whole field sections: RFC 9204 appendix B, those of another implementation, what is
//! malformed, and random fields.

use proptest::prelude::*;

use super::super::fuzz::fuzz_qpack;
use super::*;
use crate::fields::reply::Meaning;
use crate::test_support::{fields_of, hex, owned};

type Fields = Vec<(String, String)>;

fn decoded(section: &[u8]) -> Result<Fields, QpackError> {
    let mut fields = Fields::new();
    decode::<Bytes>(section, &mut Vec::new(), |(name, value), bytes| {
        assert_eq!(bytes, name.len() + value.len());
        fields.push((
            String::from_utf8_lossy(name).into_owned(),
            String::from_utf8_lossy(value).into_owned(),
        ));
    })?;
    Ok(fields)
}

fn encoded(fields: &[(String, String)], is_secret: bool) -> Vec<u8> {
    let mut out = Vec::new();
    encode_prefix(&mut out);
    for (name, value) in fields {
        encode_field(&mut out, name.as_bytes(), value.as_bytes(), is_secret);
    }
    out
}

/// Field sections of ls-qpack with a table of 0 bytes (pylsqpack 1.0.0).
const VECTORS: &[(&str, &str)] = &[
    (
        ":method: GET|:scheme: https|:authority: www.example.com|:path: /index.html",
        "0000d1d7508cf1e3c2e5f23a6ba0ab90f4ff518860d5485f2bce9a68",
    ),
    (
        ":method: POST|:scheme: http|:authority: localhost:8443|:path: /a?b=c|\
         content-type: application/json|content-length: 17|user-agent: brunt|\
         x-custom: VALUE \\ { 1 }",
        "0000d4d6508aa0e41d139d09b8f34d335185607fe47013ee540231375f50848ecb6a4f2ef2b12d424f4f0\
         d56414c5545205c207b2031207d",
    ),
    (
        ":status: 200|server: nginx/1.26.3|date: Thu, 26 Nov 2026 03:00:00 GMT|\
         content-type: text/plain|content-length: 12|accept-ranges: bytes|etag: \"66b1f2-c\"",
        "0000d95f4d89aa6355e580ae2717675696df3dbf4a09c5349fba82009c500cdc002e000a62d1bff554023\
         132e05789fe5c7230ca2589fcff",
    ),
    (
        ":status: 103|link: </style.css>; rel=preload; as=style",
        "0000d85b9bfff8c213ea82ae4423fefed4b0b4415d85a0e393ed41a20427d505",
    ),
    (
        ":status: 404|content-type: text/html; charset=utf-8|vary: accept-encoding|\
         alt-svc: h3=\":443\"; ma=86400|x-frame-options: deny",
        "0000dbf4fb5f44909d983f9b8d34cff3f6a52381e71a003fff22",
    ),
    (
        ":status: 999|retry-after: 120|set-cookie: a=b; Path=/; HttpOnly|set-cookie: c=d",
        "00005f09033939392f01b0a9b3d2c39525b38208815e911c11fda9ac699e063ed4c694d7aaaa3d7f5e036\
         33d64",
    ),
    (
        "checksum: d41d8cd98f00b204e9800998ecf8427e|grpc-status: 0",
        "00002e24e527545b4f9791a0c8f1247de94008c4068afbc003efbc524af34274bf2f019acac8b21234da8\
         f0130",
    ),
];

#[test]
fn sections_of_another_implementation_are_read_and_written() {
    for (text, section) in VECTORS {
        let fields = fields_of(text);
        assert_eq!(decoded(&hex(section)), Ok(fields.clone()));
        assert_eq!(encoded(&fields, false), hex(section), "{text}");
    }
}

/// RFC 9204 appendix B.1; the other sections there need a dynamic table.
#[test]
fn sections_of_the_rfc() {
    let section = hex("0000 510b 2f69 6e64 6578 2e68 746d 6c");
    assert_eq!(decoded(&section), Ok(owned(&[(":path", "/index.html")])));
    for section in ["0381 10 11", "0500 80 c1 81", "0500 80 c1 82"] {
        let found = decoded(&hex(section));
        assert_eq!(found, Err(QpackError::Dynamic), "{section}");
    }
    // Appendices B.2 to B.5: a capacity and insertions, insertions, a duplicate.
    for instructions in [
        "3fbd01 c00f 7777 772e 6578 616d 706c 652e 636f 6d c10c 2f73 616d 706c 652f 7061 7468",
        "4a63 7573 746f 6d2d 6b65 790c 6375 7374 6f6d 2d76 616c 7565",
        "02",
        "810d 6375 7374 6f6d 2d76 616c 7565 32",
    ] {
        assert!(check_encoder_instructions(&hex(instructions)).is_err());
    }
    // A section acknowledged, a stream cancelled, an insertion acknowledged.
    for (instruction, is_allowed) in [("84", false), ("48", true), ("01", false)] {
        let taken = DecoderInstructions::default().take(&hex(instruction));
        assert_eq!(taken.is_ok(), is_allowed, "{instruction}");
    }
}

/// FNV-1a, of 64 bits, over the lines `name: value` of the table that ls-qpack decodes by.
const TABLE_SUM: u64 = 0x016b_d29c_9ef6_bb3d;

#[test]
fn the_static_table_is_that_of_another_implementation() {
    let mut sum: u64 = 0xcbf2_9ce4_8422_2325;
    for (name, value) in STATIC_TABLE {
        for &byte in [name, b": ", value, b"\n"].into_iter().flatten() {
            sum = (sum ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3);
        }
    }
    assert_eq!(sum, TABLE_SUM);
}

/// By its index, and by the index of its name.
#[test]
fn every_static_field_comes_back() {
    for (index, (name, value)) in STATIC_TABLE.into_iter().enumerate() {
        let expected = Ok(owned(&[(
            str::from_utf8(name).unwrap(),
            str::from_utf8(value).unwrap(),
        )]));
        let indexed = match index.checked_sub(63) {
            None => vec![0, 0, 0xc0 | index as u8],
            Some(rest) => vec![0, 0, 0xff, rest as u8],
        };
        assert_eq!(decoded(&indexed), expected);
        let mut named = match index.checked_sub(15) {
            None => vec![0, 0, 0x50 | index as u8],
            Some(rest) => vec![0, 0, 0x7f, rest as u8],
        };
        named.push(value.len() as u8);
        named.extend_from_slice(value);
        assert_eq!(decoded(&named), expected);

        let mut again = vec![0, 0];
        encode_field(&mut again, name, value, false);
        assert_eq!(again, indexed, "{index}");
        let found = Meaning::static_name::<QpackTable>(index);
        assert_eq!(found, Meaning::name(name), "{index}");
        let meaning = Meaning::field(found, value);
        let found = Meaning::static_field::<QpackTable>(index);
        assert_eq!(found, meaning, "{index}");
    }
}

#[test]
fn malformed_sections_are_refused() {
    use CodingError::{Huffman, Integer, Truncated};
    for (section, error) in [
        ("", Truncated.into()),
        ("00", Truncated.into()),
        ("00 7f", Truncated.into()),
        ("00 7f 80 80 80", Truncated.into()),
        ("00 7f 80 80 80 80 80 80 80 80 80 01", Integer.into()),
        ("01 00", QpackError::Dynamic),
        ("ff 00 00", QpackError::Dynamic),
        ("00 80", QpackError::Base),
        ("00 ff 01 c0", QpackError::Base),
        // Fields of the dynamic table: indexed, by name, behind the base.
        ("00 00 80", QpackError::Dynamic),
        ("00 00 40 00", QpackError::Dynamic),
        ("00 00 60 00", QpackError::Dynamic),
        ("00 00 10", QpackError::Dynamic),
        ("00 00 00 00", QpackError::Dynamic),
        ("00 00 08 00", QpackError::Dynamic),
        ("00 00 ff 24", QpackError::Index),
        ("00 00 ff ff ff ff 7f", QpackError::Index),
        ("00 00 5f 54 00", QpackError::Index),
        ("00 00 ff", Truncated.into()),
        ("00 00 ff 80 80 80 80", Integer.into()),
        ("00 00 50", Truncated.into()),
        ("00 00 50 01", Truncated.into()),
        ("00 00 50 81 00", Huffman.into()),
        ("00 00 21", Truncated.into()),
        ("00 00 21 61", Truncated.into()),
        ("00 00 21 61 02 62", Truncated.into()),
        ("00 00 27 ff ff ff 7f", Truncated.into()),
        ("00 00 29 ff 00", Huffman.into()),
    ] {
        assert_eq!(decoded(&hex(section)), Err(error), "{section}");
        let lean = decode::<Meaning>(&hex(section), &mut Vec::new(), |_, _| {});
        assert_eq!(lean, Err(error), "{section}");
    }
}

/// Without a dynamic table, the base says nothing.
#[test]
fn any_base_that_is_not_below_0_is_taken() {
    for section in [
        "00 01 d9",
        "00 7e d9",
        "00 7f 00 d9",
        "00 7f ff ff ff ff ff ff ff ff 3f d9",
    ] {
        let expected = owned(&[(":status", "200")]);
        assert_eq!(decoded(&hex(section)), Ok(expected), "{section}");
    }
    assert_eq!(decoded(&[0, 0]), Ok(vec![]));
}

#[test]
fn secrets_are_literals() {
    let fields = [(":method", "GET"), ("x", "\u{1}\u{2}"), ("cookie", "a=b")];
    let expected = hex("00 00 7f 00 03474554 31 78 02 0102 75 03613d62");
    assert_eq!(encoded(&owned(&fields), true), expected);
    assert_eq!(decoded(&expected), Ok(owned(&fields)));
}

proptest! {
    #[test]
    fn fields_come_back(
        fields in prop::collection::vec(("[a-z-]{0,20}", "[ -~]{0,60}", any::<bool>()), 0..20),
        statics in prop::collection::vec(0..STATIC_TABLE.len(), 0..10),
    ) {
        let mut section = Vec::new();
        encode_prefix(&mut section);
        let mut expected = Fields::new();
        for (name, value, is_secret) in fields {
            encode_field(&mut section, name.as_bytes(), value.as_bytes(), is_secret);
            expected.push((name, value));
        }
        for index in statics {
            let (name, value) = STATIC_TABLE[index];
            encode_field(&mut section, name, value, false);
            expected.extend(owned(&[(
                str::from_utf8(name).unwrap(),
                str::from_utf8(value).unwrap(),
            )]));
        }
        prop_assert_eq!(decoded(&section), Ok(expected));
        fuzz_qpack(&section);
    }

    #[test]
    fn any_bytes_keep_the_rules(section in prop::collection::vec(any::<u8>(), 0..80)) {
        fuzz_qpack(&section);
        fuzz_qpack(&[&[0, 0][..], &section].concat());
    }
}

#[test]
fn an_encoder_may_only_have_no_table() {
    assert_eq!(check_encoder_instructions(&[]), Ok(()));
    assert_eq!(check_encoder_instructions(&[0x20, 0x20]), Ok(()));
    // A capacity of 1, an insertion by a static and by a literal name, a duplicate.
    for instructions in ["21", "203f00", "c000", "4000", "00"] {
        let found = check_encoder_instructions(&hex(instructions));
        assert_eq!(found, Err(Forbidden), "{instructions}");
    }
}

#[test]
fn a_decoder_may_only_cancel_streams() {
    let longest = [&[0x7f][..], &[0xff; 8], &[0x00]].concat();
    let too_long = [&[0x7f][..], &[0x80; 9]].concat();
    for (bytes, expected) in [
        (&[][..], Ok(())),
        (&[0x40, 0x7e, 0x7f, 0x80, 0x01, 0x44], Ok(())),
        (&[&longest[..], &longest].concat(), Ok(())),
        (&too_long, Err(Forbidden)),
        // A section acknowledged, and insertions: of stream 0, of 4; none, one.
        (&[0x80], Err(Forbidden)),
        (&[0x40, 0x84], Err(Forbidden)),
        (&[0x00], Err(Forbidden)),
        (&[0x7f, 0x00, 0x01], Err(Forbidden)),
    ] {
        let mut whole = DecoderInstructions::default();
        assert_eq!(whole.take(bytes), expected, "{bytes:x?}");
        let mut bytewise = DecoderInstructions::default();
        let found = bytes.iter().try_for_each(|&byte| bytewise.take(&[byte]));
        assert_eq!(found, expected, "{bytes:x?}");
    }
}
