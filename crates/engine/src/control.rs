//! What the world outside may do to a run and see of it while it lasts.

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

use crate::worker::NOTICE_NS;

/// From an interrupt to the end of the window: longer than any worker sleeps.
const INTERRUPT_MARGIN_NS: u64 = NOTICE_NS + 10_000_000;
/// From an interrupt to the end of drain, at most.
const INTERRUPTED_DRAIN_NS: u64 = 1_000_000_000;

/// The handle on a run: interrupt it, watch it. Workers look at it once a turn.
#[derive(Debug)]
pub struct Control {
    interrupted: AtomicBool,
    hurried: AtomicBool,
    aborted: AtomicBool,
    /// When the interrupt took effect, `u64::MAX` for not yet.
    interrupted_ns: AtomicU64,
    gauges: Box<[Gauge]>,
}

/// What one worker shows of itself; a cache line of its own.
#[derive(Debug, Default)]
#[repr(align(128))]
struct Gauge {
    successes: AtomicU64,
    errors: AtomicU64,
    failures: AtomicU64,
    live: AtomicU32,
    waiting: AtomicU64,
}

/// How far a run has come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// Complete replies with a status below 400 so far, all phases.
    pub successes: u64,
    /// Complete replies with a status of 400 and more so far, all phases.
    pub errors: u64,
    /// Failures of any scope so far, all phases.
    pub failures: u64,
    /// Open connections now.
    pub live: u64,
    /// Planned arrivals that wait for a connection now.
    pub waiting: u64,
}

impl Control {
    /// A handle on a run with `workers` workers.
    pub fn new(workers: u32) -> Self {
        Self {
            interrupted: AtomicBool::new(false),
            hurried: AtomicBool::new(false),
            aborted: AtomicBool::new(false),
            interrupted_ns: AtomicU64::new(u64::MAX),
            gauges: (0..workers).map(|_| Gauge::default()).collect(),
        }
    }

    /// Asks for the end of the measure phase, and of drain a second later at most. What was
    /// measured is the result. Only sets a flag: may be called by a signal handler.
    pub fn interrupt(&self) {
        self.interrupted.store(true, Ordering::Relaxed);
    }

    /// Asks for the end of the measure phase without any drain. What was measured is the result.
    /// Only sets flags: may be called by a signal handler.
    pub fn hurry(&self) {
        self.hurried.store(true, Ordering::Relaxed);
        self.interrupt();
    }

    /// Whether the end was asked for.
    pub fn is_interrupted(&self) -> bool {
        self.interrupted.load(Ordering::Relaxed)
    }

    /// How far the run has come.
    pub fn progress(&self) -> Progress {
        self.gauges
            .iter()
            .fold(Progress::default(), |sum, gauge| Progress {
                successes: sum.successes + gauge.successes.load(Ordering::Relaxed),
                errors: sum.errors + gauge.errors.load(Ordering::Relaxed),
                failures: sum.failures + gauge.failures.load(Ordering::Relaxed),
                live: sum.live + u64::from(gauge.live.load(Ordering::Relaxed)),
                waiting: sum.waiting + gauge.waiting.load(Ordering::Relaxed),
            })
    }

    /// The interrupt takes effect: it came by `at_ns`, which is now, or in simulation an instant
    /// that no worker has reached.
    pub(crate) fn interrupted_at(&self, at_ns: u64) {
        self.interrupted_ns.fetch_min(at_ns, Ordering::Relaxed);
    }

    /// Whether an interrupt has taken effect by `now_ns`.
    pub(crate) fn is_interrupted_by(&self, now_ns: u64) -> bool {
        now_ns >= self.interrupted_ns.load(Ordering::Relaxed)
    }

    /// The end of the window that an interrupt sets, `u64::MAX` for none. All workers know it
    /// before it comes.
    pub(crate) fn end_ns(&self) -> u64 {
        let interrupted_ns = self.interrupted_ns.load(Ordering::Relaxed);
        interrupted_ns.saturating_add(INTERRUPT_MARGIN_NS)
    }

    /// The end of drain that an interrupt sets, `u64::MAX` for none.
    pub(crate) fn drain_end_ns(&self) -> u64 {
        let interrupted_ns = self.interrupted_ns.load(Ordering::Relaxed);
        interrupted_ns.saturating_add(INTERRUPTED_DRAIN_NS)
    }

    /// Whether nothing is to be waited for any more.
    pub(crate) fn is_hurried(&self) -> bool {
        self.hurried.load(Ordering::Relaxed)
    }

    /// Makes the workers leave at once; there will be no result.
    pub(crate) fn abort(&self) {
        self.aborted.store(true, Ordering::Relaxed);
    }

    pub(crate) fn is_aborted(&self) -> bool {
        self.aborted.load(Ordering::Relaxed)
    }

    pub(crate) fn show(&self, worker: u32, progress: Progress) {
        let gauge = &self.gauges[worker as usize];
        gauge.successes.store(progress.successes, Ordering::Relaxed);
        gauge.errors.store(progress.errors, Ordering::Relaxed);
        gauge.failures.store(progress.failures, Ordering::Relaxed);
        gauge.live.store(progress.live as u32, Ordering::Relaxed);
        gauge.waiting.store(progress.waiting, Ordering::Relaxed);
    }
}
