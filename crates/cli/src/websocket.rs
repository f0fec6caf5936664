//! `brunt ws://…`: messages of WebSocket and what answers them.

use std::process::ExitCode;

use anyhow::{Result, bail};
use brunt_load::{RequestSet, Target, WebSocketExchange, WebSocketOpening};

use crate::args::LoadArguments;
use crate::load;
use crate::messages::{message_set, template};
use crate::plan::{Load, seed};
use crate::refusals::{Given, HTTP, MESSAGES, PIPELINE};
use crate::request::request;
use crate::websocket_args::{WebSocketArguments, is_websocket};

/// Whether a run over WebSocket is meant: by its URL, or by an option.
pub(crate) fn is_meant(load: &LoadArguments, given: &Given) -> bool {
    load.url.as_deref().is_some_and(is_websocket) || given.first_of(HTTP).is_some()
}

/// Runs the load.
pub(crate) fn run(
    typed: &LoadArguments,
    websocket: &WebSocketArguments,
    given: &Given,
) -> Result<ExitCode> {
    let url = match (typed.url.as_deref(), given.first_of(HTTP)) {
        (Some(url), _) if is_websocket(url) => url,
        (_, option) => bail!(
            "{} is about WebSocket; give a URL that begins with ws:// or wss://",
            option.unwrap_or("this")
        ),
    };
    if let Some(other) = typed.behind_url.first() {
        bail!("one server is loaded at a time; leave out {other}");
    }
    given.refuse(MESSAGES)?;
    given.refuse(PIPELINE)?;
    let (target, load) = load(typed, websocket, url, None)?;
    load::run_on(typed, Some(target), load)
}

/// The load on the server of a URL; with planned messages at this rate, where it is given.
pub(crate) fn load(
    typed: &LoadArguments,
    websocket: &WebSocketArguments,
    url: &str,
    rate: Option<f64>,
) -> Result<(Target, Load)> {
    let target = Target::parse_websocket(url, typed.unix_socket.clone())?;
    let messages = match (typed.hold, &websocket.list.messages[..]) {
        (true, []) => RequestSet::nothing(),
        (true, _) => bail!("--hold sends no messages but that of --first; leave out --message"),
        (false, _) => message_set(&websocket.list, "--message", typed)?,
    };
    let load = Load::at(typed, Some(&target), rate)?
        .with_list(Some(messages))
        .with_depth(websocket.depth)
        .speaking(exchange(typed, websocket)?);
    Ok((target, load))
}

/// How messages are exchanged.
fn exchange(load: &LoadArguments, typed: &WebSocketArguments) -> Result<WebSocketExchange> {
    let mut opening = request(load)?;
    opening.fill_in_nothing()?;
    let first = match &typed.list.first {
        Some(source) => Some(WebSocketOpening {
            message: template(source, "--first", load.output.redact)?.into(),
            replies: typed.replies,
        }),
        None => None,
    };
    Ok(WebSocketExchange {
        headers: opening.headers.into(),
        subprotocols: typed.subprotocols.clone(),
        is_binary: typed.binary,
        replies: typed.replies,
        matching: typed.reply_match.clone(),
        opening: first,
        ping_interval_ns: typed.ping,
        seed: seed(load),
    })
}
