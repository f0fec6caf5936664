//! What is shown of a run while it lasts, and what the world outside may do to it: its phase,
//! snapshots of what its workers counted, and the handle to interrupt it by.
//!
//! A worker never waits for an observer. It sends what it counted since its last snapshot, every
//! [`INTERVAL_NS`] or so, if there is room for it. What it did not send it gives at the end of the
//! round. So what was shown adds up to what the worker recorded.

use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

use brunt_record::RequestLog;

/// From one snapshot of a worker to the next, at least.
pub(crate) const INTERVAL_NS: u64 = 100_000_000;
/// Snapshots of each worker that may wait for an observer: those of some seconds.
const WAITING_MAX: usize = 64;

/// The phases of a round.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Phase {
    /// The server is looked for, connections are opened.
    SetUp,
    /// All is ready, and the start that several agents agree on is waited for: until it comes.
    Ready,
    /// Load that is not measured yet.
    WarmUp,
    /// The window.
    Measure,
    /// What was sent is waited for, and what is read last is read.
    Drain,
}

impl Phase {
    /// Its name as printed.
    pub fn name(self) -> &'static str {
        match self {
            Self::SetUp => "set-up",
            Self::Ready => "ready",
            Self::WarmUp => "warm-up",
            Self::Measure => "measure",
            Self::Drain => "drain",
        }
    }
}

/// How far a round has come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// Responses with a status below 400 so far, all phases.
    pub successes: u64,
    /// Responses with a status of 400 and more so far, all phases.
    pub errors: u64,
    /// Failures of any scope so far, all phases, and arrivals that were never sent.
    pub failures: u64,
    /// Bytes received so far, all phases.
    pub bytes_received: u64,
    /// Bytes handed to the kernel so far, all phases; without what TLS adds.
    pub bytes_sent: u64,
    /// Open connections now.
    pub live: u64,
    /// Planned arrivals that wait for a connection now.
    pub waiting: u64,
}

impl Progress {
    /// Both together: of two workers, or of two agents.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self {
            successes: self.successes + other.successes,
            errors: self.errors + other.errors,
            failures: self.failures + other.failures,
            bytes_received: self.bytes_received + other.bytes_received,
            bytes_sent: self.bytes_sent + other.bytes_sent,
            live: self.live + other.live,
            waiting: self.waiting + other.waiting,
        }
    }

    /// What was counted since `before`, an earlier one of the same: with open connections and
    /// waiting arrivals as they are now.
    #[must_use]
    pub fn since(self, before: Self) -> Self {
        Self {
            successes: self.successes - before.successes,
            errors: self.errors - before.errors,
            failures: self.failures - before.failures,
            bytes_received: self.bytes_received - before.bytes_received,
            bytes_sent: self.bytes_sent - before.bytes_sent,
            ..self
        }
    }
}

/// What one worker counted since its last snapshot, and how it stands.
#[derive(Clone, Debug, PartialEq)]
pub struct Snapshot {
    /// Its number.
    pub worker: u32,
    /// When it was taken.
    pub to_ns: u64,
    /// Counts since then, with open connections and waiting arrivals as they are now.
    pub counts: Progress,
}

/// Looks on while a round lasts. Called by the thread that runs the round, every 50 ms or so.
pub trait RunObserver {
    /// The round is in `phase`, and has come so far.
    fn progress(&mut self, _phase: Phase, _progress: &Progress) {}

    /// A worker's counts. All of them together are what it recorded in the round.
    fn snapshot(&mut self, _snapshot: &Snapshot) {}

    /// The log of the round, at its end, where the plan has one kept.
    fn request_log(&mut self, _log: RequestLog) {}
}

impl<F: FnMut(Phase, &Progress)> RunObserver for F {
    fn progress(&mut self, phase: Phase, progress: &Progress) {
        self(phase, progress);
    }
}

/// The snapshots of all workers in a round.
#[derive(Debug)]
pub(crate) struct Snapshots {
    sender: SyncSender<Snapshot>,
    receiver: Receiver<Snapshot>,
    /// The number of the first worker.
    first: u32,
    /// By worker, from the first on.
    progress: Vec<Progress>,
}

impl Snapshots {
    /// Those of `workers`, by their numbers.
    pub(crate) fn new(workers: Range<u32>) -> Self {
        let (sender, receiver) = sync_channel(WAITING_MAX * workers.len());
        Self {
            sender,
            receiver,
            first: workers.start,
            progress: vec![Progress::default(); workers.len()],
        }
    }

    /// The side of a worker.
    pub(crate) fn shown(&self, worker: u32) -> Shown {
        Shown {
            sender: self.sender.clone(),
            worker,
            due_ns: 0,
            counts: Progress::default(),
        }
    }

    /// Shows what has come since.
    pub(crate) fn deliver(&mut self, observer: &mut dyn RunObserver) {
        while let Ok(snapshot) = self.receiver.try_recv() {
            self.add(&snapshot, observer);
        }
    }

    /// Shows what a worker counted since its snapshot before, which was shown.
    pub(crate) fn add(&mut self, snapshot: &Snapshot, observer: &mut dyn RunObserver) {
        let progress = &mut self.progress[(snapshot.worker - self.first) as usize];
        // What there is now takes the place of what there was.
        (progress.live, progress.waiting) = (0, 0);
        *progress = progress.plus(snapshot.counts);
        observer.snapshot(snapshot);
    }

    /// How far all workers have come together.
    pub(crate) fn progress(&self) -> Progress {
        let workers = self.progress.iter().copied();
        workers.fold(Progress::default(), Progress::plus)
    }
}

/// A worker's side: what it has shown so far, and when it may show more.
#[derive(Debug)]
pub(crate) struct Shown {
    sender: SyncSender<Snapshot>,
    worker: u32,
    /// When the next snapshot is due; [`u64::MAX`] when the round is over.
    pub(crate) due_ns: u64,
    counts: Progress,
}

impl Shown {
    /// Hands over what was counted since, if there is room for it: else it comes with the next.
    pub(crate) fn show(&mut self, now_ns: u64, counts: Progress) {
        self.due_ns = now_ns.saturating_add(INTERVAL_NS);
        if self.sender.try_send(self.since(now_ns, counts)).is_ok() {
            self.counts = counts;
        }
    }

    /// What was counted since.
    pub(crate) fn since(&self, now_ns: u64, counts: Progress) -> Snapshot {
        Snapshot {
            worker: self.worker,
            to_ns: now_ns,
            counts: counts.since(self.counts),
        }
    }
}

/// Longest sleep of a worker: it notices an interrupt within this time.
pub(crate) const NOTICE_NS: u64 = 50_000_000;
/// From an interrupt to the end of the window: longer than any worker sleeps.
const INTERRUPT_MARGIN_NS: u64 = NOTICE_NS + 10_000_000;
/// From an interrupt to the end of drain, at most.
const INTERRUPTED_DRAIN_NS: u64 = 1_000_000_000;

/// The handle to interrupt a run by. Workers look at it once a turn.
#[derive(Debug, Default)]
pub struct Control {
    interrupted: AtomicBool,
    /// Nothing is to be waited for any more.
    hurried: AtomicBool,
    aborted: AtomicBool,
    /// When the interrupt took effect, `u64::MAX` for not yet: now when it is set, or in simulation
    /// an instant that no worker has reached.
    pub(crate) interrupted_ns: Later,
    /// The end of the window that several agents agreed on before its time, `u64::MAX` for none.
    pub(crate) agreed_end_ns: Later,
    /// Whether a round that is ready waits for its start.
    pub(crate) holds_start: AtomicBool,
    /// When the load of the round that is ready begins, `u64::MAX` while that is not known.
    pub(crate) start_ns: Later,
    /// Whether a round by count that is done waits for its end.
    pub(crate) holds_end: AtomicBool,
    /// How long a round by count took that waits for its end, `u64::MAX` for none.
    pub(crate) done_window_ns: Later,
}

/// An instant or a length in nanoseconds, which is not known at first.
#[derive(Debug)]
pub(crate) struct Later(AtomicU64);

impl Default for Later {
    fn default() -> Self {
        Self(AtomicU64::new(u64::MAX))
    }
}

impl Later {
    /// [`u64::MAX`] while it is not known.
    fn get(&self) -> u64 {
        self.0.load(Relaxed)
    }

    pub(crate) fn known(&self) -> Option<u64> {
        Some(self.get()).filter(|&ns| ns < u64::MAX)
    }

    /// What is known, which is not known any more then.
    pub(crate) fn take(&self) -> Option<u64> {
        Some(self.0.swap(u64::MAX, Relaxed)).filter(|&ns| ns < u64::MAX)
    }

    pub(crate) fn set(&self, ns: u64) {
        self.0.store(ns, Relaxed);
    }

    /// The earliest counts.
    pub(crate) fn set_min(&self, ns: u64) {
        self.0.fetch_min(ns, Relaxed);
    }
}

impl Control {
    /// Asks for the end of the measure phase, and of drain a second later at most. What was
    /// measured is the result. Only sets a flag: may be called by a signal handler.
    pub fn interrupt(&self) {
        self.interrupted.store(true, Relaxed);
    }

    /// Asks for the end of the measure phase without any drain. What was measured is the result.
    /// Only sets flags: may be called by a signal handler.
    pub fn hurry(&self) {
        self.hurried.store(true, Relaxed);
        self.interrupt();
    }

    /// The window ends at this instant of the run's clock, if it would go on: agents that agree on
    /// it have windows of one length. It is to be known 60 ms before. What was measured is the
    /// result; replies are waited for as after [`Control::interrupt`]. Of a round by count that is
    /// done ([`Control::done_window_ns`]) it is the end of the window that all agents have.
    pub fn end_at(&self, end_ns: u64) {
        self.agreed_end_ns.set_min(end_ns);
    }

    /// Whether the run was ended before its time, in whatever way.
    pub(crate) fn is_cut_short(&self) -> bool {
        self.is_interrupted() || self.agreed_end_ns.known().is_some()
    }

    /// Whether the end was asked for.
    pub fn is_interrupted(&self) -> bool {
        self.interrupted.load(Relaxed)
    }

    /// From now on a round that is ready waits until its start is known ([`Control::start_at`]).
    pub fn hold_start(&self) {
        self.holds_start.store(true, Relaxed);
    }

    /// The load of the next round whose start is held begins at this instant of the run's clock.
    pub fn start_at(&self, load_ns: u64) {
        self.start_ns.set(load_ns);
    }

    /// From now on a round by count that is done waits until its end is known
    /// ([`Control::end_at`]): that of the agent that takes longest.
    pub fn hold_end(&self) {
        self.holds_end.store(true, Relaxed);
    }

    /// How long the window lasted until all that this agent has of a count was done, nanoseconds;
    /// absent unless it waits for its end.
    pub fn done_window_ns(&self) -> Option<u64> {
        self.done_window_ns.known()
    }

    /// Whether an interrupt has taken effect by `now_ns`.
    pub(crate) fn is_interrupted_by(&self, now_ns: u64) -> bool {
        now_ns >= self.interrupted_ns.get()
    }

    /// The end of the window that an interrupt or an agreement sets, `u64::MAX` for none. All
    /// workers know it before it comes.
    pub(crate) fn end_ns(&self) -> u64 {
        let interrupted_ns = self.interrupted_ns.get();
        let end_ns = interrupted_ns.saturating_add(INTERRUPT_MARGIN_NS);
        end_ns.min(self.agreed_end_ns.get())
    }

    /// The end of drain that an interrupt sets, `u64::MAX` for none.
    pub(crate) fn drain_end_ns(&self) -> u64 {
        let end_ns = self.interrupted_ns.get().min(self.agreed_end_ns.get());
        end_ns.saturating_add(INTERRUPTED_DRAIN_NS)
    }

    /// Whether there will be no result.
    pub(crate) fn is_aborted(&self) -> bool {
        self.aborted.load(Relaxed)
    }

    /// Whether workers leave at once.
    pub(crate) fn leaves_at_once(&self) -> bool {
        self.is_aborted() || self.hurried.load(Relaxed)
    }

    /// Makes the workers leave at once; there will be no result.
    pub fn abort(&self) {
        self.aborted.store(true, Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_shown_before_and_since_is_what_there_is() {
        let before = Progress {
            successes: 1,
            errors: 2,
            failures: 3,
            bytes_received: 6,
            bytes_sent: 7,
            live: 8,
            waiting: 9,
        };
        let now = Progress {
            live: 2,
            waiting: 0,
            ..before.plus(before)
        };
        let since = now.since(before);
        assert_eq!((since.live, since.waiting), (2, 0));
        let others = Progress {
            live: 8,
            waiting: 9,
            ..since
        };
        assert_eq!(others, before);
        let both = before.plus(since);
        assert_eq!((both.live, both.waiting), (10, 9));
        assert_eq!((both.failures, both.bytes_sent), (6, 14));
    }

    /// Adds up the successes that it is shown.
    struct Sum(u64);

    impl RunObserver for Sum {
        fn snapshot(&mut self, snapshot: &Snapshot) {
            self.0 += snapshot.counts.successes;
        }
    }

    #[test]
    fn what_finds_no_room_comes_with_a_later_snapshot() {
        let mut snapshots = Snapshots::new(3..4);
        let (mut shown, mut sum) = (snapshots.shown(3), Sum(0));
        let all = 2 * WAITING_MAX as u64;
        let counted = |successes| Progress {
            successes,
            ..Progress::default()
        };
        for at_ns in 1..=all {
            shown.show(at_ns, counted(at_ns));
        }
        snapshots.deliver(&mut sum);
        assert_eq!(sum.0, WAITING_MAX as u64);
        let last = shown.since(all + 1, counted(all + 1));
        snapshots.add(&last, &mut sum);
        assert_eq!((sum.0, snapshots.progress().successes), (all + 1, all + 1));
    }

    #[test]
    fn an_agreed_end_is_that_of_the_window_and_a_drain_follows() {
        let control = Control::default();
        assert_eq!(
            (control.end_ns(), control.drain_end_ns()),
            (u64::MAX, u64::MAX)
        );
        assert!(!control.is_cut_short());
        for (agreed_ns, end_ns) in [(5_000, 5_000), (9_000, 5_000), (4_000, 4_000)] {
            control.end_at(agreed_ns);
            assert_eq!(control.end_ns(), end_ns);
            assert_eq!(control.drain_end_ns(), end_ns + INTERRUPTED_DRAIN_NS);
        }
        assert!(control.is_cut_short() && !control.is_interrupted());
        // An interrupt that comes too late for it changes nothing.
        control.interrupted_ns.set_min(4_000);
        assert_eq!(control.end_ns(), 4_000);
    }
}
