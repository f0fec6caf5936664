//! What is spoken with the simulated server, above TCP and TLS.

/// The protocol above TCP and TLS.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum ServedProtocol {
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

impl ServedProtocol {
    /// Whether the reference server speaks it in simulation.
    pub(crate) fn is_of_reference(self) -> bool {
        matches!(self, Self::Http1 | Self::Http2 | Self::WebSocket)
    }
}
