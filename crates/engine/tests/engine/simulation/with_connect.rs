//! Response times together with opening the connection, where they are known beforehand.

use brunt_judge::RunFigures;
use brunt_load::{HttpChoice, Plan, Reuse, Target};
use brunt_record::{Histogram, Run};

use super::{even_rate, faithful, open_loop, plan, textbook};
use crate::common::{MS, S, US, change_request, connections_by_plan, many, many_long};

/// Round trip of the network.
const ROUND_TRIP_NS: u64 = 200 * US;

/// Four connections with a request each, and others after them.
fn per_request() -> Plan {
    let mut plan = plan();
    plan.load.connections = many(4);
    plan.traffic.reuse = Reuse::Requests(many_long(1));
    plan.load.stop.duration_ns = Some(S);
    plan.load.warmup_ns = 100 * MS;
    plan
}

fn ends_ns(histogram: &Histogram) -> (Option<u64>, Option<u64>) {
    (histogram.min_ns(), histogram.max_ns())
}

fn always_ns(ns: u64) -> (Option<u64>, Option<u64>) {
    (Some(ns), Some(ns))
}

#[test]
fn connecting_by_tcp_is_a_round_trip_more() {
    for workers in [1, 2] {
        let mut plan = per_request();
        plan.workers.count = many(workers);
        let (run, _) = faithful(&plan, &textbook(800 * US), "TCP");
        let latencies = &run.latencies;
        assert!(run.connects_per_request());
        assert_eq!(ends_ns(&latencies.response), always_ns(MS));
        let total_ns = MS + ROUND_TRIP_NS;
        assert_eq!(ends_ns(&latencies.with_connect), always_ns(total_ns));
        assert_eq!(latencies.with_connect.count(), latencies.response.count());
        // 4 connections, each of which asks once per total.
        let expected = 4 * S / total_ns;
        assert!(latencies.response.count().abs_diff(expected) <= 4);
    }
}

#[test]
fn handshake_and_settings_are_part_of_connecting() {
    let added_ns = |https: bool, http: HttpChoice| {
        let mut plan = per_request();
        if https {
            plan.target = Target::parse("https://simulated/", None).expect("a URL");
        }
        plan.connection.protocol = http.into();
        if http == HttpChoice::HTTP2 {
            change_request(&mut plan, |request| {
                request.path = "/delay/800us".to_owned()
            });
        }
        let (run, _) = faithful(&plan, &textbook(800 * US), "handshakes");
        let latencies = &run.latencies;
        assert_eq!(ends_ns(&latencies.response), always_ns(MS));
        assert_eq!(latencies.with_connect.count(), latencies.response.count());
        let steps = [&latencies.connect, &latencies.tls, &latencies.greeting];
        let steps_ns: u64 = steps.into_iter().filter_map(Histogram::max_ns).sum();
        let total_ns = MS + steps_ns;
        assert_eq!(ends_ns(&latencies.with_connect), always_ns(total_ns));
        steps_ns
    };
    let tcp_ns = added_ns(false, HttpChoice::HTTP1);
    let tls_ns = added_ns(true, HttpChoice::HTTP1);
    assert_eq!(tcp_ns, ROUND_TRIP_NS);
    assert!(tls_ns >= 2 * ROUND_TRIP_NS, "{tls_ns}");
    assert!(added_ns(false, HttpChoice::HTTP2) >= tcp_ns);
    assert!(added_ns(true, HttpChoice::HTTP2) >= tls_ns);
}

#[test]
fn waiting_for_the_connection_is_not_counted_twice() {
    let at_rate = |rate_per_s: f64, connections: u32| -> Run {
        let mut plan = open_loop(even_rate(rate_per_s), connections, S);
        plan.traffic.reuse = Reuse::Requests(many_long(1));
        faithful(&plan, &textbook(800 * US), "open loop").0
    };
    // Opened beforehand: on top of the response time.
    let latencies = at_rate(100.0, 10).latencies;
    assert_eq!(ends_ns(&latencies.response), always_ns(MS));
    assert_eq!(
        ends_ns(&latencies.with_connect),
        always_ns(MS + ROUND_TRIP_NS)
    );
    // More are due than one connection carries: they wait while it is opened anew.
    let run = at_rate(2_000.0, 1);
    let latencies = &run.latencies;
    assert!(latencies.response.max_ns() > Some(500 * MS));
    assert_eq!(
        latencies.with_connect.max_ns(),
        latencies.response.max_ns(),
        "opening began when it had waited"
    );
    let latest_ns = latencies.with_connect.sum_ns() - latencies.response.sum_ns();
    // The first one alone was due on a connection that was open, and a few during an opening.
    assert!(latest_ns <= 3 * ROUND_TRIP_NS, "{latest_ns}");
}

#[test]
fn sessions_of_one_request_have_it_too() {
    let mut plan = open_loop(even_rate(100.0), 10, S);
    connections_by_plan(&mut plan, even_rate(100.0), 100);
    plan.traffic.reuse = Reuse::Requests(many_long(1));
    let (run, _) = faithful(&plan, &textbook(800 * US), "sessions");
    assert!(run.connects_per_request());
    let latencies = &run.latencies;
    assert_eq!(
        ends_ns(&latencies.with_connect),
        always_ns(MS + ROUND_TRIP_NS)
    );
    assert_eq!(
        ends_ns(&latencies.with_connect),
        ends_ns(&latencies.first_reply)
    );
}

#[test]
fn kept_connections_have_none_of_it() {
    for uses in [None, Some(2)] {
        let mut plan = per_request();
        plan.traffic.reuse = uses.map_or(Reuse::Unlimited, |uses| Reuse::Requests(many_long(uses)));
        let (run, _) = faithful(&plan, &textbook(800 * US), "kept");
        assert!(!run.connects_per_request(), "{uses:?}");
    }
}
