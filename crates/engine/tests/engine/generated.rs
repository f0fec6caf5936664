//! Requests that a generator makes while the run goes on, on every backend: what is sent, in which
//! order, what it is given, and how it ends a run.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use brunt_engine::{Rounds, RunError, prepare};
use brunt_judge::RunFigures;
use brunt_load::{
    ArrivalProcess, BatchOutcome, GeneratorError, HttpChoice, Plan, RequestGenerator,
    ResponseParts, Reuse,
};
use brunt_record::{GeneratorUse, Run};
use brunt_testkit::{SimServer, SimSettings};

use crate::common::{
    Kind, MS, S, Served, Server, by_count, choice, connections_by_plan, expect_equal_counts,
    expect_valid, failures, lifetime, many, many_long, on_every_backend, plan, rate,
    requests_by_plan, serve, served, url,
};
use crate::makers::{Call, Flag, Log, Maker};

on_every_backend! {
    an_unchanged_text_is_sent_over_and_over,
    requests_come_in_order_with_their_tags,
    what_has_no_request_is_parked,
    batches_go_out_whole,
    batches_of_any_size_are_sent,
    a_count_of_requests_is_kept,
    a_count_that_nobody_sends_ends_the_run,
    planned_requests_are_made_when_they_are_due,
    planned_requests_find_no_parked_connection,
    sessions_end_when_there_is_no_request,
    responses_are_given_as_far_as_wanted,
    what_is_wanted_may_change,
    responses_are_shown_as_long_as_they_are_counted,
    names_are_those_of_the_generator,
    an_error_ends_the_run_with_what_was_measured,
    a_text_that_is_none_ends_the_run,
    rounds_go_on_with_the_same_generator,
}

pub(crate) const GET: &str = "GET /bytes/10 HTTP/1.1\r\nHost: x\r\n\r\n";

/// The outcome of a round.
pub(crate) struct Outcome {
    run: Result<Run, RunError>,
    served: Served,
    error: Option<GeneratorError>,
    pub(crate) log: Log,
}

impl Outcome {
    /// A run that is valid, counts what the server counted, and in which nothing failed.
    pub(crate) fn faultless(self, what: &str) -> (Run, Log) {
        let run = self.run.expect("a run");
        expect_valid(&run, what);
        expect_equal_counts(&run, self.served, what);
        assert_eq!(failures(&run), [], "{what}");
        assert_eq!(self.error, None, "{what}");
        (run, self.log)
    }
}

/// Runs a plan of one worker, without a warm-up, against the reference server.
pub(crate) fn load(kind: Kind, change: impl FnOnce(&mut Plan), maker: Maker) -> Outcome {
    rounds(Server::reference(kind), kind, change, maker, 1)
}

/// Runs a plan of one worker, without a warm-up, in simulation, against a server that does what the
/// reference server does not.
pub(crate) fn load_scripted(
    server: SimServer,
    change: impl FnOnce(&mut Plan),
    maker: Maker,
) -> Outcome {
    let mut settings = SimSettings::new(1);
    settings.server = server;
    let server = Server::Simulated(Box::new(settings));
    rounds(server, Kind::Sim, change, maker, 1)
}

fn rounds(
    server: Server,
    kind: Kind,
    change: impl FnOnce(&mut Plan),
    maker: Maker,
    count: u32,
) -> Outcome {
    let log = Arc::clone(&maker.log);
    let generators: Vec<Box<dyn RequestGenerator>> = vec![Box::new(maker)];
    let mut plan = plan(&server.url("/never"), choice(kind));
    plan.load.warmup_ns = 0;
    plan.workers.count = many(1);
    change(&mut plan);
    let ((run, error), counted) = server.session(&plan, |session| {
        session.set_generators(generators).expect("as many");
        let ignore = &mut |_, _: &_| {};
        let mut run = session.round(&plan.load, ignore);
        for _ in 1..count {
            run = session.round(&plan.load, ignore);
        }
        (run, session.generator_error().cloned())
    });
    let log = std::mem::take(&mut *log.lock().expect("whole"));
    Outcome {
        run,
        served: counted,
        error,
        log,
    }
}

fn used(run: &Run) -> GeneratorUse {
    run.agents[0].workers[0].generator.clone().expect("stored")
}

/// Refuses a log in which a tag was not given back, or more than once.
fn expect_all_ended(log: &Log) {
    let mut ended = log.ended.clone();
    ended.sort_unstable();
    assert_eq!(ended, (0..log.made).collect::<Vec<_>>());
}

fn an_unchanged_text_is_sent_over_and_over(kind: Kind) {
    let outcome = load(kind, |_| {}, Maker::of(GET));
    let (run, log) = outcome.faultless("unchanged");
    let sent = lifetime(&run).requests_sent;
    assert!(sent > 20);
    // It may be asked once more for each connection when the window is over.
    assert!((sent..=sent + 4).contains(&u64::from(log.made)));
    assert_eq!(lifetime(&run).bytes_sent, sent * GET.len() as u64);
    assert_eq!(lifetime(&run).connections_opened, 4);
    assert_eq!(run.window_ns, 200 * MS);
    assert!(log.reported.is_empty() && run.names.is_empty());
    let used = used(&run);
    assert!(used.calls >= sent && used.reported == 0 && used.error.is_none());
    // Each connection has its own number, and is asked for itself.
    for connection in 0..4 {
        let calls = log.calls_of(connection);
        assert_eq!(calls[..2], [Call::Opened, Call::Next]);
        let ended = Call::Ended(BatchOutcome::Answered);
        let mut pairs = calls[2..].chunks(2);
        assert!(pairs.all(|pair| pair[0] == ended || pair.len() == 1));
    }
    assert!(log.calls.iter().all(|call| call.0 < 4));
}

fn requests_come_in_order_with_their_tags(kind: Kind) {
    let maker = Maker::new(|made| {
        let path = ["/status/404", "/bytes/1", "/bytes/1"][made as usize % 3];
        let head = format!("GET {path} HTTP/1.1\r\nHost: x\r\nN: {made}\r\n\r\n");
        Ok(Some(head))
    });
    let change = |plan: &mut Plan| {
        plan.load.connections = many(1);
        by_count(plan, 60);
    };
    let maker = maker.wanting(ResponseParts::Status);
    let (run, log) = load(kind, change, maker).faultless("in order");
    assert_eq!((log.made, lifetime(&run).replies.total()), (60, 60));
    let tags: Vec<u32> = log.reported.iter().map(|response| response.tag).collect();
    assert_eq!(tags, (0..60).collect::<Vec<_>>());
    assert_eq!(log.ended, tags);
    for response in &log.reported {
        let is_found = response.tag % 3 > 0;
        assert_eq!(response.status, if is_found { 200 } else { 404 });
        assert!(response.headers.is_empty() && response.body_bytes == 0);
    }
    assert_eq!(used(&run).reported, 60);
}

/// Whether there is nothing for one connection after the other, or the generator says that it
/// stops.
fn what_has_no_request_is_parked(kind: Kind) {
    let parks = Maker::new(|made| Ok((made < 7).then(|| GET.to_owned())));
    let stops = Maker {
        stops_after: Some(7),
        ..Maker::of(GET)
    };
    for maker in [parks, stops] {
        let (run, log) = load(kind, |_| {}, maker).faultless("parked");
        assert_eq!(run.window_ns, 200 * MS, "it lasts as long as it was to");
        assert_eq!((log.made, lifetime(&run).requests_sent), (7, 7));
        assert_eq!(lifetime(&run).connections_opened, 4);
        expect_all_ended(&log);
    }
}

fn batches_go_out_whole(kind: Kind) {
    let head = "HEAD /bytes/5 HTTP/1.1\r\nHost: x\r\n\r\n";
    let batch = format!("{GET}{head}{GET}");
    let change = |plan: &mut Plan| {
        plan.traffic.pipeline = many(3);
        by_count(plan, 99);
    };
    let maker = Maker::of(&batch).wanting(ResponseParts::Body);
    let (run, log) = load(kind, change, maker).faultless("batches");
    assert_eq!((log.made, lifetime(&run).requests_sent), (33, 99));
    assert_eq!(lifetime(&run).bytes_sent, 33 * batch.len() as u64);
    expect_all_ended(&log);
    for tag in 0..33 {
        let of_batch = log.reported.iter().filter(|response| response.tag == tag);
        let bodies: Vec<usize> = of_batch.map(|response| response.body_bytes).collect();
        assert_eq!(bodies, [10, 0, 10]);
    }
}

fn batches_of_any_size_are_sent(kind: Kind) {
    // The connections carry three at once.
    let maker = Maker::new(|made| Ok((made < 20).then(|| GET.repeat(1 + made as usize % 8))));
    let change = |plan: &mut Plan| plan.traffic.pipeline = many(3);
    let maker = maker.wanting(ResponseParts::Status);
    let (run, log) = load(kind, change, maker).faultless("sizes");
    let sizes: u64 = (0..20).map(|made| 1 + made % 8).sum();
    assert_eq!((log.made, lifetime(&run).requests_sent), (20, sizes));
    assert_eq!(lifetime(&run).bytes_sent, sizes * GET.len() as u64);
    assert_eq!(log.reported.len() as u64, sizes);
    expect_all_ended(&log);
}

fn a_count_of_requests_is_kept(kind: Kind) {
    for (requests, depth) in [(1, 1), (101, 1), (100, 3), (101, 4)] {
        let change = |plan: &mut Plan| {
            plan.traffic.pipeline = many(depth);
            by_count(plan, requests);
        };
        let maker = Maker::of(&GET.repeat(depth as usize));
        let (run, _) = load(kind, change, maker).faultless("count");
        let replies = lifetime(&run).replies.total();
        assert_eq!(replies, requests, "{requests} {depth}");
        assert_eq!(run.summary().unsent, 0);
    }
}

fn a_count_that_nobody_sends_ends_the_run(kind: Kind) {
    let maker = Maker::new(|made| Ok((made < 7).then(|| GET.to_owned())));
    let outcome = load(kind, |plan| by_count(plan, 100), maker);
    let run = outcome.run.expect("a run");
    assert_eq!(lifetime(&run).requests_sent, 7);
    assert_eq!(run.summary().unsent, 93);
}

fn open_loop(plan: &mut Plan, rate_per_s: f64) {
    requests_by_plan(plan, rate(ArrivalProcess::Constant, rate_per_s, 1), 1_000);
}

fn planned_requests_are_made_when_they_are_due(kind: Kind) {
    for batch in [1, 3] {
        let maker = Maker::new(move |made| {
            let text = format!("GET /bytes/3 HTTP/1.1\r\nHost: x\r\nN: {made}\r\n\r\n");
            Ok(Some(text.repeat(batch)))
        });
        let change = |plan: &mut Plan| {
            plan.traffic.pipeline = many(batch as u32);
            open_loop(plan, 500.0);
        };
        let maker = maker.wanting(ResponseParts::Status);
        let (run, log) = load(kind, change, maker).faultless("planned");
        let arrivals = run.summary().arrivals;
        assert_eq!((arrivals.planned, arrivals.sent), (100, 100));
        assert_eq!(lifetime(&run).requests_sent, 100);
        // The last response may come behind the window, where none is shown.
        let shown = run.summary().window.replies.total();
        assert_eq!(log.reported.len() as u64, shown);
        if batch == 1 {
            expect_all_ended(&log);
        }
    }
}

fn planned_requests_find_no_parked_connection(kind: Kind) {
    let maker = Maker::new(|made| Ok((made < 10).then(|| GET.to_owned())));
    let change = |plan: &mut Plan| {
        open_loop(plan, 500.0);
        plan.load.drain_limit_ns = 200 * MS;
    };
    let (run, log) = load(kind, change, maker).faultless("planned and parked");
    let arrivals = run.summary().arrivals;
    assert_eq!((log.made, arrivals.sent), (10, 10));
    assert_eq!((arrivals.planned, arrivals.unsent), (100, 90));
}

fn sessions_end_when_there_is_no_request(kind: Kind) {
    // Every third call ends a session.
    let mut calls = 0;
    let maker = Maker::new(move |_| {
        calls += 1;
        Ok((calls % 3 > 0).then(|| GET.to_owned()))
    });
    let change = |plan: &mut Plan| {
        plan.load.connections = many(1);
        connections_by_plan(plan, rate(ArrivalProcess::Constant, 100.0, 1), 1_000);
        plan.traffic.reuse = Reuse::Requests(many_long(1_000));
    };
    let outcome = load(kind, change, maker);
    let run = outcome.run.expect("a run");
    expect_valid(&run, "sessions");
    let lifetime = lifetime(&run);
    if kind == Kind::Sim {
        assert!(lifetime.connections_opened >= 15, "{lifetime:?}");
    }
    let (opened, sent) = (lifetime.connections_opened, lifetime.requests_sent);
    assert!(
        (2 * opened - 2..=2 * opened).contains(&sent),
        "{opened} {sent}"
    );
}

fn responses_are_given_as_far_as_wanted(kind: Kind) {
    let (length, chunked) = ("content-length", "transfer-encoding");
    for (wanted, field, path) in [
        (ResponseParts::Headers, length, "/bytes/1000"),
        (ResponseParts::Body, length, "/bytes/1000"),
        (ResponseParts::Body, chunked, "/chunked/1000"),
        (ResponseParts::Body, length, "/bytes/100000"),
    ] {
        let bytes = path.rsplit('/').next().and_then(|bytes| bytes.parse().ok());
        let text = format!("GET {path} HTTP/1.1\r\nHost: x\r\n\r\n");
        let change = |plan: &mut Plan| by_count(plan, 40);
        let maker = Maker::of(&text).wanting(wanted);
        let (_, log) = load(kind, change, maker).faultless(path);
        assert_eq!(log.reported.len(), 40);
        for response in &log.reported {
            let has_field = |name: &String| name.eq_ignore_ascii_case(field);
            assert!(
                response.headers.iter().any(has_field),
                "{path}: {response:?}"
            );
            let expected = bytes.filter(|_| wanted == ResponseParts::Body).unwrap_or(0);
            let body = (response.body_bytes, response.is_truncated);
            assert_eq!(body, (expected, false), "{path}");
        }
    }
}

fn what_is_wanted_may_change(kind: Kind) {
    let maker = Maker {
        then_wanted: Some((10, ResponseParts::Body)),
        ..Maker::of(GET).wanting(ResponseParts::Status)
    };
    let change = |plan: &mut Plan| {
        plan.load.connections = many(1);
        by_count(plan, 20);
    };
    let (_, log) = load(kind, change, maker).faultless("changed");
    let bodies: Vec<usize> = log
        .reported
        .iter()
        .map(|response| response.body_bytes)
        .collect();
    assert_eq!(bodies, [[0; 10], [10; 10]].concat());
}

/// Whoever counts the responses comes to the count of the run's window.
fn responses_are_shown_as_long_as_they_are_counted(kind: Kind) {
    let maker = Maker::of(GET).wanting(ResponseParts::Status);
    let (run, log) = load(kind, |_| {}, maker).faultless("shown");
    let counted = run.summary().window.replies.total();
    assert_eq!(log.reported.len() as u64, counted);
    if kind == Kind::Sim {
        assert!(lifetime(&run).replies.total() > counted);
    }
    expect_all_ended(&log);
}

fn names_are_those_of_the_generator(kind: Kind) {
    let maker = Maker {
        names: vec!["first".to_owned(), "second".to_owned(), "first".to_owned()],
        ..Maker::of(GET)
    };
    let (run, _) = load(kind, |plan| by_count(plan, 60), maker).faultless("names");
    let names = run.names.iter();
    let names: Vec<_> = names
        .map(|name| (&*name.name, name.requests_sent))
        .collect();
    assert_eq!(names, [("first", 40), ("second", 20)]);
}

fn an_error_ends_the_run_with_what_was_measured(kind: Kind) {
    let maker = Maker::new(|made| {
        if made < 30 {
            return Ok(Some(GET.to_owned()));
        }
        Err(GeneratorError {
            message: "script.lua:7: oops".to_owned(),
        })
    });
    let outcome = load(
        kind,
        |plan| plan.load.stop.duration_ns = Some(30 * S),
        maker,
    );
    let error = outcome.error.expect("it failed");
    assert_eq!(error.message, "script.lua:7: oops");
    let run = outcome.run.expect("what was measured");
    assert_eq!(lifetime(&run).requests_sent, 30);
    assert!(run.agents[0].interrupted);
    assert_eq!(used(&run).error.as_deref(), Some("script.lua:7: oops"));
    if kind != Kind::Sim {
        // In simulation no instant is common to all workers.
        assert!(run.window_ns < 20 * S);
        expect_valid(&run, "error");
    }
}

fn a_text_that_is_none_ends_the_run(kind: Kind) {
    let long = "x".repeat(100 << 20);
    for (text, message) in [
        ("GET / HTTP/1.1\r\n", "incomplete request at 2:1"),
        (long.as_str(), "more than 16 MiB of requests at once at 1:1"),
    ] {
        let mut text = Some(text.to_owned());
        let maker = Maker::new(move |made| {
            let next = (made < 10).then(|| GET.to_owned());
            Ok(next.or_else(|| text.take()))
        });
        let outcome = load(kind, |_| {}, maker);
        let error = outcome.error.expect("it failed");
        let expected = format!("the text of a request cannot be sent: {message}");
        assert_eq!(error.message, expected);
        assert_eq!(lifetime(&outcome.run.expect("a run")).requests_sent, 10);
    }
}

fn rounds_go_on_with_the_same_generator(kind: Kind) {
    let change = |plan: &mut Plan| by_count(plan, 20);
    let outcome = rounds(Server::reference(kind), kind, change, Maker::of(GET), 3);
    let run = outcome.run.expect("a run");
    expect_valid(&run, "third round");
    assert_eq!(lifetime(&run).requests_sent, 20);
    assert_eq!((outcome.log.made, outcome.served.requests), (60, 60));
    assert_eq!(lifetime(&run).connections_opened, 0);
    assert_eq!(run.agents[0].workers[0].connections_kept, 4);
}

/// One connection that waits 10 ms before each request, the first one too.
#[test]
fn delays_are_kept() {
    let maker = Maker {
        delay_ns: Some(10 * MS),
        ..Maker::of(GET)
    };
    let change = |plan: &mut Plan| {
        plan.load.connections = many(1);
        plan.load.stop.duration_ns = Some(S);
    };
    let (run, _) = load(Kind::Sim, change, maker).faultless("delays");
    let mean_ns = run.latencies.response.mean_ns().expect("responses");
    let expected = S as f64 / (10.0 * MS as f64 + mean_ns);
    let sent = lifetime(&run).requests_sent as f64;
    assert!(
        (expected - 2.0..=expected + 1.0).contains(&sent),
        "{sent} {expected}"
    );
    // The delay is not a part of the response time.
    assert!(mean_ns < 5.0 * MS as f64);
}

/// A body that is larger than what is kept is cut, and counted.
#[test]
fn large_bodies_are_bounded() {
    let bytes = GeneratorUse::BODY_BYTES_MAX as usize + 100_000;
    let text = format!("GET /bytes/{bytes} HTTP/1.1\r\nHost: x\r\n\r\n");
    let change = |plan: &mut Plan| {
        plan.load.connections = many(1);
        by_count(plan, 2);
    };
    let maker = Maker::of(&text).wanting(ResponseParts::Body);
    let (run, log) = load(Kind::Epoll, change, maker).faultless("large");
    for response in &log.reported {
        let kept = GeneratorUse::BODY_BYTES_MAX as usize;
        assert_eq!((response.body_bytes, response.is_truncated), (kept, true));
    }
    assert_eq!((log.reported.len(), used(&run).truncated), (2, 2));
}

/// A call that lasts too long is interrupted, and the run has a result.
#[test]
fn a_call_without_end_is_interrupted() {
    let flag = Arc::new(Flag::default());
    let interrupted = Arc::clone(&flag);
    let maker = Maker::new(move |made| {
        loop {
            if made < 20 {
                return Ok(Some(GET.to_owned()));
            }
            if interrupted.0.load(Ordering::Relaxed) {
                return Err(GeneratorError {
                    message: "interrupted".to_owned(),
                });
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    });
    let maker = Maker {
        interrupt: Some(flag),
        ..maker
    };
    let change = |plan: &mut Plan| plan.load.drain_limit_ns = 10 * MS;
    let outcome = load(Kind::Epoll, change, maker);
    assert_eq!(outcome.error.expect("it failed").message, "interrupted");
    assert_eq!(lifetime(&outcome.run.expect("a run")).requests_sent, 20);
}

/// A call that cannot be interrupted holds up nothing but its own thread.
#[test]
fn a_call_that_never_returns_is_left_behind() {
    let maker = Maker::new(|made| {
        if made == 20 {
            loop {
                std::thread::sleep(Duration::from_secs(1));
            }
        }
        Ok(Some(GET.to_owned()))
    });
    let change = |plan: &mut Plan| plan.load.drain_limit_ns = 10 * MS;
    let outcome = load(Kind::Epoll, change, maker);
    let left_behind = matches!(outcome.run, Err(RunError::LeftBehind { worker: 0 }));
    assert!(left_behind);
}

/// Connections go where the generator says.
#[test]
fn a_generator_may_choose_where_to_connect() {
    let other = serve(Kind::Epoll);
    let address = other.address().to_string().parse().expect("an address");
    let maker = Maker {
        address: Some(address),
        ..Maker::of(GET)
    };
    let change = |plan: &mut Plan| by_count(plan, 50);
    let outcome = load(Kind::Epoll, change, maker);
    assert_eq!(
        lifetime(&outcome.run.expect("a run")).replies.successes(),
        50
    );
    assert_eq!((outcome.served.requests, served(other).requests), (0, 50));
}

#[test]
fn generators_must_fit() {
    let serving = serve(Kind::Epoll);
    let session = |change: &dyn Fn(&mut Plan), generators: usize| {
        let mut plan = plan(&url(&serving, "/"), choice(Kind::Epoll));
        plan.workers.count = many(2);
        change(&mut plan);
        let prepared = prepare(plan).expect("it fits");
        assert_eq!(prepared.worker_count(), 2);
        let control = prepared.control();
        let generators = (0..generators)
            .map(|_| Box::new(Maker::of(GET)) as _)
            .collect();
        prepared.open(&control, true).set_generators(generators)
    };
    session(&|_| {}, 2).expect("as many");
    let error = session(&|_| {}, 1).expect_err("too few");
    assert_eq!(
        error.to_string(),
        "1 generators of requests for 2 workers: each worker needs one"
    );
    let http2 = |plan: &mut Plan| plan.connection.protocol = HttpChoice::HTTP2.into();
    let error = session(&http2, 2).expect_err("no texts");
    assert!(error.to_string().contains("--http1"), "{error}");
}
