//! How the simulated server encodes heads: with or without a dynamic table.

use std::collections::VecDeque;

use brunt_proto::http2::hpack::{
    FIELD_OVERHEAD_BYTES, Indexing, STATIC_TABLE, TABLE_BYTES, encode_field, encode_indexed,
    encode_size_update,
};

use super::settings::HeadCoding;

type Field = (Vec<u8>, Vec<u8>);

/// The encoder of one connection, with its image of brunt's dynamic table.
#[derive(Debug)]
pub(super) struct HeadEncoder {
    coding: HeadCoding,
    /// Latest first.
    entries: VecDeque<Field>,
    bytes: u32,
    limit_bytes: u32,
    /// A change of the table's size is still to be signalled to brunt.
    is_resized: bool,
    heads: u64,
}

impl HeadEncoder {
    pub(super) fn new(coding: HeadCoding) -> Self {
        Self {
            coding,
            entries: VecDeque::new(),
            bytes: 0,
            limit_bytes: TABLE_BYTES,
            is_resized: false,
            heads: 0,
        }
    }

    /// Brunt allows a table of this size. At most the default size is used.
    pub(super) fn set_limit(&mut self, limit_bytes: u32) {
        let limit_bytes = limit_bytes.min(TABLE_BYTES);
        if limit_bytes != self.limit_bytes {
            self.limit_bytes = limit_bytes;
            self.is_resized = true;
            self.evict(0);
        }
    }

    /// Appends the block of a head. A final one (not interim, not a trailer) gets the fields that
    /// every answer has.
    pub(super) fn encode(&mut self, fields: &[(&str, &str)], is_final: bool, block: &mut Vec<u8>) {
        if std::mem::take(&mut self.is_resized) {
            encode_size_update(block, self.limit_bytes);
        }
        for (name, value) in fields {
            self.put(name, value, block);
        }
        if !is_final {
            return;
        }
        self.put("server", "sim", block);
        if self.coding == HeadCoding::Churning {
            self.heads += 1;
            let tag = format!("\"{:08}\"", self.heads);
            self.put("etag", &tag, block);
        }
    }

    fn put(&mut self, name: &str, value: &str, block: &mut Vec<u8>) {
        let (name, value) = (name.as_bytes(), value.as_bytes());
        let is = |field: &&Field| field.0 == name && field.1 == value;
        let kept = self.entries.iter().position(|field| is(&field));
        if let Some(place) = kept {
            encode_indexed(block, STATIC_TABLE.len() + 1 + place);
            return;
        }
        let indexing = match self.coding {
            HeadCoding::Literal => Indexing::Without,
            HeadCoding::Indexed | HeadCoding::Churning => Indexing::Insert,
        };
        if encode_field(block, name, value, indexing) {
            let size_bytes = size_bytes(name, value);
            self.evict(size_bytes);
            if size_bytes <= self.limit_bytes {
                self.entries.push_front((name.to_vec(), value.to_vec()));
                self.bytes += size_bytes;
            }
        }
    }

    /// Makes room for an entry, as brunt's side does.
    fn evict(&mut self, room_bytes: u32) {
        while self.bytes + room_bytes > self.limit_bytes
            && let Some((name, value)) = self.entries.pop_back()
        {
            self.bytes -= size_bytes(&name, &value);
        }
    }
}

fn size_bytes(name: &[u8], value: &[u8]) -> u32 {
    (name.len() + value.len()) as u32 + FIELD_OVERHEAD_BYTES
}
