//! HTTP/2 in a worker: streams written, frames handed to the backend, replies taken.

use brunt_measure::{Answer, FailureKind, Issue};
use brunt_proto::http2::{ConnectionError, Event, Progress};

use super::replies::Reception;
use super::{Speech, Worker};
use crate::backend::{Backend, Outgoing, Slot};
use crate::connection::{Dialogue, State, Streams};
use crate::failure;
use crate::request::EncodedRequest;

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
        let free_ns = connection.free_ns;
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
                Speech::Http2 {
                    limits,
                    known,
                    frames,
                    ..
                },
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
            let event = match client.receive(bytes, received_ns, template, limits, known, frames) {
                Ok(Progress { consumed, event }) => {
                    taken += consumed;
                    event
                }
                Err(error) => {
                    self.connection_failed(slot, now_ns, &error);
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
                    if self.replied(index, issue, now_ns, &answer)
                        && let Some(send) = send
                    {
                        self.split(issue, reception, now_ns, send.free_ns, send.hand_over);
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
                    has_more_room = true;
                }
                Some(Event::GoAway { .. }) => self.recorder.gone_away(now_ns),
            }
        }
        has_more_room |= self.follow(index);
        self.settle_overhead(index, now_ns);
        if self.connections[index].state == State::Open {
            self.go_on(slot, reception, now_ns, has_more_room);
        }
    }

    /// Takes over how many streams there may be. Gives whether there may be more than before.
    fn follow(&mut self, index: usize) -> bool {
        let connection = &mut self.connections[index];
        let Dialogue::Http2(Some(streams)) = &connection.dialogue else {
            return false;
        };
        let before = connection.depth;
        connection.depth = streams.client.depth().min(self.task.depth);
        let is_shut = streams.client.peer_streams_max() == Some(0);
        if streams.client.depth() == 0 && !is_shut {
            // It finishes what is under way and is replaced.
            connection.requests_left = 0;
        }
        connection.depth > before
    }

    /// The server broke the rules, or said that brunt did.
    fn connection_failed(&mut self, slot: Slot, now_ns: u64, error: &ConnectionError) {
        let index = slot.0 as usize;
        if let State::Greeting { .. } = self.connections[index].state {
            let kind = match error {
                ConnectionError::NotHttp2 => FailureKind::OtherProtocol,
                _ => FailureKind::HandshakeCut,
            };
            self.greeting_failed(slot, now_ns, kind);
        } else {
            let idle = FailureKind::UnexpectedBytes;
            self.broken(slot, now_ns, FailureKind::Http2Error, idle);
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

    /// Cancels the streams that have no reply in time. False where nothing was heard since they
    /// were sent: then the connection itself is dead.
    pub(super) fn cancel_late(&mut self, slot: Slot, now_ns: u64) -> bool {
        let index = slot.0 as usize;
        let depth = self.task.depth as usize;
        let limit_ns = now_ns.saturating_sub(self.task.timeout_ns);
        let heard_ns = self.connections[index].heard_ns;
        let places = &self.issues[index * depth..(index + 1) * depth];
        if places
            .iter()
            .any(|issue| issue.due_ns <= limit_ns && heard_ns < issue.sent_ns)
        {
            return false;
        }
        for place in 0..depth {
            if self.issues[index * depth + place].due_ns > limit_ns {
                continue;
            }
            let mut discarded_bytes = 0;
            self.write_frames(slot, |streams, frames| {
                discarded_bytes = streams.client.cancel(place as u32, frames);
                streams.has_cancelled = true;
            });
            let issue = self.take_issue(index, place as u32);
            self.fail(issue, now_ns, FailureKind::TimedOut, discarded_bytes);
        }
        let connection = &self.connections[index];
        if connection.under_way > 0 {
            let due_ns = self.first_due_ns(index);
            self.arm(slot, due_ns.saturating_add(self.task.timeout_ns));
        } else if connection.requests_left == 0 {
            self.replace(slot, now_ns);
            return true;
        }
        self.available(slot, now_ns, now_ns);
        true
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
