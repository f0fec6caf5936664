//! From requests to answers: what each route does.

use std::sync::atomic::Ordering;

use crate::counters::{Fault, Shared, WorkerCounters};
use crate::malformed::{Ending, Kind};
use crate::reply::{self, Batch, Length};
use crate::request::{Body, Found, KnownHead, Method, Reader, Request};
use crate::route::{ROUTES, Refusal, Route};
use crate::stream::{After, Stream};

/// What answers may depend on besides the request.
pub(crate) struct Context<'a> {
    pub(crate) shared: &'a Shared,
    pub(crate) counters: &'a WorkerCounters,
    /// When the request's last byte was noticed, or the reply before it was sent if that was
    /// later. May read the clock: only routes that need the time pay for it.
    pub(crate) noticed_ns: &'a dyn Fn() -> u64,
    /// Reads the clock.
    pub(crate) now_ns: &'a dyn Fn() -> u64,
}

/// What to do when the batch has been sent.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Next {
    /// Read the next request.
    Request,
    /// Wait for more input.
    Input,
    /// Go on with a reply.
    Stream(Stream),
    /// End the connection.
    End(After),
}

impl Next {
    fn after(after: After) -> Self {
        match after {
            After::KeepOpen => Self::Request,
            After::Close | After::Reset => Self::End(after),
        }
    }
}

/// Reads requests from `input` and appends their answers to `batch`, until more input is needed,
/// the batch is full, or an answer takes time. Also tells how much of the input was taken.
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
                taken += length;
                match found {
                    Found::Request(request) => {
                        if request.route == Route::Counters {
                            // Not to be found in its own figures, nor in those of the next one.
                            context.counters.bytes_received.subtract(length as u64);
                            context.counters.counters_requests.add(1);
                        } else {
                            context.counters.request(request.method);
                        }
                        answer(&request, batch, context)
                    }
                    Found::ContinueWanted => {
                        context.counters.interim.add(1);
                        batch
                            .bytes()
                            .extend_from_slice(b"HTTP/1.1 100 Continue\r\n\r\n");
                        Next::Request
                    }
                    Found::Incomplete => return (taken, Next::Input),
                }
            }
            Err(error) => {
                context.counters.malformed.add(1);
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

fn answer(request: &Request, batch: &mut Batch, context: &Context<'_>) -> Next {
    let counters = context.counters;
    match request.route {
        Route::Null => null(request, batch, counters),
        Route::Bytes(bytes) => sized(request, bytes, batch, counters),
        Route::Chunked(bytes) => chunked(request, bytes, batch, counters),
        Route::Status(status) => {
            let length = if status == 204 {
                Length::NoBody
            } else {
                Length::Bytes(0)
            };
            head(request, status, length, batch, counters);
            Next::after(After::request(request))
        }
        Route::Delay { ns } => null_at((context.noticed_ns)().saturating_add(ns), request),
        Route::Stall {
            silence_ns,
            period_ns,
        } => {
            // The periods lie fixed on the clock, so that all connections have one silence.
            let noticed_ns = (context.noticed_ns)();
            let into_period_ns = noticed_ns % period_ns;
            if into_period_ns >= silence_ns {
                return null(request, batch, counters);
            }
            null_at(noticed_ns - into_period_ns + silence_ns, request)
        }
        Route::Drift(drift) => {
            let noticed_ns = (context.noticed_ns)();
            null_at(
                noticed_ns.saturating_add(drift.delay_ns(noticed_ns)),
                request,
            )
        }
        Route::Locked { ns } => {
            let turn_end_ns = context.shared.pace.turn_end_ns((context.noticed_ns)(), ns);
            null_at(turn_end_ns, request)
        }
        Route::Compute { ns } => {
            compute(ns, context);
            let next = null(request, batch, counters);
            batch.seal();
            next
        }
        Route::Limit(limit) => {
            if !context.shared.pace.exceeds(limit, (context.noticed_ns)()) {
                return null(request, batch, counters);
            }
            counters.reply(limit.status);
            reply::write_retry_later(batch.bytes(), request, limit.status);
            Next::after(After::request(request))
        }
        Route::Drip { bytes, interval_ns } => {
            head(request, 200, Length::Bytes(bytes), batch, counters);
            let after = After::request(request);
            if request.method == Method::Head {
                return Next::after(after);
            }
            let next_ns = (context.noticed_ns)().saturating_add(interval_ns);
            Next::Stream(Stream::Drip {
                position: 0,
                end: bytes,
                next_ns,
                interval_ns,
                after,
            })
        }
        Route::Interim(count) => {
            // RFC 9110 section 15.2: HTTP/1.0 knows no 1xx.
            for index in 0..if request.http10 { 0 } else { count } {
                counters.interim.add(1);
                batch.bytes().extend_from_slice(if index % 2 == 0 {
                    b"HTTP/1.1 100 Continue\r\n\r\n".as_slice()
                } else {
                    b"HTTP/1.1 103 Early Hints\r\nLink: </style.css>; rel=preload\r\n\r\n"
                });
            }
            null(request, batch, counters)
        }
        Route::Close => null(
            &Request {
                keep_alive: false,
                ..*request
            },
            batch,
            counters,
        ),
        Route::Http10 => {
            counters.reply(200);
            batch.bytes().extend_from_slice(b"HTTP/1.0 200 OK\r\n\r\n");
            if request.method != Method::Head {
                reply::write_pattern(batch.bytes(), 0, HTTP10_BODY_BYTES);
            }
            Next::End(After::Close)
        }
        Route::Http10KeepAlive => http10_keep_alive(request, batch, counters),
        Route::Never => {
            counters.fault(Fault::Silent);
            Next::Stream(Stream::Silence)
        }
        Route::Reset => {
            counters.fault(Fault::Reset);
            Next::End(After::Reset)
        }
        Route::Truncate(promised) => {
            counters.fault(Fault::Truncated);
            let length = Length::Bytes(promised);
            reply::write_head(batch.bytes(), request, 200, length, request.keep_alive);
            let end = if request.method == Method::Head {
                0
            } else {
                promised / 2
            };
            pattern(end, After::Close, batch)
        }
        Route::Malformed(kind) => malformed(kind, batch, counters),
        Route::RefuseAfter(refusal) => refuse(refusal, request, batch, context),
        Route::RandomClose { percent } => {
            if context.shared.draw_percent() < percent {
                counters.fault(Fault::Closed);
                return Next::End(After::Close);
            }
            null(request, batch, counters)
        }
        Route::Counters => answer_counters(request, batch, context),
        Route::Routes => text(request, 200, &routes_text(), batch, counters),
        Route::Unknown => text(
            request,
            404,
            "no such route: /routes lists them\n",
            batch,
            counters,
        ),
    }
}

/// Bytes of the body of the routes that answer with HTTP/1.0.
const HTTP10_BODY_BYTES: u64 = 26;

fn null(request: &Request, batch: &mut Batch, counters: &WorkerCounters) -> Next {
    if request.keep_alive && !request.http10 {
        counters.reply(200);
        batch.push_null();
        return Next::Request;
    }
    head(request, 200, Length::Bytes(0), batch, counters);
    Next::after(After::request(request))
}

/// A null answer at an instant.
fn null_at(at_ns: u64, request: &Request) -> Next {
    Next::Stream(Stream::NullAt {
        at_ns,
        request: *request,
    })
}

/// Keeps this thread busy for `ns`, or until the server is told to stop.
fn compute(ns: u64, context: &Context<'_>) {
    let end_ns = (context.now_ns)().saturating_add(ns);
    while (context.now_ns)() < end_ns && !context.shared.stop.load(Ordering::Relaxed) {
        std::hint::spin_loop();
    }
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

fn text(
    request: &Request,
    status: u16,
    text: &str,
    batch: &mut Batch,
    counters: &WorkerCounters,
) -> Next {
    counters.reply(status);
    reply::write_text(batch.bytes(), request, status, text);
    Next::after(After::request(request))
}

fn sized(request: &Request, bytes: u64, batch: &mut Batch, counters: &WorkerCounters) -> Next {
    head(request, 200, Length::Bytes(bytes), batch, counters);
    let end = if request.method == Method::Head {
        0
    } else {
        bytes
    };
    pattern(end, After::request(request), batch)
}

/// A body of `end` bytes of the pattern, copied when it is short.
fn pattern(end: u64, after: After, batch: &mut Batch) -> Next {
    if end <= reply::INLINE_BODY_BYTES_MAX {
        reply::write_pattern(batch.bytes(), 0, end);
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
        let request = Request {
            keep_alive: false,
            ..*request
        };
        head(&request, 200, Length::UntilClose, batch, counters);
        let end = if request.method == Method::Head {
            0
        } else {
            bytes
        };
        return pattern(end, After::Close, batch);
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
    stream.step(0, batch.bytes(), counters);
    match stream {
        Stream::End(after) => Next::after(after),
        stream => Next::Stream(stream),
    }
}

fn http10_keep_alive(request: &Request, batch: &mut Batch, counters: &WorkerCounters) -> Next {
    counters.reply(200);
    let out = batch.bytes();
    out.extend_from_slice(b"HTTP/1.0 200 OK\r\nContent-Length: ");
    reply::write_decimal(out, HTTP10_BODY_BYTES);
    if request.keep_alive {
        out.extend_from_slice(b"\r\nConnection: keep-alive");
    }
    out.extend_from_slice(b"\r\n\r\n");
    if request.method != Method::Head {
        reply::write_pattern(out, 0, HTTP10_BODY_BYTES);
    }
    Next::after(After::request(request))
}

fn malformed(kind: Kind, batch: &mut Batch, counters: &WorkerCounters) -> Next {
    counters.fault(Fault::Malformed);
    kind.write(batch.bytes());
    match kind.ending() {
        Ending::Close => Next::End(After::Close),
        Ending::KeepOpen => Next::Request,
        Ending::Silence => Next::Stream(Stream::Silence),
        Ending::Endless => Next::Stream(Stream::Endless(kind)),
    }
}

fn refuse(refusal: Refusal, request: &Request, batch: &mut Batch, context: &Context<'_>) -> Next {
    if !context.shared.refuses(refusal) {
        return null(request, batch, context.counters);
    }
    if refusal.close {
        context.counters.fault(Fault::Closed);
        return Next::End(After::Close);
    }
    text(
        request,
        503,
        "no more answers on this path\n",
        batch,
        context.counters,
    )
}

fn answer_counters(request: &Request, batch: &mut Batch, context: &Context<'_>) -> Next {
    // What this batch already holds belongs into the figures.
    context.counters.bytes_sent.add(batch.settle());
    let mut json = serde_json::to_string(&context.shared.totals()).unwrap_or_default();
    json.push('\n');
    reply::write_text(batch.bytes(), request, 200, &json);
    batch.settle();
    Next::after(After::request(request))
}

/// The routes and the kinds of malformed answers, one per line.
fn routes_text() -> String {
    let mut text = String::new();
    for (pattern, meaning) in ROUTES {
        text.push_str(&format!("{pattern:<24} {meaning}\n"));
    }
    text.push_str("\nKIND is one of\n");
    for kind in Kind::all() {
        text.push_str(&format!("{:<24} {}\n", kind.name(), kind.meaning()));
    }
    text
}
