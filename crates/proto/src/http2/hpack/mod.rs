//! HPACK (RFC 7541): header compression, for both sides of a connection.

mod decode;
mod encode;
mod error;
mod static_table;
mod table;
#[cfg(test)]
mod tests;

pub use decode::{Decoded, Decoder};
pub use encode::{Indexing, encode_field, encode_indexed, encode_size_update};
pub use error::HpackError;
pub use static_table::{HpackTable, STATIC_TABLE};

pub use crate::fields::FIELD_OVERHEAD_BYTES;
pub use crate::fields::coding::{CodingError, is_text};
pub use crate::fields::keep::{Bytes, Keep, StaticTable};

/// Bytes of a dynamic table unless SETTINGS_HEADER_TABLE_SIZE says otherwise.
pub const TABLE_BYTES: u32 = 4_096;
