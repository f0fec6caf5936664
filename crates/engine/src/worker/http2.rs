//! HTTP/2 in a worker: streams written, frames handed to the backend, replies in any order.

use brunt_measure::{Answer, FailureKind, Issue};
use brunt_proto::http2::{ConnectionError, Event, Progress};

use super::replies::Reception;
use super::{Pacing, Speech, Worker};
use crate::backend::{Backend, Outgoing, Slot};
use crate::connection::{Connection, Dialogue, State, Streams};
use crate::failure;
use crate::request::EncodedRequest;

/// Bytes of frames that may wait behind a send, beside the heads of requests: bodies, of which the
/// client holds back what is over 128 KiB, and answers to what the server asks.
const WAITING_BYTES_MAX: usize = 512 * 1024;

impl<B: Backend> Worker<B> {
    /// Says the first words on a connection.
    pub(super) fn greet(&mut self, slot: Slot) {
        self.write_frames(slot, |streams, frames| streams.client.open(frames));
    }

    /// Writes `count` requests, each on a stream of its own.
    pub(super) fn write_http2(&mut self, slot: Slot, issue: Issue, count: u32) {
        self.frames_go_to(slot);
        let index = slot.0 as usize;
        let base = index * self.task.depth as usize;
        let connection = &mut self.connections[index];
        let free_ns = match self.pacing {
            Pacing::Open(_) => connection.punctual_free_ns,
            Pacing::Closed | Pacing::Sessions(_) => connection.free_ns,
        };
        let (
            Dialogue::Http2(Some(streams)),
            Speech::Http2 { frames, .. },
            EncodedRequest::Http2(template),
        ) = (
            &mut connection.dialogue,
            &mut self.speech,
            &*self.task.request,
        )
        else {
            return;
        };
        for _ in 0..count {
            let place = streams.client.request(template, frames);
            self.issues[base + place as usize] = issue;
            if let Some(sends) = &mut streams.sends {
                sends.written(place, free_ns);
            }
        }
    }

    pub(super) fn receive_http2(&mut self, slot: Slot, reception: Reception) {
        self.frames_go_to(slot);
        let index = slot.0 as usize;
        let mut now_ns = reception.received_ns;
        let (mut taken, mut has_more_room) = (0, false);
        loop {
            let connection = &mut self.connections[index];
            let (
                Dialogue::Http2(Some(streams)),
                Speech::Http2 { known, frames, .. },
                EncodedRequest::Http2(template),
            ) = (
                &mut connection.dialogue,
                &mut self.speech,
                &*self.task.request,
            )
            else {
                return;
            };
            let bytes = &self.backend.received()[taken..];
            let received_ns = reception.received_ns;
            let client = &mut streams.client;
            let limits = &self.limits;
            let event = match client.receive(bytes, received_ns, template, limits, known, frames) {
                Ok(Progress { consumed, event }) => {
                    taken += consumed;
                    event
                }
                Err(error) => {
                    let kind = match error {
                        ConnectionError::NotHttp2 => FailureKind::OtherProtocol,
                        _ => FailureKind::Http2Error,
                    };
                    self.connection_failed(slot, now_ns, kind);
                    return;
                }
            };
            match event {
                None => break,
                Some(Event::Ready) => {
                    connection.depth = client.depth().min(self.task.depth);
                    if let State::Greeting {
                        since_ns,
                        connected_ns,
                    } = connection.state
                    {
                        self.opened(slot, now_ns, since_ns, connected_ns);
                        self.frames_go_to(slot);
                    }
                }
                Some(Event::Reply { place, reply }) => {
                    let send = streams
                        .sends
                        .as_ref()
                        .map(|sends| sends.of_places[place as usize]);
                    if reception.stamp_ns.is_some() {
                        now_ns = self.backend.now_ns();
                    }
                    let answer = Answer {
                        status: reply.status,
                        retry_after: reply.retry_after,
                        interim: reply.interim,
                        head_bytes: reply.head_bytes,
                        body_bytes: reply.body_bytes,
                        first_byte_ns: reply.first_byte_ns,
                    };
                    let issue = self.take_issue(index, place);
                    let is_recorded = self.replied(index, issue, now_ns, &answer);
                    if let Some(send) = send {
                        let free_ns = self.split(issue, reception, now_ns, send, is_recorded);
                        self.places_freed(index, 1, free_ns);
                    }
                    has_more_room = true;
                }
                Some(Event::Failed {
                    place,
                    why,
                    discarded_bytes,
                }) => {
                    let issue = self.take_issue(index, place);
                    self.fail(issue, now_ns, failure::of_stream(why), discarded_bytes);
                    self.places_freed(index, 1, reception.free_ns());
                    self.connections[index].has_ended_one = true;
                    has_more_room = true;
                }
                Some(Event::GoAway { .. }) => self.recorder.gone_away(now_ns),
            }
        }
        if self.is_flooded(slot) {
            self.connection_failed(slot, now_ns, FailureKind::Http2Error);
            return;
        }
        has_more_room |= self.follow(slot, now_ns);
        self.settle_overhead(index, now_ns);
        if self.connections[index].state == State::Open {
            self.go_on(slot, reception.free_ns(), now_ns, has_more_room);
        }
    }

    /// Takes over how many streams there may be. Gives whether there may be more than before.
    fn follow(&mut self, slot: Slot, now_ns: u64) -> bool {
        let connection = &mut self.connections[slot.0 as usize];
        let (State::Open, Dialogue::Http2(Some(streams))) =
            (connection.state, &connection.dialogue)
        else {
            return false;
        };
        let before = connection.depth;
        connection.depth = streams.client.depth().min(self.task.depth);
        if streams.client.is_spent() {
            // It finishes what is under way and is replaced.
            connection.requests_left = 0;
        } else if connection.depth > 0 {
            connection.shut_ns = u64::MAX;
            self.dark_since_ns = None;
        } else if connection.shut_ns == u64::MAX {
            connection.shut_ns = now_ns;
            self.recorder.shut(now_ns);
            self.arm(slot, now_ns.saturating_add(self.task.timeout_ns));
        }
        let grown = self.connections[slot.0 as usize]
            .depth
            .saturating_sub(before);
        self.places_freed(slot.0 as usize, grown, now_ns);
        grown > 0
    }

    /// So many more streams may be opened on a connection since `free_ns`. In an open loop it is
    /// kept since when, where stamps tell it.
    pub(super) fn places_freed(&mut self, index: usize, places: u32, free_ns: u64) {
        if let (Pacing::Open(_), Dialogue::Http2(Some(streams))) =
            (&self.pacing, &mut self.connections[index].dialogue)
            && let Some(sends) = &mut streams.sends
        {
            sends.freed(places, free_ns);
        }
    }

    /// A server that allowed no stream on the connection for as long as a request may take is
    /// tried on another one.
    pub(super) fn leave_shut(&mut self, slot: Slot, now_ns: u64) {
        let takes_none =
            |connection: &Connection| connection.state != State::Open || connection.depth == 0;
        if self.dark_since_ns.is_none() && self.connections.iter().all(takes_none) {
            self.dark_since_ns = Some(now_ns);
        }
        self.replace(slot, now_ns);
    }

    /// Whether more waits to be sent on the connection than the requests under way bring about: a
    /// server that asks for answers and takes none.
    fn is_flooded(&self, slot: Slot) -> bool {
        let (Speech::Http2 { frames, .. }, EncodedRequest::Http2(template)) =
            (&self.speech, &*self.task.request)
        else {
            return false;
        };
        self.connections[slot.0 as usize].sending
            && frames.len()
                > WAITING_BYTES_MAX + template.request_bytes_max() * self.task.depth as usize
    }

    /// The connection cannot be used any more, for `kind` if it was in use. What the client has to
    /// say about that is sent if nothing else is under way.
    fn connection_failed(&mut self, slot: Slot, now_ns: u64, kind: FailureKind) {
        self.flush();
        if let State::Greeting { .. } = self.connections[slot.0 as usize].state {
            self.greeting_failed(slot, now_ns, FailureKind::OtherProtocol);
        } else {
            self.broken(slot, now_ns, kind, FailureKind::UnexpectedBytes);
        }
    }

    /// The connection was closed with streams under way.
    pub(super) fn streams_cut(&mut self, index: usize, now_ns: u64) {
        while let Some((issue, discarded_bytes)) = self.take_any(index) {
            let kind = if discarded_bytes == 0 {
                FailureKind::ClosedBeforeReply
            } else {
                FailureKind::TruncatedBody
            };
            self.fail(issue, now_ns, kind, discarded_bytes);
        }
    }

    /// Cancels the streams that have no reply in time. Where nothing was heard for as long, nor
    /// since one of them was sent, the connection itself is dead, and the others go with it.
    pub(super) fn cancel_late(&mut self, slot: Slot, now_ns: u64) {
        let index = slot.0 as usize;
        let depth = self.task.depth as usize;
        let limit_ns = now_ns.saturating_sub(self.task.timeout_ns);
        let heard_ns = self.connections[index].heard_ns;
        let places = &self.issues[index * depth..(index + 1) * depth];
        let is_dead = places
            .iter()
            .any(|issue| issue.due_ns <= limit_ns && heard_ns < issue.sent_ns)
            && heard_ns <= limit_ns;
        for place in 0..depth {
            if self.issues[index * depth + place].due_ns > limit_ns {
                continue;
            }
            let mut discarded_bytes = 0;
            self.write_frames(slot, |streams, frames| {
                discarded_bytes = streams.client.cancel(place as u32, frames);
            });
            let issue = self.take_issue(index, place as u32);
            self.fail(issue, now_ns, FailureKind::TimedOut, discarded_bytes);
            self.places_freed(index, 1, now_ns);
        }
        let connection = &mut self.connections[index];
        connection.has_ended_one = true;
        if is_dead {
            self.fail_all(index, now_ns, FailureKind::Unanswered);
            self.replace(slot, now_ns);
            return;
        }
        if connection.under_way > 0 {
            let due_ns = self.first_due_ns(index);
            self.arm(slot, due_ns.saturating_add(self.task.timeout_ns));
        } else if connection.requests_left == 0 {
            self.replace(slot, now_ns);
            return;
        } else if connection.shut_ns < u64::MAX {
            let shut_ns = connection.shut_ns;
            self.arm(slot, shut_ns.saturating_add(self.task.timeout_ns));
        }
        self.available(slot, now_ns, now_ns);
    }

    /// What was handed to the backend on an HTTP/2 connection was taken. False on an HTTP/1.1 one.
    pub(super) fn stream_sends_taken(&mut self, slot: Slot) -> bool {
        if let Speech::Http1 { .. } = self.speech {
            return false;
        }
        // What waited goes out with the next flush.
        self.frames_go_to(slot);
        if let (
            Dialogue::Http2(Some(streams)),
            Speech::Http2 { frames, .. },
            EncodedRequest::Http2(template),
        ) = (
            &mut self.connections[slot.0 as usize].dialogue,
            &mut self.speech,
            &*self.task.request,
        ) {
            if let Some(sends) = &mut streams.sends {
                sends.taken(self.backend.handed_over(slot));
            }
            if streams.client.wants_resume() {
                streams.client.resume(template, frames);
            }
        }
        true
    }

    /// Counts the bytes that belong to no stream.
    fn settle_overhead(&mut self, index: usize, now_ns: u64) {
        if let Dialogue::Http2(Some(streams)) = &mut self.connections[index].dialogue {
            let bytes = streams.client.take_overhead();
            if bytes > 0 {
                self.recorder.overhead(now_ns, bytes);
            }
        }
    }

    /// Counts the bytes that belong to no reply, on a connection with nothing under way whose
    /// bytes are all there.
    pub(super) fn settle_bytes(&mut self, index: usize, now_ns: u64) {
        self.settle_overhead(index, now_ns);
        if let Dialogue::Http2(Some(streams)) = &self.connections[index].dialogue {
            let bytes = streams.client.pending_bytes();
            if bytes > 0 {
                self.recorder.overhead(now_ns, bytes);
            }
        }
    }

    fn write_frames(&mut self, slot: Slot, write: impl FnOnce(&mut Streams, &mut Vec<u8>)) {
        self.frames_go_to(slot);
        if let (Dialogue::Http2(Some(streams)), Speech::Http2 { frames, .. }) = (
            &mut self.connections[slot.0 as usize].dialogue,
            &mut self.speech,
        ) {
            write(streams, frames);
        }
    }

    /// What is written from now on is for `slot`, behind what waits there.
    fn frames_go_to(&mut self, slot: Slot) {
        let Speech::Http2 { frames_of, .. } = &self.speech else {
            return;
        };
        if *frames_of != slot {
            self.flush();
        }
        if let Speech::Http2 {
            frames, frames_of, ..
        } = &mut self.speech
        {
            *frames_of = slot;
            if frames.is_empty()
                && let Dialogue::Http2(Some(streams)) =
                    &mut self.connections[slot.0 as usize].dialogue
                && !streams.outbox.is_empty()
            {
                std::mem::swap(frames, &mut streams.outbox);
            }
        }
    }

    /// Hands the frames that were written to the backend, or to the connection while a send is
    /// under way.
    pub(super) fn flush(&mut self) {
        let Speech::Http2 {
            frames, frames_of, ..
        } = &mut self.speech
        else {
            return;
        };
        if frames.is_empty() {
            return;
        }
        let slot = *frames_of;
        let connection = &mut self.connections[slot.0 as usize];
        let Dialogue::Http2(Some(streams)) = &mut connection.dialogue else {
            frames.clear();
            return;
        };
        let frames = std::mem::replace(frames, self.backend.take_buffer());
        if connection.sending {
            streams.outbox = frames;
            return;
        }
        if let Some(sends) = &mut streams.sends {
            sends.begin();
        }
        // An idle connection keeps no buffer.
        streams.outbox = Vec::new();
        connection.sending = true;
        self.frame_bytes += frames.len() as u64;
        self.backend.send(slot, Outgoing::Owned(frames));
    }

    /// Counts the frames that were handed to the backend since this was last done.
    pub(super) fn settle_frames(&mut self, now_ns: u64) {
        let bytes = std::mem::take(&mut self.frame_bytes);
        if bytes > 0 {
            self.recorder.handed_over(now_ns, bytes);
        }
    }

    /// Frames that were written on a connection that is no more go nowhere.
    pub(super) fn drop_frames(&mut self, slot: Slot) {
        if let Speech::Http2 {
            frames, frames_of, ..
        } = &mut self.speech
            && *frames_of == slot
        {
            frames.clear();
        }
    }
}
