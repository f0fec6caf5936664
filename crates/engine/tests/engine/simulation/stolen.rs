//! Bursts in which the hypervisor takes the CPUs of client and server: the figures of the rest are
//! those of the same server without.

use brunt_judge::{Judged, Quantile, ResponseQuantiles, RunFigures, SignalId, Verdict};
use brunt_load::{ArrivalProcess, Plan};
use brunt_record::Run;
use brunt_testkit::{Bursts, ServiceTime, SimHost, SimSettings, Stall};

use super::rate;
use crate::common::{
    MS, S, US, expect_valid, many, many_long, requests_by_plan, serving, simulate,
};

/// Seeds that are tried; `BRUNT_STEAL_SEEDS` says another number.
const SEEDS: u64 = 4;
/// Mean length of a burst: from 10 to 80 ms.
const BURST_MEAN_NS: u64 = 45 * MS;

fn seeds() -> std::ops::RangeInclusive<u64> {
    let wished = std::env::var("BRUNT_STEAL_SEEDS").ok();
    1..=wished.and_then(|text| text.parse().ok()).unwrap_or(SEEDS)
}

/// Bursts of 10 to 80 ms that take so many hundredths of the time.
fn bursts(percent: u64, seed: u64) -> Option<Bursts> {
    (percent > 0).then(|| Bursts {
        shortest_ns: 10 * MS,
        longest_ns: 80 * MS,
        period_ns: many_long(BURST_MEAN_NS * 100 / percent),
        seed,
    })
}

/// A server with one place that takes 400 µs, more or less.
fn settings(percent: u64, seed: u64) -> SimSettings {
    let mut settings = serving(|server| {
        server.service = ServiceTime::Uniform {
            min_ns: 200 * US,
            max_ns: 600 * US,
        };
        server.concurrency = Some(many(1));
    });
    settings.host = Some(SimHost {
        bursts: bursts(percent, seed),
        ..SimHost::default()
    });
    settings.seed = seed;
    settings
}

fn closed() -> Plan {
    let mut plan = super::closed(16, 1);
    plan.load.warmup_ns = 200 * MS;
    plan.load.stop.duration_ns = Some(10 * S);
    plan
}

/// Half of what the server can do.
fn open(process: ArrivalProcess) -> Plan {
    let mut plan = closed();
    requests_by_plan(&mut plan, rate(process, 1_250.0, 1), 1_000_000);
    plan
}

fn run(plan: &Plan, settings: &SimSettings) -> Run {
    let (run, _) = simulate(plan.clone(), settings).expect("a run");
    expect_valid(&run, &format!("seed {}", settings.seed));
    run
}

fn p99_ns(quantile: Quantile) -> f64 {
    match quantile {
        Quantile::Known { ns, .. } => ns as f64,
        other => panic!("{other:?}"),
    }
}

fn rate_of(run: &Run) -> f64 {
    run.summary().successes_per_s.known().expect("a window")
}

/// How far throughput and p99 of the clean parts are from those without steal; absent where the
/// clean parts are too few.
fn moved(plan: &Plan, percent: u64, seed: u64) -> Option<(f64, f64)> {
    let free = run(plan, &settings(0, seed));
    let stolen = run(plan, &settings(percent, seed));
    let judged = Judged::of(&stolen);
    let clean = judged.clean.expect("something was stolen");
    let Some(figures) = clean.figures else {
        assert!(clean.clean_ns < Some(5 * S), "{percent} %, seed {seed}");
        return None;
    };
    assert_eq!(clean.clean_ns, Some(figures.clean_ns));
    let p99 = p99_ns(figures.response_quantile(0.99)) / p99_ns(free.response_quantile(0.99));
    Some((figures.successes_per_s / rate_of(&free) - 1.0, p99 - 1.0))
}

#[test]
fn bursts_of_steal_do_not_move_the_figures_of_the_rest() {
    let plans = [
        ("closed", closed()),
        ("constant", open(ArrivalProcess::Constant)),
        ("Poisson", open(ArrivalProcess::Poisson)),
    ];
    for (what, plan) in plans {
        let is_random = what == "Poisson";
        // Of a tenth, a load at random is mostly left too little.
        let percents = if is_random { &[2, 5][..] } else { &[2, 5, 10] };
        for &percent in percents {
            let (mut rates, mut p99s) = (Vec::new(), Vec::new());
            for seed in seeds() {
                if let Some((of_rate, of_p99)) = moved(&plan, percent, seed) {
                    rates.push(of_rate);
                    p99s.push(of_p99);
                }
            }
            let tried = seeds().count();
            let most = |moves: &[f64]| {
                moves
                    .iter()
                    .fold(0.0, |most: f64, moved| most.max(moved.abs()))
            };
            let mean = |moves: &[f64]| (moves.iter().sum::<f64>() / moves.len() as f64).abs();
            let figures = format!(
                "{what}, {percent} %: throughput moved by {:.2} % at most ({:.2} % on average), \
                 p99 by {:.2} % ({:.2} %); enough time in {} of {tried}",
                100.0 * most(&rates),
                100.0 * mean(&rates),
                100.0 * most(&p99s),
                100.0 * mean(&p99s),
                rates.len()
            );
            println!("{figures}");
            // How many of 12,500 random arrivals lie in a part of the window is chance, too.
            let chance = if is_random { 3.0 } else { 1.0 };
            assert!(most(&rates) <= 0.01 * chance, "{figures}");
            assert!(most(&p99s) <= 0.05 * chance, "{figures}");
            assert!(mean(&rates) <= 0.01 && mean(&p99s) <= 0.05, "{figures}");
            let needed = if percent < 10 { tried } else { tried / 4 };
            assert!(rates.len() >= needed, "{figures}");
        }
    }
}

#[test]
fn a_third_of_the_time_leaves_too_little() {
    for seed in seeds() {
        let run = run(&closed(), &settings(30, seed));
        let judged = Judged::of(&run);
        assert!(judged.clean.is_some_and(|clean| clean.figures.is_none()));
        let judgement = &judged.judgement;
        assert_eq!(judgement.verdict, Verdict::Disturbed);
        assert_eq!(judgement.decisive, [SignalId::Steal]);
        let mut signals = judgement.signals.iter();
        let names_it = signals.any(|signal| signal.detail.contains("only"));
        assert!(names_it, "{judgement:#?}");
    }
}

#[test]
fn the_verdict_is_found_on_the_rest_and_says_so() {
    for seed in seeds() {
        let judgement = run(&closed(), &settings(5, seed)).judge();
        assert_eq!(judgement.verdict, Verdict::ServerLimited, "{judgement:#?}");
        let ending = "s of 10.0 s without CPU steal)";
        assert!(judgement.because.ends_with(ending), "{judgement:#?}");
        // A rate that was met was met.
        for percent in [5, 30] {
            let met = run(&open(ArrivalProcess::Constant), &settings(percent, seed)).judge();
            assert_eq!(met.verdict, Verdict::RateLimited, "{percent} %: {met:#?}");
            assert!(met.because.contains("steal"), "{met:#?}");
        }
    }
}

#[test]
fn what_the_server_does_is_never_left_out() {
    let stall = Stall {
        silence_ns: 300 * MS,
        period_ns: many_long(1_700 * MS),
    };
    for plan in [closed(), open(ArrivalProcess::Constant)] {
        for seed in seeds() {
            let with_stalls = |percent| {
                let mut settings = settings(percent, seed);
                settings.server.stall = Some(stall);
                settings
            };
            // Nothing was stolen.
            let free = run(&plan, &with_stalls(0));
            assert!(Judged::of(&free).clean.is_none());
            let stolen = run(&plan, &with_stalls(5));
            let clean = Judged::of(&stolen).clean.and_then(|clean| clean.figures);
            let clean = clean.expect("time enough");
            // Six stalls of 10 s are few: some of each are beside bursts.
            let moved = clean.successes_per_s / rate_of(&free) - 1.0;
            assert!(moved.abs() < 0.1, "seed {seed}: {moved}");
            let max_ns = clean.response.max_ns().unwrap_or(0);
            assert!(max_ns > 290 * MS, "seed {seed}: {max_ns}");
        }
    }
}
