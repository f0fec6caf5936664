//! L3: what delays brunt is charged to brunt, and what delays the server to the server, to the
//! nanosecond.

use brunt_judge::RunFigures;
use brunt_load::{ArrivalProcess, Plan, Reuse};
use brunt_record::{MeanParts, Run};
use brunt_testkit::{Costs, LateWakeUps, SimSettings, Stall};

use super::{even_rate, faithful, open_loop, plan, rate, textbook};
use crate::common::{MS, S, US, connections_by_plan, many, many_long};

const SERVICE_NS: u64 = 800 * US;
/// Service time and the round trip through the network together (100 µs each way).
const SERVER_NS: u64 = MS;

fn late(probability: f64, delay_ns: u64) -> SimSettings {
    SimSettings {
        late_wake_ups: Some(LateWakeUps {
            probability,
            delay_ns,
        }),
        ..textbook(SERVICE_NS)
    }
}

/// The sum of all response times without brunt's own share of them.
fn others_ns(run: &Run) -> u64 {
    let Latency {
        response_ns,
        own_ns,
    } = Latency::of(run);
    response_ns - own_ns
}

struct Latency {
    response_ns: u64,
    own_ns: u64,
}

impl Latency {
    /// The sums of a run all of whose responses were split.
    fn of(run: &Run) -> Self {
        let (response, split) = (&run.latencies.response, &run.latencies.split);
        assert_eq!(split.count(), response.count());
        assert_eq!(run.summary().stamps_clamped, 0);
        Self {
            response_ns: response.sum_ns(),
            own_ns: split.own.sum_ns(),
        }
    }
}

fn parts(run: &Run) -> MeanParts {
    run.latencies.split.mean().expect("parts")
}

/// Whether a mean of whole nanoseconds, summed up in floating point, is this.
fn is(mean: f64, truth_ns: u64) -> bool {
    (mean - truth_ns as f64).abs() < 0.001
}

fn open(rate_per_s: f64, connections: u32) -> Plan {
    open_loop(even_rate(rate_per_s), connections, 20 * S)
}

#[test]
fn a_punctual_brunt_has_no_share() {
    for plan in [open(10.0, 5), open(900.0, 1), open(2_000.0, 1)] {
        let (run, _) = faithful(&plan, &textbook(SERVICE_NS), "punctual");
        assert_eq!(Latency::of(&run).own_ns, 0);
        assert!(is(parts(&run).server_ns, SERVER_NS));
        assert_eq!(run.latencies.lag.max_ns(), Some(0));
    }
}

#[test]
fn a_delay_at_both_ends_is_a_delay_twice() {
    // Every sleep ends late: before the send, and before the reply is taken.
    for delay_ns in [3 * US, MS, 20 * MS] {
        // Far apart, so that no sleep for another reason ends late across an arrival.
        let (run, counts) = faithful(&open(5.0, 5), &late(1.0, delay_ns), "twice");
        assert!(counts.late_wake_ups >= 200);
        let expected_ns = SERVER_NS + 2 * delay_ns;
        assert_eq!(run.latencies.response.min_ns(), Some(expected_ns));
        assert_eq!(run.latencies.response.max_ns(), Some(expected_ns));
        assert_eq!(run.latencies.service.max_ns(), Some(expected_ns - delay_ns));
        assert_eq!(run.latencies.split.own.min_ns(), Some(2 * delay_ns));
        assert_eq!(run.latencies.split.own.max_ns(), Some(2 * delay_ns));
        assert_eq!(run.latencies.lag.min_ns(), Some(delay_ns));
        assert_eq!(run.latencies.lag.max_ns(), Some(delay_ns));
        let parts = parts(&run);
        assert!(is(parts.lag_send_ns, delay_ns) && is(parts.lag_receive_ns, delay_ns));
        let is_server_s = is(parts.server_ns, SERVER_NS) && is(parts.wait_ns, 0);
        assert!(is_server_s, "{parts:?}");
    }
}

#[test]
fn late_wake_ups_are_charged_to_brunt_alone() {
    for process in ArrivalProcess::ALL {
        for delay_ns in [200 * US, 5 * MS, 50 * MS] {
            let what = format!("{process}, {delay_ns} ns late");
            // Connections for everything that can be in flight.
            let plan = open_loop(rate(*process, 1_000.0, 5), 300, 20 * S);
            let (punctual, _) = faithful(&plan, &textbook(SERVICE_NS), &what);
            let (run, counts) = faithful(&plan, &late(0.02, delay_ns), &what);
            let late = counts.late_wake_ups;
            assert!(late > 50, "{what}: {late}");
            assert_eq!(run.summary().arrivals.waited, 0, "{what}");
            let (before, after) = (Latency::of(&punctual), Latency::of(&run));
            assert_eq!(before.own_ns, 0, "{what}");
            // The rise is brunt's, all of it.
            let rise_ns = after.response_ns - before.response_ns;
            assert_eq!(rise_ns, after.own_ns, "{what}");
            assert!(after.own_ns >= late * delay_ns / 2, "{what}");
            assert!(is(parts(&run).server_ns, SERVER_NS), "{what}");
        }
    }
}

#[test]
fn the_tail_of_a_stopped_brunt_is_its_own() {
    // As if its process were stopped for 50 ms now and then: rarely, and for long.
    let plan = open_loop(even_rate(2_000.0), 200, 60 * S);
    let (run, counts) = faithful(&plan, &late(0.0005, 50 * MS), "stopped");
    assert!(counts.late_wake_ups > 20);
    let tail = run.latencies.split.tail(0.99).expect("a tail");
    assert!(tail.own_ns() > 0.95 * (tail.response_ns() - SERVER_NS as f64));
    assert!(is(tail.server_ns, SERVER_NS), "{tail:?}");
    // The server stopped instead: for the first 50 ms of each second.
    let mut stalling = textbook(SERVICE_NS);
    stalling.server.stall = Some(Stall {
        silence_ns: 50 * MS,
        period_ns: many_long(S),
    });
    let (run, _) = faithful(&plan, &stalling, "stalled");
    assert_eq!(Latency::of(&run).own_ns, 0);
    let tail = run.latencies.split.tail(0.99).expect("a tail");
    assert!(tail.server_ns > 40e6, "{tail:?}");
}

#[test]
fn what_piles_up_while_brunt_is_stopped_is_its_own() {
    // 50 requests come due in each stop, and wait for 10 connections afterwards: in time, they
    // would have found one free.
    let plan = open_loop(even_rate(1_000.0), 10, 60 * S);
    let (punctual, _) = faithful(&plan, &textbook(SERVICE_NS), "punctual");
    let (run, counts) = faithful(&plan, &late(0.001, 50 * MS), "stopped");
    assert!(counts.late_wake_ups > 20);
    let (before, after) = (Latency::of(&punctual), Latency::of(&run));
    let (rise_ns, own_ns) = (after.response_ns - before.response_ns, after.own_ns);
    assert_eq!(before.own_ns, 0);
    let least_ns = 0.97 * rise_ns as f64;
    assert!(own_ns as f64 > least_ns, "{own_ns} of {rise_ns}");
    assert!(is(parts(&run).server_ns, SERVER_NS));
}

#[test]
fn a_slower_server_is_charged_to_the_server_alone() {
    let plan = open(1_000.0, 50);
    let (fast, _) = faithful(&plan, &textbook(SERVICE_NS), "fast");
    let (slow, _) = faithful(&plan, &textbook(SERVICE_NS + 7 * MS), "slow");
    let rise_ns = others_ns(&slow) - others_ns(&fast);
    assert_eq!(rise_ns, 7 * MS * slow.latencies.response.count());
    assert_eq!(Latency::of(&slow).own_ns, 0);
    assert!(is(parts(&slow).server_ns, SERVER_NS + 7 * MS));
    assert!(is(parts(&slow).wait_ns, 0));
    // Too few connections for the slower one: the wait is not brunt's either.
    let (queued, _) = faithful(&open(1_000.0, 5), &textbook(SERVICE_NS + 7 * MS), "queued");
    assert_eq!(Latency::of(&queued).own_ns, 0);
    assert!(is(parts(&queued).server_ns, SERVER_NS + 7 * MS));
    assert!(parts(&queued).wait_ns > 0.0);
}

#[test]
fn who_is_late_while_others_wait_pays_for_all_that_it_costs_them() {
    // One connection, busy for 80 % of the time: a late brunt leaves it idle, and what is due next
    // waits for longer.
    let plan = open_loop(rate(ArrivalProcess::Poisson, 800.0, 9), 1, 60 * S);
    let (punctual, _) = faithful(&plan, &textbook(SERVICE_NS), "punctual");
    let (run, counts) = faithful(&plan, &late(0.05, 300 * US), "late");
    assert!(counts.late_wake_ups > 1_000);
    let (before, after) = (Latency::of(&punctual), Latency::of(&run));
    let parts = parts(&run);
    assert_eq!(before.own_ns, 0);
    assert!(is(parts.server_ns, SERVER_NS), "{parts:?}");
    assert_eq!(after.response_ns, before.response_ns + after.own_ns);
    // Each part of a response is one of these, and all together are all of it.
    let sum = parts.response_ns() * run.latencies.response.count() as f64;
    assert!((sum - after.response_ns as f64).abs() < 1_000.0);
}

#[test]
fn a_closed_loop_splits_its_service_times() {
    let mut plan = plan();
    plan.observation.stamps = brunt_load::Stamps::Full;
    plan.load.stop.duration_ns = Some(20 * S);
    plan.load.warmup_ns = 0;
    plan.load.connections = many(1);
    let (run, counts) = faithful(&plan, &late(0.1, 3 * MS), "a closed loop");
    assert!(counts.late_wake_ups > 100);
    assert_eq!(others_ns(&run), SERVER_NS * run.latencies.response.count());
    // From the reply to the next request the loop is late as it was in taking the reply.
    let lag = &run.latencies.lag;
    assert_eq!((lag.min_ns(), lag.max_ns()), (Some(0), Some(3 * MS)));
}

#[test]
fn brunts_own_work_is_its_own_share() {
    let costs = Costs {
        clock_ns: 30,
        send_ns: 2_000,
        event_ns: 700,
        ..Costs::NONE
    };
    let settings = SimSettings {
        costs,
        ..textbook(SERVICE_NS)
    };
    let (run, _) = faithful(&open(10.0, 3), &settings, "work");
    let parts = parts(&run);
    assert!(is(parts.send_ns, costs.send_ns), "{parts:?}");
    assert!(is(parts.server_ns, SERVER_NS), "{parts:?}");
    // The clock is read for arrivals first.
    let received_ns = costs.clock_ns + costs.event_ns + costs.clock_ns;
    assert!(is(parts.lag_receive_ns, received_ns), "{parts:?}");
    assert!(is(parts.parse_ns, costs.clock_ns), "{parts:?}");
    assert!(parts.lag_send_ns < 200.0, "{parts:?}");
}

#[test]
fn planned_connections_are_split_from_their_sends() {
    let mut plan = open(10.0, 5);
    connections_by_plan(&mut plan, even_rate(10.0), 100);
    plan.traffic.reuse = Reuse::Requests(many_long(3));
    let (run, _) = faithful(&plan, &late(1.0, 2 * MS), "sessions");
    let own = &run.latencies.split.own;
    // What follows a reply is sent when that reply is taken: the delay there is one of the reply.
    assert_eq!((own.min_ns(), own.max_ns()), (Some(2 * MS), Some(2 * MS)));
    assert_eq!(others_ns(&run), SERVER_NS * run.latencies.response.count());
}
