//! What HTTP/2 and HTTP/3 share: messages that are fields and DATA, and how fields are written.

pub(crate) mod coding;
mod huffman;
pub(crate) mod reply;
pub(crate) mod request;

/// Bytes by which a field's size exceeds that of its name and value (RFC 7541 section 4.1, RFC 9114
/// section 4.2.2).
pub const FIELD_OVERHEAD_BYTES: u32 = 32;
