//! What is spoken with the simulated server, above TCP and TLS.

use super::settings::SimSettings;

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
    /// Whether the reference server speaks it in this simulation.
    pub(crate) fn is_of_reference(self, settings: &SimSettings) -> bool {
        match self {
            Self::Http1 => settings.reference.is_some(),
            Self::Http2 | Self::WebSocket => true,
            Self::Messages | Self::Streams => false,
        }
    }
}
