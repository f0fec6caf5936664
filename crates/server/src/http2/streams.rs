//! The streams of a connection of HTTP/2: what each may send under flow control, and its frames.

use brunt_proto::http2::frame::{self, ErrorCode, FrameHeader, Kind, flags};

use super::reply;
use crate::answer::{Body, Finish};
use crate::batch::Batch;
use crate::counters::WorkerCounters;
use crate::head::RequestHead;
use crate::streams::{self, More};

/// Bytes of a body in one DATA frame at most.
const PIECE_BYTES_MAX: u64 = frame::PAYLOAD_BYTES as u64;
/// The largest window (RFC 9113 section 6.9.1).
const WINDOW_MAX: i64 = frame::WINDOW_BYTES_MAX as i64;

/// What a stream takes of memory beside the text of its answer, with its places in the tables.
const STREAM_BYTES: usize = 272;
const _: () = assert!(STREAM_BYTES > 2 * size_of::<Http2Stream>());

/// A request whose body is still coming.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Incoming {
    pub(super) head: RequestHead,
    /// Bytes that came.
    pub(super) received_bytes: u64,
    /// Bytes of the frames that it came in.
    pub(super) frame_bytes: u64,
    /// Bytes that may still come before the client gets a WINDOW_UPDATE.
    pub(super) window_bytes: u32,
}

/// Bytes of DATA that the client takes on a stream.
pub(crate) type WindowBytes = i64;

pub(super) type StreamState = streams::StreamState<Incoming>;
type Http2Stream = streams::Stream<Incoming, WindowBytes>;

/// The streams of one connection, with the windows that they share.
#[derive(Debug)]
pub(crate) struct Http2Streams {
    pub(crate) all: streams::StreamTable<u32, Incoming, WindowBytes>,
    /// Bytes of DATA that the client takes on all streams together.
    window_bytes: WindowBytes,
    /// The window of a new stream.
    initial_window_bytes: WindowBytes,
}

impl Default for Http2Streams {
    fn default() -> Self {
        Self {
            all: streams::StreamTable::default(),
            window_bytes: i64::from(frame::WINDOW_BYTES),
            initial_window_bytes: i64::from(frame::WINDOW_BYTES),
        }
    }
}

/// Widens a window, up to the largest one.
fn widen(window_bytes: &mut WindowBytes, more_bytes: i64) -> Result<(), ErrorCode> {
    *window_bytes += more_bytes;
    let is_allowed = *window_bytes <= WINDOW_MAX;
    is_allowed.then_some(()).ok_or(ErrorCode::FlowControlError)
}

/// Whether a stream with this window sends more of a body.
fn resumes(stream: &Http2Stream) -> bool {
    stream.out > 0 && matches!(stream.state, StreamState::Body(_))
}

impl Http2Streams {
    /// Bytes of memory that they take, about.
    pub(crate) fn bytes(&self) -> usize {
        self.all.len() * STREAM_BYTES + self.all.kept_bytes()
    }

    /// Begins a stream, or has one go on in another state.
    pub(super) fn set(&mut self, id: u32, state: StreamState) {
        let text_bytes = match &state {
            StreamState::Body(body) => body.source.text_bytes(),
            _ => 0,
        };
        self.all.set(id, state, || self.initial_window_bytes);
        if text_bytes > 0 {
            self.all.keep(id, text_bytes);
        }
    }

    /// Whether something can be sent now.
    pub(crate) fn can_send(&self) -> bool {
        self.window_bytes > 0 && self.all.has_ready()
    }

    /// The client takes more on all streams together.
    pub(super) fn widen(&mut self, bytes: u32) -> Result<(), ErrorCode> {
        widen(&mut self.window_bytes, i64::from(bytes))
    }

    /// The client takes more on one stream.
    pub(super) fn widen_stream(&mut self, id: u32, bytes: u32) -> Result<(), ErrorCode> {
        let Some(stream) = self.all.get(id) else {
            return Ok(());
        };
        widen(&mut stream.out, i64::from(bytes))?;
        if resumes(stream) {
            self.all.go_on(id);
        }
        Ok(())
    }

    /// The client sets the window of every stream (RFC 9113 section 6.9.2).
    pub(super) fn set_initial_window(&mut self, bytes: u32) -> Result<(), ErrorCode> {
        let more = i64::from(bytes) - self.initial_window_bytes;
        self.initial_window_bytes = i64::from(bytes);
        self.all.visit(|stream| {
            widen(&mut stream.out, more)?;
            Ok(resumes(stream))
        })
    }

    /// Appends what is due at `now_ns` and what can be sent, until the batch is full. Tells how
    /// many streams ended.
    pub(super) fn advance(
        &mut self,
        now_ns: u64,
        batch: &mut Batch,
        counters: &WorkerCounters,
    ) -> u32 {
        let mut ended = 0;
        while !batch.is_full()
            && let Some((id, stream)) = self.all.next_due(now_ns)
        {
            if let StreamState::Waiting { at_ns } = stream.state {
                counters.reply(200);
                reply::write_null(batch.bytes(), id);
                counters.lateness.add(1, now_ns.saturating_sub(at_ns));
                self.all.end(id);
                ended += 1;
            }
        }
        while !batch.is_full()
            && self.window_bytes > 0
            && let Some((id, stream)) = self.all.next_ready()
        {
            let more = match &mut stream.state {
                StreamState::Endless(answer) => {
                    answer.write_more(batch.bytes(), id, usize::MAX);
                    More::Now
                }
                StreamState::Body(body) => {
                    if !body.is_counted {
                        counters.bytes_sent.add(batch.settle());
                    }
                    let room = stream.out.min(self.window_bytes).max(0) as u64;
                    let (sent, more) = write_body(body, id, room, batch);
                    stream.out -= sent as i64;
                    self.window_bytes -= sent as i64;
                    if !body.is_counted {
                        batch.settle();
                    }
                    more
                }
                _ => More::Later,
            };
            ended += u32::from(self.all.after(id, more));
        }
        ended
    }
}

/// Appends one frame of at most `room` bytes of DATA, and of no more than the batch takes at once,
/// and what follows the last one. Also returns how many bytes of the windows it took.
fn write_body(body: &mut Body, id: u32, room: u64, batch: &mut Batch) -> (u64, More) {
    let left = body.source.left();
    if left > 0 && room == 0 {
        return (0, More::Later);
    }
    let piece_bytes_max = PIECE_BYTES_MAX.min(batch.piece_bytes_max() as u64);
    let length = left.min(room).min(piece_bytes_max);
    let out = batch.bytes();
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
