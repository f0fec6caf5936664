//! Whether an open loop asked for more than the server could do (invariant L6).

use brunt_load::{ArrivalProcess, LoadModel, Schedule};
use brunt_record::{Run, Series, SeriesPoint};

use crate::Summary;
use crate::statistics::trend::{mann_kendall_z, theil_sen_slope};

/// A backlog that grows by this share of the planned rate is more than chance.
const GROWTH_LEAST: f64 = 0.01;
/// Standard deviations of the number of arrivals by which the backlog of a Poisson process must
/// have grown: a server that is just fast enough sees less by chance.
const DEVIATIONS_LEAST: f64 = 3.0;
/// The two-sided 1 % point of a standard normal deviate.
const Z_99: f64 = 2.58;
/// Share of the planned arrivals that may be dropped for waiting too long.
const DROPPED_MOST: f64 = 0.01;
/// Fewer points than this show no trend.
const POINTS_LEAST: usize = 8;
/// Most points of the trend: more show no more of it, and take time that grows with their square.
const POINTS_MOST: usize = 240;

/// An open loop above the capacity of the server and the connections.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize)]
pub struct Overload {
    /// Arrivals per second that it could serve: those completed while something waited. With
    /// planned connections, connections per second.
    pub capacity_per_s: f64,
    /// Growth of the latency per second, nanoseconds. Null when it did not grow to the end: the
    /// queue was full, requests that waited too long were given up, or too few were completed.
    pub growth_ns_per_s: Option<f64>,
}

/// [`crate::RunFigures::overload`], from a summary that was already computed.
pub(crate) fn overload_of(run: &Run, summary: &Summary) -> Option<Overload> {
    let schedule = run.plan.model.schedule()?;
    let window_ns = run.window_ns;
    let arrivals = &summary.arrivals;
    if window_ns == 0 || arrivals.planned == 0 {
        return None;
    }
    // Of short runs too: what waits for a moment is no trend.
    let series = summary.series.coarsened();
    let growth_per_s = Backlog::of(run, summary, schedule, &series).growth_per_s();
    let is_full = arrivals.skipped_full > 0;
    let dropped = arrivals.skipped_late.saturating_add(arrivals.unsent) as f64;
    if growth_per_s.is_none() && !is_full && dropped <= arrivals.planned as f64 * DROPPED_MOST {
        return None;
    }
    let capacity_per_s = capacity_per_s(run, summary, &series);
    let growth = match growth_per_s {
        _ if is_full || arrivals.skipped_late > 0 || capacity_per_s <= 0.0 => None,
        // By Little's law, what waits longer is what has more before it.
        Some(growth_per_s) if !schedule.stages().is_empty() => Some(growth_per_s / capacity_per_s),
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
    /// Arrivals come by chance.
    is_poisson: bool,
    /// First point, first point after it, and mean rate per nanosecond.
    parts: Vec<(usize, usize, f64)>,
}

impl<'a> Backlog<'a> {
    fn of(run: &Run, summary: &Summary, schedule: &Schedule, series: &'a Series) -> Self {
        let (points, point_ns) = (series.points.as_slice(), series.interval_ns);
        let window_ns = run.window_ns;
        let whole = summary.arrivals.planned as f64 / window_ns as f64;
        let mut parts = vec![(0, points.len(), whole)];
        // Stages count from the start of the window: warm-up runs at the rate of the first.
        let mut from_ns = 0_u64;
        for stage in schedule.stages() {
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
            is_poisson: schedule.process() == ArrivalProcess::Poisson,
            parts,
        }
    }

    /// The steepest steady growth of any part, arrivals per second. Absent when none grows.
    fn growth_per_s(&self) -> Option<f64> {
        let parts = self.parts.iter();
        let growths = parts.filter_map(|&part| self.part_growth_per_s(part));
        growths.max_by(f64::total_cmp)
    }

    fn part_growth_per_s(&self, (first, last, rate): (usize, usize, f64)) -> Option<f64> {
        let points = self.points.get(first..last)?;
        if points.len() < POINTS_LEAST || points.iter().all(|point| point.waiting_max == 0) {
            return None;
        }
        let joined = points.len().div_ceil(POINTS_MOST);
        let joint = points.chunks_exact(joined).map(|points| {
            let sum: f64 = points.iter().map(|point| point.waiting_max as f64).sum();
            sum / joined as f64
        });
        let waiting: Vec<f64> = joint.collect();
        let per_ns = theil_sen_slope(&waiting) / (self.point_ns as f64 * joined as f64);
        let length_ns = self.point_ns as f64 * points.len() as f64;
        let by_chance = if self.is_poisson {
            DEVIATIONS_LEAST * (rate / length_ns).sqrt()
        } else {
            0.0
        };
        let grows = per_ns > (rate * GROWTH_LEAST).max(by_chance);
        (grows && mann_kendall_z(&waiting) > Z_99).then_some(per_ns * 1e9)
    }
}

/// Arrivals completed per second over the intervals in which something waited; over the window
/// when nothing did in any.
fn capacity_per_s(run: &Run, summary: &Summary, series: &Series) -> f64 {
    let window_ns = run.window_ns;
    let point_ns = series.interval_ns;
    let (mut replies, mut over_ns) = (0.0, 0.0);
    for (index, point) in series.points.iter().enumerate() {
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
    let per_arrival = match run.plan.model {
        LoadModel::Sessions { .. } => run.plan.requests_per_connection().unwrap_or(1).max(1),
        _ => 1,
    };
    replies * 1e9 / over_ns / per_arrival as f64
}

#[cfg(test)]
mod tests {
    use brunt_load::Stage;
    use brunt_record::ArrivalCounts;

    use super::*;
    use crate::RunFigures;
    use crate::invariants::sample::{nonzero, open_run, replaced_after, schedule_of, set_stages};

    const POINT_NS: u64 = 100_000_000;

    /// An open loop of so many points of 100 ms, with what waits and what is completed in each.
    fn run_of(points: usize, planned_per_s: f64, point: impl Fn(usize) -> (u64, u64)) -> Run {
        let mut run = open_run();
        run.window_ns = points as u64 * POINT_NS;
        run.agents[0].workers.truncate(1);
        let worker = &mut run.agents[0].workers[0];
        worker.series = Series::default();
        worker.series.points = (0..points)
            .map(|index| {
                let (waiting_max, successes) = point(index);
                SeriesPoint {
                    waiting_max,
                    successes,
                    ..SeriesPoint::default()
                }
            })
            .collect();
        let planned = (planned_per_s * points as f64 / 10.0) as u64;
        worker.arrivals = ArrivalCounts {
            planned,
            sent: planned,
            ..ArrivalCounts::default()
        };
        run
    }

    fn staged(mut run: Run, stages: &[(u64, f64, f64)]) -> Run {
        let stages = stages
            .iter()
            .map(|&(points, from_per_s, to_per_s)| Stage {
                duration_ns: points * POINT_NS,
                from_per_s,
                to_per_s,
            })
            .collect();
        set_stages(&mut run, stages);
        run
    }

    /// Numbers that scatter without a trend, 0 to 99.
    fn scatter(index: usize) -> u64 {
        (index as u64 * 7_919 + 13) * 104_729 % 101 % 100
    }

    #[test]
    fn load_within_capacity_is_no_overload() {
        let quiet = |_: usize| (0, 100);
        // 1,000 per second; a server silent for 100 ms of every second, then at full speed.
        let stalls = |index: usize| match index % 10 {
            3 => (90, 10),
            4 => (80, 190),
            _ => (0, 100),
        };
        // Silent for half of every second.
        let long_stalls = |index: usize| match index % 10 {
            n @ 0..5 => (n as u64 * 100, 0),
            5 => (400, 600),
            _ => (0, 100),
        };
        let busy = |index: usize| (scatter(index), 100);
        let filling = |index: usize| {
            (
                if index < 5 {
                    index as u64 * 20
                } else {
                    80 + scatter(index) / 5
                },
                100,
            )
        };
        // A single stall near the end.
        let late = |index: usize| (if index > 190 { 50 } else { 0 }, 100);
        type Points<'a> = &'a dyn Fn(usize) -> (u64, u64);
        let cases: [(&str, usize, Points<'_>); 8] = [
            ("nothing waits", 200, &quiet),
            ("stalls", 200, &stalls),
            ("one stall", 10, &stalls),
            ("long stalls", 200, &long_stalls),
            ("a queue without a trend", 200, &busy),
            ("the same, long", 1_200, &busy),
            ("a queue that fills and stays", 200, &filling),
            ("a stall at the end", 200, &late),
        ];
        for (words, points, point) in cases {
            assert_eq!(run_of(points, 1_000.0, point).overload(), None, "{words}");
        }
    }

    #[test]
    fn a_backlog_that_grows_is_overload() {
        // 1,000 per second planned, 800 completed.
        let over = |index: usize| (20 * (index as u64 + 1) + scatter(index) / 10, 80);
        for points in [8, 100, 240, 1_200] {
            let overload = run_of(points, 1_000.0, over).overload();
            let overload = overload.unwrap_or_else(|| panic!("{points} points"));
            assert!(
                (overload.capacity_per_s - 800.0).abs() < 1.0,
                "{overload:?}"
            );
            let growth = overload.growth_ns_per_s.expect("the queue is not full");
            assert!((growth / 0.25e9 - 1.0).abs() < 0.01, "{overload:?}");
        }
        // Too short for a trend.
        assert_eq!(run_of(7, 1_000.0, over).overload(), None);
        // Too slow to matter: 0.5 % of the planned rate.
        let slow = |index: usize| (index as u64 / 2, 100);
        assert_eq!(run_of(200, 1_000.0, slow).overload(), None);
    }

    #[test]
    fn a_poisson_backlog_may_grow_by_chance() {
        // (how many more wait after each 100 ms, in which 100 are due; more than chance)
        for (growth, is_overloaded) in [(3, false), (6, false), (9, true)] {
            let mut run = run_of(20, 1_000.0, |index| (growth * index as u64, 95));
            assert!(run.overload().is_some());
            let poisson = Schedule::constant_rate(ArrivalProcess::Poisson, 2_000.0, 7);
            *schedule_of(&mut run) = poisson.expect("a rate");
            assert_eq!(run.overload().is_some(), is_overloaded, "{growth}");
        }
    }

    #[test]
    fn dropped_arrivals_are_overload() {
        type Change = fn(&mut ArrivalCounts);
        // (what happened, overloaded, latency grows)
        let cases: [(&str, Change, bool, bool); 6] = [
            (
                "one skipped for a full queue",
                |a| a.skipped_full = 1,
                true,
                false,
            ),
            (
                "1 % skipped for waiting",
                |a| a.skipped_late = 100,
                false,
                false,
            ),
            ("over 1 %", |a| a.skipped_late = 101, true, false),
            (
                "over 1 % skipped or left",
                |a| (a.skipped_late, a.unsent) = (50, 51),
                true,
                false,
            ),
            ("over 1 % left", |a| a.unsent = 101, true, true),
            (
                "nothing planned",
                |a| *a = ArrivalCounts::default(),
                false,
                false,
            ),
        ];
        for (words, change, is_overloaded, grows) in cases {
            let mut run = run_of(100, 1_000.0, |index| (scatter(index) + 1, 80));
            change(&mut run.agents[0].workers[0].arrivals);
            let overload = run.overload();
            assert_eq!(overload.is_some(), is_overloaded, "{words}");
            let growth = overload.and_then(|overload| overload.growth_ns_per_s);
            assert_eq!(growth.is_some(), grows, "{words}");
        }
        // A server that never answers.
        let mut run = run_of(100, 1_000.0, |_| (0, 0));
        run.agents[0].workers[0].tallies.measure.replies = Default::default();
        run.agents[0].workers[0].arrivals.skipped_late = 9_000;
        let dead = Overload {
            capacity_per_s: 0.0,
            growth_ns_per_s: None,
        };
        assert_eq!(run.overload(), Some(dead));
    }

    #[test]
    fn stages_are_judged_one_by_one() {
        let capacity = 300;
        let within = staged(run_of(200, 200.0, |_| (0, 20)), &[(200, 100.0, 290.0)]);
        assert_eq!(within.overload(), None);
        // 30 s at 100 per second, 5 s at 500, with a capacity of 300.
        let step = staged(
            run_of(350, 157.0, |index| match index {
                0..300 => (0, 10),
                _ => (20 * (index as u64 - 299), 30),
            }),
            &[(300, 100.0, 100.0), (50, 500.0, 500.0)],
        );
        let overload = step.overload().expect("the second stage is over capacity");
        assert!(
            (overload.capacity_per_s - f64::from(capacity)).abs() < 1.0,
            "{overload:?}"
        );
        let growth = overload.growth_ns_per_s.expect("it grows");
        assert!(
            (growth / (200.0 / 300.0 * 1e9) - 1.0).abs() < 0.02,
            "{growth}"
        );
        // Up and down again: the backlog is gone in the end.
        let peak = staged(
            run_of(200, 300.0, |index| match index {
                50..100 => ((index as u64 - 49).pow(2) / 5, 30),
                100..150 => ((150 - index as u64).pow(2) / 5, 30),
                _ => (0, 20),
            }),
            &[(100, 100.0, 500.0), (100, 500.0, 100.0)],
        );
        assert!(peak.overload().is_some());
        // Stages that lie beyond the window, as long as they can be.
        let beyond = &[
            (50, 100.0, 100.0),
            (Schedule::DURATION_MAX_NS / POINT_NS - 59, 1.0, 1.0),
            (9, 1.0, 1.0),
        ];
        assert_eq!(
            staged(run_of(60, 100.0, |_| (1, 10)), beyond).overload(),
            None
        );
    }

    #[test]
    fn a_closed_loop_is_never_overloaded() {
        let mut run = run_of(100, 1_000.0, |index| (20 * index as u64, 80));
        assert!(run.overload().is_some());
        run.plan.model = LoadModel::Closed {
            connect_per_s: None,
        };
        assert_eq!(run.overload(), None);
    }

    #[test]
    fn the_capacity_for_connections_counts_connections() {
        let mut run = run_of(100, 1_000.0, |index| (20 * (index as u64 + 1), 80));
        run.plan.model = LoadModel::Sessions {
            schedule: schedule_of(&mut run).clone(),
            queue_max: nonzero(100),
        };
        run.plan.reuse = replaced_after(4);
        let overload = run.overload().expect("a backlog that grows");
        assert!(
            (overload.capacity_per_s - 200.0).abs() < 1.0,
            "{overload:?}"
        );
    }
}
