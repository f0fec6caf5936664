//! HTTP/1.1.

use crate::{
    ByHand, ConnectionCost, Depth, DepthPlace, Greeting, ProtocolDescription, Transport, Unit,
};

pub(super) const DESCRIPTION: ProtocolDescription = ProtocolDescription {
    name: "HTTP/1.1",
    about: "HTTP/1.1 (RFC 9112).",
    version_option: Some("--http1"),
    transport: Transport::Streams,
    schemes: ["http", "https"],
    alpn: Some("http/1.1"),
    needs_alpn: false,
    unit: Unit::REQUESTS,
    carries_http: true,
    is_in_order: true,
    has_statuses: true,
    depth: Depth {
        option: "--pipeline",
        many: "pipelined requests",
        place: DepthPlace::OfItsOwn("requests in a pipeline"),
        is_settled: false,
        in_flight_max: u32::MAX,
        units_per_connection_max: u64::MAX,
    },
    greeting: Greeting::Nothing,
    cost: ConnectionCost::NONE,
    // The shortest head a lenient parser takes: `HTTP/1.1 200`, and two bare line feeds. (A full
    // one is `HTTP/1.1 200 OK` and two CRLF, 19 bytes; RFC 9112 lets the reason be empty, section
    // 4, and a recipient accept bare line feeds, section 2.2.)
    reply_bytes_least: 14,
    failures: &[],
    may_ask_to_replace: false,
    adds_frames: false,
    has_control_frames: false,
    may_push: false,
    takes_texts: true,
    kept_alive: Some("keep-alive"),
    in_clear_text: None,
    by_hand: ByHand::Curl,
    malformed_advice: "check the port: what answers there does not speak HTTP/1.1; where it speaks \
                       HTTP/2 in clear text: --http2",
};
