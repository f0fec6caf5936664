//! The options of a run over WebSocket, beside those of any run.

use std::num::NonZeroU32;

use brunt_load::ReplyMatch;
use clap::Args;

use crate::source::Source;
use crate::values::{positive_duration, reply_match};

/// Whether the URL begins with ws:// or wss://.
pub(crate) fn is_websocket(url: &str) -> bool {
    let scheme = url.split_once("://").map_or("", |(scheme, _)| scheme);
    ["ws", "wss"]
        .iter()
        .any(|name| scheme.eq_ignore_ascii_case(name))
}

/// What is sent in place of requests.
#[derive(Debug, Args)]
#[command(next_help_heading = "WebSocket (ws:// and wss://)")]
pub(crate) struct MessageArguments {
    /// Message to send: text with \n, \xHH and the like, {conn}, {seq}, {rand:N} and {now}, or
    /// @FILE, @-, @env:NAME as they are. Several are sent in turns, or as --order says
    #[arg(long = "message", value_name = "MESSAGE", value_parser = Source::of)]
    pub(crate) messages: Vec<Source>,
    /// Message that each connection sends once, before all others
    #[arg(long, value_name = "MESSAGE", value_parser = Source::of)]
    pub(crate) first: Option<Source>,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "WebSocket (ws:// and wss://)")]
pub(crate) struct WebSocketArguments {
    #[command(flatten)]
    pub(crate) list: MessageArguments,
    /// Send binary messages instead of texts
    #[arg(long)]
    pub(crate) binary: bool,
    /// Messages of the server that answer one of brunt's; with 0, a message is done when the kernel
    /// has taken it
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) replies: u32,
    /// Which messages of the server are answers: any (all that begin while a message is in flight),
    /// echo (those equal to the message), or contains=TEXT (those that contain it); the others are
    /// counted as pushes
    #[arg(long, value_name = "MATCH", default_value = "any", value_parser = reply_match)]
    pub(crate) reply_match: ReplyMatch,
    /// Messages in flight per connection, answered in their order
    #[arg(long, value_name = "N", default_value = "1")]
    pub(crate) depth: NonZeroU32,
    /// Send a ping on each connection at this interval
    #[arg(long, value_name = "INTERVAL", value_parser = positive_duration)]
    pub(crate) ping: Option<u64>,
    /// Offer this subprotocol; the server has to choose one of those offered. Repeatable
    #[arg(long = "subprotocol", value_name = "NAME")]
    pub(crate) subprotocols: Vec<String>,
}
