//! The server's state of one connection: what happens on it in, answers out.

use std::rc::Rc;

use brunt_proto::http3::qpack::{self, Bytes, QpackError};
use brunt_proto::http3::{
    ConnectionError, Ended, ErrorCode, RequestPart, RequestRead, RequestReadError,
    ServerConnection, ServerEvent, Setting,
};
use brunt_proto::quic::Lost;

use super::reply;
use super::streams::{Http3Streams, Outgoing};
use crate::answer::{After, Answer, Context, FinalReply, Says, answer_to, interim};
use crate::batch::{Hold, Room};
use crate::counters::WorkerCounters;
use crate::head::{GatheredFields, RequestHead};
use crate::http1::request::HEAD_BYTES_MAX;
use crate::http2::Http2Options;
use crate::listeners::Protocol;
use crate::raw::{RawAnswer, RawEnding, RawPlace};
use crate::route::Method;
use crate::streams::StreamState;
use crate::worker::WorkerSettings;

/// What a client is told when the handshake is complete.
const SETTINGS: [(Setting, u64); 1] = [(Setting::MaxFieldSectionSize, HEAD_BYTES_MAX as u64)];
/// How long a client may take to close after GOAWAY and its last answer.
const LEAVING_NS: u64 = 1_000_000_000;

/// Why a connection ends once all of its answers are sent.
#[derive(Clone, Copy, Debug)]
struct Leaving {
    code: u32,
    /// When it is closed at the latest; absent while answers are due.
    closes_ns: Option<u64>,
}

/// One connection.
#[derive(Debug, Default)]
pub(super) struct Http3Session {
    streams: Http3Streams,
    /// Streams that the client opened.
    opened: u64,
    /// What is held of the room for input by heads that are not complete.
    hold: Hold,
    is_ready: bool,
    is_over: bool,
    leaving: Option<Leaving>,
}

/// What there is to work with while something happens.
pub(super) struct Turn<'a> {
    pub(super) connection: &'a mut ServerConnection,
    pub(super) context: &'a Context<'a>,
    /// Where strings are decoded.
    pub(super) scratch: &'a mut Vec<u8>,
    pub(super) options: Http2Options,
    /// Room for input.
    pub(super) room: &'a Rc<Room>,
    pub(super) now_ns: u64,
}

impl Http3Session {
    /// Sees to all that happened, and writes what is due and what the client takes.
    pub(super) fn drive(&mut self, turn: &mut Turn<'_>) {
        while !self.is_over {
            match turn.connection.event(turn.now_ns, &SETTINGS) {
                Ok(Some(event)) => self.take(event, turn),
                Ok(None) => break,
                Err(ended) => self.lose(&ended, turn.context.counters),
            }
        }
        if self.is_over {
            return;
        }
        self.hold.correct(self.streams.kept_bytes());
        let (now_ns, counters) = (turn.now_ns, turn.context.counters);
        self.streams.advance(now_ns, turn.connection, counters);
        if self.streams.is_empty()
            && let Some(leaving) = &mut self.leaving
        {
            let code = leaving.code;
            if *leaving.closes_ns.get_or_insert(now_ns + LEAVING_NS) <= now_ns {
                self.close(code.into(), "", turn);
            }
        }
    }

    /// When it goes on, if nothing comes before.
    pub(super) fn wake_ns(&self) -> Option<u64> {
        let closes_ns = self.leaving.and_then(|leaving| leaving.closes_ns);
        self.streams.wake_ns().into_iter().chain(closes_ns).min()
    }

    /// Whether the client is connected.
    pub(super) fn is_open(&self) -> bool {
        self.is_ready && !self.is_over
    }

    /// Whether its handshake is not complete.
    pub(super) fn is_handshaking(&self) -> bool {
        !self.is_ready && !self.is_over
    }

    /// Ends the connection with a code of HTTP/3, with all of its streams.
    fn close(&mut self, code: u64, reason: &str, turn: &mut Turn<'_>) {
        turn.connection.close(code, reason, turn.now_ns);
        self.over(turn.context.counters);
    }

    fn lose(&mut self, ended: &Ended, counters: &WorkerCounters) {
        if self.is_ready && matches!(ended, Ended::Lost(Lost::Idle)) {
            counters.links.timed_out.add(1);
        }
        self.over(counters);
    }

    pub(super) fn over(&mut self, counters: &WorkerCounters) {
        if std::mem::replace(&mut self.is_over, true) {
            return;
        }
        if self.is_ready {
            counters.links.closed.add(1);
        } else {
            counters.links.handshakes_failed.add(1);
        }
        self.streams.abandon(counters);
        self.hold = Hold::default();
        self.leaving = None;
    }

    fn take(&mut self, event: ServerEvent, turn: &mut Turn<'_>) {
        let counters = turn.context.counters;
        match event {
            ServerEvent::Ready => {
                self.is_ready = true;
                counters.links.accepted.add(1);
                counters.connections_http3.add(1);
            }
            ServerEvent::Readable { stream } => self.read(stream, turn),
            ServerEvent::Writable { stream } => self.streams.go_on(stream),
            ServerEvent::Stopped { stream, .. } => {
                if self.streams.cancel(stream, counters) {
                    // What may still come of its request has no meaning.
                    let code = ErrorCode::RequestCancelled.number();
                    turn.connection.stop(stream, code);
                }
            }
        }
    }

    /// Reads what came of a request.
    fn read(&mut self, stream: u64, turn: &mut Turn<'_>) {
        if stream >= self.opened {
            self.opened = stream + 1;
            let from = turn.connection.goes_away_from();
            if from.is_some_and(|from| stream >= from) {
                turn.context.counters.streams_ignored.add(1);
                return reject(stream, turn.connection);
            }
            let incoming = StreamState::Incoming(Box::default());
            self.streams.set(stream, incoming, Outgoing::default);
        }
        // What follows a complete request, or one that was refused, is its end.
        let Some(incoming) = self.streams.incoming(stream) else {
            return;
        };
        let before_bytes = incoming.reader.wire_bytes();
        let scratch = &mut *turn.scratch;
        let mut outcome = Ok(Ok(()));
        let head = &mut incoming.head;
        let read = turn.connection.read(
            stream,
            &mut incoming.reader,
            HEAD_BYTES_MAX as u32,
            turn.now_ns,
            |part| {
                let read = match part {
                    RequestPart::Head(section) => gather(section, scratch)
                        .map(|gathered| gathered.head().map(|read| *head = Some(read))),
                    RequestPart::Trailers(section) => {
                        gather(section, scratch).map(GatheredFields::trailers)
                    }
                    RequestPart::Content(_) | RequestPart::Framing => return None,
                };
                if matches!(outcome, Ok(Ok(()))) {
                    outcome = read;
                }
                head.and_then(|head| head.body_bytes)
            },
        );
        let bytes = incoming.reader.wire_bytes();
        let (head, is_continued) = (incoming.head, incoming.is_continued);
        let kept_bytes = incoming.reader.kept_bytes();
        self.streams.keep(stream, kept_bytes);
        let kept_bytes = self.streams.kept_bytes();
        let is_kept = kept_bytes == 0 || self.hold.set(kept_bytes, turn.room);
        let counters = turn.context.counters;
        if !is_kept {
            counters.links.overflowed.add(1);
            let code = ErrorCode::ExcessiveLoad.number();
            return self.close(code, "the heads of requests take too much memory", turn);
        }
        counters.links.bytes_received.add(bytes - before_bytes);
        match (read, outcome) {
            // The client is told already.
            (RequestRead::Failed(RequestReadError::Connection(_)), _) => self.over(counters),
            (_, Err(error)) => {
                let error = ConnectionError::Compression(error);
                self.close(error.code().number(), &error.to_string(), turn);
            }
            (RequestRead::Reset, _) => self.give_up(stream, ErrorCode::RequestCancelled, turn),
            (RequestRead::Failed(RequestReadError::Incomplete), _) => {
                self.give_up(stream, ErrorCode::RequestIncomplete, turn);
            }
            (RequestRead::Complete, Ok(Err(malformed))) => {
                self.begun(stream, turn);
                counters.requests_malformed.add(1);
                let reply = FinalReply::text(400, format!("{malformed}\n"), Method::OTHER);
                self.reply(stream, reply, counters);
            }
            (RequestRead::Failed(RequestReadError::HeadTooLarge), _) => {
                self.cut(stream, ErrorCode::ExcessiveLoad, turn);
            }
            (RequestRead::More, Ok(Err(_)))
            | (RequestRead::Failed(RequestReadError::ContentLength), Ok(_)) => {
                self.cut(stream, ErrorCode::MessageError, turn);
            }
            (RequestRead::Complete, Ok(Ok(()))) => {
                if let Some(head) = head {
                    self.begun(stream, turn);
                    self.answer(stream, head, bytes, turn);
                }
            }
            (RequestRead::More, Ok(Ok(()))) => {
                let waits = head.is_some_and(|head| head.expects_continue);
                if waits
                    && !is_continued
                    && let Some(incoming) = self.streams.incoming(stream)
                {
                    incoming.is_continued = true;
                    counters.replies_interim.add(1);
                    let append = |out: &mut Vec<u8>| reply::write_head(out, 100, Says::Nothing);
                    self.streams.append(stream, append);
                }
            }
        }
    }

    /// Ends a stream whose request does not come to its end.
    fn give_up(&mut self, stream: u64, code: ErrorCode, turn: &mut Turn<'_>) {
        self.streams.cancel(stream, turn.context.counters);
        turn.connection.reset(stream, code.number());
    }

    /// A request is dealt with; with the last one goes a GOAWAY.
    fn begun(&mut self, stream: u64, turn: &mut Turn<'_>) {
        let Some(most) = turn.options.requests_max else {
            return;
        };
        // Requests that are complete may not be the first ones, so streams are counted.
        if self.leaving.is_none() && stream + 1 >= most.get() {
            self.go_away(stream + 1, Protocol::Http3.no_error(), turn);
        }
    }

    /// Tells the client that streams from this one on are not processed. The connection ends with
    /// this code when all others are answered.
    fn go_away(&mut self, from: u64, code: u32, turn: &mut Turn<'_>) {
        let counters = turn.context.counters;
        turn.connection.go_away(from);
        counters.goaways.add(1);
        self.streams
            .ignore_from(from, counters, |stream| reject(stream, turn.connection));
        self.leaving = Some(Leaving {
            code,
            closes_ns: None,
        });
    }

    /// Answers a malformed request of which more might come, and has the client stop.
    fn cut(&mut self, stream: u64, code: ErrorCode, turn: &mut Turn<'_>) {
        self.begun(stream, turn);
        turn.context.counters.requests_malformed.add(1);
        turn.context.counters.reply(400);
        let append = |out: &mut Vec<u8>| reply::write_head(out, 400, Says::Length(0));
        self.streams.send(stream, true, StreamState::Ending, append);
        turn.connection.stop(stream, code.number());
    }

    /// Answers a complete request, of so many bytes.
    fn answer(&mut self, stream: u64, head: RequestHead, bytes: u64, turn: &mut Turn<'_>) {
        let counters = turn.context.counters;
        counters.request(head.route, head.method, bytes);
        let streams = &mut self.streams;
        match answer_to(head.route, head.method, Protocol::Http3, turn.context) {
            Answer::Null | Answer::NullAlone => self.null(stream, 0, counters),
            Answer::NullAt { at_ns } => {
                streams.send(stream, true, StreamState::Waiting { at_ns }, |_| {});
            }
            Answer::Interim(count) => self.null(stream, count, counters),
            Answer::Last => {
                // In front of the answer, so that a client knows when it has the last one.
                self.go_away(self.opened, Protocol::Http3.no_error(), turn);
                self.null(stream, 0, counters);
            }
            Answer::Reply(reply) => self.reply(stream, reply, counters),
            Answer::Silence => streams.send(stream, true, StreamState::Silence, |_| {}),
            Answer::ResetStream(code) => {
                streams.end(stream);
                turn.connection.reset(stream, code.into());
            }
            Answer::GoAway(code) => {
                // Its request is a fault, and none that is ignored.
                streams.end(stream);
                reject(stream, turn.connection);
                self.go_away(stream, code, turn);
            }
            Answer::End(After::Reset) => {
                let code = Protocol::Http3.internal_error();
                self.close(code.into(), "", turn);
            }
            Answer::Raw(answer) => self.raw(stream, answer, turn),
            // Replies of HTTP/1.0 are not among the answers of this protocol; nothing comes near.
            Answer::End(_) | Answer::Http10 { .. } => {
                let code = Protocol::Http3.no_error();
                self.close(code.into(), "", turn);
            }
        }
    }

    fn reply(&mut self, stream: u64, reply: FinalReply, counters: &WorkerCounters) {
        reply.count(counters);
        let FinalReply { status, says, body } = reply;
        let is_counted = body.is_counted;
        let state = if body.is_nothing() {
            StreamState::Ending
        } else {
            StreamState::Body(body)
        };
        let append = |out: &mut Vec<u8>| reply::write_head(out, status, says);
        self.streams.send(stream, is_counted, state, append);
    }

    /// Has a raw answer sent.
    fn raw(&mut self, stream: u64, answer: &'static RawAnswer, turn: &mut Turn<'_>) {
        let mut bytes = Vec::new();
        (answer.bytes.0)(&mut bytes, 0);
        match answer.place {
            RawPlace::Request => {}
            RawPlace::Control => turn.connection.write_control(&bytes, false),
            RawPlace::ControlEnd => turn.connection.write_control(&bytes, true),
            RawPlace::NewStream => turn.connection.write_on_new_stream(&bytes),
        }
        let state = match answer.ending {
            RawEnding::GoOn => StreamState::Ending,
            RawEnding::Silence => StreamState::Silence,
            RawEnding::Endless(_) => StreamState::Endless(answer),
            RawEnding::Close => {
                let code = Protocol::Http3.no_error();
                return self.close(code.into(), "", turn);
            }
        };
        self.streams.send(stream, true, state, |out| {
            if answer.place == RawPlace::Request {
                out.extend_from_slice(&bytes);
            }
        });
    }

    /// Has the null answer sent, behind so many interim replies.
    fn null(&mut self, stream: u64, interims: u16, counters: &WorkerCounters) {
        counters.replies_interim.add(interims.into());
        counters.reply(200);
        self.streams.send(stream, true, StreamState::Ending, |out| {
            for (status, says) in (0..interims).map(interim) {
                reply::write_head(out, status, says);
            }
            reply::write_null(out);
        });
    }
}

/// Tells the client that a request was not processed.
fn reject(stream: u64, connection: &mut ServerConnection) {
    let code = ErrorCode::RequestRejected.number();
    connection.stop(stream, code);
    connection.reset(stream, code);
}

/// Reads the fields of a section.
fn gather(section: &[u8], scratch: &mut Vec<u8>) -> Result<GatheredFields, QpackError> {
    let mut gathered = GatheredFields::default();
    qpack::decode::<Bytes>(section, scratch, |(name, value), _| {
        gathered.add(name, value)
    })?;
    Ok(gathered)
}

/// The window of a stream.
pub(super) const STREAM_BYTES: u64 = 1 << 20;
/// The window of a connection: while its handshake lasts, at least and at most; when it is open,
/// where there is room; and at most.
const FIRST_BYTES: [usize; 2] = [2 << 10, 64 << 10];
const OPEN_BYTES: usize = 256 << 10;
const BYTES_MAX: usize = 16 << 20;
/// Times its bytes that a full window may take in memory.
const MEMORY_TIMES: usize = 2;
/// Buffers of a connection that are for input: its window, and heads that are not complete.
const INPUT_BUFFERS: usize = 2;

/// Room for the input of one worker.
pub(super) fn room(settings: &WorkerSettings) -> Rc<Room> {
    Room::new(
        settings.input_bytes_max,
        settings.connections_max,
        INPUT_BUFFERS,
    )
}

/// The window of a connection that begins: its own part of the room.
pub(super) fn bytes_at_first(settings: &WorkerSettings) -> usize {
    let [least, most] = FIRST_BYTES;
    let buffers = settings.connections_max as usize * INPUT_BUFFERS;
    let part = settings.input_bytes_max / 2 / buffers.max(1) / MEMORY_TIMES;
    part.max(least).min(most)
}

/// The window of one connection, with what it holds of the room.
#[derive(Debug, Default)]
pub(super) struct Window {
    hold: Hold,
    bytes: usize,
    /// What was read when it grew last.
    read_bytes: u64,
}

impl Window {
    /// That of a connection that begins.
    pub(super) fn new(settings: &WorkerSettings) -> Self {
        Self {
            bytes: bytes_at_first(settings),
            ..Self::default()
        }
    }

    #[cfg(test)]
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Grows on a connection that is open: twofold each time that its client has filled it.
    pub(super) fn fit(&mut self, connection: &mut ServerConnection, room: &Rc<Room>) {
        let read_bytes = connection.read_bytes();
        let wanted_bytes = if read_bytes - self.read_bytes >= self.bytes as u64 {
            (self.bytes * 2).min(BYTES_MAX)
        } else if self.bytes < OPEN_BYTES {
            OPEN_BYTES.min(room.grant_bytes() / MEMORY_TIMES)
        } else {
            return;
        };
        if wanted_bytes <= self.bytes {
            return;
        }
        self.read_bytes = read_bytes;
        if self.hold.set(wanted_bytes * MEMORY_TIMES, room) {
            self.bytes = wanted_bytes;
            connection.set_window(wanted_bytes as u64);
        }
    }
}
