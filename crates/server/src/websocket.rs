//! WebSocket: from the frames of messages to the frames of answers.

use std::rc::Rc;

use brunt_proto::websocket::{
    CloseCode, FrameEvent, Kind, Opcode, Reader, Rules, Side, mask, put_close, put_frame, put_head,
};

use crate::answer::{After, Answer, Context, FinalReply, Finish, Says, answer_to};
use crate::batch::{Batch, BatchContent, Hold, Room};
use crate::counters::WorkerCounters;
use crate::http1::reply::{INLINE_BODY_BYTES_MAX, Step};
use crate::listeners::Protocol;
use crate::pattern;
use crate::raw::RawEnding;
use crate::route::{MESSAGE_BYTES_MAX, Method, Route, close_code};

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

#[derive(Debug, Default)]
pub(crate) struct WebSocketSession {
    /// What messages get.
    route: Route,
    reader: Reader,
    /// The message that is incomplete, or is to be echoed.
    payload: Vec<u8>,
    hold: Hold,
    /// An echo that is due at an instant.
    waiting: Option<(Kind, u64)>,
    /// The message that is being sent, whose frame has begun.
    sending: Option<SendingMessage>,
    /// What follows the message that is being sent.
    then: Then,
    /// A Close frame was sent, or a raw answer was the last one: nothing is answered any more.
    is_closing: bool,
    /// Nothing is sent any more, as an answer to a Close frame neither.
    is_silent: bool,
}

/// What is left of a message that is being sent.
#[derive(Clone, Copy, Debug)]
struct SendingMessage {
    /// Whether its bytes are those of the payload, else those of the pattern.
    is_echo: bool,
    position: u64,
    /// The end of the frame in hand.
    frame_end: u64,
    end: u64,
    frame_bytes: u64,
}

/// What follows a message.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Then {
    #[default]
    ReadOn,
    /// A Close frame.
    Close,
    /// The end of the connection. What was sent before it is not a message, but a part of a frame.
    Cut,
}

impl WebSocketSession {
    /// A connection whose messages get `route`.
    pub(crate) fn boxed(route: Route) -> Box<Self> {
        Box::new(Self {
            route,
            ..Self::default()
        })
    }

    /// Whether an echo is due at an instant that is still to come.
    pub(crate) fn waits(&self) -> bool {
        self.waiting.is_some()
    }

    /// Whether a message is being sent, so that no input is looked at.
    pub(crate) fn is_sending(&self) -> bool {
        self.sending.is_some()
    }

    /// Goes on with `input`, whose frames are answered in `batch`. Also gives how much of the input
    /// was taken.
    pub(crate) fn advance(
        &mut self,
        input: &[u8],
        batch: &mut Batch,
        room: &Rc<Room>,
        context: &Context<'_>,
    ) -> (usize, Step) {
        let counters = context.counters;
        let mut taken = 0;
        loop {
            if let Some(step) = self.send(batch, counters) {
                return (taken, step);
            }
            if let Some((kind, due_ns)) = self.waiting {
                if context.now_ns() < due_ns {
                    return (taken, Step::Wait { until_ns: due_ns });
                }
                self.waiting = None;
                self.echo(kind, batch, counters);
                return (taken, Step::Answer { due_ns });
            }
            if batch.is_full() {
                return (taken, Step::GoOn);
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
                    counters.websocket_refused.add(1);
                    let (code, reason) = (Some(fault.close_code()), fault.to_string());
                    put_close(batch.bytes(), code, &reason, None);
                    return (input.len(), Step::End(After::Close));
                }
            };
            taken += progress.consumed;
            if self.payload.len() as u64 > MESSAGE_BYTES_MAX {
                counters.websocket_refused.add(1);
                put_close(batch.bytes(), close_code(TOO_BIG), "", None);
                return (input.len(), Step::End(After::Close));
            }
            if !self.hold.set(self.payload.capacity(), room) {
                return (input.len(), Step::Overflow);
            }
            let step = match progress.event {
                None => Some(Step::Input),
                Some(FrameEvent::Message {
                    kind,
                    payload_bytes,
                    ..
                }) => {
                    counters.websocket_messages_received.add(1);
                    counters.websocket_bytes_received.add(payload_bytes);
                    self.answer(kind, batch, context)
                }
                Some(FrameEvent::Ping { .. }) => {
                    counters.websocket_pings.add(1);
                    if !self.is_closing {
                        let payload = self.reader.control_payload();
                        put_frame(batch.bytes(), Opcode::Pong, payload, None);
                    }
                    None
                }
                Some(FrameEvent::Pong { .. }) => {
                    counters.websocket_pongs.add(1);
                    None
                }
                Some(FrameEvent::Close { code, .. }) => {
                    counters.websocket_closes.add(1);
                    if self.is_silent {
                        return (input.len(), Step::Input);
                    }
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
            context.counters.requests_abandoned.add(1);
            self.forget();
            return None;
        }
        let counters = context.counters;
        let answer = answer_to(self.route, Method::GET, Protocol::WebSocket, context);
        match answer {
            Answer::Null => self.echo(kind, batch, counters),
            Answer::NullAlone => {
                self.echo(kind, batch, counters);
                batch.seal();
            }
            Answer::NullAt { at_ns } => self.waiting = Some((kind, at_ns)),
            Answer::Interim(count) => {
                for _ in 0..count {
                    put_frame(batch.bytes(), Opcode::Text, PUSH, None);
                    counters.websocket_messages_pushed.add(1);
                    counters.websocket_bytes_sent.add(PUSH.len() as u64);
                }
                self.echo(kind, batch, counters);
            }
            Answer::Last => {
                self.then = Then::Close;
                self.echo(kind, batch, counters);
            }
            Answer::Reply(FinalReply { says, body, .. }) => {
                let end = body.source.left();
                let frame_bytes = match says {
                    Says::Length(promised) => promised,
                    _ => FRAME_BYTES.min(end),
                };
                if body.finish == Finish::Reset {
                    self.then = Then::Cut;
                } else {
                    counters.websocket_messages_answered.add(1);
                }
                self.begin(Opcode::Text, false, end, frame_bytes, batch);
            }
            Answer::GoAway(code) => {
                self.forget();
                self.close(close_code(code).or(close_code(GOING_AWAY)), batch);
            }
            Answer::End(after) => return Some(Step::End(after)),
            Answer::Silence => self.forget(),
            Answer::Raw(answer) => {
                (answer.bytes.0)(batch.bytes(), 0);
                self.forget();
                match answer.ending {
                    RawEnding::GoOn | RawEnding::Endless(_) => {}
                    RawEnding::Close => return Some(Step::End(After::Close)),
                    RawEnding::Silence => (self.is_closing, self.is_silent) = (true, true),
                }
            }
            // The others are not among the answers of this protocol.
            _ => return Some(Step::End(After::Close)),
        }
        None
    }

    /// Begins to send the payload back, and does it where there is room.
    fn echo(&mut self, kind: Kind, batch: &mut Batch, counters: &WorkerCounters) {
        counters.websocket_messages_answered.add(1);
        let bytes = self.payload.len() as u64;
        self.begin(kind.opcode(), true, bytes, bytes, batch);
        self.send(batch, counters);
    }

    /// Begins a message of `end` bytes, in frames of `frame_bytes`.
    fn begin(
        &mut self,
        opcode: Opcode,
        is_echo: bool,
        end: u64,
        frame_bytes: u64,
        batch: &mut Batch,
    ) {
        let is_final = frame_bytes >= end;
        put_head(batch.bytes(), opcode, is_final, frame_bytes, None);
        self.sending = Some(SendingMessage {
            is_echo,
            position: 0,
            frame_end: frame_bytes.min(end),
            end,
            frame_bytes,
        });
    }

    /// Sends as much of the message in hand as there is room for; gives what is to be done before
    /// input is looked at.
    fn send(&mut self, batch: &mut Batch, counters: &WorkerCounters) -> Option<Step> {
        let sending = self.sending.as_mut()?;
        let is_counted = self.then != Then::Cut;
        while sending.position < sending.end {
            if batch.is_full() {
                return Some(Step::GoOn);
            }
            let from = sending.position;
            if from == sending.frame_end {
                sending.frame_end = (from + sending.frame_bytes).min(sending.end);
                let is_final = sending.frame_end == sending.end;
                let length = sending.frame_end - from;
                put_head(batch.bytes(), Opcode::Continuation, is_final, length, None);
            }
            let left = sending.frame_end - from;
            let is_long = !sending.is_echo && left > INLINE_BODY_BYTES_MAX;
            if is_long && batch.content() != BatchContent::Nothing {
                return Some(Step::GoOn);
            }
            let bytes_max = if is_long {
                batch.pattern_bytes_max()
            } else {
                batch.piece_bytes_max() as u64
            };
            let bytes = left.min(bytes_max);
            sending.position += bytes;
            let counted_bytes = u64::from(is_counted) * bytes;
            counters.websocket_bytes_sent.add(counted_bytes);
            if is_long {
                let start = pattern::pattern_start(from);
                let end = start + bytes as u32;
                return Some(Step::Pattern { start, end });
            }
            if sending.is_echo {
                let piece = &self.payload[from as usize..sending.position as usize];
                batch.bytes().extend_from_slice(piece);
            } else {
                pattern::write_pattern(batch.bytes(), from, sending.position);
            }
        }
        self.sending = None;
        self.forget();
        if self.then == Then::Close {
            self.then = Then::ReadOn;
            self.close(Some(CloseCode::NORMAL), batch);
        }
        (self.then == Then::Cut).then_some(Step::End(After::Close))
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
