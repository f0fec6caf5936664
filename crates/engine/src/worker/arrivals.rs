//! Planned arrivals: taken in when they are due, given to what is free, or kept waiting.

use brunt_io::backend::{ClientBackend, Slot};
use brunt_record::{RequestTiming, Skip};

use super::{Mode, Pacing, Worker};
use crate::backlog::{Arrival, Backlog};
use crate::connection::State;
use crate::protocol::ClientProtocol;

/// What one turn does of arrivals, at most, so that events and interrupts are not held up: arrivals
/// taken in or given up one by one, and ranges of those that find the queue full.
const ARRIVALS_PER_TURN: u32 = 1_024;
const RANGES_PER_TURN: u32 = 64;
/// Connections that one turn hands out when the load begins.
const CONNECTIONS_PER_TURN: u32 = 1_024;
/// Requests of a run by count that are drawn for such a range at once.
const DRAWN_PER_RANGE: u64 = 65_536;
/// An arrival that waits is given up when this many service times would not end within its
/// time-out: most replies take less.
const SERVICE_TIMES: u64 = 2;

impl<B: ClientBackend, P: ClientProtocol> Worker<B, P> {
    /// The load begins.
    pub(super) fn start_load(&mut self, load_ns: u64) {
        if let Some(backlog) = self.backlog() {
            backlog.start(load_ns);
        } else if self.waits() {
            // Users who are there already do not all begin at once.
            let thinks = self.task.think_time.mean_ns > 0;
            for connection in self.connections.iter_mut() {
                connection.free_ns = load_ns;
                if thinks {
                    connection.think_ns = self.supply.think_times.rest_ns();
                }
            }
        }
        self.dial_the_rest(load_ns);
        self.free.next_released = 0;
        self.release();
    }

    /// Whether connections were not released to the load yet.
    pub(super) fn is_releasing(&self) -> bool {
        self.timeline.mode == Mode::Load && self.free.next_released < self.connections.len()
    }

    /// Has the next connections send, or take what waits: as many per turn as leave it short.
    pub(super) fn release(&mut self) {
        let all = self.connections.len();
        let first = self.free.next_released.min(all);
        let end = all.min(first.saturating_add(CONNECTIONS_PER_TURN));
        self.free.next_released = if end == all { u32::MAX } else { end };
        for slot in (first..end).map(Slot) {
            let now_ns = self.backend.now_ns();
            self.runs(now_ns);
            match self.pacing {
                Pacing::Closed => {
                    self.note_first_request(slot, now_ns);
                    self.send_next(slot, now_ns);
                }
                Pacing::Held => {}
                Pacing::Open(_) | Pacing::Sessions(_) => self.mark_free(slot),
            }
        }
        let now_ns = self.backend.now_ns();
        self.assign_waiting(now_ns);
    }

    /// The connection has its first request now, or the window is over without it.
    fn note_first_request(&mut self, slot: Slot, now_ns: u64) {
        let connection = &self.connections[slot];
        if !connection.is_used && connection.state == State::Open {
            self.accounting.recorder.begun(now_ns);
        }
    }

    /// Notes the connections that the window had no time for.
    pub(super) fn end_release(&mut self, now_ns: u64) {
        if let Pacing::Closed = self.pacing {
            for slot in (self.free.next_released..self.connections.len()).map(Slot) {
                self.note_first_request(slot, now_ns);
            }
        }
        self.free.next_released = u32::MAX;
    }

    pub(super) fn backlog(&mut self) -> Option<&mut Backlog> {
        match &mut self.pacing {
            Pacing::Closed | Pacing::Held => None,
            Pacing::Open(backlog) | Pacing::Sessions(backlog) => Some(backlog),
        }
    }

    /// When the next arrival is due, `u64::MAX` for never.
    pub(super) fn next_arrival_ns(&self) -> u64 {
        match &self.pacing {
            Pacing::Closed | Pacing::Held => u64::MAX,
            Pacing::Open(backlog) | Pacing::Sessions(backlog) => backlog.next_ns(),
        }
    }

    /// How many arrivals wait.
    pub(super) fn waiting(&self) -> usize {
        match &self.pacing {
            Pacing::Closed | Pacing::Held => 0,
            Pacing::Open(backlog) | Pacing::Sessions(backlog) => backlog.waiting(),
        }
    }

    /// Takes in the arrivals that have come due, or as many of them as one turn may. The others are
    /// left to the next one: the worker is behind.
    pub(super) fn take_arrivals(&mut self, now_ns: u64) {
        let before_ns = now_ns.saturating_add(1).min(self.timeline.window_end_ns);
        let (mut arrivals_left, mut ranges_left) = (ARRIVALS_PER_TURN, RANGES_PER_TURN);
        self.stop_if_none_begins(now_ns);
        // If many have come due since brunt last looked, the later ones find nothing free where
        // those before them, sent in time, would have been answered by now.
        self.free.would_be_free_ns.clear();
        while self.next_arrival_ns() < before_ns {
            if arrivals_left == 0 || ranges_left == 0 {
                self.wake_ups.is_behind = true;
                return;
            }
            if self.backlog().is_some_and(|backlog| backlog.is_full()) {
                ranges_left -= 1;
                self.skip_range(before_ns, now_ns);
                continue;
            }
            arrivals_left -= 1;
            if self.begins_no_more() {
                self.stop_if_none_begins(now_ns);
                return;
            }
            let Some(due_ns) = self
                .backlog()
                .and_then(|backlog| backlog.take_before(before_ns))
            else {
                return;
            };
            if matches!(self.pacing, Pacing::Open(_)) && self.take_quota(due_ns, 1) == 0 {
                if let Some(backlog) = self.backlog() {
                    backlog.stop();
                }
                return;
            }
            self.wake_ups.spinner.worked(now_ns);
            self.accounting.recorder.arrival_planned(due_ns);
            let free = if self.waiting() == 0 {
                self.pop_free()
            } else {
                None
            };
            let free_ns = match free {
                Some(slot) => Some(self.connections[slot].free_ns),
                None => self.free.would_be_free_ns.pop_front(),
            };
            let possible_ns = free_ns.map(|free_ns| due_ns.max(free_ns));
            if let Some(possible_ns) = possible_ns
                && matches!(self.pacing, Pacing::Open(_))
            {
                self.free
                    .would_be_free_ns
                    .push_back(possible_ns + self.accounting.answering_ns());
            }
            let arrival = Arrival {
                due_ns,
                possible_ns,
            };
            match free {
                Some(slot) => self.assign(slot, arrival),
                None => self.enqueue(arrival, now_ns),
            }
        }
    }

    /// The queue is full: passes over the arrivals that come before `before_ns`, or the first of
    /// them that count alike.
    fn skip_range(&mut self, before_ns: u64, now_ns: u64) {
        let due_ns = self.next_arrival_ns();
        let at_ns = self.unanswered_until_ns(now_ns);
        let until_ns = before_ns.min(self.accounting.recorder.alike_until_ns(due_ns, at_ns));
        let is_counted = matches!(self.pacing, Pacing::Open(_))
            && self.task.budget.is_some()
            && due_ns >= self.timeline.measure_from_ns;
        let most = if is_counted {
            self.take_quota(due_ns, DRAWN_PER_RANGE)
        } else {
            u64::MAX
        };
        let Some(backlog) = self.backlog() else {
            return;
        };
        if most == 0 {
            backlog.stop();
            return;
        }
        let skipped = backlog.skip_before(until_ns, most);
        if is_counted {
            self.supply.quota += most - skipped;
        }
        self.wake_ups.spinner.worked(now_ns);
        self.free.would_be_free_ns.clear();
        self.accounting.progress.failures += skipped;
        self.accounting
            .recorder
            .arrivals_skipped(due_ns, until_ns, at_ns, skipped);
    }

    /// What is skipped now will have had no reply by the end of the window, where that is known.
    fn unanswered_until_ns(&self, now_ns: u64) -> u64 {
        if self.timeline.window_end_ns == u64::MAX {
            now_ns
        } else {
            self.timeline.window_end_ns
        }
    }

    /// Plans no further connections where they are of no use.
    fn stop_if_none_begins(&mut self, now_ns: u64) {
        if self.begins_no_more() {
            if let Some(backlog) = self.backlog() {
                backlog.stop();
            }
            self.give_up_waiting(now_ns);
        }
    }

    /// Gives the arrivals that wait to what is free.
    pub(super) fn assign_waiting(&mut self, now_ns: u64) {
        self.stop_if_none_begins(now_ns);
        if !self.drop_expired(now_ns) {
            return;
        }
        while self.waiting() > 0
            && let Some(slot) = self.pop_free()
            && let Some(arrival) = self.backlog().and_then(Backlog::pop)
        {
            self.assign(slot, arrival);
        }
    }

    /// Drops the arrivals that have waited so long that no reply is to be expected before their
    /// time is up. In a queue longer than the time-out, each request would else be sent just in
    /// time to fail. False: there are more of them than one turn may drop.
    pub(super) fn drop_expired(&mut self, now_ns: u64) -> bool {
        if self.generated.is_some() && matches!(self.pacing, Pacing::Sessions(_)) {
            // A session is to be replayed, however late it begins: its requests have time-outs of
            // their own.
            return true;
        }
        let mut left = ARRIVALS_PER_TURN;
        let timeout_ns = self.task.timeout_ns;
        let needed_ns = (SERVICE_TIMES * self.accounting.service_ns()).min(timeout_ns / 2);
        let patience_ns = timeout_ns - needed_ns;
        while let Some(backlog) = self.backlog()
            && let Some(Arrival { due_ns, .. }) = backlog.front()
            && now_ns.saturating_sub(due_ns) >= patience_ns
        {
            if left == 0 {
                self.wake_ups.is_behind = true;
                return false;
            }
            left -= 1;
            backlog.pop();
            self.accounting.arrival_skipped(due_ns, now_ns, Skip::Late);
        }
        true
    }

    /// The arrivals that wait will not be sent.
    pub(super) fn give_up_waiting(&mut self, now_ns: u64) {
        while let Some(arrival) = self.backlog().and_then(Backlog::pop) {
            self.accounting
                .recorder
                .arrival_skipped(arrival.due_ns, now_ns, Skip::Unsent);
        }
    }

    /// Lets arrivals find the slot, if it is free for one; it has been since `free_ns`.
    pub(super) fn mark_free_since(&mut self, slot: Slot, free_ns: u64) {
        let answering_ns = self.accounting.answering_ns();
        if self.is_free(slot)
            && let Pacing::Open(backlog) = &mut self.pacing
        {
            // While arrivals wait, every connection is full: all its room is new.
            let places = self.connections[slot].room();
            backlog.was_free(free_ns, places, answering_ns);
        }
        self.mark_free(slot);
    }

    /// Lets arrivals find the slot, if it is free for one.
    pub(super) fn mark_free(&mut self, slot: Slot) {
        if self.is_free(slot) && !self.connections[slot].is_offered {
            self.connections[slot].is_offered = true;
            self.free.slots.push_back(slot);
        }
    }

    fn is_free(&self, slot: Slot) -> bool {
        let connection = &self.connections[slot];
        match self.pacing {
            Pacing::Closed | Pacing::Held => false,
            Pacing::Open(_) => connection.has_room() && !self.is_parked(slot),
            Pacing::Sessions(_) => connection.state == State::Down { retry_ns: u64::MAX },
        }
    }

    fn pop_free(&mut self) -> Option<Slot> {
        while let Some(slot) = self.free.slots.pop_front() {
            self.connections[slot].is_offered = false;
            if self.is_free(slot) && self.has_request(slot) {
                return Some(slot);
            }
        }
        None
    }

    /// Sends what has come due, or opens it if it is a connection.
    fn assign(&mut self, slot: Slot, arrival: Arrival) {
        let now_ns = self.backend.now_ns();
        let due_ns = arrival.due_ns;
        self.take_place(slot, due_ns, now_ns);
        let connection = &mut self.connections[slot];
        let free_ns = arrival
            .possible_ns
            .map_or(connection.free_ns, |at_ns| at_ns.min(connection.free_ns));
        let available_ns = due_ns.max(free_ns);
        connection.free_ns = available_ns;
        self.accounting
            .recorder
            .arrival_sent(due_ns, now_ns, available_ns > due_ns);
        self.accounting
            .recorder
            .lag(due_ns, now_ns.saturating_sub(available_ns));
        if matches!(self.pacing, Pacing::Open(_)) {
            let timing = RequestTiming {
                due_ns,
                sent_ns: now_ns,
                request: 0,
            };
            if self.generated.is_some() {
                self.send_texts(slot, timing, 1);
            } else {
                self.send(slot, timing, 1);
            }
            // It may take more before this one is sent.
            self.mark_free(slot);
        } else {
            connection.session_due_ns = Some(due_ns);
            self.open(slot, now_ns);
        }
    }

    /// What is due at `due_ns` takes a place on the slot: when it would have, had brunt been on
    /// time with those before it there, is kept for its parts.
    fn take_place(&mut self, slot: Slot, due_ns: u64, now_ns: u64) {
        if !self.is_stamped(slot) || !matches!(self.pacing, Pacing::Open(_)) {
            return;
        }
        let connection = &mut self.connections[slot];
        let places = connection.depth.saturating_sub(connection.in_flight);
        if let Some(sends) = connection.sends() {
            connection.punctual_free_ns = sends.take_free(places, now_ns);
        }
        connection.punctual_free_ns = connection.punctual_free_ns.max(due_ns);
        connection.late_ns = now_ns.saturating_sub(connection.punctual_free_ns);
    }

    fn enqueue(&mut self, arrival: Arrival, now_ns: u64) {
        let until_ns = self.unanswered_until_ns(now_ns);
        let Some(backlog) = self.backlog() else {
            return;
        };
        if backlog.push(arrival) {
            let waiting = backlog.waiting() as u64;
            self.accounting.recorder.waiting(now_ns, waiting);
            self.grow(now_ns);
        } else {
            self.accounting
                .arrival_skipped(arrival.due_ns, until_ns, Skip::Full);
        }
    }

    /// Opens a further connection, where that is allowed and more arrivals wait than those being
    /// opened will take.
    fn grow(&mut self, now_ns: u64) {
        let per_connection = u64::from(self.task.depth).min(self.task.requests_per_connection);
        let may_grow = matches!(self.pacing, Pacing::Open(_))
            && self.timeline.mode == Mode::Load
            && self.opening.slots_used < self.connections.len()
            && u64::from(self.opening.in_flight) * per_connection < self.waiting() as u64;
        if may_grow {
            let slot = Slot(self.opening.slots_used);
            self.opening.slots_used += 1;
            self.open(slot, now_ns);
        }
    }
}
