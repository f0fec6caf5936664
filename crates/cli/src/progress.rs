//! The live line on a terminal while a run is under way.

use std::io::{IsTerminal, Write};

use brunt_engine::{Progress, clock};
use brunt_load::{LoadModel, Plan, Schedule};
use brunt_report::PlannedRate;

use crate::output::terminal_width;

/// How often the line is drawn.
const REDRAW_NS: u64 = 200_000_000;

/// One line on standard error, drawn over and over; nothing where that is no terminal.
pub(crate) struct Line {
    shown: bool,
    /// Most that there may be.
    connections: u32,
    /// What arrives, and when.
    schedule: Option<(&'static str, Schedule)>,
    measure_ns: Option<u64>,
    warmup_ns: u64,
    phase: String,
    phase_since_ns: u64,
    drawn_ns: u64,
    drawn: Progress,
}

impl Line {
    /// A line for a run of this plan.
    pub(crate) fn new(quiet: bool, plan: &Plan) -> Self {
        let (connections, schedule) = match &plan.model {
            LoadModel::Closed { .. } => (plan.connections, None),
            LoadModel::Open {
                schedule,
                connections_max,
                ..
            } => (*connections_max, Some(("req/s", schedule))),
            LoadModel::Sessions { schedule, .. } => {
                (plan.connections, Some(("connections/s", schedule)))
            }
        };
        Self {
            shown: !quiet && std::io::stderr().is_terminal(),
            connections: connections.get(),
            schedule: schedule.map(|(unit, schedule)| (unit, schedule.clone())),
            measure_ns: plan.stop.duration_ns,
            warmup_ns: plan.warmup_ns,
            phase: String::new(),
            phase_since_ns: 0,
            drawn_ns: 0,
            drawn: Progress::default(),
        }
    }

    /// Draws the line, if it is time.
    pub(crate) fn draw(&mut self, phase: &str, progress: Progress) {
        let now_ns = clock::now_ns();
        if self.phase != phase {
            self.phase = phase.to_owned();
            self.phase_since_ns = now_ns;
        }
        let interval_ns = now_ns - self.drawn_ns;
        if !self.shown || interval_ns < REDRAW_NS {
            return;
        }
        let replies = progress.replies - self.drawn.replies;
        let elapsed_ns = now_ns - self.phase_since_ns;
        let line = brunt_report::progress_line(
            &brunt_report::Progress {
                phase,
                elapsed_ns,
                planned_ns: match phase {
                    "warm-up" => Some(self.warmup_ns),
                    "measure" => self.measure_ns,
                    // The whole of a further run.
                    "diagnose" => self.measure_ns.map(|ns| ns.saturating_add(self.warmup_ns)),
                    _ => None,
                },
                live: progress.live as u32,
                connections: self.connections,
                replies_per_s: (self.drawn_ns > 0)
                    .then(|| replies as f64 * 1e9 / interval_ns as f64),
                planned_rate: self.planned_rate(phase, elapsed_ns),
                waiting: progress.waiting,
                failures: progress.failures,
            },
            terminal_width().saturating_sub(1),
        );
        (self.drawn_ns, self.drawn) = (now_ns, progress);
        // A terminal that went away is no reason to stop measuring.
        let _ = write!(std::io::stderr(), "\r\x1b[K{line}");
    }

    /// The rate of the schedule now. A warm-up has the first one.
    fn planned_rate(&self, phase: &str, elapsed_ns: u64) -> Option<PlannedRate> {
        let (unit, schedule) = self.schedule.as_ref()?;
        let offset_ns = match phase {
            "warm-up" => 0,
            "measure" => elapsed_ns,
            _ => return None,
        };
        Some(PlannedRate {
            per_s: schedule.rate_at(offset_ns),
            unit,
        })
    }

    /// Takes the line away.
    pub(crate) fn clear(&mut self) {
        if self.shown && self.drawn_ns > 0 {
            let _ = write!(std::io::stderr(), "\r\x1b[K");
        }
    }
}
