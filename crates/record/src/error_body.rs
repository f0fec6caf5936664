//! What a server said in its errors: the beginnings of their bodies.

use serde::{Deserialize, Serialize};

/// The beginning of the body of one response with an error status.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ErrorBody {
    /// The status.
    pub status: u16,
    /// The first bytes of the body, with what is not UTF-8 replaced.
    pub text: String,
    /// Whether the body was longer.
    pub is_cut: bool,
}

impl ErrorBody {
    /// Statuses of which a worker keeps one, the first that it meets.
    pub const KEPT_MAX: usize = 4;
    /// Bytes that are kept of a body.
    pub const BYTES_MAX: u32 = 512;
}
