//! What happens to the requests of a connection of HTTP/2 and HTTP/3. `Code` is the protocol's
//! error code.

use thiserror::Error;

use super::reply::{MalformedReply, Reply};

/// Something that a caller must know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event<Code> {
    /// Requests may be sent: in HTTP/2 the server's first SETTINGS are in, in HTTP/3 the handshake
    /// is complete. Once per connection.
    Ready,
    /// A request is answered.
    Reply {
        /// Its place, as it was given when the request was sent; it is free again.
        place: u32,
        /// The reply.
        reply: Reply,
    },
    /// A request failed; the connection goes on.
    Failed {
        /// Its place, as it was given when the request was sent; it is free again.
        place: u32,
        /// Why.
        why: StreamFailure<Code>,
        /// Bytes of its incomplete reply; in HTTP/2 with the RST_STREAM that ended it.
        discarded_bytes: u64,
    },
    /// The server takes no more requests (GOAWAY, RFC 9113 section 6.8, RFC 9114 section 5.2). Once
    /// per connection; the requests that it names as not processed follow as
    /// [`StreamFailure::NotProcessed`], the others may still be answered.
    GoAway {
        /// The server's reason; absent in HTTP/3, whose GOAWAY has none.
        code: Option<Code>,
    },
}

/// Why one request failed while its connection goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum StreamFailure<Code> {
    /// The server says that it did not process the request: by GOAWAY, or in HTTP/3 by
    /// H3_REQUEST_REJECTED.
    #[error("the server did not process the request")]
    NotProcessed,
    /// The server reset the stream.
    #[error("the server reset the stream: {0}")]
    Reset(Code),
    /// The reply breaks a rule, or [`Limits`](crate::Limits).
    #[error(transparent)]
    Malformed(#[from] MalformedReply),
    /// The server ended the stream before a final head. HTTP/2 has that as a malformed head.
    #[error("the stream ended before the reply's head")]
    Incomplete,
    /// The server raised the stream's window by 0 or beyond its maximum (RFC 9113 section 6.9).
    /// HTTP/3 leaves windows to QUIC.
    #[error("the server raised the stream's window by a wrong amount")]
    Window,
}
