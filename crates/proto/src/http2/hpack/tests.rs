//! Tests of whole field blocks: RFC 7541 appendix C, what is malformed, and random fields.

use proptest::prelude::*;

use super::*;
use crate::test_support::hex;

type Fields = Vec<(String, String)>;

fn decode(decoder: &mut Decoder<Bytes>, block: &[u8]) -> Result<(Fields, Decoded), HpackError> {
    let mut fields = Fields::new();
    let decoded = decoder.decode(block, &mut Vec::new(), |(name, value), bytes| {
        assert_eq!(bytes, name.len() + value.len());
        fields.push((
            String::from_utf8_lossy(name).into_owned(),
            String::from_utf8_lossy(value).into_owned(),
        ));
    })?;
    Ok((fields, decoded))
}

fn fields(text: &str) -> Fields {
    text.lines()
        .map(|line| line.trim().split_once(": ").unwrap())
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect()
}

const FIRST_REQUEST: &str = ":method: GET
    :scheme: http
    :path: /
    :authority: www.example.com";
const SECOND_REQUEST: &str = ":method: GET
    :scheme: http
    :path: /
    :authority: www.example.com
    cache-control: no-cache";
const THIRD_REQUEST: &str = ":method: GET
    :scheme: https
    :path: /index.html
    :authority: www.example.com
    custom-key: custom-value";
const FIRST_REPLY: &str = ":status: 302
    cache-control: private
    date: Mon, 21 Oct 2013 20:13:21 GMT
    location: https://www.example.com";
const SECOND_REPLY: &str = ":status: 307
    cache-control: private
    date: Mon, 21 Oct 2013 20:13:21 GMT
    location: https://www.example.com";
const THIRD_REPLY: &str = ":status: 200
    cache-control: private
    date: Mon, 21 Oct 2013 20:13:22 GMT
    location: https://www.example.com
    content-encoding: gzip
    set-cookie: foo=ASDJKHQKBZXOQWEOPIUAXQWEOIU; max-age=3600; version=1";

/// Table size, then block, fields and the table's size after it, for each block of a connection.
type Case<'a> = (u32, [(&'a str, &'a str, u64); 3]);

/// RFC 7541 appendices C.3 to C.6.
const CASES: [Case<'_>; 4] = [
    (
        4_096,
        [
            (
                "8286 8441 0f77 7777 2e65 7861 6d70 6c65 2e63 6f6d",
                FIRST_REQUEST,
                57,
            ),
            ("8286 84be 5808 6e6f 2d63 6163 6865", SECOND_REQUEST, 110),
            (
                "8287 85bf 400a 6375 7374 6f6d 2d6b 6579 0c63 7573 746f 6d2d 7661 6c75 65",
                THIRD_REQUEST,
                164,
            ),
        ],
    ),
    (
        4_096,
        [
            (
                "8286 8441 8cf1 e3c2 e5f2 3a6b a0ab 90f4 ff",
                FIRST_REQUEST,
                57,
            ),
            ("8286 84be 5886 a8eb 1064 9cbf", SECOND_REQUEST, 110),
            (
                "8287 85bf 4088 25a8 49e9 5ba9 7d7f 8925 a849 e95b b8e8 b4bf",
                THIRD_REQUEST,
                164,
            ),
        ],
    ),
    (
        256,
        [
            (
                "4803 3330 3258 0770 7269 7661 7465 611d 4d6f 6e2c 2032 3120 4f63 7420 3230 3133 \
                 2032 303a 3133 3a32 3120 474d 546e 1768 7474 7073 3a2f 2f77 7777 2e65 7861 6d70 \
                 6c65 2e63 6f6d",
                FIRST_REPLY,
                222,
            ),
            ("4803 3330 37c1 c0bf", SECOND_REPLY, 222),
            (
                "88c1 611d 4d6f 6e2c 2032 3120 4f63 7420 3230 3133 2032 303a 3133 3a32 3220 474d \
                 54c0 5a04 677a 6970 7738 666f 6f3d 4153 444a 4b48 514b 425a 584f 5157 454f 5049 \
                 5541 5851 5745 4f49 553b 206d 6178 2d61 6765 3d33 3630 303b 2076 6572 7369 6f6e \
                 3d31",
                THIRD_REPLY,
                215,
            ),
        ],
    ),
    (
        256,
        [
            (
                "4882 6402 5885 aec3 771a 4b61 96d0 7abe 9410 54d4 44a8 2005 9504 0b81 66e0 82a6 \
                 2d1b ff6e 919d 29ad 1718 63c7 8f0b 97c8 e9ae 82ae 43d3",
                FIRST_REPLY,
                222,
            ),
            ("4883 640e ffc1 c0bf", SECOND_REPLY, 222),
            (
                "88c1 6196 d07a be94 1054 d444 a820 0595 040b 8166 e084 a62d 1bff c05a 839b d9ab \
                 77ad 94e7 821d d7f2 e6c7 b335 dfdf cd5b 3960 d5af 2708 7f36 72c1 ab27 0fb5 291f \
                 9587 3160 65c0 03ed 4ee5 b106 3d50 07",
                THIRD_REPLY,
                215,
            ),
        ],
    ),
];

#[test]
fn connections_of_the_rfc() {
    for (table_bytes, blocks) in CASES {
        let mut decoder = Decoder::new(table_bytes);
        for (block, expected, size_bytes) in blocks {
            let (found, decoded) = decode(&mut decoder, &hex(block)).unwrap();
            assert_eq!(found, fields(expected));
            assert!(!decoded.is_stateless);
            assert_eq!(decoder.size_bytes(), size_bytes);
        }
    }
}

/// RFC 7541 appendix C.2.
#[test]
fn single_fields_of_the_rfc() {
    for (block, expected, size_bytes, is_stateless) in [
        (
            "400a 6375 7374 6f6d 2d6b 6579 0d63 7573 746f 6d2d 6865 6164 6572",
            "custom-key: custom-header",
            55,
            false,
        ),
        (
            "040c 2f73 616d 706c 652f 7061 7468",
            ":path: /sample/path",
            0,
            true,
        ),
        (
            "1008 7061 7373 776f 7264 0673 6563 7265 74",
            "password: secret",
            0,
            true,
        ),
        ("82", ":method: GET", 0, true),
    ] {
        let mut decoder = Decoder::new(TABLE_BYTES);
        let (found, decoded) = decode(&mut decoder, &hex(block)).unwrap();
        assert_eq!(found, fields(expected));
        assert_eq!(decoded.is_stateless, is_stateless);
        assert_eq!(decoder.size_bytes(), size_bytes);
    }
}

/// The encoder gives the blocks of RFC 7541 appendix C.4, where the RFC inserts what is new.
#[test]
fn fields_are_encoded_as_in_the_rfc() {
    use Indexing::{Insert, Never, Without};
    let mut out = Vec::new();
    for (name, value) in fields(FIRST_REQUEST) {
        let inserted = encode_field(&mut out, name.as_bytes(), value.as_bytes(), Insert);
        assert_eq!(inserted, name == ":authority");
    }
    assert_eq!(out, hex(CASES[1].1[0].0));

    let mut out = Vec::new();
    encode_indexed(&mut out, 62);
    assert!(encode_field(
        &mut out,
        b"cache-control",
        b"no-cache",
        Insert
    ));
    assert_eq!(out, hex("be 5886 a8eb 1064 9cbf"));

    let mut out = Vec::new();
    assert!(!encode_field(&mut out, b"password", b"\x01\x02", Never));
    assert!(!encode_field(&mut out, b":method", b"GET", Never));
    assert!(!encode_field(&mut out, b"age", b"", Without));
    encode_size_update(&mut out, 31);
    assert_eq!(out, hex("10 86 ac684783d927 02 0102 12 03474554 95 3f00"));
}

#[test]
fn malformed_blocks_are_refused() {
    use CodingError::{Huffman, Integer, Truncated};
    use HpackError::{Coding, Index, TableSize};
    for (block, error) in [
        ("80", Index),
        ("be", Index),
        ("ff 00", Index),
        ("7f 00 00", Index),
        ("0f 30 00", Index),
        ("ff", Coding(Truncated)),
        ("ff 80 80 80 80 80", Coding(Integer)),
        ("40", Coding(Truncated)),
        ("40 01", Coding(Truncated)),
        ("40 01 61", Coding(Truncated)),
        ("40 01 61 02 62", Coding(Truncated)),
        ("40 01 61 81 00", Coding(Huffman)),
        ("40 81 ff 00", Coding(Huffman)),
        ("00 7f ff ff ff ff ff", Coding(Integer)),
        ("82 20", TableSize),
        ("3f e2 1f", TableSize),
    ] {
        let mut decoder = Decoder::new(TABLE_BYTES);
        let found = decode(&mut decoder, &hex(block));
        assert_eq!(found.map(|_| ()), Err(error), "{block}");
    }
}

#[test]
fn the_peer_may_change_the_tables_size_up_to_the_limit() {
    let mut decoder = Decoder::new(100);
    decode(&mut decoder, &hex("40 01 61 01 62")).unwrap();
    assert_eq!(decode(&mut decoder, &hex("be")).unwrap().0, fields("a: b"));
    // Two updates at the start; the first one evicts.
    let (found, decoded) = decode(&mut decoder, &hex("20 3f45 88")).unwrap();
    assert_eq!(
        (found, decoded.is_stateless),
        (fields(":status: 200"), false)
    );
    assert_eq!(decode(&mut decoder, &hex("be")), Err(HpackError::Index));
    assert_eq!(
        decode(&mut decoder, &hex("3f46")),
        Err(HpackError::TableSize)
    );
}

/// A name that is referred to may be evicted by the very field that does (RFC 7541 section 4.4).
#[test]
fn a_field_may_evict_the_entry_of_its_name() {
    let mut decoder = Decoder::new(40);
    decode(&mut decoder, &hex("40 01 61 01 62")).unwrap();
    let (found, _) = decode(&mut decoder, &hex("7e 03 636465")).unwrap();
    assert_eq!(found, fields("a: cde"));
    assert_eq!(
        decode(&mut decoder, &hex("be")).unwrap().0,
        fields("a: cde")
    );
    assert_eq!(decoder.size_bytes(), 36);
}

proptest! {
    /// Fields in any form come back, block by block, also when the table is too small for them.
    #[test]
    fn fields_come_back(
        table_bytes in 0..400_u32,
        blocks in prop::collection::vec(
            prop::collection::vec(("[a-z-]{0,20}", "[ -~]{0,60}", 0..3_usize), 0..8),
            1..6,
        ),
    ) {
        let mut decoder = Decoder::new(table_bytes);
        for block in blocks {
            let mut out = Vec::new();
            for (name, value, form) in &block {
                let indexing = [Indexing::Insert, Indexing::Without, Indexing::Never][*form];
                encode_field(&mut out, name.as_bytes(), value.as_bytes(), indexing);
            }
            let (found, _) = decode(&mut decoder, &out).unwrap();
            let fields = block.into_iter().map(|(name, value, _)| (name, value));
            let expected: Fields = fields.collect();
            prop_assert_eq!(found, expected);
            prop_assert!(decoder.size_bytes() <= table_bytes.into());
        }
    }

    #[test]
    fn nothing_makes_the_decoder_panic(
        blocks in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..60), 1..5),
    ) {
        let mut decoder = Decoder::<Bytes>::new(200);
        for block in blocks {
            if decode(&mut decoder, &block).is_err() {
                break;
            }
        }
    }
}

fn entry(kept: u32, bytes: u32) -> Entry<u32> {
    Entry {
        kept,
        name_bytes: bytes / 2,
        value_bytes: bytes - bytes / 2,
    }
}

fn contents(table: &Table<u32>) -> Vec<u32> {
    (0..)
        .map_while(|age| table.get(age))
        .map(|entry| entry.kept)
        .collect()
}

#[test]
fn the_oldest_make_room() {
    let mut table = Table::new(100);
    table.insert(entry(1, 18));
    table.insert(entry(2, 18));
    assert_eq!((contents(&table), table.size_bytes()), (vec![2, 1], 100));
    table.insert(entry(3, 0));
    assert_eq!((contents(&table), table.size_bytes()), (vec![3, 2], 82));
    table.insert(entry(4, 68));
    assert_eq!((contents(&table), table.size_bytes()), (vec![4], 100));
    table.insert(entry(5, 69));
    assert_eq!((contents(&table), table.size_bytes()), (vec![], 0));
    table.insert(entry(6, u32::MAX));
    assert_eq!((contents(&table), table.size_bytes()), (vec![], 0));
}

#[test]
fn a_smaller_table_holds_less() {
    let mut table = Table::new(200);
    for kept in 1..=4 {
        table.insert(entry(kept, 8));
    }
    table.resize(119);
    assert_eq!(contents(&table), [4, 3]);
    table.resize(0);
    assert_eq!((contents(&table), table.size_bytes()), (vec![], 0));
    table.insert(entry(5, 0));
    assert!(contents(&table).is_empty() && table.is_closed());
    table.resize(31);
    assert!(table.is_closed());
    table.resize(32);
    assert!(!table.is_closed());
    table.insert(entry(6, 0));
    assert_eq!(contents(&table), [6]);
}
