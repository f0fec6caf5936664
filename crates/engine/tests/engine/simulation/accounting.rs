//! Nothing is lost and nothing counted twice, whatever goes wrong.

use brunt_judge::RunFigures;
use brunt_load::{ArrivalProcess, Plan};
use brunt_record::Run;
use brunt_testkit::{
    LateWakeUps, Outage, ServiceTime, SimCounts, SimFaults, SimServer, SimSettings, Stall,
};

use super::{even_rate, faithful, open_loop, rate, reconcile, run, textbook};
use crate::common::{MS, S, US, broken, lifetime, many, many_long, requests_by_plan, requests_of};

/// Serves 1,000 requests per second, one at a time.
fn one_place() -> SimSettings {
    let mut settings = textbook(MS);
    settings.server.concurrency = Some(many(1));
    settings
}

/// An open loop of which at most `waiting` requests wait.
fn bounded(rate_per_s: f64, connections: u32, waiting: u32) -> Plan {
    let mut plan = open_loop(even_rate(rate_per_s), connections, S);
    requests_by_plan(&mut plan, even_rate(rate_per_s), waiting);
    plan
}

#[test]
fn an_overloaded_run_answers_everything_in_drain() {
    let plan = open_loop(even_rate(3_000.0), 10, S);
    let (run, counts) = faithful(&plan, &one_place(), "overload");
    let summary = run.summary();
    assert_eq!(summary.population.recorded, 3_000);
    assert_eq!(counts.replies, 3_000);
    // The window saw what the server can do.
    assert!(summary.window.replies.successes().abs_diff(1_000) <= 1);
    let longest_ns = run.latencies.response.max_ns().expect("latencies");
    assert!(longest_ns.abs_diff(2 * S) <= 5 * MS, "{longest_ns}");
    assert!(summary.arrivals.waited >= 2_985, "{:?}", summary.arrivals);
}

#[test]
fn an_overloaded_run_with_little_time_to_drain_leaves_requests_unsent() {
    let mut plan = open_loop(even_rate(3_000.0), 10, S);
    plan.load.drain_limit_ns = 500 * MS;
    let (run, _) = faithful(&plan, &one_place(), "a short drain");
    let (arrivals, population) = (run.summary().arrivals, run.summary().population);
    // 1.5 s at 1,000 per second; those on the 10 connections never end.
    assert!(population.recorded.abs_diff(1_500) <= 2, "{population:?}");
    assert_eq!(population.censored, 10);
    assert_eq!(arrivals.unsent, 3_000 - population.recorded - 10);
    assert_eq!(run.latencies.unfinished.count(), arrivals.unsent + 10);
    // Each of them lasted at least from its planned instant to the end.
    assert!(run.latencies.unfinished.min_ns() >= Some(500 * MS));
}

#[test]
fn beyond_the_queue_requests_are_skipped_and_counted() {
    let plan = bounded(3_000.0, 2, 10);
    let (run, _) = faithful(&plan, &one_place(), "a full queue");
    let arrivals = run.summary().arrivals;
    assert_eq!(arrivals.planned, 3_000);
    // What the server does in 1 s, and what waits or is on its way at the end.
    let served = 1_000 + 10 + 2;
    assert!(arrivals.sent.abs_diff(served) <= 2, "{arrivals:?}");
    assert_eq!(arrivals.skipped_full, 3_000 - arrivals.sent);
    assert_eq!(run.latencies.unfinished.count(), arrivals.skipped_full);
    // No request waits for more than the 10 before it and the 2 in flight.
    let longest_ns = run.latencies.response.max_ns().expect("latencies");
    assert!((11 * MS..14 * MS).contains(&longest_ns), "{longest_ns}");
    let points = run.summary().series.points;
    let waiting = points.iter().map(|point| point.waiting_max);
    assert_eq!(waiting.max(), Some(10));
}

#[test]
fn who_waits_longer_than_the_time_out_is_skipped() {
    // Two connections carry some 180 per second over so long a network. The queue grows to almost
    // 300 ms; beyond that, most are never sent, and what is sent is answered in time.
    let mut plan = open_loop(even_rate(1_000.0), 2, 2 * S);
    plan.limits.timeout_ns = 300 * MS;
    let mut settings = one_place();
    settings.network_ns = 5 * MS;
    let (run, counts) = run(plan.clone(), &settings);
    expect_reconciled(&plan, &run, &counts, "late");
    let (arrivals, population) = (run.summary().arrivals, run.summary().population);
    assert_eq!(arrivals.planned, 2_000);
    assert_eq!(arrivals.sent, population.recorded + population.failed);
    assert_eq!(arrivals.skipped_late, 2_000 - arrivals.sent);
    assert!(arrivals.skipped_late > 1_000, "{arrivals:?}");
    assert!(
        population.recorded * 10 > arrivals.sent * 9,
        "{population:?}"
    );
    let unfinished = &run.latencies.unfinished;
    let missing = arrivals.skipped_late + population.failed;
    assert_eq!(unfinished.count(), missing);
    // Given up when two service times do not end in time, or at the next look at the clock.
    let ends = (unfinished.min_ns(), unfinished.max_ns());
    assert!(
        ends.0 >= Some(250 * MS) && ends.1 <= Some(350 * MS),
        "{ends:?}"
    );
    assert!(run.latencies.response.max_ns() <= Some(300 * MS));
}

#[test]
fn a_queue_longer_than_the_time_out_does_not_keep_the_server_from_answering() {
    // Were each request sent just in time to time out, none would be answered.
    for connections in [2, 50] {
        let mut plan = open_loop(even_rate(3_000.0), connections, 10 * S);
        plan.limits.timeout_ns = 300 * MS;
        let (run, counts) = run(plan.clone(), &one_place());
        expect_reconciled(&plan, &run, &counts, "a long queue");
        let replies = run.summary().window.replies.successes();
        assert!(replies > 8_000, "{connections}: {replies} replies");
    }
}

#[test]
fn a_reply_that_comes_after_the_time_out_is_one_time_out() {
    // 100 ms of silence hold up 100 requests; the 60 that are over 40 ms late have timed out. Who
    // waits in brunt may be given up before, but not before half the time-out.
    for (connections, late_most) in [(1, 800), (10, 800), (200, 600)] {
        let mut plan = open_loop(even_rate(1_000.0), connections, 10 * S);
        plan.limits.timeout_ns = 40 * MS;
        plan.limits.connect_timeout_ns = 10 * S;
        let mut settings = textbook(100 * US);
        settings.server.stall = Some(Stall {
            silence_ns: 100 * MS,
            period_ns: many_long(S),
        });
        let (run, _) = faithful(&plan, &settings, "late replies");
        let late = run.latencies.unfinished.count();
        let possible = 580..=late_most + 20;
        assert!(possible.contains(&late), "{connections}: {late}");
        assert!(run.latencies.response.max_ns() <= Some(40 * MS));
    }
}

#[test]
fn further_connections_are_opened_only_as_needed() {
    // (held, most, connections that a server of 10 ms needs at 1,000/s, arrivals per second)
    for (held, most, needed, rate_per_s) in [
        (1, 1, 1, 50.0),
        (1, 100, 1, 50.0),
        (20, 100, 20, 1_000.0),
        (1, 100, 13, 1_000.0),
        (4, 6, 6, 1_000.0),
    ] {
        let what = format!("{held} of {most} at {rate_per_s}");
        let mut plan = open_loop(even_rate(rate_per_s), held, S);
        plan.load.model = requests_of(even_rate(rate_per_s), most, 100_000);
        let (run, counts) = faithful(&plan, &textbook(10 * MS), &what);
        let opened = counts.connections_accepted;
        // 10.2 ms for a reply make 11 at once; while one is opened, the next arrival may want one.
        assert!(
            (u64::from(held)..=needed).contains(&opened),
            "{what}: {opened} connections"
        );
        assert!(held == most || opened >= needed.min(11), "{what}: {opened}");
        assert_eq!(
            run.summary().population.recorded,
            rate_per_s as u64,
            "{what}"
        );
    }
}

fn faults(fault: impl FnOnce(&mut SimFaults)) -> SimSettings {
    server(|server| fault(&mut server.faults))
}

fn server(change: impl FnOnce(&mut SimServer)) -> SimSettings {
    let mut settings = SimSettings::new(3);
    change(&mut settings.server);
    settings
}

#[test]
fn whatever_goes_wrong_every_request_has_one_outcome() {
    let refused = |faults: &mut SimFaults| (faults.connect_refused, faults.reset) = (0.5, 0.05);
    let outage = Outage {
        from_ns: 300 * MS,
        until_ns: 600 * MS,
    };
    let stall = Stall {
        silence_ns: 60 * MS,
        period_ns: many_long(200 * MS),
    };
    let mut late = SimSettings::new(3);
    late.late_wake_ups = Some(LateWakeUps {
        probability: 0.05,
        delay_ns: 30 * MS,
    });
    let closing = server(|server| server.close_after = Some(many_long(7)));
    let cases: [(&str, SimSettings); 13] = [
        ("nothing", SimSettings::new(3)),
        ("resets", faults(|faults| faults.reset = 0.1)),
        ("closes", faults(|faults| faults.closed = 0.1)),
        ("truncated replies", faults(|faults| faults.truncated = 0.1)),
        ("malformed replies", faults(|faults| faults.malformed = 0.1)),
        ("unasked bytes", faults(|faults| faults.extra_bytes = 0.1)),
        ("silence", faults(|faults| faults.silent = 0.02)),
        ("errors", faults(|faults| faults.error_status = 0.3)),
        ("refused connections", faults(refused)),
        ("an outage", server(|server| server.outage = Some(outage))),
        ("closing connections", closing),
        ("stalls", server(|server| server.stall = Some(stall))),
        ("a late brunt", late),
    ];
    for (words, settings) in cases {
        for (process, queue_max, interrupt_ns) in [
            (ArrivalProcess::Constant, 100_000, None),
            (ArrivalProcess::Poisson, 10, None),
            (ArrivalProcess::Uniform, 100_000, Some(500 * MS)),
        ] {
            let what = format!("{words}, {process}");
            let mut plan = open_loop(rate(process, 2_000.0, 1), 6, S);
            plan.load.model = requests_of(rate(process, 2_000.0, 1), 8, queue_max);
            plan.workers.count = many(2);
            plan.limits.timeout_ns = 100 * MS;
            plan.limits.connect_timeout_ns = 100 * MS;
            plan.load.drain_limit_ns = 50 * MS;
            plan.load.warmup_ns = 100 * MS;
            let settings = SimSettings {
                interrupt_ns,
                ..settings.clone()
            };
            let (run, counts) = run(plan.clone(), &settings);
            expect_reconciled(&plan, &run, &counts, &what);
            assert_eq!(run.agents[0].interrupted, interrupt_ns.is_some(), "{what}");
            assert!(run.summary().population.recorded > 100, "{what}");
            // The warm-up, the window, the drain and a look at the clock.
            let unfinished_ns = run.latencies.unfinished.max_ns();
            assert!(
                unfinished_ns <= Some((100 + 1_000 + 50 + 100) * MS),
                "{what}"
            );
            if words == "nothing" {
                assert_eq!(lifetime(&run).failures.iter().count(), 0, "{what}");
            }
        }
    }
}

fn expect_reconciled(plan: &Plan, run: &Run, counts: &SimCounts, what: &str) {
    let broken = broken(run, &["L1"]);
    assert!(broken.is_empty(), "{what}: {broken:?}");
    let wrong = reconcile::mismatches(plan, run, counts);
    assert!(wrong.is_empty(), "{what}: {wrong:?}\n{counts:?}");
}

#[test]
fn a_server_with_one_place_and_a_heavy_tail_loses_nothing() {
    let mut settings = one_place();
    settings.server.service = ServiceTime::Pareto {
        min_ns: 300 * US,
        max_ns: S,
        shape: 1.1,
    };
    for connections in [1, 50] {
        let schedule = rate(ArrivalProcess::Poisson, 500.0, 2);
        let mut plan = open_loop(schedule, connections, 20 * S);
        plan.load.drain_limit_ns = 100 * MS;
        faithful(&plan, &settings, "a heavy tail");
    }
}
