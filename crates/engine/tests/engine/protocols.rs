//! HTTP/2, TLS below it and HTTP/1.1, and HTTP/3, on every backend: what brunt counts is what the
//! server counts, in closed and open loops, however connections and streams end.

use brunt_engine::Rounds;
use brunt_judge::{Quantile, ResponseQuantiles, RunFigures};
use brunt_load::{ArrivalProcess, HttpChoice, Load, Plan, Reuse, Spin, Stamps, Target};
use brunt_record::{CarriedIn, FailureKind, Population, Protocol, Run};
use brunt_server::{ListenAddress, ServeOptions, TlsOptions};
use brunt_testkit::Framing;

use crate::common::{
    Kind, MS, Served, Server, by_count, change_request, choice, connections_by_plan,
    expect_connecting, expect_valid, failures, lifetime, many, many_long, plan, rate,
    requests_by_plan, requests_of, run, serve_at, served, server_backend, serving, simulated,
    trust,
};

/// What is spoken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wire {
    /// HTTP/1.1 in clear text.
    Http1,
    /// HTTP/2 in clear text.
    Http2,
    /// HTTP/1.1 over TLS.
    TlsHttp1,
    /// HTTP/2 over TLS.
    TlsHttp2,
    /// HTTP/3.
    Http3,
}

impl Wire {
    fn is_tls(self) -> bool {
        matches!(self, Self::TlsHttp1 | Self::TlsHttp2 | Self::Http3)
    }

    fn protocol(self) -> Protocol {
        match self {
            Self::Http1 | Self::TlsHttp1 => Protocol::HTTP1,
            Self::Http2 | Self::TlsHttp2 => Protocol::HTTP2,
            Self::Http3 => Protocol::HTTP3,
        }
    }

    /// Requests in flight per connection.
    fn depth(self) -> u32 {
        match self {
            Self::Http1 | Self::TlsHttp1 => 1,
            Self::Http2 | Self::TlsHttp2 | Self::Http3 => 8,
        }
    }
}

/// Makes a test of each case, per backend and wire.
macro_rules! on_every_backend_over {
    ($wires:tt, $cases:tt) => {
        mod uring { on_every_backend_over!(@wires Uring, $wires, $cases); }
        mod epoll { on_every_backend_over!(@wires Epoll, $wires, $cases); }
        mod sim { on_every_backend_over!(@wires Sim, $wires, $cases); }
    };
    (@wires $kind:ident, [$($name:ident: $wire:ident),+], $cases:tt) => {
        $(mod $name { on_every_backend_over!(@cases $kind, $wire, $cases); })+
    };
    (@cases $kind:ident, $wire:ident, [$($case:ident),+ $(,)?]) => {
        $(#[test] fn $case() {
            super::super::super::$case(crate::common::Kind::$kind, super::super::super::Wire::$wire)
        })+
    };
}

mod every_wire {
    on_every_backend_over! {
        [http1: Http1, http2: Http2, tls_http1: TlsHttp1, tls_http2: TlsHttp2, http3: Http3],
        [
            closed_loops_are_counted,
            a_count_of_requests_is_kept,
            connections_are_replaced_by_plan,
            planned_requests_are_sent_once,
            sessions_are_opened_as_planned,
            large_bodies_come_and_go,
            heads_have_no_bodies,
            connections_go_on_in_later_rounds,
        ]
    }
}

/// Runs against the reference server's `path`; where brunt is simulated, the network is, too.
fn load(kind: Kind, wire: Wire, path: &str, change: impl FnOnce(&mut Plan)) -> (Run, Served) {
    let (server, mut plan) = serve_over(kind, wire, path);
    change(&mut plan);
    let (run, served) = server.session(&plan, |session| {
        session.round(&plan.load, &mut |_, _: &_| {})
    });
    let run = run.expect("a run");
    assert_eq!(run.agents[0].negotiated.protocol, wire.protocol());
    assert_eq!(run.agents[0].negotiated.tls.is_some(), wire.is_tls());
    (run, served)
}

/// The reference server, and a plan that asks it for `path` over `wire`.
fn serve_over(kind: Kind, wire: Wire, path: &str) -> (Server, Plan) {
    let mut plan = plan("http://127.0.0.1/", choice(kind));
    if kind == Kind::Sim {
        speak(&mut plan, wire, "simulated", path);
        return (Server::reference(kind), plan);
    }
    let mut options = ServeOptions::new(ListenAddress::Tcp(([127, 0, 0, 1], 0).into()));
    options.backend = server_backend(kind);
    options.tls = wire.is_tls().then(TlsOptions::default);
    options.http3 = wire == Wire::Http3;
    let serving = brunt_server::start(&options).expect("a server");
    speak(&mut plan, wire, &serving.address().to_string(), path);
    trust(&mut plan, &serving);
    (Server::Real(serving), plan)
}

/// Has the plan load `path` over `wire`.
fn speak(plan: &mut Plan, wire: Wire, authority: &str, path: &str) {
    let scheme = if wire.is_tls() { "https" } else { "http" };
    let url = format!("{scheme}://{authority}{path}");
    plan.target = Target::parse(&url, None).expect("a URL");
    change_request(plan, |request| request.path = path.to_owned());
    let http = match wire {
        Wire::Http2 => HttpChoice::HTTP2,
        Wire::Http1 | Wire::TlsHttp1 => HttpChoice::HTTP1,
        Wire::TlsHttp2 => HttpChoice::AUTO,
        Wire::Http3 => HttpChoice::HTTP3,
    };
    plan.connection.protocol = http.into();
    plan.traffic.streams = many(8);
}

/// Runs, and expects a valid run without failures, equal counts, and at least one reply.
fn faultless(kind: Kind, wire: Wire, path: &str, change: impl FnOnce(&mut Plan)) -> Run {
    let (run, served) = load(kind, wire, path, change);
    let what = format!("{path} over {wire:?}");
    expect_valid(&run, &what);
    let lifetime = lifetime(&run);
    assert_eq!(lifetime.requests_sent, served.requests, "{what}: requests");
    assert_eq!(lifetime.replies.total(), served.replies, "{what}: replies");
    // Over TLS, a connection that brunt opens at its end may be gone before the server knows.
    let apart = lifetime.connections_opened.abs_diff(served.connections);
    let connections = u64::from(run.plan.load.connections.get());
    assert!(apart <= connections, "{what}: {apart} connections");
    assert_eq!(failures(&run), [], "{what}");
    assert!(run.summary().population.recorded > 0, "{what}");
    let quic = lifetime.quic;
    assert_eq!(quic.is_none(), wire != Wire::Http3, "{what}: {quic:?}");
    if wire == Wire::Http3 {
        let (sent, received) = (quic.datagrams_sent, quic.datagrams_received);
        assert!(sent >= quic.sends && quic.sends > 0, "{quic:?}");
        assert!(received >= quic.receives && received > 0, "{quic:?}");
        let packets = quic.packets_sent + lifetime.connections_opened;
        assert!(packets >= sent && quic.round_trips > 0, "{quic:?}");
        assert_eq!(quic.handshakes_retried, 0, "{quic:?}");
    }
    let handshakes = lifetime.handshakes_full + lifetime.handshakes_resumed;
    let expected = u64::from(wire.is_tls()) * lifetime.connections_opened;
    assert_eq!(handshakes, expected, "{what}");
    run
}

fn at_rate(plan: &mut Plan, rate_per_s: f64) {
    let process = ArrivalProcess::Poisson;
    requests_by_plan(plan, rate(process, rate_per_s, 11), 100_000);
    plan.workers.spin = Spin::Off;
}

fn closed_loops_are_counted(kind: Kind, wire: Wire) {
    for (connections, workers, stamps) in [(4, 1, Stamps::Full), (21, 2, Stamps::Sampled)] {
        let run = faultless(kind, wire, "/bytes/100", |plan| {
            plan.load.connections = many(connections);
            plan.workers.count = many(workers);
            plan.observation.stamps = stamps;
        });
        assert_eq!(run.window_ns, 200 * MS);
        assert_eq!(run.agents[0].negotiated.depth, wire.depth());
        assert_eq!(lifetime(&run).connections_opened, u64::from(connections));
        let latencies = &run.latencies;
        assert_eq!(latencies.tls.count() > 0, wire.is_tls());
        assert_eq!(latencies.first_byte.count(), latencies.response.count());
        // What is known of brunt's own share: that of every stream.
        assert!(latencies.split.count() > 0, "{connections} connections");
        if stamps == Stamps::Full {
            assert_eq!(latencies.split.count(), latencies.response.count());
        }
    }
}

fn a_count_of_requests_is_kept(kind: Kind, wire: Wire) {
    for (requests, workers) in [(1, 1), (500, 1), (501, 2)] {
        let run = faultless(kind, wire, "/", |plan| {
            by_count(plan, requests);
            plan.workers.count = many(workers);
        });
        assert_eq!(lifetime(&run).requests_sent, requests);
        assert_eq!(run.summary().population.recorded, requests);
        assert_eq!(run.summary().unsent, 0);
    }
    // The requests of warm-up come on top.
    let run = faultless(kind, wire, "/", |plan| {
        by_count(plan, 100);
        plan.load.warmup_ns = 20 * MS;
    });
    assert_eq!(run.summary().population.issued, 100);
}

fn connections_are_replaced_by_plan(kind: Kind, wire: Wire) {
    for uses in [1, 7] {
        let run = faultless(kind, wire, "/bytes/10", |plan| {
            plan.traffic.reuse = Reuse::Requests(many_long(uses));
            by_count(plan, 100);
        });
        let opened = lifetime(&run).connections_opened;
        assert!(opened >= 100 / uses, "{opened} connections of {uses} uses");
        assert_eq!(run.summary().population.recorded, 100);
        expect_connecting(&run, uses == 1);
    }
}

fn planned_requests_are_sent_once(kind: Kind, wire: Wire) {
    let run = faultless(kind, wire, "/bytes/100", |plan| {
        plan.observation.stamps = Stamps::Full;
        at_rate(plan, 2_000.0);
    });
    let summary = run.summary();
    assert_eq!(summary.arrivals.sent, summary.arrivals.planned);
    assert_eq!(summary.population.recorded, summary.arrivals.planned);
    // Each response time has its parts.
    assert_eq!(run.latencies.split.count(), run.latencies.response.count());
}

fn sessions_are_opened_as_planned(kind: Kind, wire: Wire) {
    let run = faultless(kind, wire, "/", |plan| {
        plan.traffic.reuse = Reuse::Requests(many_long(3));
        plan.load.connections = many(100);
        connections_by_plan(plan, rate(ArrivalProcess::Constant, 200.0, 3), 1_000);
    });
    let summary = run.summary();
    assert_eq!(summary.arrivals.planned, 40);
    let first_replies = run.latencies.first_reply.count();
    assert!(first_replies <= summary.arrivals.sent);
    // Who opens while the load goes on sends at once; some of them were planned in the warm-up.
    let opened_in_window = summary.window.connections_opened;
    let enough = first_replies + 7 >= opened_in_window;
    assert!(enough, "{first_replies} of {opened_in_window}");
    let lifetime = &summary.lifetime;
    let (sent, opened) = (lifetime.requests_sent, lifetime.connections_opened);
    assert!(sent <= 3 * opened, "{sent} on {opened}");
    if kind == Kind::Sim {
        // On a busy machine, connections may open too late for their requests, and too late to be
        // opened at all.
        assert!(summary.arrivals.sent >= 39 && first_replies + 1 >= summary.arrivals.sent);
        assert!(sent >= 2 * opened, "{sent} on {opened}");
    }
}

fn large_bodies_come_and_go(kind: Kind, wire: Wire) {
    for request_bytes in [0, 10, 400_000] {
        faultless(kind, wire, "/bytes/300000", |plan| {
            change_request(plan, |request| request.method = "POST".to_owned());
            change_request(plan, |request| request.body = vec![b'x'; request_bytes]);
            plan.load.connections = many(3);
            plan.traffic.streams = many(4);
            by_count(plan, 60);
        });
    }
}

fn connections_go_on_in_later_rounds(kind: Kind, wire: Wire) {
    let (server, plan) = serve_over(kind, wire, "/delay/1ms");
    server.session(&plan, |session| {
        // (connections, those opened, those kept)
        for (connections, opened, kept) in [(4, 4, 0), (4, 0, 4), (2, 0, 2), (4, 2, 2)] {
            let load = Load {
                connections: many(connections),
                ..plan.load.clone()
            };
            let run = session.round(&load, &mut |_, _: &_| {}).expect("a round");
            expect_valid(&run, "a round");
            assert_eq!(failures(&run), [], "{wire:?}");
            let kept_on = run.workers().map(|worker| worker.connections_kept).sum();
            assert_eq!((lifetime(&run).connections_opened, kept_on), (opened, kept));
            assert!(run.latencies.response.count() > 0);
        }
    });
}

fn heads_have_no_bodies(kind: Kind, wire: Wire) {
    let run = faultless(kind, wire, "/bytes/10000", |plan| {
        change_request(plan, |request| request.method = "HEAD".to_owned());
        by_count(plan, 50);
    });
    assert!(lifetime(&run).reply_body_bytes == 0);
}

mod every_wire_that_hangs {
    on_every_backend_over! {
        [http1: Http1, http2: Http2, tls_http1: TlsHttp1, tls_http2: TlsHttp2, http3: Http3],
        [requests_of_warm_up_that_hang_are_counted, sessions_that_hang_from_warm_up_are_counted]
    }
}

fn requests_of_warm_up_that_hang_are_counted(kind: Kind, wire: Wire) {
    for pipeline in [1, 3] {
        if pipeline > 1 && wire.depth() > 1 {
            continue;
        }
        let what = format!("{wire:?}, {pipeline} in a pipeline");
        let (run, _) = load(kind, wire, "/never", |plan| {
            plan.traffic.pipeline = many(pipeline);
            plan.load.drain_limit_ns = 50 * MS;
        });
        expect_valid(&run, &what);
        let depth = wire.depth().max(pipeline);
        let places = u64::from(run.plan.load.connections.get() * depth);
        let summary = run.summary();
        let expected = CarriedIn {
            in_flight: places,
            answered: 0,
            failed: 0,
            unanswered: places,
            in_flight_ns: places * run.window_ns,
        };
        assert_eq!(summary.carried_in, expected, "{what}");
        assert_eq!(summary.population, Population::default(), "{what}");
        let mean = summary.in_flight_mean.known().expect("a window");
        assert!((mean - places as f64).abs() < 1e-6, "{what}: {mean}");
        let unfinished = &run.latencies.unfinished;
        assert_eq!(unfinished.count(), places, "{what}");
        assert!(unfinished.min_ns() >= Some(run.window_ns), "{what}");
        if places >= 6 {
            let median = run.response_quantile(0.5);
            let is_bound = matches!(median, Quantile::AtLeast { .. });
            assert!(is_bound, "{what}: {median:?}");
        }
    }
}

fn sessions_that_hang_from_warm_up_are_counted(kind: Kind, wire: Wire) {
    let (run, _) = load(kind, wire, "/never", |plan| {
        plan.traffic.reuse = Reuse::Requests(many_long(3));
        plan.load.connections = many(100);
        plan.load.warmup_ns = 200 * MS;
        plan.load.drain_limit_ns = 50 * MS;
        connections_by_plan(plan, rate(ArrivalProcess::Constant, 50.0, 3), 1_000);
    });
    expect_valid(&run, "sessions");
    let summary = run.summary();
    let carried_in = summary.carried_in;
    assert!(carried_in.in_flight > 0);
    assert_eq!(carried_in.in_flight, carried_in.unanswered);
    let sent = carried_in.in_flight + summary.population.issued;
    assert_eq!(sent, summary.lifetime.requests_sent);
    let unfinished = carried_in.unanswered + summary.population.censored;
    assert_eq!(run.latencies.unfinished.count(), unfinished);
}

mod every_wire_in_trouble {
    on_every_backend_over! {
        [http2: Http2, tls_http1: TlsHttp1, tls_http2: TlsHttp2, http3: Http3],
        [silence_ends_in_time_outs, lost_connections_lose_no_request]
    }
}

fn silence_ends_in_time_outs(kind: Kind, wire: Wire) {
    let (run, _) = load(kind, wire, "/never", |plan| {
        plan.limits.timeout_ns = 50 * MS;
        plan.load.connections = many(3);
    });
    expect_valid(&run, "silence");
    let summary = run.summary();
    assert_eq!(summary.population.recorded, 0);
    assert!(summary.population.failed > 0);
    // In HTTP/1.1 nothing waits behind another one here; otherwise all streams time out.
    let timed_out = lifetime(&run).failures.get(FailureKind::TimedOut);
    assert_eq!(failures(&run), [(FailureKind::TimedOut, timed_out)]);
}

fn lost_connections_lose_no_request(kind: Kind, wire: Wire) {
    let (run, served) = load(kind, wire, "/random-close/5", |plan| {
        by_count(plan, 400);
    });
    let what = format!("{wire:?}");
    expect_valid(&run, &what);
    let (lifetime, population) = (lifetime(&run), run.summary().population);
    assert_eq!(population.recorded + population.failed, 400, "{what}");
    assert!(population.failed > 0, "{what}");
    assert_eq!(lifetime.replies.total(), population.recorded, "{what}");
    assert!(lifetime.replies.total() <= served.replies, "{what}");
    assert!(lifetime.connections_opened > 4, "{what}");
}

mod ends {
    on_every_backend_over! {
        [tls_http1: TlsHttp1],
        [replies_without_a_length_need_a_closing_alert]
    }
}

fn replies_without_a_length_need_a_closing_alert(kind: Kind, wire: Wire) {
    // The reference server says that it closes.
    faultless(kind, wire, "/http10", |plan| by_count(plan, 20));
    if kind != Kind::Sim {
        return;
    }
    let settings = serving(|server| server.framing = Framing::UntilClose);
    let (run, served) = simulated(settings, |plan| {
        speak(plan, wire, "simulated", "/");
        by_count(plan, 20);
    });
    expect_valid(&run, "no closing alert");
    assert_eq!(served.replies, 20);
    assert_eq!(failures(&run), [(FailureKind::TruncatedBody, 20)]);
}

#[test]
fn a_connection_without_streams_is_left_for_another() {
    let path = "/malformed/no-streams";
    let (run, served) = load(Kind::Sim, Wire::Http2, path, |plan| {
        plan.limits.timeout_ns = 100 * MS;
        by_count(plan, 200);
    });
    let summary = run.summary();
    assert_eq!(summary.population.recorded, 200);
    assert_eq!(served.requests, 200);
    assert!(summary.lifetime.connections_opened > 8);
}

#[test]
fn users_think_after_refusals_too() {
    let (run, _) = load(Kind::Sim, Wire::Http2, "/refuse", |plan| {
        plan.traffic.think_time_ns = 50 * MS;
    });
    // 4 connections of 8 streams, in 200 ms and 30 ms before.
    let sent = lifetime(&run).requests_sent;
    assert!((4 * 8 * 3..=4 * 8 * 6).contains(&sent), "{sent} requests");
}

#[test]
fn a_waiting_arrival_opens_no_more_connections_than_it_needs() {
    let (run, _) = load(Kind::Sim, Wire::Http2, "/delay/200ms", |plan| {
        at_rate(plan, 1_000.0);
        plan.load.connections = many(1);
        plan.traffic.streams = many(100);
        plan.load.model = requests_of(rate(ArrivalProcess::Poisson, 1_000.0, 11), 200, 100_000);
    });
    let opened = lifetime(&run).connections_opened;
    assert!((2..=6).contains(&opened), "{opened} connections");
}

#[test]
fn what_is_sent_on_a_dead_connection_later_did_not_time_out() {
    let (run, _) = load(Kind::Sim, Wire::Http2, "/never", |plan| {
        plan.load.connections = many(1);
        at_rate(plan, 100.0);
        plan.limits.timeout_ns = 50 * MS;
    });
    expect_valid(&run, "a dead connection");
    let failures = lifetime(&run).failures;
    let kinds = [FailureKind::TimedOut, FailureKind::Unanswered].map(|kind| failures.get(kind));
    assert!(kinds[0] > 0 && kinds[1] > 0, "{kinds:?}");
}

/// Nothing but a stamp tells since when a closed loop could have sent: without stamps there is no
/// lag, and none that is 0.
#[test]
fn a_closed_loop_over_a_unix_socket_has_no_lag() {
    for kind in [Kind::Uring, Kind::Epoll] {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("socket");
        let serving = serve_at(kind, ListenAddress::Unix(path.clone()));
        let mut plan = plan("http://localhost/", choice(kind));
        plan.target.unix_socket = Some(path);
        plan.observation.stamps = Stamps::Full;
        let run = run(plan);
        served(serving);
        expect_valid(&run, "a Unix socket");
        assert!(run.summary().population.recorded > 0);
        assert_eq!(run.latencies.split.count(), 0);
        assert_eq!(run.latencies.lag.count(), 0);
    }
}
