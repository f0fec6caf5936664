//! Tests of whole field blocks: RFC 7541 appendix C, what is malformed, and random fields.

use proptest::prelude::*;

use super::super::fuzz::fuzz_hpack;
use super::*;
use crate::test_support::{fields_of, hex};

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

/// Fields, and the size of the table after their block.
type Block = (&'static str, u64);

const REQUESTS: [Block; 3] = [
    (FIRST_REQUEST, 57),
    (SECOND_REQUEST, 110),
    (THIRD_REQUEST, 164),
];
const FIRST_REQUEST: &str = ":method: GET|:scheme: http|:path: /|:authority: www.example.com";
const SECOND_REQUEST: &str =
    ":method: GET|:scheme: http|:path: /|:authority: www.example.com|cache-control: no-cache";
const THIRD_REQUEST: &str = ":method: GET|:scheme: https|:path: /index.html|\
    :authority: www.example.com|custom-key: custom-value";

const REPLIES: [Block; 3] = [(FIRST_REPLY, 222), (SECOND_REPLY, 222), (THIRD_REPLY, 215)];
const FIRST_REPLY: &str = ":status: 302|cache-control: private|\
    date: Mon, 21 Oct 2013 20:13:21 GMT|location: https://www.example.com";
const SECOND_REPLY: &str = ":status: 307|cache-control: private|\
    date: Mon, 21 Oct 2013 20:13:21 GMT|location: https://www.example.com";
const THIRD_REPLY: &str = ":status: 200|cache-control: private|\
    date: Mon, 21 Oct 2013 20:13:22 GMT|location: https://www.example.com|content-encoding: gzip|\
    set-cookie: foo=ASDJKHQKBZXOQWEOPIUAXQWEOIU; max-age=3600; version=1";

/// The table's size and the blocks of a connection, RFC 7541 appendices C.3 to C.6.
const CASES: [(u32, [Block; 3], [&str; 3]); 4] = [
    (
        4_096,
        REQUESTS,
        [
            "828684410f7777772e6578616d706c652e636f6d",
            "828684be58086e6f2d6361636865",
            "828785bf400a637573746f6d2d6b65790c637573746f6d2d76616c7565",
        ],
    ),
    (
        4_096,
        REQUESTS,
        [
            "828684418cf1e3c2e5f23a6ba0ab90f4ff",
            "828684be5886a8eb10649cbf",
            "828785bf408825a849e95ba97d7f8925a849e95bb8e8b4bf",
        ],
    ),
    (
        256,
        REPLIES,
        [
            "4803333032580770726976617465611d4d6f6e2c203231204f637420323031332032303a31333a32\
             3120474d546e1768747470733a2f2f7777772e6578616d706c652e636f6d",
            "4803333037c1c0bf",
            "88c1611d4d6f6e2c203231204f637420323031332032303a31333a323220474d54c05a04677a6970\
             7738666f6f3d4153444a4b48514b425a584f5157454f50495541585157454f49553b206d61782d61\
             67653d333630303b2076657273696f6e3d31",
        ],
    ),
    (
        256,
        REPLIES,
        [
            "488264025885aec3771a4b6196d07abe941054d444a8200595040b8166e082a62d1bff6e919d29ad\
             171863c78f0b97c8e9ae82ae43d3",
            "4883640effc1c0bf",
            "88c16196d07abe941054d444a8200595040b8166e084a62d1bffc05a839bd9ab77ad94e7821dd7f2\
             e6c7b335dfdfcd5b3960d5af27087f3672c1ab270fb5291f9587316065c003ed4ee5b1063d5007",
        ],
    ),
];

#[test]
fn connections_of_the_rfc() {
    for (table_bytes, fields, blocks) in CASES {
        let mut decoder = Decoder::new(table_bytes);
        for (block, (expected, size_bytes)) in blocks.into_iter().zip(fields) {
            let (found, decoded) = decode(&mut decoder, &hex(block)).unwrap();
            assert_eq!(found, fields_of(expected));
            assert!(!decoded.is_stateless);
            assert_eq!(decoder.size_bytes(), size_bytes);
        }
    }
}

/// RFC 7541 appendix C.2.
#[test]
fn single_fields_of_the_rfc() {
    const INSERTED: &str = "400a637573746f6d2d6b65790d637573746f6d2d686561646572";
    const PLAIN_PATH: &str = "040c2f73616d706c652f70617468";
    const SECRET: &str = "100870617373776f726406736563726574";
    for (block, expected, size_bytes, is_stateless) in [
        (INSERTED, "custom-key: custom-header", 55, false),
        (PLAIN_PATH, ":path: /sample/path", 0, true),
        (SECRET, "password: secret", 0, true),
        ("82", ":method: GET", 0, true),
    ] {
        let mut decoder = Decoder::new(TABLE_BYTES);
        let (found, decoded) = decode(&mut decoder, &hex(block)).unwrap();
        assert_eq!(found, fields_of(expected));
        assert_eq!(decoded.is_stateless, is_stateless);
        assert_eq!(decoder.size_bytes(), size_bytes);
    }
}

/// The encoder gives the blocks of RFC 7541 appendix C.4, where the RFC inserts what is new.
#[test]
fn fields_are_encoded_as_in_the_rfc() {
    use Indexing::{Insert, Never, Without};
    let mut out = Vec::new();
    for (name, value) in fields_of(FIRST_REQUEST) {
        let inserted = encode_field(&mut out, name.as_bytes(), value.as_bytes(), Insert);
        assert_eq!(inserted, name == ":authority");
    }
    assert_eq!(out, hex(CASES[1].2[0]));

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
    let found = decode(&mut decoder, &hex("be")).unwrap().0;
    assert_eq!(found, fields_of("a: b"));
    // Two updates at the start; the first one evicts.
    let (found, decoded) = decode(&mut decoder, &hex("20 3f45 88")).unwrap();
    assert!(!decoded.is_stateless);
    assert_eq!(found, fields_of(":status: 200"));
    assert_eq!(decode(&mut decoder, &hex("be")), Err(HpackError::Index));
    let too_large = decode(&mut decoder, &hex("3f46"));
    assert_eq!(too_large, Err(HpackError::TableSize));
}

/// A name that is referred to may be evicted by the very field that does (RFC 7541 section 4.4).
#[test]
fn a_field_may_evict_the_entry_of_its_name() {
    let mut decoder = Decoder::new(40);
    decode(&mut decoder, &hex("40 01 61 01 62")).unwrap();
    let (found, _) = decode(&mut decoder, &hex("7e 03 636465")).unwrap();
    assert_eq!(found, fields_of("a: cde"));
    let found = decode(&mut decoder, &hex("be")).unwrap().0;
    assert_eq!(found, fields_of("a: cde"));
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
    fn any_bytes_keep_the_rules(data in prop::collection::vec(any::<u8>(), 0..240)) {
        fuzz_hpack(&data);
    }
}

fn entry(kept: u32, bytes: u32) -> TableEntry<u32> {
    TableEntry {
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
