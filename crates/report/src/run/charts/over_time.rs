//! The charts over the time of the window: throughput, response times, errors, connections, brunt's
//! own share, CPU and memory.

use brunt_judge::{Judged, Quantile, samples_needed};
use brunt_load::{LoadModel, Schedule};
use brunt_record::{Histogram, Intervals, Run, Series as Counts, SeriesPoint};

use crate::layout::html::chart::{Chart, Line, Mark, Series, Shape, Span, Unit};
use crate::units;

/// Most points of a chart.
const POINTS_MAX: usize = 300;
/// Points of a short window: fewer, so that each is of enough responses.
const POINTS_FEW: usize = 50;
/// Points that are not joined, though each is of few responses.
const POINTS_LEAST: usize = 20;
/// Points of windows whose intervals are shorter than this are few.
const USUAL_NS: u64 = 100_000_000;
/// Most stages that are marked.
const MARKS_MAX: usize = 24;
/// Most agents whose CPU has a line.
const AGENTS_MAX: usize = 5;
/// Quantiles of the response times, with their colours.
const QUANTILES: [(&str, f64, u8); 3] = [("p50", 0.5, 1), ("p90", 0.9, 3), ("p99", 0.99, 2)];

/// What happened over the window, in steps: response times in longer ones, where there are many
/// different ones.
pub(in crate::run) struct OverTime<'a> {
    pub(super) judged: &'a Judged<'a>,
    counts: Counts,
    intervals: Intervals,
    spans: Vec<Span>,
    marks: Vec<Mark>,
}

impl<'a> OverTime<'a> {
    /// What the run recorded, joined until there are no more points than a chart shows.
    pub(in crate::run) fn new(judged: &'a Judged<'_>) -> Self {
        let (mut counts, mut intervals) = (
            judged.summary.series.clone(),
            judged.run.latencies.intervals.clone(),
        );
        while counts.points.len() > points_most(counts.interval_ns) {
            let joined = counts.coarsened_to(counts.interval_ns + 1);
            // The longest interval that there is stays.
            if joined.interval_ns == counts.interval_ns {
                break;
            }
            counts = joined;
        }
        while intervals.len() > points_most(intervals.interval_ns()) {
            let joined = intervals.coarsened_to(intervals.interval_ns() + 1);
            if joined.interval_ns() == intervals.interval_ns() {
                break;
            }
            intervals = joined;
        }
        Self {
            judged,
            counts,
            intervals,
            spans: stolen(judged.run),
            marks: stages(judged.run),
        }
    }

    /// Length of a step of the response times, seconds.
    pub(super) fn interval_s(&self) -> f64 {
        self.intervals.interval_ns() as f64 / 1e9
    }

    /// The response times by step.
    pub(super) fn intervals(&self) -> &Intervals {
        &self.intervals
    }

    /// A chart of so many steps of this length, nanoseconds.
    fn chart(
        &self,
        id: &'static str,
        title: &'static str,
        y: (&'static str, Unit),
        (steps, step_ns): (usize, u64),
    ) -> Chart {
        let x = (0..steps).map(|index| {
            let (from_ns, length_ns) = self.step(index, step_ns);
            (from_ns as f64 + length_ns as f64 / 2.0) / 1e9
        });
        Chart::over_time(id, title, y, x.collect())
    }

    /// A chart of these lines, with a value for each step of the counts.
    fn counted(
        &self,
        id: &'static str,
        title: &'static str,
        y: (&'static str, Unit),
        of: &str,
        lines: Vec<Series>,
    ) -> Chart {
        let step_ns = self.counts.interval_ns;
        let mut chart = self.chart(id, title, y, (self.counts.points.len(), step_ns));
        chart.series = lines;
        self.with_caption(&points_of(of, step_ns), chart)
    }

    /// The chart with these words below its title, and with what is known of the time.
    fn with_caption(&self, words: &str, mut chart: Chart) -> Chart {
        chart.caption = words.to_owned();
        if !self.spans.is_empty() {
            chart
                .caption
                .push_str(" Shaded: the hypervisor took CPU time.");
        }
        chart.spans.clone_from(&self.spans);
        chart.marks.clone_from(&self.marks);
        chart
    }

    /// Where a step begins, and how much of it lies in the window, nanoseconds.
    fn step(&self, index: usize, step_ns: u64) -> (u64, u64) {
        let from_ns = step_ns.saturating_mul(index as u64);
        let left_ns = self.judged.run.window_ns.saturating_sub(from_ns);
        (from_ns, left_ns.min(step_ns).max(1))
    }

    /// A count per second for each step.
    fn per_s(&self, of: impl Fn(&SeriesPoint) -> u64) -> Vec<Option<f64>> {
        let points = self.counts.points.iter().enumerate();
        let rates = points.map(|(index, point)| {
            let (_, length_ns) = self.step(index, self.counts.interval_ns);
            // A sliver of a step at the end of the window tells nothing.
            let is_whole = length_ns.saturating_mul(4) >= self.counts.interval_ns;
            is_whole.then(|| of(point) as f64 * 1e9 / length_ns as f64)
        });
        rates.collect()
    }

    /// Successful replies per second, and those planned.
    pub(super) fn throughput(&self) -> Chart {
        let what = if self.judged.run.protocol().has_statuses {
            "Replies with a status below 400"
        } else {
            "Replies"
        };
        let successes = self.per_s(|point| point.successes);
        let lines = vec![Series::new("successful", 1, Shape::Area, successes)];
        let y = ("successful replies per second", Unit::PerSecond);
        let mut chart = self.counted("throughput", "Throughput", y, what, lines);
        if let LoadModel::Open { schedule, .. } = &self.judged.run.plan.model {
            let planned = chart.x.iter().map(|&at_s| planned_per_s(schedule, at_s));
            chart.line("planned", 4, Shape::Dashed, planned.collect::<Vec<_>>());
        }
        chart
    }

    /// Quantiles of the response times.
    pub(super) fn latency(&self) -> Chart {
        let intervals = filled_enough(&self.intervals);
        let step_ns = intervals.interval_ns();
        let histograms: Vec<Histogram> = intervals.histograms().collect();
        let mut chart = self.chart(
            "latency",
            "Response time",
            ("response time", Unit::Duration),
            (histograms.len(), step_ns),
        );
        let longest = histograms.iter().map(|it| it.max_ns().map(|ns| ns as f64));
        chart.line("max", 4, Shape::Dashed, longest);
        for (name, q, tint) in QUANTILES.into_iter().rev() {
            let values = histograms.iter().map(|it| match Quantile::of(it, q) {
                Quantile::Known { ns, .. } => Some(ns as f64),
                Quantile::AtLeast { .. } | Quantile::TooFew { .. } => None,
            });
            // A step has too few for the outer ones where there are few responses.
            chart.line(name, tint, Shape::Line, values);
        }
        let of = "Successful replies, by when they were complete";
        self.with_caption(&points_of(of, step_ns), chart)
    }

    /// Error statuses and failures.
    pub(super) fn errors(&self) -> Chart {
        let what = if self.judged.run.protocol().has_statuses {
            "Replies with a status of 400 and above, and what failed"
        } else {
            "What failed"
        };
        let (errors, failures) = (self.per_s(|it| it.errors), self.per_s(|it| it.failures));
        let mut lines = vec![
            Series::new("error statuses", 2, Shape::Line, errors),
            Series::new("failures", 5, Shape::Dashed, failures),
        ];
        lines.retain(Series::is_drawn);
        let y = ("events per second", Unit::PerSecond);
        self.counted("errors", "Errors", y, what, lines)
    }

    /// Open connections; absent where they were the same throughout.
    pub(super) fn connections(&self) -> Option<Chart> {
        let points = &self.counts.points;
        let first = points.first()?;
        let same = (first.live_min, first.live_min);
        if points.iter().all(|it| (it.live_min, it.live_max) == same) {
            return None;
        }
        let most = points.iter().map(|point| Some(point.live_max.into()));
        let fewest = points.iter().map(|point| Some(point.live_min.into()));
        let lines = vec![
            Series::new("most", 1, Shape::Line, most),
            Series::new("fewest", 4, Shape::Dashed, fewest),
        ];
        let y = ("open connections", Unit::Count);
        Some(self.counted("connections", "Connections", y, "Open at once", lines))
    }

    /// Arrivals that waited for a free connection.
    pub(super) fn waiting(&self) -> Chart {
        let points = self.counts.points.iter();
        let values = points.map(|point| Some(point.waiting_max as f64));
        let lines = vec![Series::new("waiting", 2, Shape::Area, values)];
        let y = ("most that waited at once", Unit::Count);
        let of = "Requests that were due and found no connection free";
        self.counted("waiting", "Waiting for a connection", y, of, lines)
    }

    /// Brunt's own share of the response times.
    pub(super) fn own_share(&self) -> Chart {
        let values = self.counts.points.iter().map(|point| {
            let all = point.stamped_response_ns as f64;
            (all > 0.0).then(|| (point.stamped_own_ns as f64 / all).min(1.0))
        });
        let lines = vec![Series::new("own share", 5, Shape::Area, values)];
        let y = ("share of the response times", Unit::Share);
        let of = "On connections with kernel stamps, of all response times";
        self.counted("own", "brunt's own share", y, of, lines)
    }

    /// CPUs that client and server used.
    pub(super) fn cpu(&self) -> Chart {
        let run = self.judged.run;
        let server = run.evidence_of_server().server.as_ref();
        let points = server.map_or(&[][..], |server| &server.series);
        let mut lines = Vec::new();
        for (number, agent) in (1..).zip(run.agents.iter().take(AGENTS_MAX)) {
            // With its own server in the process, there is no telling whose CPU it was.
            if agent.own_server {
                continue;
            }
            let readings = agent.evidence.host.series.iter();
            let mut name = "client".to_owned();
            if !run.is_plain() {
                name = format!("client, agent {number}");
            }
            let readings = readings.map(|it| (it.at_ns, it.client_cpu_ns));
            lines.push(self.cpu_line(name, 1, Shape::Line, readings));
        }
        let all = points
            .iter()
            .map(|it| (it.at_ns, it.cpu_user_ns.saturating_add(it.cpu_system_ns)));
        lines.push(self.cpu_line("server".to_owned(), 2, Shape::Line, all));
        let kernel = points.iter().map(|it| (it.at_ns, it.cpu_system_ns));
        lines.push(self.cpu_line("server, kernel".to_owned(), 4, Shape::Dashed, kernel));
        let chart = Chart::over_time("cpu", "CPU", ("CPUs used", Unit::Cpus), Vec::new());
        self.with_caption("User space and kernel.", chart.of_lines(lines, |s| s))
    }

    /// The CPUs used between these readings.
    fn cpu_line(
        &self,
        name: String,
        tint: u8,
        shape: Shape,
        readings: impl Iterator<Item = (u64, u64)>,
    ) -> Line {
        Line {
            name,
            tint,
            shape,
            points: used(readings, self.counts.interval_ns),
        }
    }

    /// Resident memory of the server; absent where it was not read over time.
    pub(super) fn memory(&self) -> Option<Chart> {
        let server = self.judged.run.evidence_of_server().server.as_ref()?;
        let points = server.series.iter();
        let readings = points.filter_map(|it| Some((it.at_ns, it.resident_bytes? as f64)));
        let line = Line {
            name: "resident".to_owned(),
            tint: 2,
            shape: Shape::Line,
            points: thinned(readings),
        };
        let y = ("resident memory", Unit::Bytes);
        let chart = Chart::over_time("memory", "Memory of the server", y, Vec::new());
        let chart = chart.of_lines(vec![line], |s| s);
        Some(self.with_caption("As its processes had it.", chart))
    }
}

/// Of what the points are, and how long a step is.
fn points_of(what: &str, step_ns: u64) -> String {
    format!("{what}: a point per {}.", units::duration(step_ns))
}

/// Intervals that are long enough for their outermost quantile, where enough of them are left.
fn filled_enough(intervals: &Intervals) -> Intervals {
    let needed = QUANTILES.iter().map(|(_, q, _)| samples_needed(*q)).max();
    let mut filled = intervals.clone();
    while filled.len() / 2 >= POINTS_LEAST {
        let mut counts: Vec<u64> = filled.histograms().map(|it| it.count()).collect();
        counts.sort_unstable();
        let median = counts.get(counts.len() / 2).copied();
        if median >= needed {
            break;
        }
        let joined = filled.coarsened_to(filled.interval_ns() + 1);
        if joined.interval_ns() == filled.interval_ns() {
            break;
        }
        filled = joined;
    }
    filled
}

/// How many points a chart may have whose steps are so long, nanoseconds.
fn points_most(step_ns: u64) -> usize {
    if step_ns < USUAL_NS {
        POINTS_FEW
    } else {
        POINTS_MAX
    }
}

/// What was used per second between readings of a sum, nanoseconds, that are at least `least_ns`
/// apart; each at the end of its stretch.
fn used(readings: impl Iterator<Item = (u64, u64)>, least_ns: u64) -> Vec<(f64, f64)> {
    let mut from: Option<(u64, u64)> = None;
    let mut used = Vec::new();
    for (at_ns, sum_ns) in readings {
        let Some((from_ns, from_sum_ns)) = from else {
            from = Some((at_ns, sum_ns));
            continue;
        };
        let length_ns = at_ns.saturating_sub(from_ns);
        // A reading is never exactly when it is due.
        if length_ns == 0 || length_ns < least_ns - least_ns / 8 {
            continue;
        }
        let added_ns = sum_ns.saturating_sub(from_sum_ns);
        used.push((at_ns, added_ns as f64 / length_ns as f64));
        from = Some((at_ns, sum_ns));
    }
    thinned(used.into_iter())
}

/// No more of them than a chart shows, in order of time, seconds.
fn thinned(readings: impl Iterator<Item = (u64, f64)>) -> Vec<(f64, f64)> {
    let mut kept: Vec<(u64, f64)> = Vec::new();
    for reading in readings {
        if kept.last().is_none_or(|last| last.0 < reading.0) {
            kept.push(reading);
        }
    }
    let step = kept.len().div_ceil(POINTS_MAX).max(1);
    let kept = kept.into_iter().step_by(step);
    kept.map(|(at_ns, value)| (at_ns as f64 / 1e9, value))
        .collect()
}

/// Arrivals that a schedule has per second at an instant of the window; absent after its end.
fn planned_per_s(schedule: &Schedule, at_s: f64) -> Option<f64> {
    if schedule.rate_per_s().is_some() {
        return schedule.rate_per_s();
    }
    let mut from_s = 0.0;
    for stage in schedule.stages() {
        let length_s = stage.duration_ns as f64 / 1e9;
        if at_s < from_s + length_s {
            let part = (at_s - from_s) / length_s;
            return Some(stage.from_per_s + (stage.to_per_s - stage.from_per_s) * part);
        }
        from_s += length_s;
    }
    None
}

/// Where the stages of the schedule begin, beyond the first; none where there are too many to tell
/// apart.
fn stages(run: &Run) -> Vec<Mark> {
    let schedule = run.plan.model.schedule();
    let stages = schedule.map_or(&[][..], Schedule::stages);
    if stages.len() > MARKS_MAX {
        return Vec::new();
    }
    let mut at_ns = 0_u64;
    let mut marks = Vec::new();
    for (number, stage) in (1..).zip(stages) {
        if number > 1 && at_ns < run.window_ns {
            marks.push(Mark {
                at: at_ns as f64 / 1e9,
                label: format!("stage {number}"),
            });
        }
        at_ns = at_ns.saturating_add(stage.duration_ns);
    }
    marks
}

/// When the hypervisor took CPUs of any agent, joined until there are no more than a chart shows.
fn stolen(run: &Run) -> Vec<Span> {
    let stolen = run.agents.iter().flat_map(|it| &it.evidence.host.stolen);
    let mut spans: Vec<(u64, u64)> = stolen
        .filter(|it| it.until_ns > it.from_ns && it.until_ns > 0)
        .map(|it| (it.from_ns.max(0).unsigned_abs(), it.until_ns.unsigned_abs()))
        .filter(|&(from_ns, _)| from_ns < run.window_ns)
        .map(|(from_ns, until_ns)| (from_ns, until_ns.min(run.window_ns)))
        .collect();
    spans.sort_unstable();
    let mut gap_ns = run.window_ns / POINTS_MAX as u64;
    loop {
        let mut joined: Vec<(u64, u64)> = Vec::new();
        for &(from_ns, until_ns) in &spans {
            match joined.last_mut() {
                Some(last) if from_ns <= last.1.saturating_add(gap_ns) => {
                    last.1 = last.1.max(until_ns);
                }
                _ => joined.push((from_ns, until_ns)),
            }
        }
        if joined.len() <= POINTS_MAX {
            let spans = joined.into_iter().map(|(from_ns, until_ns)| Span {
                from: from_ns as f64 / 1e9,
                to: until_ns as f64 / 1e9,
            });
            return spans.collect();
        }
        gap_ns = gap_ns.max(1).saturating_mul(2);
    }
}

#[cfg(test)]
mod tests {
    use brunt_load::{ArrivalProcess, Stage};

    use super::*;

    const S: u64 = 1_000_000_000;

    #[test]
    fn what_was_used_is_told_between_readings() {
        let readings = [(0, 0), (S / 2, S / 4), (S, S), (S, S), (3 * S, S)];
        let used = used(readings.into_iter(), S);
        assert_eq!(used, [(1.0, 1.0), (3.0, 0.0)]);
        assert_eq!(thinned([(5, 1.0), (5, 2.0), (4, 3.0)].into_iter()).len(), 1);
    }

    #[test]
    fn a_plan_is_drawn_as_it_was_asked_for() {
        let process = ArrivalProcess::Constant;
        let schedule = Schedule::constant_rate(process, 7.0, 1).expect("a rate");
        assert_eq!(planned_per_s(&schedule, 99.0), Some(7.0));
        let stages = vec![
            Stage {
                duration_ns: 1,
                from_per_s: 1.0,
                to_per_s: 1.0,
            },
            Stage {
                duration_ns: 10 * S,
                from_per_s: 0.0,
                to_per_s: 100.0,
            },
        ];
        let schedule = Schedule::staged(process, stages, 1).expect("stages");
        let middle = planned_per_s(&schedule, 5.0).expect("a rate");
        assert!((middle - 50.0).abs() < 1e-6, "{middle}");
        assert_eq!(planned_per_s(&schedule, 10.1), None);
    }
}
