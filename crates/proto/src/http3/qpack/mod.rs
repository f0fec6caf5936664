//! QPACK (RFC 9204) without a dynamic table, for both sides of a connection: an endpoint that says
//! nothing of a table has none, so each field section stands alone.

mod decode;
mod encode;
mod error;
mod instructions;
mod static_table;
#[cfg(test)]
mod tests;

pub use decode::decode;
pub use encode::{encode_field, encode_prefix};
pub use error::QpackError;
pub(super) use instructions::{DecoderInstructions, check_encoder_instructions};
pub use static_table::{QpackTable, STATIC_TABLE};

pub use crate::fields::coding::{CodingError, is_text};
pub use crate::fields::keep::{Bytes, Keep};
