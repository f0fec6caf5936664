//! What the world outside may do to a run and see of it while it lasts.

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

/// The handle on a run: interrupt it, watch it. Workers look at it once a turn.
#[derive(Debug)]
pub struct Control {
    interrupted: AtomicBool,
    aborted: AtomicBool,
    end_ns: AtomicU64,
    gauges: Box<[Gauge]>,
}

/// What one worker shows of itself; a cache line of its own.
#[derive(Debug, Default)]
#[repr(align(128))]
struct Gauge {
    replies: AtomicU64,
    failures: AtomicU64,
    live: AtomicU32,
    waiting: AtomicU64,
}

/// How far a run has come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// Complete replies so far, all phases.
    pub replies: u64,
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
            aborted: AtomicBool::new(false),
            end_ns: AtomicU64::new(u64::MAX),
            gauges: (0..workers).map(|_| Gauge::default()).collect(),
        }
    }

    /// Asks for the end of the measure phase. Only sets a flag: may be called by a signal handler.
    pub fn interrupt(&self) {
        self.interrupted.store(true, Ordering::Relaxed);
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
                replies: sum.replies + gauge.replies.load(Ordering::Relaxed),
                failures: sum.failures + gauge.failures.load(Ordering::Relaxed),
                live: sum.live + u64::from(gauge.live.load(Ordering::Relaxed)),
                waiting: sum.waiting + gauge.waiting.load(Ordering::Relaxed),
            })
    }

    /// Ends the window at an instant that all workers will know before it comes.
    pub(crate) fn end_at(&self, end_ns: u64) {
        self.end_ns.fetch_min(end_ns, Ordering::Relaxed);
    }

    /// The end that was set, `u64::MAX` for none.
    pub(crate) fn end_ns(&self) -> u64 {
        self.end_ns.load(Ordering::Relaxed)
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
        gauge.replies.store(progress.replies, Ordering::Relaxed);
        gauge.failures.store(progress.failures, Ordering::Relaxed);
        gauge.live.store(progress.live as u32, Ordering::Relaxed);
        gauge.waiting.store(progress.waiting, Ordering::Relaxed);
    }
}
