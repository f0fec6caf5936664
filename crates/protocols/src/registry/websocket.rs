//! WebSocket.

use super::messages::{COST, DEPTH};
use crate::{ByHand, FailureFamily, Greeting, ProtocolDescription, Transport, Unit};

pub(super) const DESCRIPTION: ProtocolDescription = ProtocolDescription {
    name: "WebSocket",
    about: "WebSocket (RFC 6455).",
    version_option: None,
    transport: Transport::Streams,
    schemes: ["ws", "wss"],
    // Its connections begin with a request of HTTP/1.1.
    alpn: Some("http/1.1"),
    needs_alpn: false,
    unit: Unit::MESSAGES,
    carries_http: false,
    is_in_order: true,
    has_statuses: false,
    depth: DEPTH,
    greeting: Greeting::Prescribed(None),
    cost: COST,
    reply_bytes_least: 0,
    failures: &[FailureFamily::WebSocket, FailureFamily::Message],
    may_ask_to_replace: false,
    adds_frames: false,
    has_control_frames: true,
    may_push: true,
    takes_texts: false,
    kept_alive: None,
    in_clear_text: None,
    by_hand: ByHand::Websocat,
    malformed_advice: "check the URL: what answers there breaks WebSocket's rules",
};
