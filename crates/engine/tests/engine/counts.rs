//! What brunt counts is what the server counts, whatever the plan and the replies.

use brunt_judge::RunFigures;
use brunt_load::{Plan, RequestOrder, RequestSet, RequestSpec, Reuse, Stamps};
use brunt_testkit::{SimServer, SimSettings};

use crate::common::{
    Kind, MS, Served, broken, by_count, change_request, expect_equal_counts, expect_valid,
    failures, lifetime, load, many, many_long, on_every_backend, simulated,
};

on_every_backend! {
    closed_loop_by_duration,
    closed_loop_by_count,
    closed_loop_in_equal_parts,
    fewer_requests_than_connections,
    connections_replaced_by_plan,
    pipelined,
    heads,
    bodies_larger_than_the_socket_buffer,
    replies_of_every_framing,
    long_bodies_that_nobody_reads,
    connections_dealt_unevenly,
}

/// Runs, and expects a valid run without failures, equal counts, and at least one reply.
fn faultless(kind: Kind, path: &str, change: impl FnOnce(&mut Plan)) -> brunt_record::Run {
    let (run, served) = load(kind, path, change);
    expect_valid(&run, path);
    expect_answered(&run, served, path);
    run
}

fn expect_answered(run: &brunt_record::Run, served: Served, what: &str) {
    expect_equal_counts(run, served, what);
    assert_eq!(failures(run), [], "{what}");
    assert_eq!(run.summary().in_flight_at_end, 0, "{what}");
    assert_eq!(served.requests, served.replies, "{what}");
    assert!(run.summary().population.recorded > 0, "{what}");
}

fn closed_loop_by_duration(kind: Kind) {
    let run = faultless(kind, "/bytes/100", |_| {});
    assert_eq!(run.window_ns, 200 * MS);
    assert_eq!(lifetime(&run).connections_opened, 4);
}

fn closed_loop_by_count(kind: Kind) {
    for (requests, workers) in [(1, 1), (500, 1), (501, 2)] {
        let run = faultless(kind, "/", |plan| {
            by_count(plan, requests);
            plan.workers = many(workers);
        });
        assert_eq!(lifetime(&run).requests_sent, requests);
        assert_eq!(run.summary().population.recorded, requests);
        assert_eq!(run.summary().unsent, 0);
    }
    // The requests of warm-up come on top.
    let run = faultless(kind, "/", |plan| {
        by_count(plan, 100);
        plan.warmup_ns = 20 * MS;
    });
    assert_eq!(run.summary().population.issued, 100);
}

fn closed_loop_in_equal_parts(kind: Kind) {
    let paths = ["/bytes/1", "/bytes/2", "/bytes/3", "/bytes/4", "/bytes/5"];
    for pipeline in [1, 3] {
        let run = faultless(kind, "/", |plan| {
            by_count(plan, 10);
            plan.connections = many(3);
            plan.workers = many(2);
            plan.pipeline = many(pipeline);
            plan.has_equal_parts = true;
            let requests = paths.map(RequestSpec::get).to_vec();
            let set = RequestSet::of(requests, RequestOrder::ConnectionTurns);
            plan.requests = set.expect("a list");
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
        plan.connections = many(20);
        plan.workers = many(2);
    });
    assert_eq!(lifetime(&run).requests_sent, 3);
    assert_eq!(lifetime(&run).connections_opened, 20);
}

fn connections_replaced_by_plan(kind: Kind) {
    for uses in [1, 7] {
        let reuse = Reuse::Requests(many_long(uses));
        let run = faultless(kind, "/bytes/10", |plan| plan.reuse = reuse);
        let lifetime = lifetime(&run);
        let (sent, opened) = (lifetime.requests_sent, lifetime.connections_opened);
        assert!(
            sent <= opened * uses,
            "{sent} requests on {opened} connections"
        );
        assert!(
            sent + 4 * uses >= opened.saturating_sub(4) * uses,
            "{sent} on {opened}"
        );
        let run = faultless(kind, "/bytes/10", |plan| {
            plan.reuse = reuse;
            by_count(plan, 50);
        });
        assert_eq!(run.summary().population.recorded, 50);
        crate::common::expect_connecting(&run, uses == 1);
    }
    // A server that does not close when it is asked to.
    if kind == Kind::Sim {
        let server = SimServer {
            honours_close: false,
            ..SimServer::default()
        };
        let (run, served) = simulated(SimSettings::new(1), server, |plan| {
            plan.reuse = Reuse::Requests(many_long(3))
        });
        expect_valid(&run, "no close");
        expect_answered(&run, served, "no close");
    }
}

fn pipelined(kind: Kind) {
    for pipeline in [1, 4, 16] {
        faultless(kind, "/bytes/300", |plan| {
            plan.pipeline = many(pipeline);
        });
        let run = faultless(kind, "/", |plan| {
            plan.pipeline = many(pipeline);
            plan.reuse = Reuse::Requests(many_long(5));
            by_count(plan, 203);
        });
        assert_eq!(run.summary().population.recorded, 203);
    }
}

fn heads(kind: Kind) {
    let run = faultless(kind, "/bytes/1000", |plan| {
        change_request(plan, |request| request.method = "HEAD".to_owned());
    });
    assert_eq!(lifetime(&run).reply_body_bytes, 0);
}

fn bodies_larger_than_the_socket_buffer(kind: Kind) {
    let bytes = 6 << 20;
    let run = faultless(kind, "/", |plan| {
        change_request(plan, |request| request.method = "POST".to_owned());
        change_request(plan, |request| request.body = vec![b'x'; bytes]);
        plan.connections = many(2);
        by_count(plan, 6);
    });
    assert!(lifetime(&run).bytes_sent >= 6 * bytes as u64);
}

fn replies_of_every_framing(kind: Kind) {
    let paths = [
        "/bytes/0",
        "/bytes/1m",
        "/chunked/0",
        "/chunked/100k",
        "/http10-keepalive",
        "/interim/3",
    ];
    for path in paths {
        let run = faultless(kind, path, |plan| by_count(plan, 40));
        let interim = if path.starts_with("/interim") { 120 } else { 0 };
        assert_eq!(lifetime(&run).interim_replies, interim, "{path}");
    }
    // The server closes after each reply: connections are fewer while they are replaced (L1).
    for path in ["/http10", "/close"] {
        let (run, served) = load(kind, path, |plan| by_count(plan, 40));
        assert_eq!(
            broken(&run, &[]),
            Vec::<brunt_judge::Finding>::new(),
            "{path}"
        );
        expect_answered(&run, served, path);
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
            plan.requests = set.clone();
            plan.stamps = stamps;
            plan.pipeline = many(pipeline);
            by_count(plan, 200);
        });
        assert!(lifetime(&run).bytes_received > 40 * (2 << 20), "{stamps:?}");
    }
}

fn connections_dealt_unevenly(kind: Kind) {
    for (connections, workers) in [(1, 1), (5, 2), (7, 3)] {
        let run = faultless(kind, "/", |plan| {
            plan.connections = many(connections);
            plan.workers = many(workers);
        });
        let asked: Vec<u32> = run.agents[0]
            .workers
            .iter()
            .map(|worker| worker.live.asked)
            .collect();
        assert_eq!(asked.iter().sum::<u32>(), connections);
        assert!(
            asked
                .iter()
                .max()
                .zip(asked.iter().min())
                .is_some_and(|(most, least)| most - least <= 1)
        );
        assert_eq!(lifetime(&run).connections_opened, u64::from(connections));
    }
}
