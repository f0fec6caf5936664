//! What is said of each protocol.

use super::{
    ConnectionCost, Depth, DepthPlace, Greeting, ProtocolDescription, Transport, Unit, Window,
};

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;

/// Bytes over TCP without anything more: the descriptions say in what their protocols differ.
const PLAIN: ProtocolDescription = ProtocolDescription {
    name: "",
    about: "",
    version_option: None,
    transport: Transport::Streams,
    schemes: ["tcp", "tls"],
    alpn: None,
    needs_alpn: false,
    unit: Unit::BYTES,
    carries_http: false,
    is_in_order: true,
    has_statuses: false,
    depth: MESSAGES_IN_FLIGHT,
    greeting: Greeting::Nothing,
    cost: ConnectionCost::NONE,
    reply_bytes_least: 0,
    adds_frames: false,
    takes_texts: false,
    kept_alive: None,
    in_clear_text: None,
    malformed_advice: "check the port",
};

/// HTTP, of whatever version.
const HTTP: ProtocolDescription = ProtocolDescription {
    schemes: ["http", "https"],
    unit: Unit::REQUESTS,
    carries_http: true,
    has_statuses: true,
    ..PLAIN
};

/// HTTP of a version whose requests have a stream each.
const HTTP_OF_STREAMS: ProtocolDescription = ProtocolDescription {
    needs_alpn: true,
    is_in_order: false,
    depth: Depth {
        option: "--streams",
        many: "streams",
        place: DepthPlace::BesideConnections("streams each"),
        is_settled: true,
        ..MESSAGES_IN_FLIGHT
    },
    adds_frames: true,
    ..HTTP
};

/// How many messages may be in flight, whatever carries them.
const MESSAGES_IN_FLIGHT: Depth = Depth {
    option: "--depth",
    many: "messages",
    place: DepthPlace::OfItsOwn("in flight on each"),
    is_settled: false,
    in_flight_max: u32::MAX,
    units_per_connection_max: u64::MAX,
};

/// What is filled into messages is written for each connection.
const COPIES_OF_MESSAGES: ConnectionCost = ConnectionCost {
    copies_units: true,
    ..ConnectionCost::NONE
};

/// HTTP/1.1.
pub(super) const HTTP1: ProtocolDescription = ProtocolDescription {
    name: "HTTP/1.1",
    about: "HTTP/1.1 (RFC 9112).",
    version_option: Some("--http1"),
    alpn: Some("http/1.1"),
    depth: Depth {
        option: "--pipeline",
        many: "pipelined requests",
        place: DepthPlace::OfItsOwn("requests in a pipeline"),
        ..MESSAGES_IN_FLIGHT
    },
    // The shortest head a lenient parser takes: `HTTP/1.1 200`, and two bare line feeds. (A full
    // one is `HTTP/1.1 200 OK` and two CRLF, 19 bytes; RFC 9112 lets the reason be empty, section
    // 4, and a recipient accept bare line feeds, section 2.2.)
    reply_bytes_least: 14,
    takes_texts: true,
    kept_alive: Some("keep-alive"),
    malformed_advice: "check the port: what answers there does not speak HTTP/1.1; where it speaks \
                       HTTP/2 in clear text: --http2",
    ..HTTP
};

/// HTTP/2.
pub(super) const HTTP2: ProtocolDescription = ProtocolDescription {
    name: "HTTP/2",
    about: "HTTP/2 (RFC 9113).",
    version_option: Some("--http2"),
    alpn: Some("h2"),
    depth: Depth {
        // Odd numbers of 31 bits (RFC 9113 section 5.1.1).
        units_per_connection_max: 1 << 30,
        ..HTTP_OF_STREAMS.depth
    },
    greeting: Greeting::Prescribed(Some(["settings", "of HTTP/2"])),
    cost: ConnectionCost {
        // Measured 0.3 KB, and room for frames that wait to be sent.
        state_bytes: KIB,
        // The peer's header table, an incomplete frame.
        state_bytes_most: 64 * KIB,
        window: None,
        copies_units: true,
    },
    // The header of a frame and a status from the static table, one byte (RFC 9113 section 4.1,
    // RFC 7541 section 6.1).
    reply_bytes_least: 10,
    in_clear_text: Some("in clear text"),
    malformed_advice: "check the port: what answers there does not speak HTTP/2",
    ..HTTP_OF_STREAMS
};

/// HTTP/3.
pub(super) const HTTP3: ProtocolDescription = ProtocolDescription {
    name: "HTTP/3",
    about: "HTTP/3 (RFC 9114), over QUIC.",
    version_option: Some("--http3"),
    transport: Transport::Datagrams,
    // QUIC has no clear text.
    schemes: ["https", "https"],
    alpn: Some("h3"),
    depth: Depth {
        // RFC 9000 section 2.1.
        units_per_connection_max: 1 << 60,
        ..HTTP_OF_STREAMS.depth
    },
    // The handshake, whose time stands in the row of TLS.
    greeting: Greeting::Prescribed(None),
    cost: ConnectionCost {
        // The state of QUIC, with its TLS, before anything is in flight.
        state_bytes: 24 * KIB,
        // What was sent and not acknowledged, and what came out of order.
        state_bytes_most: 256 * KIB,
        // 16 MiB are 1.3 Gbit/s over a way of 100 ms, and all together 21 Gbit/s.
        window: Some(Window {
            bytes_all: 256 * MIB,
            bytes_each: [256 * KIB, 16 * MIB],
        }),
        copies_units: false,
    },
    // The header of a frame, the prefix of a field section and a status from the static table, one
    // byte (RFC 9114 section 7.1, RFC 9204 section 4.5).
    reply_bytes_least: 5,
    malformed_advice: "check the port: what answers there does not speak HTTP/3",
    ..HTTP_OF_STREAMS
};

/// Messages over TCP, framed as a plan says.
pub(super) const MESSAGES: ProtocolDescription = ProtocolDescription {
    name: "messages",
    about: "Messages over TCP, whose replies come in their order.",
    unit: Unit::MESSAGES,
    greeting: Greeting::Planned,
    cost: COPIES_OF_MESSAGES,
    malformed_advice: "check port and --reply: what answers there is framed in another way",
    ..PLAIN
};

/// WebSocket.
pub(super) const WEBSOCKET: ProtocolDescription = ProtocolDescription {
    name: "WebSocket",
    about: "WebSocket (RFC 6455).",
    schemes: ["ws", "wss"],
    // Its connections begin with a request of HTTP/1.1.
    alpn: Some("http/1.1"),
    unit: Unit::MESSAGES,
    greeting: Greeting::Prescribed(None),
    cost: COPIES_OF_MESSAGES,
    malformed_advice: "check the URL: what answers there breaks WebSocket's rules",
    ..PLAIN
};

/// TCP by itself: bytes without units, or connections that are only opened.
pub(super) const TCP: ProtocolDescription = ProtocolDescription {
    name: "TCP",
    about: "TCP by itself: streams of bytes one way, or connections that are only opened.",
    depth: Depth {
        option: "-c",
        many: "streams",
        place: DepthPlace::OfItsOwn("streams on each"),
        // A connection is one.
        in_flight_max: 1,
        ..MESSAGES_IN_FLIGHT
    },
    ..PLAIN
};
