//! One-way streams of bytes over TCP.

use crate::{ByHand, ConnectionCost, Depth, DepthPlace, Greeting, ProtocolDescription, Unit};

pub(crate) const DESCRIPTION: ProtocolDescription = ProtocolDescription {
    name: "TCP streams",
    about: "One-way streams of bytes over TCP.",
    schemes: ["tcp", "tls"],
    alpn: None,
    needs_alpn: false,
    unit: Unit::BYTES,
    carries_http: false,
    is_in_order: true,
    has_statuses: false,
    // A connection carries one.
    depth: Depth {
        option: "-c",
        many: "streams",
        place: DepthPlace::OfItsOwn("streams on each"),
        is_settled: false,
        units_per_connection_max: u64::MAX,
    },
    greeting: Greeting::Nothing,
    cost: ConnectionCost {
        // What the buffers of a socket hold that is sent from or received into all the time: what
        // the kernel gives them, where there are many, is a part of its memory for TCP.
        state_bytes: 1 << 20,
        ..ConnectionCost::NONE
    },
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
