//! The worker loop of the closed loop over HTTP/1.1: one thread's connections, from the first
//! connection attempt to the end of drain.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use brunt_measure::{FailureKind, KernelSample, Recorder};
use brunt_proto::http1::{Limits, Reply};

use crate::backend::{Backend, Event, Outgoing, PayloadId, Peer, Slot};
use crate::budget::Budget;
use crate::connection::{Connection, State};
use crate::control::{Control, Progress};
use crate::failure;
use crate::gate::Start;
use crate::request::EncodedRequest;
use crate::timers::Timers;

/// Longest sleep: a worker notices an interrupt within this time.
pub(crate) const NOTICE_NS: u64 = 50_000_000;
/// Connection attempts under way at once during set-up, per worker: more would only overflow the
/// server's accept queue.
const OPENING_MAX: u32 = 128;
/// Failed attempts after which set-up no longer waits for a connection.
const SETUP_ATTEMPTS: u32 = 5;
/// Pause after a failed attempt; it doubles with each further one up to `RETRY_NS_MAX`.
const RETRY_NS_MIN: u64 = 10_000_000;
const RETRY_NS_MAX: u64 = 1_000_000_000;
/// The kernel's account is read for one connection in this many, and this many in all.
const SAMPLE_EVERY: usize = 64;
const SAMPLE_MAX: u32 = 16;

/// What one worker is to do.
#[derive(Clone, Debug)]
pub(crate) struct Task {
    pub(crate) worker: u32,
    pub(crate) peer: Peer,
    /// Local addresses, used in turn; empty lets the kernel choose.
    pub(crate) sources: Vec<SocketAddr>,
    pub(crate) connections: u32,
    pub(crate) pipeline: u32,
    /// Requests after which a connection is replaced.
    pub(crate) requests_per_connection: u64,
    pub(crate) request: Arc<EncodedRequest>,
    pub(crate) timeout_ns: u64,
    pub(crate) connect_timeout_ns: u64,
    pub(crate) drain_limit_ns: u64,
    /// The requests of a run by count.
    pub(crate) budget: Option<Arc<Budget>>,
    pub(crate) control: Arc<Control>,
}

/// What a worker leaves behind.
pub(crate) struct Finished {
    pub(crate) recorder: Recorder,
    /// When the last request was answered or failed, 0 for none.
    pub(crate) last_done_ns: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    /// Connections are opened; nothing is sent.
    Setup,
    /// Requests are sent.
    Load,
    /// What is under way is waited for; nothing is sent, nothing is opened.
    Drain,
}

#[derive(Clone, Copy, Debug)]
struct Deadline {
    slot: Slot,
    at_ns: u64,
}

/// One worker: the owner of everything that its thread touches.
pub(crate) struct Worker<B> {
    backend: B,
    task: Task,
    recorder: Recorder,
    limits: Limits,
    payload: PayloadId,
    connections: Vec<Connection>,
    /// `pipeline` places per connection: when its requests under way were sent.
    sent_ns: Vec<u64>,
    deadlines: Timers<Deadline>,
    mode: Mode,
    /// Attempts under way.
    opening: u32,
    unsettled: u32,
    under_way: u64,
    /// Requests drawn from the budget and not yet sent.
    quota: u64,
    window_end_ns: u64,
    measure_from_ns: u64,
    last_done_ns: u64,
    /// Since when no connection is open.
    dark_since_ns: Option<u64>,
    progress: Progress,
}

impl<B: Backend> Worker<B> {
    pub(crate) fn new(mut backend: B, task: Task) -> Self {
        let payload = backend.add_payload(task.request.payload(task.pipeline));
        let mut recorder = Recorder::new(task.worker, task.connections);
        recorder.record().edges.started.set(backend.now_ns());
        let connections = (0..task.connections).map(|_| Connection::new()).collect();
        let sent_ns = vec![0; task.connections as usize * task.pipeline as usize];
        Self {
            recorder,
            limits: Limits::default(),
            payload,
            connections,
            sent_ns,
            deadlines: Timers::default(),
            mode: Mode::Setup,
            opening: 0,
            unsettled: task.connections,
            under_way: 0,
            quota: 0,
            window_end_ns: u64::MAX,
            measure_from_ns: u64::MAX,
            last_done_ns: 0,
            dark_since_ns: None,
            progress: Progress::default(),
            backend,
            task,
        }
    }

    /// Opens the connections. Returns when each is open or has failed often enough.
    pub(crate) fn set_up(&mut self) -> io::Result<()> {
        let mut next = 0;
        while self.unsettled > 0 && !self.task.control.is_aborted() {
            while next < self.task.connections && self.opening < OPENING_MAX {
                self.open(Slot(next), self.backend.now_ns());
                next += 1;
            }
            self.turn(u64::MAX)?;
        }
        self.recorder
            .record()
            .edges
            .ready
            .set(self.backend.now_ns());
        Ok(())
    }

    /// Sends, measures and drains, as the common start says.
    pub(crate) fn run(mut self, start: Start) -> io::Result<Finished> {
        let window = start.window;
        self.recorder.set_window(window);
        (self.measure_from_ns, self.window_end_ns) = (window.start_ns, window.end_ns);
        let lived_from_ns = self.backend.now_ns();
        while self.backend.now_ns() < start.load_ns {
            self.turn(start.load_ns)?;
        }
        self.mode = Mode::Load;
        for slot in (0..self.task.connections).map(Slot) {
            if self.connections[slot.0 as usize].state == State::Open {
                let now_ns = self.backend.now_ns();
                self.feed(slot, now_ns);
            }
        }
        while self.goes_on() {
            self.turn(self.window_end_ns)?;
        }
        let left_ns = self.backend.now_ns();
        self.drain()?;
        self.recorder
            .record()
            .edges
            .window_start
            .set(window.start_ns.max(lived_from_ns));
        self.recorder
            .record()
            .edges
            .window_end
            .set(self.window_end_ns.min(left_ns));
        self.recorder.record().unsent = self.quota;
        Ok(Finished {
            recorder: self.recorder,
            last_done_ns: self.last_done_ns,
        })
    }

    /// Whether the window is still open for this worker, and there is something left to do.
    fn goes_on(&mut self) -> bool {
        if self.task.control.is_aborted() {
            return false;
        }
        let now_ns = self.backend.now_ns();
        let end_ns = self.task.control.end_ns();
        if end_ns < self.window_end_ns {
            self.window_end_ns = end_ns;
            self.recorder.end_window_at(end_ns);
        }
        if now_ns >= self.window_end_ns {
            return false;
        }
        match &self.task.budget {
            Some(budget) if now_ns >= self.measure_from_ns => {
                let exhausted = self.quota == 0 && budget.left() == 0;
                let dark = self
                    .dark_since_ns
                    .is_some_and(|since_ns| now_ns - since_ns > self.task.timeout_ns);
                !(exhausted && self.under_way == 0 || dark)
            }
            _ => true,
        }
    }

    fn drain(&mut self) -> io::Result<()> {
        self.mode = Mode::Drain;
        let from_ns = self.window_end_ns.min(self.backend.now_ns());
        let limit_ns = from_ns.saturating_add(self.task.drain_limit_ns);
        while self.under_way > 0
            && self.backend.now_ns() < limit_ns
            && !self.task.control.is_aborted()
        {
            self.turn(limit_ns)?;
        }
        let now_ns = self.backend.now_ns();
        self.take_kernel_sample();
        for index in 0..self.connections.len() {
            let mut discarded = self.connections[index].parser.pending_bytes();
            while let Some(sent_ns) = self.pop_sent(index) {
                self.recorder
                    .censored(sent_ns, now_ns, std::mem::take(&mut discarded));
            }
        }
        self.recorder.record().edges.drained.set(now_ns);
        Ok(())
    }

    /// One turn of the loop: hand over, wait, take what came, see to what is due.
    fn turn(&mut self, until_ns: u64) -> io::Result<()> {
        let notice_ns = self.backend.now_ns() + NOTICE_NS;
        let due_ns = self.deadlines.next_ns().unwrap_or(u64::MAX);
        self.backend
            .wait(Some(until_ns.min(notice_ns).min(due_ns)))?;
        while let Some(event) = self.backend.next_event() {
            self.handle(event);
        }
        let now_ns = self.backend.now_ns();
        while let Some(deadline) = self.deadlines.pop_due(now_ns) {
            self.fall_due(deadline, now_ns);
        }
        self.progress.live = u64::from(self.recorder.live());
        self.task.control.show(self.task.worker, self.progress);
        Ok(())
    }

    fn handle(&mut self, event: Event) {
        let now_ns = self.backend.now_ns();
        match event {
            Event::Received(slot) => self.receive(slot, now_ns),
            Event::Sent(slot) => {
                self.connections[slot.0 as usize].sending = false;
                self.feed(slot, now_ns);
            }
            Event::Connected(slot) => self.connected(slot, now_ns),
            Event::ConnectFailed(slot, errno) => {
                self.backend.close(slot);
                self.attempt_failed(slot, now_ns, failure::of_connect(errno));
            }
            Event::SendFailed(slot, errno) | Event::ReceiveFailed(slot, errno) => {
                self.broken(
                    slot,
                    now_ns,
                    failure::of_socket(errno),
                    FailureKind::IdleReset,
                );
            }
            Event::Ended(slot) => self.ended(slot, now_ns),
            // A client offers no slots to accept into.
            Event::Accepted(_) | Event::AcceptFailed(..) => {}
        }
    }

    /// Starts a connection attempt.
    fn open(&mut self, slot: Slot, now_ns: u64) {
        let sources = &self.task.sources;
        let global = slot.0 as usize + self.task.worker as usize;
        let source = (!sources.is_empty()).then(|| sources[global % sources.len()]);
        self.opening += 1;
        let connection = &mut self.connections[slot.0 as usize];
        connection.state = State::Connecting { since_ns: now_ns };
        match self.backend.open(slot, &self.task.peer, source) {
            Ok(()) => self.arm(slot, now_ns + self.task.connect_timeout_ns),
            Err(error) => {
                let kind = error
                    .raw_os_error()
                    .map_or(FailureKind::ConnectNoDescriptor, failure::of_connect);
                self.attempt_failed(slot, now_ns, kind);
            }
        }
    }

    fn connected(&mut self, slot: Slot, now_ns: u64) {
        let connection = &mut self.connections[slot.0 as usize];
        let State::Connecting { since_ns } = connection.state else {
            return;
        };
        connection.state = State::Open;
        connection.attempts = 0;
        connection.parser.reset();
        connection.requests_left = self.task.requests_per_connection;
        connection.received_bytes = 0;
        connection.sending = false;
        self.opening -= 1;
        self.dark_since_ns = None;
        self.recorder.connected(now_ns, now_ns - since_ns);
        self.settle(slot);
        self.feed(slot, now_ns);
    }

    /// An attempt failed, and its slot is free again.
    fn attempt_failed(&mut self, slot: Slot, now_ns: u64, kind: FailureKind) {
        self.opening -= 1;
        self.progress.failures += 1;
        self.recorder.failed(now_ns, kind, 0);
        let connection = &mut self.connections[slot.0 as usize];
        let pause_ns = (RETRY_NS_MIN << connection.attempts.min(16)).min(RETRY_NS_MAX);
        connection.attempts += 1;
        connection.state = State::Down {
            retry_ns: now_ns + pause_ns,
        };
        if connection.attempts >= SETUP_ATTEMPTS {
            self.settle(slot);
        }
        if self.recorder.live() == 0 {
            self.dark_since_ns.get_or_insert(now_ns);
        }
        self.arm(slot, now_ns + pause_ns);
    }

    fn settle(&mut self, slot: Slot) {
        if !std::mem::replace(&mut self.connections[slot.0 as usize].settled, true) {
            self.unsettled -= 1;
        }
    }

    /// Sends as many requests as the connection may have under way.
    fn feed(&mut self, slot: Slot, now_ns: u64) {
        if self.mode != Mode::Load || now_ns >= self.window_end_ns {
            return;
        }
        let index = slot.0 as usize;
        let connection = &mut self.connections[index];
        if connection.sending || connection.state != State::Open {
            return;
        }
        let room = u64::from(self.task.pipeline - connection.under_way);
        let mut count = room.min(connection.requests_left);
        if count == 0 {
            return;
        }
        if let Some(budget) = &self.task.budget
            && now_ns >= self.measure_from_ns
        {
            while self.quota < count {
                match budget.draw() {
                    0 => break,
                    drawn => self.quota += drawn,
                }
            }
            count = count.min(self.quota);
            self.quota -= count;
            if count == 0 {
                return;
            }
        }
        let count = count as u32;
        connection.requests_left -= u64::from(count);
        let closing = connection.requests_left == 0;
        let (start, end) = self.task.request.range(self.task.pipeline, count, closing);
        connection.sending = true;
        let base = index * self.task.pipeline as usize;
        for place in connection.under_way..connection.under_way + count {
            let place = (connection.oldest + place) % self.task.pipeline;
            self.sent_ns[base + place as usize] = now_ns;
        }
        let was_idle = connection.under_way == 0;
        connection.under_way += count;
        self.under_way += u64::from(count);
        self.recorder.sent(now_ns, count, u64::from(end - start));
        if was_idle {
            self.arm(slot, now_ns + self.task.timeout_ns);
        }
        self.backend.send(
            slot,
            Outgoing::Shared {
                payload: self.payload,
                start,
                end,
            },
        );
    }

    fn receive(&mut self, slot: Slot, now_ns: u64) {
        let index = slot.0 as usize;
        let total = self.backend.received().len();
        self.recorder.received(now_ns, total as u64);
        self.connections[index].received_bytes += total as u64;
        let mut taken = 0;
        while taken < total {
            let connection = &mut self.connections[index];
            if connection.under_way == 0 {
                let rest = (total - taken) as u64;
                self.progress.failures += 1;
                self.recorder
                    .failed(now_ns, FailureKind::UnexpectedBytes, rest);
                self.replace(slot, now_ns);
                return;
            }
            let bytes = &self.backend.received()[taken..];
            match connection
                .parser
                .receive(bytes, &self.limits, self.task.request.is_head())
            {
                Ok(progress) => {
                    taken += progress.consumed;
                    let Some(reply) = progress.reply else {
                        continue;
                    };
                    self.replied(index, now_ns, &reply);
                    if !reply.keep_alive {
                        self.closed_by_reply(slot, now_ns, (total - taken) as u64);
                        return;
                    }
                }
                Err(error) => {
                    self.fail_all(index, now_ns, failure::of_reply(error));
                    self.replace(slot, now_ns);
                    return;
                }
            }
        }
        let connection = &self.connections[index];
        if connection.under_way == 0 && connection.requests_left == 0 {
            // The server was asked to close and did not say that it will.
            self.replace(slot, now_ns);
        } else {
            self.feed(slot, now_ns);
        }
    }

    /// The oldest request is answered.
    fn replied(&mut self, index: usize, now_ns: u64, reply: &Reply) {
        let Some(sent_ns) = self.pop_sent(index) else {
            return;
        };
        if now_ns - sent_ns > self.task.timeout_ns {
            let bytes = reply.head_bytes + reply.body_bytes;
            self.progress.failures += 1;
            self.recorder
                .request_failed(sent_ns, now_ns, FailureKind::TimedOut, bytes);
        } else {
            self.progress.replies += 1;
            self.recorder.reply(
                sent_ns,
                now_ns,
                reply.status,
                reply.interim,
                reply.head_bytes,
                reply.body_bytes,
            );
        }
        self.last_done_ns = now_ns;
    }

    /// The server said in a reply that it closes; `rest` bytes came after that reply.
    fn closed_by_reply(&mut self, slot: Slot, now_ns: u64, rest: u64) {
        if rest > 0 {
            self.progress.failures += 1;
            self.recorder
                .failed(now_ns, FailureKind::UnexpectedBytes, rest);
        }
        self.connections[slot.0 as usize].parser.reset();
        self.fail_all(slot.0 as usize, now_ns, FailureKind::Unanswered);
        self.replace(slot, now_ns);
    }

    /// The server closed its side.
    fn ended(&mut self, slot: Slot, now_ns: u64) {
        let index = slot.0 as usize;
        let connection = &mut self.connections[index];
        if connection.under_way == 0 {
            self.recorder.closed_idle(now_ns);
            self.replace(slot, now_ns);
            return;
        }
        match connection.parser.end() {
            Ok(Some(reply)) => {
                self.replied(index, now_ns, &reply);
                self.closed_by_reply(slot, now_ns, 0);
            }
            Ok(None) => {
                self.fail_all(index, now_ns, FailureKind::ClosedBeforeReply);
                self.replace(slot, now_ns);
            }
            Err(error) => {
                self.fail_all(index, now_ns, failure::of_reply(error));
                self.replace(slot, now_ns);
            }
        }
    }

    /// The connection broke: `kind` if a request was under way, else `idle`.
    fn broken(&mut self, slot: Slot, now_ns: u64, kind: FailureKind, idle: FailureKind) {
        let index = slot.0 as usize;
        if self.connections[index].under_way == 0 {
            self.progress.failures += 1;
            self.recorder.failed(now_ns, idle, 0);
        } else {
            self.fail_all(index, now_ns, kind);
        }
        self.replace(slot, now_ns);
    }

    /// Fails every request under way: the oldest with `kind`, the others as unanswered. The bytes
    /// of the incomplete reply are lost.
    fn fail_all(&mut self, index: usize, now_ns: u64, kind: FailureKind) {
        let mut discarded = self.connections[index].parser.pending_bytes();
        let mut kind = kind;
        while let Some(sent_ns) = self.pop_sent(index) {
            self.progress.failures += 1;
            self.recorder
                .request_failed(sent_ns, now_ns, kind, std::mem::take(&mut discarded));
            self.last_done_ns = now_ns;
            kind = FailureKind::Unanswered;
        }
    }

    fn pop_sent(&mut self, index: usize) -> Option<u64> {
        let connection = &mut self.connections[index];
        if connection.under_way == 0 {
            return None;
        }
        let place = index * self.task.pipeline as usize + connection.oldest as usize;
        connection.oldest = (connection.oldest + 1) % self.task.pipeline;
        connection.under_way -= 1;
        self.under_way -= 1;
        Some(self.sent_ns[place])
    }

    /// Ends an open connection and, unless the run is over, opens the next one in its place.
    fn replace(&mut self, slot: Slot, now_ns: u64) {
        self.backend.close(slot);
        self.recorder.disconnected(now_ns);
        let connection = &mut self.connections[slot.0 as usize];
        connection.parser.reset();
        connection.state = State::Down { retry_ns: u64::MAX };
        if self.mode != Mode::Drain {
            self.open(slot, now_ns);
        }
    }

    /// Makes sure that the connection is looked at when its deadline comes. Later deadlines than
    /// the one that is armed cost nothing: it is armed anew when it comes up.
    fn arm(&mut self, slot: Slot, at_ns: u64) {
        let connection = &mut self.connections[slot.0 as usize];
        if at_ns < connection.armed_ns {
            connection.armed_ns = at_ns;
            self.deadlines.push(at_ns, Deadline { slot, at_ns });
        }
    }

    fn fall_due(&mut self, deadline: Deadline, now_ns: u64) {
        let slot = deadline.slot;
        let index = slot.0 as usize;
        let connection = &mut self.connections[index];
        if connection.armed_ns != deadline.at_ns {
            return;
        }
        connection.armed_ns = u64::MAX;
        let due_ns = match connection.state {
            State::Down { retry_ns } => retry_ns,
            State::Connecting { since_ns } => since_ns + self.task.connect_timeout_ns,
            State::Open if connection.under_way > 0 => {
                let place = index * self.task.pipeline as usize + connection.oldest as usize;
                self.sent_ns[place] + self.task.timeout_ns
            }
            State::Open => u64::MAX,
        };
        if due_ns == u64::MAX {
            return;
        }
        if due_ns > now_ns {
            self.arm(slot, due_ns);
            return;
        }
        match connection.state {
            State::Down { .. } if self.mode == Mode::Drain => {}
            State::Down { .. } => self.open(slot, now_ns),
            State::Connecting { .. } => {
                self.backend.close(slot);
                self.attempt_failed(slot, now_ns, FailureKind::ConnectTimedOut);
            }
            State::Open => {
                self.fail_all(index, now_ns, FailureKind::TimedOut);
                self.replace(slot, now_ns);
            }
        }
    }

    fn take_kernel_sample(&mut self) {
        let mut sample = KernelSample::default();
        for (index, connection) in self.connections.iter().enumerate().step_by(SAMPLE_EVERY) {
            // Only connections at rest: bytes of a reply under way may be anywhere between the
            // kernel and here.
            let at_rest = connection.state == State::Open && connection.under_way == 0;
            if !at_rest || sample.connections == SAMPLE_MAX {
                continue;
            }
            let Some(info) = self.backend.tcp_info(Slot(index as u32)) else {
                continue;
            };
            sample.merge(&KernelSample {
                connections: 1,
                kernel_bytes_received: info.bytes_received,
                own_bytes_received: connection.received_bytes + info.bytes_unread,
                min_rtt_ns: info.min_rtt_ns,
            });
        }
        self.recorder.record().kernel = sample;
    }
}
