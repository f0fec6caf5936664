//! Workers that are too few: what they sent until the round began anew with more is counted, and
//! nothing of it fails by that.

use brunt_engine::Faults;
use brunt_judge::RunFigures;
use brunt_load::{HttpChoice, LoadModel, Plan};
use brunt_record::Run;
use brunt_testkit::{ServiceTime, SimCounts, SimServer, SimSettings};

use super::{even_rate, plan, reconcile};
use crate::common::{MS, S, US, expect_valid, failures, many, simulate_disturbed};

/// When the first workers are recalled, from the start of load.
const TOO_FEW_NS: u64 = 100 * MS;

/// Runs with half of the workers first.
fn tried(plan: &Plan, settings: &SimSettings, what: &str) -> (Run, SimCounts) {
    let faults = Faults {
        too_few: Some(TOO_FEW_NS),
        ..Faults::default()
    };
    let (run, counts) = simulate_disturbed(plan.clone(), settings, faults).expect("a run");
    expect_valid(&run, what);
    let wrong = reconcile::mismatches(plan, &run, &counts);
    assert!(wrong.is_empty(), "{what}: {wrong:?}\n{counts:?}");
    assert_eq!(run.summary().trials.number, 1, "{what}");
    (run, counts)
}

fn closed(connections: u32) -> Plan {
    let mut plan = plan();
    plan.connections = many(connections);
    plan.workers = many(4);
    plan.warmup_ns = 400 * MS;
    plan.halves_warmup = false;
    plan.stop.duration_ns = Some(300 * MS);
    plan
}

fn taking(service_ns: u64) -> SimSettings {
    let server = SimServer {
        service: ServiceTime::Constant(service_ns),
        ..SimServer::default()
    };
    SimSettings {
        server,
        ..SimSettings::new(4)
    }
}

#[test]
fn all_that_was_sent_before_is_in_a_phase_of_its_own() {
    for http in [HttpChoice::HTTP1, HttpChoice::HTTP2] {
        for pipeline in [1, 4] {
            let mut plan = closed(16);
            plan.spoken = http.into();
            plan.streams = many(pipeline);
            plan.pipeline = match http == HttpChoice::HTTP1 {
                true => many(pipeline),
                false => many(1),
            };
            let what = format!("{http:?}, {pipeline} in flight");
            let (run, counts) = tried(&plan, &taking(MS), &what);
            let trial = &run.agents[0].trials()[0];
            assert_eq!((trial.workers, trial.cut_off), (2, 0), "{what}");
            assert_eq!(run.agents[0].workers.len(), 4, "{what}");
            // At least one per connection in each millisecond of service and 0.1 of network.
            let expected = 16 * TOO_FEW_NS / (11 * MS / 10);
            let sent = trial.tally.requests_sent;
            assert!(sent >= expected * 3 / 4, "{what}: {sent}");
            assert_eq!(trial.tally.replies.successes(), sent, "{what}");
            let summary = run.summary();
            assert_eq!(summary.lifetime.requests_sent, counts.requests, "{what}");
            assert_eq!(summary.lifetime.replies.total(), counts.replies, "{what}");
            assert_eq!(failures(&run), [], "{what}");
            // The run itself knows nothing of it.
            assert_eq!(summary.round.connections_opened, 16, "{what}");
            assert_eq!(summary.lifetime.connections_opened, 32, "{what}");
            assert!(trial.from_ns < trial.until_ns && trial.until_ns < -(400 * MS as i64));
        }
    }
}

#[test]
fn planned_requests_of_a_trial_have_one_outcome_each() {
    for queue_max in [2, 100_000] {
        let mut plan = closed(4);
        plan.model = LoadModel::Open {
            schedule: even_rate(8_000.0),
            connections_max: many(4),
            queue_max: many(queue_max),
        };
        plan.drain_limit_ns = 20 * S;
        let (run, _) = tried(&plan, &taking(900 * US), &format!("a queue of {queue_max}"));
        let trial = &run.agents[0].trials()[0];
        let arrivals = trial.arrivals;
        assert!(arrivals.planned.abs_diff(800) <= 4, "{arrivals:?}");
        let outcomes =
            arrivals.sent + arrivals.skipped_full + arrivals.skipped_late + arrivals.unsent;
        assert_eq!(arrivals.planned, outcomes, "{arrivals:?}");
        // What waits is not sent any more: nothing is measured of it.
        assert!(arrivals.sent < 500, "{arrivals:?}");
        assert_eq!(trial.tally.requests_sent, arrivals.sent);
    }
}

#[test]
fn slow_answers_are_waited_for_and_those_that_never_come_are_cut_off_by_brunt() {
    let mut plan = closed(8);
    plan.timeout_ns = 60 * S;
    plan.drain_limit_ns = 60 * S;
    let (run, _) = tried(&plan, &taking(S), "answers after a second");
    let trial = &run.agents[0].trials()[0];
    assert_eq!((trial.tally.requests_sent, trial.cut_off), (8, 0));
    assert_eq!(trial.tally.replies.successes(), 8);
    assert_eq!(failures(&run), []);

    let mut settings = taking(MS);
    settings.server.faults.silent = 0.02;
    plan.drain_limit_ns = 5 * S;
    let (run, counts) = tried(&plan, &settings, "some are never answered");
    let trial = &run.agents[0].trials()[0];
    assert!(trial.cut_off > 0, "{trial:?}");
    let unanswered = run.summary().in_flight_at_end + trial.cut_off;
    assert_eq!(unanswered, counts.silent);
    // No failure of the server's, which may answer after years.
    assert_eq!(failures(&run), []);
    // It waits for two seconds at most.
    let lasted_ns = (trial.until_ns - trial.from_ns).cast_unsigned();
    assert!((2 * S..3 * S).contains(&lasted_ns), "{lasted_ns}");
}
