//! How far a run has come, on standard error: a live line on a terminal, else a line now and then.

use std::collections::BTreeMap;

use brunt_engine::{Phase, Progress, RunObserver, Snapshot};
use brunt_fleet::Board;
use brunt_io::clock;
use brunt_load::{LoadModel, Plan, Work};
use brunt_report::{AgentProgress, PhaseLength, PlannedRate};

use crate::args::OutputArguments;
use crate::message;
use crate::output::terminal_width;

/// How often the line of a terminal is drawn.
const REDRAW_NS: u64 = 200_000_000;
/// How often a line is written where there is no terminal.
const LOG_NS: u64 = 10_000_000_000;

/// From one line of JSON to the next.
const JSON_NS: u64 = 1_000_000_000;

/// What becomes of the line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    /// Nothing is shown.
    Silent,
    /// One line is drawn over and over.
    Live,
    /// One line after the other.
    Log,
    /// An object per line.
    Json,
}

impl Form {
    fn of(output: &OutputArguments) -> Self {
        if output.quiet {
            Self::Silent
        } else if output.json_progress {
            Self::Json
        } else if message::is_live() {
            Self::Live
        } else {
            Self::Log
        }
    }
}

/// An experiment whose rounds are shown.
#[derive(Debug)]
struct OfExperiment {
    name: &'static str,
    /// What a length of it is called.
    length: fn(u64) -> PhaseLength,
    /// How long it takes, as it looks now.
    length_ns: u64,
}

/// What a worker had counted at its latest snapshot.
#[derive(Clone, Copy, Debug, Default)]
struct Counted {
    at_ns: u64,
    /// Successful responses; of streams, bytes.
    successes: u64,
}

/// The line on standard error.
#[derive(Debug)]
pub(crate) struct Line {
    form: Form,
    plan: Plan,
    /// Absent for a run.
    experiment: Option<OfExperiment>,
    /// Most that there may be.
    connections: u32,
    phase: Option<Phase>,
    since_ns: u64,
    due_ns: u64,
    is_drawn: bool,
    /// How far each agent of a fleet has come.
    agents: Vec<AgentProgress>,
    /// By worker: now, and when the line was drawn last.
    counted: BTreeMap<u32, Counted>,
    drawn: BTreeMap<u32, Counted>,
}

impl Line {
    /// A line for a run of this plan.
    pub(crate) fn new(output: &OutputArguments, plan: &Plan) -> Self {
        Self::of_form(Form::of(output), plan, clock::now_ns())
    }

    /// A line for the rounds of an experiment.
    pub(crate) fn of_experiment(
        output: &OutputArguments,
        plan: &Plan,
        name: &'static str,
        length: fn(u64) -> PhaseLength,
    ) -> Self {
        Self {
            experiment: Some(OfExperiment {
                name,
                length,
                length_ns: 0,
            }),
            ..Self::new(output, plan)
        }
    }

    fn of_form(form: Form, plan: &Plan, now_ns: u64) -> Self {
        Self {
            form,
            plan: plan.clone(),
            experiment: None,
            connections: connections_most(plan),
            phase: None,
            since_ns: now_ns,
            due_ns: match form {
                Form::Silent => u64::MAX,
                Form::Live | Form::Json => now_ns,
                Form::Log => now_ns.saturating_add(LOG_NS),
            },
            is_drawn: false,
            agents: Vec::new(),
            counted: BTreeMap::new(),
            drawn: BTreeMap::new(),
        }
    }

    /// The experiment has `left_ns` to go, as it looks now. Its next round is that of `plan`.
    pub(crate) fn expect(&mut self, left_ns: u64, plan: &Plan) {
        let elapsed_ns = clock::now_ns().saturating_sub(self.since_ns);
        if let Some(experiment) = &mut self.experiment {
            experiment.length_ns = elapsed_ns.saturating_add(left_ns);
        }
        self.connections = connections_most(plan);
    }

    /// What successes per second are called.
    fn unit(&self) -> &'static str {
        self.plan.connection.protocol.unit().per_s
    }

    /// The line for what was reached at `now_ns`, if one is due.
    fn next(
        &mut self,
        phase: Phase,
        progress: &Progress,
        now_ns: u64,
        columns: u16,
    ) -> Option<String> {
        if self.begins(phase) {
            self.phase = Some(phase);
            self.since_ns = now_ns;
            self.drawn.clone_from(&self.counted);
            if self.form == Form::Json {
                self.due_ns = now_ns;
            }
        }
        if now_ns < self.due_ns {
            return None;
        }
        let elapsed_ns = now_ns - self.since_ns;
        let has_load = self.experiment.is_some() || phase > Phase::Ready;
        let successes_per_s = self.successes_per_s().filter(|_| has_load);
        let (interval_due_ns, width) = match self.form {
            Form::Live => (REDRAW_NS, columns.saturating_sub(1)),
            Form::Json => (JSON_NS, u16::MAX),
            Form::Silent | Form::Log => (LOG_NS, u16::MAX),
        };
        self.due_ns = now_ns.saturating_add(interval_due_ns);
        self.drawn.clone_from(&self.counted);
        let is_streams = self.plan.work() == Work::Streams;
        let progress = brunt_report::RunProgress {
            phase: match &self.experiment {
                Some(experiment) => experiment.name,
                None => phase.name(),
            },
            elapsed_ns,
            length: self.length_of(phase),
            connections_open: progress.live,
            connections: self.connections,
            successes: progress.successes,
            errors: progress.errors,
            failures: progress.failures,
            successes_per_s: successes_per_s.filter(|_| !is_streams),
            unit: self.unit(),
            bytes_per_s: successes_per_s.filter(|_| is_streams),
            planned_rate: self.planned_rate(phase, elapsed_ns),
            waiting: progress.waiting,
            bytes_received: progress.bytes_received,
            bytes_sent: progress.bytes_sent,
            agents: &self.agents,
        };
        if self.form == Form::Json {
            return brunt_report::progress_json(&progress).ok();
        }
        Some(brunt_report::progress_line(&progress, width))
    }

    /// Whether another phase of a run begins. Those of an experiment are not told apart.
    fn begins(&self, phase: Phase) -> bool {
        let before = self.phase;
        before.is_none_or(|before| self.experiment.is_none() && before != phase)
    }

    /// Recent successful responses per second: of each worker between its latest snapshot and the
    /// one that was the latest when the line was drawn last. Absent without any two.
    fn successes_per_s(&self) -> Option<f64> {
        let rates = self.counted.keys();
        let rates = rates.filter_map(|&worker| self.rate_of(worker));
        rates.reduce(|sum, rate| sum + rate)
    }

    /// That of one worker.
    fn rate_of(&self, worker: u32) -> Option<f64> {
        let now = self.counted.get(&worker)?;
        let before = self.drawn.get(&worker).copied().unwrap_or_default();
        let interval_ns = now.at_ns.checked_sub(before.at_ns).filter(|&ns| ns > 0)?;
        let successes = now.successes.saturating_sub(before.successes);
        (before.at_ns > 0).then(|| successes as f64 * 1e9 / interval_ns as f64)
    }

    fn length_of(&self, phase: Phase) -> Option<PhaseLength> {
        if let Some(experiment) = &self.experiment {
            return Some((experiment.length)(experiment.length_ns));
        }
        let load = &self.plan.load;
        match phase {
            Phase::SetUp => self.plan.setup_limit_ns().map(PhaseLength::AtMost),
            Phase::Ready => None,
            Phase::WarmUp => Some(PhaseLength::Planned(load.warmup_ns)),
            Phase::Measure => load.stop.duration_ns.map(PhaseLength::Planned),
            Phase::Drain => Some(PhaseLength::AtMost(load.drain_limit_ns)),
        }
    }

    /// The rate of the schedule now. A warm-up has the first one.
    fn planned_rate(&self, phase: Phase, elapsed_ns: u64) -> Option<PlannedRate> {
        let schedule = self.plan.load.model.schedule()?;
        let offset_ns = match phase {
            _ if self.experiment.is_some() => return None,
            Phase::WarmUp => 0,
            Phase::Measure => elapsed_ns,
            _ => return None,
        };
        Some(PlannedRate {
            per_s: schedule.rate_at(offset_ns),
            unit: match self.plan.load.model {
                LoadModel::Sessions { .. } => "connections/s",
                _ => self.unit(),
            },
        })
    }

    /// Takes a live line away.
    pub(crate) fn clear(&mut self) {
        if self.form == Form::Live && self.is_drawn {
            message::erase();
        }
    }
}

impl Board for Line {
    fn is_due(&self, phase: Phase) -> bool {
        clock::now_ns() >= self.due_ns || self.form == Form::Json && self.begins(phase)
    }

    /// Their rates are those of the workers of their numbers.
    fn show_agents(&mut self, mut agents: Vec<AgentProgress>) {
        let is_streams = self.plan.work() == Work::Streams;
        for (number, agent) in (0..).zip(&mut agents) {
            agent.successes_per_s = self.rate_of(number).filter(|_| !is_streams);
        }
        self.agents = agents;
    }

    fn clear(&mut self) {
        Self::clear(self);
    }
}

impl RunObserver for Line {
    fn progress(&mut self, phase: Phase, progress: &Progress) {
        let Some(line) = self.next(phase, progress, clock::now_ns(), terminal_width()) else {
            return;
        };
        self.is_drawn = true;
        match self.form {
            Form::Live => message::draw(&line),
            Form::Json => message::line(&line),
            Form::Silent | Form::Log => message::line(&format!("brunt: {line}")),
        }
    }

    fn snapshot(&mut self, snapshot: &Snapshot) {
        let counted = self.counted.entry(snapshot.worker).or_default();
        counted.at_ns = snapshot.to_ns;
        counted.successes += if self.plan.work() == Work::Streams {
            snapshot.counts.bytes_received + snapshot.counts.bytes_sent
        } else {
            snapshot.counts.successes
        };
    }
}

/// Most connections that a load of this plan may have.
fn connections_most(plan: &Plan) -> u32 {
    match plan.load.model {
        LoadModel::Open {
            connections_max, ..
        } => connections_max.get(),
        _ => plan.load.connections.get(),
    }
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU32;

    use brunt_load::{RequestSet, Target};

    use super::*;

    const SECOND_NS: u64 = 1_000_000_000;

    fn line(form: Form) -> Line {
        let target = Target::parse("http://host/", None).expect("it is one");
        let mut plan = Plan::new(target, RequestSet::nothing());
        plan.load.connections = NonZeroU32::new(8).expect("above 0");
        plan.load.stop.duration_ns = Some(30 * SECOND_NS);
        Line::of_form(form, &plan, 0)
    }

    fn progress(errors: u64) -> Progress {
        Progress {
            errors,
            live: 8,
            ..Progress::default()
        }
    }

    /// What one of two workers counted until `to_ns`.
    fn snapshot(worker: u32, to_ns: u64, successes: u64) -> Snapshot {
        Snapshot {
            worker,
            to_ns,
            counts: Progress {
                successes,
                ..Progress::default()
            },
        }
    }

    #[test]
    fn without_a_terminal_a_line_comes_every_ten_seconds() {
        let mut line = line(Form::Log);
        let mut lines = Vec::new();
        for tenth in 0..=319 {
            let now_ns = tenth * SECOND_NS / 10;
            let phase = if tenth < 10 {
                Phase::WarmUp
            } else if tenth < 310 {
                Phase::Measure
            } else {
                Phase::Drain
            };
            // Workers take their snapshots when it suits them.
            line.snapshot(&snapshot(0, now_ns + 1, 200));
            line.snapshot(&snapshot(1, now_ns + 40_000_000, 300));
            lines.extend(line.next(phase, &progress(tenth), now_ns, 20));
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
        let (set_up, warm_up) = (Phase::SetUp, Phase::WarmUp);
        line.snapshot(&snapshot(0, 1, 0));
        let first = line.next(set_up, &progress(0), 0, 81);
        assert_eq!(first.as_deref(), Some("set-up 0.0 s · 8 of 8 connections"));
        assert_eq!(line.next(set_up, &progress(0), REDRAW_NS - 1, 81), None);
        line.snapshot(&snapshot(0, REDRAW_NS, 10));
        let later = line.next(warm_up, &progress(0), REDRAW_NS, 81);
        assert_eq!(
            later.as_deref(),
            Some("warm-up 0.0 s of 1.0 s · 8 of 8 connections")
        );
        line.snapshot(&snapshot(0, 2 * REDRAW_NS, 100));
        let last = line.next(warm_up, &progress(0), 2 * REDRAW_NS, 35);
        assert_eq!(last.as_deref(), Some("warm-up 0.2 s of 1.0 s · 500 req/s"));
        let drain = line.next(Phase::Drain, &progress(0), 3 * REDRAW_NS, 35);
        assert_eq!(drain.as_deref(), Some("drain 0.0 s of at most 10.0 s"));
    }

    #[test]
    fn quiet_is_quiet() {
        let mut line = line(Form::Silent);
        for second in 0..100 {
            let now_ns = second * SECOND_NS;
            let measure = Phase::Measure;
            assert_eq!(line.next(measure, &progress(0), now_ns, 80), None);
        }
    }
}
