//! The protocols that the server speaks.

/// The protocol of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Protocol {
    /// HTTP/1.0 and HTTP/1.1.
    Http1,
    Http2,
    /// Messages of WebSocket, each in the place of a request.
    WebSocket,
}
