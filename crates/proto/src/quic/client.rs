//! What all connections of a client share.

use std::fmt;
use std::sync::Arc;
use std::time::Instant;

use quinn_proto::crypto::rustls::QuicClientConfig;
use quinn_proto::{
    ClientConfig, EndpointConfig, NoneTokenStore, RandomConnectionIdGenerator, TransportConfig,
    VarInt,
};
use rustls::crypto::aws_lc_rs::cipher_suite::TLS13_AES_128_GCM_SHA256;
use rustls::quic::Version;
use thiserror::Error;

use crate::tls::ClientSide;

/// Unidirectional streams that a server may have open: in HTTP/3 its control stream and two of
/// QPACK, and some of a kind that nobody knows (RFC 9114 section 7.2.8).
const PEER_STREAMS_MAX: u32 = 16;
/// Most bytes that a datagram may have (RFC 9000 section 18.2).
const DATAGRAM_BYTES_MAX: u16 = 65_527;

/// How clients use QUIC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TransportOptions {
    /// Flow-control window that each stream gets, bytes, at most 2^62 - 1.
    pub stream_window_bytes: u64,
    /// Flow-control window of the connection, bytes, at most 2^62 - 1.
    pub connection_window_bytes: u64,
    /// Bytes of a datagram as long as nothing is known of the path, 1,200 to 65,527.
    pub datagram_bytes: u16,
}

impl Default for TransportOptions {
    fn default() -> Self {
        Self {
            // No reply waits for this side.
            stream_window_bytes: 1 << 30,
            connection_window_bytes: 1 << 30,
            datagram_bytes: 1_200,
        }
    }
}

/// Why QUIC cannot be spoken.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum TransportError {
    /// TLS is not set up for QUIC.
    #[error("QUIC needs TLS 1.3, with a cipher suite of it: {0}")]
    Tls(String),
}

/// What all connections of a client share.
#[derive(Clone)]
pub struct ClientTransport {
    pub(super) endpoint: Arc<EndpointConfig>,
    pub(super) client: ClientConfig,
    pub(super) server_name: Arc<str>,
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
        // What protects the first packets is fixed (RFC 9001 section 5.2).
        let initial = TLS13_AES_128_GCM_SHA256
            .tls13()
            .and_then(rustls::Tls13CipherSuite::quic_suite)
            .ok_or_else(|| TransportError::Tls("AES-128-GCM is missing".to_owned()))?;
        let crypto = QuicClientConfig::with_initial(config, initial)
            .map_err(|error| TransportError::Tls(error.to_string()))?;
        let mut client = ClientConfig::new(Arc::new(crypto));
        client.transport_config(Arc::new(transport(options)));
        // Every connection is validated as a new one's address is.
        client.token_store(Arc::new(NoneTokenStore));
        let mut endpoint = EndpointConfig::default();
        endpoint
            .cid_generator(|| Box::new(RandomConnectionIdGenerator::new(0)))
            .grease_quic_bit(false);
        endpoint
            .max_udp_payload_size(DATAGRAM_BYTES_MAX)
            .map_err(|error| TransportError::Tls(error.to_string()))?;
        Ok(Self {
            endpoint: Arc::new(endpoint),
            client,
            server_name: side.server_name.to_str().into(),
            origin,
        })
    }
}

fn transport(options: TransportOptions) -> TransportConfig {
    let window = |bytes: u64| VarInt::from_u64(bytes).unwrap_or(VarInt::MAX);
    let mut transport = TransportConfig::default();
    transport
        .max_concurrent_bidi_streams(VarInt::from_u32(0))
        .max_concurrent_uni_streams(VarInt::from_u32(PEER_STREAMS_MAX))
        // How long a connection may idle is the server's to say.
        .max_idle_timeout(None)
        .stream_receive_window(window(options.stream_window_bytes))
        .receive_window(window(options.connection_window_bytes))
        .send_fairness(false)
        .initial_mtu(options.datagram_bytes)
        .mtu_discovery_config(None)
        .allow_spin(false)
        .datagram_receive_buffer_size(None)
        .datagram_send_buffer_size(0);
    transport
}
