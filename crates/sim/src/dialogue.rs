//! What is spoken with the simulated server, above TCP and TLS.

/// The protocol above TCP and TLS.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Dialogue {
    /// HTTP/1.1.
    #[default]
    Http1,
    /// HTTP/2.
    Http2,
    /// Messages.
    Messages,
    /// WebSocket.
    WebSocket,
    /// Streams, which have no messages.
    Streams,
}
