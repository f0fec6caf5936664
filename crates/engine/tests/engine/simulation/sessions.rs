//! Planned connections: opened on a schedule, each with its requests one after the other.

use brunt_judge::{InvariantStatus, RunFigures};
use brunt_load::{ArrivalProcess, LoadModel, Plan, Reuse, Schedule};
use brunt_record::FailureKind;
use brunt_testkit::SimSettings;

use super::{even_rate, faithful, open_loop, plan, rate, run, textbook};
use crate::common::{
    MS, S, US, at_ns, connections_by_plan, lifetime, many, many_long, staged, status,
};

/// One way through the network, nanoseconds.
const NETWORK_NS: u64 = 100 * US;

/// Connections on a schedule with `requests` each, at most `most` at once.
fn sessions(schedule: Schedule, requests: u64, most: u32, duration_ns: u64) -> Plan {
    let mut plan = open_loop(even_rate(1.0), most, duration_ns);
    connections_by_plan(&mut plan, schedule, 1_000_000);
    plan.traffic.reuse = Reuse::Requests(many_long(requests));
    plan
}

/// A rate that ends so early that all of its connections are done by the end of the run.
fn for_a_second(process: ArrivalProcess, rate_per_s: f64) -> Schedule {
    staged(process, &[(S, rate_per_s, rate_per_s)])
}

#[test]
fn each_connection_carries_its_requests() {
    for (process, requests, workers, think_time_ns) in [
        (ArrivalProcess::Constant, 1, 1, 0),
        (ArrivalProcess::Constant, 5, 2, 0),
        (ArrivalProcess::Poisson, 3, 3, 10 * MS),
        (ArrivalProcess::Uniform, 10, 1, 20 * MS),
    ] {
        let what = format!("{process}, {requests} requests");
        let mut plan = sessions(for_a_second(process, 200.0), requests, 200, 2 * S);
        plan.workers.count = many(workers);
        plan.traffic.think_time_ns = think_time_ns;
        let (run, counts) = faithful(&plan, &textbook(800 * US), &what);
        let summary = run.summary();
        let opened = summary.lifetime.connections_opened;
        assert_eq!(opened, summary.arrivals.planned, "{what}");
        assert_eq!(counts.connections_accepted, opened, "{what}");
        assert_eq!(summary.population.recorded, opened * requests, "{what}");
        assert_eq!(counts.replies, opened * requests, "{what}");
        assert_eq!(lifetime(&run).failures.iter().count(), 0, "{what}");
        if process != ArrivalProcess::Poisson {
            assert_eq!(opened, 200, "{what}");
        }
        // Opening takes a round trip, a request another one and the service.
        let latencies = &run.latencies;
        assert_eq!(latencies.connect.max_ns(), Some(2 * NETWORK_NS), "{what}");
        assert_eq!(latencies.first_reply.count(), opened, "{what}");
        let first_ns = Some(4 * NETWORK_NS + 800 * US);
        assert_eq!(latencies.first_reply.min_ns(), first_ns, "{what}");
        assert_eq!(latencies.first_reply.max_ns(), first_ns, "{what}");
        assert_eq!(latencies.response.min_ns(), Some(MS), "{what}");
        assert_eq!(latencies.response.max_ns(), Some(MS), "{what}");
        // By Little's law: as many are open as are opened in the time that one lasts.
        let lasts_ns = requests * MS + (requests - 1) * think_time_ns;
        let open_ns = summary.live.connection_ns;
        assert_eq!(open_ns, opened * lasts_ns, "{what}: open for {lasts_ns} ns");
    }
}

#[test]
fn connections_beyond_the_most_at_once_wait_from_their_planned_instant() {
    // Three at once, each for 2 ms and a round trip to open: 1,363 per second can be had.
    let (most, requests) = (3_usize, 2);
    for rate_per_s in [1_000.0, 2_000.0] {
        let what = format!("{rate_per_s} per second");
        let schedule = for_a_second(ArrivalProcess::Constant, rate_per_s);
        let plan = sessions(schedule.clone(), requests, most as u32, 4 * S);
        let (run, _) = faithful(&plan, &textbook(800 * US), &what);
        let lasts_ns = 2 * NETWORK_NS + requests * MS;
        let mut free_ns = vec![0; most];
        let (mut waited, mut waits_ns) = (0, 0);
        for due_ns in schedule.arrivals(0, 1) {
            let place = free_ns.iter_mut().min().expect("a place");
            let start_ns = due_ns.max(*place);
            *place = start_ns + lasts_ns;
            waited += u64::from(start_ns > due_ns);
            waits_ns += start_ns - due_ns;
        }
        let summary = run.summary();
        assert_eq!(summary.arrivals.waited, waited, "{what}");
        assert_eq!(summary.arrivals.sent, rate_per_s as u64, "{what}");
        let first = &run.latencies.first_reply;
        let alone_ns = 4 * NETWORK_NS + 800 * US;
        assert_eq!(first.min_ns(), Some(alone_ns), "{what}");
        let sum_ns = first.count() * alone_ns + waits_ns;
        assert_eq!(first.sum_ns(), sum_ns, "{what}");
        // 2.2 at once at 1,000 per second, of which 0.2 are being opened.
        assert!(summary.live.max <= 3 && (rate_per_s < 2e3 || summary.live.max == 3));
        assert_eq!(run.latencies.lag.max_ns(), Some(0), "{what}");
    }
}

#[test]
fn what_does_not_fit_is_skipped_or_unsent() {
    for (queue_max, is_short) in [(10, true), (1_000_000, false)] {
        let mut plan = sessions(even_rate(1_000.0), 10, 2, S);
        connections_by_plan(&mut plan, even_rate(1_000.0), queue_max);
        let (run, _) = faithful(&plan, &textbook(800 * US), "overload");
        let arrivals = run.summary().arrivals;
        assert_eq!(arrivals.planned, 1_000);
        // Two at once, 10.2 ms each.
        assert!(arrivals.sent.abs_diff(197) <= 2, "{arrivals:?}");
        assert_eq!(arrivals.skipped_full > 0, is_short);
        // Whoever has not begun by the end of the window never does.
        let waiting = 1_000 - arrivals.sent - arrivals.skipped_full;
        assert_eq!(arrivals.unsent, waiting);
        assert!(!is_short || (9..=10).contains(&waiting), "{arrivals:?}");
        assert_eq!(run.summary().live.max, 2);
    }
}

#[test]
fn who_waits_longer_than_the_time_out_is_not_opened() {
    let mut plan = sessions(even_rate(1_000.0), 10, 2, S);
    plan.limits.timeout_ns = 100 * MS;
    let (run, _) = faithful(&plan, &textbook(800 * US), "late");
    let arrivals = run.summary().arrivals;
    assert!(arrivals.skipped_late > 600, "{arrivals:?}");
    assert!(run.latencies.first_reply.max_ns() <= Some(100 * MS + 4 * NETWORK_NS + MS));
}

#[test]
fn an_attempt_that_fails_is_counted_and_not_repeated() {
    let mut settings = textbook(800 * US);
    settings.server.faults.connect_refused = 0.3;
    settings.server.faults.reset = 0.1;
    let plan = sessions(for_a_second(ArrivalProcess::Poisson, 500.0), 4, 100, 2 * S);
    let (run, counts) = faithful(&plan, &settings, "refused");
    let (summary, lifetime) = (run.summary(), lifetime(&run));
    let refused = lifetime.failures.get(FailureKind::ConnectRefused);
    assert_eq!(refused, counts.connections_refused);
    assert!(refused > 100 && counts.reset > 50, "{counts:?}");
    assert_eq!(lifetime.failures.get(FailureKind::Reset), counts.reset);
    assert_eq!(summary.arrivals.sent, lifetime.connections_opened + refused);
    assert_eq!(summary.arrivals.planned, summary.arrivals.sent);
    // A connection that breaks takes its further requests with it.
    assert!(counts.requests < 4 * lifetime.connections_opened);
    assert_eq!(counts.requests, counts.replies + counts.reset);
}

#[test]
fn attempts_without_an_answer_time_out_and_free_their_place() {
    let mut settings = textbook(800 * US);
    settings.server.faults.connect_unanswered = 1.0;
    let mut plan = sessions(for_a_second(ArrivalProcess::Constant, 100.0), 1, 2, 2 * S);
    plan.limits.connect_timeout_ns = 50 * MS;
    let (run, counts) = run(plan, &settings);
    let timed_out = lifetime(&run).failures.get(FailureKind::ConnectTimedOut);
    // Two at once, 50 ms each, until the window is over or none is left.
    assert_eq!(counts.connections_unanswered, run.summary().arrivals.sent);
    assert!(timed_out.abs_diff(80) <= 4, "{timed_out}");
    assert_eq!(lifetime(&run).connections_opened, 0);
    assert_eq!(status(&run, "W6"), InvariantStatus::Held);
}

#[test]
fn attempts_without_a_socket_are_counted_however_many_wait() {
    let mut settings = textbook(100 * MS);
    // Tens of thousands wait for the one connection; when it is done, they fail one by one.
    settings.server.faults.no_socket = 0.9999;
    let mut plan = sessions(even_rate(1e6), 1, 1, S);
    plan.load.stop.duration_ns = Some(300 * MS);
    let (run, counts) = faithful(&plan, &settings, "no socket");
    let arrivals = run.summary().arrivals;
    assert_eq!(arrivals.planned, 300_000);
    let attempts = counts.connections_impossible + counts.connections_accepted;
    assert_eq!(arrivals.sent, attempts);
    assert!(arrivals.waited > 20_000, "{arrivals:?}");
    // A machine without sockets fails every one of them.
    settings.server.faults.no_socket = 1.0;
    let plan = sessions(for_a_second(ArrivalProcess::Constant, 1_000.0), 2, 5, 2 * S);
    let (run, counts) = faithful(&plan, &settings, "no socket at all");
    assert_eq!(counts.connections_impossible, 1_000);
    assert_eq!(run.summary().arrivals.waited, 0);
}

#[test]
fn sessions_in_flight_at_the_end_send_nothing_more() {
    let mut plan = sessions(even_rate(100.0), 100, 200, S);
    plan.traffic.think_time_ns = 10 * MS;
    plan.load.warmup_ns = 500 * MS;
    let (run, _) = faithful(&plan, &textbook(800 * US), "cut off");
    let summary = run.summary();
    assert_eq!(summary.arrivals.planned, 100);
    assert_eq!(summary.arrivals_all.planned, 150);
    assert_eq!(lifetime(&run).connections_opened, 150);
    assert!(run.first().clock.drain_ns() <= Some(2 * MS));
    assert_eq!(summary.in_flight_at_end, 0);
}

#[test]
fn a_count_of_requests_ends_a_run_of_sessions() {
    for (rate_per_s, requests, most) in [(1_000.0, 3, 100), (1_000.0, 50, 4), (20.0, 7, 2)] {
        for (count, workers) in [(500, 1), (501, 2)] {
            let what = format!("{count} in sessions of {requests} at {rate_per_s}");
            let mut plan = sessions(even_rate(rate_per_s), requests, most, 0);
            plan.workers.count = many(workers);
            plan.load.stop.duration_ns = None;
            plan.load.stop.requests = Some(count);
            let (run, _) = faithful(&plan, &textbook(800 * US), &what);
            assert_eq!(run.summary().population.recorded, count, "{what}");
            assert_eq!(run.summary().unsent, 0, "{what}");
        }
    }
}

#[test]
fn a_closed_loop_opens_its_connections_at_a_rate() {
    let set_up_ns = |connections: u32, workers: u32, connect_per_s: Option<f64>| {
        let mut plan = plan();
        plan.load.connections = many(connections);
        plan.workers.count = many(workers);
        plan.load.model = LoadModel::Closed { connect_per_s };
        let (run, _) = faithful(&plan, &textbook(800 * US), "a ramp");
        let ready_ns = |worker: &brunt_record::WorkerRecord| at_ns(&run, worker.edges.ready);
        run.workers().map(ready_ns).max().expect("an end")
    };
    let round_trip_ns = 2 * NETWORK_NS;
    assert_eq!(set_up_ns(50, 1, None), round_trip_ns);
    assert_eq!(set_up_ns(1, 1, Some(100.0)), round_trip_ns);
    assert_eq!(set_up_ns(50, 1, Some(100.0)), 49 * 10 * MS + round_trip_ns);
    assert_eq!(set_up_ns(50, 2, Some(100.0)), 24 * 20 * MS + round_trip_ns);
    assert_eq!(set_up_ns(3, 1, Some(0.5)), 4 * S + round_trip_ns);
    assert_eq!(set_up_ns(2_001, 1, Some(1e5)), 20 * MS + round_trip_ns);
}

#[test]
fn random_connections_arrive_at_their_rate() {
    let plan = sessions(rate(ArrivalProcess::Poisson, 100.0, 8), 2, 50, 100 * S);
    let (run, _) = faithful(&plan, &SimSettings::new(4), "Poisson");
    let planned = run.summary().arrivals.planned as f64;
    assert!((planned - 1e4).abs() < 5.0 * 1e2, "{planned}");
    assert_eq!(run.latencies.first_reply.count(), planned as u64);
}
