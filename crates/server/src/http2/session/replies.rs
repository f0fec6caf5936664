//! Answers to requests: what each stream sends.

use brunt_proto::http2::frame::{self, ErrorCode};

use super::{Session, Turn};
use crate::answer::{Answer, answer_to, counters_text};
use crate::http1::stream::After;
use crate::http2::head::Malformed;
use crate::http2::reply::{self, Says};
use crate::http2::streams::{Body, Finish, Incoming, Source, State};
use crate::malformed::http2::Ending;
use crate::protocol::Protocol;
use crate::route::{Method, Route};

impl Session {
    /// Answers a malformed request, whose end came or not.
    pub(super) fn refuse(
        &mut self,
        stream: u32,
        malformed: Malformed,
        is_end: bool,
        turn: &mut Turn<'_>,
    ) {
        turn.context.counters.malformed.add(1);
        if !is_end {
            turn.context.counters.reply(400);
            // The head alone, since nothing may follow a reset.
            reply::write_head(turn.batch.bytes(), stream, 400, Says::Length(0), true);
            self.reset(stream, ErrorCode::ProtocolError, turn);
            return;
        }
        let answer = Answer::Text(400, format!("{malformed}\n"));
        self.write(stream, answer, Method::Other, turn);
    }

    /// Answers a complete request.
    pub(super) fn answer(&mut self, stream: u32, request: &Incoming, turn: &mut Turn<'_>) {
        if request.route == Route::Counters {
            // Not to be found in its own figures, nor in those of the next one.
            let received = &turn.context.counters.bytes_received;
            received.subtract(request.frame_bytes);
            turn.context.counters.counters_requests.add(1);
        } else {
            turn.context.counters.request(request.method);
        }
        let answer = answer_to(request.route, Protocol::Http2, turn.context);
        self.write(stream, answer, request.method, turn);
    }

    /// Appends an answer, or has it sent in its time.
    fn write(&mut self, stream: u32, answer: Answer, method: Method, turn: &mut Turn<'_>) {
        let counters = turn.context.counters;
        let is_head = method == Method::Head;
        let state = match answer {
            Answer::Null => null(stream, turn),
            Answer::NullAlone => {
                let state = null(stream, turn);
                turn.batch.seal();
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
                    reply::write_head(turn.batch.bytes(), stream, status, says, false);
                }
                null(stream, turn)
            }
            Answer::Last => {
                // In front of the answer, so that a client knows when it has the last one.
                self.go_away(self.last_stream, ErrorCode::NoError, turn);
                null(stream, turn)
            }
            Answer::Status(status @ (204 | 304)) => {
                turn.reply(stream, status, Says::Nothing, true);
                None
            }
            Answer::Status(status) => {
                turn.reply(stream, status, Says::Length(0), true);
                None
            }
            Answer::RetryLater(status) => {
                turn.reply(stream, status, Says::RetryLater, true);
                None
            }
            Answer::Text(status, text) => {
                let length = text.len() as u64;
                turn.reply(stream, status, Says::Length(length), is_head);
                let source = Source::Text { text, position: 0 };
                body(source, Finish::End, true, is_head)
            }
            Answer::Counters => {
                // What the batch already holds belongs into the figures.
                counters.bytes_sent.add(turn.batch.settle());
                let text = counters_text(turn.context.shared);
                let length = Says::Length(text.len() as u64);
                reply::write_head(turn.batch.bytes(), stream, 200, length, is_head);
                turn.batch.settle();
                let source = Source::Text { text, position: 0 };
                body(source, Finish::End, false, is_head)
            }
            Answer::Sized(bytes) => {
                let is_end = is_head || bytes == 0;
                turn.reply(stream, 200, Says::Length(bytes), is_end);
                body(pattern(bytes), Finish::End, true, is_end)
            }
            Answer::Chunked(bytes) => {
                turn.reply(stream, 200, Says::Trailer, is_head);
                if bytes == 0 && !is_head {
                    reply::write_trailers(turn.batch.bytes(), stream, 0);
                }
                let finish = Finish::Trailers(bytes);
                body(pattern(bytes), finish, true, is_head || bytes == 0)
            }
            Answer::Drip(drip) => {
                let is_end = is_head || drip.left() == 0;
                turn.reply(stream, 200, Says::Length(drip.left()), is_end);
                body(Source::Drip(drip), Finish::End, true, is_end)
            }
            Answer::Truncated(promised) => {
                reply::write_head(
                    turn.batch.bytes(),
                    stream,
                    200,
                    Says::Length(promised),
                    false,
                );
                if promised / 2 == 0 || is_head {
                    frame::write_rst_stream(turn.batch.bytes(), stream, ErrorCode::InternalError);
                }
                let finish = Finish::Reset(ErrorCode::InternalError);
                let is_end = promised / 2 == 0 || is_head;
                body(pattern(promised / 2), finish, true, is_end)
            }
            Answer::Silence => Some(State::Silence),
            Answer::ResetStream(code) => {
                frame::write_rst_stream(turn.batch.bytes(), stream, ErrorCode::of(code));
                None
            }
            Answer::GoAway(code) => {
                let before = stream.saturating_sub(2);
                // Its request is a fault, and none that is ignored.
                self.streams.end(stream);
                self.go_away(before, ErrorCode::of(code), turn);
                None
            }
            Answer::Malformed(kind) => kind.http2().and_then(|kind| {
                kind.write(turn.batch.bytes(), stream);
                match kind.ending {
                    Ending::GoOn => None,
                    Ending::Silence => Some(State::Silence),
                    Ending::Endless(_) => Some(State::Endless(kind)),
                    Ending::Close => {
                        self.end_now(After::Close, turn);
                        None
                    }
                }
            }),
            // Replies of HTTP/1.0 are not among the answers of this protocol; nothing comes near.
            Answer::Cut | Answer::Http10 | Answer::Http10KeepAlive => {
                self.end_now(After::Close, turn);
                None
            }
            Answer::Reset => {
                self.end_now(After::Reset, turn);
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
fn null(stream: u32, turn: &mut Turn<'_>) -> Option<State> {
    turn.context.counters.reply(200);
    reply::write_null(turn.batch.bytes(), stream);
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
