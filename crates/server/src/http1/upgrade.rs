//! Upgrades to WebSocket (RFC 6455 section 4.2): what is asked for in the head of a request, and
//! the answer.

use brunt_proto::http1::head_fields;
use brunt_proto::websocket::{accept_of, is_key};

use super::reply;
use super::request::Request;
use super::{Next, write_reply};
use crate::answer::Reply;
use crate::batch::Batch;
use crate::counters::WorkerCounters;
use crate::route::{Method, Route};

/// Appends the answer to a request for a path of `/websocket`.
pub(super) fn answer(
    head: &[u8],
    request: &Request,
    batch: &mut Batch,
    counters: &WorkerCounters,
) -> Next {
    let values = |name: &'static str| {
        head_fields(head)
            .filter(move |(field, _)| field.eq_ignore_ascii_case(name.as_bytes()))
            .flat_map(|(_, value)| value.split(|byte| *byte == b','))
            .map(<[u8]>::trim_ascii)
    };
    let names =
        |field, value: &[u8]| values(field).any(|item: &[u8]| item.eq_ignore_ascii_case(value));
    let is_asked = names("Upgrade", b"websocket")
        && names("Connection", b"upgrade")
        && names("Sec-WebSocket-Version", b"13");
    if !is_asked || request.http10 {
        counters.reply(426);
        reply::write_upgrade_required(batch.bytes(), request);
        return Next::after(request.after());
    }
    let mut keys = values("Sec-WebSocket-Key");
    let key = keys
        .next()
        .filter(|key| is_key(key) && keys.next().is_none());
    let (Some(key), Some(route), Method::GET) = (key, messages_of(head), request.method) else {
        let text = "an upgrade is a GET with one Sec-WebSocket-Key of 16 bytes in base64\n";
        let reply = Reply::text(400, text.to_owned(), request.method);
        return write_reply(reply, request, batch, counters);
    };
    counters.reply(101);
    counters.connections_websocket.add(1);
    let mut offered = values("Sec-WebSocket-Protocol").filter(|name| !name.is_empty());
    reply::write_upgrade(batch.bytes(), &accept_of(key), offered.next());
    Next::WebSocket(route)
}

/// What messages get on the path that a head asks for.
fn messages_of(head: &[u8]) -> Option<Route> {
    let target = head.trim_ascii_start().split(|byte| *byte == b' ').nth(1)?;
    Route::of_messages(std::str::from_utf8(target).ok()?)
}
