//! Limits on what a reply may hold, whatever the protocol.

use crate::BodiesWanted;

/// How large a reply may be; one value per run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of one head, and likewise of the trailers of one body. In HTTP/1.1, the last empty
    /// line is included. In HTTP/2 and HTTP/3, they are those of the field block as it came, with
    /// the frame headers where it takes several frames, and likewise those of its fields decoded,
    /// each 32 bytes more than its name and value (RFC 9113 section 6.5.2, RFC 9114 section
    /// 4.2.2). Default 64 KiB.
    pub head_bytes: u32,
    /// Fields of one head, and likewise of the trailers of one body; in HTTP/2 and HTTP/3 without
    /// `:status`. Default 256; in HTTP/1.1 never more than
    /// [`MAX_HEADER_FIELDS`](crate::http1::MAX_HEADER_FIELDS).
    pub header_fields: u16,
    /// Interim (1xx) replies before one final reply. Default 16.
    pub interim_replies: u16,
    /// Bodies that are kept. Default none.
    pub bodies: BodiesWanted,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            head_bytes: 64 * 1024,
            header_fields: 256,
            interim_replies: 16,
            bodies: BodiesWanted::NONE,
        }
    }
}
