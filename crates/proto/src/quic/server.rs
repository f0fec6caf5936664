//! What all connections of a server share.

use std::fmt;
use std::sync::Arc;
use std::time::Instant;

use quinn_proto::crypto::rustls::QuicServerConfig;
use quinn_proto::{EndpointConfig, ServerConfig};

use super::transport::{self, TransportError, TransportOptions};
use crate::tls::ServerSide;

/// Bytes that a server holds of what it has sent on a connection and is not acknowledged.
const SEND_WINDOW_BYTES: u64 = 1 << 20;

/// What all connections of a server share.
#[derive(Clone)]
pub struct ServerTransport {
    pub(super) endpoint: Arc<EndpointConfig>,
    pub(super) server: Arc<ServerConfig>,
    /// The instant 0.
    pub(super) origin: Instant,
}

impl fmt::Debug for ServerTransport {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("ServerTransport")
            .finish_non_exhaustive()
    }
}

impl ServerTransport {
    /// Prepares what connections need. `origin` is the instant 0 of all times.
    ///
    /// # Errors
    ///
    /// TLS is not set up for QUIC.
    pub fn new(
        side: &ServerSide,
        options: TransportOptions,
        origin: Instant,
    ) -> Result<Self, TransportError> {
        let config = Arc::clone(&side.config);
        // A session that is dropped at once tells whether there can be any.
        rustls::quic::ServerConnection::new(
            Arc::clone(&config),
            rustls::quic::Version::V1,
            Vec::new(),
        )
        .map_err(|error| TransportError::Tls(error.to_string()))?;
        let crypto = QuicServerConfig::with_initial(config, transport::initial_suite()?)
            .map_err(|error| TransportError::Tls(error.to_string()))?;
        let mut server = ServerConfig::with_crypto(Arc::new(crypto));
        let mut of_connections = transport::config(options);
        of_connections.send_window(SEND_WINDOW_BYTES);
        server
            .transport_config(Arc::new(of_connections))
            // A client keeps its address, which a kernel chooses a worker by.
            .migration(false);
        Ok(Self {
            endpoint: Arc::new(transport::endpoint()?),
            server: Arc::new(server),
            origin,
        })
    }
}
