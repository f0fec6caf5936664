//! Printed intervals of short runs against servers whose quantiles and rates are known: they hold
//! the truth as often as they say. `brunt-judge` tries its own arithmetic on far more runs; here
//! the figures have come through schedule, worker and recorder.

use brunt_judge::{Quantile, ResponseQuantiles, RunFigures};
use brunt_load::ArrivalProcess;
use brunt_record::Run;
use brunt_testkit::ServiceTime;

use super::{at_the_door, closed, open_loop, rate, run};
use crate::common::{MS, S, expect_valid};

/// Simulated runs of each kind.
const RUNS: u64 = 40;
/// Least runs of one kind that must hold the truth: of 40 with 90 of 100 each, fewer do so in 5 of
/// 1,000 cases (binomial).
const HELD_LEAST: u64 = 31;
/// Least share that must hold it over all kinds.
const HELD_SHARE: f64 = 0.9;
const LENGTHS_S: [u64; 2] = [1, 2];
const QUANTILES: [f64; 2] = [0.5, 0.99];
/// Mean service time when the simulation begins.
const MEAN_NS: f64 = 1e6;
/// Parts of the service time that are added per second: a steady server, and one that drifts.
const DRIFTS: [f64; 2] = [0.0, 0.1];
/// Requests per second of the open loop; the closed one has as many when the simulation begins.
const RATE_PER_S: f64 = 4_000.0;
/// Connections of the closed loop.
const CONNECTIONS: u32 = 4;
/// None waits in brunt: so many requests are never at the server at once.
const PLENTY: u32 = 100;
/// Steps in which is integrated over time.
const STEPS: u32 = 1_000;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Loop {
    Closed,
    Open,
}

/// What a server and a window are like, and so what is true of them.
#[derive(Clone, Copy, Debug)]
struct Kind {
    load: Loop,
    drift_per_s: f64,
    length_s: u64,
}

impl Kind {
    /// One run, from `seed`.
    fn run(self, seed: u64) -> Run {
        let length_ns = self.length_s * S;
        let plan = match self.load {
            Loop::Open => {
                let schedule = rate(ArrivalProcess::Poisson, RATE_PER_S, seed);
                open_loop(schedule, PLENTY, length_ns)
            }
            Loop::Closed => {
                let mut plan = closed(CONNECTIONS, 1);
                plan.load.warmup_ns = 0;
                plan.load.stop.duration_ns = Some(length_ns);
                plan
            }
        };
        let mut settings = at_the_door(|server| {
            server.service = ServiceTime::Exponential { mean_ns: MS };
            server.drift_per_s = self.drift_per_s;
        });
        settings.seed = seed;
        let (run, _) = run(plan, &settings);
        expect_valid(&run, &format!("{self:?}, seed {seed}"));
        run
    }

    /// How many times slower than at first the server is, at even steps of a window that begins
    /// with the simulation.
    fn slower(self) -> impl Iterator<Item = f64> {
        (0..STEPS).map(move |step| {
            let at_s = (f64::from(step) + 0.5) / f64::from(STEPS) * self.length_s as f64;
            1.0 + self.drift_per_s * at_s
        })
    }

    /// Part of all requests that come per step, where each step of even rate has 1: those of a
    /// closed loop come as fast as the server answers.
    fn requests_at(self, slower: f64) -> f64 {
        match self.load {
            Loop::Closed => 1.0 / slower,
            Loop::Open => 1.0,
        }
    }

    fn rate_per_s(self) -> f64 {
        let sum: f64 = self.slower().map(|slower| self.requests_at(slower)).sum();
        RATE_PER_S * sum / f64::from(STEPS)
    }

    /// The quantile of the response times of all such windows: those of each instant are
    /// exponentially distributed.
    fn quantile_ns(self, q: f64) -> f64 {
        let all: f64 = self.slower().map(|slower| self.requests_at(slower)).sum();
        let share_up_to = |ns: f64| -> f64 {
            let up_to = |slower: f64| 1.0 - (-ns / MEAN_NS / slower).exp();
            let parts = self
                .slower()
                .map(|slower| self.requests_at(slower) * up_to(slower));
            parts.sum::<f64>() / all
        };
        let (mut low, mut high) = (0.0, 100.0 * MEAN_NS);
        for _ in 0..60 {
            let middle = f64::midpoint(low, high);
            if share_up_to(middle) < q {
                low = middle;
            } else {
                high = middle;
            }
        }
        high
    }
}

/// Intervals of one figure.
#[derive(Clone, Copy, Debug, Default)]
struct Tried {
    printed: u64,
    held: u64,
}

impl Tried {
    fn add(&mut self, interval: Option<(f64, f64)>, truth: f64) {
        if let Some((low, high)) = interval {
            self.printed += 1;
            self.held += u64::from((low..=high).contains(&truth));
        }
    }
}

fn quantile_interval(run: &Run, q: f64) -> Option<(f64, f64)> {
    let Quantile::Known { interval, .. } = run.response_quantile(q) else {
        panic!("{q} of {} is not known", run.latencies.response.count());
    };
    let interval = interval.ok()?;
    Some((interval.low_ns as f64, interval.high_ns as f64))
}

fn rate_interval(run: &Run) -> Option<(f64, f64)> {
    let interval = run.successes_interval().ok()?;
    Some((interval.low_per_s, interval.high_per_s))
}

/// The intervals of the median, of p99 and of the rate over all runs of a kind.
fn try_out(kind: Kind) -> [Tried; 3] {
    let truth_ns = QUANTILES.map(|q| kind.quantile_ns(q));
    let rate_per_s = kind.rate_per_s();
    let mut tried = [Tried::default(); 3];
    for seed in 1..=RUNS {
        let run = kind.run(seed);
        for ((q, truth_ns), tried) in QUANTILES.into_iter().zip(truth_ns).zip(&mut tried) {
            tried.add(quantile_interval(&run, q), truth_ns);
        }
        tried[2].add(rate_interval(&run), rate_per_s);
    }
    tried
}

#[test]
fn short_runs_hold_what_is_true_of_the_server() {
    let (mut printed, mut held) = (0, 0);
    for load in [Loop::Closed, Loop::Open] {
        for drift_per_s in DRIFTS {
            for length_s in LENGTHS_S {
                let kind = Kind {
                    load,
                    drift_per_s,
                    length_s,
                };
                for (figure, tried) in ["p50", "p99", "rate"].into_iter().zip(try_out(kind)) {
                    let words = format!("{kind:?}, {figure}: {tried:?}");
                    assert!(tried.printed * 10 >= RUNS * 9, "{words}");
                    let missed = tried.printed - tried.held;
                    assert!(missed <= RUNS - HELD_LEAST, "{words}");
                    printed += tried.printed;
                    held += tried.held;
                }
            }
        }
    }
    assert!(
        held as f64 >= HELD_SHARE * printed as f64,
        "{held} of {printed}"
    );
}
