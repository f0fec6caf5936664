//! Encoding fields. Without state: a caller that inserts into the peer's dynamic table knows what
//! it inserted.

use super::static_table::HpackTable;
use crate::fields::coding::{put_integer, put_string};
use crate::fields::keep::static_place;

/// How a literal field is treated by the decoder's dynamic table, and by those who pass it on
/// (RFC 7541 section 6.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Indexing {
    /// It is inserted.
    Insert,
    /// It is not.
    Without,
    /// It is not, nor may an intermediary do so: a secret.
    Never,
}

/// Appends a field. One that is in the static table with its value is written as its index,
/// whatever `indexing` unless it is `Never`; otherwise a literal is, with the index of its name
/// where the static table has it, and strings in Huffman code where that is shorter. True when
/// it was inserted into the decoder's dynamic table. `name` must be in lower case.
pub fn encode_field(out: &mut Vec<u8>, name: &[u8], value: &[u8], indexing: Indexing) -> bool {
    if indexing != Indexing::Never
        && let Some(index) = static_index(|entry| *entry == (name, value))
    {
        encode_indexed(out, index);
        return false;
    }
    let (first, prefix_bits) = match indexing {
        Indexing::Insert => (0x40, 6),
        Indexing::Without => (0x00, 4),
        Indexing::Never => (0x10, 4),
    };
    match static_index(|entry| entry.0 == name) {
        Some(index) => put_integer(out, first, prefix_bits, index),
        None => {
            out.push(first);
            put_string(out, 0, 7, name);
        }
    }
    put_string(out, 0, 7, value);
    indexing == Indexing::Insert
}

/// Appends a reference to a field: 1 to 61 of the static table, from 62 on of the dynamic table,
/// the latest first.
pub fn encode_indexed(out: &mut Vec<u8>, index: usize) {
    put_integer(out, 0x80, 7, index);
}

/// Appends a change of the dynamic table's size (RFC 7541 section 6.3). It must stand at the start
/// of a block.
pub fn encode_size_update(out: &mut Vec<u8>, table_bytes: u32) {
    put_integer(out, 0x20, 5, table_bytes as usize);
}

/// From 1.
fn static_index(is_wanted: impl Fn(&(&[u8], &[u8])) -> bool) -> Option<usize> {
    static_place::<HpackTable>(is_wanted).map(|place| place + 1)
}
