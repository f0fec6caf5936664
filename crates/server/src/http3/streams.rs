//! The streams of a connection of HTTP/3: what each sends, as far as the client's windows allow.

use brunt_proto::http3::{ErrorCode, RequestReader, ServerConnection};

use super::reply;
use crate::answer::Finish;
use crate::counters::WorkerCounters;
use crate::head::RequestHead;
use crate::streams::{self, More, StreamState};

/// Bytes of a body in one DATA frame at most.
const PIECE_BYTES_MAX: u64 = 16 * 1024;

/// A request that is still coming.
#[derive(Debug, Default)]
pub(super) struct Incoming {
    pub(super) reader: RequestReader,
    /// Present once its head came.
    pub(super) head: Option<RequestHead>,
    /// Whether a client that waits for 100 has it.
    pub(super) is_continued: bool,
}

/// What a stream sends.
#[derive(Debug, Default)]
pub(super) struct Outgoing {
    /// What was appended, and of it what is written.
    unsent: Vec<u8>,
    written: usize,
    /// Whether it is not counted.
    is_uncounted: bool,
}

pub(super) type Http3Streams = streams::StreamTable<u64, Box<Incoming>, Outgoing>;
type Http3Stream = streams::Stream<Box<Incoming>, Outgoing>;

impl Http3Streams {
    /// Has a stream send what `append` appends.
    pub(super) fn append(&mut self, number: u64, append: impl FnOnce(&mut Vec<u8>)) {
        if let Some(stream) = self.get(number) {
            append(&mut stream.out.unsent);
            self.go_on(number);
        }
    }

    /// Has a stream send what `append` appends, and go on in a state.
    pub(super) fn send(
        &mut self,
        number: u64,
        is_counted: bool,
        state: StreamState<Box<Incoming>>,
        append: impl FnOnce(&mut Vec<u8>),
    ) {
        let Some(stream) = self.get(number) else {
            return;
        };
        append(&mut stream.out.unsent);
        stream.out.is_uncounted = !is_counted;
        let has_unsent = !stream.out.unsent.is_empty();
        self.set(number, state, Outgoing::default);
        if has_unsent {
            self.go_on(number);
        }
    }

    /// Writes what is due at `now_ns` and what the client takes.
    pub(super) fn advance(
        &mut self,
        now_ns: u64,
        connection: &mut ServerConnection,
        counters: &WorkerCounters,
    ) {
        while let Some((number, stream)) = self.next_due(now_ns) {
            if let StreamState::Waiting { at_ns } = stream.state {
                counters.reply(200);
                counters.lateness.add(1, now_ns.saturating_sub(at_ns));
                reply::write_null(&mut stream.out.unsent);
                stream.state = StreamState::Ending;
            }
            self.go_on(number);
        }
        while let Some((number, stream)) = self.next_ready() {
            let more = step(stream, number, now_ns, connection, counters);
            self.after(number, more);
        }
    }
}

/// Writes what was appended, and appends the next piece.
fn step(
    stream: &mut Http3Stream,
    number: u64,
    now_ns: u64,
    connection: &mut ServerConnection,
    counters: &WorkerCounters,
) -> More {
    let Outgoing {
        unsent,
        written,
        is_uncounted,
    } = &mut stream.out;
    if !unsent.is_empty() {
        let count = connection.write(number, &unsent[*written..]);
        if !*is_uncounted {
            counters.bytes_sent.add(count as u64);
        }
        *written += count;
        if *written < unsent.len() {
            return More::Later;
        }
        unsent.clear();
        *written = 0;
    }
    match &mut stream.state {
        StreamState::Body(body) if body.source.left() > 0 => {
            let bytes = body.source.left().min(PIECE_BYTES_MAX);
            reply::write_data_header(unsent, bytes);
            body.source.write(bytes, unsent);
            More::Now
        }
        StreamState::Body(body) => {
            if let Finish::Trailers(bytes) = body.finish {
                reply::write_trailers(unsent, bytes);
            }
            if body.finish == Finish::Reset {
                stream.state = StreamState::Resetting;
                // What was written is sent before the next turn; a reset drops the rest.
                return More::At(now_ns + 1);
            }
            stream.state = StreamState::Ending;
            More::Now
        }
        StreamState::Ending => {
            connection.finish(number);
            More::Nothing
        }
        StreamState::Resetting => {
            connection.reset(number, ErrorCode::InternalError.number());
            More::Nothing
        }
        StreamState::Endless(answer) => {
            answer.write_more(unsent, 0, usize::MAX);
            More::Now
        }
        StreamState::Incoming(_) | StreamState::Waiting { .. } | StreamState::Silence => {
            More::Later
        }
    }
}
