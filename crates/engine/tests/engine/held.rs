//! Connections that are only kept open: nothing is sent on them, and each end is counted.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use brunt_judge::{Held, RunFigures, Verdict};
use brunt_load::{
    LoadModel, MessageExchange, OpeningMessage, Plan, ProtocolSpec, RequestSet, Target,
};
use brunt_proto::messages::{Framing, Template};
use brunt_record::Run;
use brunt_testkit::SimMessages;

use crate::common::{
    Kind, MS, choice, expect_valid, failures, lifetime, load, many, on_every_backend, plan, run,
    serve_each, serving, simulated,
};

on_every_backend! {
    connections_are_kept_and_carry_nothing,
    the_first_message_and_its_reply_belong_to_opening,
}

fn held(plan: &mut Plan) {
    plan.load.model = LoadModel::Held {
        connect_per_s: None,
    };
    plan.load.warmup_ns = 0;
}

fn figures(run: &Run) -> Held {
    Held::of(run, &run.summary()).expect("connections were held")
}

fn connections_are_kept_and_carry_nothing(kind: Kind) {
    for workers in [1, 2] {
        let (run, served) = load(kind, "/", |plan| {
            held(plan);
            plan.load.connections = many(7);
            plan.workers.count = many(workers);
        });
        expect_valid(&run, "held");
        let found = figures(&run);
        assert_eq!((found.asked, found.open_at_end, found.opened), (7, 7, 7));
        assert_eq!((found.open_min, found.open_max), (7, 7));
        assert_eq!((served.requests, served.connections), (0, 7));
        assert_eq!(lifetime(&run).bytes_sent, 0);
        assert_eq!(failures(&run), []);
        assert_eq!(run.judge().verdict, Verdict::ConcurrencyLimited);
    }
}

/// `hello` on each connection, answered by a line.
fn greeting(plan: &mut Plan) {
    held(plan);
    plan.traffic.requests = RequestSet::nothing();
    plan.connection.protocol = ProtocolSpec::Messages(MessageExchange {
        reply: Framing::None,
        opening: Some(OpeningMessage {
            message: Template::parse("hello {conn}\\n")
                .expect("a message")
                .into(),
            reply: Framing::Line,
        }),
        seed: 1,
    });
}

fn the_first_message_and_its_reply_belong_to_opening(kind: Kind) {
    let run = match kind {
        Kind::Sim => {
            let opened = SimMessages {
                has_opening: true,
                ..SimMessages::default()
            };
            let settings = serving(|server| server.messages = Some(opened));
            let (run, _) = simulated(settings, |plan| {
                plan.target = Target::parse_tcp(Some("simulated:1"), false, None).expect("one");
                greeting(plan);
            });
            run
        }
        Kind::Uring | Kind::Epoll => against(kind, greets, greeting),
    };
    expect_valid(&run, "greeted");
    assert_eq!(run.latencies.greeting.count(), 4);
    assert_eq!(figures(&run).open_at_end, 4);
    assert_eq!(lifetime(&run).requests_sent, 0);
}

/// A run against a peer of the test's own.
fn against(
    kind: Kind,
    behave: impl Fn(u64, TcpStream) + Clone + Send + 'static,
    change: impl FnOnce(&mut Plan),
) -> Run {
    let address = serve_each(behave);
    let mut plan = plan("http://127.0.0.1/", choice(kind));
    plan.target = Target::parse_tcp(Some(&address.to_string()), false, None).expect("an address");
    change(&mut plan);
    run(plan)
}

/// Sends a line, and holds.
fn greets(_: u64, mut peer: TcpStream) {
    let _ = peer.write_all(b"welcome\n");
    let _ = peer.read_to_end(&mut Vec::new());
}

fn closes_after_20_ms(_: u64, peer: TcpStream) {
    std::thread::sleep(Duration::from_millis(20));
    drop(peer);
}

/// What the server closes is replaced, and counted: opened = closed + open at the end (L1).
#[test]
fn connections_that_the_server_closes_are_replaced_and_counted() {
    for kind in [Kind::Uring, Kind::Epoll] {
        let run = against(kind, closes_after_20_ms, |plan| {
            greeting(plan);
            if let ProtocolSpec::Messages(exchange) = &mut plan.connection.protocol {
                exchange.opening = None;
            }
            plan.load.stop.duration_ns = Some(300 * MS);
        });
        expect_valid(&run, "closed");
        let found = figures(&run);
        assert!(found.closed_by_server > 8, "{kind:?}: {found:?}");
        assert_eq!(found.opened, found.closed_by_server + found.open_at_end);
    }
}
