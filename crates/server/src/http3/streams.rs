//! The streams in flight on a connection, and what each has still to send: as far as the client's
//! windows allow, in its own time, the others in turn.

use std::collections::{BTreeMap, VecDeque};

use brunt_proto::http3::{ErrorCode, RequestReader, ServerConnection};

use super::reply;
use crate::body::{Body, Finish, More};
use crate::counters::WorkerCounters;
use crate::head::Head;
use crate::raw::RawAnswer;
use crate::wakes::Wakes;

/// Bytes of a body in one DATA frame at most.
const PIECE_BYTES_MAX: u64 = 16 * 1024;

/// A request that is still coming.
#[derive(Debug, Default)]
pub(super) struct Incoming {
    pub(super) reader: RequestReader,
    /// Present once its head came.
    pub(super) head: Option<Head>,
    /// Whether a client that waits for 100 has it.
    pub(super) is_continued: bool,
    /// What its reader keeps.
    kept_bytes: usize,
}

/// Where a stream is.
#[derive(Debug)]
pub(super) enum State {
    Incoming(Box<Incoming>),
    /// The null answer is due at this instant.
    Waiting {
        at_ns: u64,
    },
    Body(Body),
    /// Nothing follows what was appended.
    Ending,
    /// A reset follows when what was written has been sent.
    Resetting,
    /// The rest of a raw answer that has no end.
    Endless(&'static RawAnswer),
    /// Nothing, until the client gives it up.
    Silence,
}

#[derive(Debug)]
struct Stream {
    state: State,
    /// What was appended, and of it what is written.
    unsent: Vec<u8>,
    written: usize,
    /// What was written in all.
    written_bytes: u64,
    /// Whether what it sends is counted.
    is_counted: bool,
    is_ready: bool,
    /// When the stream goes on, if it waits for that instant.
    wake_ns: Option<u64>,
}

/// The streams of one connection, by their numbers.
#[derive(Debug, Default)]
pub(super) struct Streams {
    by_number: BTreeMap<u64, Stream>,
    /// Streams that have something to send and, as far as they know, a window for it.
    ready: VecDeque<u64>,
    wakes: Wakes<u64>,
    progress: Progress,
    /// What the readers of requests keep.
    kept_bytes: usize,
}

/// How a connection got on since this was last asked.
#[derive(Debug, Default)]
pub(super) struct Progress {
    /// A head came, or a request or an answer is complete.
    pub(super) is_step: bool,
    /// Bytes of bodies that came, and of answers that the client's windows took.
    pub(super) bytes: u64,
}

impl Streams {
    pub(super) fn is_empty(&self) -> bool {
        self.by_number.is_empty()
    }

    /// Begins a stream, whose request is coming.
    pub(super) fn open(&mut self, number: u64) {
        let stream = Stream {
            state: State::Incoming(Box::default()),
            unsent: Vec::new(),
            written: 0,
            written_bytes: 0,
            is_counted: true,
            is_ready: false,
            wake_ns: None,
        };
        self.by_number.insert(number, stream);
    }

    /// The request of this stream, if it is not complete.
    pub(super) fn incoming(&mut self, number: u64) -> Option<&mut Incoming> {
        match &mut self.by_number.get_mut(&number)?.state {
            State::Incoming(incoming) => Some(incoming),
            _ => None,
        }
    }

    /// Takes note of what the reader of a request keeps; gives what all of them do.
    pub(super) fn note_kept(&mut self, number: u64) -> usize {
        if let Some(incoming) = self.incoming(number) {
            let kept_bytes = incoming.reader.kept_bytes();
            let before = std::mem::replace(&mut incoming.kept_bytes, kept_bytes);
            self.kept_bytes = self.kept_bytes - before + kept_bytes;
        }
        self.kept_bytes
    }

    /// What the readers of requests keep.
    pub(super) fn kept_bytes(&self) -> usize {
        self.kept_bytes
    }

    /// Has a stream send what `append` appends, and go on in a state.
    pub(super) fn send(
        &mut self,
        number: u64,
        is_counted: bool,
        state: State,
        append: impl FnOnce(&mut Vec<u8>),
    ) {
        let Some(stream) = self.by_number.get_mut(&number) else {
            return;
        };
        append(&mut stream.unsent);
        stream.is_counted = is_counted;
        if let State::Waiting { at_ns } = state {
            self.wakes.plan(number, &mut stream.wake_ns, Some(at_ns));
        }
        if let State::Incoming(incoming) = &stream.state {
            self.kept_bytes -= incoming.kept_bytes;
        }
        let has_more = matches!(state, State::Body(_) | State::Endless(_) | State::Ending);
        stream.state = state;
        if has_more || !stream.unsent.is_empty() {
            self.go_on(number);
        }
    }

    /// Has a stream send what `append` appends while its request is still coming.
    pub(super) fn send_interim(&mut self, number: u64, append: impl FnOnce(&mut Vec<u8>)) {
        if let Some(stream) = self.by_number.get_mut(&number) {
            append(&mut stream.unsent);
            self.go_on(number);
        }
    }

    /// The client's windows let more of a stream through.
    pub(super) fn go_on(&mut self, number: u64) {
        if let Some(stream) = self.by_number.get_mut(&number)
            && !std::mem::replace(&mut stream.is_ready, true)
        {
            self.ready.push_back(number);
        }
    }

    /// Ends a stream; whether there was one, and an answer was still due on it.
    pub(super) fn end(&mut self, number: u64) -> Option<bool> {
        let mut stream = self.by_number.remove(&number)?;
        if let State::Incoming(incoming) = &stream.state {
            self.kept_bytes -= incoming.kept_bytes;
        }
        if stream.is_ready {
            self.ready.retain(|other| *other != number);
        }
        self.wakes.plan(number, &mut stream.wake_ns, None);
        Some(matches!(stream.state, State::Waiting { .. }))
    }

    /// The highest stream, if it is not below `from`.
    pub(super) fn last_from(&self, from: u64) -> Option<u64> {
        let (&number, _) = self.by_number.last_key_value()?;
        (number >= from).then_some(number)
    }

    /// Ends all of them; how many answers were due.
    pub(super) fn end_all(&mut self) -> u64 {
        let due = self
            .by_number
            .values()
            .filter(|stream| matches!(stream.state, State::Waiting { .. }))
            .count();
        *self = Self::default();
        due as u64
    }

    /// What is noted of how the connection gets on.
    pub(super) fn progress(&mut self) -> &mut Progress {
        &mut self.progress
    }

    /// When the next stream wants to go on, if it waits for nothing else.
    pub(super) fn wake_ns(&self) -> Option<u64> {
        self.wakes.first_ns()
    }

    /// Writes what is due at `now_ns` and what the client takes.
    pub(super) fn advance(
        &mut self,
        now_ns: u64,
        connection: &mut ServerConnection,
        counters: &WorkerCounters,
    ) {
        while let Some(number) = self.wakes.next(now_ns) {
            let Some(stream) = self.by_number.get_mut(&number) else {
                continue;
            };
            stream.wake_ns = None;
            if let State::Waiting { at_ns } = stream.state {
                counters.reply(200);
                counters.lateness.add(1, now_ns.saturating_sub(at_ns));
                reply::write_null(&mut stream.unsent);
                stream.state = State::Ending;
            }
            self.go_on(number);
        }
        while let Some(number) = self.ready.pop_front() {
            let Some(stream) = self.by_number.get_mut(&number) else {
                continue;
            };
            stream.is_ready = false;
            let written_bytes = stream.written_bytes;
            let more = stream.step(number, now_ns, connection, counters);
            self.progress.bytes += stream.written_bytes - written_bytes;
            match more {
                More::Now => self.go_on(number),
                More::At(at_ns) => self.wakes.plan(number, &mut stream.wake_ns, Some(at_ns)),
                More::Later => {}
                More::Nothing => {
                    self.progress.is_step = true;
                    self.end(number);
                }
            }
        }
    }
}

impl Stream {
    /// Writes what was appended, and appends the next piece.
    fn step(
        &mut self,
        number: u64,
        now_ns: u64,
        connection: &mut ServerConnection,
        counters: &WorkerCounters,
    ) -> More {
        if !self.unsent.is_empty() {
            let count = connection.write(number, &self.unsent[self.written..]);
            if self.is_counted {
                counters.bytes_sent.add(count as u64);
            }
            self.written += count;
            self.written_bytes += count as u64;
            if self.written < self.unsent.len() {
                return More::Later;
            }
            self.unsent.clear();
            self.written = 0;
        }
        match &mut self.state {
            State::Body(body) if body.source.left() > 0 => {
                let bytes = body.source.left().min(PIECE_BYTES_MAX);
                reply::write_data_header(&mut self.unsent, bytes);
                body.source.write(bytes, &mut self.unsent);
                More::Now
            }
            State::Body(body) => {
                let finish = body.finish;
                match finish {
                    Finish::End => self.state = State::Ending,
                    Finish::Trailers(bytes) => {
                        reply::write_trailers(&mut self.unsent, bytes);
                        self.state = State::Ending;
                    }
                    Finish::Reset => {
                        self.state = State::Resetting;
                        // What was written is sent before the next turn; a reset drops the rest.
                        return More::At(now_ns + 1);
                    }
                }
                More::Now
            }
            State::Ending => {
                connection.finish(number);
                More::Nothing
            }
            State::Resetting => {
                connection.reset(number, ErrorCode::InternalError.number());
                More::Nothing
            }
            State::Endless(answer) => {
                answer.write_more(&mut self.unsent, 0, usize::MAX);
                More::Now
            }
            State::Incoming(_) | State::Waiting { .. } | State::Silence => More::Later,
        }
    }
}
