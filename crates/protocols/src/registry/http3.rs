//! HTTP/3.

use crate::{
    ByHand, ConnectionCost, Depth, DepthPlace, FailureFamily, Greeting, ProtocolDescription,
    Transport, Unit, Window,
};

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;

pub(super) const DESCRIPTION: ProtocolDescription = ProtocolDescription {
    name: "HTTP/3",
    about: "HTTP/3 (RFC 9114), over QUIC.",
    version_option: Some("--http3"),
    transport: Transport::Datagrams,
    // QUIC has no clear text.
    schemes: ["https", "https"],
    alpn: Some("h3"),
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
        // RFC 9000 section 2.1.
        units_per_connection_max: 1 << 60,
    },
    // The handshake, whose time stands in the row of TLS.
    greeting: Greeting::Prescribed(None),
    cost: ConnectionCost {
        // The state of QUIC, with its TLS, before anything is in flight.
        state_bytes: 24 * KIB,
        // What was sent and not acknowledged, and what came out of order.
        state_bytes_budgets: [48 * KIB, 256 * KIB],
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
    failures: &[FailureFamily::Http3, FailureFamily::Streams],
    may_ask_to_replace: true,
    adds_frames: true,
    has_control_frames: false,
    may_push: false,
    takes_texts: false,
    kept_alive: None,
    in_clear_text: None,
    by_hand: ByHand::Curl,
    malformed_advice: "check the port: what answers there does not speak HTTP/3",
};
