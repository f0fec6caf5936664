//! The streams in flight, and what each has still to send: under flow control, in its own time,
//! the others in turn.

use std::collections::{BTreeMap, VecDeque};

use brunt_proto::http2::frame::{self, ErrorCode, FrameHeader, Kind, flags};

use super::reply;
use crate::batch::Batch;
use crate::body::{Body, Finish, More};
use crate::counters::WorkerCounters;
use crate::raw::RawAnswer;
use crate::route::{Method, Route};
use crate::wakes::Wakes;

/// Bytes of a body in one DATA frame at most.
const PIECE_BYTES_MAX: u64 = frame::PAYLOAD_BYTES as u64;
/// The largest window (RFC 9113 section 6.9.1).
const WINDOW_MAX: i64 = frame::WINDOW_BYTES_MAX as i64;

/// What a stream takes of memory beside the text of its answer, with its places in the tables.
const STREAM_BYTES: usize = 256;
const _: () = assert!(STREAM_BYTES > 2 * size_of::<Stream>());

/// A request whose body is still coming.
#[derive(Clone, Copy, Debug)]
pub(super) struct Incoming {
    pub(super) method: Method,
    pub(super) route: Route,
    /// Bytes that the body must have, where the head states it.
    pub(super) promised_bytes: Option<u64>,
    /// Bytes that came.
    pub(super) received_bytes: u64,
    /// Bytes of the frames that it came in.
    pub(super) frame_bytes: u64,
    /// Bytes that may still come before the client gets a WINDOW_UPDATE.
    pub(super) window_bytes: u32,
}

/// Where a stream is.
#[derive(Debug)]
pub(super) enum State {
    Incoming(Incoming),
    /// The null answer is due at this instant.
    Waiting {
        at_ns: u64,
    },
    Body(Body),
    /// The rest of a raw answer that has no end.
    Endless(&'static RawAnswer),
    /// Nothing, until the client gives it up.
    Silence,
}

impl State {
    /// Whether an answer is due that has not begun.
    fn is_due(&self) -> bool {
        matches!(self, Self::Waiting { .. })
    }

    /// Bytes of the text of an answer.
    fn text_bytes(&self) -> usize {
        match self {
            Self::Body(body) => body.source.text_bytes(),
            _ => 0,
        }
    }
}

#[derive(Debug)]
struct Stream {
    state: State,
    /// Bytes of DATA that the client takes on this stream.
    window_bytes: i64,
    is_ready: bool,
    /// When the stream goes on, if it waits for that instant.
    wake_ns: Option<u64>,
}

/// The streams of one connection.
#[derive(Debug)]
pub(super) struct Streams {
    by_id: BTreeMap<u32, Stream>,
    /// Streams that have something to send and, as far as they know, a window for it.
    ready: VecDeque<u32>,
    wakes: Wakes<u32>,
    /// Bytes of the texts of all answers.
    text_bytes: usize,
    /// Requests whose bodies are still coming.
    incoming_count: usize,
    /// Bytes of DATA that the client takes on all streams together.
    window_bytes: i64,
    /// The window of a new stream.
    initial_window_bytes: i64,
    /// How often a stream was visited because the client set the window of all.
    #[cfg(test)]
    pub(super) window_visits: u64,
}

impl Default for Streams {
    fn default() -> Self {
        Self {
            by_id: BTreeMap::new(),
            ready: VecDeque::new(),
            wakes: Wakes::default(),
            text_bytes: 0,
            incoming_count: 0,
            window_bytes: i64::from(frame::WINDOW_BYTES),
            initial_window_bytes: i64::from(frame::WINDOW_BYTES),
            #[cfg(test)]
            window_visits: 0,
        }
    }
}

impl Streams {
    pub(super) fn len(&self) -> usize {
        self.by_id.len()
    }

    /// Bytes of memory that they take, about.
    pub(super) fn bytes(&self) -> usize {
        self.by_id.len() * STREAM_BYTES + self.text_bytes
    }

    /// Requests whose bodies are still coming.
    pub(super) fn incoming_count(&self) -> usize {
        self.incoming_count
    }

    pub(super) fn is_empty(&self) -> bool {
        self.by_id.is_empty()
    }

    pub(super) fn contains(&self, id: u32) -> bool {
        self.by_id.contains_key(&id)
    }

    /// The request of this stream, if it is not complete.
    pub(super) fn incoming(&mut self, id: u32) -> Option<&mut Incoming> {
        match &mut self.by_id.get_mut(&id)?.state {
            State::Incoming(incoming) => Some(incoming),
            _ => None,
        }
    }

    /// Begins a stream, or has one go on in another state.
    pub(super) fn set(&mut self, id: u32, state: State) {
        let is_ready = matches!(state, State::Body(_) | State::Endless(_));
        let window_bytes = match self.remove(id) {
            Some(stream) => stream.window_bytes,
            None => self.initial_window_bytes,
        };
        if is_ready {
            self.ready.push_back(id);
        }
        let mut wake_ns = None;
        if let State::Waiting { at_ns } = state {
            self.wakes.plan(id, &mut wake_ns, Some(at_ns));
        }
        self.text_bytes += state.text_bytes();
        self.incoming_count += usize::from(matches!(state, State::Incoming(_)));
        let stream = Stream {
            state,
            window_bytes,
            is_ready,
            wake_ns,
        };
        self.by_id.insert(id, stream);
    }

    /// Ends a stream; whether there was one, and an answer was still due on it.
    pub(super) fn end(&mut self, id: u32) -> Option<bool> {
        let stream = self.remove(id)?;
        Some(stream.state.is_due())
    }

    /// Ends those above `last`; how many there were, and on how many an answer was still due.
    pub(super) fn end_above(&mut self, last: u32) -> (u64, u64) {
        let (mut ended, mut due) = (0, 0);
        while let Some((&id, _)) = self.by_id.last_key_value()
            && id > last
        {
            due += u64::from(self.end(id) == Some(true));
            ended += 1;
        }
        (ended, due)
    }

    /// Ends all of them; how many answers were due.
    pub(super) fn end_all(&mut self) -> u64 {
        let due = self
            .by_id
            .values()
            .filter(|stream| stream.state.is_due())
            .count();
        self.by_id.clear();
        self.ready.clear();
        self.wakes = Wakes::default();
        self.text_bytes = 0;
        self.incoming_count = 0;
        due as u64
    }

    fn remove(&mut self, id: u32) -> Option<Stream> {
        let mut stream = self.by_id.remove(&id)?;
        self.text_bytes -= stream.state.text_bytes();
        self.incoming_count -= usize::from(matches!(stream.state, State::Incoming(_)));
        if stream.is_ready {
            self.ready.retain(|other| *other != id);
        }
        self.wakes.plan(id, &mut stream.wake_ns, None);
        Some(stream)
    }

    /// When the next stream wants to go on, if it waits for nothing else.
    pub(super) fn wake_ns(&self) -> Option<u64> {
        self.wakes.first_ns()
    }

    /// Whether something can be sent now.
    pub(super) fn can_send(&self) -> bool {
        self.window_bytes > 0 && !self.ready.is_empty()
    }

    /// The client takes more on all streams together.
    pub(super) fn widen(&mut self, bytes: u32) -> Result<(), ErrorCode> {
        self.window_bytes += i64::from(bytes);
        if self.window_bytes > WINDOW_MAX {
            return Err(ErrorCode::FlowControlError);
        }
        Ok(())
    }

    /// The client takes more on one stream.
    pub(super) fn widen_stream(&mut self, id: u32, bytes: u32) -> Result<(), ErrorCode> {
        let Some(stream) = self.by_id.get_mut(&id) else {
            return Ok(());
        };
        stream.window_bytes += i64::from(bytes);
        if stream.window_bytes > WINDOW_MAX {
            return Err(ErrorCode::FlowControlError);
        }
        let resumes = !stream.is_ready && stream.wake_ns.is_none() && stream.window_bytes > 0;
        if resumes && matches!(stream.state, State::Body(_)) {
            stream.is_ready = true;
            self.ready.push_back(id);
        }
        Ok(())
    }

    /// The client sets the window of every stream (RFC 9113 section 6.9.2), by the values of one
    /// frame, which count in their order: the last one stays, and none may make a window too large,
    /// so that the greatest tells. The streams are visited once, however many values there are.
    pub(super) fn set_initial_window(&mut self, last: u32, greatest: u32) -> Result<(), ErrorCode> {
        let more = i64::from(last) - self.initial_window_bytes;
        let most = i64::from(greatest) - self.initial_window_bytes;
        self.initial_window_bytes = i64::from(last);
        if more == 0 && most <= 0 {
            return Ok(());
        }
        for (id, stream) in &mut self.by_id {
            #[cfg(test)]
            {
                self.window_visits += 1;
            }
            if stream.window_bytes + most > WINDOW_MAX {
                return Err(ErrorCode::FlowControlError);
            }
            stream.window_bytes += more;
            let resumes = !stream.is_ready && stream.wake_ns.is_none() && stream.window_bytes > 0;
            if resumes && matches!(stream.state, State::Body(_)) {
                stream.is_ready = true;
                self.ready.push_back(*id);
            }
        }
        Ok(())
    }

    /// Appends what is due at `now_ns` and what can be sent, until the batch is full. The instants
    /// at which answers were due are appended to `dues`. Tells how many streams ended.
    pub(super) fn advance(
        &mut self,
        now_ns: u64,
        batch: &mut Batch,
        dues: &mut Vec<u64>,
        counters: &WorkerCounters,
    ) -> u32 {
        let mut ended = 0;
        while !batch.is_full()
            && let Some(id) = self.wakes.next(now_ns)
        {
            let Some(stream) = self.by_id.get_mut(&id) else {
                continue;
            };
            stream.wake_ns = None;
            if let State::Waiting { at_ns } = stream.state {
                counters.reply(200);
                reply::write_null(batch.bytes(), id);
                dues.push(at_ns);
                self.by_id.remove(&id);
                ended += 1;
            } else {
                stream.is_ready = true;
                self.ready.push_back(id);
            }
        }
        while !batch.is_full()
            && self.window_bytes > 0
            && let Some(id) = self.ready.pop_front()
        {
            let Some(stream) = self.by_id.get_mut(&id) else {
                continue;
            };
            stream.is_ready = false;
            let more = match &mut stream.state {
                State::Endless(answer) => {
                    answer.write_more(batch.bytes(), id, usize::MAX);
                    More::Now
                }
                State::Body(body) => {
                    if !body.is_counted {
                        counters.bytes_sent.add(batch.settle());
                    }
                    let room = stream.window_bytes.min(self.window_bytes).max(0) as u64;
                    let piece_bytes_max = batch.piece_bytes_max() as u64;
                    let out = batch.bytes();
                    let (sent, more) = write_body(body, id, room, piece_bytes_max, out);
                    stream.window_bytes -= sent as i64;
                    self.window_bytes -= sent as i64;
                    if !body.is_counted {
                        batch.settle();
                    }
                    more
                }
                State::Incoming(_) | State::Waiting { .. } | State::Silence => More::Later,
            };
            match more {
                More::Now => {
                    stream.is_ready = true;
                    self.ready.push_back(id);
                }
                More::At(at_ns) => self.wakes.plan(id, &mut stream.wake_ns, Some(at_ns)),
                More::Later => {}
                More::Nothing => {
                    self.remove(id);
                    ended += 1;
                }
            }
        }
        ended
    }
}

/// Appends one frame of at most `room` bytes of DATA, and of at most `piece_bytes_max`, and what
/// follows the last one. Also returns how many bytes of the windows it took.
fn write_body(
    body: &mut Body,
    id: u32,
    room: u64,
    piece_bytes_max: u64,
    out: &mut Vec<u8>,
) -> (u64, More) {
    let left = body.source.left();
    if left > 0 && room == 0 {
        return (0, More::Later);
    }
    let length = left.min(room).min(PIECE_BYTES_MAX).min(piece_bytes_max);
    let is_last = length == left;
    let ends = is_last && body.finish == Finish::End;
    if length > 0 || ends {
        let header = FrameHeader {
            length: length as u32,
            kind: Kind::Data,
            flags: if ends { flags::END_STREAM } else { 0 },
            stream: id,
        };
        header.write(out);
    }
    body.source.write(length, out);
    if !is_last {
        return (length, More::Now);
    }
    write_finish(body.finish, id, out);
    (length, More::Nothing)
}

/// Appends what follows the last DATA of a body.
pub(super) fn write_finish(finish: Finish, id: u32, out: &mut Vec<u8>) {
    match finish {
        Finish::End => {}
        Finish::Trailers(bytes) => reply::write_trailers(out, id, bytes),
        Finish::Reset => frame::write_rst_stream(out, id, ErrorCode::InternalError),
    }
}
