//! How far a run has come, on standard error: a live line on a terminal, else a line now and then.

use std::io::{IsTerminal, Write};

use brunt_engine::{Progress, clock};
use brunt_load::{LoadModel, Plan, Schedule};
use brunt_report::{PhaseLength, PlannedRate};

use crate::output::terminal_width;

/// How often the line of a terminal is drawn.
const REDRAW_NS: u64 = 200_000_000;
/// How often a line is written where there is no terminal.
const LOG_NS: u64 = 10_000_000_000;
/// A rate over less than this says little.
const RATE_INTERVAL_NS_MIN: u64 = 100_000_000;

/// What becomes of the line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    /// Nothing is shown.
    Silent,
    /// One line is drawn over and over.
    Live,
    /// One line after the other.
    Log,
}

/// The line on standard error.
#[derive(Debug)]
pub(crate) struct Line {
    form: Form,
    /// Most that there may be.
    connections: u32,
    /// What arrives, and when.
    schedule: Option<(&'static str, Schedule)>,
    measure_ns: Option<u64>,
    setup_limit_ns: u64,
    warmup_ns: u64,
    drain_limit_ns: u64,
    phase: String,
    phase_since_ns: u64,
    due_ns: u64,
    is_drawn: bool,
    /// Instant and counts from which the next rate is taken.
    counted_ns: u64,
    counted: Progress,
}

impl Line {
    /// A line for a run of this plan.
    pub(crate) fn new(quiet: bool, plan: &Plan) -> Self {
        let form = match (quiet, std::io::stderr().is_terminal()) {
            (true, _) => Form::Silent,
            (false, true) => Form::Live,
            (false, false) => Form::Log,
        };
        Self::of_form(form, plan, clock::now_ns())
    }

    fn of_form(form: Form, plan: &Plan, now_ns: u64) -> Self {
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
            form,
            connections: connections.get(),
            schedule: schedule.map(|(unit, schedule)| (unit, schedule.clone())),
            measure_ns: plan.stop.duration_ns,
            setup_limit_ns: plan.setup_limit_ns(),
            warmup_ns: plan.warmup_ns,
            drain_limit_ns: plan.drain_limit_ns,
            phase: String::new(),
            phase_since_ns: now_ns,
            due_ns: match form {
                Form::Silent => u64::MAX,
                Form::Live => now_ns,
                Form::Log => now_ns.saturating_add(LOG_NS),
            },
            is_drawn: false,
            counted_ns: now_ns,
            counted: Progress::default(),
        }
    }

    /// Shows the line, if it is time.
    pub(crate) fn draw(&mut self, phase: &str, progress: Progress) {
        let Some(line) = self.next(phase, progress, clock::now_ns(), terminal_width()) else {
            return;
        };
        self.is_drawn = true;
        // A terminal that went away is no reason to stop measuring.
        let _ = match self.form {
            Form::Live => write!(std::io::stderr(), "\r\x1b[K{line}"),
            Form::Silent | Form::Log => writeln!(std::io::stderr(), "brunt: {line}"),
        };
    }

    /// The line for what was reached at `now_ns`, if one is due.
    fn next(
        &mut self,
        phase: &str,
        progress: Progress,
        now_ns: u64,
        columns: u16,
    ) -> Option<String> {
        if self.phase != phase {
            self.phase = phase.to_owned();
            self.phase_since_ns = now_ns;
            (self.counted_ns, self.counted) = (now_ns, progress);
        }
        if now_ns < self.due_ns {
            return None;
        }
        let elapsed_ns = now_ns - self.phase_since_ns;
        let interval_ns = now_ns - self.counted_ns;
        let successes = progress.successes.saturating_sub(self.counted.successes);
        let has_rate = phase != "set-up" && interval_ns >= RATE_INTERVAL_NS_MIN;
        let (interval_due_ns, width) = match self.form {
            Form::Live => (REDRAW_NS, columns.saturating_sub(1)),
            Form::Silent | Form::Log => (LOG_NS, u16::MAX),
        };
        self.due_ns = now_ns.saturating_add(interval_due_ns);
        (self.counted_ns, self.counted) = (now_ns, progress);
        Some(brunt_report::progress_line(
            &brunt_report::Progress {
                phase,
                elapsed_ns,
                length: self.length_of(phase),
                live: progress.live as u32,
                connections: self.connections,
                successes_per_s: has_rate.then(|| successes as f64 * 1e9 / interval_ns as f64),
                planned_rate: self.planned_rate(phase, elapsed_ns),
                waiting: progress.waiting,
                errors: progress.errors,
                failures: progress.failures,
            },
            width,
        ))
    }

    fn length_of(&self, phase: &str) -> Option<PhaseLength> {
        match phase {
            "set-up" => Some(PhaseLength::AtMost(self.setup_limit_ns)),
            "warm-up" => Some(PhaseLength::Planned(self.warmup_ns)),
            "measure" => self.measure_ns.map(PhaseLength::Planned),
            "drain" => Some(PhaseLength::AtMost(self.drain_limit_ns)),
            // The whole of a further run.
            "diagnose" => self
                .measure_ns
                .map(|ns| PhaseLength::Planned(ns.saturating_add(self.warmup_ns))),
            _ => None,
        }
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

    /// Takes a live line away.
    pub(crate) fn clear(&mut self) {
        if self.form == Form::Live && self.is_drawn {
            let _ = write!(std::io::stderr(), "\r\x1b[K");
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::args::Arguments;
    use crate::plan::Load;

    const SECOND_NS: u64 = 1_000_000_000;

    fn line(form: Form) -> Line {
        let typed = ["brunt", "-d", "30s", "-c", "8"];
        let arguments = Arguments::try_parse_from(typed)
            .expect("they are good")
            .load;
        let target = brunt_load::Target::parse("http://host/", None).expect("it is one");
        let load = Load::new(&arguments, Some(&target)).expect("they are good");
        let plan = load.plan(&arguments, target, std::num::NonZeroU32::MIN);
        Line::of_form(form, &plan, 0)
    }

    fn progress(successes: u64, errors: u64) -> Progress {
        Progress {
            successes,
            errors,
            live: 8,
            ..Progress::default()
        }
    }

    #[test]
    fn without_a_terminal_a_line_comes_every_ten_seconds() {
        let mut line = line(Form::Log);
        let mut lines = Vec::new();
        for tenth in 0..=319 {
            let now_ns = tenth * SECOND_NS / 10;
            let (phase, successes) = if tenth < 10 {
                ("warm-up", tenth * 500)
            } else if tenth < 310 {
                ("measure", tenth * 500)
            } else {
                ("drain", 155_000)
            };
            lines.extend(line.next(phase, progress(successes, tenth), now_ns, 20));
        }
        assert_eq!(
            lines,
            [
                "measure 9.0 s of 30.0 s · 5,000 req/s · 100 error statuses · 8 of 8 connections",
                "measure 19.0 s of 30.0 s · 5,000 req/s · 200 error statuses · 8 of 8 connections",
                "measure 29.0 s of 30.0 s · 5,000 req/s · 300 error statuses · 8 of 8 connections",
            ]
        );
    }

    #[test]
    fn on_a_terminal_the_line_is_drawn_at_once_and_keeps_to_its_width() {
        let mut line = line(Form::Live);
        let first = line.next("set-up", progress(0, 0), 0, 81);
        assert_eq!(
            first.as_deref(),
            Some("set-up 0.0 s of at most 30.0 s · 8 of 8 connections")
        );
        assert_eq!(line.next("set-up", progress(0, 0), REDRAW_NS - 1, 81), None);
        let later = line.next("warm-up", progress(10, 0), REDRAW_NS, 81);
        assert_eq!(
            later.as_deref(),
            Some("warm-up 0.0 s of 1.0 s · 8 of 8 connections")
        );
        let last = line.next("warm-up", progress(110, 0), 2 * REDRAW_NS, 35);
        assert_eq!(last.as_deref(), Some("warm-up 0.2 s of 1.0 s · 500 req/s"));
        let drain = line.next("drain", progress(110, 0), 3 * REDRAW_NS, 35);
        assert_eq!(drain.as_deref(), Some("drain 0.0 s of at most 10.0 s"));
    }

    #[test]
    fn quiet_is_quiet() {
        let mut line = line(Form::Silent);
        for second in 0..100 {
            let now_ns = second * SECOND_NS;
            assert_eq!(line.next("measure", progress(0, 0), now_ns, 80), None);
        }
    }
}
