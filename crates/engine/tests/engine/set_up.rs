//! Set-up: bounded in attempts and in time, whatever the server does.

use std::net::SocketAddr;

use brunt_engine::{Phase, RunError, prepare};
use brunt_judge::{InvariantStatus, RunFigures};
use brunt_load::{BackendChoice, HttpChoice, LoadModel, Plan, Target};
use brunt_record::{FailureKind, Run};
use brunt_testkit::SimSettings;
use socket2::{Domain, Socket, Type};

use crate::common::{
    Kind, MS, S, at_ns, choice, lifetime, many, many_long, on_every_backend, plan, serving,
    simulate, status,
};

/// Attempts in flight at once.
const DIALLING_MAX: u64 = 128;

on_every_backend! {
    a_server_that_takes_few_connections_holds_set_up_no_longer_than_its_limit,
    without_a_connection_there_is_no_run,
    an_interrupt_is_distinguished_from_a_server_that_takes_no_connections,
}

/// A listening socket that accepts no connection, and whose queue holds one and `more`.
fn full_after_one_and(more: u64) -> (Socket, SocketAddr) {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None).expect("a socket");
    let any: SocketAddr = ([127, 0, 0, 1], 0).into();
    socket.bind(&any.into()).expect("a free port");
    socket.listen(more as i32).expect("it is bound");
    let bound = socket.local_addr().expect("it is bound");
    let address = bound.as_socket().expect("an internet address");
    (socket, address)
}

/// Runs with 300 connections against a server that accepts one of them or none, and answers neither
/// further attempts nor requests.
fn against_few(kind: Kind, takes: u64, change: impl FnOnce(&mut Plan)) -> Result<Run, RunError> {
    against_few_until(kind, takes, false, change)
}

/// Runs as [`against_few`] does. Where it is `interrupted`, the interrupt comes in set-up.
fn against_few_until(
    kind: Kind,
    takes: u64,
    interrupted: bool,
    change: impl FnOnce(&mut Plan),
) -> Result<Run, RunError> {
    // The connection that is made before the run is one more.
    let (_socket, address) = full_after_one_and(takes);
    let mut plan = plan(&format!("http://{address}/"), choice(kind));
    plan.load.connections = many(300);
    plan.load.drain_limit_ns = 100 * MS;
    plan.limits.connect_timeout_ns = 60 * S;
    plan.limits.setup_timeout_ns = Some(300 * MS);
    change(&mut plan);
    if kind == Kind::Sim {
        let mut settings = SimSettings::new(1);
        settings.interrupt_ns = interrupted.then_some(MS);
        settings.server.accepts_max = Some(many_long(1));
        settings.server.faults.silent = 1.0;
        if takes == 0 {
            settings.server.faults.connect_unanswered = 1.0;
        }
        return simulate(plan, &settings).map(|(run, _)| run);
    }
    let prepared = prepare(plan).expect("somebody takes the first connection");
    let control = prepared.control();
    prepared.run(&control, false, &mut |phase, _: &_| {
        if interrupted && phase == Phase::SetUp {
            control.interrupt();
        }
    })
}

fn a_server_that_takes_few_connections_holds_set_up_no_longer_than_its_limit(kind: Kind) {
    let run = against_few(kind, 1, |_| {}).expect("a run with what there is");
    let set_up = run.set_up().expect("it is recorded");
    assert_eq!((set_up.asked, set_up.open, set_up.opened), (300, 1, 1));
    assert!(set_up.timed_out);
    assert_eq!(set_up.main_failure(), None, "attempts last longer");
    let ready_ns = at_ns(&run, run.agents[0].workers[0].edges.ready);
    let started_ns = at_ns(&run, run.agents[0].workers[0].edges.started);
    assert!(ready_ns - started_ns >= 300 * MS);
    if kind == Kind::Sim {
        assert!(ready_ns < 301 * MS, "{ready_ns}");
    }
    assert_eq!(lifetime(&run).requests_sent, 1);
    assert_eq!(lifetime(&run).connections_opened, 1);
}

fn without_a_connection_there_is_no_run(kind: Kind) {
    let no_connection = |connect_timeout_ns: u64| {
        let outcome = against_few(kind, 0, |plan| {
            plan.limits.connect_timeout_ns = connect_timeout_ns
        });
        outcome
            .map(drop)
            .expect_err("nothing to run with")
            .to_string()
    };
    let message = no_connection(60 * S);
    let begins = "none of the 300 connections could be opened in set-up: ";
    let says = format!("{begins}no attempt was answered within 0.3 s; ");
    assert!(message.starts_with(&says), "{message}");
    let message = no_connection(50 * MS);
    assert!(message.starts_with(begins), "{message}");
    assert!(
        message.contains(" attempts failed, all with `connect timed out`; "),
        "{message}"
    );
    assert!(message.contains("use fewer (-c)"), "{message}");
}

fn an_interrupt_is_distinguished_from_a_server_that_takes_no_connections(kind: Kind) {
    let outcome = against_few_until(kind, 0, true, |plan| {
        plan.limits.setup_timeout_ns = Some(600 * S);
    });
    assert!(matches!(outcome, Err(RunError::Interrupted)), "{outcome:?}");
}

/// A plan of many connections, with the defaults of the program.
fn many_connections(connections: u32) -> Plan {
    let mut plan = plan("http://simulated/", BackendChoice::Auto);
    plan.load.connections = many(connections);
    plan.load.drain_limit_ns = S;
    plan
}

#[test]
fn first_attempts_come_before_retries_and_both_are_bounded() {
    for connections in [100, 400, 1_000, 20_000] {
        let mut plan = many_connections(connections);
        plan.load.stop.duration_ns = Some(20 * S);
        let settings = serving(|server| server.accepts_max = Some(many_long(2)));
        let (run, counts) = simulate(plan, &settings).expect("a run with what there is");
        let set_up = run.set_up().expect("it is recorded");
        assert_eq!((set_up.asked, set_up.open), (connections, 2));
        let ready_ns = at_ns(&run, run.agents[0].workers[0].edges.ready);
        // None more was opened for ten seconds.
        assert!(ready_ns <= 10 * S + MS, "{connections}: {ready_ns}");
        assert_eq!(set_up.timed_out, ready_ns >= 10 * S);
        assert_eq!(run.summary().live.unopened_at_start, Some(connections - 2));
        // Each attempt lasts 5 s, and as many are made as the bound allows: every connection is
        // tried once before any is tried again.
        let rounds = ready_ns / (5 * S);
        let failed = set_up.failures.get(FailureKind::ConnectTimedOut);
        let unopened = u64::from(connections) - 2;
        assert!(failed <= rounds * DIALLING_MAX, "{connections}: {failed}");
        let least = unopened.min((rounds - 1) * (DIALLING_MAX - 2));
        assert!(failed >= least, "{failed}");
        // The same bound holds in the load.
        let rounds = at_ns(&run, run.agents[0].workers[0].edges.drained) / (5 * S) + 1;
        let unanswered = counts.connections_unanswered;
        let bound = rounds * DIALLING_MAX;
        assert!(unanswered <= bound, "{connections}: {unanswered}");
        // It goes on.
        assert!(unanswered > failed + DIALLING_MAX.min(unopened));
        let replies = run.summary().window.replies.successes();
        assert!(replies > 1_000, "{replies}");
    }
}

#[test]
fn handshakes_that_stall_end_set_up_with_their_name() {
    let mut plan = many_connections(640);
    plan.target = Target::parse("https://simulated/", None).expect("a URL");
    plan.connection.protocol = HttpChoice::HTTP1.into();
    plan.limits.connect_timeout_ns = S;
    let settings = serving(|server| server.faults.handshake_silent = 1.0);
    let outcome = simulate(plan, &settings);
    let error = outcome.map(drop).expect_err("nothing to run with");
    // 128 in each second, until none was opened for ten.
    assert!(
        error.to_string().starts_with(
            "none of the 640 connections could be opened in set-up: 1,152 attempts failed, all \
                 with `handshake timed out`; "
        ),
        "{error}"
    );
}

#[test]
fn a_planned_ramp_is_not_cut_short() {
    let mut plan = many_connections(100);
    plan.load.model = LoadModel::Closed {
        connect_per_s: Some(1.0),
    };
    plan.limits.setup_timeout_ns = Some(S);
    let (run, _) = simulate(plan, &SimSettings::new(1)).expect("a run");
    let set_up = run.set_up().expect("it is recorded");
    assert_eq!((set_up.open, set_up.timed_out), (100, false));
    let ready_ns = at_ns(&run, run.agents[0].workers[0].edges.ready);
    assert!((99 * S..100 * S).contains(&ready_ns), "{ready_ns}");
}

/// Each attempt takes 2 s, 128 at a time: 64 connections are opened per second.
fn slow_accepts(connections: u32) -> (Plan, SimSettings) {
    let settings = SimSettings {
        network_ns: S,
        ..SimSettings::new(1)
    };
    (many_connections(connections), settings)
}

#[test]
fn a_set_up_that_makes_progress_is_not_cut() {
    let (plan, settings) = slow_accepts(20_000);
    let (run, _) = simulate(plan, &settings).expect("a run");
    let set_up = run.set_up().expect("it is recorded");
    assert_eq!((set_up.open, set_up.timed_out), (20_000, false));
    let ready_ns = at_ns(&run, run.agents[0].workers[0].edges.ready);
    assert!((310 * S..330 * S).contains(&ready_ns), "{ready_ns}");
    assert_eq!(run.summary().live.unopened_at_start, Some(0));
    assert_eq!(status(&run, "L1"), InvariantStatus::Held);

    // A limit that was given holds.
    let (mut plan, settings) = slow_accepts(20_000);
    plan.limits.setup_timeout_ns = Some(100 * S);
    plan.load.warmup_ns = 10 * S;
    let (run, _) = simulate(plan, &settings).expect("a run");
    let set_up = run.set_up().expect("it is recorded");
    assert!(set_up.timed_out);
    let ready_ns = at_ns(&run, run.agents[0].workers[0].edges.ready);
    assert!((100 * S..101 * S).contains(&ready_ns), "{ready_ns}");
    assert_eq!(set_up.open, 49 * 128);
    // In the warm-up, some more are opened.
    let unopened = run.summary().live.unopened_at_start.expect("counted");
    assert!(unopened < 20_000 - set_up.open, "{unopened}");
    assert!(unopened > 10_000, "{unopened}");
}

#[test]
fn a_set_up_that_gets_no_further_ends_ten_seconds_after_the_last_connection() {
    let (plan, mut settings) = slow_accepts(1_000);
    settings.server.accepts_max = Some(many_long(600));
    let (run, _) = simulate(plan, &settings).expect("a run with what there is");
    let set_up = run.set_up().expect("it is recorded");
    assert_eq!((set_up.open, set_up.timed_out), (600, true));
    assert_eq!(set_up.waited_ns.map(|ns| ns / S), Some(10));
    // The last was opened in the fifth round of 128.
    let ready_ns = at_ns(&run, run.agents[0].workers[0].edges.ready);
    assert!((20 * S..=21 * S).contains(&ready_ns), "{ready_ns}");
    assert_eq!(run.summary().live.unopened_at_start, Some(400));
}

#[test]
fn connections_that_are_replaced_are_not_missing() {
    let settings = serving(|server| server.close_after = Some(many_long(1)));
    let (run, _) = simulate(many_connections(50), &settings).expect("a run");
    assert_eq!(run.summary().live.unopened_at_start, Some(0));
}
