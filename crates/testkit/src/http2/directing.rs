//! How the simulated server has the reference server answer over HTTP/2, and what is put between
//! its frames.

use std::rc::Rc;

use brunt_io::backend::{Event, Slot};
use brunt_proto::http2::frame::{self, ErrorCode, FrameHeader, Kind, flags};
use rand::Rng;

use super::connection::Directed;
use super::frames::{Carried, frames};
use crate::counts::RESET_CODES;
use crate::http1::EXTRA;
use crate::link::{LinkId, Server};
use crate::outside::Outside;
use crate::piece::{Completes, Piece};
use crate::request::Request;
use crate::service::Fate;
use crate::settings::Framing;
use crate::world::World;

/// A frame type that no specification defines.
const UNKNOWN_KIND: Kind = Kind::Other(0xfa);

impl World {
    fn directed(&mut self, id: LinkId) -> Option<&mut Directed> {
        self.links.get_mut(id)?.directed.as_deref_mut()
    }

    /// Bytes of brunt's reach the reference server, if anybody listens.
    pub(in super::super) fn take_carried(
        &mut self,
        at_ns: u64,
        id: LinkId,
        bytes: Rc<[u8]>,
        carried: Carried,
    ) {
        let Some(link) = self.links.get_mut(id) else {
            return;
        };
        let is_clear = link.tls.is_none();
        let directed = link.directed.as_mut();
        let begins = directed.is_some_and(|it| !std::mem::replace(&mut it.has_begun, true));
        if begins && is_clear {
            self.begins_handshake(at_ns, id);
        }
        match self.links.get(id) {
            Some(link) if link.is_silent => {
                self.counts.borrow_mut().requests += carried.requests;
                self.counts.borrow_mut().abandoned += carried.requests;
            }
            Some(link) if link.server == Server::Open => {
                self.counts.borrow_mut().settings_acknowledged += carried.settings_acknowledged;
                self.counts.borrow_mut().pings_acknowledged += carried.pings_acknowledged;
                self.carried_requests += carried.requests;
                self.tell_reference(at_ns, id, Event::Received, bytes);
            }
            _ => self.counts.borrow_mut().requests_lost += carried.requests,
        }
    }

    /// A request is there in full.
    pub(in super::super) fn asked(&mut self, at_ns: u64, id: LinkId, stream: u32) {
        if self.chance(self.settings.server.faults.stream_refused) {
            let is_refused = self.answer_as(at_ns, id, stream, "/refuse");
            self.counts.borrow_mut().stream_refused += u64::from(is_refused);
        } else if let Some(link) = self.links.get_mut(id) {
            link.pending.push_back(Request {
                stream,
                ..Request::default()
            });
            self.begin(at_ns, id);
        }
        if let Some(directed) = self.directed(id) {
            directed.asked += 1;
            let asked = directed.asked;
            self.speak_beside(at_ns, id, asked);
        }
    }

    /// Says what is not the reference server's to say after so many requests of a connection.
    fn speak_beside(&mut self, at_ns: u64, id: LinkId, asked: u64) {
        let server = &self.settings.server;
        let mut bytes = Vec::new();
        if let Some(change) = server.http2.change
            && asked == change.after
        {
            frame::write_settings(&mut bytes, &change.settings());
        }
        let every = server.http2.ping_every;
        if every.is_some_and(|every| asked.is_multiple_of(every.get())) {
            self.counts.borrow_mut().pings += 1;
            frame::write_ping(&mut bytes, asked.to_be_bytes(), false);
        }
        self.put_frames(at_ns, id, &bytes);
    }

    /// A request meets its fate.
    pub(in super::super) fn answer_http2(
        &mut self,
        at_ns: u64,
        id: LinkId,
        request: Request,
        fate: Fate,
    ) {
        let stream = request.stream;
        let code = match fate {
            Fate::StreamReset => self.random.random_range(0..RESET_CODES as u32),
            _ => ErrorCode::InternalError.number(),
        };
        let path = self.path_of(fate, code);
        let is_last = fate == Fate::GoAway;
        let before = is_last.then(|| self.left_by_reference());
        if !self.answer_as(at_ns, id, stream, &path) {
            self.cancelled += 1;
            return;
        }
        if let Some(directed) = self.directed(id) {
            directed.is_cut = fate == Fate::Truncated;
            if fate.is_whole() {
                directed.whole.insert(stream);
            }
        }
        let mut counts = self.counts.borrow_mut();
        match fate {
            Fate::Silent => counts.silent += 1,
            Fate::Reset => counts.reset += 1,
            Fate::Closed => counts.closed += 1,
            Fate::Truncated => counts.truncated += 1,
            Fate::Malformed => counts.malformed += 1,
            Fate::StreamSilent => counts.stream_silent += 1,
            Fate::StreamReset | Fate::StreamCut => {
                counts.stream_resets[(code as usize).min(RESET_CODES - 1)] += 1;
            }
            Fate::GoAway => {
                counts.goaway_errors += 1;
                let (ignored, abandoned) = before.unwrap_or_default();
                let now = self.left_by_reference();
                self.left_out += now.0 - ignored;
                self.left_out_due += now.1 - abandoned;
                if let Some(link) = self.links.get_mut(id) {
                    link.pending.retain(|request| request.stream < stream);
                    link.serving.retain(|&other, _| other < stream);
                }
            }
            Fate::ExtraBytes | Fate::ErrorStatus | Fate::Limited | Fate::Answered => {}
        }
        drop(counts);
        self.move_reference(at_ns);
        match fate {
            Fate::Silent => self.fall_silent(id),
            Fate::Malformed => self.after_malformed(at_ns, id),
            Fate::ExtraBytes => {
                self.counts.borrow_mut().extra_bytes += 1;
                let header = FrameHeader {
                    length: EXTRA.len() as u32,
                    kind: UNKNOWN_KIND,
                    flags: 0xff,
                    stream,
                };
                let mut bytes = Vec::new();
                header.write(&mut bytes);
                bytes.extend_from_slice(EXTRA);
                self.put_frames(at_ns, id, &bytes);
            }
            _ => {}
        }
    }

    /// The path whose answer is this fate.
    fn path_of(&self, fate: Fate, code: u32) -> String {
        let server = &self.settings.server;
        let bytes = server.body_bytes;
        match fate {
            Fate::Silent | Fate::StreamSilent => "/never".to_owned(),
            Fate::Reset => "/reset".to_owned(),
            Fate::Closed => "/random-close/100".to_owned(),
            Fate::Truncated | Fate::StreamCut => format!("/truncate/{}", bytes.max(1)),
            Fate::Malformed => format!("/malformed/{}", server.http2.malformed),
            Fate::StreamReset => format!("/reset-stream/{code}"),
            Fate::GoAway => format!("/goaway/{code}"),
            Fate::ErrorStatus => "/status/503".to_owned(),
            Fate::Limited => "/status/429".to_owned(),
            Fate::ExtraBytes | Fate::Answered => match server.framing {
                Framing::Length if bytes == 0 => format!("/interim/{}", server.interim),
                Framing::Length => format!("/bytes/{bytes}"),
                Framing::Chunked | Framing::UntilClose => format!("/chunked/{bytes}"),
            },
        }
    }

    /// Has the reference server answer as on `path`; whether the request still waits.
    fn answer_as(&mut self, at_ns: u64, id: LinkId, stream: u32, path: &str) -> bool {
        let reference = self.reference.as_mut();
        reference.is_some_and(|reference| reference.answer(at_ns, id, stream, path))
    }

    /// Streams that GOAWAYs named as not processed, and requests that were abandoned.
    fn left_by_reference(&self) -> (u64, u64) {
        let counters = self.reference.as_ref().map(|it| it.counters());
        counters.map_or((0, 0), |it| (it.streams_ignored, it.requests_abandoned))
    }

    /// Puts frames between those of the reference server.
    fn put_frames(&mut self, at_ns: u64, id: LinkId, bytes: &[u8]) {
        let link = self.links.get(id);
        if link.is_some_and(|link| link.server == Server::Open && !link.is_silent) {
            self.send_frames(at_ns, id, bytes);
        }
    }

    /// Sends what the reference server says, in so far as anybody hears it.
    pub(in super::super) fn send_directed(&mut self, at_ns: u64, id: LinkId, bytes: &[u8]) {
        let sent: fn(Slot) -> Event = Event::Sent;
        let lost: fn(Slot) -> Event = |slot| Event::SendFailed(slot, libc::ECONNRESET);
        let link = self.links.get(id);
        let event = if link.is_some() { sent } else { lost };
        if let Some(reference) = &self.reference {
            reference.happened(id, event, Rc::default());
        }
        let is_cut = self
            .directed(id)
            .is_some_and(|it| std::mem::take(&mut it.is_cut));
        if is_cut && bytes.len() > 1 {
            let cut = self.random.random_range(1..bytes.len());
            self.put_frames(at_ns, id, &bytes[..cut]);
        }
        if is_cut {
            return self.end(at_ns, id, Piece::END);
        }
        self.put_frames(at_ns, id, bytes);
    }

    /// Sends frames, so that it is known when an answer is complete.
    fn send_frames(&mut self, at_ns: u64, id: LinkId, bytes: &[u8]) {
        let mut start = 0;
        for (header, payload, end) in frames(bytes) {
            let completes = self.completes(id, header, payload);
            if completes == Completes::Nothing {
                continue;
            }
            let part = match completes {
                Completes::Opening => self.greeting(payload),
                _ => bytes[start..end].into(),
            };
            self.deliver(at_ns, id, part, completes);
            start = end;
            if completes == Completes::Answer && self.ends_with_answer(id) {
                return self.end(at_ns, id, Piece::END);
            }
        }
        if start < bytes.len() {
            self.deliver(at_ns, id, bytes[start..].into(), Completes::Nothing);
        }
    }

    /// The reference server's first settings, with what is changed from the beginning.
    fn greeting(&self, payload: &[u8]) -> Rc<[u8]> {
        let mut settings: Vec<_> = frame::settings(payload).into_iter().flatten().collect();
        let change = self.settings.server.http2.change;
        if let Some(change) = change.filter(|change| change.after == 0) {
            settings.extend(change.settings());
        }
        let mut bytes = Vec::new();
        frame::write_settings(&mut bytes, &settings);
        bytes.into()
    }

    /// What is complete at brunt's side with this frame.
    fn completes(&mut self, id: LinkId, header: FrameHeader, payload: &[u8]) -> Completes {
        let Some(directed) = self.links.get_mut(id).and_then(|it| it.directed.as_mut()) else {
            return Completes::Nothing;
        };
        match header.kind {
            Kind::Settings if !header.has(flags::ACK) => {
                self.counts.borrow_mut().settings += 1;
                if !std::mem::replace(&mut directed.is_greeted, true) {
                    return Completes::Opening;
                }
            }
            Kind::GoAway => {
                let code = frame::go_away(payload).map(|(_, code)| code);
                if code == Ok(ErrorCode::NoError)
                    && !std::mem::replace(&mut directed.has_left, true)
                {
                    self.counts.borrow_mut().goaways += 1;
                }
            }
            Kind::Headers | Kind::Data
                if header.has(flags::END_STREAM) && directed.whole.remove(&header.stream) =>
            {
                return Completes::Answer;
            }
            _ => {}
        }
        Completes::Nothing
    }

    /// Counts an answer that is whole; whether the server closes behind it without a word.
    fn ends_with_answer(&mut self, id: LinkId) -> bool {
        let server = &self.settings.server;
        let limit = server.close_after.filter(|_| !server.announces_close);
        self.links.get_mut(id).is_some_and(|link| {
            link.answered += 1;
            limit.is_some_and(|limit| link.answered >= limit.get())
        })
    }

    /// Adds what the reference server counted where the simulated one decides on its answers.
    pub(in super::super) fn count_directed(&mut self) {
        let Some(reference) = self.reference.as_ref().filter(|it| it.is_directed) else {
            return;
        };
        let counters = reference.counters();
        let with_status = |status| *counters.replies_by_status.get(&status).unwrap_or(&0);
        // What a GOAWAY left out when it was sent was complete before, or never is.
        let received = counters.requests + counters.requests_malformed + counters.streams_ignored
            - self.left_out;
        let mut counts = self.counts.borrow_mut();
        counts.requests += received;
        counts.requests_lost += self.carried_requests - received;
        counts.replies += counters.replies;
        counts.replies_error += with_status(503);
        counts.replies_limited += with_status(429);
        counts.not_processed += counters.streams_ignored - self.left_out + self.left_out_due;
        counts.cancelled += self.cancelled;
        counts.abandoned += counters.requests_abandoned - self.left_out_due - self.cancelled;
        counts.violations +=
            counters.http2_errors + counters.requests_malformed + counters.streams_refused;
    }
}
