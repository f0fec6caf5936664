//! TCP by itself: bytes without units, or connections that are only opened.

use crate::{
    ByHand, ConnectionCost, Depth, DepthPlace, Greeting, ProtocolDescription, Transport, Unit,
};

pub(super) const DESCRIPTION: ProtocolDescription = ProtocolDescription {
    name: "TCP",
    about: "TCP by itself: streams of bytes one way, or connections that are only opened.",
    version_option: None,
    transport: Transport::Streams,
    schemes: ["tcp", "tls"],
    alpn: None,
    needs_alpn: false,
    unit: Unit::BYTES,
    carries_http: false,
    is_in_order: true,
    has_statuses: false,
    depth: Depth {
        option: "-c",
        many: "streams",
        place: DepthPlace::OfItsOwn("streams on each"),
        is_settled: false,
        // A connection is one.
        in_flight_max: 1,
        units_per_connection_max: u64::MAX,
    },
    greeting: Greeting::Nothing,
    cost: ConnectionCost::NONE,
    reply_bytes_least: 0,
    failures: &[],
    may_ask_to_replace: false,
    adds_frames: false,
    has_control_frames: false,
    may_push: false,
    takes_texts: false,
    kept_alive: None,
    in_clear_text: None,
    by_hand: ByHand::Netcat,
    malformed_advice: "check the port",
};
