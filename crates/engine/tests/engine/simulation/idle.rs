//! Servers that close idle connections: what an open loop opens again, and what it counts. What a
//! run by count opens.

use brunt_judge::{InvariantStatus, RunFigures};
use brunt_load::{ArrivalProcess, HttpChoice, Plan, Reuse, Target};
use brunt_record::Run;
use brunt_testkit::{IdleLimit, Outage, ServiceTime, SimSettings};

use super::{even_rate, faithful, open_loop, plan, rate, run, textbook};
use crate::common::{
    MS, S, US, by_count, change_request, failures, lifetime, many, many_long, status,
    window_start_ns,
};

/// A server that takes 1 ms, and closes what is idle for so long.
fn closing(after_ns: u64, sends_408: bool) -> SimSettings {
    let mut settings = textbook(MS);
    settings.server.idle = Some(IdleLimit {
        after_ns,
        sends_408,
    });
    settings
}

/// The plan over each carrier of HTTP.
fn carriers(plan: &Plan) -> Vec<(&'static str, Plan)> {
    let mut secure = plan.clone();
    secure.target = Target::parse("https://simulated/", None).expect("a URL");
    secure.connection.protocol = HttpChoice::HTTP1.into();
    let mut streams = plan.clone();
    streams.connection.protocol = HttpChoice::HTTP2.into();
    change_request(&mut streams, |request| {
        request.path = "/delay/1ms".to_owned()
    });
    vec![
        ("HTTP/1.1", plan.clone()),
        ("TLS", secure),
        ("HTTP/2", streams),
    ]
}

/// Counts what happened to connections: opened, closed by the server, and arrivals that waited.
fn connections(run: &Run) -> [u64; 3] {
    let closed = lifetime(run).connections_closed_idle;
    let waited = run.summary().arrivals.waited;
    [lifetime(run).connections_opened, closed, waited]
}

#[test]
fn an_open_loop_opens_again_what_it_needs() {
    for (rate_per_s, idle_ms, expected) in [
        // Two connections take turns, each used in time; nobody misses the others.
        (5.0, 450, [64, 62, 0]),
        // All are gone before the next request, for which one is opened in time.
        (1.0, 300, [67, 67, 0]),
    ] {
        let plan = open_loop(even_rate(rate_per_s), 64, 4 * S);
        for (what, plan) in carriers(&plan) {
            let what = format!("{what}, {rate_per_s} per second");
            let (run, _) = faithful(&plan, &closing(idle_ms * MS, false), &what);
            assert_eq!(connections(&run), expected, "{what}");
            assert_eq!(failures(&run), [], "{what}");
            let max_ns = run.latencies.response.max_ns();
            assert_eq!(max_ns, Some(MS + 200 * US), "{what}");
            assert_eq!(status(&run, "L1"), InvariantStatus::Held, "{what}");
        }
    }
}

#[test]
fn waiting_for_a_connection_that_is_opened_is_not_brunts_own() {
    let plan = open_loop(rate(ArrivalProcess::Poisson, 20.0, 1), 8, 60 * S);
    let service_ns = 30 * MS;
    let mut settings = closing(150 * MS, false);
    settings.network_ns = 10 * US;
    settings.server.service = ServiceTime::Constant(service_ns);
    let (run, _) = faithful(&plan, &settings, "on demand");
    let [opened, _, waited] = connections(&run);
    assert!((1..opened).contains(&waited), "{waited} of {opened}");
    let latencies = &run.latencies;
    assert_eq!(latencies.split.own.max_ns(), Some(0));
    // A round trip for the request, and up to one for its connection.
    let least_ns = service_ns + 20 * US;
    assert_eq!(latencies.response.min_ns(), Some(least_ns));
    assert!(latencies.response.max_ns() <= Some(least_ns + 20 * US));
    assert!(latencies.response.max_ns() > Some(least_ns));
}

#[test]
fn a_reply_before_the_end_of_an_idle_connection_is_no_failure() {
    for (rate_per_s, expected) in [(5.0, 62), (1.0, 67)] {
        let plan = open_loop(even_rate(rate_per_s), 64, 4 * S);
        let after_ms = if expected == 62 { 450 } else { 300 };
        for (what, plan) in carriers(&plan).into_iter().take(2) {
            let (run, counts) = faithful(&plan, &closing(after_ms * MS, true), what);
            let lifetime = lifetime(&run);
            assert_eq!(lifetime.idle_replies, expected, "{what}");
            assert_eq!(lifetime.connections_closed_idle, expected, "{what}");
            assert_eq!(counts.closed_idle, expected, "{what}");
            assert_eq!(failures(&run), [], "{what}");
            let population = run.summary().population;
            assert_eq!(population.recorded, population.issued, "{what}");
        }
    }
}

#[test]
fn what_is_closed_while_idle_is_no_outage() {
    let plan = open_loop(even_rate(1.0), 4, 5 * S);
    let mut settings = closing(300 * MS, false);
    // Nothing is open from 2.3 s on, and nothing is asked for before 2.9 s.
    settings.server.outage = Some(Outage {
        from_ns: 2_500 * MS,
        until_ns: 3_500 * MS,
    });
    let (run, _) = run(plan, &settings);
    let failure = run.server_failure().expect("an outage");
    assert!(!failure.is_silence, "{failure:?}");
    let from_ns = window_start_ns(&run) + failure.outages[0].from_ns;
    assert!((2_880 * MS..2_930 * MS).contains(&from_ns), "{from_ns}");
}

#[test]
fn no_connection_is_opened_that_no_request_is_left_for() {
    for (workers, connections, requests) in [
        (1, 5, 50),
        (2, 5, 50),
        (3, 7, 53),
        (1, 50, 50),
        (2, 40, 50),
        (1, 1, 3),
    ] {
        let mut plan = plan();
        plan.workers.count = many(workers);
        plan.load.connections = many(connections);
        by_count(&mut plan, requests);
        for (what, plan) in carriers(&plan) {
            let what = format!("{what}, {workers} workers, {connections} connections");
            let mut settings = textbook(MS);
            let mut one_each = plan.clone();
            one_each.traffic.reuse = Reuse::Requests(many_long(1));
            let (_, counts) = faithful(&one_each, &settings, &what);
            assert_eq!(counts.connections_accepted, requests, "{what}");
            if what.starts_with("HTTP/1.1") {
                settings.server.close_after = Some(many_long(1));
                let (_, counts) = faithful(&plan, &settings, &what);
                assert_eq!(counts.connections_accepted, requests, "{what}, closing");
            }
        }
    }
    let mut plan = open_loop(even_rate(2_000.0), 4, 0);
    plan.load.stop.duration_ns = None;
    plan.load.stop.requests = Some(1_000);
    plan.traffic.reuse = Reuse::Requests(many_long(1));
    let (_, counts) = faithful(&plan, &textbook(300 * US), "an open loop");
    assert_eq!(counts.connections_accepted, 1_000);
}

#[test]
fn connections_that_end_just_before_a_short_run_break_nothing() {
    for after_us in (0..20_000).step_by(250) {
        let mut plan = plan();
        plan.load.connections = many(2);
        by_count(&mut plan, 1);
        let mut settings = SimSettings::new(1);
        settings.network_ns = 10 * US;
        settings.server.service = ServiceTime::Constant(20 * US);
        settings.server.idle = closing(after_us * US, false).server.idle;
        let (run, _) = run(plan, &settings);
        let what = format!("{after_us} us: {} ns", run.window_ns);
        assert_ne!(status(&run, "L1"), InvariantStatus::Broken, "{what}");
    }
}
