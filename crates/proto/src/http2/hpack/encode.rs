//! Encoding fields. Without state: a caller that inserts into the peer's dynamic table knows what
//! it inserted.

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
    let _ = (out, name, value, indexing);
    false
}

/// Appends a reference to a field: 1 to 61 of the static table, from 62 on of the dynamic table,
/// the latest first.
pub fn encode_indexed(out: &mut Vec<u8>, index: usize) {
    let _ = (out, index);
}

/// Appends a change of the dynamic table's size (RFC 7541 section 6.3). It must stand at the start
/// of a block.
pub fn encode_size_update(out: &mut Vec<u8>, table_bytes: u32) {
    let _ = (out, table_bytes);
}
