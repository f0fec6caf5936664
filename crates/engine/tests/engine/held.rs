//! Connections that are only kept open: nothing is sent on them, and each end is counted.

use std::io::Read;
use std::net::TcpListener;
use std::time::Duration;

use brunt_engine::prepare;
use brunt_judge::{Held, RunFigures, Verdict};
use brunt_load::{LoadModel, MessageExchange, OpeningMessage, Plan, RequestSet, Spoken, Target};
use brunt_proto::messages::{Framing, Template};
use brunt_record::Run;
use brunt_testkit::{SimMessages, SimServer, SimSettings};

use crate::common::{
    Kind, MS, choice, expect_valid, failures, lifetime, load, many, on_every_backend, plan,
    simulated,
};

on_every_backend! {
    connections_are_kept_and_carry_nothing,
    the_first_message_and_its_reply_belong_to_opening,
}

fn held(plan: &mut Plan) {
    plan.model = LoadModel::Held {
        connect_per_s: None,
    };
    plan.warmup_ns = 0;
}

fn figures(run: &Run) -> Held {
    Held::of(run, &run.summary()).expect("connections were held")
}

fn connections_are_kept_and_carry_nothing(kind: Kind) {
    for workers in [1, 2] {
        let (run, served) = load(kind, "/", |plan| {
            held(plan);
            plan.connections = many(7);
            plan.workers = many(workers);
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
    plan.requests = RequestSet::nothing();
    plan.spoken = Spoken::Messages(MessageExchange {
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
            let server = SimServer {
                messages: Some(SimMessages {
                    has_opening: true,
                    ..SimMessages::default()
                }),
                ..SimServer::default()
            };
            let (run, _) = simulated(SimSettings::new(1), server, |plan| {
                plan.target = Target::parse_tcp(Some("simulated:1"), false, None).expect("one");
                greeting(plan);
            });
            run
        }
        Kind::Uring | Kind::Epoll => against(kind, Does::Greets, greeting),
    };
    expect_valid(&run, "greeted");
    assert_eq!(run.latencies.greeting.count(), 4);
    assert_eq!(figures(&run).open_at_end, 4);
    assert_eq!(lifetime(&run).requests_sent, 0);
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Does {
    /// Sends a line, and holds.
    Greets,
    /// Closes after 20 ms.
    Closes,
}

/// A run against a peer of the test's own.
fn against(kind: Kind, does: Does, change: impl FnOnce(&mut Plan)) -> Run {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = listener.local_addr().expect("it is bound");
    std::thread::spawn(move || {
        for mut socket in listener.incoming().flatten() {
            std::thread::spawn(move || match does {
                Does::Greets => {
                    use std::io::Write;
                    let _ = socket.write_all(b"welcome\n");
                    let _ = socket.read_to_end(&mut Vec::new());
                }
                Does::Closes => std::thread::sleep(Duration::from_millis(20)),
            });
        }
    });
    let mut plan = plan("http://127.0.0.1/", choice(kind));
    plan.target = Target::parse_tcp(Some(&address.to_string()), false, None).expect("an address");
    change(&mut plan);
    let prepared = prepare(plan).expect("a plan that fits");
    let control = prepared.control();
    // The memory of this process is not the run's alone.
    let has_server = true;
    let run = prepared.run(&control, has_server, &mut |_, _: &_| {});
    run.expect("a run")
}

/// What the server closes is replaced, and counted: opened = closed + open at the end (L1).
#[test]
fn connections_that_the_server_closes_are_replaced_and_counted() {
    for kind in [Kind::Uring, Kind::Epoll] {
        let run = against(kind, Does::Closes, |plan| {
            greeting(plan);
            if let Spoken::Messages(exchange) = &mut plan.spoken {
                exchange.opening = None;
            }
            plan.stop.duration_ns = Some(300 * MS);
        });
        expect_valid(&run, "closed");
        let found = figures(&run);
        assert!(found.closed_by_server > 8, "{kind:?}: {found:?}");
        assert_eq!(found.opened, found.closed_by_server + found.open_at_end);
    }
}
