//! What all connections of a client share.

use std::fmt;
use std::sync::Arc;
use std::time::Instant;

use quinn_proto::crypto::rustls::QuicClientConfig;
use quinn_proto::{ClientConfig, EndpointConfig, NoneTokenStore, RandomConnectionIdGenerator};
use rustls::quic::Version;

use super::transport::{self, TransportError, TransportOptions};
use crate::tls::ClientSide;

/// What all connections of a client share.
#[derive(Clone)]
pub struct ClientTransport {
    pub(super) endpoint: Arc<EndpointConfig>,
    pub(super) client: ClientConfig,
    pub(super) server_name: Arc<str>,
    /// The window of a connection.
    pub(crate) window_bytes: u64,
    /// The instant 0.
    pub(super) origin: Instant,
}

impl fmt::Debug for ClientTransport {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("ClientTransport")
            .field("server_name", &self.server_name)
            .finish_non_exhaustive()
    }
}

impl ClientTransport {
    /// Prepares what connections need. `origin` is the instant 0 of all times.
    ///
    /// # Errors
    ///
    /// TLS is not set up for QUIC.
    pub fn new(
        side: &ClientSide,
        options: TransportOptions,
        origin: Instant,
    ) -> Result<Self, TransportError> {
        // A session that is dropped at once tells whether there can be any.
        let name = side.server_name.clone();
        let config = Arc::clone(&side.config);
        rustls::quic::ClientConnection::new(Arc::clone(&config), Version::V1, name, Vec::new())
            .map_err(|error| TransportError::Tls(error.to_string()))?;
        let crypto = QuicClientConfig::with_initial(config, transport::initial_suite()?)
            .map_err(|error| TransportError::Tls(error.to_string()))?;
        let mut client = ClientConfig::new(Arc::new(crypto));
        client.transport_config(Arc::new(transport::config(options)));
        // Every connection is validated as a new one's address is.
        client.token_store(Arc::new(NoneTokenStore));
        let mut endpoint = transport::endpoint()?;
        endpoint.cid_generator(|| Box::new(RandomConnectionIdGenerator::new(0)));
        Ok(Self {
            endpoint: Arc::new(endpoint),
            client,
            server_name: side.server_name.to_str().into(),
            window_bytes: options.connection_window_bytes,
            origin,
        })
    }
}
