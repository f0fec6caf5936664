//! HTTP over streams: reads requests, sends answers, and hands connections over to HTTP/2 and
//! WebSocket.

use std::rc::Rc;
use std::sync::Arc;

use brunt_io::backend::{Outgoing, PayloadId, ServerBackend, Slot};

use super::{Serve, Service, Worker, WorkerSettings};
use crate::answer::{After, Context, NULL_ANSWER};
use crate::batch::{self, Batch, BatchContent, Hold, INPUT_BUFFERS, OUTPUT_BUFFERS, Room};
use crate::connection::HttpConnection;
use crate::count::LinkCounters;
use crate::counters::{Shared, WorkerCounters};
use crate::http1::answer_input;
use crate::http1::reply::{PendingReply, Step};
use crate::http1::request::{KnownHead, RequestReader};
use crate::pattern;
use crate::websocket::WebSocketSession;

/// What a worker of HTTP has beside its connections.
pub(crate) struct Http {
    pub(super) counters: Arc<WorkerCounters>,
    /// Room for input that waits.
    pub(super) room: Rc<Room>,
    /// Room for output.
    pub(super) output: Rc<Room>,
    known: KnownHead,
    pub(super) batch: Batch,
    null_payload: PayloadId,
    pattern_payload: PayloadId,
    /// Memory for the field block in hand.
    pub(super) scratch: Vec<u8>,
}

impl Http {
    /// Has the batch be no larger than there is room for.
    pub(super) fn fit_batch(&mut self) {
        self.batch.fit_into(self.output.grant_bytes());
    }
}

impl Service for Http {
    type Connection = HttpConnection;

    /// However many answers there are that take more than one send, what comes meanwhile is seen to
    /// as soon.
    const TURN_BYTES_MAX: usize = 1 << 20;

    fn counters(&self) -> &LinkCounters {
        &self.counters.links
    }

    fn leave(&mut self, connection: HttpConnection) -> bool {
        if let Some(work) = connection.work {
            let waits = work.websocket.is_some_and(|websocket| websocket.waits());
            if waits || matches!(work.stream, Some(PendingReply::NullAt { .. })) {
                self.counters.requests_abandoned.add(1);
            }
        }
        if let Some(mut http2) = connection.http2 {
            http2.session.abandon(&self.counters);
        }
        connection.after == After::Reset
    }
}

impl<B: ServerBackend> Serve for Worker<B, Http> {
    fn accepted(&mut self, slot: Slot) {
        let secured = self.backend.secured(slot);
        let is_resumed = secured.is_some_and(|secured| secured.is_resumed);
        let counters = &self.service.counters;
        counters.handshakes_resumed.add(u64::from(is_resumed));
    }

    fn received(&mut self, slot: Slot) {
        let connection = &mut self.connections[slot.0 as usize];
        if connection.after != After::KeepOpen {
            return;
        }
        if connection.http2.is_some() {
            return self.receive_http2(slot, 0);
        }
        // A part of a head is no progress.
        if !connection
            .work
            .as_ref()
            .is_some_and(|work| work.is_in_head())
        {
            connection.link.moved = self.calendar.page();
        }
        if !connection.begun && !self.begin(slot) {
            return;
        }
        let connection = &mut self.connections[slot.0 as usize];
        let bytes = self.backend.received();
        let is_busy = connection.work.as_ref().is_some_and(|work| !work.is_open());
        if connection.link.sending || is_busy {
            let work = connection.work.get_or_insert_default();
            if matches!(work.stream, Some(PendingReply::Silence)) {
                return;
            }
            if !work.keep(bytes, self.backend.now_ns(), &self.service.room) {
                self.overflow(slot);
            } else if work.stream.is_none() && !connection.link.queued {
                self.drive(slot);
            }
            return;
        }
        // Nothing is incomplete: the common case, answered from the received bytes in place.
        self.service.fit_batch();
        let (known, batch) = (&mut self.service.known, &mut self.service.batch);
        let clock = || self.backend.now_ns();
        let context = Context::new(&self.shared, &self.service.counters, None, &clock);
        let (taken, step) = match connection.work.as_mut().map(|work| &mut work.websocket) {
            Some(Some(websocket)) => websocket.advance(bytes, batch, &self.service.room, &context),
            _ => {
                let mut reader = RequestReader::default();
                let answered = answer_input(&mut reader, known, bytes, batch, &context);
                let (taken, step) = answered;
                let wants_input = matches!(step, Step::GoOn | Step::Input);
                if wants_input && taken == bytes.len() && reader.is_idle() {
                    self.flush(slot);
                    return;
                }
                connection.work.get_or_insert_default().reader = reader;
                answered
            }
        };
        let rest = &bytes[taken..];
        if !rest.is_empty() {
            let now_ns = self.backend.now_ns();
            let work = connection.work.get_or_insert_default();
            if !work.keep(rest, now_ns, &self.service.room) {
                self.service.batch.clear();
                return self.overflow(slot);
            }
        }
        if self.follow(slot, step) {
            self.drive(slot);
        }
    }

    fn discarded(&mut self, slot: Slot, _bytes: u64) {
        // It asked for that nowhere.
        self.close(slot);
    }

    fn sent(&mut self, slot: Slot) {
        let connection = &mut self.connections[slot.0 as usize];
        connection.sending_hold = Hold::default();
        if connection.http2.is_some() {
            self.sent_http2(slot);
        } else if connection.work.is_some() {
            self.go_on_later(slot);
        } else if connection.link.ended || connection.after != After::KeepOpen {
            self.close(slot);
        }
    }

    fn ended(&mut self, slot: Slot) {
        let connection = &self.connections[slot.0 as usize];
        let is_idle = connection.work.is_none() && !connection.link.sending;
        if is_idle && connection.http2.is_none() {
            self.close(slot);
        } else {
            self.drive(slot);
        }
    }

    fn drive(&mut self, slot: Slot) {
        if self.connections[slot.0 as usize].http2.is_some() {
            return self.drive_http2(slot);
        }
        loop {
            let connection = &mut self.connections[slot.0 as usize];
            if connection.link.sending {
                return;
            }
            if connection.after != After::KeepOpen {
                return self.close(slot);
            }
            let Some(work) = &mut connection.work else {
                if connection.link.ended {
                    self.close(slot);
                }
                return;
            };
            if work.wake_ns.is_some() {
                return;
            }
            self.service.fit_batch();
            let (known, batch) = (&mut self.service.known, &mut self.service.batch);
            let (clock, noticed_ns) = (|| self.backend.now_ns(), Some(work.noticed_ns));
            let context = Context::new(&self.shared, &self.service.counters, noticed_ns, &clock);
            let step = work.step(known, batch, &self.service.room, &context);
            if !self.follow(slot, step) {
                return;
            }
        }
    }
}

impl<B: ServerBackend> Worker<B, Http> {
    /// Worker number `index` of those that `shared` counts, on a backend that listens.
    pub(crate) fn of_http(
        mut backend: B,
        shared: &Arc<Shared>,
        index: usize,
        settings: WorkerSettings,
    ) -> Self {
        let connections_max = settings.connections_max;
        let http = Http {
            counters: Arc::clone(shared.worker(index)),
            room: Room::new(settings.input_bytes_max, connections_max, INPUT_BUFFERS),
            output: Room::new(settings.output_bytes_max, connections_max, OUTPUT_BUFFERS),
            known: KnownHead::default(),
            batch: Batch::new(settings.is_tls),
            null_payload: backend.add_payload(batch::null_payload().into()),
            pattern_payload: backend.add_payload(pattern::pattern_payload().into()),
            scratch: Vec::new(),
        };
        Self::new(backend, shared, settings, http)
    }

    /// Sends what was written, and does what a step asks for; whether there is more to do at once.
    fn follow(&mut self, slot: Slot, step: Step) -> bool {
        let connection = &mut self.connections[slot.0 as usize];
        match step {
            Step::Overflow => {
                self.service.batch.clear();
                self.overflow(slot);
                return false;
            }
            Step::Pattern { start, end } => {
                self.send_pattern(slot, start, end);
                return false;
            }
            Step::Reply(stream) => {
                connection.work.get_or_insert_default().stream = Some(stream);
            }
            Step::WebSocket(route) => {
                let websocket = WebSocketSession::boxed(route);
                connection.work.get_or_insert_default().websocket = Some(websocket);
            }
            Step::Answer { due_ns } => {
                connection.work.get_or_insert_default().due_ns = Some(due_ns)
            }
            Step::End(after) => {
                connection.after = after;
                if after != After::KeepOpen {
                    connection.work = None;
                }
            }
            Step::GoOn | Step::Input | Step::Wait { .. } => {}
        }
        if self.flush(slot) {
            return false;
        }
        let connection = &mut self.connections[slot.0 as usize];
        match step {
            Step::Wait { until_ns } => self.wake_at(slot, Some(until_ns)),
            Step::Input if connection.link.ended => self.close(slot),
            Step::Input => {
                connection.work.take_if(|work| work.is_done());
            }
            _ => return true,
        }
        false
    }

    pub(super) fn send_pattern(&mut self, slot: Slot, start: u32, end: u32) {
        if self.settings.is_tls && !self.holds_sending(slot, (end - start) as usize) {
            return self.overflow(slot);
        }
        self.service.counters.bytes_sent.add(u64::from(end - start));
        let payload = self.service.pattern_payload;
        self.send(
            slot,
            Outgoing::Shared {
                payload,
                start,
                end,
            },
        );
    }

    /// Sends the batch; false when there is nothing in it.
    pub(super) fn flush(&mut self, slot: Slot) -> bool {
        let nulls = match self.service.batch.content() {
            BatchContent::Nothing => {
                self.service.batch.clear();
                return false;
            }
            BatchContent::Nulls(count) => count,
            BatchContent::Bytes => 0,
        };
        let is_held = match nulls {
            0 => self.holds_batch(slot),
            _ => !self.settings.is_tls || self.holds_sending(slot, self.service.batch.length()),
        };
        if !is_held {
            self.service.batch.clear();
            self.overflow(slot);
            return true;
        }
        let batch = &mut self.service.batch;
        self.service.counters.bytes_sent.add(batch.settle());
        let outgoing = if nulls > 0 {
            batch.clear();
            Outgoing::Shared {
                payload: self.service.null_payload,
                start: 0,
                end: nulls * NULL_ANSWER.len() as u32,
            }
        } else {
            Outgoing::Owned(batch.take_bytes(self.backend.take_buffer()))
        };
        self.send(slot, outgoing);
        true
    }

    /// Tells the room for output how many bytes are sent next; false when there is no room for
    /// them.
    fn holds_sending(&mut self, slot: Slot, bytes: usize) -> bool {
        let hold = &mut self.connections[slot.0 as usize].sending_hold;
        hold.set(bytes, &self.service.output)
    }

    /// Tells the room for output how many bytes of the batch are sent next, and how much memory the
    /// batch takes; false when there is no room for them.
    fn holds_batch(&mut self, slot: Slot) -> bool {
        if !self.holds_sending(slot, self.service.batch.length()) {
            return false;
        }
        // A batch that was used before may hold more memory than there is room for now.
        self.service.batch.trim(self.service.output.grant_bytes());
        let hold = &mut self.connections[slot.0 as usize].sending_hold;
        hold.correct(self.service.batch.capacity());
        true
    }

    fn send(&mut self, slot: Slot, outgoing: Outgoing) {
        self.turn_bytes += match &outgoing {
            Outgoing::Shared { start, end, .. } => (end - start) as usize,
            Outgoing::Owned(bytes) => bytes.len(),
        };
        let connection = &mut self.connections[slot.0 as usize];
        connection.link.sending = true;
        let lateness = &self.service.counters.lateness;
        if let Some(work) = &mut connection.work {
            // What waits behind this has its turn from now on.
            work.noticed_ns = self.backend.now_ns();
            if let Some(due_ns) = work.due_ns.take() {
                lateness.add(1, work.noticed_ns.saturating_sub(due_ns));
            }
        }
        if let Some(http2) = &mut connection.http2 {
            http2.session.all_sent();
        }
        self.backend.send(slot, outgoing);
    }
}
