//! WebSocket: from the frames of messages to the frames of answers.

use std::rc::Rc;

use brunt_proto::websocket::{
    CloseCode, Event, Kind, Opcode, Reader, Rules, Side, mask, put_close, put_frame, put_head,
};

use crate::answer::{Answer, Context, answer_to};
use crate::batch::Batch;
use crate::http1::stream::After;
use crate::pattern;
use crate::protocol::Protocol;
use crate::room::{Hold, Room};
use crate::route::{MESSAGE_BYTES_MAX, Route, close_code};

const RULES: Rules = Rules {
    side: Side::Server,
    is_strict: true,
};
/// Bytes of a message in one frame of `/websocket/chunked`.
const FRAME_BYTES: u64 = 16 * 1024;
/// What `/websocket/interim` sends before an echo.
const PUSH: &[u8] = b"push";
/// The codes of a server that goes away, and of a message that is too long (RFC 6455 section
/// 7.4.1).
const GOING_AWAY: u32 = 1001;
const TOO_BIG: u32 = 1009;

/// One connection.
#[derive(Debug)]
pub(crate) struct Session {
    /// What messages get.
    route: Route,
    reader: Reader,
    /// The message that is incomplete, or is to be echoed.
    payload: Vec<u8>,
    hold: Hold,
    /// An echo that is due at an instant.
    waiting: Option<(Kind, u64)>,
    /// A Close frame was sent: nothing is answered any more.
    is_closing: bool,
}

/// What to do next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// Send what was written, and wait for more input.
    Input,
    /// Send what was written, and come back at this instant.
    Wait { until_ns: u64 },
    /// Send what was written, then go on.
    Send,
    /// The same: an answer that was to be sent at this instant.
    Answer { due_ns: u64 },
    /// Send what was written, then end the connection.
    End(After),
    /// There is no room for a message.
    Overflow,
}

impl Session {
    /// A connection whose messages get `route`.
    pub(crate) fn boxed(route: Route) -> Box<Self> {
        Box::new(Self {
            route,
            reader: Reader::default(),
            payload: Vec::new(),
            hold: Hold::default(),
            waiting: None,
            is_closing: false,
        })
    }

    /// Whether an echo is due at an instant that is still to come.
    pub(crate) fn waits(&self) -> bool {
        self.waiting.is_some()
    }

    /// Goes on with `input`, whose frames are answered in `batch`; also gives how much of it was
    /// taken.
    pub(crate) fn advance(
        &mut self,
        input: &[u8],
        batch: &mut Batch,
        room: &Rc<Room>,
        context: &Context<'_>,
    ) -> (usize, Step) {
        let counters = &context.counters.websocket;
        let mut taken = 0;
        loop {
            if let Some((kind, due_ns)) = self.waiting {
                if (context.now_ns)() < due_ns {
                    return (taken, Step::Wait { until_ns: due_ns });
                }
                self.waiting = None;
                self.echo(kind, batch, context);
                return (taken, Step::Answer { due_ns });
            }
            if batch.is_full() {
                return (taken, Step::Send);
            }
            let payload = &mut self.payload;
            let progress = self.reader.receive(&input[taken..], RULES, |piece| {
                let start = payload.len();
                payload.extend_from_slice(piece.bytes);
                if let Some(key) = piece.key {
                    mask(&mut payload[start..], key);
                }
            });
            let progress = match progress {
                Ok(progress) => progress,
                Err(fault) => {
                    counters.refused.add(1);
                    put_close(
                        batch.bytes(),
                        Some(fault.close_code()),
                        &fault.to_string(),
                        None,
                    );
                    return (input.len(), Step::End(After::Close));
                }
            };
            taken += progress.consumed;
            if self.payload.len() as u64 > MESSAGE_BYTES_MAX {
                counters.refused.add(1);
                put_close(batch.bytes(), close_code(TOO_BIG), "", None);
                return (input.len(), Step::End(After::Close));
            }
            if !self.hold.set(self.payload.capacity(), room) {
                return (input.len(), Step::Overflow);
            }
            let step = match progress.event {
                None => Some(Step::Input),
                Some(Event::Message {
                    kind,
                    payload_bytes,
                    ..
                }) => {
                    counters.received.add(1);
                    counters.bytes_received.add(payload_bytes);
                    self.answer(kind, batch, context)
                }
                Some(Event::Ping { .. }) => {
                    counters.pings.add(1);
                    if !self.is_closing {
                        let payload = self.reader.control_payload();
                        put_frame(batch.bytes(), Opcode::Pong, payload, None);
                    }
                    None
                }
                Some(Event::Pong { .. }) => {
                    counters.pongs.add(1);
                    None
                }
                Some(Event::Close { code, .. }) => {
                    counters.closes.add(1);
                    if !self.is_closing {
                        put_close(batch.bytes(), code, "", None);
                    }
                    return (input.len(), Step::End(After::Close));
                }
            };
            if let Some(step) = step {
                return (taken, step);
            }
        }
    }

    /// Answers the message in `payload`; gives what is to be done where that is not to read on.
    fn answer(&mut self, kind: Kind, batch: &mut Batch, context: &Context<'_>) -> Option<Step> {
        if self.is_closing {
            // It came too late.
            context.counters.abandoned.add(1);
            self.forget();
            return None;
        }
        let counters = &context.counters.websocket;
        match answer_to(self.route, Protocol::WebSocket, context) {
            Answer::Null => self.echo(kind, batch, context),
            Answer::NullAlone => {
                self.echo(kind, batch, context);
                batch.seal();
            }
            Answer::NullAt { at_ns } => self.waiting = Some((kind, at_ns)),
            Answer::Interim(count) => {
                for _ in 0..count {
                    put_frame(batch.bytes(), Opcode::Text, PUSH, None);
                    counters.pushed.add(1);
                    counters.bytes_sent.add(PUSH.len() as u64);
                }
                self.echo(kind, batch, context);
            }
            Answer::Last => {
                self.echo(kind, batch, context);
                self.close(Some(CloseCode::NORMAL), batch);
            }
            Answer::Sized(bytes) => self.sized(bytes, bytes.max(1), batch, context),
            Answer::Chunked(bytes) => self.sized(bytes, FRAME_BYTES, batch, context),
            Answer::Truncated(promised) => {
                let out = batch.bytes();
                put_head(out, Opcode::Text, true, promised, None);
                pattern::write_pattern(out, 0, promised / 2);
                return Some(Step::End(After::Close));
            }
            Answer::GoAway(code) => {
                self.forget();
                self.close(close_code(code).or(close_code(GOING_AWAY)), batch);
            }
            Answer::Reset => return Some(Step::End(After::Reset)),
            Answer::Silence => self.forget(),
            // The others are not among the answers of this protocol.
            _ => return Some(Step::End(After::Close)),
        }
        None
    }

    fn echo(&mut self, kind: Kind, batch: &mut Batch, context: &Context<'_>) {
        put_frame(batch.bytes(), kind.opcode(), &self.payload, None);
        let counters = &context.counters.websocket;
        counters.answered.add(1);
        counters.bytes_sent.add(self.payload.len() as u64);
        self.forget();
    }

    /// Answers by a text of so many bytes, at most `frame_bytes` of it in a frame.
    fn sized(&mut self, bytes: u64, frame_bytes: u64, batch: &mut Batch, context: &Context<'_>) {
        let out = batch.bytes();
        let mut position = 0;
        loop {
            let end = (position + frame_bytes).min(bytes);
            let opcode = match position {
                0 => Opcode::Text,
                _ => Opcode::Continuation,
            };
            put_head(out, opcode, end == bytes, end - position, None);
            pattern::write_pattern(out, position, end);
            position = end;
            if end == bytes {
                break;
            }
        }
        let counters = &context.counters.websocket;
        counters.answered.add(1);
        counters.bytes_sent.add(bytes);
        self.forget();
    }

    /// Nothing follows on this connection but what its client still sends.
    fn close(&mut self, code: Option<CloseCode>, batch: &mut Batch) {
        self.is_closing = true;
        put_close(batch.bytes(), code, "", None);
    }

    /// An idle connection holds no memory for a long message.
    fn forget(&mut self) {
        const KEPT_BYTES: usize = 4 * 1024;
        self.payload.clear();
        self.payload.shrink_to(KEPT_BYTES);
    }
}
