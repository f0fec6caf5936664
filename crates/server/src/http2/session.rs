//! The server's state of one connection: frames in, frames out.

mod replies;
mod requests;

use std::rc::Rc;

use brunt_proto::http2::frame::{self, ErrorCode, FrameHeader, Kind, Setting, flags};
use brunt_proto::http2::hpack::{Decoder, TABLE_BYTES};

use super::Http2Options;
use super::streams::Streams;
use crate::answer::After;
use crate::answer::Context;
use crate::batch::Batch;
use crate::counters::WorkerCounters;
use crate::head::Entry;
use crate::http1::request::HEAD_BYTES_MAX;
use crate::room::{Hold, Room};

/// Bytes of DATA that a client may send on the connection before it waits for a WINDOW_UPDATE.
const WINDOW_BYTES: u32 = 16 << 20;
/// Bytes that each frame of a field block counts as, at least. So a client cannot send empty frames
/// without end.
const BLOCK_FRAME_BYTES_MIN: usize = 64;

/// How the connection goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// The connection goes on.
    Open,
    /// GOAWAY was sent, and no stream is in flight any more.
    Left,
    /// GOAWAY was sent because one side broke the rules. What the client still sends has no
    /// meaning.
    Failed,
    /// The connection is closed in this way when everything has been sent.
    Now(After),
}

/// A field block of which more is to come.
#[derive(Debug)]
struct Gathering {
    stream: u32,
    is_end: bool,
    block: Vec<u8>,
    /// Bytes of its frames with their headers.
    frame_bytes: u64,
    /// The bytes that the frames count as.
    cost: usize,
    hold: Hold,
}

/// One connection.
#[derive(Debug)]
pub(crate) struct Session {
    options: Http2Options,
    room: Rc<Room>,
    decoder: Decoder<Entry>,
    pub(super) streams: Streams,
    gathering: Option<Box<Gathering>>,
    /// Whether the client's first SETTINGS came.
    is_greeted: bool,
    /// The highest stream that the client opened.
    last_stream: u32,
    /// The highest one that is processed, once GOAWAY was sent.
    last_processed: Option<u32>,
    /// Whether a stream was reset before its request had ended: the rest of it may still come.
    has_reset: bool,
    /// Requests that were processed.
    requests: u64,
    /// Streams that ended with bytes that are not sent yet: to the client they are in flight.
    unsent: u32,
    /// Bytes of DATA that may still come before the client gets a WINDOW_UPDATE.
    window_bytes: u32,
    end: End,
}

/// What there is to work with while input is dealt with.
struct Turn<'a> {
    batch: &'a mut Batch,
    scratch: &'a mut Vec<u8>,
    context: &'a Context<'a>,
}

/// The result of a frame, or why it ends the connection.
type Frame<T> = Result<T, ErrorCode>;

impl Session {
    /// A connection whose preface came. Appends the server's own.
    pub(crate) fn new(options: Http2Options, room: &Rc<Room>, batch: &mut Batch) -> Self {
        let out = batch.bytes();
        let settings = [
            Setting::MaxConcurrentStreams(options.streams_max.get()),
            Setting::InitialWindowSize(options.window_bytes),
            Setting::MaxHeaderListSize(HEAD_BYTES_MAX as u32),
        ];
        frame::write_settings(out, &settings);
        frame::write_window_update(out, 0, WINDOW_BYTES - frame::WINDOW_BYTES);
        Self {
            options,
            room: Rc::clone(room),
            decoder: Decoder::new(TABLE_BYTES),
            streams: Streams::default(),
            gathering: None,
            is_greeted: false,
            last_stream: 0,
            last_processed: None,
            has_reset: false,
            requests: 0,
            unsent: 0,
            window_bytes: WINDOW_BYTES,
            end: End::Open,
        }
    }

    /// Takes whole frames from `input` and appends answers, until more input is needed, the batch
    /// is full or the connection ends. Tells how much of the input was taken.
    pub(crate) fn receive(
        &mut self,
        input: &[u8],
        batch: &mut Batch,
        scratch: &mut Vec<u8>,
        context: &Context<'_>,
    ) -> usize {
        let mut turn = Turn {
            batch,
            scratch,
            context,
        };
        let mut taken = 0;
        while matches!(self.end, End::Open | End::Left)
            && !turn.batch.is_full()
            && let Some((header, rest)) = input[taken..].split_first_chunk()
        {
            let header = FrameHeader::read(header);
            let length = header.length as usize;
            let outcome = if header.length > frame::PAYLOAD_BYTES {
                Err(ErrorCode::FrameSizeError)
            } else if let Some(payload) = rest.get(..length) {
                taken += frame::HEADER_BYTES + length;
                self.take(header, payload, &mut turn)
            } else {
                break;
            };
            if let Err(code) = outcome {
                self.fail(code, &mut turn);
            }
            self.note_leaving();
        }
        match self.end {
            End::Open | End::Left => taken,
            End::Failed | End::Now(_) => input.len(),
        }
    }

    /// Appends what is due at `now_ns` and what the client's windows let through, until the batch
    /// is full.
    pub(crate) fn advance(&mut self, now_ns: u64, batch: &mut Batch, counters: &WorkerCounters) {
        if let End::Now(_) = self.end {
            return;
        }
        self.unsent += self.streams.advance(now_ns, batch, counters);
        self.note_leaving();
    }

    /// Notes when a client has all of its answers after GOAWAY.
    fn note_leaving(&mut self) {
        if self.last_processed.is_some() && self.streams.all.is_empty() && self.end == End::Open {
            self.end = End::Left;
        }
    }

    /// Notes that all that was appended is sent.
    pub(crate) fn all_sent(&mut self) {
        self.unsent = 0;
    }

    /// Whether a field block has begun of which more is to come.
    pub(crate) fn is_gathering(&self) -> bool {
        self.gathering.is_some()
    }

    /// Whether the body of a request is coming.
    pub(crate) fn is_in_body(&self) -> bool {
        self.streams.all.has_incoming()
    }

    /// How the connection goes on.
    pub(crate) fn end(&self) -> End {
        self.end
    }

    /// When the next answer is due.
    pub(crate) fn wake_ns(&self) -> Option<u64> {
        self.streams.all.wake_ns()
    }

    /// Bytes of memory that the streams take, about.
    pub(crate) fn streams_bytes(&self) -> usize {
        self.streams.bytes()
    }

    /// Whether something can be sent now, besides answers that are due.
    pub(crate) fn can_send(&self) -> bool {
        self.streams.can_send()
    }

    /// Ends the connection with GOAWAY, because it asks for too much.
    pub(crate) fn calm_down(&mut self, batch: &mut Batch, context: &Context<'_>) {
        let mut turn = Turn {
            batch,
            scratch: &mut Vec::new(),
            context,
        };
        self.fail(ErrorCode::EnhanceYourCalm, &mut turn);
    }

    /// The connection is lost.
    pub(crate) fn abandon(&mut self, counters: &WorkerCounters) {
        self.streams.all.abandon(counters);
    }

    /// Ends the connection at once: no stream sends any more.
    fn end_now(&mut self, after: After, turn: &mut Turn<'_>) {
        self.abandon(turn.context.counters);
        self.end = End::Now(after);
    }

    fn fail(&mut self, code: ErrorCode, turn: &mut Turn<'_>) {
        turn.context.counters.http2_errors.add(1);
        self.go_away(self.last_stream, code, turn);
        self.abandon(turn.context.counters);
        self.end = End::Failed;
    }

    fn go_away(&mut self, last_stream: u32, code: ErrorCode, turn: &mut Turn<'_>) {
        // RFC 9113 section 6.8: a later GOAWAY never takes in more.
        let last_stream = self.last_processed.unwrap_or(u32::MAX).min(last_stream);
        self.last_processed = Some(last_stream);
        let counters = turn.context.counters;
        let from = last_stream.saturating_add(1);
        self.streams.all.ignore_from(from, counters, |_| {});
        counters.goaways.add(1);
        frame::write_go_away(turn.batch.bytes(), last_stream, code);
    }

    /// Takes one frame.
    fn take(&mut self, header: FrameHeader, payload: &[u8], turn: &mut Turn<'_>) -> Frame<()> {
        let is_more = header.kind == Kind::Continuation;
        if !self.is_greeted && (header.kind != Kind::Settings || header.has(flags::ACK)) {
            return Err(ErrorCode::ProtocolError);
        }
        if self.gathering.is_some() != is_more {
            return Err(ErrorCode::ProtocolError);
        }
        match header.kind {
            Kind::Data => self.take_data(header, payload, turn),
            Kind::Headers => self.take_headers(header, payload, turn),
            Kind::Continuation => self.take_continuation(header, payload, turn),
            Kind::RstStream => {
                frame::rst_stream(payload)?;
                if self.is_idle_stream(header.stream) {
                    return Err(ErrorCode::ProtocolError);
                }
                let counters = turn.context.counters;
                self.streams.all.cancel(header.stream, counters);
                Ok(())
            }
            Kind::Settings => self.take_settings(header, payload, turn),
            Kind::Ping => {
                let opaque = frame::ping(payload)?;
                on_connection(header)?;
                if !header.has(flags::ACK) {
                    frame::write_ping(turn.batch.bytes(), opaque, true);
                }
                Ok(())
            }
            Kind::GoAway => {
                frame::go_away(payload)?;
                // The client leaves when it is done: nothing to do before that.
                on_connection(header)
            }
            Kind::WindowUpdate => self.take_window_update(header, payload, turn),
            Kind::PushPromise => Err(ErrorCode::ProtocolError),
            Kind::Priority if header.stream == 0 => Err(ErrorCode::ProtocolError),
            Kind::Priority if payload.len() != 5 => Err(ErrorCode::FrameSizeError),
            Kind::Priority | Kind::Other(_) => Ok(()),
        }
    }

    /// Whether a stream was never opened.
    fn is_idle_stream(&self, stream: u32) -> bool {
        stream == 0 || stream.is_multiple_of(2) || stream > self.last_stream
    }

    fn take_settings(
        &mut self,
        header: FrameHeader,
        payload: &[u8],
        turn: &mut Turn<'_>,
    ) -> Frame<()> {
        on_connection(header)?;
        if header.has(flags::ACK) {
            return if payload.is_empty() {
                Ok(())
            } else {
                Err(ErrorCode::FrameSizeError)
            };
        }
        let mut initial_window = None;
        for setting in frame::settings(payload)? {
            setting.check()?;
            if let Setting::InitialWindowSize(bytes) = setting {
                let (_, greatest) = initial_window.unwrap_or((bytes, bytes));
                initial_window = Some((bytes, bytes.max(greatest)));
            }
        }
        if let Some((last, greatest)) = initial_window {
            self.streams.set_initial_window(last, greatest)?;
        }
        self.is_greeted = true;
        frame::write_settings_ack(turn.batch.bytes());
        Ok(())
    }

    fn take_window_update(
        &mut self,
        header: FrameHeader,
        payload: &[u8],
        turn: &mut Turn<'_>,
    ) -> Frame<()> {
        let increment = frame::window_update(payload)?;
        if header.stream == 0 {
            if increment == 0 {
                return Err(ErrorCode::ProtocolError);
            }
            return self.streams.widen(increment);
        }
        if self.is_idle_stream(header.stream) {
            return Err(ErrorCode::ProtocolError);
        }
        let outcome = match increment {
            0 => Err(ErrorCode::ProtocolError),
            increment => self.streams.widen_stream(header.stream, increment),
        };
        if let Err(code) = outcome {
            self.reset(header.stream, code, turn);
        }
        Ok(())
    }

    /// Ends a stream with RST_STREAM.
    fn reset(&mut self, stream: u32, code: ErrorCode, turn: &mut Turn<'_>) {
        let counters = turn.context.counters;
        let was_due = self.streams.all.end(stream) == Some(true);
        counters.requests_abandoned.add(u64::from(was_due));
        let is_error = code != ErrorCode::RefusedStream;
        counters.http2_errors.add(u64::from(is_error));
        self.has_reset = true;
        self.unsent += 1;
        frame::write_rst_stream(turn.batch.bytes(), stream, code);
    }
}

/// A frame about the connection as a whole.
fn on_connection(header: FrameHeader) -> Frame<()> {
    if header.stream == 0 {
        Ok(())
    } else {
        Err(ErrorCode::ProtocolError)
    }
}
