//! The server's state of one connection: from HEADERS, CONTINUATION and DATA to requests, and from
//! answers to what each stream sends.

use brunt_proto::http2::frame::{self, ErrorCode, FrameHeader, Kind, Setting, flags};
use brunt_proto::http2::hpack::{Bytes, Decoder, TABLE_BYTES};

use super::streams::{self, Http2Streams, Incoming, StreamState};
use super::{Http2Options, reply};
use crate::answer::{After, Answer, Context, FinalReply, Says, answer_to, interim};
use crate::batch::Batch;
use crate::counters::WorkerCounters;
use crate::head::{GatheredFields, Malformed, RequestHead};
use crate::http1::request::HEAD_BYTES_MAX;
use crate::listeners::Protocol;
use crate::raw::RawEnding;
use crate::route::{Method, Route};

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

/// The rest of a field block.
#[derive(Debug, Default)]
struct Continued {
    block: Vec<u8>,
    /// Bytes of its frames with their headers.
    frame_bytes: usize,
}

/// One connection.
#[derive(Debug)]
pub(crate) struct Http2Session {
    options: Http2Options,
    decoder: Decoder<Bytes>,
    pub(crate) streams: Http2Streams,
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

impl Http2Session {
    /// A connection whose preface came. Appends the server's own.
    pub(crate) fn new(options: Http2Options, batch: &mut Batch) -> Self {
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
            decoder: Decoder::new(TABLE_BYTES),
            streams: Http2Streams::default(),
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

    /// Takes whole frames and whole field blocks from `input` and appends answers, until more input
    /// is needed, the batch is full or the connection ends. Tells how much of the input was taken.
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
            if header.length > frame::PAYLOAD_BYTES {
                self.fail(ErrorCode::FrameSizeError, &mut turn);
                break;
            }
            let Some((payload, rest)) = rest.split_at_checked(length) else {
                break;
            };
            let outcome = match continued(header, rest) {
                Ok(None) => break,
                Ok(Some(continued)) => {
                    taken += frame::HEADER_BYTES + length + continued.frame_bytes;
                    self.take(header, payload, &continued, &mut turn)
                }
                Err(code) => Err(code),
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

    /// How the connection goes on.
    pub(crate) fn end(&self) -> End {
        self.end
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

    fn take(
        &mut self,
        header: FrameHeader,
        payload: &[u8],
        continued: &Continued,
        turn: &mut Turn<'_>,
    ) -> Frame<()> {
        if !self.is_greeted && (header.kind != Kind::Settings || header.has(flags::ACK)) {
            return Err(ErrorCode::ProtocolError);
        }
        match header.kind {
            Kind::Data => self.take_data(header, payload, turn),
            Kind::Headers => self.take_headers(header, payload, continued, turn),
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
            // One that follows HEADERS was taken with them.
            Kind::PushPromise | Kind::Continuation => Err(ErrorCode::ProtocolError),
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
            let is_empty = payload.is_empty();
            return is_empty.then_some(()).ok_or(ErrorCode::FrameSizeError);
        }
        // However many there are, the streams are visited once: the last one counts.
        let mut initial_window = None;
        for setting in frame::settings(payload)? {
            setting.check()?;
            if let Setting::InitialWindowSize(bytes) = setting {
                initial_window = Some(bytes);
            }
        }
        if let Some(bytes) = initial_window {
            self.streams.set_initial_window(bytes)?;
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

    fn take_data(&mut self, header: FrameHeader, payload: &[u8], turn: &mut Turn<'_>) -> Frame<()> {
        let stream = header.stream;
        if self.is_idle_stream(stream) {
            return Err(ErrorCode::ProtocolError);
        }
        let content = header.content(payload)?;
        // Padding counts, too (RFC 9113 section 6.9.1).
        let left = self.window_bytes.checked_sub(header.length);
        self.window_bytes = left.ok_or(ErrorCode::FlowControlError)?;
        if self.window_bytes < WINDOW_BYTES / 2 {
            frame::write_window_update(turn.batch.bytes(), 0, WINDOW_BYTES - self.window_bytes);
            self.window_bytes = WINDOW_BYTES;
        }
        let is_end = header.has(flags::END_STREAM);
        let stream_window_bytes = self.options.window_bytes;
        let Some(incoming) = self.streams.all.incoming(stream) else {
            if self.streams.all.contains(stream) {
                // The request was complete.
                self.reset(stream, ErrorCode::StreamClosed, turn);
            }
            return Ok(());
        };
        let Some(left) = incoming.window_bytes.checked_sub(header.length) else {
            self.reset(stream, ErrorCode::FlowControlError, turn);
            return Ok(());
        };
        incoming.window_bytes = left;
        incoming.received_bytes += content.len() as u64;
        incoming.frame_bytes += frame::HEADER_BYTES as u64 + u64::from(header.length);
        if !is_end && left < stream_window_bytes.div_ceil(2) {
            frame::write_window_update(turn.batch.bytes(), stream, stream_window_bytes - left);
            incoming.window_bytes = stream_window_bytes;
        }
        let request = *incoming;
        let is_wrong = match request.head.body_bytes {
            Some(bytes) if is_end => request.received_bytes != bytes,
            Some(bytes) => request.received_bytes > bytes,
            None => false,
        };
        if is_wrong {
            self.refuse(stream, Malformed::ContentLength, is_end, turn);
        } else if is_end {
            self.answer(stream, &request, turn);
        }
        Ok(())
    }

    fn take_headers(
        &mut self,
        header: FrameHeader,
        payload: &[u8],
        continued: &Continued,
        turn: &mut Turn<'_>,
    ) -> Frame<()> {
        let stream = header.stream;
        if stream == 0 || stream.is_multiple_of(2) {
            return Err(ErrorCode::ProtocolError);
        }
        let block = header.content(payload)?;
        let is_end = header.has(flags::END_STREAM);
        let frame_bytes = frame::HEADER_BYTES + payload.len() + continued.frame_bytes;
        if continued.block.is_empty() {
            return self.take_block(stream, block, is_end, frame_bytes as u64, turn);
        }
        let block = [block, &continued.block].concat();
        self.take_block(stream, &block, is_end, frame_bytes as u64, turn)
    }

    /// Takes a whole field block: a request's head or trailers.
    fn take_block(
        &mut self,
        stream: u32,
        block: &[u8],
        is_end: bool,
        frame_bytes: u64,
        turn: &mut Turn<'_>,
    ) -> Frame<()> {
        // The block changes the table of the connection, so it is read in any case.
        let mut gathered = GatheredFields::default();
        self.decoder
            .decode(block, turn.scratch, |(name, value), _| {
                gathered.add(name, value)
            })
            .map_err(|_| ErrorCode::CompressionError)?;
        if stream <= self.last_stream {
            let outcome = gathered.trailers();
            let Some(incoming) = self.streams.all.incoming(stream) else {
                // What follows a reset by the server is to be ignored (RFC 9113 section 5.1).
                let may_follow = self.has_reset || self.last_processed.is_some();
                return if may_follow && !self.streams.all.contains(stream) {
                    Ok(())
                } else {
                    Err(ErrorCode::StreamClosed)
                };
            };
            incoming.frame_bytes += frame_bytes;
            let request = *incoming;
            let promised = request.head.body_bytes;
            let is_short = promised.is_some_and(|bytes| bytes != request.received_bytes);
            match outcome {
                Ok(()) if !is_end => {
                    self.refuse(stream, Malformed::Trailers, is_end, turn);
                }
                Ok(()) if is_short => {
                    self.refuse(stream, Malformed::ContentLength, is_end, turn);
                }
                Ok(()) => self.answer(stream, &request, turn),
                Err(malformed) => self.refuse(stream, malformed, is_end, turn),
            }
            return Ok(());
        }
        let outcome = gathered.head();
        self.last_stream = stream;
        if self.last_processed.is_some() {
            turn.context.counters.streams_ignored.add(1);
            return Ok(());
        }
        let in_flight = self.streams.all.len() as u64 + u64::from(self.unsent);
        if in_flight >= u64::from(self.options.streams_max.get()) {
            turn.context.counters.streams_refused.add(1);
            self.reset(stream, ErrorCode::RefusedStream, turn);
            return Ok(());
        }
        self.requests += 1;
        match outcome {
            Ok(RequestHead { body_bytes, .. })
                if is_end && body_bytes.is_some_and(|bytes| bytes > 0) =>
            {
                self.refuse(stream, Malformed::ContentLength, is_end, turn);
            }
            Ok(head) => {
                let request = Incoming {
                    head,
                    received_bytes: 0,
                    frame_bytes,
                    window_bytes: self.options.window_bytes,
                };
                if is_end {
                    self.answer(stream, &request, turn);
                } else {
                    self.streams.set(stream, StreamState::Incoming(request));
                    if head.expects_continue {
                        turn.context.counters.replies_interim.add(1);
                        reply::write_head(turn.batch.bytes(), stream, 100, Says::Nothing, false);
                    }
                }
            }
            Err(malformed) => self.refuse(stream, malformed, is_end, turn),
        }
        let most = self.options.requests_max;
        if self.end == End::Open
            && self.last_processed.is_none()
            && most.is_some_and(|most| self.requests >= most.get())
        {
            self.go_away(stream, ErrorCode::NoError, turn);
        }
        Ok(())
    }

    /// Answers a malformed request, whose end came or not.
    fn refuse(&mut self, stream: u32, malformed: Malformed, is_end: bool, turn: &mut Turn<'_>) {
        turn.context.counters.requests_malformed.add(1);
        if !is_end {
            turn.context.counters.reply(400);
            // The head alone, since nothing may follow a reset.
            reply::write_head(turn.batch.bytes(), stream, 400, Says::Length(0), true);
            self.reset(stream, ErrorCode::ProtocolError, turn);
            return;
        }
        let reply = FinalReply::text(400, format!("{malformed}\n"), Method::OTHER);
        self.write(stream, Answer::Reply(reply), turn);
    }

    /// Answers a complete request.
    fn answer(&mut self, stream: u32, request: &Incoming, turn: &mut Turn<'_>) {
        let counters = turn.context.counters;
        let RequestHead { route, method, .. } = request.head;
        counters.request(route, method, request.frame_bytes);
        if route == Route::Counters {
            // What the batch already holds belongs into the figures.
            counters.bytes_sent.add(turn.batch.settle());
        }
        let answer = answer_to(route, method, Protocol::Http2, turn.context);
        self.write(stream, answer, turn);
    }

    /// Appends an answer, or has it sent in its time.
    fn write(&mut self, stream: u32, answer: Answer, turn: &mut Turn<'_>) {
        let counters = turn.context.counters;
        let state = match answer {
            Answer::Null => null(stream, turn),
            Answer::NullAlone => {
                let state = null(stream, turn);
                turn.batch.seal();
                state
            }
            Answer::NullAt { at_ns } => Some(StreamState::Waiting { at_ns }),
            Answer::Interim(count) => {
                for (status, says) in (0..count).map(interim) {
                    counters.replies_interim.add(1);
                    reply::write_head(turn.batch.bytes(), stream, status, says, false);
                }
                null(stream, turn)
            }
            Answer::Last => {
                // In front of the answer, so that a client knows when it has the last one.
                self.go_away(self.last_stream, ErrorCode::NoError, turn);
                null(stream, turn)
            }
            Answer::Reply(reply) => write_reply(stream, reply, turn),
            Answer::Silence => Some(StreamState::Silence),
            Answer::ResetStream(code) => {
                frame::write_rst_stream(turn.batch.bytes(), stream, ErrorCode::of(code));
                None
            }
            Answer::GoAway(code) => {
                let before = stream.saturating_sub(2);
                // Its request is a fault, and none that is ignored.
                self.streams.all.end(stream);
                self.go_away(before, ErrorCode::of(code), turn);
                None
            }
            Answer::Raw(answer) => {
                (answer.bytes.0)(turn.batch.bytes(), stream);
                match answer.ending {
                    RawEnding::GoOn => None,
                    RawEnding::Silence => Some(StreamState::Silence),
                    RawEnding::Endless(_) => Some(StreamState::Endless(answer)),
                    RawEnding::Close => {
                        self.end_now(After::Close, turn);
                        None
                    }
                }
            }
            Answer::End(after) => {
                self.end_now(after, turn);
                None
            }
            // Replies of HTTP/1.0 are not among the answers of this protocol; nothing comes near.
            Answer::Http10 { .. } => {
                self.end_now(After::Close, turn);
                None
            }
        };
        match state {
            Some(state) => self.streams.set(stream, state),
            None => {
                self.streams.all.end(stream);
                self.unsent += 1;
            }
        }
    }
}

/// What of a field block follows its first frame, at the start of `rest`; of another frame nothing.
/// Absent while more is to come.
fn continued(first: FrameHeader, mut rest: &[u8]) -> Frame<Option<Continued>> {
    let mut continued = Continued::default();
    let mut cost = (first.length as usize).max(BLOCK_FRAME_BYTES_MIN);
    let mut is_whole = first.kind != Kind::Headers || first.has(flags::END_HEADERS);
    while !is_whole {
        let Some((header, behind)) = rest.split_first_chunk() else {
            return Ok(None);
        };
        let header = FrameHeader::read(header);
        if header.kind != Kind::Continuation || header.stream != first.stream {
            return Err(ErrorCode::ProtocolError);
        }
        if header.length > frame::PAYLOAD_BYTES {
            return Err(ErrorCode::FrameSizeError);
        }
        let length = header.length as usize;
        cost += length.max(BLOCK_FRAME_BYTES_MIN);
        if cost > HEAD_BYTES_MAX {
            return Err(ErrorCode::EnhanceYourCalm);
        }
        let Some((payload, behind)) = behind.split_at_checked(length) else {
            return Ok(None);
        };
        continued.block.extend_from_slice(payload);
        continued.frame_bytes += frame::HEADER_BYTES + length;
        is_whole = header.has(flags::END_HEADERS);
        rest = behind;
    }
    Ok(Some(continued))
}

/// A frame about the connection as a whole.
fn on_connection(header: FrameHeader) -> Frame<()> {
    let is_of_connection = header.stream == 0;
    is_of_connection
        .then_some(())
        .ok_or(ErrorCode::ProtocolError)
}

/// Appends the null answer; nothing is left of its stream.
fn null(stream: u32, turn: &mut Turn<'_>) -> Option<StreamState> {
    turn.context.counters.reply(200);
    reply::write_null(turn.batch.bytes(), stream);
    None
}

/// Appends the head of a reply; gives what is still to be sent.
fn write_reply(stream: u32, reply: FinalReply, turn: &mut Turn<'_>) -> Option<StreamState> {
    reply.count(turn.context.counters);
    let FinalReply { status, says, body } = reply;
    reply::write_head(turn.batch.bytes(), stream, status, says, body.is_nothing());
    if !body.is_counted {
        turn.batch.settle();
    }
    if body.source.left() > 0 {
        return Some(StreamState::Body(body));
    }
    streams::write_finish(body.finish, stream, turn.batch.bytes());
    None
}
