//! Encoding fields with the static table alone.

use super::static_table::QpackTable;
use crate::fields::coding::{put_integer, put_string};
use crate::fields::keep::static_place;

/// Appends what a field section without dynamic table begins with: a Required Insert Count and a
/// Base of 0 (RFC 9204 section 4.5.1).
pub fn encode_prefix(out: &mut Vec<u8>) {
    out.extend_from_slice(&[0, 0]);
}

/// Appends a field. One that is in the static table with its value is written as its index;
/// otherwise a literal is, with the index of its name where the static table has it, and strings in
/// Huffman code where that is shorter. `is_secret`: it is written as a literal that no intermediary
/// may put into a table (RFC 9204 section 7.1.3). `name` must be in lower case.
pub fn encode_field(out: &mut Vec<u8>, name: &[u8], value: &[u8], is_secret: bool) {
    if !is_secret && let Some(index) = static_place::<QpackTable>(|entry| *entry == (name, value)) {
        put_integer(out, 0xc0, 6, index);
        return;
    }
    match static_place::<QpackTable>(|entry| entry.0 == name) {
        Some(index) => put_integer(out, if is_secret { 0x70 } else { 0x50 }, 4, index),
        None => put_string(out, if is_secret { 0x30 } else { 0x20 }, 3, name),
    }
    put_string(out, 0, 7, value);
}
