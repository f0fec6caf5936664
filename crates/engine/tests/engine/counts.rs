//! What brunt counts is what the server counts, whatever the plan and the replies.

use brunt_judge::RunFigures;
use brunt_load::{Plan, RequestOrder, RequestSet, RequestSpec, Reuse, Stamps};
use brunt_record::Run;

use crate::common::{
    Kind, Served, by_count, change_request, expect_faultless, lifetime, load, many, many_long,
    on_every_backend, serving, simulated,
};

on_every_backend! {
    closed_loop_in_equal_parts,
    fewer_requests_than_connections,
    pipelined,
    bodies_larger_than_the_socket_buffer,
    replies_of_every_framing,
    long_bodies_that_nobody_reads,
    connections_dealt_unevenly,
}

/// Runs, and expects a valid run without failures, equal counts, and at least one reply.
fn faultless(kind: Kind, path: &str, change: impl FnOnce(&mut Plan)) -> Run {
    let (run, served) = load(kind, path, change);
    expect_answered(&run, served, path);
    run
}

fn expect_answered(run: &Run, served: Served, what: &str) {
    expect_faultless(run, served, what);
    assert_eq!(run.summary().in_flight_at_end, 0, "{what}");
    assert_eq!(served.requests, served.replies, "{what}");
    assert!(run.summary().population.recorded > 0, "{what}");
}

fn closed_loop_in_equal_parts(kind: Kind) {
    let paths = ["/bytes/1", "/bytes/2", "/bytes/3", "/bytes/4", "/bytes/5"];
    for pipeline in [1, 3] {
        let run = faultless(kind, "/", |plan| {
            by_count(plan, 10);
            plan.load.connections = many(3);
            plan.workers.count = many(2);
            plan.traffic.pipeline = many(pipeline);
            plan.traffic.has_equal_parts = true;
            let requests = paths.map(RequestSpec::get).to_vec();
            let set = RequestSet::of(requests, RequestOrder::ConnectionTurns);
            plan.traffic.requests = set.expect("a list");
        });
        assert_eq!(lifetime(&run).requests_sent, 10);
        // Two connections of one worker have 3 and 2, the one of the other has 5.
        let sent: Vec<u64> = run.names.iter().map(|name| name.requests_sent).collect();
        assert_eq!(sent, [3, 3, 2, 1, 1]);
    }
}

fn fewer_requests_than_connections(kind: Kind) {
    let run = faultless(kind, "/", |plan| {
        by_count(plan, 3);
        plan.load.connections = many(20);
        plan.workers.count = many(2);
    });
    assert_eq!(lifetime(&run).requests_sent, 3);
    assert_eq!(lifetime(&run).connections_opened, 20);
}

/// A server that does not close when it is asked to.
#[test]
fn a_connection_that_the_server_does_not_close_is_replaced() {
    let settings = serving(|server| server.honours_close = false);
    let (run, served) = simulated(settings, |plan| {
        plan.traffic.reuse = Reuse::Requests(many_long(3))
    });
    expect_answered(&run, served, "no close");
}

fn pipelined(kind: Kind) {
    for pipeline in [1, 4, 16] {
        faultless(kind, "/bytes/300", |plan| {
            plan.traffic.pipeline = many(pipeline);
        });
        let run = faultless(kind, "/", |plan| {
            plan.traffic.pipeline = many(pipeline);
            plan.traffic.reuse = Reuse::Requests(many_long(5));
            by_count(plan, 203);
        });
        assert_eq!(run.summary().population.recorded, 203);
    }
}

fn bodies_larger_than_the_socket_buffer(kind: Kind) {
    let bytes = 6 << 20;
    let run = faultless(kind, "/", |plan| {
        change_request(plan, |request| request.method = "POST".to_owned());
        change_request(plan, |request| request.body = vec![b'x'; bytes]);
        plan.load.connections = many(2);
        by_count(plan, 6);
    });
    assert!(lifetime(&run).bytes_sent >= 6 * bytes as u64);
}

fn replies_of_every_framing(kind: Kind) {
    let paths = "/bytes/0 /bytes/1m /chunked/0 /chunked/100k /http10-keepalive /interim/3";
    for path in paths.split(' ') {
        let run = faultless(kind, path, |plan| by_count(plan, 40));
        let interim = if path.starts_with("/interim") { 120 } else { 0 };
        assert_eq!(lifetime(&run).interim_replies, interim, "{path}");
    }
    // The server closes after each reply: connections are fewer while they are replaced (L1).
    for path in ["/http10", "/close"] {
        let run = faultless(kind, path, |plan| by_count(plan, 40));
        assert!(lifetime(&run).connections_opened >= 40, "{path}");
        crate::common::expect_connecting(&run, true);
    }
}

fn long_bodies_that_nobody_reads(kind: Kind) {
    let paths = ["/bytes/1m", "/bytes/1m", "/bytes/10", "/bytes/70k", "/"];
    let requests = paths.map(RequestSpec::get).to_vec();
    let set = RequestSet::of(requests, RequestOrder::Turns);
    let set = set.expect("five requests");
    for (stamps, pipeline) in [(Stamps::Off, 1), (Stamps::Full, 1), (Stamps::Sampled, 3)] {
        let run = faultless(kind, "/", |plan| {
            plan.traffic.requests = set.clone();
            plan.observation.stamps = stamps;
            plan.traffic.pipeline = many(pipeline);
            by_count(plan, 200);
        });
        assert!(lifetime(&run).bytes_received > 40 * (2 << 20), "{stamps:?}");
    }
}

fn connections_dealt_unevenly(kind: Kind) {
    for (connections, workers) in [(1, 1), (5, 2), (7, 3)] {
        let run = faultless(kind, "/", |plan| {
            plan.load.connections = many(connections);
            plan.workers.count = many(workers);
        });
        let shares = || run.workers().map(|worker| worker.live.asked);
        assert_eq!(shares().sum::<u32>(), connections);
        let bounds = shares().max().zip(shares().min());
        assert!(bounds.is_some_and(|(most, least)| most - least <= 1));
        assert_eq!(lifetime(&run).connections_opened, u64::from(connections));
    }
}
