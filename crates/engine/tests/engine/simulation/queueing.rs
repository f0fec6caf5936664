//! Servers of queueing theory: the open loop shows the response times of the textbook.
//!
//! Where a figure is an estimate, the estimates of ten independent runs give its standard error.
//! The truth lies within six of them in all but 2 of 10,000 cases (Student's t, 9 degrees of
//! freedom).

use brunt_judge::RunFigures;
use brunt_load::ArrivalProcess;
use brunt_record::Run;
use brunt_testkit::{ServiceTime, SimSettings};

use super::{at_the_door, even_rate, faithful, open_loop, rate, run, textbook};
use crate::common::{MS, S, US, many};

const RUNS: u64 = 10;
const STANDARD_ERRORS: f64 = 6.0;
/// What a histogram's buckets may add to a value.
const BUCKET: f64 = 0.001;
/// Mean service time of the servers here.
const SERVICE_NS: f64 = 1e6;
/// None waits in brunt: so many requests are never at the server at once.
const PLENTY: u32 = 500;

/// Independent estimates of one figure.
struct Estimates {
    mean: f64,
    standard_error: f64,
}

impl Estimates {
    fn of(values: &[f64]) -> Self {
        let count = values.len() as f64;
        let mean = values.iter().sum::<f64>() / count;
        let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
        Self {
            mean,
            standard_error: (squares / (count - 1.0) / count).sqrt(),
        }
    }

    /// Refuses estimates that are not of `truth`, or too coarse to tell.
    fn expect(&self, truth: f64, what: &str) {
        let Self {
            mean,
            standard_error,
        } = *self;
        let off = (mean - truth).abs();
        assert!(
            off <= STANDARD_ERRORS * standard_error + BUCKET * truth,
            "{what}: {mean:.0} ± {standard_error:.0}, the truth is {truth:.0}"
        );
        assert!(
            standard_error < 0.03 * truth,
            "{what}: {mean:.0} ± {standard_error:.0} is too coarse"
        );
    }
}

/// A server that serves one request after the other.
fn one_at_a_time(service: ServiceTime, seed: u64) -> SimSettings {
    let mut settings = at_the_door(|server| {
        server.service = service;
        server.concurrency = Some(many(1));
    });
    settings.seed = seed;
    settings
}

/// Runs with Poisson arrivals, whose rate makes the server busy for this share of the time.
fn poisson_runs(service: ServiceTime, mean_ns: f64, busy: f64, connections: u32) -> Vec<Run> {
    let of_seed = |seed| {
        let schedule = rate(ArrivalProcess::Poisson, busy * 1e9 / mean_ns, seed);
        let mut plan = open_loop(schedule, connections, 60 * S);
        plan.load.warmup_ns = 5 * S;
        let (run, _) = faithful(&plan, &one_at_a_time(service, seed), "queueing");
        assert!(connections == 1 || run.summary().arrivals.waited == 0);
        run
    };
    (0..RUNS).map(of_seed).collect()
}

fn quantiles(runs: &[Run], q: f64) -> Estimates {
    let of_run = |run: &Run| run.latencies.response.quantile_ns(q).expect("latencies") as f64;
    Estimates::of(&runs.iter().map(of_run).collect::<Vec<_>>())
}

fn means(runs: &[Run]) -> Estimates {
    let of_run = |run: &Run| run.latencies.response.mean_ns().expect("latencies");
    Estimates::of(&runs.iter().map(of_run).collect::<Vec<_>>())
}

#[test]
fn exponential_service_gives_exponential_response_times() {
    let service = ServiceTime::Exponential {
        mean_ns: SERVICE_NS as u64,
    };
    for busy in [0.5, 0.8] {
        let runs = poisson_runs(service, SERVICE_NS, busy, PLENTY);
        // M/M/1: the time in the system is exponential with this mean.
        let mean_ns = SERVICE_NS / (1.0 - busy);
        means(&runs).expect(mean_ns, &format!("mean at {busy}"));
        for q in [0.5_f64, 0.9, 0.99] {
            let truth = -(1.0 - q).ln() * mean_ns;
            quantiles(&runs, q).expect(truth, &format!("{q}-quantile at {busy}"));
        }
        // With one connection the same requests wait in brunt, and from the planned instant it is
        // the same time, to the nanosecond.
        let waiting = poisson_runs(service, SERVICE_NS, busy, 1);
        for (run, same) in runs.iter().zip(&waiting) {
            assert_eq!(run.latencies.response, same.latencies.response);
            assert!(same.summary().arrivals.waited > 0);
            // What a loop that waits for replies would have shown: the service alone.
            let shown_ns = same.latencies.service.mean_ns().expect("latencies");
            assert!((shown_ns / SERVICE_NS - 1.0).abs() < 0.03, "{shown_ns}");
        }
    }
}

/// The probability that the wait before a constant service is at most `wait` services long: the
/// formula of Crommelin (1932) for one server.
fn waits_at_most(wait: f64, busy: f64) -> f64 {
    let mut sum = 0.0;
    for passed in 0..=wait as u32 {
        let rest = busy * (wait - f64::from(passed));
        let factorial: f64 = (1..=passed).map(f64::from).product();
        sum += (-rest).powi(passed as i32) / factorial * rest.exp();
    }
    (1.0 - busy) * sum
}

/// The wait in services that is not exceeded with this probability.
fn longest_wait(q: f64, busy: f64) -> f64 {
    let (mut low, mut high) = (0.0, 20.0);
    for _ in 0..60 {
        let middle = (low + high) / 2.0;
        if waits_at_most(middle, busy) < q {
            low = middle;
        } else {
            high = middle;
        }
    }
    high
}

#[test]
fn constant_service_gives_the_waits_of_crommelin() {
    for busy in [0.5, 0.8] {
        let runs = poisson_runs(ServiceTime::Constant(MS), SERVICE_NS, busy, PLENTY);
        // M/D/1 (Pollaczek and Khinchine).
        let mean_ns = SERVICE_NS * (1.0 + busy / (2.0 * (1.0 - busy)));
        means(&runs).expect(mean_ns, &format!("mean at {busy}"));
        for q in [0.9, 0.99, 0.999] {
            let truth = SERVICE_NS * (1.0 + longest_wait(q, busy));
            quantiles(&runs, q).expect(truth, &format!("{q}-quantile at {busy}"));
        }
        for run in &runs {
            assert_eq!(run.latencies.response.min_ns(), Some(MS));
        }
        let waiting = poisson_runs(ServiceTime::Constant(MS), SERVICE_NS, busy, 1);
        for (run, same) in runs.iter().zip(&waiting) {
            assert_eq!(run.latencies.response, same.latencies.response);
            assert_eq!(same.latencies.service.max_ns(), Some(MS));
        }
    }
}

#[test]
fn rare_slow_requests_make_the_others_wait() {
    // 1 in 100 takes 10 ms, the others 0.5 ms.
    let service = ServiceTime::Bimodal {
        usual_ns: 500 * US,
        rare_ns: 10 * MS,
        rare: 0.01,
    };
    let mean_ns = 0.99 * 5e5 + 0.01 * 1e7;
    let mean_square = 0.99 * 5e5 * 5e5 + 0.01 * 1e7 * 1e7;
    let busy = 0.6;
    // M/G/1 (Pollaczek and Khinchine).
    let wait_ns = busy / mean_ns * mean_square / (2.0 * (1.0 - busy));
    let runs = poisson_runs(service, mean_ns, busy, PLENTY);
    means(&runs).expect(mean_ns + wait_ns, "mean");
}

#[test]
fn without_a_queue_response_times_are_the_service_times() {
    let shape = 1.5;
    let service = ServiceTime::Pareto {
        min_ns: 100 * US,
        max_ns: 10 * S,
        shape,
    };
    let settings = at_the_door(|server| server.service = service);
    for process in ArrivalProcess::ALL {
        let plan = open_loop(rate(*process, 1_000.0, 7), PLENTY, 200 * S);
        let (run, _) = faithful(&plan, &settings, "a heavy tail");
        let response = &run.latencies.response;
        let count = response.count() as f64;
        assert!(run.latencies.service == *response, "{process}");
        for q in [0.5_f64, 0.9, 0.99, 0.999] {
            // Independent draws: those above the quantile are binomially distributed.
            let quantile_ns = 1e5 * (1.0 - q).powf(-1.0 / shape);
            let above = response
                .buckets()
                .count_between(quantile_ns as u64, u64::MAX) as f64;
            let expected = count * (1.0 - q);
            let deviation = (expected * q).sqrt();
            let of_bucket = shape * BUCKET * expected;
            assert!(
                (above - expected).abs() <= 5.0 * deviation + of_bucket,
                "{process}, {q}: {above} above, expected {expected} ± {deviation}"
            );
        }
    }
}

#[test]
fn below_capacity_every_response_is_the_service_and_the_round_trip() {
    // (arrivals per second, connections, workers, seconds)
    let cases = [
        (1.0, 1, 1, 30),
        (100.0, 20, 3, 20),
        (999.0, 1, 1, 20),
        (1_000.0, 1, 1, 20),
        (12_345.0, 20, 1, 5),
        (100_000.0, 200, 2, 2),
    ];
    for (rate_per_s, connections, workers, seconds) in cases {
        let what = format!("{rate_per_s} per second");
        let mut plan = open_loop(even_rate(rate_per_s), connections, seconds * S);
        plan.workers.count = many(workers);
        let (run, _) = faithful(&plan, &textbook(800 * US), &what);
        let arrivals = run.summary().arrivals;
        assert_eq!(arrivals.planned, rate_per_s as u64 * seconds, "{what}");
        assert_eq!(arrivals.sent, arrivals.planned, "{what}");
        let latencies = &run.latencies;
        for histogram in [&latencies.response, &latencies.service] {
            assert_eq!(histogram.count(), arrivals.planned, "{what}");
            assert_eq!(histogram.min_ns(), Some(MS), "{what}");
            assert_eq!(histogram.max_ns(), Some(MS), "{what}");
        }
        assert_eq!(latencies.lag.max_ns(), Some(0), "{what}");
        assert_eq!(latencies.unfinished.count(), 0, "{what}");
    }
}

#[test]
fn above_capacity_the_queue_grows_as_computed() {
    // Two arrive while one is served: request k waits for k half milliseconds.
    let plan = open_loop(even_rate(2_000.0), 1, S);
    let (run, _) = run(plan, &one_at_a_time(ServiceTime::Constant(MS), 1));
    let response = &run.latencies.response;
    assert_eq!(response.count(), 2_000);
    assert_eq!(response.min_ns(), Some(MS));
    assert_eq!(response.max_ns(), Some(MS + 1_999 * MS / 2));
    let sum_ns: u64 = (0..2_000).map(|request| MS + request * MS / 2).sum();
    assert_eq!(response.sum_ns(), sum_ns);
    assert_eq!(run.latencies.service.max_ns(), Some(MS));
    assert_eq!(run.summary().arrivals.waited, 1_999);
}
