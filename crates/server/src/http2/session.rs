//! The server's state of one connection: frames in, frames out.

use brunt_proto::http2::frame::{self, ErrorCode, FrameHeader, Kind, Setting, flags};

use super::Http2Options;
use super::head::{self, Head, Malformed, Says};
use super::malformed::Ending;
use super::streams::{Body, Finish, Incoming, Source, State, Streams};
use crate::answer::{Answer, Context, answer_to, counters_text};
use crate::batch::Batch;
use crate::counters::WorkerCounters;
use crate::http1::request::HEAD_BYTES_MAX;
use crate::http1::stream::After;
use crate::route::{Method, Protocol, Route};

/// Bytes of DATA that a client may send before it waits for a WINDOW_UPDATE: on a stream, and on
/// the connection. All of it is skipped at once, so this takes no memory.
const STREAM_WINDOW_BYTES: u32 = 1 << 20;
const WINDOW_BYTES: u32 = 16 << 20;
/// What a frame of a field block counts for at least, so that empty ones have an end, too.
const BLOCK_FRAME_BYTES_MIN: usize = 64;

/// What becomes of the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// Nothing: it goes on.
    Open,
    /// The client was told to leave, and nothing is under way any more.
    Left,
    /// The same, because one side broke the rules: what still comes means nothing.
    Failed,
    /// It is closed, in this way, when everything has been sent.
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
    /// What they count for.
    cost: usize,
}

/// One connection.
#[derive(Debug)]
pub(crate) struct Session {
    options: Http2Options,
    reader: head::Reader,
    streams: Streams,
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
    /// Streams that ended with what is not handed over yet: to the client they are under way.
    unsent: u32,
    /// Bytes of DATA that may still come before the client gets a WINDOW_UPDATE.
    window: u32,
    end: End,
}

/// Why a frame ends the connection.
type Frame<T> = Result<T, ErrorCode>;

impl Session {
    /// A connection whose preface came. Appends the server's own.
    pub(crate) fn new(options: Http2Options, batch: &mut Batch) -> Self {
        let out = batch.bytes();
        let settings = [
            Setting::MaxConcurrentStreams(options.streams_max.get()),
            Setting::InitialWindowSize(STREAM_WINDOW_BYTES),
            Setting::MaxHeaderListSize(HEAD_BYTES_MAX as u32),
        ];
        frame::write_settings(out, &settings);
        frame::write_window_update(out, 0, WINDOW_BYTES - frame::WINDOW_BYTES);
        Self {
            options,
            reader: head::Reader::default(),
            streams: Streams::default(),
            gathering: None,
            is_greeted: false,
            last_stream: 0,
            last_processed: None,
            has_reset: false,
            requests: 0,
            unsent: 0,
            window: WINDOW_BYTES,
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
        let mut taken = 0;
        while matches!(self.end, End::Open | End::Left)
            && !batch.is_full()
            && let Some((header, rest)) = input[taken..].split_first_chunk()
        {
            let header = FrameHeader::read(header);
            let length = header.length as usize;
            let outcome = if header.length > frame::PAYLOAD_BYTES {
                Err(ErrorCode::FrameSizeError)
            } else if let Some(payload) = rest.get(..length) {
                taken += frame::HEADER_BYTES + length;
                self.take(header, payload, batch, scratch, context)
            } else {
                break;
            };
            if let Err(code) = outcome {
                self.fail(code, batch, context);
            }
            self.note_leaving();
        }
        match self.end {
            End::Open | End::Left => taken,
            End::Failed | End::Now(_) => input.len(),
        }
    }

    /// Appends what is due at `now_ns` and what the client's windows let through, until the batch
    /// is full. The instants at which answers were due are appended to `dues`.
    pub(crate) fn advance(
        &mut self,
        now_ns: u64,
        batch: &mut Batch,
        dues: &mut Vec<u64>,
        counters: &WorkerCounters,
    ) {
        self.unsent += self.streams.advance(now_ns, batch, dues, counters);
        self.note_leaving();
    }

    /// Notes when a client that was told to leave has all of its answers.
    fn note_leaving(&mut self) {
        if self.last_processed.is_some() && self.streams.is_empty() && self.end == End::Open {
            self.end = End::Left;
        }
    }

    /// Notes that all that was appended is handed over.
    pub(crate) fn handed_over(&mut self) {
        self.unsent = 0;
    }

    /// What becomes of the connection.
    pub(crate) fn end(&self) -> End {
        self.end
    }

    /// When the next answer is due.
    pub(crate) fn wake_ns(&self) -> Option<u64> {
        self.streams.wake_ns()
    }

    /// Whether something can be sent now, besides answers that are due.
    pub(crate) fn can_send(&self) -> bool {
        self.streams.can_send()
    }

    /// Ends the connection with GOAWAY, because it asks for too much.
    pub(crate) fn calm_down(&mut self, batch: &mut Batch, context: &Context<'_>) {
        self.fail(ErrorCode::EnhanceYourCalm, batch, context);
    }

    /// The connection is lost.
    pub(crate) fn abandon(&mut self, counters: &WorkerCounters) {
        counters.abandoned.add(self.streams.end_all());
    }

    fn fail(&mut self, code: ErrorCode, batch: &mut Batch, context: &Context<'_>) {
        self.go_away(self.last_stream, code, batch, context);
        self.abandon(context.counters);
        self.end = End::Failed;
    }

    fn go_away(
        &mut self,
        last_stream: u32,
        code: ErrorCode,
        batch: &mut Batch,
        context: &Context<'_>,
    ) {
        // RFC 9113 section 6.8: a later GOAWAY never takes in more.
        let last_stream = self.last_processed.unwrap_or(u32::MAX).min(last_stream);
        self.last_processed = Some(last_stream);
        context.counters.goaways.add(1);
        frame::write_go_away(batch.bytes(), last_stream, code);
    }

    /// Takes one frame.
    fn take(
        &mut self,
        header: FrameHeader,
        payload: &[u8],
        batch: &mut Batch,
        scratch: &mut Vec<u8>,
        context: &Context<'_>,
    ) -> Frame<()> {
        let is_more = header.kind == Kind::Continuation;
        if !self.is_greeted && (header.kind != Kind::Settings || header.has(flags::ACK)) {
            return Err(ErrorCode::ProtocolError);
        }
        if self.gathering.is_some() != is_more {
            return Err(ErrorCode::ProtocolError);
        }
        match header.kind {
            Kind::Data => self.take_data(header, payload, batch, context),
            Kind::Headers => self.take_headers(header, payload, batch, scratch, context),
            Kind::Continuation => self.take_continuation(header, payload, batch, scratch, context),
            Kind::RstStream => {
                frame::rst_stream(payload)?;
                if self.is_idle_stream(header.stream) {
                    return Err(ErrorCode::ProtocolError);
                }
                if let Some(was_due) = self.streams.end(header.stream) {
                    context.counters.cancelled.add(1);
                    context.counters.abandoned.add(u64::from(was_due));
                }
                Ok(())
            }
            Kind::Settings => self.take_settings(header, payload, batch),
            Kind::Ping => {
                let opaque = frame::ping(payload)?;
                on_connection(header)?;
                if !header.has(flags::ACK) {
                    frame::write_ping(batch.bytes(), opaque, true);
                }
                Ok(())
            }
            Kind::GoAway => {
                frame::go_away(payload)?;
                // The client leaves when it is done: nothing to do before that.
                on_connection(header)
            }
            Kind::WindowUpdate => self.take_window_update(header, payload, batch, context),
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
        batch: &mut Batch,
    ) -> Frame<()> {
        on_connection(header)?;
        if header.has(flags::ACK) {
            return if payload.is_empty() {
                Ok(())
            } else {
                Err(ErrorCode::FrameSizeError)
            };
        }
        for setting in frame::settings(payload)? {
            setting.check()?;
            if let Setting::InitialWindowSize(bytes) = setting {
                self.streams.set_initial_window(bytes)?;
            }
        }
        self.is_greeted = true;
        frame::write_settings_ack(batch.bytes());
        Ok(())
    }

    fn take_window_update(
        &mut self,
        header: FrameHeader,
        payload: &[u8],
        batch: &mut Batch,
        context: &Context<'_>,
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
            self.reset(header.stream, code, batch, context);
        }
        Ok(())
    }

    /// Ends a stream with RST_STREAM.
    fn reset(&mut self, stream: u32, code: ErrorCode, batch: &mut Batch, context: &Context<'_>) {
        if let Some(was_due) = self.streams.end(stream) {
            context.counters.abandoned.add(u64::from(was_due));
        }
        self.has_reset = true;
        self.unsent += 1;
        frame::write_rst_stream(batch.bytes(), stream, code);
    }

    fn take_data(
        &mut self,
        header: FrameHeader,
        payload: &[u8],
        batch: &mut Batch,
        context: &Context<'_>,
    ) -> Frame<()> {
        let stream = header.stream;
        if self.is_idle_stream(stream) {
            return Err(ErrorCode::ProtocolError);
        }
        let content = header.content(payload)?;
        // Padding counts, too (RFC 9113 section 6.9.1).
        self.window = self
            .window
            .checked_sub(header.length)
            .ok_or(ErrorCode::FlowControlError)?;
        if self.window < WINDOW_BYTES / 2 {
            frame::write_window_update(batch.bytes(), 0, WINDOW_BYTES - self.window);
            self.window = WINDOW_BYTES;
        }
        let is_end = header.has(flags::END_STREAM);
        let Some(incoming) = self.streams.incoming(stream) else {
            if self.streams.contains(stream) {
                // The request was complete.
                self.reset(stream, ErrorCode::StreamClosed, batch, context);
            }
            return Ok(());
        };
        let Some(left) = incoming.window.checked_sub(header.length) else {
            self.reset(stream, ErrorCode::FlowControlError, batch, context);
            return Ok(());
        };
        incoming.window = left;
        incoming.received += content.len() as u64;
        if !is_end && left < STREAM_WINDOW_BYTES / 2 {
            frame::write_window_update(batch.bytes(), stream, STREAM_WINDOW_BYTES - left);
            incoming.window = STREAM_WINDOW_BYTES;
        }
        let request = *incoming;
        let is_wrong = match request.promised {
            Some(bytes) if is_end => request.received != bytes,
            Some(bytes) => request.received > bytes,
            None => false,
        };
        if is_wrong {
            self.refuse(stream, Malformed::ContentLength, is_end, batch, context);
        } else if is_end {
            self.answer(stream, &request, 0, batch, context);
        }
        Ok(())
    }

    fn take_headers(
        &mut self,
        header: FrameHeader,
        payload: &[u8],
        batch: &mut Batch,
        scratch: &mut Vec<u8>,
        context: &Context<'_>,
    ) -> Frame<()> {
        let stream = header.stream;
        if stream == 0 || stream.is_multiple_of(2) {
            return Err(ErrorCode::ProtocolError);
        }
        let block = header.content(payload)?;
        let is_end = header.has(flags::END_STREAM);
        let frame_bytes = frame::HEADER_BYTES as u64 + u64::from(header.length);
        if header.has(flags::END_HEADERS) {
            return self.take_block(stream, block, is_end, frame_bytes, batch, scratch, context);
        }
        self.gathering = Some(Box::new(Gathering {
            stream,
            is_end,
            block: block.to_vec(),
            frame_bytes,
            cost: block.len().max(BLOCK_FRAME_BYTES_MIN),
        }));
        Ok(())
    }

    fn take_continuation(
        &mut self,
        header: FrameHeader,
        payload: &[u8],
        batch: &mut Batch,
        scratch: &mut Vec<u8>,
        context: &Context<'_>,
    ) -> Frame<()> {
        let Some(mut gathering) = self.gathering.take() else {
            return Err(ErrorCode::ProtocolError);
        };
        if gathering.stream != header.stream {
            return Err(ErrorCode::ProtocolError);
        }
        gathering.block.extend_from_slice(payload);
        gathering.frame_bytes += frame::HEADER_BYTES as u64 + u64::from(header.length);
        gathering.cost += payload.len().max(BLOCK_FRAME_BYTES_MIN);
        if gathering.cost > HEAD_BYTES_MAX {
            return Err(ErrorCode::EnhanceYourCalm);
        }
        if !header.has(flags::END_HEADERS) {
            self.gathering = Some(gathering);
            return Ok(());
        }
        let Gathering {
            stream,
            is_end,
            block,
            frame_bytes,
            ..
        } = *gathering;
        self.take_block(stream, &block, is_end, frame_bytes, batch, scratch, context)
    }

    /// Takes a whole field block: a request's head or trailers.
    #[expect(clippy::too_many_arguments, reason = "a frame and what it needs")]
    fn take_block(
        &mut self,
        stream: u32,
        block: &[u8],
        is_end: bool,
        frame_bytes: u64,
        batch: &mut Batch,
        scratch: &mut Vec<u8>,
        context: &Context<'_>,
    ) -> Frame<()> {
        let refused = head::compression_error;
        if stream <= self.last_stream {
            let outcome = self.reader.trailers(block, scratch).map_err(refused)?;
            let Some(incoming) = self.streams.incoming(stream) else {
                // What follows a reset by the server is to be ignored (RFC 9113 section 5.1).
                let may_follow = self.has_reset || self.last_processed.is_some();
                return if may_follow && !self.streams.contains(stream) {
                    Ok(())
                } else {
                    Err(ErrorCode::StreamClosed)
                };
            };
            let request = *incoming;
            let is_short = request
                .promised
                .is_some_and(|bytes| bytes != request.received);
            match outcome {
                Ok(()) if !is_end => {
                    self.refuse(stream, Malformed::Trailers, is_end, batch, context);
                }
                Ok(()) if is_short => {
                    self.refuse(stream, Malformed::ContentLength, is_end, batch, context);
                }
                Ok(()) => self.answer(stream, &request, 0, batch, context),
                Err(malformed) => self.refuse(stream, malformed, is_end, batch, context),
            }
            return Ok(());
        }
        // The block changes the table of the connection, so it is read in any case.
        let outcome = self.reader.head(block, scratch).map_err(refused)?;
        self.last_stream = stream;
        if self.last_processed.is_some() {
            context.counters.ignored.add(1);
            return Ok(());
        }
        let under_way = self.streams.len() as u64 + u64::from(self.unsent);
        if under_way >= u64::from(self.options.streams_max.get()) {
            context.counters.refused.add(1);
            self.reset(stream, ErrorCode::RefusedStream, batch, context);
            return Ok(());
        }
        self.requests += 1;
        match outcome {
            Ok(Head { body_bytes, .. }) if is_end && body_bytes.is_some_and(|bytes| bytes > 0) => {
                self.refuse(stream, Malformed::ContentLength, is_end, batch, context);
            }
            Ok(head) => {
                let request = Incoming {
                    method: head.method,
                    route: head.route,
                    promised: head.body_bytes,
                    received: 0,
                    window: STREAM_WINDOW_BYTES,
                };
                if is_end {
                    self.answer(stream, &request, frame_bytes, batch, context);
                } else {
                    self.streams.set(stream, State::Incoming(request));
                    if head.expects_continue {
                        context.counters.interim.add(1);
                        head::write_head(batch.bytes(), stream, 100, Says::Nothing, false);
                    }
                }
            }
            Err(malformed) => self.refuse(stream, malformed, is_end, batch, context),
        }
        let is_last = |most: u64| self.requests >= most;
        if self.end == End::Open
            && self.last_processed.is_none()
            && self
                .options
                .requests_max
                .is_some_and(|most| is_last(most.get()))
        {
            self.go_away(stream, ErrorCode::NoError, batch, context);
        }
        Ok(())
    }

    /// Answers a malformed request, whose end came or not.
    fn refuse(
        &mut self,
        stream: u32,
        malformed: Malformed,
        is_end: bool,
        batch: &mut Batch,
        context: &Context<'_>,
    ) {
        context.counters.malformed.add(1);
        context.counters.reply(400);
        if !is_end {
            // The head alone, since nothing may follow a reset.
            head::write_head(batch.bytes(), stream, 400, Says::Length(0), true);
            self.reset(stream, ErrorCode::ProtocolError, batch, context);
            return;
        }
        let answer = Answer::Text(400, format!("{malformed}\n"));
        self.write(stream, answer, Method::Other, batch, context);
    }

    /// Answers a complete request, whose frames had `frame_bytes` as far as that is known.
    fn answer(
        &mut self,
        stream: u32,
        request: &Incoming,
        frame_bytes: u64,
        batch: &mut Batch,
        context: &Context<'_>,
    ) {
        if request.route == Route::Counters {
            // Not to be found in its own figures, nor in those of the next one.
            context.counters.bytes_received.subtract(frame_bytes);
            context.counters.counters_requests.add(1);
        } else {
            context.counters.request(request.method);
        }
        let answer = answer_to(request.route, Protocol::Http2, context);
        self.write(stream, answer, request.method, batch, context);
    }

    /// Appends an answer, or has it sent in its time.
    fn write(
        &mut self,
        stream: u32,
        answer: Answer,
        method: Method,
        batch: &mut Batch,
        context: &Context<'_>,
    ) {
        let counters = context.counters;
        let is_head = method == Method::Head;
        let reply = |status: u16, says: Says, batch: &mut Batch, is_end: bool| {
            counters.reply(status);
            head::write_head(batch.bytes(), stream, status, says, is_end);
        };
        let state = match answer {
            Answer::Null => null(stream, batch, context),
            Answer::NullAlone => {
                let state = null(stream, batch, context);
                batch.seal();
                state
            }
            Answer::NullAt { at_ns } => Some(State::Waiting { at_ns }),
            Answer::Interim(count) => {
                for index in 0..count {
                    counters.interim.add(1);
                    let (status, says) = match index % 2 {
                        0 => (100, Says::Nothing),
                        _ => (103, Says::Link),
                    };
                    head::write_head(batch.bytes(), stream, status, says, false);
                }
                null(stream, batch, context)
            }
            Answer::Last => {
                // In front of the answer, so that a client knows when it has the last one.
                self.go_away(self.last_stream, ErrorCode::NoError, batch, context);
                null(stream, batch, context)
            }
            Answer::Status(status @ (204 | 304)) => {
                reply(status, Says::Nothing, batch, true);
                None
            }
            Answer::Status(status) => {
                reply(status, Says::Length(0), batch, true);
                None
            }
            Answer::RetryLater(status) => {
                reply(status, Says::RetryLater, batch, true);
                None
            }
            Answer::Text(status, text) => {
                let length = text.len() as u64;
                reply(status, Says::Length(length), batch, is_head);
                let source = Source::Text { text, position: 0 };
                body(source, Finish::End, true, is_head)
            }
            Answer::Counters => {
                // What this batch already holds belongs into the figures.
                counters.bytes_sent.add(batch.settle());
                let text = counters_text(context.shared);
                let length = Says::Length(text.len() as u64);
                head::write_head(batch.bytes(), stream, 200, length, is_head);
                batch.settle();
                let source = Source::Text { text, position: 0 };
                body(source, Finish::End, false, is_head)
            }
            Answer::Sized(bytes) => {
                let is_end = is_head || bytes == 0;
                reply(200, Says::Length(bytes), batch, is_end);
                body(pattern(bytes), Finish::End, true, is_end)
            }
            Answer::Chunked(bytes) => {
                reply(200, Says::Trailer, batch, is_head);
                if bytes == 0 && !is_head {
                    head::write_trailers(batch.bytes(), stream, 0);
                }
                let finish = Finish::Trailers(bytes);
                body(pattern(bytes), finish, true, is_head || bytes == 0)
            }
            Answer::Drip(drip) => {
                let is_end = is_head || drip.left() == 0;
                reply(200, Says::Length(drip.left()), batch, is_end);
                body(Source::Drip(drip), Finish::End, true, is_end)
            }
            Answer::Truncated(promised) => {
                head::write_head(batch.bytes(), stream, 200, Says::Length(promised), false);
                if promised / 2 == 0 || is_head {
                    frame::write_rst_stream(batch.bytes(), stream, ErrorCode::InternalError);
                }
                let finish = Finish::Reset(ErrorCode::InternalError);
                let is_end = promised / 2 == 0 || is_head;
                body(pattern(promised / 2), finish, true, is_end)
            }
            Answer::Silence => Some(State::Silence),
            Answer::ResetStream(code) => {
                frame::write_rst_stream(batch.bytes(), stream, ErrorCode::of(code));
                None
            }
            Answer::GoAway(code) => {
                let before = stream.saturating_sub(2);
                self.go_away(before, ErrorCode::of(code), batch, context);
                None
            }
            Answer::Malformed(kind) => kind.http2().and_then(|kind| {
                kind.write(batch.bytes(), stream);
                match kind.ending {
                    Ending::GoOn => None,
                    Ending::Silence => Some(State::Silence),
                    Ending::Endless(_) => Some(State::Endless(kind)),
                    Ending::Close => {
                        self.end = End::Now(After::Close);
                        None
                    }
                }
            }),
            // Replies of HTTP/1.0 are not among the answers of this protocol; nothing comes near.
            Answer::Cut | Answer::Http10 | Answer::Http10KeepAlive => {
                self.end = End::Now(After::Close);
                None
            }
            Answer::Reset => {
                self.end = End::Now(After::Reset);
                None
            }
        };
        match state {
            Some(state) => self.streams.set(stream, state),
            None => {
                self.streams.end(stream);
                self.unsent += 1;
            }
        }
    }
}

/// Appends the null answer; nothing is left of its stream.
fn null(stream: u32, batch: &mut Batch, context: &Context<'_>) -> Option<State> {
    context.counters.reply(200);
    head::write_null(batch.bytes(), stream);
    None
}

fn pattern(bytes: u64) -> Source {
    Source::Pattern {
        position: 0,
        end: bytes,
    }
}

/// A body that is still to be sent, unless the stream has ended without one.
fn body(source: Source, finish: Finish, is_counted: bool, is_end: bool) -> Option<State> {
    (!is_end).then_some(State::Body(Body {
        source,
        finish,
        is_counted,
    }))
}

/// A frame about the connection as a whole.
fn on_connection(header: FrameHeader) -> Frame<()> {
    if header.stream == 0 {
        Ok(())
    } else {
        Err(ErrorCode::ProtocolError)
    }
}
