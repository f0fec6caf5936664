//! How either side uses QUIC.

use std::time::Duration;

use quinn_proto::{EndpointConfig, IdleTimeout, TransportConfig, VarInt};
use rustls::crypto::aws_lc_rs::cipher_suite::TLS13_AES_128_GCM_SHA256;
use rustls::quic::Suite;
use thiserror::Error;

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
pub(super) fn initial_suite() -> Result<Suite, TransportError> {
    TLS13_AES_128_GCM_SHA256
        .tls13()
        .and_then(rustls::Tls13CipherSuite::quic_suite)
        .ok_or_else(|| TransportError::Tls("AES-128-GCM is missing".to_owned()))
}

/// How endpoints read packets.
pub(super) fn endpoint() -> Result<EndpointConfig, TransportError> {
    let mut endpoint = EndpointConfig::default();
    endpoint
        .grease_quic_bit(false)
        .max_udp_payload_size(DATAGRAM_BYTES_MAX)
        .map_err(|error| TransportError::Tls(error.to_string()))?;
    Ok(endpoint)
}

/// How connections behave.
pub(super) fn config(options: TransportOptions) -> TransportConfig {
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
