//! How a side uses QUIC, and what all connections of a client or of a server share.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use quinn_proto::crypto::rustls::{QuicClientConfig, QuicServerConfig};
use quinn_proto::{
    ClientConfig, EndpointConfig, IdleTimeout, NoneTokenStore, RandomConnectionIdGenerator,
    ServerConfig, TransportConfig, VarInt,
};
use rustls::crypto::aws_lc_rs::cipher_suite::TLS13_AES_128_GCM_SHA256;
use rustls::quic::{Suite, Version};
use thiserror::Error;

use crate::tls::{ClientSide, ServerSide};

/// Unidirectional streams that a peer may have open: in HTTP/3 its control stream and two of
/// QPACK, and some of a kind that nobody knows (RFC 9114 section 7.2.8).
const PEER_STREAMS_MAX: u32 = 16;
/// Most bytes of a datagram that this side takes: those that fit into a frame of Ethernet over
/// IPv4. A peer that may send more looks for the largest on the way (RFC 9000 section 14.3). Over
/// loopback that is 64 KB, and each of its probes is padding that costs this side as much as 50
/// replies.
const DATAGRAM_BYTES_MAX: u16 = 1_472;

/// How one side uses QUIC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TransportOptions {
    /// Flow-control window that each stream gets, bytes, at most 2^62 - 1.
    pub stream_window_bytes: u64,
    /// Flow-control window of the connection, bytes, at most 2^62 - 1.
    pub connection_window_bytes: u64,
    /// Streams for requests that the peer may have open; 0 where it answers them.
    pub streams_max: u32,
    /// How long a connection may idle, nanoseconds; absent: for as long as the peer lets it.
    pub idle_timeout_ns: Option<u64>,
    /// Bytes of a datagram as long as nothing is known of the path, 1,200 to 65,527.
    pub datagram_bytes: u16,
}

impl Default for TransportOptions {
    /// Those of a client.
    fn default() -> Self {
        Self {
            // What a client has in order it reads at once: the windows bound what is kept behind
            // something that did not come.
            stream_window_bytes: 16 << 20,
            connection_window_bytes: 16 << 20,
            streams_max: 0,
            idle_timeout_ns: None,
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

/// What protects the first packets, which is fixed (RFC 9001 section 5.2).
fn initial_suite() -> Result<Suite, TransportError> {
    TLS13_AES_128_GCM_SHA256
        .tls13()
        .and_then(rustls::Tls13CipherSuite::quic_suite)
        .ok_or_else(|| TransportError::Tls("AES-128-GCM is missing".to_owned()))
}

/// How endpoints read packets.
fn endpoint() -> Result<EndpointConfig, TransportError> {
    let mut endpoint = EndpointConfig::default();
    endpoint
        .grease_quic_bit(false)
        .max_udp_payload_size(DATAGRAM_BYTES_MAX)
        .map_err(|error| TransportError::Tls(error.to_string()))?;
    Ok(endpoint)
}

/// How connections behave.
fn transport_config(options: TransportOptions) -> TransportConfig {
    let window = |bytes: u64| VarInt::from_u64(bytes).unwrap_or(VarInt::MAX);
    let idle = options.idle_timeout_ns.and_then(|ns| {
        // One that is too long for the wire is none.
        IdleTimeout::try_from(Duration::from_nanos(ns)).ok()
    });
    let mut transport = TransportConfig::default();
    transport
        .max_concurrent_bidi_streams(VarInt::from_u32(options.streams_max))
        .max_concurrent_uni_streams(VarInt::from_u32(PEER_STREAMS_MAX))
        .max_idle_timeout(idle)
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
        let crypto = QuicClientConfig::with_initial(config, initial_suite()?)
            .map_err(|error| TransportError::Tls(error.to_string()))?;
        let mut client = ClientConfig::new(Arc::new(crypto));
        client.transport_config(Arc::new(transport_config(options)));
        // Every connection is validated as a new one's address is.
        client.token_store(Arc::new(NoneTokenStore));
        let mut endpoint = endpoint()?;
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
        rustls::quic::ServerConnection::new(Arc::clone(&config), Version::V1, Vec::new())
            .map_err(|error| TransportError::Tls(error.to_string()))?;
        let crypto = QuicServerConfig::with_initial(config, initial_suite()?)
            .map_err(|error| TransportError::Tls(error.to_string()))?;
        let mut server = ServerConfig::with_crypto(Arc::new(crypto));
        let mut of_connections = transport_config(options);
        of_connections.send_window(SEND_WINDOW_BYTES);
        server
            .transport_config(Arc::new(of_connections))
            // A client keeps its address, which a kernel chooses a worker by.
            .migration(false);
        Ok(Self {
            endpoint: Arc::new(endpoint()?),
            server: Arc::new(server),
            origin,
        })
    }
}
