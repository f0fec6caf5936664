//! Messages over TCP, framed as a plan says.

use crate::{
    ByHand, ConnectionCost, Depth, DepthPlace, FailureFamily, Greeting, ProtocolDescription,
    Transport, Unit,
};

/// How many messages may be in flight, whatever carries them.
pub(super) const DEPTH: Depth = Depth {
    option: "--depth",
    many: "messages",
    place: DepthPlace::OfItsOwn("in flight on each"),
    is_settled: false,
    in_flight_max: u32::MAX,
    units_per_connection_max: u64::MAX,
};

/// What is filled in is written for each connection.
pub(super) const COST: ConnectionCost = ConnectionCost {
    copies_units: true,
    ..ConnectionCost::NONE
};

pub(super) const DESCRIPTION: ProtocolDescription = ProtocolDescription {
    name: "messages",
    about: "Messages over TCP, whose replies come in their order.",
    version_option: None,
    transport: Transport::Streams,
    schemes: ["tcp", "tls"],
    alpn: None,
    needs_alpn: false,
    unit: Unit::MESSAGES,
    carries_http: false,
    is_in_order: true,
    has_statuses: false,
    depth: DEPTH,
    greeting: Greeting::Planned,
    cost: COST,
    // A message may be done when it is sent.
    reply_bytes_least: 0,
    failures: &[FailureFamily::Framing, FailureFamily::Message],
    may_ask_to_replace: false,
    adds_frames: false,
    has_control_frames: false,
    may_push: true,
    takes_texts: false,
    kept_alive: None,
    in_clear_text: None,
    by_hand: ByHand::Netcat,
    malformed_advice: "check port and --reply: what answers there is framed in another way",
};
