//! Cases of intervals of the headline and of quantiles.

use brunt_load::Stage;
use brunt_record::{Histogram, IntervalRecorder, Series, SeriesPoint};
use proptest::prelude::*;

use super::*;
use crate::invariants::sample::{open_run, run, set_stages, steady_run, with_counts};
use crate::{ResponseQuantiles, RunFigures};

const MS: u64 = 1_000_000;
const QUANTILES: [f64; 7] = [0.5, 0.75, 0.9, 0.95, 0.99, 0.999, 0.9999];

/// A run of `window_ns` with these completions, each an offset and a response time.
fn run_of(window_ns: u64, completions: impl IntoIterator<Item = (u64, u64)>) -> Run {
    let mut run = run();
    run.window_ns = window_ns;
    run.latencies.response = Histogram::default();
    run.latencies.unfinished = Histogram::default();
    let mut intervals = IntervalRecorder::default();
    intervals.set_window(window_ns);
    for (offset_ns, response_ns) in completions {
        run.latencies.response.record(response_ns);
        intervals.record(offset_ns, response_ns);
    }
    run.latencies.intervals = intervals.finish(window_ns);
    run
}

/// A run of 10 s with 500 responses in each 100 ms, which scatter by a fifth of a millisecond
/// around what is told of these.
fn even_run(response_ns: impl Fn(u64) -> u64) -> Run {
    let scatter = |index: u64| index * 7_919 % 10_007 * 20;
    let completions =
        (0..50_000).map(|index| (index * 200_000, response_ns(index / 500) + scatter(index)));
    run_of(10_000 * MS, completions)
}

fn interval(run: &Run, q: f64) -> Result<Interval, NoInterval> {
    match run.response_quantile(q) {
        Quantile::Known { ns, interval } => {
            if let Ok(Interval { low_ns, high_ns }) = interval {
                assert!(
                    low_ns <= ns && ns <= high_ns,
                    "{q}: {low_ns} {ns} {high_ns}"
                );
            }
            interval
        }
        other => panic!("{other:?}"),
    }
}

fn width_ns(run: &Run, q: f64) -> u64 {
    let interval = interval(run, q).expect("an interval");
    interval.high_ns - interval.low_ns
}

#[test]
fn ranks_are_those_of_order_statistics() {
    // (samples, q, worth, low, middle, high)
    let cases = [
        (100, 0.5, 100.0, 40, 50, 61),
        (368, 0.99, 368.0, 360, 365, 368),
        (1_000, 0.9, 1_000.0, 881, 900, 920),
        (10_000, 0.99, 10_000.0, 9_880, 9_900, 9_921),
        (6, 0.5, 6.0, 1, 3, 6),
        // Worth a quarter: twice as wide.
        (10_000, 0.99, 2_500.0, 9_860, 9_900, 9_941),
        (10_000, 0.5, 1e-300, 1, 5_000, 10_000),
    ];
    for (samples, q, worth, low, middle, high) in cases {
        let ranks = Ranks { low, middle, high };
        assert_eq!(Ranks::of(samples, q, worth), ranks, "{samples} {q} {worth}");
    }
}

#[test]
fn quantiles_on_the_way_begin_at_the_median() {
    let way = |q: f64| from_median_to(q).collect::<Vec<f64>>();
    assert_eq!(way(0.5), [0.5]);
    assert_eq!(way(0.9), [0.5, 0.75, 0.9]);
    assert_eq!(way(0.8), [0.5, 0.75, 0.8]);
    assert_eq!(way(0.25), [0.5, 0.25]);
    assert_eq!(way(0.2), [0.5, 0.25, 0.2]);
    assert_eq!(way(0.999_999).len(), 9);
}

#[test]
fn neighbours_that_are_alike_widen_the_interval() {
    // Each response time is as often in both runs, so that order statistics are the same; but one
    // run is slow for seconds, the other now and then.
    let level = |interval: u64| MS + interval * 500;
    let drifting = even_run(level);
    let scattered = even_run(|interval| level(interval * 37 % 100));
    let samples = drifting.latencies.response.count();
    let by_ranks = Ranks::of(samples, 0.5, samples as f64);
    let at = |rank| {
        drifting
            .latencies
            .response
            .bucket_at_rank(rank)
            .expect("a rank")
            .0
    };
    let by_ranks_ns = at(by_ranks.high) - at(by_ranks.low);
    assert!(width_ns(&drifting, 0.5) > 10 * by_ranks_ns);
    // Levels that come in turn are more regular than independent ones, for which there is a limit.
    assert!(2 * width_ns(&scattered, 0.5) >= by_ranks_ns);
    assert!(width_ns(&drifting, 0.5) > 3 * width_ns(&scattered, 0.5));
    // Of a tail nothing is known then, and that is said.
    let none = interval(&drifting, 0.99).expect_err("no interval");
    let words = none.to_string();
    assert!(
        words.starts_with("it varied over the window; a run about "),
        "{words}"
    );
    assert!(
        matches!(none, NoInterval::TooAlike { needed: 368, .. }),
        "{words}"
    );
}

#[test]
fn the_ends_are_as_far_off_as_the_distribution_says() {
    // A long tail: above the p99 it is ten times as thin as below.
    let tail = |index: u64| match index * 7_919 % 1_000 {
        place @ 990.. => 10 * MS + (place - 990) * 10 * MS,
        place => MS + place * 9_000,
    };
    let run = run_of(
        10_000 * MS,
        (0..20_000).map(|index| (index * 500_000, tail(index))),
    );
    let Quantile::Known {
        ns,
        interval: Ok(Interval { low_ns, high_ns }),
    } = run.response_quantile(0.99)
    else {
        panic!("an interval");
    };
    assert!(high_ns - ns > 5 * (ns - low_ns), "{low_ns} {ns} {high_ns}");
    let max_ns = run.latencies.response.max_ns().expect("a maximum");
    assert!(high_ns <= max_ns);
}

#[test]
fn values_that_are_not_told_apart_over_time_have_the_width_of_their_bucket() {
    let of = |response_ns: fn(u64) -> u64| {
        run_of(
            10_000 * MS,
            (0..50_000).map(|index| (index * 200_000, response_ns(index / 500))),
        )
    };
    let flat = of(|_| MS);
    assert_eq!(width_ns(&flat, 0.5), 0, "the extremes are known exactly");
    // The level moves within one bucket.
    let bucket = Intervals::bucket_of(MS);
    let hidden = of(|interval| {
        let bucket = Intervals::bucket_of(MS);
        if interval < 50 {
            *bucket.start()
        } else {
            *bucket.end()
        }
    });
    let found = interval(&hidden, 0.5).expect("an interval");
    assert!(
        found.low_ns <= *bucket.start() && found.high_ns >= *bucket.end() - bucket.end() / 1_000
    );
}

#[test]
fn what_the_window_does_not_tell_is_said() {
    let ms = |index: u64| index * MS;
    // Replies in 15 of 80 parts, in one, in none.
    let cases = [
        (
            run_of(1_000 * MS, (0..600).map(|n| (n / 40 * 20 * MS, MS))),
            15,
        ),
        (run_of(1_000 * MS, (0..600).map(|n| (999 * MS, ms(n)))), 1),
    ];
    for (run, parts) in cases {
        let none = interval(&run, 0.5).expect_err("no interval");
        let too_few = NoInterval::TooFewParts { parts, needed: 16 };
        assert_eq!(none, too_few, "{none}");
    }
    let mut unknown = even_run(ms);
    unknown.latencies.intervals = Intervals::default();
    let none = interval(&unknown, 0.5).expect_err("no interval");
    assert!(
        matches!(none, NoInterval::TooFewParts { parts: 0, .. }),
        "{none}"
    );
    // Quantiles of other durations.
    let histogram = &unknown.latencies.response;
    assert!(matches!(
        Quantile::of(histogram, 0.5),
        Quantile::Known {
            interval: Err(NoInterval::NotOverTime),
            ..
        }
    ));
}

#[test]
fn what_was_never_answered_may_come_of_one_event() {
    let spread = |index: u64| MS + index * 7_919 % 10_007 * 100;
    let completions = || (0..100_000).map(|index| (index * 100_000, spread(index)));
    let answered = run_of(10_000 * MS, completions());
    let mut some = run_of(10_000 * MS, completions());
    (0..500).for_each(|_| some.latencies.unfinished.record(20 * MS));
    assert!(width_ns(&some, 0.9) > width_ns(&answered, 0.9));
    // Half of what lies above the p99.
    assert!(interval(&answered, 0.99).is_ok());
    assert!(interval(&some, 0.99).is_err());
}

#[test]
fn a_rate_that_is_planned_to_vary_has_no_interval() {
    let stage = |from_per_s, to_per_s| Stage {
        duration_ns: 5_000 * MS,
        from_per_s,
        to_per_s,
    };
    for (stages, varies) in [
        (vec![], false),
        (vec![stage(10.0, 10.0)], false),
        (vec![stage(10.0, 10.0), stage(10.0, 10.0)], false),
        (vec![stage(10.0, 20.0)], true),
        (vec![stage(10.0, 10.0), stage(20.0, 20.0)], true),
    ] {
        let mut run = even_run(|interval| MS + interval * 37 % 100 * 10_000);
        run.agents[0].workers.truncate(1);
        run.agents[0].workers[0].series = Series::default();
        run.agents[0].workers[0].series.points = vec![SeriesPoint::default(); 100];
        run.plan.model = open_run().plan.model;
        if !stages.is_empty() {
            set_stages(&mut run, stages);
        }
        let planned = Some(NoInterval::PlannedToVary);
        assert_eq!(interval(&run, 0.5).err() == planned, varies);
        assert_eq!(run.successes_interval().err() == planned, varies);
    }
}

fn counted(counts: &[u64]) -> Run {
    with_counts(steady_run(), counts)
}

#[test]
fn a_rate_has_its_interval() {
    let few = NoInterval::TooFewParts {
        parts: 15,
        needed: 16,
    };
    assert_eq!(counted(&[1_000; 15]).successes_interval(), Err(few));
    let even = counted(&[1_000; 20]).successes_interval();
    let even = even.expect("20 points");
    assert!((even.low_per_s - 10_000.0).abs() < 1e-6 && (even.high_per_s - 10_000.0).abs() < 1e-6);
    // Up and down by turns is what a window averages out; slow and then fast is not.
    let by_turns: Vec<u64> = (0..40).map(|index| 900 + index % 2 * 200).collect();
    let mut in_order = by_turns.clone();
    in_order.sort_unstable();
    let half = |counts: &[u64]| {
        let found = counted(counts).successes_interval().expect("40 points");
        (found.high_per_s - found.low_per_s) / 2.0
    };
    assert!(half(&by_turns) < 100.0, "{}", half(&by_turns));
    assert!(half(&in_order) > 1_000.0, "{}", half(&in_order));
    let mut no_window = steady_run();
    no_window.window_ns = 0;
    assert_eq!(no_window.successes_interval(), Err(NoInterval::NoWindow));
}

proptest! {
    #[test]
    fn the_interval_of_a_rate_holds_it(counts in prop::collection::vec(0_u64..2_000, 1..80)) {
        let run = counted(&counts);
        let rate = run.summary().successes_per_s.known();
        match (run.successes_interval(), rate) {
            (Ok(interval), Some(rate)) => {
                prop_assert!(interval.low_per_s >= 0.0);
                prop_assert!(interval.low_per_s <= rate && rate <= interval.high_per_s);
            }
            (interval, _) => prop_assert!(counts.len() < 16, "{:?}", interval),
        }
    }

    #[test]
    fn intervals_hold_their_quantiles_lie_within_the_extremes_and_are_in_order(
        completions in prop::collection::vec((0_u64..1_000 * MS, 1_u64..10_000 * MS), 0..3_000),
        unfinished in prop::collection::vec(0_u64..20_000 * MS, 0..3),
        slow in 1_u64..50,
    ) {
        let mut completions = completions;
        completions.sort_unstable();
        // The last tenth is slow.
        let slowed = |&(at, ns): &(u64, u64)| (at, if at > 900 * MS { ns * slow } else { ns });
        let mut run = run_of(1_000 * MS, completions.iter().map(slowed));
        unfinished.iter().for_each(|&ns| run.latencies.unfinished.record(ns));
        let mut before = (0, 0);
        for q in QUANTILES {
            let Quantile::Known { ns, interval } = run.response_quantile(q) else {
                continue;
            };
            let Ok(Interval { low_ns, high_ns }) = interval else {
                prop_assert!(!interval.expect_err("none").to_string().is_empty());
                continue;
            };
            prop_assert!(low_ns <= ns && ns <= high_ns);
            let (min_ns, max_ns) = (
                run.latencies.response.min_ns().unwrap_or(u64::MAX),
                run.latencies.response.max_ns().unwrap_or(0),
            );
            prop_assert!(min_ns.min(ns) <= low_ns && high_ns <= max_ns.max(ns));
            prop_assert!(before.0 <= low_ns && before.1 <= high_ns);
            before = (low_ns, high_ns);
        }
    }
}
