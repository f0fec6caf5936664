//! Answers to requests: what each stream sends.

use brunt_proto::http2::frame::{self, ErrorCode};

use super::{Session, Turn};
use crate::answer::{Answer, answer_to};
use crate::http1::stream::After;
use crate::http2::reply;
use crate::http2::streams::{self, Incoming, State};
use crate::protocol::Protocol;
use crate::raw::RawEnding;
use crate::route::Method;
use crate::streamed::answer::{Reply, Streamed};
use crate::streamed::head::Malformed;
use crate::streamed::says::{Says, interim};

impl Session {
    /// Answers a malformed request, whose end came or not.
    pub(super) fn refuse(
        &mut self,
        stream: u32,
        malformed: Malformed,
        is_end: bool,
        turn: &mut Turn<'_>,
    ) {
        turn.context.counters.requests_malformed.add(1);
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
        let counters = turn.context.counters;
        counters.request(request.route, request.method, request.frame_bytes);
        let answer = answer_to(request.route, Protocol::Http2, turn.context);
        self.write(stream, answer, request.method, turn);
    }

    /// Appends an answer, or has it sent in its time.
    fn write(&mut self, stream: u32, answer: Answer, method: Method, turn: &mut Turn<'_>) {
        let counters = turn.context.counters;
        if answer == Answer::Counters {
            // What the batch already holds belongs into the figures.
            counters.bytes_sent.add(turn.batch.settle());
        }
        let state = match Streamed::of(answer, method, turn.context.shared) {
            Streamed::Null => null(stream, turn),
            Streamed::NullAlone => {
                let state = null(stream, turn);
                turn.batch.seal();
                state
            }
            Streamed::NullAt { at_ns } => Some(State::Waiting { at_ns }),
            Streamed::Interim(count) => {
                for (status, says) in (0..count).map(interim) {
                    counters.replies_interim.add(1);
                    reply::write_head(turn.batch.bytes(), stream, status, says, false);
                }
                null(stream, turn)
            }
            Streamed::Last => {
                // In front of the answer, so that a client knows when it has the last one.
                self.go_away(self.last_stream, ErrorCode::NoError, turn);
                null(stream, turn)
            }
            Streamed::Reply(reply) => write_reply(stream, reply, turn),
            Streamed::Silence => Some(State::Silence),
            Streamed::Reset(code) => {
                frame::write_rst_stream(turn.batch.bytes(), stream, ErrorCode::of(code));
                None
            }
            Streamed::GoAway(code) => {
                let before = stream.saturating_sub(2);
                // Its request is a fault, and none that is ignored.
                self.streams.end(stream);
                self.go_away(before, ErrorCode::of(code), turn);
                None
            }
            Streamed::Raw(answer) => {
                (answer.bytes.0)(turn.batch.bytes(), stream);
                match answer.ending {
                    RawEnding::GoOn => None,
                    RawEnding::Silence => Some(State::Silence),
                    RawEnding::Endless(_) => Some(State::Endless(answer)),
                    RawEnding::Close => {
                        self.end_now(After::Close, turn);
                        None
                    }
                }
            }
            Streamed::End(after) => {
                self.end_now(after, turn);
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

/// Appends the head of a reply; gives what is still to be sent.
fn write_reply(stream: u32, reply: Reply, turn: &mut Turn<'_>) -> Option<State> {
    if reply.is_reply {
        turn.context.counters.reply(reply.status);
    }
    let is_end = reply.body.is_none();
    reply::write_head(turn.batch.bytes(), stream, reply.status, reply.says, is_end);
    let state = match reply.body {
        Some(body) if body.source.left() == 0 => {
            streams::write_finish(body.finish, stream, turn.batch.bytes());
            None
        }
        body => body.map(State::Body),
    };
    if !reply.is_counted {
        turn.batch.settle();
    }
    state
}
