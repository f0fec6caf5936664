//! Connections as requests: opened, and closed as soon as they are open.

use brunt_io::backend::{ClientBackend, Slot};
use brunt_record::{Answer, FailureKind, ReplyOutcome, RequestTiming};

use super::{Pacing, Worker};
use crate::connection::State;
use crate::failure;
use crate::protocol::{ClientProtocol, Next};

impl<B: ClientBackend, P: ClientProtocol> Worker<B, P> {
    /// Set-up opens nothing: every slot can take an attempt.
    pub(super) fn offer_slots(&mut self) {
        let now_ns = self.backend.now_ns();
        self.opening.slots_used = self.connections.len();
        for slot in self.connections.slots() {
            self.offer_slot(slot, now_ns);
        }
    }

    /// The slot can take an attempt.
    fn offer_slot(&mut self, slot: Slot, now_ns: u64) {
        let connection = &mut self.connections[slot];
        connection.state = State::Open;
        connection.depth = self.task.depth;
        connection.requests_left = u64::MAX;
        connection.free_ns = now_ns;
        connection.punctual_free_ns = now_ns;
        // Opening is the request itself, and comes on top of none.
        connection.has_ended_one = true;
    }

    /// The pause after an attempt that failed is over.
    pub(super) fn reoffer_slot(&mut self, slot: Slot, now_ns: u64) {
        if std::mem::take(&mut self.connections[slot].is_bounded) {
            self.opening.dialling.ended();
        }
        self.offer_slot(slot, now_ns);
        self.available(slot, now_ns, now_ns);
    }

    /// Opens a connection in a slot that can take an attempt.
    pub(super) fn attempt(&mut self, slot: Slot, timing: RequestTiming) {
        let now_ns = timing.sent_ns;
        let source = self.opening.sources.next(now_ns);
        self.note_attempts(now_ns, self.opening.in_flight + 1);
        let (connection, places) = self.connections.start_requests(slot, 1);
        connection.opened_from_ns = now_ns;
        if self.task.think_time.mean_ns > 0 {
            connection.think_ns = self.supply.think_times.next_ns();
        }
        let next = Next {
            request: self.supply.source.next_id(0),
            behind: 0,
            closes: true,
            now_ns,
        };
        let out = self.output.out();
        let place = self.protocol.request(&mut connection.protocol, next, out);
        places[place as usize] = timing;
        self.accounting.recorder.sent_by_name(timing);
        self.account_sent(slot, timing, 1, 0);
        self.connections
            .arm(slot, now_ns.saturating_add(self.task.connect_timeout_ns));
        if let Err(error) = self.backend.open(slot, self.task.peer_of(slot), source) {
            let kind = error
                .raw_os_error()
                .map_or(FailureKind::ConnectNoDescriptor, failure::of_connect);
            self.attempt_ends(slot, now_ns, Some(kind));
            // Whoever goes on with what waits would find the same at once.
            self.open_later(slot, now_ns);
        }
    }

    /// The connection of an attempt is open, with its TLS.
    pub(super) fn attempt_made(&mut self, slot: Slot, now_ns: u64) {
        if self.connections[slot].in_flight == 0 {
            // It belongs to a round that is over, which the next one closes.
            return;
        }
        let since_ns = self.connections[slot].opened_from_ns;
        let mut connected_ns = now_ns;
        if let Some(secured) = self.backend.secured(slot) {
            connected_ns = secured.from_ns;
            let tls_ns = secured.to_ns.saturating_sub(secured.from_ns);
            self.accounting
                .recorder
                .secured(now_ns, tls_ns, secured.is_resumed);
        }
        let recorder = &mut self.accounting.recorder;
        recorder.connected(now_ns, connected_ns.saturating_sub(since_ns));
        recorder.disconnected(now_ns);
        self.attempt_ends(slot, now_ns, None);
        self.connections[slot].attempts = 0;
        self.available(slot, now_ns, now_ns);
    }

    /// An attempt failed. In a closed loop the slot pauses then, as one that is opened for requests
    /// does: a server at its limits is not to be run over.
    pub(super) fn attempt_missed(&mut self, slot: Slot, now_ns: u64, kind: FailureKind) {
        if self.connections[slot].in_flight == 0 {
            return;
        }
        self.attempt_ends(slot, now_ns, Some(kind));
        match self.pacing {
            Pacing::Closed => self.open_later(slot, now_ns),
            _ => self.available(slot, now_ns, now_ns),
        }
    }

    /// When the attempt in flight is given up; [`u64::MAX`] without one.
    pub(super) fn attempt_limit_ns(&self, slot: Slot) -> u64 {
        let connection = &self.connections[slot];
        match connection.in_flight {
            0 => u64::MAX,
            _ => connection
                .opened_from_ns
                .saturating_add(self.task.connect_timeout_ns),
        }
    }

    /// The attempt in flight takes longer than it may.
    pub(super) fn attempt_timed_out(&mut self, slot: Slot, now_ns: u64) {
        let kind = if now_ns < self.attempt_limit_ns(slot) {
            FailureKind::TimedOut
        } else if self.backend.is_handshaking(slot) {
            FailureKind::HandshakeTimedOut
        } else {
            FailureKind::ConnectTimedOut
        };
        self.attempt_missed(slot, now_ns, kind);
    }

    /// Records how an attempt ended, and closes what is in the slot.
    fn attempt_ends(&mut self, slot: Slot, now_ns: u64, failed: Option<FailureKind>) {
        self.note_attempts(now_ns, self.opening.in_flight - 1);
        self.take_overhead(slot, now_ns);
        self.backend.close(slot);
        let connection = &mut self.connections[slot].protocol;
        let Some((place, discarded_bytes)) = self.protocol.abandon(connection) else {
            return;
        };
        let timing = self.connections.end_request(slot, place);
        if let Some(kind) = failed {
            self.request_failed(slot, timing, now_ns, (kind, discarded_bytes));
            return;
        }
        let answer = Answer {
            outcome: ReplyOutcome::SUCCESS,
            retry_after: false,
            interim: 0,
            head_bytes: 0,
            body_bytes: 0,
            first_byte_ns: now_ns,
        };
        self.replied(slot, timing, now_ns, &answer);
    }

    /// From now on so many attempts are in flight.
    fn note_attempts(&mut self, now_ns: u64, in_flight: u32) {
        self.opening.in_flight = in_flight;
        self.accounting.recorder.opening(now_ns, in_flight);
    }
}
