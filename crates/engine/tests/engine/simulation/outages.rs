//! A server that is gone for a while: when, for how long, and what it did before and after, against
//! what was simulated.

use std::num::NonZeroU64;

use brunt_judge::{InvariantStatus, RunFigures, ServerFailure, Verdict};
use brunt_load::{ArrivalProcess, HttpChoice, LoadModel, Plan, Reuse};
use brunt_record::Run;
use brunt_testkit::{LateWakeUps, Outage, ServiceTime, SimSettings, Stall};

use super::{rate, run};
use crate::common::{
    MS, S, change_request, expect_valid, many, many_long, requests_of, serving, status,
    window_start_ns,
};

/// Load begins some milliseconds after the start of the simulation.
const WARMUP_NS: u64 = 200 * MS;

fn closed(connections: u32) -> Plan {
    let mut plan = super::closed(connections, 1);
    plan.load.warmup_ns = WARMUP_NS;
    plan.load.stop.duration_ns = Some(4 * S);
    plan.limits.timeout_ns = 10 * S;
    plan
}

/// A server that takes 1 ms and is gone in this time.
fn gone(from_ns: u64, until_ns: u64) -> SimSettings {
    serving(|server| {
        server.service = ServiceTime::Constant(MS);
        server.outage = Some(Outage { from_ns, until_ns });
    })
}

/// Requests at random on eight connections.
fn poisson(rate_per_s: f64, queue_max: u32) -> LoadModel {
    requests_of(rate(ArrivalProcess::Poisson, rate_per_s, 1), 8, queue_max)
}

/// Every way to load it.
fn plans() -> Vec<(&'static str, Plan)> {
    let change = |change: fn(&mut Plan)| {
        let mut plan = closed(8);
        change(&mut plan);
        plan
    };
    vec![
        ("closed", closed(8)),
        ("one connection", closed(1)),
        ("two workers", change(|plan| plan.workers.count = many(2))),
        (
            "HTTP/2",
            change(|plan| {
                plan.connection.protocol = HttpChoice::HTTP2.into();
                change_request(plan, |request| request.path = "/delay/1ms".to_owned());
                plan.traffic.streams = many(4);
            }),
        ),
        (
            "a connection per request",
            change(|plan| plan.traffic.reuse = Reuse::Requests(many_long(1))),
        ),
        (
            "open",
            change(|plan| plan.load.model = poisson(2_000.0, 100_000)),
        ),
    ]
}

fn failure_of(run: &Run, what: &str) -> ServerFailure {
    expect_valid(run, what);
    let judgement = run.judge();
    assert_eq!(
        judgement.verdict,
        Verdict::ServerFailed,
        "{what}: {judgement:#?}"
    );
    run.server_failure()
        .unwrap_or_else(|| panic!("{what}: no failure"))
}

#[test]
fn an_outage_is_found_when_it_was_and_for_as_long() {
    for (what, plan) in plans() {
        for length_ns in [100 * MS, 500 * MS, 1_500 * MS] {
            let what = format!("{what}, {} ms", length_ns / MS);
            let from_ns = 1_700 * MS;
            let (run, _) = run(plan.clone(), &gone(from_ns, from_ns + length_ns));
            let failure = failure_of(&run, &what);
            assert!(!failure.is_silence, "{what}: {failure:?}");
            let [outage] = failure.outages[..] else {
                panic!("{what}: {failure:?}");
            };
            let began_ns = window_start_ns(&run) + outage.from_ns;
            assert!(began_ns.abs_diff(from_ns) < 3 * MS, "{what}: {began_ns}");
            // An eighth of the outage goes by before the next look.
            let found_ns = outage.until_ns.expect("it came back") - outage.from_ns;
            let most_ns = length_ns + length_ns / 7 + 13 * MS;
            assert!(
                (length_ns - 3 * MS..most_ns).contains(&found_ns),
                "{what}: {found_ns}"
            );
            // As much before as after; the first and the last connections are not all there.
            let sides = (
                failure.before.expect("before"),
                failure.after.expect("after"),
            );
            let (before, after) = &sides;
            assert!(before.length_ns >= 1_300 * MS, "{what}: {sides:?}");
            assert!(after.length_ns >= 700 * MS, "{what}: {sides:?}");
            let least_per_s = before.successes_per_s * 0.5;
            assert!(after.successes_per_s > least_per_s, "{what}: {sides:?}");
            assert!(failure.attempts_failed > 0, "{what}: {failure:?}");
        }
    }
}

#[test]
fn a_server_that_does_not_come_back() {
    for (what, plan) in plans() {
        let (run, _) = run(plan, &gone(1_700 * MS, u64::MAX));
        let failure = failure_of(&run, what);
        assert!(!failure.is_silence, "{what}: {failure:?}");
        let ends: Vec<_> = failure
            .outages
            .iter()
            .map(|outage| outage.until_ns)
            .collect();
        assert_eq!(ends, [None], "{what}: {failure:?}");
        assert!(
            failure.before.is_some() && failure.after.is_none(),
            "{what}"
        );
        let because = run.judge().because;
        assert!(because.contains("did not come back"), "{what}: {because}");
        assert!(because.contains("connection refused"), "{what}: {because}");
    }
}

/// On a machine that is busy with other things attempts are late, which is no fault of a loop that
/// makes them as soon as it runs.
#[test]
fn attempts_that_a_late_worker_makes_late_are_no_fault_of_brunt() {
    for (what, plan) in plans() {
        for delay_ns in [12 * MS, 20 * MS, 35 * MS] {
            let mut settings = gone(1_000 * MS, 3_000 * MS);
            settings.late_wake_ups = Some(LateWakeUps {
                probability: 1.0,
                delay_ns,
            });
            let (run, _) = run(plan.clone(), &settings);
            let what = format!("{what}, {} ms late", delay_ns / MS);
            expect_valid(&run, &what);
            let opens_by_plan = plan.traffic.reuse != Reuse::Unlimited;
            assert_eq!(
                status(&run, "L1") == InvariantStatus::Flagged,
                !opens_by_plan,
                "{what}"
            );
        }
    }
}

#[test]
fn an_outage_outside_of_the_window_is_none() {
    for (from_ns, until_ns) in [(50 * MS, 120 * MS), (4_400 * MS, 5 * S)] {
        let mut plan = closed(8);
        plan.load.warmup_ns = 400 * MS;
        plan.load.stop.duration_ns = Some(3 * S);
        let (run, _) = run(plan, &gone(from_ns, until_ns));
        expect_valid(&run, "outside");
        assert_eq!(run.server_failure(), None);
    }
}

#[test]
fn one_that_never_was_there_again_has_no_success() {
    let (run, _) = run(closed(8), &gone(100 * MS, u64::MAX));
    expect_valid(&run, "gone in the warm-up");
    let judgement = run.judge();
    assert_eq!(judgement.verdict, Verdict::NoSuccess);
    assert!(
        judgement.because.contains("connection refused"),
        "{}",
        judgement.because
    );
}

#[test]
fn connections_that_are_refused_now_and_then_are_no_fault_of_brunt() {
    let mut settings = gone(0, 0);
    settings.server.outage = None;
    settings.server.faults.reset = 0.01;
    settings.server.faults.connect_refused = 0.9;
    let (run, _) = run(closed(8), &settings);
    expect_valid(&run, "refused");
    assert_eq!(status(&run, "L1"), InvariantStatus::Flagged);
    let judgement = run.judge();
    assert_eq!(judgement.verdict, Verdict::ServerFailed, "{judgement:#?}");
}

/// A server that is silent for 1.2 s of every 2.5 s.
fn silent() -> SimSettings {
    let mut settings = gone(0, 0);
    settings.server.outage = None;
    settings.server.stall = Some(Stall {
        silence_ns: 1_200 * MS,
        period_ns: NonZeroU64::new(2_500 * MS).expect("not 0"),
    });
    settings
}

#[test]
fn a_silence_is_found_when_it_was_whatever_the_rate_was_before() {
    for (what, mut plan) in plans() {
        // From 1.5 to 4.5 s, which holds the silence from 2.5 to 3.7 s.
        plan.load.warmup_ns = 1_500 * MS;
        plan.load.stop.duration_ns = Some(3 * S);
        if what == "HTTP/2" {
            let path = "/stall/1200ms/2500ms";
            change_request(&mut plan, |request| request.path = path.to_owned());
        }
        let (run, _) = run(plan, &silent());
        let failure = failure_of(&run, what);
        assert!(failure.is_silence, "{what}: {failure:?}");
        let [silence] = failure.outages[..] else {
            panic!("{what}: {failure:?}");
        };
        let start_ns = window_start_ns(&run);
        let until_ns = silence.until_ns.expect("it ended");
        for (ns, expected_ns) in [(silence.from_ns, 2_500 * MS), (until_ns, 3_700 * MS)] {
            let at_ns = start_ns + ns;
            assert!(at_ns.abs_diff(expected_ns) <= 60 * MS, "{what}: {at_ns}");
        }
        let because = run.judge().because;
        assert!(because.starts_with("no reply for "), "{what}: {because}");
        assert!(
            failure.before.is_some() && failure.after.is_some(),
            "{what}"
        );
    }
}

#[test]
fn slow_and_rare_replies_are_no_silence() {
    let mut slow = gone(0, 0);
    slow.server.outage = None;
    slow.server.service = ServiceTime::Constant(1_100 * MS);
    let mut rare = closed(8);
    rare.load.model = poisson(2.0, 100);
    rare.load.stop.duration_ns = Some(20 * S);
    let mut quick = gone(0, 0);
    quick.server.outage = None;
    for (plan, settings) in [(closed(8), slow), (rare, quick)] {
        let (run, _) = run(plan, &settings);
        assert_eq!(run.server_failure(), None, "{:?}", run.plan.load.model);
    }
}
