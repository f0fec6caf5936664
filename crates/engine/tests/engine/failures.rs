//! Every failure is counted once, under its kind, and the run goes on.

use std::io::{Read, Write};
use std::net::TcpStream;

use brunt_engine::{Phase, Progress, prepare};
use brunt_judge::{InvariantStatus, RunFigures};
use brunt_load::{ArrivalProcess, HttpChoice, Plan};
use brunt_record::{FailureKind, Run};
use brunt_testkit::{Outage, malformed};

use crate::common::{
    self, Kind, MS, by_count, choice, expect_equal_connections, expect_equal_counts, expect_valid,
    failed, failures, lifetime, load, many, on_every_backend, plan, rate, requests_by_plan, serve,
    serve_at, serve_each, served, serving, simulated, status, url,
};

on_every_backend! {
    malformed_answers_are_counted_by_kind,
    a_silent_server_ends_the_run_on_time,
    a_connection_that_fails_gives_up_its_part,
    a_timeout_is_counted_once_per_request,
    resets_truncations_and_random_closes_are_accounted_for,
    a_server_that_goes_away_and_comes_back_is_found_again,
}

/// Kinds of malformed answers, the failure that each is, and whether there is a reply, too.
const MALFORMED: &[(&str, FailureKind, bool)] = {
    use FailureKind as Is;
    &[
        ("empty", Is::ClosedBeforeReply, false),
        ("garbage", Is::MalformedHead, false),
        ("http2-preface", Is::MalformedHead, false),
        ("bad-version", Is::UnsupportedVersion, false),
        ("bad-status-line", Is::MalformedHead, false),
        ("bad-status", Is::MalformedHead, false),
        ("bad-field", Is::MalformedHead, false),
        ("nul-in-field", Is::MalformedHead, false),
        ("half-head", Is::TruncatedHead, false),
        ("bad-content-length", Is::BadContentLength, false),
        ("negative-content-length", Is::BadContentLength, false),
        ("huge-content-length", Is::BadContentLength, false),
        ("two-lengths", Is::BadContentLength, false),
        ("length-and-chunked", Is::BadTransferEncoding, false),
        ("bad-chunk", Is::BadChunk, false),
        ("huge-chunk", Is::BadChunk, false),
        ("bad-chunk-end", Is::BadChunk, false),
        ("half-chunk", Is::TruncatedBody, false),
        ("no-last-chunk", Is::TruncatedBody, false),
        ("body-in-204", Is::UnexpectedBytes, true),
        ("unasked-upgrade", Is::BadInterim, false),
        ("extra-bytes", Is::UnexpectedBytes, true),
        ("short-length", Is::UnexpectedBytes, true),
        ("short-body", Is::TimedOut, false),
        ("too-many-fields", Is::TooManyHeaders, false),
        ("large-head", Is::HeadTooLarge, false),
        ("endless-head", Is::HeadTooLarge, false),
        ("endless-headers", Is::TooManyHeaders, false),
        ("endless-interim", Is::BadInterim, false),
        ("endless-chunk-extension", Is::BadChunk, false),
        ("endless-trailers", Is::TooManyHeaders, false),
        ("endless-chunks", Is::TimedOut, false),
    ]
};

/// Requests per kind of malformed answer.
const TRIES: u64 = 6;
fn malformed_answers_are_counted_by_kind(kind: Kind) {
    malformed::install();
    let known: Vec<_> = MALFORMED.iter().map(|(name, ..)| *name).collect();
    assert_eq!(malformed::names()[0], known);
    for &(name, failure, with_reply) in MALFORMED {
        let (run, _) = load(kind, &format!("/malformed/{name}"), |plan| {
            by_count(plan, TRIES);
            plan.load.connections = many(2);
            if failure == FailureKind::TimedOut {
                plan.limits.timeout_ns = 50 * MS;
            }
        });
        expect_valid(&run, name);
        assert_eq!(failures(&run), [(failure, TRIES)], "{name}");
        let replies = if with_reply { TRIES } else { 0 };
        assert_eq!(lifetime(&run).replies.total(), replies, "{name}");
        assert_eq!(lifetime(&run).requests_sent, TRIES, "{name}");
    }
}

fn a_silent_server_ends_the_run_on_time(kind: Kind) {
    let (run, served) = load(kind, "/never", |plan| {
        plan.load.drain_limit_ns = 300 * MS;
        plan.workers.count = many(2);
    });
    expect_valid(&run, "never");
    // On a machine that is busy, drain may end late; expect_valid refuses what is too late.
    if kind == Kind::Sim {
        let drain_ns = run.first().clock.drain_ns().expect("drain has an end");
        assert!((300 * MS..=301 * MS).contains(&drain_ns), "{drain_ns}");
    }
    assert_eq!(run.window_ns, 200 * MS);
    assert_eq!(lifetime(&run).requests_sent, 4);
    assert_eq!(run.summary().in_flight_at_end, 4);
    assert_eq!((served.requests, served.replies), (4, 0));
}

fn a_connection_that_fails_gives_up_its_part(kind: Kind) {
    let (run, served) = load(kind, "/never", |plan| {
        plan.limits.timeout_ns = 40 * MS;
        by_count(plan, 10);
        plan.load.connections = many(3);
        plan.workers.count = many(2);
        plan.traffic.has_equal_parts = true;
    });
    expect_valid(&run, "equal parts");
    let lifetime = lifetime(&run);
    assert_eq!(lifetime.requests_sent, 3);
    assert_eq!(lifetime.failures.get(FailureKind::TimedOut), 3);
    assert_eq!(lifetime.connections_opened, 3);
    assert_eq!(run.summary().unsent, 7);
    assert_eq!((served.requests, served.replies), (3, 0));
}

fn a_timeout_is_counted_once_per_request(kind: Kind) {
    let (run, served) = load(kind, "/never", |plan| {
        plan.limits.timeout_ns = 40 * MS;
        plan.traffic.pipeline = many(2);
        plan.load.drain_limit_ns = 500 * MS;
    });
    expect_valid(&run, "time-outs");
    let lifetime = lifetime(&run);
    let timed_out = lifetime.failures.get(FailureKind::TimedOut);
    let unanswered = lifetime.failures.get(FailureKind::Unanswered);
    assert!(timed_out >= 4, "{timed_out}");
    // The second of a pair was sent with the first, and is lost with it.
    assert_eq!(timed_out, unanswered);
    assert_eq!(lifetime.requests_sent, timed_out + unanswered);
    assert_eq!(run.summary().in_flight_at_end, 0);
    expect_equal_connections(&run, served, "time-outs");
    assert_eq!(served.replies, 0);
}

fn resets_truncations_and_random_closes_are_accounted_for(kind: Kind) {
    use FailureKind as Is;
    let cases: [(&str, &[FailureKind]); 4] = [
        (
            "/reset",
            // A backend that cannot reset closes.
            &[Is::Reset, Is::ClosedBeforeReply],
        ),
        ("/truncate/1k", &[Is::TruncatedBody, Is::TruncatedHead]),
        // What nobody reads of a long body is cut short like any other.
        ("/truncate/1m", &[Is::TruncatedBody, Is::TruncatedHead]),
        ("/random-close/30", &[Is::ClosedBeforeReply, Is::Reset]),
    ];
    for (path, kinds) in cases {
        let (run, served) = load(kind, path, |plan| {
            by_count(plan, 200);
        });
        expect_valid(&run, path);
        expect_equal_counts(&run, served, path);
        assert_eq!(lifetime(&run).requests_sent, 200, "{path}");
        assert_eq!(failed(&run) + served.replies, 200, "{path}");
        assert!(failed(&run) > 20, "{path}");
        let found = failures(&run);
        let is_expected = found.iter().all(|(kind, _)| kinds.contains(kind));
        assert!(is_expected, "{path}: {found:?}");
    }
}

fn a_server_that_goes_away_and_comes_back_is_found_again(kind: Kind) {
    let run = gone_and_back(kind);
    expect_valid(&run, "gone and back");
    let lifetime = lifetime(&run);
    assert!(lifetime.failures.get(FailureKind::ConnectRefused) > 0);
    assert!(lifetime.connections_opened > 4, "{lifetime:?}");
    assert_ne!(status(&run, "L1"), InvariantStatus::Held);
}

fn gone_and_back(kind: Kind) -> Run {
    let change = |plan: &mut Plan| plan.load.stop.duration_ns = Some(400 * MS);
    if kind == Kind::Sim {
        let outage = Outage {
            from_ns: 100 * MS,
            until_ns: 150 * MS,
        };
        simulated(serving(|server| server.outage = Some(outage)), change).0
    } else {
        restarted(kind, change)
    }
}

/// Stops the server once the window has begun, and starts it again as soon as an attempt to
/// connect has failed.
fn restarted(kind: Kind, change: impl FnOnce(&mut Plan)) -> Run {
    let mut serving = Some(serve(kind));
    let mut plan = plan(&url(serving.as_ref().expect("a server"), "/"), choice(kind));
    change(&mut plan);
    let address = serving.as_ref().expect("a server").address().clone();
    let prepared = prepare(plan).expect("a plan that fits");
    let control = prepared.control();
    let (mut requests, mut is_stopped) = (0, false);
    let run = prepared.run(&control, true, &mut |phase, progress: &Progress| {
        if phase == Phase::Measure && !is_stopped {
            is_stopped = true;
            requests += serving.take().map_or(0, |serving| served(serving).requests);
        } else if is_stopped && serving.is_none() && progress.live == 0 {
            serving = Some(serve_at(kind, address.clone()));
        }
    });
    let run = run.expect("a run");
    requests += serving.take().map_or(0, |serving| served(serving).requests);
    let sent = lifetime(&run).requests_sent;
    // Those in flight when the server stopped may have come too late for it.
    assert!(
        (sent - failed(&run)..=sent).contains(&requests),
        "{sent} sent, {requests} received"
    );
    run
}

/// A run on epoll, against a peer of the test's own.
fn against(
    behave: impl Fn(u64, TcpStream) + Clone + Send + 'static,
    change: impl FnOnce(&mut Plan),
) -> Run {
    let url = format!("http://{}/", serve_each(behave));
    let mut plan = plan(&url, choice(Kind::Epoll));
    change(&mut plan);
    common::run(plan)
}

/// A proxy at its limit.
#[test]
fn a_server_that_closes_at_once_is_not_run_over() {
    let run = against(
        |_, peer| drop(peer),
        |plan| requests_by_plan(plan, rate(ArrivalProcess::Constant, 0.5, 0), 10),
    );
    let closed = lifetime(&run).connections_closed_idle;
    // The four connections are opened anew at once, then after 20 ms, 40 ms, 80 ms, 160 ms.
    // Without pauses they would be thousands.
    assert!((4..=40).contains(&closed), "{closed}");
}

/// Before they are complete no stream is allowed, which is not the server's doing.
#[test]
fn settings_that_come_in_pieces_shut_no_connection() {
    let in_pieces = |_, mut peer: TcpStream| {
        peer.set_nodelay(true).expect("an option");
        // SETTINGS_MAX_CONCURRENT_STREAMS = 10.
        for piece in [&[0, 0, 6, 4, 0, 0, 0, 0, 0][..], &[0, 3, 0, 0, 0, 10]] {
            peer.write_all(piece).expect("a write");
            brunt_io::threads::sleep(2 * MS);
        }
        let _ = peer.read_to_end(&mut Vec::new());
    };
    let run = against(in_pieces, |plan| {
        plan.connection.protocol = HttpChoice::HTTP2.into();
        plan.limits.timeout_ns = 50 * MS;
        plan.load.connections = many(2);
    });
    let lifetime = lifetime(&run);
    assert_eq!(lifetime.connections_shut, 0);
    assert!(lifetime.requests_sent > 0 && lifetime.connections_opened >= 2);
}
