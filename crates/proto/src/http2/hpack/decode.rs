//! Decoding field blocks, with the dynamic table that they need.

use super::error::HpackError;
use super::static_table::{HpackTable, STATIC_TABLE};
use super::table::{Entry, Table};
use crate::fields::coding::{Text, take_integer};
use crate::fields::keep::{Keep, Value, is_read};

/// What the decoding of a block was like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decoded {
    /// The block neither used nor changed the dynamic table: the same bytes mean the same fields
    /// on every connection, or on every one with a [closed table](Decoder::is_closed).
    pub is_stateless: bool,
    /// The block would have changed a table that is not closed.
    pub needs_closed: bool,
}

/// Decodes the field blocks of one direction of a connection.
#[derive(Debug)]
pub struct Decoder<K> {
    table: Table<K>,
    /// What the peer may set the table's size to.
    table_bytes_max: u32,
}

impl<K: Keep> Decoder<K> {
    /// A decoder whose table may have up to `table_bytes`: the SETTINGS_HEADER_TABLE_SIZE of its
    /// side, or [`TABLE_BYTES`](super::TABLE_BYTES). It takes memory as entries come.
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
            self.table.insert(Entry {
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
    fn dynamic_entry(&self, index: usize) -> Result<&Entry<K>, HpackError> {
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
