//! Why a field block cannot be decoded.

use thiserror::Error;

/// Why a field block cannot be decoded: a connection error of COMPRESSION_ERROR (RFC 9113 section
/// 4.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum HpackError {
    /// The block ends inside a field.
    #[error("a field block ends inside a field")]
    Truncated,
    /// A number is over what fits, or has more bytes than it needs at that size.
    #[error("a number is too large")]
    Integer,
    /// A field refers to no entry of the tables.
    #[error("an index has no entry")]
    Index,
    /// A string is not well-formed Huffman code (RFC 7541 section 5.2).
    #[error("a string is not well-formed Huffman code")]
    Huffman,
    /// The table's size is set above what was allowed, or elsewhere than at the block's start.
    #[error("the table's size is set beyond the limit, or in the wrong place")]
    TableSize,
}
