//! Answers to requests: what each stream sends.

use brunt_proto::http2::frame::{self, ErrorCode};

use super::{Session, Turn};
use crate::answer::{After, Answer, Reply, Says, answer_to, interim};
use crate::head::Malformed;
use crate::http2::reply;
use crate::http2::streams::{self, Incoming, State};
use crate::protocol::Protocol;
use crate::raw::RawEnding;
use crate::route::Method;

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
        let reply = Reply::text(400, format!("{malformed}\n"), Method::OTHER);
        self.write(stream, Answer::Reply(reply), Method::OTHER, turn);
    }

    /// Answers a complete request.
    pub(super) fn answer(&mut self, stream: u32, request: &Incoming, turn: &mut Turn<'_>) {
        let counters = turn.context.counters;
        counters.request(request.route, request.method, request.frame_bytes);
        let (route, method) = (request.route, request.method);
        let answer = answer_to(route, method, Protocol::Http2, turn.context);
        self.write(stream, answer, method, turn);
    }

    /// Appends an answer, or has it sent in its time.
    fn write(&mut self, stream: u32, answer: Answer, method: Method, turn: &mut Turn<'_>) {
        let counters = turn.context.counters;
        let state = match answer {
            Answer::Null => null(stream, turn),
            Answer::NullAlone => {
                let state = null(stream, turn);
                turn.batch.seal();
                state
            }
            Answer::NullAt { at_ns } => Some(State::Waiting { at_ns }),
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
            Answer::Counters => {
                // What the batch already holds belongs into the figures.
                counters.bytes_sent.add(turn.batch.settle());
                let reply = Reply::counters(turn.context.shared, method);
                let state = write_reply(stream, reply, turn);
                turn.batch.settle();
                state
            }
            Answer::Silence => Some(State::Silence),
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
                    RawEnding::Silence => Some(State::Silence),
                    RawEnding::Endless(_) => Some(State::Endless(answer)),
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

/// Appends the null answer; nothing is left of its stream.
fn null(stream: u32, turn: &mut Turn<'_>) -> Option<State> {
    turn.context.counters.reply(200);
    reply::write_null(turn.batch.bytes(), stream);
    None
}

/// Appends the head of a reply; gives what is still to be sent.
fn write_reply(stream: u32, reply: Reply, turn: &mut Turn<'_>) -> Option<State> {
    if reply.is_reply() {
        turn.context.counters.reply(reply.status);
    }
    let Reply { status, says, body } = reply;
    reply::write_head(turn.batch.bytes(), stream, status, says, body.is_nothing());
    if body.source.left() > 0 {
        return Some(State::Body(body));
    }
    streams::write_finish(body.finish, stream, turn.batch.bytes());
    None
}
