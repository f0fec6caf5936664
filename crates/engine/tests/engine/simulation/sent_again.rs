//! Requests that their servers did not process: they are sent again, and each has one outcome.

use brunt_load::{HttpChoice, Plan};
use brunt_record::FailureKind;
use brunt_server::Http2Options;
use brunt_testkit::{SimServer, SimSettings};

use super::reference::{exact, run_in, sum};
use super::{even_rate, faithful, open_loop, plan, textbook};
use crate::common::{MS, S, US, by_count, change_request, failures, lifetime, many, many_long};

/// How often a request is sent again at most that its server refuses.
const REFUSALS_MAX: u64 = 8;

/// A run by count without warm-up, whose requests are sent again.
fn counted(requests: u64, connections: u32) -> Plan {
    let mut plan = plan();
    plan.traffic.sends_again = true;
    plan.load.connections = many(connections);
    by_count(&mut plan, requests);
    plan.limits.timeout_ns = 100 * S;
    plan
}

/// Over HTTP/2, where each answer takes 800 us.
fn over_http2(plan: Plan, streams: u32) -> Plan {
    asking("/delay/800us", plan, streams)
}

/// Over HTTP/2, for this path.
fn asking(path: &str, mut plan: Plan, streams: u32) -> Plan {
    change_request(&mut plan, |request| request.path = path.to_owned());
    plan.connection.protocol = HttpChoice::HTTP2.into();
    plan.traffic.streams = many(streams);
    plan
}

/// A server that takes 800 µs, 100 µs away, and does this.
fn server(change: impl FnOnce(&mut SimServer)) -> SimSettings {
    let mut settings = textbook(800 * US);
    change(&mut settings.server);
    settings
}

/// The reference server, 100 us away, which takes so many requests per connection.
fn taking(requests: u64) -> SimSettings {
    let http2 = Http2Options {
        requests_max: Some(many_long(requests)),
        ..Http2Options::default()
    };
    SimSettings {
        reference: Some(http2),
        ..textbook(0)
    }
}

#[test]
fn what_goaway_names_is_sent_again_on_the_next_connection() {
    for (connections, streams, after) in [(1, 10, 53), (2, 10, 53), (1, 100, 930), (1, 100, 110)] {
        let what = format!("{connections} x {streams}, {after} per connection");
        let plan = over_http2(counted(2_000, connections), streams);
        let (run, counters) = exact(plan, &taking(after), &what);
        let lifetime = lifetime(&run);
        assert_eq!(failures(&run), [], "{what}");
        assert_eq!(lifetime.replies.successes(), 2_000, "{what}");
        assert_eq!(lifetime.requests_sent, 2_000, "{what}");
        let ignored = sum(&counters, |server| server.streams_ignored);
        assert_eq!(lifetime.sent_again, ignored, "{what}");
        assert!(ignored > 0, "{what}");
        // The detour is a part of the response time.
        let response = &run.latencies.response;
        assert_eq!((response.count(), response.min_ns()), (2_000, Some(MS)));
        assert!(response.max_ns() > Some(2 * MS), "{what}");
    }
}

/// With its body, whatever its method: the server said that it did not process it.
#[test]
fn a_refused_post_is_sent_again_whole() {
    const BODY_BYTES: u64 = 3_000;
    let mut plan = over_http2(counted(200, 1), 5);
    change_request(&mut plan, |request| {
        request.method = "POST".to_owned();
        request.body = vec![b'x'; BODY_BYTES as usize];
    });
    let (run, counters) = exact(plan, &taking(23), "a POST");
    let lifetime = lifetime(&run);
    assert_eq!(failures(&run), []);
    assert_eq!(sum(&counters, |server| server.replies), 200);
    assert!(lifetime.sent_again > 0);
    assert!(lifetime.bytes_sent >= 200 * BODY_BYTES);
}

#[test]
fn where_nothing_may_be_sent_again_it_fails_as_ever() {
    let mut plan = over_http2(counted(1_000, 2), 10);
    plan.traffic.sends_again = false;
    let (run, counters) = exact(plan, &taking(53), "off");
    let ignored = sum(&counters, |server| server.streams_ignored);
    let not_processed = (FailureKind::NotProcessed, ignored);
    assert_eq!(failures(&run), [not_processed]);
    assert_eq!(lifetime(&run).sent_again, 0);
}

#[test]
fn in_an_open_loop_the_planned_instant_and_the_first_send_count() {
    for (connections, per_s) in [(1, 5_000.0), (2, 10_000.0), (3, 20_000.0)] {
        let what = format!("{connections}, {per_s} per second");
        let mut plan = over_http2(open_loop(even_rate(per_s), connections, S), 100);
        plan.traffic.sends_again = true;
        let (run, counters) = exact(plan, &taking(50), &what);
        let lifetime = lifetime(&run);
        assert_eq!(failures(&run), [], "{what}");
        assert_eq!(lifetime.requests_sent, per_s as u64, "{what}");
        assert_eq!(lifetime.replies.successes(), per_s as u64, "{what}");
        let ignored = sum(&counters, |server| server.streams_ignored);
        assert_eq!(lifetime.sent_again, ignored, "{what}");
        assert!(ignored > 0, "{what}");
        let (response, service) = (&run.latencies.response, &run.latencies.service);
        assert_eq!(response.count(), service.count());
        // What was refused had got there and back before.
        let detour_ns = MS + 200 * US;
        assert!(service.max_ns() >= Some(detour_ns), "{what}");
        let detoured = service
            .buckets()
            .count_between(detour_ns - 10 * US, u64::MAX);
        assert!(detoured > 0 && detoured <= lifetime.sent_again, "{what}");
    }
}

#[test]
fn a_server_that_refuses_for_ever_ends_in_counted_failures() {
    let plan = asking("/refuse", counted(5, 1), 5);
    let (run, counters) = exact(plan, &textbook(0), "for ever");
    assert_eq!(failures(&run), [(FailureKind::StreamRefused, 5)]);
    let lifetime = lifetime(&run);
    assert_eq!(lifetime.sent_again, 5 * REFUSALS_MAX);
    let refused = sum(&counters, |server| server.faults);
    assert_eq!(refused, 5 * (1 + REFUSALS_MAX));
    // Each time on another connection, with growing pauses between them.
    let accepted = sum(&counters, |server| server.connections_accepted);
    assert_eq!(accepted, 1 + REFUSALS_MAX);
    assert!(run.window_ns > S, "{}", run.window_ns);
}

#[test]
fn a_refused_stream_is_sent_again_on_another_connection() {
    for is_open in [false, true] {
        let mut plan = if is_open {
            open_loop(even_rate(2_000.0), 4, S)
        } else {
            counted(2_000, 4)
        };
        plan.traffic.sends_again = true;
        let what = format!("open loop: {is_open}");
        let plan = asking("/random-refuse/5", plan, 10);
        let (run, counters) = exact(plan, &textbook(0), &what);
        let lifetime = lifetime(&run);
        assert_eq!(failures(&run), [], "{what}");
        let refused = sum(&counters, |server| server.faults);
        assert_eq!(lifetime.sent_again, refused, "{what}");
        assert_eq!(lifetime.replies.successes(), 2_000, "{what}");
        assert!(lifetime.sent_again > 50, "{what}");
    }
}

#[test]
fn an_idempotent_request_outlives_the_connection_of_one_before_it() {
    let closes = |announces_close| {
        server(|server| {
            server.close_after = Some(many_long(10));
            server.announces_close = announces_close;
        })
    };
    for (method, pipeline, announces_close, may_repeat) in [
        ("GET", 1, false, true),
        ("PUT", 1, false, true),
        ("POST", 1, false, false),
        ("GET", 8, false, true),
        ("GET", 8, true, true),
        ("POST", 8, true, false),
    ] {
        let what = format!("{method}, {pipeline} deep, announced: {announces_close}");
        let mut plan = counted(1_000, 4);
        plan.traffic.pipeline = many(pipeline);
        change_request(&mut plan, |request| request.method = method.to_owned());
        let (run, _) = faithful(&plan, &closes(announces_close), &what);
        let lifetime = lifetime(&run);
        let failed = 1_000 - lifetime.replies.successes();
        assert_eq!(failed == 0, may_repeat, "{what}: {:?}", failures(&run));
        assert_eq!(lifetime.sent_again > 0, may_repeat, "{what}");
    }
}

#[test]
fn over_http1_a_request_is_sent_again_once_and_only_after_a_reply() {
    let settings = server(|server| server.faults.closed = 1.0);
    let (run, counts) = faithful(&counted(20, 4), &settings, "never answered");
    assert_eq!(failures(&run), [(FailureKind::ClosedBeforeReply, 20)]);
    assert_eq!((lifetime(&run).sent_again, counts.requests), (0, 20));
    let settings = server(|server| server.faults.closed = 0.2);
    let (run, counts) = faithful(&counted(2_000, 4), &settings, "one in five");
    let lifetime = lifetime(&run);
    let again = lifetime.sent_again;
    // One that is the first of its connection is not sent again, be it for the first time or not.
    let failed = lifetime.failures.get(FailureKind::ClosedBeforeReply);
    assert_eq!(counts.closed, again + failed);
    assert_eq!(counts.requests, 2_000 + again);
    assert!(again > 200 && failed > 50, "{again} again, {failed} failed");
}

#[test]
fn what_waits_to_be_sent_again_fails_where_no_connection_is_to_be_had() {
    let mut settings = taking(7);
    settings.server.accepts_max = Some(many_long(2));
    // An attempt fails before the request is late, or after.
    for (connect_timeout_ns, kind) in [
        (100 * MS, FailureKind::NotProcessed),
        (10 * S, FailureKind::TimedOut),
    ] {
        for is_open in [false, true] {
            let what = format!("open loop: {is_open}, {kind:?}");
            let mut plan = if is_open {
                open_loop(even_rate(20_000.0), 2, S)
            } else {
                counted(1_000, 2)
            };
            plan.traffic.sends_again = true;
            plan.load.stop.duration_ns = Some(S);
            plan.limits.timeout_ns = 300 * MS;
            plan.limits.connect_timeout_ns = connect_timeout_ns;
            let plan = over_http2(plan, 10);
            let (run, counters) = run_in(settings.clone(), plan).expect("a run");
            let lifetime = lifetime(&run);
            let failed = lifetime.failures.get(kind);
            let ignored = sum(&counters, |server| server.streams_ignored);
            assert_eq!(failed, ignored - lifetime.sent_again, "{what}");
            assert!(failed > 0, "{what}");
            assert_eq!(lifetime.replies.successes(), 14, "{what}");
        }
    }
}

#[test]
fn a_user_who_thinks_does_not_think_before_a_request_that_is_sent_again() {
    let settings = server(|server| {
        server.close_after = Some(many_long(3));
        server.announces_close = false;
    });
    let mut plan = counted(200, 5);
    plan.traffic.think_time_ns = 20 * MS;
    let (run, _) = faithful(&plan, &settings, "thinking");
    assert_eq!(failures(&run), []);
    let max_ns = run.latencies.response.max_ns().expect("replies");
    assert!(max_ns < 10 * MS, "{max_ns}");
}
