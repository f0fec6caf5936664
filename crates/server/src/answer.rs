//! What each route answers, whatever the protocol that carries it.

use std::sync::atomic::Ordering;

use crate::counters::{FaultKind, Shared, WorkerCounters};
use crate::listeners::Protocol;
use crate::pattern;
use crate::raw::RawAnswer;
use crate::route::{Method, ROUTES, Route};

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
#[derive(Debug)]
pub(crate) enum Answer {
    /// 200 without a body.
    Null,
    /// `Null`, sent at once: it does not wait for answers behind it.
    NullAlone,
    /// `Null` at an instant.
    NullAt {
        at_ns: u64,
    },
    /// `Null` behind this many interim replies.
    Interim(u16),
    /// `Null` as the last answer on its connection.
    Last,
    Reply(FinalReply),
    /// A reply of HTTP/1.0, with a length, or one that ends with the connection.
    Http10 {
        has_length: bool,
    },
    /// No answer, ever.
    Silence,
    /// No answer: the connection ends.
    End(After),
    /// No answer: the stream is reset with this error code.
    ResetStream(u32),
    /// No answer: the connection takes no more requests, nor this one, for this error code.
    GoAway(u32),
    /// Bytes of a caller's own.
    Raw(&'static RawAnswer),
}

/// The whole answer of HTTP/1.1 to a plain request for `/`.
pub(crate) const NULL_ANSWER: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";

/// How a connection goes on after a reply.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum After {
    /// The next request is read.
    #[default]
    KeepOpen,
    Close,
    /// Closed in the way that loses what is in flight.
    Reset,
}

/// A head, and the body that follows it.
#[derive(Debug)]
pub(crate) struct FinalReply {
    pub(crate) status: u16,
    pub(crate) says: Says,
    pub(crate) body: Body,
}

impl FinalReply {
    fn new(status: u16, says: Says, source: BodySource) -> Self {
        let body = Body {
            source,
            finish: Finish::End,
            is_counted: true,
        };
        Self { status, says, body }
    }

    /// A text; to HEAD its head alone.
    pub(crate) fn text(status: u16, text: String, method: Method) -> Self {
        let says = Says::Length(text.len() as u64);
        let text = if method == Method::HEAD {
            String::new()
        } else {
            text
        };
        Self::new(status, says, BodySource::Text { text, position: 0 })
    }

    /// The counters as of now, as JSON on one line; not counted themselves.
    fn counters(shared: &Shared, method: Method) -> Self {
        let mut json = serde_json::to_string(&shared.totals()).unwrap_or_default();
        json.push('\n');
        let mut reply = Self::text(200, json, method);
        reply.body.is_counted = false;
        reply
    }

    /// Counts it, unless it breaks the protocol or is not to be counted.
    pub(crate) fn count(&self, counters: &WorkerCounters) {
        if self.body.is_counted && self.body.finish != Finish::Reset {
            counters.reply(self.status);
        }
    }
}

/// What a reply's head says besides its status.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Says {
    Nothing,
    /// Content-Length.
    Length(u64),
    /// Content-Length of 0 and Retry-After: 1 (RFC 9110 section 10.2.3).
    RetryLater,
    /// Trailer: Brunt-Length; in HTTP/1.1 also that the body comes in chunks.
    Trailer,
    Link,
}

impl Says {
    /// Gives `put` the fields of such a head in HTTP/2 and HTTP/3.
    pub(crate) fn fields(self, status: u16, mut put: impl FnMut(&[u8], &[u8])) {
        let mut digits = itoa::Buffer::new();
        put(b":status", digits.format(status).as_bytes());
        match self {
            Self::Nothing => {}
            Self::Length(bytes) => put(b"content-length", digits.format(bytes).as_bytes()),
            Self::RetryLater => {
                put(b"content-length", b"0");
                put(b"retry-after", b"1");
            }
            Self::Trailer => put(b"trailer", TRAILER),
            Self::Link => put(b"link", b"</style.css>; rel=preload"),
        }
    }
}

/// The trailer field of `/chunked`, which has the length of the body.
pub(crate) const TRAILER: &[u8] = b"brunt-length";

/// Status and fields of the interim reply with this number.
pub(crate) fn interim(number: u16) -> (u16, Says) {
    match number % 2 {
        0 => (100, Says::Nothing),
        _ => (103, Says::Link),
    }
}

/// What a request for `route` gets over `protocol`. Counts faults, draws and turns: to be called
/// once per request. For [`Route::Counters`], what was answered before is to be counted as sent.
pub(crate) fn answer_to(
    route: Route,
    method: Method,
    protocol: Protocol,
    context: &Context<'_>,
) -> Answer {
    let text =
        |status, text: &str| Answer::Reply(FinalReply::text(status, text.to_owned(), method));
    let no_such_route = || text(404, "no such route: /routes lists them\n");
    if !route.exists_in(protocol) {
        return no_such_route();
    }
    let is_head = method == Method::HEAD;
    let pattern = |bytes: u64| BodySource::pattern(if is_head { 0 } else { bytes });
    let empty = |status, says| Answer::Reply(FinalReply::new(status, says, pattern(0)));
    let fault = |fault, answer| {
        context.counters.fault(fault);
        answer
    };
    let refuse = || fault(FaultKind::Refused, Answer::ResetStream(protocol.refused()));
    match route {
        Route::Null => Answer::Null,
        Route::Bytes(bytes) => {
            Answer::Reply(FinalReply::new(200, Says::Length(bytes), pattern(bytes)))
        }
        Route::Chunked(bytes) => {
            let mut reply = FinalReply::new(200, Says::Trailer, pattern(bytes));
            if !is_head {
                reply.body.finish = Finish::Trailers(bytes);
            }
            Answer::Reply(reply)
        }
        // These have no body, so that there is no length to tell.
        Route::Status(status @ (204 | 304)) => empty(status, Says::Nothing),
        Route::Status(status) => empty(status, Says::Length(0)),
        Route::Delay(ns) => Answer::NullAt {
            at_ns: context.noticed_ns().saturating_add(ns),
        },
        Route::Stall(stall) => {
            let noticed_ns = context.noticed_ns();
            match stall.end_ns(noticed_ns) {
                at_ns if at_ns > noticed_ns => Answer::NullAt { at_ns },
                _ => Answer::Null,
            }
        }
        Route::Drift(drift) => {
            let noticed_ns = context.noticed_ns();
            Answer::NullAt {
                at_ns: noticed_ns.saturating_add(drift.delay_ns(noticed_ns)),
            }
        }
        Route::Locked(ns) => Answer::NullAt {
            at_ns: context.shared.pace.turn_end_ns(context.noticed_ns(), ns),
        },
        Route::Compute(ns) => {
            compute(ns, context);
            Answer::NullAlone
        }
        Route::Limit(limit) => {
            if context.shared.pace.exceeds(limit, context.noticed_ns()) {
                empty(limit.status, Says::RetryLater)
            } else {
                Answer::Null
            }
        }
        Route::Interim(count) => Answer::Interim(count),
        Route::Close => Answer::Last,
        Route::Http10 => Answer::Http10 { has_length: false },
        Route::Http10KeepAlive => Answer::Http10 { has_length: true },
        Route::Never => fault(FaultKind::Silent, Answer::Silence),
        Route::Reset => fault(FaultKind::Reset, Answer::End(After::Reset)),
        Route::Truncate(bytes) => {
            let mut reply = FinalReply::new(200, Says::Length(bytes), pattern(bytes / 2));
            reply.body.finish = Finish::Reset;
            fault(FaultKind::Truncated, Answer::Reply(reply))
        }
        Route::ResetStream(code) => {
            let code = code.unwrap_or(protocol.internal_error());
            fault(FaultKind::StreamReset, Answer::ResetStream(code))
        }
        Route::Refuse => refuse(),
        Route::RandomRefuse(percent) if context.shared.draw_percent() < percent => refuse(),
        Route::RandomRefuse(_) => Answer::Null,
        Route::GoAway(code) => {
            let code = code.unwrap_or(protocol.no_error());
            fault(FaultKind::GoneAway, Answer::GoAway(code))
        }
        Route::Raw(answers) => match answers.over(protocol) {
            Some(answer) => fault(FaultKind::Raw, Answer::Raw(answer)),
            None => no_such_route(),
        },
        Route::RefuseAfter(most) if !context.shared.refuses(most) => Answer::Null,
        Route::RefuseAfter(_) => text(503, "no more answers on this path\n"),
        Route::RandomClose(percent) if context.shared.draw_percent() < percent => {
            fault(FaultKind::Closed, Answer::End(After::Close))
        }
        Route::RandomClose(_) => Answer::Null,
        Route::Counters => Answer::Reply(FinalReply::counters(context.shared, method)),
        Route::Routes => text(200, ROUTES),
        // An upgrade is answered by who reads its head.
        Route::WebSocket | Route::Unknown => no_such_route(),
    }
}

/// Keeps this thread busy for `ns`, or until the server stops.
fn compute(ns: u64, context: &Context<'_>) {
    let end_ns = context.now_ns().saturating_add(ns);
    while context.now_ns() < end_ns && !context.shared.stop.load(Ordering::Relaxed) {
        std::hint::spin_loop();
    }
}

/// What a body consists of.
#[derive(Debug)]
pub(crate) enum BodySource {
    Pattern { position: u64, end: u64 },
    Text { text: String, position: usize },
}

impl BodySource {
    /// So many bytes of the pattern.
    pub(crate) fn pattern(end: u64) -> Self {
        Self::Pattern { position: 0, end }
    }

    /// Bytes that are still to come.
    pub(crate) fn left(&self) -> u64 {
        match self {
            Self::Pattern { position, end } => end - position,
            Self::Text { text, position } => (text.len() - position) as u64,
        }
    }

    /// Appends the next `bytes` of them, no more than are left.
    pub(crate) fn write(&mut self, bytes: u64, out: &mut Vec<u8>) {
        match self {
            Self::Pattern { position, .. } => {
                pattern::write_pattern(out, *position, *position + bytes);
                *position += bytes;
            }
            Self::Text { text, position } => {
                let end = *position + bytes as usize;
                out.extend_from_slice(&text.as_bytes()[*position..end]);
                *position = end;
            }
        }
    }

    /// Bytes of memory of a text.
    pub(crate) fn text_bytes(&self) -> usize {
        match self {
            Self::Text { text, .. } => text.capacity(),
            Self::Pattern { .. } => 0,
        }
    }
}

/// What follows the last byte of a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Finish {
    /// The end of the stream.
    End,
    /// Trailers that state this length.
    Trailers(u64),
    /// A reset, as of a server with a fault.
    Reset,
}

/// A body on its way.
#[derive(Debug)]
pub(crate) struct Body {
    pub(crate) source: BodySource,
    pub(crate) finish: Finish,
    /// Whether its bytes are counted as sent.
    pub(crate) is_counted: bool,
}

impl Body {
    /// Whether the head of the reply is all of it.
    pub(crate) fn is_nothing(&self) -> bool {
        self.source.left() == 0 && self.finish == Finish::End
    }
}
