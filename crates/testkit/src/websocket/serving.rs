//! The simulated server's side of WebSocket: it agrees to upgrades, answers messages and pings, and
//! closes. A frame of brunt's that breaks a rule is counted as a violation and ends the connection.

use brunt_proto::websocket::{Opcode, accept_of, put_frame, put_head};
use rand::Rng;

use super::connection::WebSocket;
use super::scanner::Frame;
use crate::link::{LinkId, Server};
use crate::piece::{Completes, Piece};
use crate::request::Request;
use crate::service::Fate;
use crate::status::Status;
use crate::waiting::Outside;
use crate::world::World;

/// The code for a client that breaks the protocol.
const PROTOCOL_ERROR: u16 = 1_002;
/// What an upgrade is refused by.
const REFUSAL: &[u8] =
    b"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";

impl World {
    fn websocket(&mut self, id: LinkId) -> Option<&mut WebSocket> {
        self.links.get_mut(id)?.websocket.as_deref_mut()
    }

    /// Takes the upgrade, or a frame of brunt's.
    pub(in super::super) fn take_websocket(&mut self, at_ns: u64, id: LinkId, frame: Frame) {
        let Some(link) = self.links.get_mut(id) else {
            return;
        };
        let is_open = link.server == Server::Open;
        let is_silent = link.is_silent;
        let Some(websocket) = &mut link.websocket else {
            return;
        };
        match frame {
            Frame::Upgrade { key, subprotocol } => self.upgrade(at_ns, id, &key, &subprotocol),
            Frame::Message { is_text, payload } => {
                self.counts.requests += 1;
                if websocket.has_closed || !is_open {
                    // The server reads on, and answers nothing.
                    self.counts.abandoned += 1;
                    return;
                }
                websocket.messages.push_back((is_text, payload));
                link.pending.push_back(Request::default());
                self.begin(at_ns, id);
            }
            Frame::Ping(payload) => {
                self.counts.client_pings += 1;
                if is_open && !is_silent && !websocket.has_closed {
                    self.put(at_ns, id, Opcode::Pong, &payload);
                }
            }
            Frame::Pong(payload) => {
                let sent = websocket.pings.pop_front().map(u64::to_be_bytes);
                if sent.as_ref().map(|sent| &sent[..]) != Some(&*payload) {
                    return self.break_off(at_ns, id);
                }
                self.counts.pings_acknowledged += 1;
            }
            Frame::Close(code) => {
                self.counts.client_closes += 1;
                websocket.was_closed = true;
                let answers = self.settings.server.websocket.answers_closes;
                if !websocket.has_closed && (is_silent || !answers) {
                    return;
                }
                self.say_close(at_ns, id, code);
                let completes = Completes::Nothing;
                self.end(at_ns, id, Piece::End { completes });
            }
            Frame::Broken(_) => self.break_off(at_ns, id),
        }
    }

    fn upgrade(&mut self, at_ns: u64, id: LinkId, key: &[u8], subprotocol: &[u8]) {
        let is_secure = self.links.get(id).is_some_and(|link| link.tls.is_some());
        if !is_secure && !self.begins_handshake(at_ns, id) {
            return;
        }
        let nothing = Completes::Nothing;
        if self.chance(self.settings.server.faults.upgrade_refused) {
            self.counts.upgrades_refused += 1;
            self.deliver(at_ns, id, REFUSAL.into(), nothing);
            self.end(at_ns, id, Piece::End { completes: nothing });
            return;
        }
        let mut answer = b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n\
            Connection: Upgrade\r\nSec-WebSocket-Accept: "
            .to_vec();
        answer.extend_from_slice(&accept_of(key));
        if !subprotocol.is_empty() {
            answer.extend_from_slice(b"\r\nSec-WebSocket-Protocol: ");
            answer.extend_from_slice(subprotocol);
        }
        answer.extend_from_slice(b"\r\n\r\n");
        self.deliver(at_ns, id, answer.into(), Completes::Opening);
    }

    /// brunt broke a rule.
    fn break_off(&mut self, at_ns: u64, id: LinkId) {
        self.counts.violations += 1;
        self.say_close(at_ns, id, Some(PROTOCOL_ERROR));
        let completes = Completes::Nothing;
        self.end(at_ns, id, Piece::End { completes });
    }

    /// Sends a Close frame, unless there was one.
    fn say_close(&mut self, at_ns: u64, id: LinkId, code: Option<u16>) {
        let Some(websocket) = self.websocket(id) else {
            return;
        };
        if !std::mem::replace(&mut websocket.has_closed, true) {
            let code = code.map(u16::to_be_bytes);
            self.counts.closes += 1;
            self.put(
                at_ns,
                id,
                Opcode::Close,
                code.as_ref().map_or(&[], |code| code),
            );
        }
    }

    /// Sends a Close frame, reads on until brunt answers it, and takes no further message.
    fn close_politely(&mut self, at_ns: u64, id: LinkId) {
        self.say_close(at_ns, id, self.settings.server.websocket.close_code);
        self.abandon(id);
    }

    /// brunt ended the connection: whether it should have said so before.
    pub(in super::super) fn note_unsaid_close(&mut self, id: LinkId) {
        let Some(link) = self.links.get(id) else {
            return;
        };
        let was_told = link
            .websocket
            .as_ref()
            .is_none_or(|websocket| websocket.has_closed || websocket.was_closed);
        if link.server == Server::Open && link.is_greeted && !was_told {
            self.counts.closes_unsaid += 1;
        }
    }

    /// Sends a frame that answers nothing.
    fn put(&mut self, at_ns: u64, id: LinkId, opcode: Opcode, payload: &[u8]) {
        let mut bytes = Vec::new();
        put_frame(&mut bytes, opcode, payload, None);
        self.deliver(at_ns, id, bytes.into(), Completes::Nothing);
    }

    /// A message meets its fate.
    pub(in super::super) fn answer_websocket(&mut self, at_ns: u64, id: LinkId, fate: Fate) {
        let message = self
            .websocket(id)
            .and_then(|websocket| websocket.messages.pop_front());
        let Some((is_text, message)) = message else {
            return;
        };
        let nothing = Completes::Nothing;
        match fate {
            Fate::Silent | Fate::Reset | Fate::Closed => self.answer_with_nothing(at_ns, id, fate),
            Fate::Truncated => {
                self.counts.truncated += 1;
                let whole = self.frames(is_text, &message, None);
                if whole.len() > 1 {
                    let cut = self.random.random_range(1..whole.len());
                    self.deliver(at_ns, id, whole[..cut].into(), nothing);
                }
                self.end(at_ns, id, Piece::End { completes: nothing });
            }
            Fate::Malformed => {
                self.counts.malformed += 1;
                let bytes = self.settings.server.websocket.malformed;
                self.deliver(at_ns, id, bytes.into(), nothing);
                self.after_malformed(at_ns, id);
            }
            Fate::GoAway => {
                self.counts.goaway_errors += 1;
                self.close_politely(at_ns, id);
            }
            _ => self.reply_by_frames(at_ns, id, (is_text, &message), fate == Fate::ExtraBytes),
        }
    }

    /// Answers, with or without a message that nobody asked for behind it.
    fn reply_by_frames(
        &mut self,
        at_ns: u64,
        id: LinkId,
        (is_text, message): (bool, &[u8]),
        pushes: bool,
    ) {
        let server = &self.settings.server;
        let (close_after, announces) = (server.close_after, server.announces_close);
        let ping_every = server.websocket.ping_every;
        let Some(websocket) = self.websocket(id) else {
            return;
        };
        websocket.answers += 1;
        let answers = websocket.answers;
        let pings = ping_every.is_some_and(|every| answers.is_multiple_of(every.get()));
        if pings {
            websocket.pings.push_back(answers);
            self.counts.pings += 1;
        }
        self.count_reply(Status::Ok);
        let reply = self.frames(is_text, message, pings.then_some(answers));
        self.deliver(at_ns, id, reply.into(), Completes::Answer);
        if pushes {
            self.counts.extra_bytes += 1;
            let push = self.settings.server.websocket.push.clone();
            self.put(at_ns, id, Opcode::Text, &push);
        }
        if close_after.is_some_and(|limit| answers >= limit.get()) {
            if announces {
                self.close_politely(at_ns, id);
            } else {
                let completes = Completes::Nothing;
                self.end(at_ns, id, Piece::End { completes });
            }
        }
    }

    /// The answers to a message, with a ping of this number before their last frame.
    fn frames(&self, is_text: bool, message: &[u8], ping: Option<u64>) -> Vec<u8> {
        let settings = &self.settings.server.websocket;
        let (is_text, payload) = match &settings.reply {
            Some(reply) => (true, &reply[..]),
            None => (is_text, message),
        };
        let (mut bytes, mut last) = (Vec::new(), 0);
        for _ in 0..settings.replies {
            let mut opcode = if is_text {
                Opcode::Text
            } else {
                Opcode::Binary
            };
            let mut rest = payload;
            loop {
                let (frame, behind) =
                    rest.split_at(rest.len().min(settings.frame_bytes.get() as usize));
                last = bytes.len();
                put_head(
                    &mut bytes,
                    opcode,
                    behind.is_empty(),
                    frame.len() as u64,
                    None,
                );
                bytes.extend_from_slice(frame);
                if behind.is_empty() {
                    break;
                }
                opcode = Opcode::Continuation;
                rest = behind;
            }
        }
        if let Some(number) = ping {
            let behind = bytes.split_off(last);
            put_frame(&mut bytes, Opcode::Ping, &number.to_be_bytes(), None);
            bytes.extend_from_slice(&behind);
        }
        bytes
    }
}
