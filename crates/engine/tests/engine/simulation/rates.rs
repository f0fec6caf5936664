//! What is due when: low and fractional rates, stages, warm-up, and runs by count.

use brunt_judge::RunFigures;
use brunt_load::{ArrivalProcess, LoadModel, Plan, Schedule};
use brunt_record::{FailureKind, Run};
use brunt_testkit::{ServiceTime, SimSettings, Stall};

use super::{at_the_door, even_rate, faithful, open_loop, rate, textbook};
use crate::common::{MS, S, US, lifetime, many, many_long, rate_for, staged};

/// Answers at once.
fn instant() -> SimSettings {
    at_the_door(|server| server.service = ServiceTime::Constant(0))
}

#[test]
fn idle_connections_never_time_out() {
    for connections in [1, 10] {
        let mut plan = open_loop(even_rate(1.0), connections, 600 * S);
        plan.limits.timeout_ns = 500 * MS;
        plan.limits.connect_timeout_ns = 500 * MS;
        let (run, counts) = faithful(&plan, &textbook(MS), "idle");
        assert_eq!(lifetime(&run).failures.get(FailureKind::TimedOut), 0);
        assert_eq!(run.summary().population.recorded, 600);
        assert_eq!(run.latencies.response.max_ns(), Some(MS + 200 * US));
        assert_eq!(counts.connections_accepted, u64::from(connections));
    }
}

#[test]
fn any_rate_is_kept() {
    // (arrivals per second, connections, workers, seconds)
    let cases = [
        (0.1, 8, 4, 60),
        (0.5, 8, 4, 60),
        (1.0, 100, 1, 60),
        (0.3, 2, 2, 100),
        (2.5, 3, 3, 60),
        (1_000.0 / 7.0, 10, 3, 70),
        (33.333, 7, 2, 100),
        (1e5 / 3.0, 20, 2, 3),
    ];
    for (rate_per_s, connections, workers, seconds) in cases {
        let what = format!("{rate_per_s} per second");
        let mut plan = open_loop(even_rate(rate_per_s), connections, seconds * S);
        plan.workers.count = many(workers);
        let (run, _) = faithful(&plan, &instant(), &what);
        // Arrival k is due at k / R.
        let expected = (rate_per_s * seconds as f64).ceil() as u64;
        let arrivals = run.summary().arrivals;
        assert!(
            arrivals.planned.abs_diff(expected) <= 1,
            "{what}: {arrivals:?}"
        );
        assert_eq!(arrivals.sent, arrivals.planned, "{what}");
        assert_eq!(run.latencies.response.count(), arrivals.planned, "{what}");
        assert_eq!(run.latencies.response.max_ns(), Some(0), "{what}");
    }
}

fn ramps(process: ArrivalProcess) -> Schedule {
    let ramps = [
        (10 * S, 0.0, 1_000.0),
        (10 * S, 1_000.0, 0.0),
        (3 * S, 77.0, 77.0),
    ];
    staged(process, &ramps)
}

/// Replies of each second of the window.
fn per_second(run: &Run) -> Vec<u64> {
    let series = run.summary().series;
    assert_eq!(series.interval_ns, 100 * MS);
    let sum = |points: &[brunt_record::SeriesPoint]| points.iter().map(|p| p.successes).sum();
    series.points.chunks(10).map(sum).collect()
}

#[test]
fn stages_are_followed_second_by_second() {
    for process in ArrivalProcess::ALL {
        for (workers, warmup_ns) in [(1, 0), (3, 2 * S)] {
            let what = format!("{process}, {workers} workers");
            let mut plan = open_loop(ramps(*process), 30, 23 * S);
            plan.workers.count = many(workers);
            plan.load.warmup_ns = warmup_ns;
            let (run, _) = faithful(&plan, &instant(), &what);
            let counts = per_second(&run);
            assert_eq!(counts.len(), 23, "{what}");
            for (second, &count) in (0..).zip(&counts) {
                let expected = ramps(*process).expected(second * S, (second + 1) * S);
                // Counted arrivals miss the integral by rounding, random ones by chance.
                let tolerance = match process {
                    ArrivalProcess::Constant => 1.0,
                    ArrivalProcess::Uniform => 2.0,
                    ArrivalProcess::Poisson => 5.0 * expected.sqrt(),
                };
                assert!(
                    (count as f64 - expected).abs() <= tolerance,
                    "{what}, second {second}: {count}, not {expected}"
                );
            }
        }
    }
}

#[test]
fn warm_up_arrivals_are_not_measured() {
    let mut plan = open_loop(even_rate(1_000.0), 1, 2 * S);
    plan.load.warmup_ns = S;
    // The window begins in a silence that holds up the last 50 requests of the warm-up; they are
    // answered in it, and are not of it.
    let mut settings = instant();
    settings.server.stall = Some(Stall {
        silence_ns: 100 * MS,
        period_ns: many_long(970 * MS),
    });
    let (run, _) = faithful(&plan, &settings, "warm-up");
    let summary = run.summary();
    assert_eq!(summary.arrivals_all.planned, 3_000);
    assert_eq!(summary.arrivals.planned, 2_000);
    assert_eq!(summary.population.issued, 2_000);
    assert_eq!(run.latencies.response.count(), 2_000);
    assert!(summary.window.requests_sent > 2_000, "{:?}", summary.window);
    assert_eq!(summary.lifetime.requests_sent, 3_000);
}

fn by_count(schedule: Schedule, requests: u64) -> Plan {
    let mut plan = open_loop(schedule, 4, 0);
    plan.load.stop.duration_ns = None;
    plan.load.stop.requests = Some(requests);
    plan
}

#[test]
fn a_count_of_requests_ends_an_open_loop() {
    for (process, workers, warmup_ns) in [
        (ArrivalProcess::Constant, 1, 0),
        (ArrivalProcess::Constant, 3, 0),
        (ArrivalProcess::Poisson, 2, 200 * MS),
        (ArrivalProcess::Uniform, 4, S),
    ] {
        let what = format!("{process}, {workers} workers");
        let mut plan = by_count(rate(process, 2_000.0, 1), 1_000);
        plan.workers.count = many(workers);
        plan.load.warmup_ns = warmup_ns;
        let (run, _) = faithful(&plan, &textbook(300 * US), &what);
        let summary = run.summary();
        assert_eq!(summary.population.recorded, 1_000, "{what}");
        assert_eq!(summary.arrivals.planned, 1_000, "{what}");
        assert_eq!(summary.unsent, 0, "{what}");
        if process == ArrivalProcess::Constant {
            // It ends with the last reply, 499.5 ms and a service time after its start.
            let length_ns = run.window_ns;
            assert!(
                (500 * MS..501 * MS).contains(&length_ns),
                "{what}: {length_ns}"
            );
            assert_eq!(run.latencies.response.max_ns(), Some(500 * US), "{what}");
        }
    }
}

#[test]
fn a_duration_ends_a_run_by_count_that_is_too_slow() {
    let mut plan = by_count(even_rate(100.0), 1_000);
    plan.load.stop.duration_ns = Some(S);
    let (run, _) = faithful(&plan, &textbook(300 * US), "too slow");
    assert_eq!(run.summary().population.recorded, 100);
    assert_eq!(run.summary().unsent, 900);
    assert_eq!(run.window_ns, S);
}

#[test]
fn stages_that_end_before_the_count_end_the_run() {
    for workers in [1, 3] {
        let mut plan = by_count(rate_for(S, 100.0), 1_000);
        plan.workers.count = many(workers);
        let (run, _) = faithful(&plan, &textbook(300 * US), "stages by count");
        assert_eq!(run.summary().population.recorded, 100);
        assert_eq!(run.summary().unsent, 900);
    }
}

#[test]
fn an_hour_of_planned_load_is_a_unit_test() {
    let plan = open_loop(even_rate(1_000.0), 10, 3_600 * S);
    let (run, counts) = faithful(&plan, &textbook(800 * US), "an hour");
    assert_eq!(run.summary().arrivals.planned, 3_600_000);
    assert_eq!(counts.requests, 3_600_000);
    // Not a nanosecond of drift.
    let response = &run.latencies.response;
    assert_eq!((response.min_ns(), response.max_ns()), (Some(MS), Some(MS)));
    assert_eq!(response.count(), 3_600_000);
    let LoadModel::Open { schedule, .. } = &plan.load.model else {
        panic!("an open loop")
    };
    assert_eq!(schedule.expected(0, 3_600 * S), 3_600_000.0);
}
