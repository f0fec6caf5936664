//! Sessions of a log: sent as httperf sends them, and on every backend with a connection each.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use brunt_engine::Rounds;
use brunt_load::sessions::{
    LoggedSteps, Replay, SessionFigures, SessionLog, SessionReplay, SessionTexts,
};
use brunt_load::{
    Batch, BatchOutcome, BatchTag, ConnectionNumber, GeneratorError, GeneratorResponse, Plan,
    RequestGenerator, ResponseParts,
};
use brunt_record::{FailureKind, Run};
use brunt_testkit::ServiceTime;

use crate::common::{
    Kind, MS, S, Served, Server, choice, connections_by_plan, expect_equal_connections,
    expect_equal_counts, expect_valid, failures, lifetime, many, on_every_backend, plan, rate_for,
    serving,
};

on_every_backend! {
    each_session_has_a_connection,
    a_closed_loop_replays_one_after_the_other,
    sessions_end_a_run_without_a_limit,
    a_session_goes_on_where_its_connection_was_closed,
    a_session_without_an_answer_fails,
    a_status_may_fail_a_session,
}

/// What was sent: session, when, method and path, bytes of the body.
type Sent = Vec<(u32, u64, String, usize)>;

/// Notes what the sessions send, by their connections.
#[derive(Debug)]
struct Noting {
    replay: SessionReplay,
    open: Vec<(u32, VecDeque<(String, usize)>)>,
    sessions: u32,
    sent: Arc<Mutex<Sent>>,
}

impl RequestGenerator for Noting {
    fn begin(&mut self, connections: u32) {
        self.open
            .resize_with(connections as usize, Default::default);
        self.replay.begin(connections);
    }

    fn opening(&mut self, connection: ConnectionNumber) {
        self.open[connection.0 as usize].0 = self.sessions;
        self.sessions += 1;
        self.replay.opening(connection);
    }

    fn unopened(&mut self, connection: ConnectionNumber) {
        self.replay.unopened(connection);
    }

    fn opened(&mut self, connection: ConnectionNumber) {
        self.replay.opened(connection);
    }

    fn closed(&mut self, connection: ConnectionNumber) {
        self.replay.closed(connection);
    }

    fn goes_on(&self, connection: ConnectionNumber) -> bool {
        self.replay.goes_on(connection)
    }

    fn begins_no_more(&self) -> bool {
        self.replay.begins_no_more()
    }

    fn delays(&self) -> bool {
        self.replay.delays()
    }

    fn delay_ns(&mut self, connection: ConnectionNumber) -> Result<u64, GeneratorError> {
        self.replay.delay_ns(connection)
    }

    fn next(
        &mut self,
        connection: ConnectionNumber,
        text: &mut Vec<u8>,
    ) -> Result<Batch, GeneratorError> {
        let batch = self.replay.next(connection, text)?;
        if text.is_empty() {
            return Ok(batch);
        }
        let requests = brunt_load::verbatim_requests(text).expect("requests");
        let noted = &mut self.open[connection.0 as usize].1;
        noted.extend(requests.into_iter().map(|request| {
            let name = format!("{} {}", request.method, request.path);
            (name, request.body.len())
        }));
        Ok(batch)
    }

    fn names_in(&self, tag: BatchTag, names: &mut Vec<u32>) {
        self.replay.names_in(tag, names);
    }

    fn wanted(&self) -> ResponseParts {
        self.replay.wanted()
    }

    fn response(&mut self, response: &GeneratorResponse<'_>) -> Result<(), GeneratorError> {
        let (session, noted) = &mut self.open[response.connection.0 as usize];
        let (name, bytes) = noted.pop_front().expect("it was sent");
        let mut sent = self.sent.lock().expect("whole");
        sent.push((*session, response.times.sent_ns, name, bytes));
        drop(sent);
        self.replay.response(response)
    }

    fn ended(&mut self, connection: ConnectionNumber, tag: BatchTag, outcome: BatchOutcome) {
        self.replay.ended(connection, tag, outcome);
    }

    fn is_stopped(&self) -> bool {
        self.replay.is_stopped()
    }

    fn names(&self) -> &[String] {
        self.replay.names()
    }
}

fn replay_of(
    log: &SessionLog,
    think_ns: u64,
    replay: Replay,
) -> (SessionReplay, Arc<Mutex<SessionFigures>>) {
    let mut texts = SessionTexts::default();
    for logged in log.requests() {
        let request = &logged.request;
        let mut text = format!(
            "{} {} HTTP/1.1\r\nHost: x\r\n",
            request.method, request.path
        );
        if !request.body.is_empty() {
            text.push_str(&format!("Content-Length: {}\r\n", request.body.len()));
        }
        text.push_str("\r\n");
        let text = [text.as_bytes(), &request.body].concat();
        texts.add(text, &request.path);
    }
    let source = Box::new(LoggedSteps::new(log, think_ns));
    SessionReplay::new(source, Arc::new(texts), replay, 0, 1)
}

/// Plans so many sessions per second, until there are `sessions`.
fn planned(plan: &mut Plan, rate_per_s: f64, sessions: u64) {
    let duration_ns = ((sessions as f64 - 0.5) / rate_per_s * 1e9) as u64;
    connections_by_plan(plan, rate_for(duration_ns, rate_per_s), 1_000);
    plan.load.connections = many(100);
    plan.load.stop.duration_ns = None;
}

#[test]
fn twenty_sessions_are_sent_as_httperf_sends_them() {
    let log = SessionLog::parse(include_bytes!("fixtures/sessions.log")).expect("a log");
    assert_eq!(log.sessions.len(), 20);
    let replay = Replay {
        sessions: Some(20),
        ..Replay::default()
    };
    let (replay, place) = replay_of(&log, 80 * MS, replay);
    let noting = Noting {
        replay,
        open: Vec::new(),
        sessions: 0,
        sent: Arc::default(),
    };
    let sent = Arc::clone(&noting.sent);
    let settings = serving(|server| server.service = ServiceTime::Constant(20 * MS));
    let mut plan = plan("http://simulated/", choice(Kind::Sim));
    planned(&mut plan, 10.0, 20);
    plan.load.warmup_ns = 0;
    plan.workers.count = many(1);
    plan.traffic.pipeline = many(3);
    let (run, _) = Server::Simulated(Box::new(settings)).session(&plan, |session| {
        session
            .set_generators(vec![Box::new(noting)])
            .expect("one worker");
        session.round(&plan.load, &mut |_, _: &_| {})
    });
    expect_valid(&run.expect("a run"), "twenty sessions");
    let counts = place.lock().expect("whole").counts;
    assert_eq!((counts.begun, counts.completed, counts.failed), (20, 20, 0));
    let mut sent = sent.lock().expect("whole").clone();
    // In the order in which each session sent them, which is that of their replies.
    sent.sort_by_key(|&(session, ..)| session);
    let recorded = include_str!("fixtures/sessions_of_httperf.txt").lines();
    let recorded: Vec<_> = recorded.filter(|line| !line.starts_with('#')).collect();
    assert_eq!(sent.len(), recorded.len());
    // The first request of a session counts from that of the first one, the others from the one
    // before: httperf's timers are some milliseconds late, each time.
    let (mut before, first_ns) = (None, sent[0].1);
    for ((session, at_ns, name, bytes), recorded) in sent.iter().zip(recorded) {
        let words: Vec<_> = recorded.split(' ').collect();
        let expected = format!("{} {} {}", words[0], words[2..4].join(" "), words[4]);
        assert_eq!(format!("{session} {name} {bytes}"), expected);
        let at_ms = (at_ns - first_ns) as f64 / 1e6;
        let theirs_ms: f64 = words[1].parse().expect("a time");
        let (from_ms, theirs_from_ms) = match before {
            Some((of, ms, theirs_ms)) if of == session => (ms, theirs_ms),
            _ => (0.0, 0.0),
        };
        let off_ms = (at_ms - from_ms) - (theirs_ms - theirs_from_ms);
        assert!(off_ms.abs() <= 5.0, "{off_ms:.1}: {recorded}");
        before = Some((session, at_ms, theirs_ms));
    }
}

/// The outcome of a run, and of its sessions.
struct Outcome {
    run: Run,
    served: Served,
    figures: SessionFigures,
}

fn load(kind: Kind, (text, replay): (&str, Replay), change: impl FnOnce(&mut Plan)) -> Outcome {
    let log = SessionLog::parse(text.as_bytes()).expect(text);
    let (generator, place) = replay_of(&log, 0, replay);
    let generators: Vec<Box<dyn RequestGenerator>> = vec![Box::new(generator)];
    let server = Server::reference(kind);
    let mut plan = plan(&server.url("/never"), choice(kind));
    plan.load.warmup_ns = 0;
    plan.workers.count = many(1);
    plan.traffic.pipeline = many(4);
    change(&mut plan);
    let (run, served) = server.session(&plan, |session| {
        session.set_generators(generators).expect("as many");
        session.round(&plan.load, &mut |_, _: &_| {})
    });
    let figures = std::mem::take(&mut *place.lock().expect("whole"));
    Outcome {
        run: run.expect("a run"),
        served,
        figures,
    }
}

const LOG: &str = "/bytes/1 think=0.005\n /bytes/2\n /bytes/3\n/bytes/4\n\n/bytes/5\n";

fn sessions(count: u64) -> Replay {
    Replay {
        sessions: Some(count),
        reconnects: true,
        ..Replay::default()
    }
}

fn each_session_has_a_connection(kind: Kind) {
    let outcome = load(kind, (LOG, sessions(20)), |plan| {
        planned(plan, 200.0, 20);
    });
    let run = &outcome.run;
    expect_valid(run, "planned");
    expect_equal_counts(run, outcome.served, "planned");
    assert_eq!(failures(run), []);
    assert_eq!(lifetime(run).requests_sent, 10 * 5);
    assert_eq!(lifetime(run).connections_opened, 20);
    assert_eq!(outcome.figures.lengths, [0, 10, 0, 0, 10]);
    let (used, _) = run.generator_use().expect("it was used");
    let sessions = used.sessions.expect("they are counted");
    assert_eq!((sessions.begun, sessions.completed), (20, 20));
    // Those of a burst have names of their own.
    let names = run.names.iter();
    let names = names.map(|record| (&*record.name, record.requests_sent));
    let expected = ["/bytes/1", "/bytes/2", "/bytes/3", "/bytes/4", "/bytes/5"];
    assert_eq!(names.collect::<Vec<_>>(), expected.map(|name| (name, 10)));
}

fn a_closed_loop_replays_one_after_the_other(kind: Kind) {
    let replay = Replay::default();
    let outcome = load(kind, (LOG, replay), |plan| {
        plan.load.connections = many(3);
        plan.load.stop.duration_ns = Some(200 * MS);
    });
    let run = &outcome.run;
    expect_valid(run, "closed");
    expect_equal_counts(run, outcome.served, "closed");
    assert_eq!(failures(run), []);
    let counts = outcome.figures.counts;
    assert!(counts.completed >= 6 && counts.failed == 0, "{counts:?}");
    assert!(counts.begun - counts.completed <= 3, "{counts:?}");
    // Attempts may be in flight at the end.
    let unopened = counts.begun - lifetime(run).connections_opened;
    assert!(unopened <= 3, "{unopened} of {counts:?}");
}

fn sessions_end_a_run_without_a_limit(kind: Kind) {
    let outcome = load(kind, (LOG, sessions(7)), |plan| {
        plan.load.connections = many(2);
        plan.load.stop.duration_ns = None;
    });
    expect_valid(&outcome.run, "all of them");
    assert_eq!(lifetime(&outcome.run).requests_sent, 4 * 4 + 3);
    assert_eq!(outcome.figures.counts.completed, 7);
}

fn a_session_goes_on_where_its_connection_was_closed(kind: Kind) {
    // The first reply closes; a pause follows.
    let text = "/close think=0.02\n/close\n  /close\n";
    let outcome = load(kind, (text, sessions(5)), |plan| {
        planned(plan, 500.0, 5);
        plan.load.connections = many(2);
    });
    let run = &outcome.run;
    expect_valid(run, "closing");
    expect_equal_connections(run, outcome.served, "closing");
    let counts = outcome.figures.counts;
    assert_eq!((counts.completed, counts.failed), (5, 0));
    assert_eq!((counts.reconnected, outcome.figures.connections), (10, 15));
    assert_eq!(lifetime(run).replies.total(), 15);
    assert!(run.window_ns >= 20 * MS);
}

fn a_session_without_an_answer_fails(kind: Kind) {
    let outcome = load(kind, ("/reset\n/reset\n", sessions(4)), |plan| {
        planned(plan, 500.0, 4);
        plan.limits.timeout_ns = S;
    });
    let counts = outcome.figures.counts;
    assert_eq!((counts.begun, counts.failed), (4, 4));
    assert_eq!(lifetime(&outcome.run).connections_opened, 4);
    let failures = &lifetime(&outcome.run).failures;
    let lost = failures.get(FailureKind::Reset) + failures.get(FailureKind::ClosedBeforeReply);
    assert_eq!(lost, 4);
    assert_eq!(outcome.figures.lengths, [4]);
}

fn a_status_may_fail_a_session(kind: Kind) {
    let replay = Replay {
        failure_status: Some(503),
        ..sessions(3)
    };
    let outcome = load(kind, ("/status/503\n/bytes/1\n", replay), |plan| {
        planned(plan, 500.0, 3);
    });
    let counts = outcome.figures.counts;
    assert_eq!((counts.completed, counts.failed), (0, 3));
    assert_eq!(lifetime(&outcome.run).requests_sent, 3);
}
