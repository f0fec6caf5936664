//! Whether the rate held still over the window.

use brunt_load::{LoadModel, Schedule};
use brunt_record::{Run, Series, grid};

use crate::Summary;
use crate::figures::bandwidth::stream_bytes_over;
use crate::statistics::student_t::Mean;
use crate::statistics::trend::{mann_kendall_z, theil_sen_slope};

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
const POINTS_MAX: u64 = 1_200;
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

/// [`crate::RunFigures::steadiness`], from a summary that was already computed.
pub(crate) fn steadiness_of(run: &Run, summary: &Summary) -> Steadiness {
    let schedule = run.plan.model.schedule();
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
    match run.plan.model {
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
    if run.is_streams() {
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
    let median = f64::midpoint(sorted[(sorted.len() - 1) / 2], sorted[sorted.len() / 2]);
    let change = theil_sen_slope(rates) * (rates.len() - 1) as f64 / median;
    change.is_finite().then_some(change)
}

#[cfg(test)]
mod tests {
    use brunt_load::Stage;
    use proptest::prelude::*;

    use super::*;
    use crate::RunFigures;
    use crate::invariants::sample::{open_run, set_stages, steady_run, with_counts};

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
        // (what, counts per 100 ms, drifts)
        let cases = [
            ("even", counts(100, |_| 1_000), false),
            ("scatter of 10 %", counts(100, |i| 950 + scatter(i)), false),
            (
                "a step of 20 % in the middle",
                counts(100, |i| if i < 50 { 1_000 } else { 800 }),
                true,
            ),
            (
                "a step of 2 %",
                counts(100, |i| if i < 50 { 1_000 } else { 980 }),
                false,
            ),
            ("a fall of 20 %", counts(100, |i| 1_000 - 2 * i), true),
            (
                "a rise of 20 % under scatter",
                counts(300, |i| 950 + i * 2 / 3 + scatter(i)),
                true,
            ),
            ("a rise of 2 %", counts(100, |i| 10_000 + 2 * i), false),
            (
                "one bad point",
                counts(100, |i| if i == 80 { 0 } else { 1_000 }),
                false,
            ),
            ("too short", counts(7, |i| 1_000 - 100 * i), false),
            ("just long enough", counts(8, |i| 1_000 - 50 * i), true),
            ("nothing at all", counts(100, |_| 0), false),
            (
                "nothing at first",
                counts(100, |i| if i < 50 { 0 } else { 10 }),
                true,
            ),
        ];
        for (what, counts, drifts) in cases {
            let found = closed(&counts).steadiness();
            assert_eq!(found.drifts, drifts, "{what}: {found:?}");
        }
    }

    #[test]
    fn a_drift_has_its_size() {
        let step = closed(&counts(100, |i| if i < 50 { 1_000 } else { 800 })).steadiness();
        assert!((step.halves_differ.expect("two halves") + 0.2).abs() < 1e-9);
        let fall = closed(&counts(101, |i| 1_000 - 2 * i)).steadiness();
        assert!(
            (fall.trend.expect("a trend") + 0.2).abs() < 0.02,
            "{fall:?}"
        );
        assert!((fall.halves_differ.expect("two halves") + 0.105).abs() < 0.01);
        // The server stopped answering: the series ends, the window does not.
        let mut stopped = closed(&[1_000; 100]);
        stopped.agents[0].workers[0].series.points.truncate(40);
        let stopped = stopped.steadiness();
        assert!(stopped.drifts);
        assert!((stopped.halves_differ.expect("two halves") + 1.0).abs() < 0.3);
    }

    #[test]
    fn a_planned_rate_is_no_drift() {
        let falling = counts(100, |i| 1_000 - 2 * i);
        let mut open = with_counts(open_run(), &falling);
        open.agents[0].workers[0].population.recorded = open.agents[0].workers[0].arrivals.planned;
        assert!(!open.steadiness().drifts);
        assert!(open.steadiness().trend.is_some());
        open.agents[0].workers[0].population.recorded /= 2;
        assert!(open.steadiness().drifts);
        let stage = Stage {
            duration_ns: 1,
            from_per_s: 1.0,
            to_per_s: 2.0,
        };
        set_stages(&mut open, vec![stage]);
        let staged = open.steadiness();
        assert_eq!(
            (staged.drifts, staged.trend, staged.halves_differ),
            (false, None, None)
        );
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
            let found = closed(&counts).steadiness();
            for value in [found.halves_differ, found.trend].into_iter().flatten() {
                prop_assert!(value.is_finite());
            }
        }
    }
}
