//! How the simulated server answers in HTTP/1.1.

use std::rc::Rc;

use rand::Rng;

use super::link::LinkId;
use super::piece::{Completes, Piece};
use super::reply::ReplyTemplate;
use super::request::ReceivedRequest;
use super::service::Fate;
use super::settings::{AfterMalformed, Framing};
use super::world::World;

/// Shortest first line of an HTTP/1.0 answer: a cut before its end is a cut in the head.
const STATUS_LINE_BYTES: u32 = 15;
/// What comes unasked behind an answer.
const EXTRA: &[u8] = b"boo!";

impl World {
    /// A request has its outcome.
    pub(super) fn answer_http1(
        &mut self,
        at_ns: u64,
        id: LinkId,
        request: ReceivedRequest,
        outcome: Fate,
    ) {
        match outcome {
            Fate::Silent | Fate::Reset | Fate::Closed => {
                self.answer_with_nothing(at_ns, id, outcome)
            }
            Fate::Truncated => {
                self.counts.borrow_mut().truncated += 1;
                let template = ReplyTemplate {
                    status: 200,
                    is_head: request.is_head,
                    closes: false,
                };
                let bytes = self.bytes_of(template);
                let whole = match self.settings.server.framing {
                    // A body without a length cannot be truncated, only a head can.
                    Framing::UntilClose => STATUS_LINE_BYTES,
                    Framing::Length | Framing::Chunked => bytes.len() as u32,
                };
                let cut = self.random.random_range(1..whole);
                let part = Rc::from(&bytes[..cut as usize]);
                self.deliver(at_ns, id, part, Completes::Nothing);
                self.end(at_ns, id, Piece::END);
            }
            Fate::Malformed => {
                self.counts.borrow_mut().malformed += 1;
                let bytes = self.settings.server.malformed.as_slice().into();
                self.deliver(at_ns, id, bytes, Completes::Nothing);
                self.after_malformed(at_ns, id);
            }
            _ => {
                let status = Self::status_of(outcome);
                self.reply(at_ns, id, request, status, outcome == Fate::ExtraBytes);
            }
        }
    }

    /// Gives no answer: the server falls silent, or ends the connection.
    pub(super) fn answer_with_nothing(&mut self, at_ns: u64, id: LinkId, outcome: Fate) {
        match outcome {
            Fate::Reset => {
                self.counts.borrow_mut().reset += 1;
                self.end(at_ns, id, Piece::Reset);
            }
            Fate::Closed => {
                self.counts.borrow_mut().closed += 1;
                self.end(at_ns, id, Piece::END);
            }
            _ => {
                self.counts.borrow_mut().silent += 1;
                self.fall_silent(id);
            }
        }
    }

    /// What follows a malformed answer.
    pub(super) fn after_malformed(&mut self, at_ns: u64, id: LinkId) {
        match self.settings.server.after_malformed {
            AfterMalformed::Close => {
                self.end(at_ns, id, Piece::END);
            }
            AfterMalformed::Continue => {}
            AfterMalformed::FallSilent => self.fall_silent(id),
        }
    }

    /// Replies, with or without unasked bytes behind it.
    fn reply(
        &mut self,
        at_ns: u64,
        id: LinkId,
        request: ReceivedRequest,
        status: u16,
        extra: bool,
    ) {
        let server = &self.settings.server;
        let until_close = server.framing == Framing::UntilClose;
        let asked = request.closes && server.honours_close;
        let (limit, announces) = (server.close_after, server.announces_close);
        let Some(link) = self.links.get_mut(id) else {
            return;
        };
        link.answered += 1;
        let is_last = limit.is_some_and(|limit| link.answered >= limit.get());
        let template = ReplyTemplate {
            status,
            is_head: request.is_head,
            closes: asked || (is_last && announces),
        };
        // The end of the connection completes it, or its last byte does.
        let (by_close, by_byte) = if until_close && !request.is_head {
            (Completes::Answer, Completes::Nothing)
        } else {
            (Completes::Nothing, Completes::Answer)
        };
        self.count_reply(status);
        let bytes = self.bytes_of(template);
        self.deliver(at_ns, id, bytes, by_byte);
        if extra {
            self.counts.borrow_mut().extra_bytes += 1;
            self.deliver(at_ns, id, EXTRA.into(), Completes::Nothing);
        }
        if asked || is_last || until_close {
            let completes = by_close;
            self.end(at_ns, id, Piece::End { completes });
        }
    }

    fn bytes_of(&mut self, template: ReplyTemplate) -> Rc<[u8]> {
        self.replies.bytes(&self.settings.server, template)
    }
}
