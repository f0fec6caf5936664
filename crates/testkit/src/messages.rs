//! How the simulated server answers messages over TCP.

use std::rc::Rc;

use rand::Rng;

use super::link::LinkId;
use super::piece::{Completes, Piece};
use super::service::Fate;
use super::world::World;

impl World {
    /// The message that opens a connection is answered at once.
    pub(super) fn answer_opening(&mut self, at_ns: u64, id: LinkId, message: Rc<[u8]>) {
        let is_secure = self.links.get(id).is_some_and(|link| link.tls.is_some());
        if is_secure || self.begins_handshake(at_ns, id) {
            let reply = self.reply_to(message);
            self.deliver(at_ns, id, reply, Completes::Opening);
        }
    }

    fn reply_to(&self, message: Rc<[u8]>) -> Rc<[u8]> {
        let settings = self.settings.server.messages.as_ref();
        let reply = settings.and_then(|settings| settings.reply.as_deref());
        reply.map_or(message, Rc::from)
    }

    /// A message has its outcome.
    pub(super) fn answer_message(&mut self, at_ns: u64, id: LinkId, outcome: Fate) {
        let Some(message) = self
            .links
            .get_mut(id)
            .and_then(|link| link.messages.pop_front())
        else {
            return;
        };
        let whole = self.reply_to(Rc::clone(&message));
        match outcome {
            Fate::Silent | Fate::Reset | Fate::Closed => {
                self.answer_with_nothing(at_ns, id, outcome)
            }
            Fate::Truncated => {
                self.counts.borrow_mut().truncated += 1;
                if whole.len() > 1 {
                    let cut = self.random.random_range(1..whole.len());
                    self.deliver(at_ns, id, Rc::from(&whole[..cut]), Completes::Nothing);
                }
                self.end(at_ns, id, Piece::END);
            }
            // A wrong echo; no other answer can be told from a right one.
            Fate::Malformed => {
                self.counts.borrow_mut().malformed += 1;
                if Rc::ptr_eq(&whole, &message) {
                    let mut wrong = whole.to_vec();
                    wrong[0] ^= 1;
                    self.deliver(at_ns, id, wrong.into(), Completes::Nothing);
                    self.after_malformed(at_ns, id);
                } else {
                    self.end(at_ns, id, Piece::END);
                }
            }
            _ => self.reply_by_message(at_ns, id, whole, outcome == Fate::ExtraBytes),
        }
    }

    /// Replies, with or without a message that nobody asked for behind it.
    fn reply_by_message(&mut self, at_ns: u64, id: LinkId, reply: Rc<[u8]>, pushes: bool) {
        let server = &self.settings.server;
        let settings = server.messages.clone().unwrap_or_default();
        let limit = server.close_after;
        let Some(link) = self.links.get_mut(id) else {
            return;
        };
        link.answered += 1;
        let is_last = limit.is_some_and(|limit| link.answered >= limit.get());
        let (by_close, by_byte) = if settings.ends_connection {
            (Completes::Answer, Completes::Nothing)
        } else {
            (Completes::Nothing, Completes::Answer)
        };
        self.count_reply(200);
        self.deliver(at_ns, id, reply, by_byte);
        if pushes {
            self.counts.borrow_mut().extra_bytes += 1;
            self.deliver(at_ns, id, settings.push.into(), Completes::Nothing);
        }
        if is_last || settings.ends_connection {
            let completes = by_close;
            self.end(at_ns, id, Piece::End { completes });
        }
    }
}
