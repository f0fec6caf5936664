//! QUIC (RFC 9000, 9001, 9002) on quinn-proto: connections as values. Datagrams and a time go in,
//! streams and datagrams come out.
//!
//! What all connections of a side share is prepared once, as [`ClientTransport`] or
//! [`ServerTransport`]. Times are nanoseconds since the clock's origin, which the caller gives as
//! an [`Instant`] since quinn-proto calculates with such. Nothing here reads a clock.

use std::fmt;
use std::net::SocketAddr;
use std::num::NonZeroU16;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use quinn_proto::crypto::rustls::{QuicClientConfig, QuicServerConfig};
use quinn_proto::{
    ClientConfig, ConnectionError, ConnectionEvent, ConnectionHandle, EcnCodepoint, Endpoint,
    EndpointConfig, EndpointEvent, Event, IdleTimeout, NoneTokenStore, RandomConnectionIdGenerator,
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
#[derive(Clone, Debug)]
pub struct ClientTransport {
    pub(crate) endpoint: Arc<EndpointConfig>,
    pub(crate) client: ClientConfig,
    pub(crate) server_name: Arc<str>,
    /// The window of a connection.
    pub(crate) window_bytes: u64,
    /// The instant 0.
    pub(crate) origin: Instant,
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
#[derive(Clone, Debug)]
pub struct ServerTransport {
    pub(crate) endpoint: Arc<EndpointConfig>,
    pub(crate) server: Arc<ServerConfig>,
    /// The instant 0.
    pub(crate) origin: Instant,
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

/// Datagrams that are sent at once.
const DATAGRAMS_AT_ONCE: usize = 10;

/// Explicit congestion notification (RFC 9000 section 13.4): the mark of a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ecn {
    /// ECT(0).
    Capable0,
    /// ECT(1).
    Capable1,
    /// CE.
    CongestionExperienced,
}

impl Ecn {
    pub(crate) fn codepoint(self) -> EcnCodepoint {
        match self {
            Self::Capable0 => EcnCodepoint::Ect0,
            Self::Capable1 => EcnCodepoint::Ect1,
            Self::CongestionExperienced => EcnCodepoint::Ce,
        }
    }

    fn of(mark: EcnCodepoint) -> Self {
        match mark {
            EcnCodepoint::Ect0 => Self::Capable0,
            EcnCodepoint::Ect1 => Self::Capable1,
            EcnCodepoint::Ce => Self::CongestionExperienced,
        }
    }
}

/// What is to be sent at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sent {
    /// Bytes of each datagram; of the last one what is left.
    pub segment_bytes: NonZeroU16,
    /// The mark of all; absent for none.
    pub ecn: Option<Ecn>,
}

/// Packets of a connection that were sent and lost so far, and its round trip.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PathFigures {
    /// Packets sent.
    pub packets_sent: u64,
    /// Those of them that were held for lost (RFC 9002 section 6.1).
    pub packets_lost: u64,
    /// Bytes of these.
    pub bytes_lost: u64,
    /// The smoothed round trip (RFC 9002 section 5.3), nanoseconds.
    pub round_trip_ns: u64,
}

/// One connection. It must [tell](Self::tell) its endpoint of all that happens.
#[derive(Debug)]
pub(crate) struct Connection {
    handle: ConnectionHandle,
    pub(crate) inner: quinn_proto::Connection,
    origin: Instant,
}

impl Connection {
    /// A connection that begins, of an endpoint that knows it by `handle`. `origin` is the instant
    /// 0 of all times.
    pub(crate) fn new(
        handle: ConnectionHandle,
        inner: quinn_proto::Connection,
        origin: Instant,
    ) -> Self {
        Self {
            handle,
            inner,
            origin,
        }
    }

    pub(crate) fn instant(&self, now_ns: u64) -> Instant {
        self.origin + Duration::from_nanos(now_ns)
    }

    /// The nanoseconds of an instant.
    fn nanoseconds(&self, at: Instant) -> u64 {
        let since = at.saturating_duration_since(self.origin);
        u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
    }

    /// Takes what its endpoint made of a datagram.
    pub(crate) fn take(&mut self, event: ConnectionEvent) {
        self.inner.handle_event(event);
    }

    /// Appends what is to be sent next to `out`, which is empty, and gives to whom; absent for
    /// nothing. To be called after anything that happens on the connection, until there is nothing.
    pub(crate) fn transmit(
        &mut self,
        now_ns: u64,
        out: &mut Vec<u8>,
    ) -> Option<(SocketAddr, Sent)> {
        let now = self.instant(now_ns);
        let transmit = self.inner.poll_transmit(now, DATAGRAMS_AT_ONCE, out)?;
        let segment_bytes = transmit.segment_size.unwrap_or(transmit.size);
        let segment_bytes = u16::try_from(segment_bytes)
            .ok()
            .and_then(NonZeroU16::new)?;
        let sent = Sent {
            segment_bytes,
            ecn: transmit.ecn.map(Ecn::of),
        };
        Some((transmit.destination, sent))
    }

    /// When [`expire`](Self::expire) is to be called; [`u64::MAX`] for never. Changes with all that
    /// happens on the connection.
    pub(crate) fn deadline_ns(&mut self) -> u64 {
        let at = self.inner.poll_timeout();
        at.map_or(u64::MAX, |at| self.nanoseconds(at))
    }

    /// A timer is due.
    pub(crate) fn expire(&mut self, now_ns: u64) {
        let now = self.instant(now_ns);
        self.inner.handle_timeout(now);
    }

    /// Ends the connection with a code of the protocol above, and a reason for people. What says so
    /// to the peer is still to be sent.
    pub(crate) fn close(&mut self, code: u64, reason: String, now_ns: u64) {
        let now = self.instant(now_ns);
        let code = VarInt::from_u64(code).unwrap_or(VarInt::MAX);
        self.inner.close(now, code, Bytes::from(reason));
    }

    /// Whether it is over, and the peer has had the time to learn of it.
    pub(crate) fn is_drained(&self) -> bool {
        self.inner.is_drained()
    }

    /// Its packets that were sent and lost so far, and its round trip.
    pub(crate) fn path_figures(&self) -> PathFigures {
        let path = self.inner.stats().path;
        PathFigures {
            packets_sent: path.sent_packets,
            packets_lost: path.lost_packets,
            bytes_lost: path.lost_bytes,
            round_trip_ns: u64::try_from(path.rtt.as_nanos()).unwrap_or(u64::MAX),
        }
    }

    /// What happened.
    #[inline]
    pub(crate) fn poll(&mut self) -> Option<Result<Event, Lost>> {
        Some(match self.inner.poll()? {
            Event::ConnectionLost { reason } => Err(Lost::of(reason)),
            event => Ok(event),
        })
    }

    /// Has its endpoint forget it.
    pub(crate) fn forget(&self, endpoint: &mut Endpoint) {
        endpoint.handle_event(self.handle, EndpointEvent::drained());
    }

    /// Has the peer send so many bytes in advance of what is read, on all streams together.
    pub(crate) fn set_window(&mut self, bytes: u64) {
        let bytes = VarInt::from_u64(bytes).unwrap_or(VarInt::MAX);
        self.inner.set_receive_window(bytes);
    }

    /// Tells its endpoint of its ids and its end.
    pub(crate) fn tell(&mut self, endpoint: &mut Endpoint) {
        while let Some(event) = self.inner.poll_endpoint_events() {
            if let Some(answer) = endpoint.handle_event(self.handle, event) {
                self.inner.handle_event(answer);
            }
        }
    }
}

/// Why a connection is no more.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Lost {
    /// The peer speaks no version of QUIC that we do (RFC 9000 section 6).
    #[error("the peer does not speak version 1 of QUIC")]
    Version,
    /// The peer closed the connection by an error of QUIC.
    #[error("the peer closed the connection: {code}{}", reason_of(.reason))]
    Closed {
        /// Why.
        code: ErrorCode,
        /// What it says about that; empty for nothing.
        reason: String,
    },
    /// The peer closed the connection by a code of the protocol above.
    #[error("the peer closed the connection: code {code:#x}{}", reason_of(.reason))]
    ClosedAbove {
        /// Why.
        code: u64,
        /// What it says about that; empty for nothing.
        reason: String,
    },
    /// The peer broke the rules of QUIC, or the handshake of TLS failed on this side.
    #[error("{code}{}", reason_of(.reason))]
    Broken {
        /// What the connection is closed with.
        code: ErrorCode,
        /// What is wrong; may be empty.
        reason: String,
    },
    /// The peer knows nothing of the connection (stateless reset, RFC 9000 section 10.3).
    #[error("the peer knows nothing of the connection (stateless reset)")]
    Reset,
    /// Nothing came for as long as the peer lets a connection idle (RFC 9000 section 10.1).
    #[error("the connection was idle for too long")]
    Idle,
    /// This side closed it.
    #[error("the connection is closed")]
    Here,
}

/// What a peer says, behind the code; what it may do to a terminal is the caller's to see to.
fn reason_of(reason: &str) -> String {
    match reason {
        "" => String::new(),
        _ => format!(" ({reason})"),
    }
}

impl Lost {
    fn of(error: ConnectionError) -> Self {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        match error {
            ConnectionError::VersionMismatch => Self::Version,
            ConnectionError::TransportError(error) => Self::Broken {
                code: ErrorCode::of(error.code.into()),
                reason: error.reason,
            },
            ConnectionError::ConnectionClosed(close) => Self::Closed {
                code: ErrorCode::of(close.error_code.into()),
                reason: text(&close.reason),
            },
            ConnectionError::ApplicationClosed(close) => Self::ClosedAbove {
                code: close.error_code.into_inner(),
                reason: text(&close.reason),
            },
            ConnectionError::Reset => Self::Reset,
            ConnectionError::TimedOut => Self::Idle,
            // Ids of length zero do not run out.
            ConnectionError::LocallyClosed | ConnectionError::CidsExhausted => Self::Here,
        }
    }
}

/// Why a connection ends (RFC 9000 section 20.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ErrorCode {
    /// Nothing is wrong.
    NoError,
    /// The sender has a fault.
    InternalError,
    /// The server takes no new connection.
    ConnectionRefused,
    /// More data came than was allowed.
    FlowControlError,
    /// More streams were opened than were allowed.
    StreamLimitError,
    /// A frame came for a stream that cannot have it.
    StreamStateError,
    /// A stream has two lengths.
    FinalSizeError,
    /// A frame is malformed.
    FrameEncodingError,
    /// A transport parameter is missing, malformed or not allowed.
    TransportParameterError,
    /// More connection ids came than were allowed.
    ConnectionIdLimitError,
    /// The peer broke the protocol in a way that has no code of its own.
    ProtocolViolation,
    /// The token of a client is not one of this server's.
    InvalidToken,
    /// The application closed the connection in the handshake.
    ApplicationError,
    /// More of the handshake came than can be kept.
    CryptoBufferExceeded,
    /// Keys were changed in a wrong way.
    KeyUpdateError,
    /// The keys were used as often as they may be.
    AeadLimitReached,
    /// No path to the peer is usable.
    NoViablePath,
    /// The handshake failed with an alert of TLS, of this number (RFC 9001 section 4.8).
    Tls(u8),
    /// A code that the RFC does not define.
    Other(u64),
}

/// Each code that has a name, by its number.
const CODES: [(ErrorCode, &str); 17] = [
    (ErrorCode::NoError, "NO_ERROR"),
    (ErrorCode::InternalError, "INTERNAL_ERROR"),
    (ErrorCode::ConnectionRefused, "CONNECTION_REFUSED"),
    (ErrorCode::FlowControlError, "FLOW_CONTROL_ERROR"),
    (ErrorCode::StreamLimitError, "STREAM_LIMIT_ERROR"),
    (ErrorCode::StreamStateError, "STREAM_STATE_ERROR"),
    (ErrorCode::FinalSizeError, "FINAL_SIZE_ERROR"),
    (ErrorCode::FrameEncodingError, "FRAME_ENCODING_ERROR"),
    (
        ErrorCode::TransportParameterError,
        "TRANSPORT_PARAMETER_ERROR",
    ),
    (
        ErrorCode::ConnectionIdLimitError,
        "CONNECTION_ID_LIMIT_ERROR",
    ),
    (ErrorCode::ProtocolViolation, "PROTOCOL_VIOLATION"),
    (ErrorCode::InvalidToken, "INVALID_TOKEN"),
    (ErrorCode::ApplicationError, "APPLICATION_ERROR"),
    (ErrorCode::CryptoBufferExceeded, "CRYPTO_BUFFER_EXCEEDED"),
    (ErrorCode::KeyUpdateError, "KEY_UPDATE_ERROR"),
    (ErrorCode::AeadLimitReached, "AEAD_LIMIT_REACHED"),
    (ErrorCode::NoViablePath, "NO_VIABLE_PATH"),
];

/// The codes of alerts: `CRYPTO_ERROR`.
const TLS: std::ops::RangeInclusive<u64> = 0x100..=0x1ff;

impl ErrorCode {
    /// The code with this number.
    pub fn of(number: u64) -> Self {
        let known = usize::try_from(number).ok().and_then(|at| CODES.get(at));
        match known {
            Some((code, ..)) => *code,
            None if TLS.contains(&number) => Self::Tls((number - TLS.start()) as u8),
            None => Self::Other(number),
        }
    }

    /// The number of the code on the wire.
    pub fn number(self) -> u64 {
        match self {
            Self::Other(number) => number,
            Self::Tls(alert) => TLS.start() + u64::from(alert),
            _ => CODES
                .iter()
                .position(|(code, ..)| *code == self)
                .unwrap_or(0) as u64,
        }
    }

    fn known(self) -> Option<&'static (Self, &'static str)> {
        CODES.iter().find(|(code, ..)| *code == self)
    }
}

impl fmt::Display for ErrorCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tls(alert) => write!(f, "CRYPTO_ERROR (TLS alert {alert})"),
            _ => match self.known() {
                Some((_, name)) => f.write_str(name),
                None => write!(f, "code {:#x}", self.number()),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_have_the_numbers_and_names_of_the_rfc() {
        for number in 0..=0x10 {
            let code = ErrorCode::of(number);
            assert_eq!(code.number(), number);
            assert!(!matches!(code, ErrorCode::Other(_) | ErrorCode::Tls(_)));
        }
        for (number, text) in [
            (0x0, "NO_ERROR"),
            (0x2, "CONNECTION_REFUSED"),
            (0xa, "PROTOCOL_VIOLATION"),
            (0x10, "NO_VIABLE_PATH"),
            (0x11, "code 0x11"),
            (0x128, "CRYPTO_ERROR (TLS alert 40)"),
            (0x1ff, "CRYPTO_ERROR (TLS alert 255)"),
            (0x200, "code 0x200"),
        ] {
            let code = ErrorCode::of(number);
            assert_eq!((code.to_string().as_str(), code.number()), (text, number));
        }
    }
}
