//! The connections of a worker: which of them it opens when, tries again, holds and parts from.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::ops::{Index, IndexMut};

use brunt_io::backend::{ClientBackend, Slot};
use brunt_io::timers::Timers;
use brunt_load::share_u64;
use brunt_record::{FailureKind, KernelSample, Recorder, RequestTiming};

use super::accounting::Accounting;
use crate::connection::{Connection, State};
use crate::limits::Turns;
use crate::protocol::{ClientProtocol, FREE_PLACE, WorkerTransport};
use crate::task::{Mode, PAUSE_NS_LEAST};

/// Failed attempts after which set-up no longer waits for a connection.
const SETUP_ATTEMPTS: u32 = 5;
/// Pause after a failed attempt; it doubles with each further one up to `RETRY_NS_MAX`.
const RETRY_NS_MIN: u64 = 10_000_000;
const RETRY_NS_MAX: u64 = 1_000_000_000;
/// While no connection is open, one of them is tried again after this part of the time for which
/// that has been so: the end of an outage is known as exactly.
const PROBE_PART: u64 = 8;
/// A server that says nothing for so long has nothing more to say.
const QUIET_NS: u64 = 1_000_000_000;
/// The kernel's account is read for one connection in this many, and this many in all.
const KERNEL_SAMPLE_EVERY: usize = 64;
const KERNEL_SAMPLE_MAX: u32 = 16;

/// All connections with what is known of opening and ending them.
#[derive(Debug)]
pub(super) struct Connections<P: ClientProtocol> {
    connections: Vec<Connection<P>>,
    /// What is kept of what happens on them.
    pub(super) accounting: Accounting,
    /// `depth` places per connection, any of which may be free.
    places: Vec<RequestTiming>,
    depth: usize,
    pub(super) in_flight: u64,
    deadlines: Timers<Deadline>,
    /// Local addresses of connections.
    pub(super) sources: Turns,
    /// Attempts in flight.
    pub(super) attempts: u32,
    /// First attempts of set-up, and retries.
    pub(super) dialling: Dialling,
    /// Slots that set-up opens.
    held: u32,
    /// Connections that set-up still waits for.
    pub(super) awaited: u32,
    /// Connections to be held that are not open, and are not just being replaced.
    pub(super) lacking: u32,
    /// When set-up opened a connection for the first time that it still waited for.
    pub(super) progress_ns: u64,
    /// Slots that set-up opens, and those opened since because none was free.
    pub(super) slots_used: u32,
    /// Slots whose connections no request needed when they were lost, and that nothing opens again
    /// unasked.
    pub(super) spare: Vec<Slot>,
    /// Since when no connection is open, or none takes a request.
    pub(super) unavailable_since_ns: Option<u64>,
    /// Slots that wait for the end of a pause, to be opened again for what they carried.
    pub(super) resuming: u32,
    /// Connections whose servers are to answer that nothing more is sent.
    pub(super) closing: u32,
    /// The connection that finds out when one can be opened again, while none is open.
    probe: Option<Slot>,
    requests_per_connection: u64,
}

/// The next attempt to open a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NextAttempt {
    /// Now, in this slot.
    Now(Slot),
    /// Later, at this instant; [`u64::MAX`]: when something else happens.
    At(u64),
}

impl<P: ClientProtocol> Connections<P> {
    /// `slots` connections that are down, each with at most `depth` requests in flight. Set-up opens
    /// the first `held`. Each is replaced after `requests_per_connection` requests.
    pub(super) fn new(
        protocol: &P,
        accounting: Accounting,
        slots: u32,
        held: u32,
        depth: u32,
        sources: Turns,
        requests_per_connection: u64,
    ) -> Self {
        let connections = (0..slots)
            .map(|slot| Connection::new(protocol.connection(), slot < held))
            .collect();
        Self {
            connections,
            accounting,
            places: vec![FREE_PLACE; slots as usize * depth as usize],
            depth: depth as usize,
            in_flight: 0,
            deadlines: Timers::default(),
            sources,
            attempts: 0,
            dialling: Dialling::new(0, 0, 0.0, P::Transport::ATTEMPTS_MAX),
            held,
            awaited: held,
            lacking: held,
            progress_ns: 0,
            slots_used: held,
            spare: Vec::new(),
            unavailable_since_ns: None,
            resuming: 0,
            closing: 0,
            probe: None,
            requests_per_connection,
        }
    }

    /// Takes over what another round left: its local addresses, and open connections at rest, as
    /// far as they are to be held. Gives the slots of those that are of no use.
    pub(super) fn keep(&mut self, others: Self, left_behind: &[Slot], now_ns: u64) -> Vec<Slot> {
        let mut useless = Vec::new();
        self.sources = others.sources;
        for (slot, connection) in (0..).map(Slot).zip(others.connections) {
            let is_left_behind = left_behind.binary_search(&slot).is_ok();
            if slot.0 < self.held && connection.is_at_rest() && !is_left_behind {
                self.accounting.recorder.kept_open(now_ns);
                self[slot] = connection.kept(now_ns);
                self.awaited -= 1;
                self.lacking -= 1;
            } else if !matches!(connection.state, State::Down { .. }) {
                useless.push(slot);
            }
        }
        useless
    }

    /// Set-up begins, with one attempt per `gap_ns`.
    pub(super) fn start_set_up(&mut self, now_ns: u64, gap_ns: f64) {
        let most = P::Transport::ATTEMPTS_MAX;
        self.dialling = Dialling::new(self.held, now_ns, gap_ns, most);
        self.progress_ns = now_ns;
    }

    /// A slot that is to be opened because arrivals wait, if there is one: one whose connection was
    /// not needed any more, or the first that was never in use.
    pub(super) fn use_slot(&mut self) -> Option<Slot> {
        if let Some(slot) = self.spare.pop() {
            return Some(slot);
        }
        let is_there = self.slots_used < self.len();
        is_there.then(|| {
            self.slots_used += 1;
            Slot(self.slots_used - 1)
        })
    }

    /// No request needs the connection, which is lost, before `at_ns`, when it is opened again;
    /// absent: until arrivals wait for it.
    pub(super) fn set_aside(&mut self, slot: Slot, at_ns: Option<u64>, now_ns: u64) {
        self.unneeded(slot, now_ns);
        if let Some(at_ns) = at_ns {
            self.open_at(slot, at_ns, now_ns);
        } else {
            self.spare.push(slot);
        }
    }

    /// No request needs the connection, which is lost.
    pub(super) fn unneeded(&mut self, slot: Slot, now_ns: u64) {
        let connection = &mut self[slot];
        connection.waiting_since_ns = now_ns;
        connection.is_unneeded = true;
    }

    /// The attempt whose turn it is at `now_ns`.
    pub(super) fn next_attempt(&mut self, now_ns: u64) -> NextAttempt {
        while let Some(slot) = self.dialling.next(now_ns) {
            let connection = &mut self[slot];
            if let State::Down { .. } = connection.state {
                connection.is_bounded = true;
                self.dialling.in_flight += 1;
                return NextAttempt::Now(slot);
            }
        }
        NextAttempt::At(self.dialling.due_ns())
    }

    /// An attempt begins, in `state`; gives the local address that it is to have.
    pub(super) fn attempt(&mut self, slot: Slot, now_ns: u64, state: State) -> Option<SocketAddr> {
        self.stop_awaiting_retry(slot, now_ns);
        if std::mem::take(&mut self[slot].is_unneeded) {
            self.accounting.recorder.needed(now_ns);
        }
        self.attempts += 1;
        self.accounting.recorder.opening(now_ns, self.attempts);
        let connection = &mut self[slot];
        connection.state = state;
        connection.opened_from_ns = now_ns;
        self.sources.next()
    }

    /// An attempt has ended.
    pub(super) fn attempt_ended(&mut self, slot: Slot, now_ns: u64) {
        self.attempts -= 1;
        self.accounting.recorder.opening(now_ns, self.attempts);
        self.unbind(slot);
    }

    /// The attempt of the slot does not count among those that are bounded, or no longer.
    fn unbind(&mut self, slot: Slot) {
        if std::mem::take(&mut self[slot].is_bounded) {
            self.dialling.in_flight -= 1;
        }
    }

    /// An attempt failed that was no request.
    pub(super) fn attempt_failed(&mut self, slot: Slot, now_ns: u64, kind: FailureKind) {
        self.attempt_ended(slot, now_ns);
        self.note_lacking(slot);
        self.accounting.recorder.failed(now_ns, kind, 0);
        if self.live() == 0 {
            self.unavailable_since_ns.get_or_insert(now_ns);
            self.probe.get_or_insert(slot);
        }
    }

    /// An attempt led to a connection that can carry requests. Gives whether it was the one that
    /// was to find out when that is possible again.
    pub(super) fn opened(&mut self, slot: Slot, now_ns: u64) -> bool {
        self.attempt_ended(slot, now_ns);
        let connection = &mut self.connections[slot.0 as usize];
        connection.state = State::Open;
        connection.opened_ns = now_ns;
        connection.is_used = false;
        connection.requests_left = self.requests_per_connection;
        // Had brunt been on time before, this connection would have been opened earlier.
        let late_ns = std::mem::take(&mut connection.late_ns);
        connection.punctual_free_ns = now_ns.saturating_sub(late_ns);
        if connection.depth > 0 {
            self.unavailable_since_ns = None;
        }
        if std::mem::take(&mut connection.is_lacking) {
            self.lacking -= 1;
        }
        if !connection.settled {
            self.progress_ns = now_ns;
        }
        self.settle(slot);
        self.probe.take().is_some()
    }

    /// Set-up opened nothing: every slot can take an attempt that is a request.
    pub(super) fn offer_all(&mut self, now_ns: u64) {
        self.slots_used = self.len();
        for slot in self.slots() {
            self.offer(slot, now_ns);
        }
    }

    /// The slot can take an attempt that is a request.
    pub(super) fn offer(&mut self, slot: Slot, now_ns: u64) {
        self.unbind(slot);
        let connection = &mut self.connections[slot.0 as usize];
        connection.state = State::Open;
        connection.depth = self.depth as u32;
        connection.requests_left = u64::MAX;
        connection.free_ns = now_ns;
        connection.punctual_free_ns = now_ns;
        // Opening is the request itself, and comes on top of none.
        connection.has_ended_one = true;
    }

    /// An attempt that is a request has ended, which is given; absent if that was one of a round
    /// that is over.
    pub(super) fn end_attempt(&mut self, slot: Slot, now_ns: u64) -> Option<RequestTiming> {
        (self[slot].in_flight > 0).then(|| {
            self.attempt_ended(slot, now_ns);
            self.end_request(slot, 0)
        })
    }

    /// The connection is not to be opened again, unless something asks for it.
    pub(super) fn stay_down(&mut self, slot: Slot) {
        self[slot].state = State::Down { retry_ns: u64::MAX };
    }

    /// Set-up does not wait for the connection any more.
    pub(super) fn settle(&mut self, slot: Slot) {
        if !std::mem::replace(&mut self[slot].settled, true) {
            self.awaited -= 1;
        }
    }

    /// An attempt of the connection failed, or led to nothing.
    fn note_lacking(&mut self, slot: Slot) {
        let is_held = slot.0 < self.held;
        if is_held && !std::mem::replace(&mut self[slot].is_lacking, true) {
            self.lacking += 1;
        }
    }

    /// Lets a pause go by before the next attempt. In set-up a slot that failed often enough is not
    /// tried again: the places are for those that were not.
    pub(super) fn retry_later(&mut self, slot: Slot, now_ns: u64, mode: Mode) {
        let retry_ns = now_ns + self.retry_pause_ns(slot, now_ns, mode);
        let connection = &mut self[slot];
        connection.attempts += 1;
        connection.waiting_since_ns = now_ns;
        connection.state = State::Down { retry_ns };
        if mode == Mode::Setup && connection.attempts >= SETUP_ATTEMPTS {
            self.settle(slot);
        } else {
            self.arm(slot, retry_ns);
        }
    }

    /// How long to wait after an attempt of `slot` that failed: twice as long each time. One
    /// connection of a worker that has none open finds out when the server is back.
    fn retry_pause_ns(&self, slot: Slot, now_ns: u64, mode: Mode) -> u64 {
        if let Some(since_ns) = self.unavailable_since_ns
            && self.probe == Some(slot)
            && mode == Mode::Load
        {
            let down_ns = now_ns.saturating_sub(since_ns);
            return (down_ns / PROBE_PART).clamp(RETRY_NS_MIN, RETRY_NS_MAX);
        }
        let attempts = self[slot].attempts;
        (RETRY_NS_MIN << attempts.min(16)).min(RETRY_NS_MAX)
    }

    /// Opens the connection at `at_ns`: a user who thinks goes on then, or an arrival needs it.
    pub(super) fn open_at(&mut self, slot: Slot, at_ns: u64, now_ns: u64) {
        self[slot].waiting_since_ns = now_ns;
        self.stay_down_until(slot, at_ns.min(u64::MAX - 1));
    }

    /// The next attempt of the connection, which is down, is due at `retry_ns`.
    fn stay_down_until(&mut self, slot: Slot, retry_ns: u64) {
        self[slot].state = State::Down { retry_ns };
        self.arm(slot, retry_ns);
    }

    /// What the connection carried, which is gone, goes on at `at_ns` with another one.
    pub(super) fn resume_at(&mut self, slot: Slot, at_ns: u64) {
        self.resuming += 1;
        self.stay_down_until(slot, at_ns.min(u64::MAX - 1));
    }

    /// The connection is to be opened when it is its turn.
    pub(super) fn queue(&mut self, slot: Slot, now_ns: u64) {
        self[slot].waiting_since_ns = now_ns;
        self.dialling.push(slot);
    }

    /// Queues the connections that are down for good, so that they are opened in turn.
    pub(super) fn queue_closed(&mut self) {
        for slot in self.slots() {
            if self[slot].is_down_for_good() {
                self.dialling.push(slot);
            }
        }
    }

    /// Load begins: what set-up could not open, or gave up, is tried as anything that failed.
    pub(super) fn retry_rest(&mut self, now_ns: u64) {
        self.dialling.clear();
        for slot in (0..self.slots_used).map(Slot) {
            match self[slot].state {
                State::Down { retry_ns: u64::MAX } => self.stay_down_until(slot, now_ns),
                State::Down { retry_ns } => self.arm(slot, retry_ns),
                _ => {}
            }
        }
    }

    /// The server is back: what waits for its next attempt need not wait as long as it was to.
    pub(super) fn retry_soon(&mut self, now_ns: u64) {
        for slot in self.slots() {
            if let State::Down { retry_ns } = self[slot].state
                && retry_ns < u64::MAX
            {
                self[slot].attempts = 0;
                self.stay_down_until(slot, now_ns.min(retry_ns));
            }
        }
    }

    /// The connection waits no longer for its next attempt, or there will be none: until now brunt
    /// could do nothing for it. After its pause that is so while the worker is not run by a machine
    /// that is busy with other things.
    pub(super) fn stop_awaiting_retry(&mut self, slot: Slot, now_ns: u64) {
        let connection = &mut self.connections[slot.0 as usize];
        let since_ns = std::mem::replace(&mut connection.waiting_since_ns, u64::MAX);
        if let State::Down { retry_ns } = connection.state
            && since_ns < u64::MAX
        {
            let until_ns = now_ns.min(retry_ns.saturating_add(PAUSE_NS_LEAST));
            let recorder = &mut self.accounting.recorder;
            if connection.is_unneeded {
                recorder.add_time(since_ns, until_ns, |live| &mut live.missing.unneeded_ns);
            } else if connection.thinks_first() && connection.attempts == 0 {
                recorder.add_time(since_ns, until_ns, |live| &mut live.missing.thinking_ns);
            } else {
                recorder.add_time(since_ns, until_ns, |live| &mut live.missing.retrying_ns);
            }
        }
    }

    /// The connection, which was open, is closed.
    pub(super) fn closed(&mut self, slot: Slot, now_ns: u64) {
        match self[slot].state {
            State::Closing { .. } => self.closing -= 1,
            _ => self.accounting.recorder.disconnected(now_ns),
        }
    }

    /// The connection is gone. One that `is_doomed` is a failed attempt but for the name: a server
    /// at its limits is not to be run over. Gives whether that is so for the second time in a row.
    pub(super) fn lost(&mut self, slot: Slot, is_doomed: bool) -> bool {
        let connection = &mut self[slot];
        connection.state = State::Down { retry_ns: u64::MAX };
        let was_doomed = connection.attempts > 0;
        connection.attempts = if is_doomed {
            connection.attempts.max(1)
        } else {
            0
        };
        if is_doomed {
            self.note_lacking(slot);
        }
        is_doomed && was_doomed
    }

    /// The server was told that nothing more is sent: it is read to its end, for `timeout_ns` at
    /// most.
    pub(super) fn part(&mut self, slot: Slot, now_ns: u64, timeout_ns: u64) {
        let until_ns = now_ns.saturating_add(timeout_ns);
        let quiet_ns = now_ns.saturating_add(QUIET_NS);
        self[slot].state = State::Closing { quiet_ns, until_ns };
        self.arm(slot, until_ns.min(quiet_ns));
        self.closing += 1;
        self.accounting.recorder.disconnected(now_ns);
    }

    /// Something came on a connection, which may be about to close.
    #[inline]
    pub(super) fn heard(&mut self, slot: Slot, now_ns: u64) {
        if self.closing > 0
            && let State::Closing { quiet_ns, .. } = &mut self[slot].state
        {
            *quiet_ns = now_ns.saturating_add(QUIET_NS);
        }
    }

    /// Takes over how many requests may be in flight on the connection. Gives how many more that
    /// are than before.
    #[inline]
    pub(super) fn update_capacity(&mut self, slot: Slot, now_ns: u64, protocol: &P) -> u32 {
        let connection = &mut self.connections[slot.0 as usize];
        let Some(capacity) = protocol.capacity(&connection.protocol) else {
            return 0;
        };
        if connection.state != State::Open {
            return 0;
        }
        let before = connection.depth;
        connection.depth = capacity.depth.min(self.depth as u32);
        if capacity.is_spent {
            // It finishes what is in flight and is replaced.
            connection.requests_left = 0;
        } else {
            let was_shut = std::mem::replace(&mut connection.is_shut, connection.depth == 0);
            if !connection.is_shut {
                self.unavailable_since_ns = None;
            } else if !was_shut {
                self.accounting.recorder.tally(now_ns).connections_shut += 1;
            }
        }
        connection.depth.saturating_sub(before)
    }

    /// A connection is given up on which the server allows no request: where that is so of all,
    /// there is none to be had.
    pub(super) fn note_shut(&mut self, slot: Slot, now_ns: u64) {
        let takes_none =
            |connection: &Connection<P>| connection.state != State::Open || connection.depth == 0;
        let is_first = self[slot].is_shut && self.unavailable_since_ns.is_none();
        if is_first && self.connections.iter().all(takes_none) {
            self.unavailable_since_ns = Some(now_ns);
        }
    }
}

/// Attempts that wait for their turn.
#[derive(Debug)]
pub(super) struct Dialling {
    /// First attempts are due from here on, one per `gap_ns`.
    from_ns: u64,
    gap_ns: f64,
    /// The next slot to be tried for the first time, and the first of those that set-up leaves
    /// alone.
    next: u32,
    end: u32,
    /// Slots whose pause after a failure is over.
    retries: VecDeque<Slot>,
    /// Bounded attempts in flight, and how many there may be. The bound holds for the first
    /// attempts of set-up and for retries, but not for the connection that takes the place of one
    /// that did its work, nor for one that waiting arrivals ask for.
    in_flight: u32,
    most: u32,
}

impl Dialling {
    /// First attempts for the slots below `slots`, of which `most` may be in flight at once.
    fn new(slots: u32, from_ns: u64, gap_ns: f64, most: u32) -> Self {
        Self {
            from_ns,
            gap_ns,
            next: 0,
            end: slots,
            retries: VecDeque::new(),
            in_flight: 0,
            most,
        }
    }

    /// When the next first attempt is due by plan; `u64::MAX` when there was one for each slot, and
    /// while as many are in flight as may be.
    fn due_ns(&self) -> u64 {
        if self.next == self.end || self.in_flight >= self.most {
            return u64::MAX;
        }
        let offset_ns = (self.gap_ns * f64::from(self.next)) as u64;
        self.from_ns.saturating_add(offset_ns)
    }

    /// The slot to be tried at `now_ns`, if there is one and the bound allows it.
    fn next(&mut self, now_ns: u64) -> Option<Slot> {
        if self.in_flight >= self.most {
            return None;
        }
        if self.due_ns() <= now_ns {
            let slot = Slot(self.next);
            self.next += 1;
            return Some(slot);
        }
        self.retries.pop_front()
    }

    /// Whether no attempt waits for its turn.
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.next == self.end && self.retries.is_empty()
    }

    /// Lets the slot be tried again, behind those that wait for it already.
    fn push(&mut self, slot: Slot) {
        self.retries.push_back(slot);
    }

    /// No attempt waits for its turn any more.
    fn clear(&mut self) {
        self.retries.clear();
        self.next = self.end;
    }
}

/// A deadline that was armed; it counts if it still is.
#[derive(Clone, Copy, Debug)]
pub(super) struct Deadline {
    slot: Slot,
    at_ns: u64,
}

impl<P: ClientProtocol> Connections<P> {
    /// Gives each connection its part of so many requests; absent: they share them.
    pub(super) fn share_out(&mut self, requests: Option<u64>) {
        let all = self.len();
        if let Some(requests) = requests {
            for (index, connection) in (0..).zip(&mut self.connections) {
                connection.part_left = share_u64(requests, all, index);
            }
        }
    }

    /// How many are open.
    pub(super) fn live(&self) -> u32 {
        self.accounting.recorder.live()
    }

    pub(super) fn len(&self) -> u32 {
        self.connections.len() as u32
    }

    /// The open connections, each with whether something is being sent on it.
    pub(super) fn open(&self) -> impl Iterator<Item = (Slot, bool)> {
        let connections = (0..).map(Slot).zip(&self.connections);
        connections
            .filter(|(_, connection)| connection.state == State::Open)
            .map(|(slot, connection)| (slot, connection.sending))
    }

    /// Connections whose requests have been in flight since before `at_ns`.
    pub(super) fn in_flight_since(&self, at_ns: u64) -> u32 {
        let waiting = self.slots().filter(|&slot| self.first_due_ns(slot) < at_ns);
        waiting.count() as u32
    }

    pub(super) fn slots(&self) -> impl Iterator<Item = Slot> + use<P> {
        (0..self.len()).map(Slot)
    }

    #[inline]
    pub(super) fn get_mut(&mut self, slot: Slot) -> Option<&mut Connection<P>> {
        self.connections.get_mut(slot.0 as usize)
    }

    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Connection<P>> {
        self.connections.iter_mut()
    }

    /// A connection with its places.
    #[inline]
    pub(super) fn with_places(&mut self, slot: Slot) -> (&mut Connection<P>, &[RequestTiming]) {
        let index = slot.0 as usize;
        (
            &mut self.connections[index],
            &self.places[index * self.depth..(index + 1) * self.depth],
        )
    }

    /// `count` requests are about to take places of the connection.
    #[inline]
    pub(super) fn start_requests(
        &mut self,
        slot: Slot,
        count: u32,
    ) -> (&mut Connection<P>, &mut [RequestTiming], &mut Recorder) {
        let index = slot.0 as usize;
        let connection = &mut self.connections[index];
        connection.in_flight += count;
        self.in_flight += u64::from(count);
        let places = &mut self.places[index * self.depth..(index + 1) * self.depth];
        (connection, places, &mut self.accounting.recorder)
    }

    /// The request in `place` is no longer in flight.
    #[inline]
    pub(super) fn end_request(&mut self, slot: Slot, place: u32) -> RequestTiming {
        let index = slot.0 as usize;
        self.connections[index].in_flight -= 1;
        self.in_flight -= 1;
        let place = index * self.depth + place as usize;
        std::mem::replace(&mut self.places[place], FREE_PLACE)
    }

    /// The kernel's accounts of a sample of connections, to be set beside brunt's own.
    pub(super) fn kernel_sample(&self, protocol: &P, backend: &impl ClientBackend) -> KernelSample {
        let mut sample = KernelSample::default();
        for slot in self.slots().step_by(KERNEL_SAMPLE_EVERY) {
            let connection = &self[slot];
            // Only connections at rest: bytes of a reply in flight may be anywhere between the
            // kernel and here.
            let at_rest = connection.state == State::Open
                && connection.in_flight == 0
                && !protocol.may_still_hear(&connection.protocol);
            if !at_rest || sample.connections == KERNEL_SAMPLE_MAX {
                continue;
            }
            let Some(info) = backend.tcp_info(slot) else {
                continue;
            };
            sample.merge(&KernelSample {
                connections: 1,
                kernel_bytes_received: info.bytes_received,
                own_bytes_received: connection.received_bytes + info.bytes_unread,
                min_rtt_ns: info.min_rtt_ns,
                segments_sent: info.segments_sent,
                segments_retransmitted: info.segments_retransmitted,
                segments_received: info.segments_received,
                segments_out_of_order: info.segments_out_of_order,
                busy_ns: info.busy_ns,
                receive_window_limited_ns: info.receive_window_limited_ns,
                send_buffer_limited_ns: info.send_buffer_limited_ns,
                receive_rtt_ns_max: info.receive_rtt_ns,
            });
        }
        sample
    }

    /// When the first of the requests in flight was due; [`u64::MAX`] for none.
    pub(super) fn first_due_ns(&self, slot: Slot) -> u64 {
        let index = slot.0 as usize;
        let places = &self.places[index * self.depth..(index + 1) * self.depth];
        let due_ns = places.iter().map(|place| place.due_ns).min();
        due_ns.unwrap_or(u64::MAX)
    }

    /// Makes sure that the connection is looked at when its deadline comes. Later deadlines than
    /// the one that is armed cost nothing: it is armed anew when it comes up.
    #[inline]
    pub(super) fn arm(&mut self, slot: Slot, at_ns: u64) {
        let connection = &mut self.connections[slot.0 as usize];
        if at_ns < connection.armed_ns {
            connection.armed_ns = at_ns;
            self.deadlines.push(at_ns, Deadline { slot, at_ns });
        }
    }

    /// The earliest deadline.
    #[inline]
    pub(super) fn next_deadline_ns(&self) -> u64 {
        self.deadlines.next_ns().unwrap_or(u64::MAX)
    }

    /// Takes the earliest deadline that has come.
    #[inline]
    pub(super) fn pop_due(&mut self, now_ns: u64) -> Option<Deadline> {
        self.deadlines.pop_due(now_ns)
    }

    /// The connection whose deadline has come; absent if an earlier one was armed for it since.
    pub(super) fn disarm(&mut self, deadline: Deadline) -> Option<Slot> {
        let connection = &mut self.connections[deadline.slot.0 as usize];
        if connection.armed_ns != deadline.at_ns {
            return None;
        }
        connection.armed_ns = u64::MAX;
        Some(deadline.slot)
    }

    /// Counts what came on the connection and belongs to no response.
    #[inline]
    pub(super) fn settle_overhead(&mut self, slot: Slot, now_ns: u64, protocol: &mut P) {
        let aside = protocol.take_aside(&mut self[slot].protocol);
        let recorder = &mut self.accounting.recorder;
        if !aside.controls.is_none() {
            recorder.tally(now_ns).controls.merge(&aside.controls);
        }
        if aside.overhead_bytes > 0 {
            recorder.tally(now_ns).overhead_bytes += aside.overhead_bytes;
            recorder.tally(now_ns).pushes += aside.pushes;
        }
    }

    /// What was sent on the connection before is taken, or it is no more.
    #[inline]
    pub(super) fn stop_blocking(&mut self, slot: Slot, now_ns: u64) {
        let since_ns = std::mem::replace(&mut self[slot].blocked_since_ns, u64::MAX);
        if since_ns < u64::MAX {
            self.accounting
                .recorder
                .add_time(since_ns, now_ns, |live| &mut live.blocked_ns);
        }
    }

    /// What is sent on the connection at `sent_ns` could have been since `due_ns`, where that is
    /// known: by the kernel's stamp alone.
    #[inline]
    pub(super) fn lag(&mut self, slot: Slot, sent_ns: u64, due_ns: u64) {
        let connection = &self[slot];
        if connection.is_stamp_known && connection.has_ended_one {
            let lag_ns = sent_ns.saturating_sub(due_ns);
            self.accounting.recorder.lag(sent_ns, lag_ns);
        }
    }
}

impl<P: ClientProtocol> Index<Slot> for Connections<P> {
    type Output = Connection<P>;

    #[inline]
    fn index(&self, slot: Slot) -> &Connection<P> {
        &self.connections[slot.0 as usize]
    }
}

impl<P: ClientProtocol> IndexMut<Slot> for Connections<P> {
    #[inline]
    fn index_mut(&mut self, slot: Slot) -> &mut Connection<P> {
        &mut self.connections[slot.0 as usize]
    }
}

#[cfg(test)]
mod tests {
    use crate::limits::Sources;
    use crate::protocol::Unread;

    use super::*;

    /// `slots` connections, of which set-up opens the first `held`, and what they are counted in.
    fn connections(slots: u32, held: u32) -> Connections<Unread> {
        let sources = Sources::default().turns(0);
        let accounting = Accounting::new(Recorder::new(0, held, slots));
        let mut connections = Connections::new(&Unread, accounting, slots, held, 1, sources, 10);
        connections.start_set_up(0, 0.0);
        connections
    }

    fn begin(connections: &mut Connections<Unread>, now_ns: u64) -> Slot {
        let NextAttempt::Now(slot) = connections.next_attempt(now_ns) else {
            panic!("an attempt is due");
        };
        connections.attempt(slot, now_ns, State::Connecting);
        slot
    }

    #[test]
    fn set_up_waits_for_what_it_opens_until_that_is_open_or_failed_often_enough() {
        let mut connections = connections(3, 2);
        let first = begin(&mut connections, 1);
        let second = begin(&mut connections, 1);
        assert_eq!((first, second, connections.attempts), (Slot(0), Slot(1), 2));
        assert_eq!(connections.next_attempt(1), NextAttempt::At(u64::MAX));
        assert!(!connections.opened(first, 5));
        assert_eq!((connections.progress_ns, connections.lacking), (5, 1));
        for _ in 0..SETUP_ATTEMPTS {
            assert!(connections.awaited > 0);
            let kind = FailureKind::ConnectRefused;
            connections.attempt_failed(second, 6, kind);
            connections.retry_later(second, 6, Mode::Setup);
            connections.attempt(second, 6, State::Connecting);
        }
        assert!(!connections.awaited > 0);
        assert_eq!(connections.lacking, 1);
        assert_eq!(
            [connections.use_slot(), connections.use_slot()],
            [Some(Slot(2)), None]
        );
    }

    #[test]
    fn pauses_double_and_one_connection_finds_out_when_the_server_is_back() {
        let mut connections = connections(2, 2);
        let probe = begin(&mut connections, 0);
        let other = begin(&mut connections, 0);
        let pause_ns = |connections: &mut Connections<Unread>, slot, now_ns| {
            let kind = FailureKind::ConnectRefused;
            connections.attempt_failed(slot, now_ns, kind);
            connections.retry_later(slot, now_ns, Mode::Load);
            let State::Down { retry_ns } = connections[slot].state else {
                panic!("it is down");
            };
            connections.attempt(slot, retry_ns, State::Connecting);
            retry_ns - now_ns
        };
        let after_ns = 4 * RETRY_NS_MAX;
        assert_eq!(pause_ns(&mut connections, probe, 0), RETRY_NS_MIN);
        let others = [0; 8].map(|_| pause_ns(&mut connections, other, 0) / RETRY_NS_MIN);
        assert_eq!(others, [1, 2, 4, 8, 16, 32, 64, 100]);
        // It has been so for 4 s.
        assert_eq!(
            pause_ns(&mut connections, probe, after_ns),
            after_ns / PROBE_PART
        );
        assert_eq!(connections.unavailable_since_ns, Some(0));
        connections[probe].depth = 1;
        assert!(connections.opened(probe, after_ns));
        assert_eq!(connections.unavailable_since_ns, None);
    }

    #[test]
    fn a_connection_may_be_opened_in_vain_once() {
        let mut connections = connections(1, 1);
        let slot = begin(&mut connections, 0);
        connections.opened(slot, 0);
        assert_eq!(
            [true, true, false].map(|is| connections.lost(slot, is)),
            [false, true, false]
        );
        assert!(!connections.lost(slot, true));
    }

    #[test]
    fn another_round_keeps_what_is_at_rest_and_to_be_held() {
        let mut old = connections(4, 4);
        for _ in 0..4 {
            let slot = begin(&mut old, 0);
            old[slot].depth = 1;
            old.opened(slot, 0);
        }
        old.stay_down(Slot(1));
        let mut new = connections(4, 3);
        assert_eq!(new.keep(old, &[Slot(2)], 9), [Slot(2), Slot(3)]);
        assert_eq!((new[Slot(0)].state, new.lacking), (State::Open, 2));
        assert!(new.awaited > 0 && new[Slot(2)].is_down_for_good());
    }

    #[test]
    fn first_attempts_come_before_retries_and_one_bound_holds_for_both() {
        const MOST: u32 = 50;
        let mut dialling = Dialling::new(200, 1_000, 0.0, MOST);
        assert_eq!(dialling.next(999), None);
        dialling.push(Slot(7));
        dialling.push(Slot(8));
        for slot in 0..MOST {
            assert_eq!(dialling.next(1_000), Some(Slot(slot)));
            dialling.in_flight += 1;
        }
        assert_eq!(dialling.next(1_000), None);
        dialling.in_flight -= 1;
        assert_eq!(dialling.next(1_000), Some(Slot(MOST)));
        dialling.next = 200;
        assert_eq!(dialling.due_ns(), u64::MAX);
        assert_eq!(dialling.next(1_000), Some(Slot(7)));
        dialling.in_flight = MOST;
        assert_eq!(dialling.next(1_000), None);
    }

    #[test]
    fn while_a_planned_attempt_is_still_to_come_a_retry_has_its_turn() {
        let mut dialling = Dialling::new(2, 0, 100.0, 1);
        dialling.push(Slot(9));
        assert_eq!(dialling.next(0), Some(Slot(0)));
        assert_eq!(dialling.due_ns(), 100);
        assert_eq!(dialling.next(99), Some(Slot(9)));
        assert_eq!(dialling.next(99), None);
        assert_eq!(dialling.next(100), Some(Slot(1)));
    }
}
