//! Why a field section cannot be decoded.

use thiserror::Error;

use crate::fields::coding::CodingError;

/// Why a field section cannot be decoded: a connection error of QPACK_DECOMPRESSION_FAILED (RFC
/// 9204 section 2.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum QpackError {
    /// A number or a string cannot be read.
    #[error(transparent)]
    Coding(#[from] CodingError),
    /// A field refers to no entry of the static table.
    #[error("an index has no entry")]
    Index,
    /// The section needs a dynamic table.
    #[error("a field refers to the dynamic table, which is not allowed")]
    Dynamic,
    /// The base of the section is below 0 (RFC 9204 section 4.5.1.2).
    #[error("the base of a field section is below 0")]
    Base,
}
