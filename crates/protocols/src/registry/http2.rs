//! HTTP/2.

use crate::{
    ByHand, ConnectionCost, Depth, DepthPlace, FailureFamily, Greeting, ProtocolDescription,
    Transport, Unit,
};

const KIB: u64 = 1 << 10;

pub(super) const DESCRIPTION: ProtocolDescription = ProtocolDescription {
    name: "HTTP/2",
    about: "HTTP/2 (RFC 9113).",
    version_option: Some("--http2"),
    transport: Transport::Streams,
    schemes: ["http", "https"],
    alpn: Some("h2"),
    needs_alpn: true,
    unit: Unit::REQUESTS,
    carries_http: true,
    is_in_order: false,
    has_statuses: true,
    depth: Depth {
        option: "--streams",
        many: "streams",
        place: DepthPlace::BesideConnections("streams each"),
        is_settled: true,
        in_flight_max: u32::MAX,
        // Odd numbers of 31 bits (RFC 9113 section 5.1.1).
        units_per_connection_max: 1 << 30,
    },
    greeting: Greeting::Prescribed(Some(["settings", "of HTTP/2"])),
    cost: ConnectionCost {
        // Measured 0.3 KB, and room for frames that wait to be sent.
        state_bytes: KIB,
        // The peer's header table, an incomplete frame.
        state_bytes_budgets: [8 * KIB, 64 * KIB],
        window: None,
        copies_units: true,
    },
    // The header of a frame and a status from the static table, one byte (RFC 9113 section 4.1,
    // RFC 7541 section 6.1).
    reply_bytes_least: 10,
    failures: &[FailureFamily::Http2, FailureFamily::Streams],
    may_ask_to_replace: true,
    adds_frames: true,
    has_control_frames: false,
    may_push: false,
    takes_texts: false,
    kept_alive: None,
    in_clear_text: Some("in clear text"),
    by_hand: ByHand::Curl,
    malformed_advice: "check the port: what answers there does not speak HTTP/2",
};
