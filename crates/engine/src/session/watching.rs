//! What is looked at while a round lasts: edges, progress, interrupts.

use std::sync::Arc;
use std::sync::mpsc::RecvTimeoutError;
use std::time::Duration;

use brunt_io::clock;
use brunt_io::cpu::CpuUse;
use brunt_record::Window;

use super::{Report, Session, heard};
use crate::error::RunError;
use crate::generators::Stragglers;
use crate::observer::{Phase, RunObserver, Snapshots};
use crate::run::{Ended, Watched};

/// How often the thread that runs a round looks around while the next edge is known.
const WATCH_SELDOM_NS: u64 = 50_000_000;

impl Session {
    /// Watches the round from the start of load until all workers are done: reads the process's CPU
    /// at the window's edges, shows progress, passes on an interrupt.
    pub(super) fn watch(
        &mut self,
        window: Window,
        snapshots: &mut Snapshots,
        observer: &mut dyn RunObserver,
    ) -> Result<(Vec<Ended>, Watched), RunError> {
        let control = Arc::clone(&self.control);
        // An agreed start may be seconds away.
        let load_ns = match control.holds_start() {
            true => window.start_ns - self.prepared.plan.warmup_ns,
            false => 0,
        };
        let mut before: Option<(u64, CpuUse)> = None;
        let mut watched = None;
        let mut ended: Vec<Option<Ended>> = self.orders.iter().map(|_| None).collect();
        while ended.iter().any(Option::is_none) {
            let now_ns = clock::now_ns();
            let end_ns = window.end_ns.min(control.end_ns());
            if control.is_interrupted() && !control.is_interrupted_by(now_ns) {
                if now_ns < window.start_ns {
                    control.abort();
                }
                control.interrupted_at(now_ns);
            }
            let over_ns = if control.is_hurried() || control.is_aborted() {
                now_ns
            } else {
                end_ns
            };
            let is_done = |place: usize| ended.get(place).is_none_or(Option::is_some);
            if let Stragglers::AreLeftBehind(place) = self.generators.look(now_ns, over_ns, is_done)
            {
                // Nobody waits for the thread.
                self.threads.clear();
                return Err(RunError::LeftBehind {
                    worker: self.prepared.workers.start + place as u32,
                });
            }
            if before.is_none() && now_ns >= window.start_ns {
                before = CpuUse::of_process().ok().map(|cpu| (now_ns, cpu));
            }
            if watched.is_none() && now_ns >= end_ns {
                watched = Watched::since(before);
            }
            let (phase, next_edge_ns) = if now_ns < load_ns {
                (Phase::Ready, load_ns)
            } else if now_ns < window.start_ns {
                (Phase::WarmUp, window.start_ns)
            } else if now_ns < end_ns {
                (Phase::Measure, end_ns)
            } else {
                (Phase::Drain, u64::MAX)
            };
            snapshots.deliver(observer);
            observer.progress(phase, &snapshots.progress());
            // A worker that polls on the same CPU is not to be disturbed more often than needed;
            // but the end of the window must not be slept through.
            let pause_ns = WATCH_SELDOM_NS.min(next_edge_ns.saturating_sub(now_ns));
            match self.reports.recv_timeout(Duration::from_nanos(pause_ns)) {
                Ok(report) => {
                    let worker = (report.0 - self.prepared.workers.start) as usize;
                    if let Report::Ended(mut end) = heard(report)? {
                        self.generators.put_back(worker, &mut end);
                        ended[worker] = Some(*end);
                    }
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return Err(RunError::Panic { worker: 0 }),
            }
        }
        let watched = watched
            .or_else(|| Watched::since(before))
            .unwrap_or_default();
        snapshots.deliver(observer);
        let ended: Vec<Ended> = ended.into_iter().flatten().collect();
        for end in &ended {
            if let Some(rest) = &end.finished.rest {
                snapshots.take(rest, observer);
            }
        }
        if control.is_aborted() {
            return Err(self.nothing_measured());
        }
        observer.progress(Phase::Drain, &snapshots.progress());
        Ok((ended, watched))
    }
}
