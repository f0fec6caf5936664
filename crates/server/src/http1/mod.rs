//! HTTP/1.0 and HTTP/1.1: from the bytes of requests to the bytes of answers.

#[cfg(any(test, feature = "fuzz"))]
pub(crate) mod fuzz;
pub(crate) mod reply;
pub(crate) mod request;

use brunt_proto::http1::head_fields;
use brunt_proto::websocket::{accept_of, is_key};

use self::reply::{PendingReply, Step};
use self::request::{Body, KnownHead, Request, RequestFound, RequestReader};
use crate::answer::{
    After, Answer, BodySource, Context, FinalReply, Finish, Says, answer_to, interim,
};
use crate::batch::Batch;
use crate::counters::WorkerCounters;
use crate::listeners::Protocol;
use crate::pattern;
use crate::raw::{RawAnswer, RawEnding};
use crate::route::{Method, Route};

/// Reads requests from `input` and appends their answers to `batch`, until more input is needed,
/// the batch is full, or an answer takes time. Also returns how much of the input was taken.
pub(crate) fn answer_input(
    reader: &mut RequestReader,
    known: &mut KnownHead,
    input: &[u8],
    batch: &mut Batch,
    context: &Context<'_>,
) -> (usize, Step) {
    let mut taken = 0;
    while !batch.is_full() {
        let step = match reader.read(&input[taken..], known) {
            Ok((length, found)) => {
                let head = &input[taken..taken + length];
                taken += length;
                match found {
                    RequestFound::Request(request) => {
                        let counters = context.counters;
                        counters.request(request.route, request.method, length as u64);
                        if request.route == Route::Counters {
                            // What this batch already holds belongs into the figures.
                            counters.bytes_sent.add(batch.settle());
                        }
                        if request.route == Route::WebSocket {
                            upgrade(head, &request, batch, counters)
                        } else {
                            let (route, method) = (request.route, request.method);
                            let answer = answer_to(route, method, Protocol::Http1, context);
                            write(answer, &request, batch, context)
                        }
                    }
                    RequestFound::ContinueWanted => {
                        context.counters.replies_interim.add(1);
                        batch.bytes().extend_from_slice(CONTINUE);
                        Step::GoOn
                    }
                    RequestFound::Incomplete => return (taken, Step::Input),
                }
            }
            Err(error) => {
                context.counters.requests_malformed.add(1);
                let reply = FinalReply::text(400, format!("{error}\n"), Method::OTHER);
                write_reply(reply, &NOT_A_REQUEST, batch, context.counters)
            }
        };
        if !matches!(step, Step::GoOn | Step::End(After::KeepOpen)) {
            return (taken, step);
        }
    }
    (taken, Step::GoOn)
}

/// Stands in for a request that could not be read.
const NOT_A_REQUEST: Request = Request {
    method: Method::OTHER,
    route: Route::Unknown,
    body: Body::Length(0),
    keep_alive: false,
    http10: false,
    expects_continue: false,
};

const CONTINUE: &[u8] = b"HTTP/1.1 100 Continue\r\n\r\n";

/// Appends an answer, or its beginning, to the batch.
fn write(answer: Answer, request: &Request, batch: &mut Batch, context: &Context<'_>) -> Step {
    let counters = context.counters;
    match answer {
        Answer::Null => null(request, batch, counters),
        Answer::NullAlone => {
            let step = null(request, batch, counters);
            batch.seal();
            step
        }
        Answer::NullAt { at_ns } => Step::Reply(PendingReply::NullAt {
            at_ns,
            request: *request,
        }),
        Answer::Interim(count) => {
            // They say nothing of how the connection goes on.
            let kept = Request {
                keep_alive: true,
                ..*request
            };
            // RFC 9110 section 15.2: HTTP/1.0 knows no 1xx.
            let count = if request.http10 { 0 } else { count };
            for (status, says) in (0..count).map(interim) {
                counters.replies_interim.add(1);
                reply::write_head(batch.bytes(), &kept, status, says);
            }
            null(request, batch, counters)
        }
        Answer::Last => null(&last(request), batch, counters),
        Answer::Reply(reply) => write_reply(reply, request, batch, counters),
        Answer::Http10 { has_length } => http10(has_length, request, batch, counters),
        Answer::Silence => Step::Reply(PendingReply::Silence),
        Answer::Raw(answer) => raw(answer, batch),
        Answer::End(after) => Step::End(after),
        // These are not among the answers of this protocol; nothing comes near them.
        Answer::ResetStream(_) | Answer::GoAway(_) => Step::End(After::Close),
    }
}

/// Bytes of the body of the routes that answer with HTTP/1.0.
const HTTP10_BODY_BYTES: u64 = 26;

/// The request as the last one of its connection.
fn last(request: &Request) -> Request {
    Request {
        keep_alive: false,
        ..*request
    }
}

fn null(request: &Request, batch: &mut Batch, counters: &WorkerCounters) -> Step {
    if request.keep_alive && !request.http10 {
        counters.reply(200);
        batch.push_null();
        return Step::GoOn;
    }
    counters.reply(200);
    reply::write_head(batch.bytes(), request, 200, Says::Length(0));
    Step::End(request.after())
}

/// Appends a reply, or its beginning.
fn write_reply(
    reply: FinalReply,
    request: &Request,
    batch: &mut Batch,
    counters: &WorkerCounters,
) -> Step {
    reply.count(counters);
    let FinalReply { status, says, body } = reply;
    if says == Says::Trailer && request.http10 {
        // RFC 9112 section 7: no chunks for HTTP/1.0, so the body ends with the connection.
        reply::write_head(batch.bytes(), &last(request), status, Says::Nothing);
        return pattern(body.source.left(), After::Close, batch);
    }
    reply::write_head(batch.bytes(), request, status, says);
    let after = request.after();
    match (body.source, body.finish) {
        (BodySource::Text { text, .. }, _) => {
            batch.bytes().extend_from_slice(text.as_bytes());
            if !body.is_counted {
                batch.settle();
            }
            Step::End(after)
        }
        (source, Finish::End) => pattern(source.left(), after, batch),
        (source, Finish::Reset) => pattern(source.left(), After::Close, batch),
        (_, Finish::Trailers(end)) => {
            let mut stream = PendingReply::Pattern {
                position: 0,
                end,
                is_chunked: true,
                after,
            };
            // The first chunk goes with the head; for a short body it is the only one.
            stream.step(0, batch, counters);
            match stream {
                PendingReply::End(after) => Step::End(after),
                stream => Step::Reply(stream),
            }
        }
    }
}

/// A body of `end` bytes of the pattern, copied when it is short.
fn pattern(end: u64, after: After, batch: &mut Batch) -> Step {
    if end <= reply::INLINE_BODY_BYTES_MAX.min(batch.piece_bytes_max() as u64) {
        pattern::write_pattern(batch.bytes(), 0, end);
        return Step::End(after);
    }
    Step::Reply(PendingReply::Pattern {
        position: 0,
        end,
        is_chunked: false,
        after,
    })
}

/// Appends a reply of HTTP/1.0.
fn http10(
    has_length: bool,
    request: &Request,
    batch: &mut Batch,
    counters: &WorkerCounters,
) -> Step {
    counters.reply(200);
    let fields = match (has_length, request.keep_alive) {
        (false, _) => "",
        (true, false) => "Content-Length: 26\r\n",
        (true, true) => "Content-Length: 26\r\nConnection: keep-alive\r\n",
    };
    let head = format!("HTTP/1.0 200 OK\r\n{fields}\r\n");
    batch.bytes().extend_from_slice(head.as_bytes());
    let bytes = if request.method == Method::HEAD {
        0
    } else {
        HTTP10_BODY_BYTES
    };
    let after = if has_length {
        request.after()
    } else {
        After::Close
    };
    pattern(bytes, after, batch)
}

fn raw(answer: &'static RawAnswer, batch: &mut Batch) -> Step {
    (answer.bytes.0)(batch.bytes(), 0);
    match answer.ending {
        RawEnding::Close => Step::End(After::Close),
        RawEnding::GoOn => Step::GoOn,
        RawEnding::Silence => Step::Reply(PendingReply::Silence),
        RawEnding::Endless(_) => Step::Reply(PendingReply::Endless(answer)),
    }
}

/// Appends the answer to a request for a path of `/websocket`: what is asked for in its head is an
/// upgrade to WebSocket (RFC 6455 section 4.2).
fn upgrade(head: &[u8], request: &Request, batch: &mut Batch, counters: &WorkerCounters) -> Step {
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
        return Step::End(request.after());
    }
    let mut keys = values("Sec-WebSocket-Key");
    let key = keys
        .next()
        .filter(|key| is_key(key) && keys.next().is_none());
    let (Some(key), Some(route), Method::GET) = (key, messages_of(head), request.method) else {
        let text = "an upgrade is a GET with one Sec-WebSocket-Key of 16 bytes in base64\n";
        let reply = FinalReply::text(400, text.to_owned(), request.method);
        return write_reply(reply, request, batch, counters);
    };
    counters.reply(101);
    counters.connections_websocket.add(1);
    let mut offered = values("Sec-WebSocket-Protocol").filter(|name| !name.is_empty());
    reply::write_upgrade(batch.bytes(), &accept_of(key), offered.next());
    Step::WebSocket(route)
}

/// What messages get on the path that a head asks for.
fn messages_of(head: &[u8]) -> Option<Route> {
    let target = head.trim_ascii_start().split(|byte| *byte == b' ').nth(1)?;
    Route::of_messages(std::str::from_utf8(target).ok()?)
}
