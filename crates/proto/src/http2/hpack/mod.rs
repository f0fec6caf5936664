//! HPACK (RFC 7541): header compression, for both sides of a connection.

mod decode;
mod encode;
mod error;
mod huffman;
mod primitive;
mod static_table;
mod table;
#[cfg(test)]
mod tests;

pub use decode::{Bytes, Decoded, Decoder, Keep};
pub use encode::{Indexing, encode_field, encode_indexed, encode_size_update};
pub use error::HpackError;
pub use primitive::is_text;
pub use static_table::STATIC_TABLE;

/// Bytes of a dynamic table unless SETTINGS_HEADER_TABLE_SIZE says otherwise.
pub const TABLE_BYTES: u32 = 4_096;

/// Bytes by which a field's size exceeds that of its name and value (RFC 7541 section 4.1).
pub const FIELD_OVERHEAD_BYTES: u32 = 32;
