//! Comparisons of runs: what they claim, and what they leave open.

use super::Standing::{Disturbed, Measured, NoLess};
use super::*;
use brunt_record::Environment;

use crate::invariants::sample::steady_run;
use crate::statistics::reference::Noise;
use crate::{
    ChangeLimit, ComparedRounds, ComparedSide, ComparisonOutcome, ExperimentKind, Judged,
    RoundResponse, RoundUse, RunFigures,
};

const A: [f64; 10] = [
    20_000.0, 20_200.0, 19_900.0, 20_100.0, 20_300.0, 19_800.0, 20_000.0, 20_200.0, 20_100.0,
    19_900.0,
];

fn of_pairs(pairs: impl Iterator<Item = Result<Pair, String>>) -> Comparison {
    Comparison::of_values(Compared::SuccessesPerS, pairs, 1)
}

fn comparison(a: &[f64], b: &[f64]) -> Comparison {
    let pairs = a.iter().zip(b);
    of_pairs(pairs.map(|(a, b)| Pair::of((*a, Measured), (*b, Measured))))
}

#[test]
fn a_clear_difference_is_claimed() {
    let faster = comparison(&A, &A.map(|per_s| per_s * 1.05));
    assert_eq!(faster.claim, Claim::Differs, "{faster:?}");
    let change = faster.change.expect("enough");
    assert!(change.low <= 0.051 && change.high >= 0.049, "{change:?}");
    let (a, b) = faster.medians.expect("some");
    assert!(a < b);
}

/// A drop is at most one whole, however large the noise is.
#[test]
fn a_drop_far_beyond_large_noise_is_claimed() {
    let wild = [1.0, 3.0, 1.1, 2.9, 1.0, 3.1, 0.9, 3.0, 1.0, 2.8].map(|per_s| per_s * 20_000.0);
    let mut slow = wild.map(|per_s| per_s / 300.0);
    slow.rotate_left(2);
    let slower = comparison(&wild, &slow);
    assert!(slower.noise > Some(1.0), "{slower:?}");
    assert_eq!(slower.claim, Claim::Differs, "{slower:?}");
}

#[test]
fn what_is_small_or_unsure_is_not() {
    // Half a percent, though sure.
    let same = comparison(&A, &A.map(|per_s| per_s * 1.005));
    assert!(matches!(same.claim, Claim::NoDifference { visible } if visible >= 0.01));
    // The rounds of one side differ more than the sides.
    let mut other = A;
    other.rotate_left(3);
    let noisy = comparison(&A, &other);
    let is_none = matches!(noisy.claim, Claim::NoDifference { .. });
    assert!(is_none, "{noisy:?}");
}

#[test]
fn rounds_that_do_not_count_are_dropped_with_their_pairs() {
    let drop = |count: usize, of: usize| {
        let pairs = A.iter().cycle().take(of).enumerate();
        of_pairs(pairs.map(|(place, a)| {
            if place < count {
                Err("why".to_owned())
            } else {
                Pair::of((*a, Measured), (*a, Measured))
            }
        }))
    };
    let some = drop(5, 15);
    assert_eq!(some.dropped.len(), 5);
    assert!(matches!(some.claim, Claim::NoDifference { .. }), "{some:?}");
    for (count, of, reason) in [
        (8, 15, "8 of 15 pairs do not count (why)"),
        (4, 10, "6 pairs are too few; 7 are the least"),
        (3, 3, "why in every pair"),
    ] {
        let nothing = drop(count, of);
        assert_eq!(nothing.claim, Claim::Nothing(reason.to_owned()));
        assert_eq!((nothing.change, nothing.noise), (None, None));
    }
}

#[test]
fn disturbed_pairs_count_where_there_is_nothing_better() {
    let with = |disturbed: usize, of: usize| {
        let pairs = A.iter().cycle().take(of).enumerate();
        of_pairs(pairs.map(|(place, a)| {
            let is_disturbed = place < disturbed;
            let standing = if is_disturbed { Disturbed } else { Measured };
            Pair::of((*a, standing), (*a * 1.05, Measured))
        }))
    };
    for (disturbed, of, dropped) in [(0, 10, 0), (5, 15, 5), (8, 15, 0), (3, 8, 0), (10, 10, 0)] {
        let found = with(disturbed, of);
        assert_eq!(found.claim, Claim::Differs, "{disturbed} of {of}");
        assert_eq!(found.dropped.len(), dropped, "{disturbed} of {of}");
        assert_eq!(found.disturbed, disturbed - dropped, "{disturbed} of {of}");
    }
    let mut record = RoundRecord::of(&Judged::of(&steady_run()));
    record.verdict = Verdict::Disturbed;
    for compared in [Compared::SuccessesPerS, Compared::ResponseQuantile(0.5)] {
        assert_eq!(Standing::of(compared, &record), Ok(Disturbed));
        assert!(is_lost(compared, &record, &record), "another is made");
    }
    assert!(!is_lost(Compared::ServerCpu, &record, &record));
    let single = SingleRun::of(&Judged::of(&steady_run()), "a.json".to_owned());
    let side = side(vec![record], Some(single));
    let runs = Comparison::of(Compared::SuccessesPerS, &side, &side, 1);
    assert!(runs.is_nothing(), "one run does not show how runs vary");
}

/// A side with these rounds.
fn side(rounds: Vec<RoundRecord>, single_run: Option<SingleRun>) -> ComparedSide {
    ComparedSide {
        label: None,
        url: String::new(),
        server: None,
        rounds,
        single_run,
    }
}

/// The pairs of [`A`] and so many times that, with the places at which either is a bound.
fn bounded(ratio: f64, is_bound: impl Fn(usize) -> (bool, bool)) -> Comparison {
    of_pairs(A.iter().enumerate().map(|(place, a)| {
        let standing = |is_bound| if is_bound { NoLess } else { Measured };
        let (of_a, of_b) = is_bound(place);
        Pair::of((*a, standing(of_a)), (a * ratio, standing(of_b)))
    }))
}

#[test]
fn a_bound_that_suffices_is_a_claim() {
    let at_least = bounded(263.0, |_| (false, true));
    assert_eq!(at_least.claim, Claim::Differs, "{at_least:?}");
    assert_eq!(at_least.bound, Some(Bound::AtLeast));
    let change = at_least.change.expect("one end");
    let is_open = change.low > 250.0 && change.high.is_infinite();
    assert!(is_open, "{change:?}");
    assert_eq!((at_least.dropped.len(), at_least.p_value), (0, None));
    let at_most = bounded(0.8, |_| (true, false));
    assert_eq!(at_most.bound, Some(Bound::AtMost), "{at_most:?}");
    assert_eq!(at_most.claim, Claim::Differs);
    // Some bounds among values, all of them towards the claim.
    let some = bounded(1.3, |place| (false, place % 3 == 0));
    assert_eq!(some.bound, Some(Bound::AtLeast), "{some:?}");
}

#[test]
fn a_bound_that_does_not_suffice_is_none() {
    for (ratio, is_bound) in [
        // The slower one could be faster than was seen.
        (0.8, (|_| (false, true)) as fn(usize) -> (bool, bool)),
        (1.3, |_| (true, false)),
        (1.3, |place| (place % 2 == 0, place % 2 == 1)),
    ] {
        let nothing = bounded(ratio, is_bound);
        let all = "in 10 of 10 pairs";
        let is_nothing = matches!(&nothing.claim, Claim::Nothing(why) if why.contains(all));
        assert!(is_nothing, "{nothing:?}");
        assert_eq!((nothing.change, nothing.bound), (None, None));
    }
    let neither = bounded(1.3, |_| (true, true));
    let reason = "brunt was the limit in every pair".to_owned();
    assert_eq!(neither.claim, Claim::Nothing(reason));
}

#[test]
fn a_few_bounds_are_left_out() {
    let found = bounded(1.1, |place| (place == 4, place == 7));
    let places: Vec<_> = found.dropped.iter().map(|(place, _)| *place).collect();
    assert_eq!(places, [4, 7]);
    assert_eq!((found.claim, found.bound), (Claim::Differs, None));
}

#[test]
fn rounds_give_what_is_compared_or_why_they_do_not_count() {
    let (whole, mut broken) = (steady_run(), steady_run());
    broken.agents[0].workers[0].tallies.measure.requests_sent += 1_000_000;
    let record = |run| RoundRecord::of(&Judged::of(run));
    let (whole, broken) = (record(&whole), record(&broken));
    let (rate, _) = measured(Compared::SuccessesPerS, &whole).expect("it counts");
    let p50 = measured(Compared::ResponseQuantile(0.5), &whole);
    let (p50_ns, _) = p50.expect("it counts");
    assert!(rate > 1_000.0, "{rate}");
    assert!((900_000.0..1_100_000.0).contains(&p50_ns), "{p50_ns}");
    let mut few = whole.clone();
    few.response.p99_9_ns = None;
    let reason = "3 replies, 3,688 are needed".to_owned();
    few.missing.insert("p99.9".to_owned(), reason.clone());
    let p99_9 = Compared::ResponseQuantile(0.999);
    assert_eq!(measured(p99_9, &few), Err(reason));
    assert!(
        !is_lost(p99_9, &few, &few),
        "another pair has no more replies"
    );
    let reason = measured(Compared::SuccessesPerS, &broken).expect_err("it is broken");
    assert!(reason.contains("withheld"), "{reason}");
    let mut limited = whole.clone();
    limited.verdict = Verdict::ClientLimited;
    assert_eq!(
        measured(Compared::SuccessesPerS, &limited),
        Ok((rate, NoLess))
    );
    // Nothing follows of a response time from one at a rate that brunt did not keep.
    assert!(measured(Compared::ResponseQuantile(0.5), &limited).is_err());
    for (a, b, lost) in [
        (&whole, &whole, false),
        (&whole, &limited, false),
        (&limited, &limited, true),
        (&limited, &broken, true),
        (&broken, &whole, true),
    ] {
        assert_eq!(is_lost(Compared::SuccessesPerS, a, b), lost, "{a:?} {b:?}");
    }
    let a = side(vec![whole.clone(), whole.clone()], None);
    let b = side(vec![whole, broken], None);
    let pairs = Comparison::of(Compared::SuccessesPerS, &a, &b, 1);
    assert_eq!((pairs.pairs, pairs.dropped.len()), (2, 1));
}

#[test]
fn two_runs_are_compared_by_their_own_intervals() {
    let run = steady_run();
    let record = RoundRecord::of(&Judged::of(&run));
    let single = SingleRun::of(&Judged::of(&run), "a.json".to_owned());
    let compare = |other: &RoundRecord, of_other: &SingleRun| {
        let first = side(vec![record.clone()], Some(single.clone()));
        let other = side(vec![other.clone()], Some(of_other.clone()));
        Comparison::of(Compared::SuccessesPerS, &first, &other, 1)
    };
    let same = compare(&record, &single);
    assert_eq!((same.basis, same.pairs), (Basis::SingleRuns, 1));
    assert!(matches!(same.claim, Claim::NoDifference { .. }), "{same:?}");
    let scaled = |ratio: f64| {
        let (mut other, mut of_other) = (record.clone(), single.clone());
        other.successes_per_s = record.successes_per_s.map(|per_s| per_s * ratio);
        let range = of_other
            .ranges
            .get_mut("successes_per_s")
            .expect("a steady rate");
        (range.low, range.high) = (range.low * ratio, range.high * ratio);
        (other, of_other)
    };
    let (other, of_other) = scaled(1.5);
    let faster = compare(&other, &of_other);
    assert_eq!(faster.claim, Claim::Differs, "{faster:?}");
    let change = faster.change.expect("two intervals");
    assert!((change.value - 0.5).abs() < 1e-9, "{change:?}");
    assert!(change.low < 0.5 && change.high > 0.5, "{change:?}");
    // Of a bound one end is known, which may suffice.
    let limited = |mut record: RoundRecord| {
        record.verdict = Verdict::ClientLimited;
        record
    };
    let at_least = compare(&limited(other.clone()), &of_other);
    assert_eq!(at_least.bound, Some(Bound::AtLeast), "{at_least:?}");
    let (slower, of_slower) = scaled(0.5);
    let nothing = compare(&limited(slower), &of_slower);
    let reason = "brunt was the limit of one side, so its rate is only a lower bound".to_owned();
    assert_eq!(nothing.claim, Claim::Nothing(reason));
    // What does not count, or has no interval, decides nothing.
    let mut without = of_other;
    without.ranges.clear();
    without
        .missing
        .insert("successes_per_s".to_owned(), "why".to_owned());
    let nothing = compare(&other, &without);
    let reason = "the second does not count (it has no interval: why)".to_owned();
    assert_eq!(nothing.claim, Claim::Nothing(reason));
    assert!(nothing.medians.is_some() && nothing.change.is_none());
    let empty = side(Vec::new(), Some(single));
    let none = Comparison::of(Compared::SuccessesPerS, &empty, &empty, 1);
    let reason = "neither counts (no figures are stored)".to_owned();
    assert_eq!(none.claim, Claim::Nothing(reason));
}

#[test]
fn too_few_pairs_tell_nothing() {
    let few = comparison(&A[..5], &A[..5]);
    let is_few = matches!(&few.claim, Claim::Nothing(why) if why.contains("too few"));
    assert!(is_few, "{few:?}");
    let none = comparison(&[], &[]);
    assert!(matches!(none.claim, Claim::Nothing(_)) && none.medians.is_none());
}

#[test]
fn limits_alone_decide_where_there_are_any() {
    let limit = ChangeLimit {
        compared: Compared::ServerCpu,
        change: 0.5,
        is_rise: true,
    };
    // Of the quantiles nothing is known, of the server's CPU much.
    let with_cpus = |cpus: f64| {
        let mut round = RoundRecord::of(&Judged::of(&steady_run()));
        round.response = RoundResponse::default();
        round.server = Some(RoundUse {
            user_cpus: Some(cpus),
            system_cpus: Some(0.0),
            resident_bytes: None,
        });
        side(vec![round; 10], None)
    };
    let quantile = Compared::ResponseQuantile(0.99);
    for (cpus, limits, outcome) in [
        (1.0, vec![limit], ComparisonOutcome::Passed),
        (2.0, vec![limit], ComparisonOutcome::Failed),
        (1.0, vec![], ComparisonOutcome::Undecided),
    ] {
        let kept = usize::from(outcome == ComparisonOutcome::Passed);
        let found = ComparedRounds {
            kind: ExperimentKind::Comparison,
            format: ComparedRounds::FORMAT,
            brunt_version: String::new(),
            load: None,
            environment: Environment::default(),
            compared: vec![quantile, Compared::ServerCpu],
            limits,
            pairs_planned: None,
            looks: None,
            ended_early: None,
            sides: vec![with_cpus(1.0), with_cpus(cpus)],
        };
        assert_eq!(found.outcome(), outcome, "{cpus}");
        assert_eq!(found.limits_that(LimitStands::Kept).len(), kept, "{cpus}");
        assert!(!found.is_decided());
    }
}

fn with(value: f64, low: f64, high: f64) -> (f64, Range) {
    (value, Range { low, high })
}

#[test]
fn a_ratio_has_the_margins_of_both_in_squares() {
    let margins = |a, b| log_ratio(a, b).expect("figures above 0");
    // 3 and 4 make 5, on each side for itself.
    let even = |value: f64, by: f64| with(value, value / by.exp(), value * by.exp());
    let found = margins(even(10.0, 0.03), even(20.0, 0.04));
    assert!((found.value - 2.0_f64.ln()).abs() < 1e-12, "{found:?}");
    assert!((found.value - found.low - 0.05).abs() < 1e-12, "{found:?}");
    assert!((found.high - found.value - 0.05).abs() < 1e-12, "{found:?}");
    // What A may be more, B's share of it may be less.
    let a = with(1.0, 1.0, 0.03_f64.exp());
    let b = with(1.0, (-0.04_f64).exp(), 1.0);
    let found = margins(a, b);
    let is_near = (found.low + 0.05).abs() < 1e-12 && found.high.abs() < 1e-12;
    assert!(is_near, "{found:?}");
}

#[test]
fn what_has_no_logarithm_has_no_ratio() {
    let sound = with(1.0, 0.5, 2.0);
    assert!(log_ratio(sound, sound).is_some());
    for odd in [
        with(0.0, 0.0, 2.0),
        with(1.0, 0.0, 2.0),
        with(1.0, -1.0, 2.0),
        with(1.0, 0.5, f64::INFINITY),
        with(f64::NAN, 0.5, 2.0),
        with(3.0, 0.5, 2.0),
    ] {
        assert_eq!(log_ratio(sound, odd), None, "{odd:?}");
        assert_eq!(log_ratio(odd, sound), None, "{odd:?}");
    }
}

#[test]
fn the_interval_holds_the_ratio_as_often_as_it_says() {
    let mut noise = Noise::new(7);
    let mut holds = 0;
    for _ in 0..4_000 {
        // A figure whose logarithm is off by a known deviation, with its exact interval.
        let mut figure = |mean: f64, deviation: f64| {
            let value = mean * (deviation * noise.normal()).exp();
            let by = (1.96 * deviation).exp();
            with(value, value / by, value * by)
        };
        let (a, b) = (figure(1_000.0, 0.01), figure(1_050.0, 0.02));
        let Effect { low, high, .. } = log_ratio(a, b).expect("figures above 0");
        holds += u32::from((low..=high).contains(&1.05_f64.ln()));
    }
    let share = f64::from(holds) / 4_000.0;
    assert!((0.94..0.96).contains(&share), "{share}");
}

#[test]
fn a_run_gives_its_intervals_or_why_there_is_none() {
    let run = steady_run();
    let single = SingleRun::of(&Judged::of(&run), "a.json".to_owned());
    let rate = single.ranges["successes_per_s"];
    let per_s = run.summary().successes_per_s.known().expect("a rate");
    assert!(rate.low <= per_s && per_s <= rate.high, "{rate:?}");
    assert_eq!(single.range(Compared::SuccessesPerS), Ok(rate));
    let p50 = single.range(Compared::ResponseQuantile(0.5));
    assert_eq!(p50, Ok(single.ranges["p50"]));
    let error = single.range(Compared::ResponseQuantile(0.42));
    assert_eq!(error, Err("it has no interval".to_owned()));
    let mut short = run;
    short.window_ns = 0;
    let single = SingleRun::of(&Judged::of(&short), String::new());
    let found = single.range(Compared::SuccessesPerS);
    let reason = format!("it has no interval: {}", single.missing["successes_per_s"]);
    assert_eq!(found, Err(reason));
}
