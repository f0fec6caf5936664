//! Whether the rate held still over the window, and whether an open loop asked for more than the
//! server could do (invariant L6).

use brunt_load::{ArrivalProcess, LoadModel, Schedule, Work};
use brunt_record::{Run, Series, SeriesPoint, grid};

use crate::Summary;
use crate::figures::bandwidth::stream_bytes_over;
use crate::statistics::{Mean, mann_kendall_z, median, theil_sen_slope};

/// A difference or a trend under this share of the rate does not matter.
const CHANGE_LEAST: f64 = 0.03;
/// Halves that differ by more than this many standard errors do not do so by chance.
const ERRORS_LEAST: f64 = 4.0;
/// The two-sided 1 % point of a standard normal deviate.
const Z_99: f64 = 2.58;
/// Fewer sub-windows than this show neither a difference nor a trend.
const PARTS_LEAST: usize = 8;
/// Number of sub-windows that suffices.
const PARTS_ENOUGH: usize = 20;
const PARTS_MOST: usize = 30;
/// Most points that a series can have.
pub(crate) const POINTS_MAX: u64 = 1_200;
/// Arrivals completed, as a share of those planned, from which on the rate is that of the plan.
const PLAN_MET: f64 = 0.99;

/// Whether the rate of successful replies held still.
#[derive(Clone, Copy, Debug, Default, PartialEq, serde::Serialize)]
pub struct Steadiness {
    /// Whether the run drifts: its halves differ, or there is a trend, by more than chance and more
    /// than the limit. Never so where the rate is the planned one.
    pub drifts: bool,
    /// Second half of the window against the first, as a ratio less 1. Null when the first has
    /// no replies, or the window is too short for halves.
    pub halves_differ: Option<f64>,
    /// The Theil-Sen slope over the window as a share of the median, where the Mann-Kendall test
    /// says that there is a trend.
    pub trend: Option<f64>,
}

/// Whether the rate held still. Says nothing (no drift, nothing known) of a run whose planned rate
/// changes.
pub(crate) fn steadiness_of(run: &Run, summary: &Summary) -> Steadiness {
    let schedule = run.plan.load.model.schedule();
    steadiness_of_counts(
        &whole_points(run, &summary.series),
        summary.series.interval_ns,
        schedule.is_some_and(Schedule::varies),
        follows_plan(run, summary),
    )
}

/// The steadiness of a window whose parts, `part_ns` long each, had so many successful replies.
pub(crate) fn steadiness_of_counts(
    counts: &[f64],
    part_ns: u64,
    is_planned_to_vary: bool,
    follows_plan: bool,
) -> Steadiness {
    if is_planned_to_vary {
        return Steadiness::default();
    }
    // Of short runs too: what is slow for a moment is no drift.
    let joined = (grid::USUAL_NS / part_ns.max(1)).max(1) as usize;
    let counts = counts.chunks_exact(joined);
    let counts: Vec<f64> = counts.map(|parts| parts.iter().sum()).collect();
    let parts = parts_of(counts.len()).unwrap_or(counts.len());
    let rates = rates_of(&counts, parts);
    if rates.len() < PARTS_LEAST {
        return Steadiness::default();
    }
    let (first, second) = (&rates[..parts / 2], &rates[parts.div_ceil(2)..]);
    let (halves_differ, halves_drift) = compare(first, second);
    let trend = trend_of(&rates);
    let is_more_than_limit = |change: f64| change.abs() > CHANGE_LEAST;
    Steadiness {
        halves_differ,
        trend,
        drifts: !follows_plan && (halves_drift || trend.is_some_and(is_more_than_limit)),
    }
}

/// Whether what was planned was also completed, so that the rate is no finding.
pub(crate) fn follows_plan(run: &Run, summary: &Summary) -> bool {
    let planned = summary.arrivals.planned as f64 * PLAN_MET;
    match run.plan.load.model {
        LoadModel::Closed { .. } => false,
        // Nothing is answered.
        LoadModel::Held { .. } => true,
        LoadModel::Open { .. } => summary.answered_of_plan() as f64 >= planned,
        LoadModel::Sessions { .. } => summary.arrivals.sent as f64 >= planned,
    }
}

/// Successful replies in each point of the series that lies wholly inside the window; of streams,
/// their bytes. A series ends with its last event: later points are 0.
pub(crate) fn whole_points(run: &Run, series: &Series) -> Vec<f64> {
    let whole = run.window_ns / series.interval_ns.max(1);
    if run.work() == Work::Streams {
        let whole = whole.min(POINTS_MAX);
        return stream_bytes_over(run, series.interval_ns, whole as usize);
    }
    let points = series.points.iter().map(|point| point.successes as f64);
    points
        .chain(std::iter::repeat(0.0))
        .take(whole.min(POINTS_MAX) as usize)
        .collect()
}

/// Into how many sub-windows `points` points are best dealt out: such that the fewest are left
/// over.
fn parts_of(points: usize) -> Option<usize> {
    (PARTS_ENOUGH..=PARTS_MOST.min(points))
        .min_by_key(|&parts| (points % parts, PARTS_MOST - parts))
}

/// Mean counts per point of `parts` sub-windows of equal length. Points that are left over at the
/// end are not counted.
fn rates_of(counts: &[f64], parts: usize) -> Vec<f64> {
    let length = counts.len().checked_div(parts).unwrap_or(0).max(1);
    counts
        .chunks_exact(length)
        .take(parts)
        .map(|points| points.iter().sum::<f64>() / length as f64)
        .collect()
}

/// How the second half differs from the first as a ratio less 1, and whether by more than chance
/// and the limit.
fn compare(first: &[f64], second: &[f64]) -> (Option<f64>, bool) {
    let (Some(first), Some(second)) = (Mean::of(first), Mean::of(second)) else {
        return (None, false);
    };
    let difference = second.value - first.value;
    if first.value <= 0.0 {
        return (None, difference > 0.0);
    }
    let change = difference / first.value;
    let drifts = change.abs() > CHANGE_LEAST
        && difference.abs() > ERRORS_LEAST * first.error.hypot(second.error);
    (change.is_finite().then_some(change), drifts)
}

/// Change over the window as a share of the median, where it is more than chance.
fn trend_of(rates: &[f64]) -> Option<f64> {
    if mann_kendall_z(rates).abs() <= Z_99 {
        return None;
    }
    let mut sorted = rates.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    let change = theil_sen_slope(rates) * (rates.len() - 1) as f64 / median(&sorted)?;
    change.is_finite().then_some(change)
}

/// A backlog that grows by this share of the planned rate is more than chance.
const GROWTH_LEAST: f64 = 0.01;
/// Standard deviations of the number of arrivals by which the backlog of a Poisson process must
/// have grown: a server that is just fast enough sees less by chance.
const DEVIATIONS_LEAST: f64 = 3.0;
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

/// Whether and how far a run was overloaded. Never so without a schedule.
///
/// Signs of overload are a backlog that grows steadily, be it over the whole window or over one
/// stage, arrivals dropped because the queue was full, and more than 1 % of the arrivals dropped or
/// left for having waited too long.
pub(crate) fn overload_of(run: &Run, summary: &Summary) -> Option<Overload> {
    let schedule = run.plan.load.model.schedule()?;
    let window_ns = run.window_ns;
    let arrivals = &summary.arrivals;
    if window_ns == 0 || arrivals.planned == 0 {
        return None;
    }
    // Of short runs too: what waits for a moment is no trend.
    let series = summary.series.coarsened();
    let growth_per_s = growth_per_s(run, summary, schedule, &series);
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

/// How fast the arrivals that waited grew in number, arrivals per second: over the whole window, or
/// over the stage in which they grew most. Absent where they did not grow steadily.
fn growth_per_s(run: &Run, summary: &Summary, schedule: &Schedule, series: &Series) -> Option<f64> {
    let (points, point_ns) = (series.points.as_slice(), series.interval_ns);
    let window_ns = run.window_ns;
    let whole_rate = summary.arrivals.planned as f64 / window_ns as f64;
    let whole = growth_of(points, point_ns, schedule, whole_rate);
    // Stages count from the start of the window: warm-up runs at the rate of the first.
    let mut from_ns = 0_u64;
    let of_stages = schedule.stages().iter().filter_map(|stage| {
        let to_ns = from_ns.saturating_add(stage.duration_ns);
        // Whole points only: the next stage is another rate.
        let first = from_ns.min(window_ns).div_ceil(point_ns) as usize;
        let end = (to_ns.min(window_ns) / point_ns) as usize;
        from_ns = to_ns;
        let rate = (stage.from_per_s + stage.to_per_s) / 2e9;
        let points = points.get(first..end.min(points.len()))?;
        growth_of(points, point_ns, schedule, rate)
    });
    whole.into_iter().chain(of_stages).max_by(f64::total_cmp)
}

/// The growth over these points, in which arrivals come at a mean rate per nanosecond.
fn growth_of(points: &[SeriesPoint], point_ns: u64, schedule: &Schedule, rate: f64) -> Option<f64> {
    if points.len() < POINTS_LEAST || points.iter().all(|point| point.waiting_max == 0) {
        return None;
    }
    let joined = points.len().div_ceil(POINTS_MOST);
    let joint = points.chunks_exact(joined).map(|points| {
        let sum: f64 = points.iter().map(|point| point.waiting_max as f64).sum();
        sum / joined as f64
    });
    let waiting: Vec<f64> = joint.collect();
    let per_ns = theil_sen_slope(&waiting) / (point_ns as f64 * joined as f64);
    let by_chance = match schedule.process() {
        ArrivalProcess::Poisson => {
            let length_ns = point_ns as f64 * points.len() as f64;
            DEVIATIONS_LEAST * (rate / length_ns).sqrt()
        }
        _ => 0.0,
    };
    let grows = per_ns > (rate * GROWTH_LEAST).max(by_chance);
    (grows && mann_kendall_z(&waiting) > Z_99).then_some(per_ns * 1e9)
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
    let per_arrival = match run.plan.load.model {
        LoadModel::Sessions { .. } => run.plan.requests_per_connection().unwrap_or(1).max(1),
        _ => 1,
    };
    replies * 1e9 / over_ns / per_arrival as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use brunt_load::Stage;
    use brunt_record::ArrivalCounts;
    use proptest::prelude::*;

    use crate::RunFigures;
    use crate::invariants::sample::{
        nonzero, open_run, replaced_after, schedule_of, set_stages, steady_run, with_counts,
    };

    fn found_overload(run: &Run) -> Option<Overload> {
        overload_of(run, &run.summary())
    }

    #[track_caller]
    fn has_capacity(overload: Overload, per_s: f64) {
        assert!(
            (overload.capacity_per_s - per_s).abs() < 1.0,
            "{overload:?}"
        );
    }

    fn found_steadiness(run: &Run) -> Steadiness {
        steadiness_of(run, &run.summary())
    }

    fn closed(counts: &[u64]) -> Run {
        with_counts(steady_run(), counts)
    }

    /// Noise without a trend, 0 to 99.
    fn scatter(index: u64) -> u64 {
        (index * 7_919 + 13) * 104_729 % 101 % 100
    }

    fn counts(points: u64, count: impl Fn(u64) -> u64) -> Vec<u64> {
        (0..points).map(count).collect()
    }

    #[test]
    fn what_drifts_is_told_from_what_scatters() {
        // (counts per 100 ms, drifts)
        let step = |before: u64, after: u64| counts(100, |i| if i < 50 { before } else { after });
        let cases = [
            ("even", counts(100, |_| 1_000), false),
            ("scatter of 10 %", counts(100, |i| 950 + scatter(i)), false),
            ("a step of 20 %", step(1_000, 800), true),
            ("a step of 2 %", step(1_000, 980), false),
            ("a fall of 20 %", counts(100, |i| 1_000 - 2 * i), true),
            ("a rise of 2 %", counts(100, |i| 10_000 + 2 * i), false),
            ("too short", counts(7, |i| 1_000 - 100 * i), false),
            ("just long enough", counts(8, |i| 1_000 - 50 * i), true),
            ("nothing at all", counts(100, |_| 0), false),
            ("nothing at first", step(0, 10), true),
        ];
        let scattered_rise = counts(300, |i| 950 + i * 2 / 3 + scatter(i));
        let bad_point = counts(100, |i| if i == 80 { 0 } else { 1_000 });
        let more = [
            ("a scattered rise", scattered_rise, true),
            ("a bad point", bad_point, false),
        ];
        let cases = cases.into_iter().chain(more);
        for (what, counts, drifts) in cases {
            let found = found_steadiness(&closed(&counts));
            assert_eq!(found.drifts, drifts, "{what}: {found:?}");
        }
    }

    #[test]
    fn a_drift_has_its_size() {
        let step = found_steadiness(&closed(&counts(100, |i| if i < 50 { 1_000 } else { 800 })));
        assert!((step.halves_differ.expect("two halves") + 0.2).abs() < 1e-9);
        let fall = found_steadiness(&closed(&counts(101, |i| 1_000 - 2 * i)));
        let trend = fall.trend.expect("a trend");
        assert!((trend + 0.2).abs() < 0.02, "{fall:?}");
        assert!((fall.halves_differ.expect("two halves") + 0.105).abs() < 0.01);
        // The server stopped answering: the series ends, the window does not.
        let mut stopped = closed(&[1_000; 100]);
        stopped.agents[0].workers[0].series.points.truncate(40);
        let stopped = found_steadiness(&stopped);
        assert!(stopped.drifts);
        assert!((stopped.halves_differ.expect("two halves") + 1.0).abs() < 0.3);
    }

    #[test]
    fn a_planned_rate_is_no_drift() {
        let falling = counts(100, |i| 1_000 - 2 * i);
        let mut open = with_counts(open_run(), &falling);
        open.agents[0].workers[0].population.recorded = open.agents[0].workers[0].arrivals.planned;
        assert!(!found_steadiness(&open).drifts);
        assert!(found_steadiness(&open).trend.is_some());
        open.agents[0].workers[0].population.recorded /= 2;
        assert!(found_steadiness(&open).drifts);
        let stage = Stage {
            duration_ns: 1,
            from_per_s: 1.0,
            to_per_s: 2.0,
        };
        set_stages(&mut open, vec![stage]);
        let staged = found_steadiness(&open);
        assert_eq!(staged, Steadiness::default());
    }

    #[test]
    fn points_are_dealt_out_to_sub_windows() {
        let cases = [
            (0, None),
            (19, None),
            (20, Some(20)),
            (31, Some(30)),
            (100, Some(25)),
            (101, Some(25)),
            (600, Some(30)),
        ];
        for (points, parts) in cases {
            assert_eq!(parts_of(points), parts, "{points}");
        }
    }

    proptest! {
        #[test]
        fn what_is_found_is_finite(counts in prop::collection::vec(0_u64..2_000, 1..80)) {
            let found = found_steadiness(&closed(&counts));
            for value in [found.halves_differ, found.trend].into_iter().flatten() {
                prop_assert!(value.is_finite());
            }
        }
    }

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

    /// The scatter of the value at this index of a list.
    fn scatter_at(index: usize) -> u64 {
        scatter(index as u64)
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
        let busy = |index: usize| (scatter_at(index), 100);
        let filling = |index: usize| match index {
            0..5 => (index as u64 * 20, 100),
            _ => (80 + scatter_at(index) / 5, 100),
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
            let found = found_overload(&run_of(points, 1_000.0, point));
            assert_eq!(found, None, "{words}");
        }
    }

    #[test]
    fn a_backlog_that_grows_is_overload() {
        // 1,000 per second planned, 800 completed.
        let over = |index: usize| (20 * (index as u64 + 1) + scatter_at(index) / 10, 80);
        for points in [8, 100, 240, 1_200] {
            let overload = found_overload(&run_of(points, 1_000.0, over));
            let overload = overload.unwrap_or_else(|| panic!("{points} points"));
            has_capacity(overload, 800.0);
            let growth = overload.growth_ns_per_s.expect("the queue is not full");
            assert!((growth / 0.25e9 - 1.0).abs() < 0.01, "{overload:?}");
        }
        // Too short for a trend.
        assert_eq!(found_overload(&run_of(7, 1_000.0, over)), None);
        // Too slow to matter: 0.5 % of the planned rate.
        let slow = |index: usize| (index as u64 / 2, 100);
        assert_eq!(found_overload(&run_of(200, 1_000.0, slow)), None);
    }

    #[test]
    fn a_poisson_backlog_may_grow_by_chance() {
        // (how many more wait after each 100 ms, in which 100 are due; more than chance)
        for (growth, is_overloaded) in [(3, false), (6, false), (9, true)] {
            let mut run = run_of(20, 1_000.0, |index| (growth * index as u64, 95));
            assert!(found_overload(&run).is_some());
            let poisson = Schedule::constant_rate(ArrivalProcess::Poisson, 2_000.0, 7);
            *schedule_of(&mut run) = poisson.expect("a rate");
            assert_eq!(found_overload(&run).is_some(), is_overloaded, "{growth}");
        }
    }

    #[test]
    fn dropped_arrivals_are_overload() {
        type Change = fn(&mut ArrivalCounts);
        // (what happened, overloaded, latency grows)
        let cases: [(&str, Change, bool, bool); 6] = [
            ("one for a full queue", |a| a.skipped_full = 1, true, false),
            ("1 % for waiting", |a| a.skipped_late = 100, false, false),
            ("over 1 %", |a| a.skipped_late = 101, true, false),
            (
                "skipped or left",
                |a| (a.skipped_late, a.unsent) = (50, 51),
                true,
                false,
            ),
            ("over 1 % left", |a| a.unsent = 101, true, true),
            ("nothing planned", |a| *a = Default::default(), false, false),
        ];
        for (words, change, is_overloaded, grows) in cases {
            let mut run = run_of(100, 1_000.0, |index| (scatter_at(index) + 1, 80));
            change(&mut run.agents[0].workers[0].arrivals);
            let overload = found_overload(&run);
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
        assert_eq!(found_overload(&run), Some(dead));
    }

    #[test]
    fn stages_are_judged_one_by_one() {
        let within = staged(run_of(200, 200.0, |_| (0, 20)), &[(200, 100.0, 290.0)]);
        assert_eq!(found_overload(&within), None);
        // 30 s at 100 per second, 5 s at 500, with a capacity of 300.
        let step = staged(
            run_of(350, 157.0, |index| match index {
                0..300 => (0, 10),
                _ => (20 * (index as u64 - 299), 30),
            }),
            &[(300, 100.0, 100.0), (50, 500.0, 500.0)],
        );
        let overload = found_overload(&step).expect("the second stage is over capacity");
        has_capacity(overload, 300.0);
        let growth = overload.growth_ns_per_s.expect("it grows") / 1e9;
        assert!((growth * 300.0 / 200.0 - 1.0).abs() < 0.02, "{growth}");
        // Up and down again: the backlog is gone in the end.
        let peak = staged(
            run_of(200, 300.0, |index| match index {
                50..100 => ((index as u64 - 49).pow(2) / 5, 30),
                100..150 => ((150 - index as u64).pow(2) / 5, 30),
                _ => (0, 20),
            }),
            &[(100, 100.0, 500.0), (100, 500.0, 100.0)],
        );
        assert!(found_overload(&peak).is_some());
        // Stages that lie beyond the window, as long as they can be.
        let beyond = &[
            (50, 100.0, 100.0),
            (Schedule::DURATION_MAX_NS / POINT_NS - 59, 1.0, 1.0),
            (9, 1.0, 1.0),
        ];
        let found = found_overload(&staged(run_of(60, 100.0, |_| (1, 10)), beyond));
        assert_eq!(found, None);
    }

    #[test]
    fn the_capacity_for_connections_counts_connections() {
        let mut run = run_of(100, 1_000.0, |index| (20 * (index as u64 + 1), 80));
        run.plan.load.model = LoadModel::Sessions {
            schedule: schedule_of(&mut run).clone(),
            queue_max: nonzero(100),
        };
        run.plan.traffic.reuse = replaced_after(4);
        let overload = found_overload(&run).expect("a backlog that grows");
        has_capacity(overload, 200.0);
    }
}
