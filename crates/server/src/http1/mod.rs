//! HTTP/1.0 and HTTP/1.1: from the bytes of requests to the bytes of answers.

mod body;
#[cfg(any(test, feature = "fuzz"))]
pub(crate) mod fuzz;
pub(crate) mod reply;
pub(crate) mod request;
pub(crate) mod stream;
mod upgrade;

use self::body::Body;
use self::reply::Length;
use self::request::{Found, KnownHead, Reader, Request};
use self::stream::{After, Stream};
use crate::answer::{Answer, Context, answer_to, counters_text};
use crate::batch::Batch;
use crate::counters::WorkerCounters;
use crate::decimal::write_decimal;
use crate::pattern;
use crate::protocol::Protocol;
use crate::raw::{RawAnswer, RawEnding};
use crate::route::{Method, Route};

/// What to do when the batch has been sent.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Next {
    /// Read the next request.
    Request,
    /// Wait for more input.
    Input,
    /// Go on with a reply.
    Stream(Stream),
    /// Speak WebSocket from here on, where messages get this.
    WebSocket(Route),
    /// End the connection.
    End(After),
}

impl Next {
    pub(super) fn after(after: After) -> Self {
        match after {
            After::KeepOpen => Self::Request,
            After::Close | After::Reset => Self::End(after),
        }
    }
}

/// Reads requests from `input` and appends their answers to `batch`, until more input is needed,
/// the batch is full, or an answer takes time. Also returns how much of the input was taken.
pub(crate) fn answer_input(
    reader: &mut Reader,
    known: &mut KnownHead,
    input: &[u8],
    batch: &mut Batch,
    context: &Context<'_>,
) -> (usize, Next) {
    let mut taken = 0;
    while !batch.is_full() {
        let next = match reader.read(&input[taken..], known) {
            Ok((length, found)) => {
                let head = &input[taken..taken + length];
                taken += length;
                match found {
                    Found::Request(request) => {
                        let counters = context.counters;
                        counters.request(request.route, request.method, length as u64);
                        if request.route == Route::WebSocket {
                            upgrade::answer(head, &request, batch.bytes(), counters)
                        } else {
                            let answer = answer_to(request.route, Protocol::Http1, context);
                            write(answer, &request, batch, context)
                        }
                    }
                    Found::ContinueWanted => {
                        context.counters.replies_interim.add(1);
                        batch.bytes().extend_from_slice(CONTINUE);
                        Next::Request
                    }
                    Found::Incomplete => return (taken, Next::Input),
                }
            }
            Err(error) => {
                context.counters.requests_malformed.add(1);
                context.counters.reply(400);
                let text = format!("{error}\n");
                reply::write_text(batch.bytes(), &NOT_A_REQUEST, 400, &text);
                Next::End(After::Close)
            }
        };
        if !matches!(next, Next::Request) {
            return (taken, next);
        }
    }
    (taken, Next::Request)
}

/// Stands in for a request that could not be read.
const NOT_A_REQUEST: Request = Request {
    method: Method::Other,
    route: Route::Unknown,
    body: Body::Length(0),
    keep_alive: false,
    http10: false,
    expects_continue: false,
};

const CONTINUE: &[u8] = b"HTTP/1.1 100 Continue\r\n\r\n";
const EARLY_HINTS: &[u8] = b"HTTP/1.1 103 Early Hints\r\nLink: </style.css>; rel=preload\r\n\r\n";

/// Appends an answer, or its beginning, to the batch.
fn write(answer: Answer, request: &Request, batch: &mut Batch, context: &Context<'_>) -> Next {
    let counters = context.counters;
    match answer {
        Answer::Null => null(request, batch, counters),
        Answer::NullAlone => {
            let next = null(request, batch, counters);
            batch.seal();
            next
        }
        Answer::NullAt { at_ns } => Next::Stream(Stream::NullAt {
            at_ns,
            request: *request,
        }),
        Answer::Interim(count) => {
            // RFC 9110 section 15.2: HTTP/1.0 knows no 1xx.
            for index in 0..if request.http10 { 0 } else { count } {
                counters.replies_interim.add(1);
                let interim = if index % 2 == 0 {
                    CONTINUE
                } else {
                    EARLY_HINTS
                };
                batch.bytes().extend_from_slice(interim);
            }
            null(request, batch, counters)
        }
        Answer::Last => null(&last(request), batch, counters),
        Answer::Status(status) => {
            let length = if status == 204 {
                Length::NoBody
            } else {
                Length::Bytes(0)
            };
            head(request, status, length, batch, counters);
            Next::after(After::request(request))
        }
        Answer::RetryLater(status) => {
            counters.reply(status);
            reply::write_retry_later(batch.bytes(), request, status);
            Next::after(After::request(request))
        }
        Answer::Text(status, text) => {
            counters.reply(status);
            reply::write_text(batch.bytes(), request, status, &text);
            Next::after(After::request(request))
        }
        Answer::Counters => {
            // What this batch already holds belongs into the figures.
            counters.bytes_sent.add(batch.settle());
            reply::write_text(batch.bytes(), request, 200, &counters_text(context.shared));
            batch.settle();
            Next::after(After::request(request))
        }
        Answer::Sized(bytes) => {
            head(request, 200, Length::Bytes(bytes), batch, counters);
            pattern(bytes, request, After::request(request), batch)
        }
        Answer::Chunked(bytes) => chunked(request, bytes, batch, counters),
        Answer::Truncated(promised) => {
            let length = Length::Bytes(promised);
            reply::write_head(batch.bytes(), request, 200, length, request.keep_alive);
            pattern(promised / 2, request, After::Close, batch)
        }
        Answer::Http10 => {
            counters.reply(200);
            batch.bytes().extend_from_slice(b"HTTP/1.0 200 OK\r\n\r\n");
            pattern(HTTP10_BODY_BYTES, request, After::Close, batch)
        }
        Answer::Http10KeepAlive => http10_keep_alive(request, batch, counters),
        Answer::Silence => Next::Stream(Stream::Silence),
        Answer::Raw(answer) => raw(answer, batch),
        // The last two are not among the answers of this protocol; nothing else comes near them.
        Answer::Cut | Answer::ResetStream(_) | Answer::GoAway(_) => Next::End(After::Close),
        Answer::Reset => Next::End(After::Reset),
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

fn null(request: &Request, batch: &mut Batch, counters: &WorkerCounters) -> Next {
    if request.keep_alive && !request.http10 {
        counters.reply(200);
        batch.push_null();
        return Next::Request;
    }
    head(request, 200, Length::Bytes(0), batch, counters);
    Next::after(After::request(request))
}

fn head(
    request: &Request,
    status: u16,
    length: Length,
    batch: &mut Batch,
    counters: &WorkerCounters,
) {
    counters.reply(status);
    reply::write_head(batch.bytes(), request, status, length, request.keep_alive);
}

/// A body of `end` bytes of the pattern, copied when it is short; none in the answer to HEAD.
fn pattern(end: u64, request: &Request, after: After, batch: &mut Batch) -> Next {
    let end = if request.method == Method::Head {
        0
    } else {
        end
    };
    if end <= reply::INLINE_BODY_BYTES_MAX.min(batch.piece_bytes_max() as u64) {
        pattern::write_pattern(batch.bytes(), 0, end);
        return Next::after(after);
    }
    Next::Stream(Stream::Pattern {
        position: 0,
        end,
        after,
    })
}

fn chunked(request: &Request, bytes: u64, batch: &mut Batch, counters: &WorkerCounters) -> Next {
    if request.http10 {
        // RFC 9112 section 7: no chunks for HTTP/1.0, so the body ends with the connection.
        head(&last(request), 200, Length::UntilClose, batch, counters);
        return pattern(bytes, request, After::Close, batch);
    }
    head(request, 200, Length::Chunked, batch, counters);
    let after = After::request(request);
    if request.method == Method::Head {
        return Next::after(after);
    }
    let mut stream = Stream::Chunks {
        position: 0,
        end: bytes,
        after,
    };
    // The first chunk goes with the head; for a short body it is the only one.
    stream.step(0, batch, counters);
    match stream {
        Stream::End(after) => Next::after(after),
        stream => Next::Stream(stream),
    }
}

fn http10_keep_alive(request: &Request, batch: &mut Batch, counters: &WorkerCounters) -> Next {
    counters.reply(200);
    let out = batch.bytes();
    out.extend_from_slice(b"HTTP/1.0 200 OK\r\nContent-Length: ");
    write_decimal(out, HTTP10_BODY_BYTES);
    if request.keep_alive {
        out.extend_from_slice(b"\r\nConnection: keep-alive");
    }
    out.extend_from_slice(b"\r\n\r\n");
    pattern(HTTP10_BODY_BYTES, request, After::request(request), batch)
}

fn raw(answer: &'static RawAnswer, batch: &mut Batch) -> Next {
    (answer.bytes.0)(batch.bytes(), 0);
    match answer.ending {
        RawEnding::Close => Next::End(After::Close),
        RawEnding::GoOn => Next::Request,
        RawEnding::Silence => Next::Stream(Stream::Silence),
        RawEnding::Endless(_) => Next::Stream(Stream::Endless(answer)),
    }
}
