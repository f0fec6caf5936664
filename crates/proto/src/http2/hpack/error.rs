//! Why a field block cannot be decoded.

use thiserror::Error;

use crate::fields::coding::CodingError;

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
