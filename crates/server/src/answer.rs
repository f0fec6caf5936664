//! What each route answers, whatever the protocol that carries it.

use std::sync::atomic::Ordering;

use crate::counters::{Fault, Shared, WorkerCounters};
use crate::protocol::Protocol;
use crate::raw::RawAnswer;
use crate::route::{ROUTES, Route};

/// What answers may depend on besides the request.
pub(crate) struct Context<'a> {
    pub(crate) shared: &'a Shared,
    pub(crate) counters: &'a WorkerCounters,
    noticed_ns: Option<u64>,
    clock: &'a dyn Fn() -> u64,
}

impl<'a> Context<'a> {
    /// The context of requests that were noticed at this instant; absent: when an answer asks for
    /// it. `clock` reads the clock.
    pub(crate) fn new(
        shared: &'a Shared,
        counters: &'a WorkerCounters,
        noticed_ns: Option<u64>,
        clock: &'a dyn Fn() -> u64,
    ) -> Self {
        Self {
            shared,
            counters,
            noticed_ns,
            clock,
        }
    }

    /// When the request's last byte was noticed, or, in HTTP/1.1, the reply before it was sent if
    /// that was later. May read the clock: only routes that need the time pay for it.
    fn noticed_ns(&self) -> u64 {
        self.noticed_ns.unwrap_or_else(|| self.now_ns())
    }

    /// Reads the clock.
    pub(crate) fn now_ns(&self) -> u64 {
        (self.clock)()
    }
}

/// What a request gets. Who decides on a fault has counted it; who writes a reply counts that.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    /// 200 without a body.
    Null,
    /// 200 without a body, which is sent at once and does not wait for answers behind it.
    NullAlone,
    /// 200 without a body, at an instant.
    NullAt { at_ns: u64 },
    /// 200 without a body, behind this many interim replies.
    Interim(u16),
    /// 200 without a body, as the last answer on its connection.
    Last,
    /// A reply with this status and no body.
    Status(u16),
    /// A reply with this status, no body, and the advice to come back in a second.
    RetryLater(u16),
    /// A short text.
    Text(u16, String),
    /// The counters, not to be counted themselves.
    Counters,
    /// A body of this many bytes.
    Sized(u64),
    /// A body of this many bytes in chunks: its length is known at its end.
    Chunked(u64),
    /// Half of a body of this many bytes.
    Truncated(u64),
    /// A reply of HTTP/1.0 that ends with the connection.
    Http10,
    /// A reply of HTTP/1.0 with a length.
    Http10KeepAlive,
    /// No answer, ever.
    Silence,
    /// No answer: the connection is closed.
    Cut,
    /// No answer: the connection is reset.
    Reset,
    /// No answer: the stream is reset with this error code.
    ResetStream(u32),
    /// No answer: the connection takes no more requests, nor this one, for this error code.
    GoAway(u32),
    /// Bytes of a caller's own.
    Raw(&'static RawAnswer),
}

/// What a request for `route` gets over `protocol`. Counts faults, draws and turns: to be called
/// once per request.
pub(crate) fn answer_to(route: Route, protocol: Protocol, context: &Context<'_>) -> Answer {
    if !route.exists_in(protocol) {
        return no_such_route();
    }
    let counters = context.counters;
    match route {
        Route::Null => Answer::Null,
        Route::Bytes(bytes) => Answer::Sized(bytes),
        Route::Chunked(bytes) => Answer::Chunked(bytes),
        Route::Status(status) => Answer::Status(status),
        Route::Delay { ns } => Answer::NullAt {
            at_ns: context.noticed_ns().saturating_add(ns),
        },
        Route::Stall {
            silence_ns,
            period_ns,
        } => {
            // The periods lie fixed on the clock, so that all connections have one silence.
            let noticed_ns = context.noticed_ns();
            let into_period_ns = noticed_ns % period_ns;
            if into_period_ns >= silence_ns {
                return Answer::Null;
            }
            Answer::NullAt {
                at_ns: noticed_ns - into_period_ns + silence_ns,
            }
        }
        Route::Drift(drift) => {
            let noticed_ns = context.noticed_ns();
            Answer::NullAt {
                at_ns: noticed_ns.saturating_add(drift.delay_ns(noticed_ns)),
            }
        }
        Route::Locked { ns } => Answer::NullAt {
            at_ns: context.shared.pace.turn_end_ns(context.noticed_ns(), ns),
        },
        Route::Compute { ns } => {
            compute(ns, context);
            Answer::NullAlone
        }
        Route::Limit(limit) => {
            if context.shared.pace.exceeds(limit, context.noticed_ns()) {
                Answer::RetryLater(limit.status)
            } else {
                Answer::Null
            }
        }
        Route::Interim(count) => Answer::Interim(count),
        Route::Close => Answer::Last,
        Route::Http10 => Answer::Http10,
        Route::Http10KeepAlive => Answer::Http10KeepAlive,
        Route::Never => fault(Fault::Silent, Answer::Silence, counters),
        Route::Reset => fault(Fault::Reset, Answer::Reset, counters),
        Route::Truncate(bytes) => fault(Fault::Truncated, Answer::Truncated(bytes), counters),
        Route::ResetStream(code) => {
            let code = code.unwrap_or(protocol.internal_error());
            fault(Fault::StreamReset, Answer::ResetStream(code), counters)
        }
        Route::Refuse => refuse(protocol, counters),
        Route::RandomRefuse { percent } if context.shared.draw_percent() < percent => {
            refuse(protocol, counters)
        }
        Route::RandomRefuse { .. } => Answer::Null,
        Route::GoAway(code) => {
            let code = code.unwrap_or(protocol.no_error());
            fault(Fault::GoneAway, Answer::GoAway(code), counters)
        }
        Route::Raw(answers) => match answers.over(protocol) {
            Some(answer) => fault(Fault::Raw, Answer::Raw(answer), counters),
            None => no_such_route(),
        },
        Route::RefuseAfter(refusal) if !context.shared.refuses(refusal) => Answer::Null,
        Route::RefuseAfter(refusal) if refusal.close => fault(Fault::Closed, Answer::Cut, counters),
        Route::RefuseAfter(_) => Answer::Text(503, "no more answers on this path\n".to_owned()),
        Route::RandomClose { percent } if context.shared.draw_percent() < percent => {
            fault(Fault::Closed, Answer::Cut, counters)
        }
        Route::RandomClose { .. } => Answer::Null,
        Route::Counters => Answer::Counters,
        Route::Routes => Answer::Text(200, routes_text()),
        // An upgrade is answered by who reads its head.
        Route::WebSocket | Route::Unknown => no_such_route(),
    }
}

fn no_such_route() -> Answer {
    Answer::Text(404, "no such route: /routes lists them\n".to_owned())
}

fn fault(fault: Fault, answer: Answer, counters: &WorkerCounters) -> Answer {
    counters.fault(fault);
    answer
}

fn refuse(protocol: Protocol, counters: &WorkerCounters) -> Answer {
    let code = protocol.refused();
    fault(Fault::Refused, Answer::ResetStream(code), counters)
}

/// Keeps this thread busy for `ns`, or until the server stops.
fn compute(ns: u64, context: &Context<'_>) {
    let end_ns = context.now_ns().saturating_add(ns);
    while context.now_ns() < end_ns && !context.shared.stop.load(Ordering::Relaxed) {
        std::hint::spin_loop();
    }
}

/// The counters as of now, as JSON on one line.
pub(crate) fn counters_text(shared: &Shared) -> String {
    let mut json = serde_json::to_string(&shared.totals()).unwrap_or_default();
    json.push('\n');
    json
}

/// The routes, one per line.
fn routes_text() -> String {
    let mut text = String::new();
    for (pattern, meaning) in ROUTES {
        text.push_str(&format!("{pattern:<24} {meaning}\n"));
    }
    text
}
