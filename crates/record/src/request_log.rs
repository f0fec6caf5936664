//! The log of a round: each request of the window that came to an end, in memory that is bounded.

use std::iter::Peekable;

use crate::{FailureKind, ReplyOutcome};

/// Requests that are kept together: a log grows without moving what is in it.
const CHUNK_REQUESTS: usize = 1 << 14;

/// How a request of the log ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LoggedEnd {
    /// A reply came.
    Reply(ReplyOutcome),
    /// The request failed.
    Failure(FailureKind),
}

/// A request that came to an end. Instants are nanoseconds from the start of the window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LoggedRequest {
    /// When the request was due.
    pub due_ns: u64,
    /// When the request was sent.
    pub sent_ns: u64,
    /// When the first byte of the reply was received; when the request ended, where there is no
    /// reply.
    pub first_byte_ns: u64,
    /// When the reply was complete, or the request failed.
    pub done_ns: u64,
    /// Bytes of the reply's body with their framing; of an incomplete reply, all bytes that came.
    pub body_bytes: u64,
    /// Bytes of the reply's head, at most [`u32::MAX`].
    pub head_bytes: u32,
    /// The number of its connection among those that are open at once. A connection that replaces
    /// another one has its number.
    pub connection: u32,
    /// The number of the request in the run's set.
    pub request: u32,
    /// What the opening of its connection took; [`LoggedRequest::REUSED`] behind the first request
    /// of a connection.
    pub(crate) opening_us: u32,
    /// How the request ended.
    pub end: LoggedEnd,
    /// The server closes the connection behind the reply, or it is lost.
    pub closes: bool,
}

impl LoggedRequest {
    pub(crate) const REUSED: u32 = u32::MAX;

    /// What the opening of its connection took, to the first instant at which a request could be
    /// sent; whole microseconds. Absent for all but the first request of a connection.
    pub fn opening_us(&self) -> Option<u64> {
        (self.opening_us != Self::REUSED).then_some(self.opening_us.into())
    }
}

/// The beginning of a reply.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LoggedResponse {
    /// When the reply was complete, nanoseconds on the clock of the recorder.
    pub done_ns: u64,
    /// The final head of the reply, with the empty line that ends it.
    pub head: Vec<u8>,
    /// The beginning of its content, without framing.
    pub content: Vec<u8>,
}

impl LoggedResponse {
    /// Bytes of content that are kept, at most.
    pub const BYTES_MAX: u32 = 2_048;
}

/// The log of one worker.
#[derive(Clone, Debug, Default)]
pub(crate) struct LogPart {
    chunks: Vec<Vec<LoggedRequest>>,
    /// Requests that are kept, at most.
    max: u64,
    len: u64,
    left_out: u64,
    /// Connections of the worker that are open at once, at most.
    connections: u32,
    pub(crate) responses: Vec<LoggedResponse>,
}

impl LogPart {
    pub(crate) fn new(max: u64, connections: u32) -> Self {
        Self {
            max,
            connections,
            ..Self::default()
        }
    }

    /// The reply that came last is the last of its connection.
    pub(crate) fn closes(&mut self) {
        if self.left_out == 0
            && let Some(last) = self.chunks.last_mut().and_then(|chunk| chunk.last_mut())
        {
            last.closes = true;
        }
    }

    pub(crate) fn push(&mut self, request: LoggedRequest) {
        if self.len == self.max {
            self.left_out += 1;
            return;
        }
        if self
            .chunks
            .last()
            .is_none_or(|chunk| chunk.len() == CHUNK_REQUESTS)
        {
            self.chunks.push(Vec::with_capacity(CHUNK_REQUESTS));
        }
        if let Some(chunk) = self.chunks.last_mut() {
            chunk.push(request);
            self.len += 1;
        }
    }
}

/// The log of a round.
#[derive(Clone, Debug, Default)]
pub struct RequestLog {
    parts: Vec<LogPart>,
    /// Start of the window, nanoseconds on the clock of the recorders.
    start_ns: u64,
}

impl RequestLog {
    /// Requests that a log holds, at most: 1 GiB.
    pub const REQUESTS_MAX: u64 = (1 << 30) / size_of::<LoggedRequest>() as u64;

    /// An empty one of a window that starts at `start_ns`.
    pub fn new(start_ns: u64) -> Self {
        Self {
            start_ns,
            ..Self::default()
        }
    }

    /// Adds the log of a worker.
    pub(crate) fn add(&mut self, part: LogPart) {
        self.parts.push(part);
    }

    /// Requests in it.
    pub fn len(&self) -> u64 {
        self.parts.iter().map(|part| part.len).sum()
    }

    /// Whether the log holds no request.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Requests that came to an end and found no room in it.
    pub fn left_out(&self) -> u64 {
        self.parts.iter().map(|part| part.left_out).sum()
    }

    /// The beginnings of the first replies, by their ends, as many as each worker was to keep.
    pub fn responses(&self) -> Vec<&LoggedResponse> {
        let parts = self.parts.iter();
        let mut responses: Vec<_> = parts.flat_map(|part| &part.responses).collect();
        responses.sort_by_key(|response| response.done_ns);
        responses
    }

    /// All requests, by their ends. Numbers of connections are those of the run.
    pub fn requests(&self) -> impl Iterator<Item = LoggedRequest> + '_ {
        let mut before = 0;
        let parts = self.parts.iter().map(|part| {
            let first = before;
            before += part.connections;
            let from_start = |ns: u64| ns.saturating_sub(self.start_ns);
            let requests = part.chunks.iter().flatten();
            let requests = requests.map(move |request| LoggedRequest {
                due_ns: from_start(request.due_ns),
                sent_ns: from_start(request.sent_ns),
                first_byte_ns: from_start(request.first_byte_ns),
                done_ns: from_start(request.done_ns),
                connection: first + request.connection,
                ..*request
            });
            requests.peekable()
        });
        ByEnd(parts.collect())
    }
}

/// The parts of a log, merged. Within each the ends are in order.
struct ByEnd<I: Iterator<Item = LoggedRequest>>(Vec<Peekable<I>>);

impl<I: Iterator<Item = LoggedRequest>> Iterator for ByEnd<I> {
    type Item = LoggedRequest;

    fn next(&mut self) -> Option<LoggedRequest> {
        if let [only] = &mut self.0[..] {
            return only.next();
        }
        let ends = self.0.iter_mut().enumerate();
        let ends = ends.filter_map(|(at, part)| Some((part.peek()?.done_ns, at)));
        let (_, first) = ends.min()?;
        self.0[first].next()
    }
}
