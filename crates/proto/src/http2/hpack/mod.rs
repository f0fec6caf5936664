//! HPACK (RFC 7541): header compression, for both sides of a connection.

#[cfg(test)]
mod tests;

use std::collections::VecDeque;

use thiserror::Error;

use crate::fields::coding::{
    Text, Value, is_read, put_integer, put_string, static_place, take_integer,
};

pub use crate::fields::FIELD_OVERHEAD_BYTES;
pub use crate::fields::coding::{Bytes, CodingError, Decoded, Keep, StaticTable, is_text};

/// Bytes of a dynamic table unless SETTINGS_HEADER_TABLE_SIZE says otherwise.
pub const TABLE_BYTES: u32 = 4_096;

/// Decodes the field blocks of one direction of a connection.
#[derive(Debug)]
pub struct Decoder<K> {
    table: Table<K>,
    /// What the peer may set the table's size to.
    table_bytes_max: u32,
}

impl<K: Keep> Decoder<K> {
    /// A decoder whose table may have up to `table_bytes`: the SETTINGS_HEADER_TABLE_SIZE of its
    /// side, or [`TABLE_BYTES`]. It takes memory as entries come.
    pub fn new(table_bytes: u32) -> Self {
        Self {
            table: Table::new(table_bytes),
            table_bytes_max: table_bytes,
        }
    }

    /// Decodes a whole field block. `each` gets the fields in their order, with the bytes of
    /// name and value. Strings are decoded in `scratch`, whose contents do not matter; it grows to
    /// at most twice the block.
    ///
    /// # Errors
    ///
    /// The block is malformed; the decoder must not be used any more.
    pub fn decode(
        &mut self,
        block: &[u8],
        scratch: &mut Vec<u8>,
        mut each: impl FnMut(K::Field<'_>, usize),
    ) -> Result<Decoded, HpackError> {
        let mut rest = block;
        let mut is_start = true;
        let (mut is_stateless, mut needs_closed) = (true, false);
        while let Some(&first) = rest.first() {
            if first & 0x80 != 0 {
                let index = take_integer(&mut rest, 7)? as usize;
                if let Some((name, value)) = static_entry(index) {
                    each(static_field::<K>(index), name.len() + value.len());
                } else {
                    let entry = self.dynamic_entry(index)?;
                    let bytes = entry.name_bytes as usize + entry.value_bytes as usize;
                    each(entry.kept.kept_field(), bytes);
                    is_stateless = false;
                }
            } else if first & 0xe0 == 0x20 {
                let table_bytes = take_integer(&mut rest, 5)?;
                if !is_start || table_bytes > self.table_bytes_max {
                    return Err(HpackError::TableSize);
                }
                self.table.resize(table_bytes);
                is_stateless = false;
                continue;
            } else {
                let is_inserted = first & 0x40 != 0;
                let prefix_bits = if is_inserted { 6 } else { 4 };
                let index = take_integer(&mut rest, prefix_bits)? as usize;
                if index > STATIC_TABLE.len() || is_inserted && !self.is_closed() {
                    is_stateless = false;
                }
                needs_closed |= is_inserted;
                self.literal(&mut rest, index, is_inserted, scratch, &mut each)?;
            }
            is_start = false;
        }
        Ok(Decoded {
            is_stateless,
            needs_closed,
        })
    }

    /// Whether the table has no room for any field: nothing that is inserted stays.
    #[inline]
    pub fn is_closed(&self) -> bool {
        self.table.is_closed()
    }

    /// Takes a literal off `rest`, behind the index of its name; 0 for a literal name.
    fn literal(
        &mut self,
        rest: &mut &[u8],
        index: usize,
        is_inserted: bool,
        scratch: &mut Vec<u8>,
        each: &mut impl FnMut(K::Field<'_>, usize),
    ) -> Result<(), HpackError> {
        scratch.clear();
        let name = match index {
            0 => Some(Text::take(rest, 7)?.decode(scratch)?),
            _ => None,
        };
        let value = Text::take(rest, 7)?;
        let is_read = match &name {
            Some(name) => is_read::<K>(K::name(name.bytes(scratch))),
            None if index <= STATIC_TABLE.len() => is_read::<K>(static_name::<K>(index)),
            None => is_read::<K>(self.dynamic_entry(index)?.kept.kept_name()),
        };
        let value = Value::of(value, is_read, scratch)?;
        let (field, name_bytes) = match &name {
            Some(name) => {
                let name = name.bytes(scratch);
                (value.field::<K>(K::name(name), scratch), name.len())
            }
            None => match static_entry(index) {
                Some((name, _)) => {
                    let field = value.field::<K>(static_name::<K>(index), scratch);
                    (field, name.len())
                }
                None => {
                    let entry = self.dynamic_entry(index)?;
                    let field = value.field::<K>(entry.kept.kept_name(), scratch);
                    (field, entry.name_bytes as usize)
                }
            },
        };
        let value_bytes = value.len(scratch);
        each(field, name_bytes + value_bytes);
        if is_inserted {
            // The name's own entry may be evicted by this.
            let kept = K::keep(field);
            self.table.insert(TableEntry {
                kept,
                name_bytes: name_bytes as u32,
                value_bytes: value_bytes as u32,
            });
        }
        Ok(())
    }

    #[cfg(test)]
    pub(in super::super) fn size_bytes(&self) -> u64 {
        self.table.size_bytes()
    }

    #[inline]
    fn dynamic_entry(&self, index: usize) -> Result<&TableEntry<K>, HpackError> {
        let age = index.checked_sub(STATIC_TABLE.len() + 1);
        age.and_then(|age| self.table.get(age))
            .ok_or(HpackError::Index)
    }
}

#[inline]
fn static_entry(index: usize) -> Option<&'static (&'static [u8], &'static [u8])> {
    STATIC_TABLE.get(index.wrapping_sub(1))
}

/// The name of a static field; `index` is 1 to 61.
#[inline]
fn static_name<'a, K: Keep>(index: usize) -> K::Name<'a> {
    K::static_name::<HpackTable>(index - 1)
}

/// A static field; `index` is 1 to 61.
#[inline]
fn static_field<'a, K: Keep>(index: usize) -> K::Field<'a> {
    K::static_field::<HpackTable>(index - 1)
}

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

/// Why a field block cannot be decoded: a connection error of COMPRESSION_ERROR (RFC 9113 section
/// 4.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum HpackError {
    /// A number or a string cannot be read.
    #[error(transparent)]
    Coding(#[from] CodingError),
    /// A field refers to no entry of the tables.
    #[error("an index has no entry")]
    Index,
    /// The table's size is set above what was allowed, or elsewhere than at the block's start.
    #[error("the table's size is set beyond the limit, or in the wrong place")]
    TableSize,
}

/// A field of the table, and the sizes of what it was made of.
#[derive(Debug)]
struct TableEntry<K> {
    kept: K,
    name_bytes: u32,
    value_bytes: u32,
}

impl<K> TableEntry<K> {
    fn size_bytes(&self) -> u64 {
        u64::from(self.name_bytes) + u64::from(self.value_bytes) + u64::from(FIELD_OVERHEAD_BYTES)
    }
}

/// The latest fields that fit `size_max_bytes`, the latest first.
#[derive(Debug)]
struct Table<K> {
    entries: VecDeque<TableEntry<K>>,
    size_bytes: u64,
    size_max_bytes: u32,
}

impl<K> Table<K> {
    fn new(size_max_bytes: u32) -> Self {
        Self {
            entries: VecDeque::new(),
            size_bytes: 0,
            size_max_bytes,
        }
    }

    /// The entry inserted `age` insertions ago: 0 is the latest.
    #[inline]
    fn get(&self, age: usize) -> Option<&TableEntry<K>> {
        self.entries.get(age)
    }

    /// Inserts a field. One that is larger than the table empties it and is not kept (section 4.4).
    fn insert(&mut self, entry: TableEntry<K>) {
        let size_bytes = entry.size_bytes();
        let room = u64::from(self.size_max_bytes).checked_sub(size_bytes);
        self.evict(room.unwrap_or(0));
        if room.is_some() {
            self.size_bytes += size_bytes;
            self.entries.push_front(entry);
        }
    }

    /// Whether no field can stay, for even an empty one is too large.
    #[inline]
    fn is_closed(&self) -> bool {
        self.size_max_bytes < FIELD_OVERHEAD_BYTES
    }

    fn resize(&mut self, size_max_bytes: u32) {
        self.size_max_bytes = size_max_bytes;
        self.evict(size_max_bytes.into());
    }

    /// Drops the oldest fields until the others have at most so many bytes.
    fn evict(&mut self, size_bytes: u64) {
        while self.size_bytes > size_bytes {
            let Some(oldest) = self.entries.pop_back() else {
                return;
            };
            self.size_bytes -= oldest.size_bytes();
        }
    }

    #[cfg(test)]
    fn size_bytes(&self) -> u64 {
        self.size_bytes
    }
}

/// The static table of HPACK.
#[derive(Clone, Copy, Debug)]
pub struct HpackTable;

impl StaticTable for HpackTable {
    const FIELDS: &'static [(&'static [u8], &'static [u8])] = &STATIC_TABLE;
}

/// Names and values. The entry with index 1 comes first.
pub const STATIC_TABLE: [(&[u8], &[u8]); 61] = [
    (b":authority", b""),
    (b":method", b"GET"),
    (b":method", b"POST"),
    (b":path", b"/"),
    (b":path", b"/index.html"),
    (b":scheme", b"http"),
    (b":scheme", b"https"),
    (b":status", b"200"),
    (b":status", b"204"),
    (b":status", b"206"),
    (b":status", b"304"),
    (b":status", b"400"),
    (b":status", b"404"),
    (b":status", b"500"),
    (b"accept-charset", b""),
    (b"accept-encoding", b"gzip, deflate"),
    (b"accept-language", b""),
    (b"accept-ranges", b""),
    (b"accept", b""),
    (b"access-control-allow-origin", b""),
    (b"age", b""),
    (b"allow", b""),
    (b"authorization", b""),
    (b"cache-control", b""),
    (b"content-disposition", b""),
    (b"content-encoding", b""),
    (b"content-language", b""),
    (b"content-length", b""),
    (b"content-location", b""),
    (b"content-range", b""),
    (b"content-type", b""),
    (b"cookie", b""),
    (b"date", b""),
    (b"etag", b""),
    (b"expect", b""),
    (b"expires", b""),
    (b"from", b""),
    (b"host", b""),
    (b"if-match", b""),
    (b"if-modified-since", b""),
    (b"if-none-match", b""),
    (b"if-range", b""),
    (b"if-unmodified-since", b""),
    (b"last-modified", b""),
    (b"link", b""),
    (b"location", b""),
    (b"max-forwards", b""),
    (b"proxy-authenticate", b""),
    (b"proxy-authorization", b""),
    (b"range", b""),
    (b"referer", b""),
    (b"refresh", b""),
    (b"retry-after", b""),
    (b"server", b""),
    (b"set-cookie", b""),
    (b"strict-transport-security", b""),
    (b"transfer-encoding", b""),
    (b"user-agent", b""),
    (b"vary", b""),
    (b"via", b""),
    (b"www-authenticate", b""),
];
