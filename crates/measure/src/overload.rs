//! Whether an open loop asked for more than the server could do (invariant L6).

use crate::trend::{mann_kendall_z, theil_sen_slope};
use crate::{ModelDescription, Run, ScheduleDescription, SeriesPoint, Summary};

/// A backlog that grows by this share of the planned rate is more than chance.
const GROWTH_LEAST: f64 = 0.01;
/// The two-sided 1 % point of a standard normal deviate.
const Z_99: f64 = 2.58;
/// Share of the planned arrivals that may be dropped for waiting too long.
const DROPPED_MOST: f64 = 0.01;
/// Fewer points than this show no trend.
const POINTS_LEAST: usize = 8;
/// More points than this show no more of a trend, and take time that grows with their square.
const POINTS_MOST: usize = 240;

/// An open loop above the capacity of the server and the connections.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Overload {
    /// Arrivals per second that it could serve: those completed while something waited.
    pub capacity_per_s: f64,
    /// By how much the latency grew per second, nanoseconds. Absent when it did not grow: the
    /// queue was full, or too little was completed.
    pub growth_ns_per_s: Option<f64>,
}

impl Run {
    /// Whether and how far this run was overloaded. Never so without a schedule.
    ///
    /// Signs of overload are a backlog that grows steadily, be it over the whole window or over
    /// one stage, arrivals dropped because the queue was full, and more than 1 % of the arrivals
    /// dropped or left for having waited too long.
    pub fn overload(&self) -> Option<Overload> {
        overload_of(self, &self.summary())
    }
}

/// [`Run::overload`], of a run whose summary is at hand.
pub(crate) fn overload_of(run: &Run, summary: &Summary) -> Option<Overload> {
    let schedule = run.load.model.schedule()?;
    let window_ns = run.window.length_ns();
    let arrivals = &summary.arrivals;
    if window_ns == 0 || arrivals.planned == 0 {
        return None;
    }
    let growth_per_s = Backlog::of(run, summary, schedule).growth_per_s();
    let is_full = arrivals.skipped_full > 0;
    let dropped = arrivals.skipped_late.saturating_add(arrivals.unsent) as f64;
    if growth_per_s.is_none() && !is_full && dropped <= arrivals.planned as f64 * DROPPED_MOST {
        return None;
    }
    let capacity_per_s = capacity_per_s(run, summary);
    let growth = match growth_per_s {
        _ if is_full || capacity_per_s <= 0.0 => None,
        // By Little's law, what waits longer is what has more before it.
        Some(growth_per_s) if !schedule.stages.is_empty() => Some(growth_per_s / capacity_per_s),
        _ => {
            let planned_per_s = arrivals.planned as f64 * 1e9 / window_ns as f64;
            Some(planned_per_s / capacity_per_s - 1.0)
        }
    };
    Some(Overload {
        capacity_per_s,
        growth_ns_per_s: growth.filter(|&growth| growth > 0.0).map(|s| s * 1e9),
    })
}

/// Arrivals that waited, over time, cut where the rate changes.
struct Backlog<'a> {
    points: &'a [SeriesPoint],
    point_ns: u64,
    /// First point, first point after it, and mean rate per nanosecond.
    parts: Vec<(usize, usize, f64)>,
}

impl<'a> Backlog<'a> {
    fn of(run: &Run, summary: &'a Summary, schedule: &ScheduleDescription) -> Self {
        let (points, point_ns) = (summary.series.points.as_slice(), summary.series.interval_ns);
        let window_ns = run.window.length_ns();
        let whole = summary.arrivals.planned as f64 / window_ns as f64;
        let mut parts = vec![(0, points.len(), whole)];
        // Stages count from the start of the window: warm-up runs at the rate of the first.
        let mut from_ns = 0_u64;
        for stage in &schedule.stages {
            let to_ns = from_ns.saturating_add(stage.duration_ns);
            let place = |at_ns: u64| at_ns.min(window_ns);
            // Whole points only: the next stage is another rate.
            let first = place(from_ns).div_ceil(point_ns) as usize;
            let last = (place(to_ns) / point_ns) as usize;
            let rate = (stage.from_per_s + stage.to_per_s) / 2e9;
            parts.push((first, last.min(points.len()), rate));
            from_ns = to_ns;
        }
        Self {
            points,
            point_ns,
            parts,
        }
    }

    /// The steepest steady growth of any part, arrivals per second. Absent when none grows.
    fn growth_per_s(&self) -> Option<f64> {
        self.parts
            .iter()
            .filter_map(|&(first, last, rate)| self.part_growth_per_s(first, last, rate))
            .max_by(f64::total_cmp)
    }

    fn part_growth_per_s(&self, first: usize, last: usize, rate: f64) -> Option<f64> {
        let points = self.points.get(first..last)?;
        if points.len() < POINTS_LEAST || points.iter().all(|point| point.waiting_max == 0) {
            return None;
        }
        let joined = points.len().div_ceil(POINTS_MOST);
        let waiting: Vec<f64> = points
            .chunks_exact(joined)
            .map(|points| {
                let sum: f64 = points.iter().map(|point| point.waiting_max as f64).sum();
                sum / joined as f64
            })
            .collect();
        let per_ns = theil_sen_slope(&waiting) / (self.point_ns as f64 * joined as f64);
        (per_ns > rate * GROWTH_LEAST && mann_kendall_z(&waiting) > Z_99).then_some(per_ns * 1e9)
    }
}

/// Arrivals completed per second over the intervals in which something waited; over the window
/// when nothing did in any.
fn capacity_per_s(run: &Run, summary: &Summary) -> f64 {
    let window_ns = run.window.length_ns();
    let point_ns = summary.series.interval_ns;
    let (mut replies, mut over_ns) = (0.0, 0.0);
    for (index, point) in summary.series.points.iter().enumerate() {
        let from_ns = (index as u64).saturating_mul(point_ns);
        if point.waiting_max > 0 && from_ns < window_ns {
            replies += point.successes as f64 + point.errors as f64;
            over_ns += point_ns.min(window_ns - from_ns) as f64;
        }
    }
    if over_ns == 0.0 {
        replies = summary.window.replies.total() as f64;
        over_ns = window_ns as f64;
    }
    let per_arrival = match run.load.model {
        ModelDescription::Sessions { .. } => run.load.requests_per_connection.unwrap_or(1).max(1),
        _ => 1,
    };
    replies * 1e9 / over_ns / per_arrival as f64
}
