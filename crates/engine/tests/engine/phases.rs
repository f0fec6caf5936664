//! The course of a run: its edges, interrupts, and disturbances of brunt itself.

use brunt_engine::backend::sim::{ServiceTime, SimFaults, SimServer, SimSettings};
use brunt_engine::{RunError, prepare, simulate};
use brunt_load::{ArrivalProcess, BackendChoice, LoadModel, Plan, Schedule, Target};
use brunt_measure::{FailureKind, Run, Standing};

use crate::common::{
    Kind, MS, S, Served, broken, change_request, choice, expect_equal_counts, expect_valid,
    lifetime, load, many, on_every_backend, plan, serve, served, simulated, standing, url,
};

on_every_backend! {
    a_late_worker_changes_no_rate_and_idle_connections_never_time_out,
    windows_forced_apart_are_refused,
    an_interrupt_in_warm_up_leaves_no_run,
    an_interrupt_in_the_window_ends_it,
    a_hurried_run_waits_for_nothing,
}

fn a_late_worker_changes_no_rate_and_idle_connections_never_time_out(kind: Kind) {
    let (run, served) = load(kind, "/", SimServer::default(), |plan| {
        plan.workers = many(2);
        plan.faults.start_delay = Some((1, 900 * MS));
        // The connections of worker 0 wait for longer than this.
        plan.timeout_ns = 700 * MS;
    });
    expect_valid(&run, "a late worker");
    expect_equal_counts(&run, served, "a late worker");
    let edge = |edge: brunt_measure::Once| edge.get().expect("an edge");
    let setup_ns = edge(run.edges.warmup_start) - edge(run.edges.setup_start);
    assert!(setup_ns >= 900 * MS, "{setup_ns}");
    assert_eq!(
        edge(run.edges.measure_start) - edge(run.edges.warmup_start),
        30 * MS
    );
    assert_eq!(run.window.length_ns(), 200 * MS);
    assert_eq!(lifetime(&run).failures.get(FailureKind::TimedOut), 0);
    assert!(
        run.workers
            .iter()
            .all(|worker| worker.population.recorded > 0)
    );
}

/// A start that is late by several windows leaves no trace in the rate.
#[test]
fn a_late_worker_changes_no_rate_in_simulated_time() {
    let server = SimServer {
        service: ServiceTime::Constant(10 * MS),
        ..SimServer::default()
    };
    let successes = |start_delay| {
        let (run, _) = simulated(SimSettings::new(1), server.clone(), |plan| {
            plan.workers = many(2);
            plan.faults.start_delay = start_delay;
        });
        expect_valid(&run, "a late worker");
        run.summary().window.replies.successes()
    };
    let late = successes(Some((0, 2 * S)));
    assert_eq!(late, successes(None));
    // Four connections, each with a reply every 10 ms for 200 ms.
    assert!((76..=80).contains(&late), "{late}");
}

fn windows_forced_apart_are_refused(kind: Kind) {
    let (run, _) = load(kind, "/", SimServer::default(), |plan| {
        plan.workers = many(2);
        plan.faults.window_shift = Some((1, 100 * MS));
    });
    assert_eq!(standing(&run, "W4"), Standing::Broken);
    // And no test takes that for a late wake-up.
    assert!(broken(&run, &[]).iter().any(|finding| finding.id == "W4"));
}

/// Interrupts a long run as soon as `phase` is shown.
fn interrupted_in(kind: Kind, phase: &str) -> (Result<Run, RunError>, Served) {
    let serving = serve(kind);
    let mut plan = plan(&url(&serving, "/"), choice(kind));
    (plan.warmup_ns, plan.stop.duration_ns) = match phase {
        "warm-up" => (20 * S, Some(S)),
        _ => (10 * MS, Some(20 * S)),
    };
    plan.workers = many(2);
    let prepared = prepare(plan).expect("a plan that fits");
    let control = prepared.control();
    let run = prepared.run(&control, true, &mut |now, _| {
        if now == phase {
            control.interrupt();
        }
    });
    (run, served(serving))
}

fn an_interrupt_in_warm_up_leaves_no_run(kind: Kind) {
    let outcome = match kind {
        Kind::Sim => {
            let mut settings = SimSettings::new(1);
            settings.interrupt_ns = Some(20 * MS);
            let plan = plan("http://simulated/", BackendChoice::Sim);
            simulate(prepare(plan).expect("a plan that fits"), &settings).map(|(run, _)| run)
        }
        Kind::Uring | Kind::Epoll => interrupted_in(kind, "warm-up").0,
    };
    assert!(matches!(outcome, Err(RunError::Interrupted)), "{outcome:?}");
}

fn an_interrupt_in_the_window_ends_it(kind: Kind) {
    let (run, served) = match kind {
        Kind::Sim => {
            let mut settings = SimSettings::new(1);
            settings.interrupt_ns = Some(S);
            let server = SimServer {
                service: ServiceTime::Constant(MS),
                ..SimServer::default()
            };
            simulated(settings, server, |plan| {
                plan.stop.duration_ns = Some(20 * S)
            })
        }
        Kind::Uring | Kind::Epoll => {
            let (run, served) = interrupted_in(kind, "measure");
            (run.expect("a run"), served)
        }
    };
    expect_valid(&run, "interrupted");
    expect_equal_counts(&run, served, "interrupted");
    assert!(run.interrupted);
    assert!(run.window.length_ns() > 0 && run.window.length_ns() < 10 * S);
    assert_eq!(run.edges.measure_end_planned.get(), None);
}

/// A server that never answers, and a plan that waits long for it.
fn never_answered(kind: Kind, change: impl FnOnce(&mut Plan)) -> Plan {
    let mut plan = plan("http://simulated/", choice(kind));
    (plan.timeout_ns, plan.drain_limit_ns) = (600 * S, 600 * S);
    (plan.warmup_ns, plan.stop.duration_ns) = (0, Some(300 * S));
    change(&mut plan);
    plan
}

fn a_hurried_run_waits_for_nothing(kind: Kind) {
    if kind == Kind::Sim {
        // There is no instant at which somebody could hurry.
        return;
    }
    let serving = serve(kind);
    let plan = never_answered(kind, |plan| {
        plan.target = Target::parse(&url(&serving, "/never"), None).expect("a URL");
        change_request(plan, |request| request.path = "/never".to_owned());
    });
    let prepared = prepare(plan).expect("a plan that fits");
    let control = prepared.control();
    let run = prepared.run(&control, true, &mut |now, _| {
        if now == "measure" {
            control.hurry();
        }
    });
    let run = run.expect("a run");
    served(serving);
    assert!(run.interrupted);
    assert_eq!(lifetime(&run).requests_sent, 4);
    assert_eq!(run.workers[0].under_way_at_end, 4);
    let end_ns = run.window.end_ns;
    // It left as soon as the window was over, and not when an interrupt would end drain.
    let drained_ns = run.workers[0].edges.drained.get().expect("an edge");
    assert!(drained_ns < end_ns + 900 * MS, "{}", drained_ns - end_ns);
}

#[test]
fn after_an_interrupt_drain_lasts_a_second_at_most() {
    let server = SimServer {
        faults: SimFaults {
            silent: 1.0,
            ..SimFaults::default()
        },
        ..SimServer::default()
    };
    let open = |plan: &mut Plan| {
        plan.model = LoadModel::Open {
            schedule: Schedule::constant_rate(ArrivalProcess::Constant, 100.0, 0).expect("a rate"),
            connections_max: plan.connections,
            queue_max: many(100_000),
        };
    };
    let closed = |_: &mut Plan| {};
    // In the window, which then ends, and after its end.
    for (interrupt_ns, early_end_ns) in [(20 * S, Some(20 * S + 60 * MS)), (400 * S, None)] {
        let changes: [&dyn Fn(&mut Plan); 2] = [&closed, &open];
        for change in changes {
            let plan = never_answered(Kind::Sim, change);
            let settings = SimSettings {
                interrupt_ns: Some(interrupt_ns),
                server: server.clone(),
                ..SimSettings::new(1)
            };
            let prepared = prepare(plan).expect("a plan that fits");
            let (run, _) = simulate(prepared, &settings).expect("a run");
            expect_valid(&run, "interrupted");
            assert!(run.interrupted);
            let end_ns = early_end_ns.unwrap_or(run.window.start_ns + 300 * S);
            assert_eq!(run.window.end_ns, end_ns);
            let worker = &run.workers[0];
            let drained_ns = worker.edges.drained.get().expect("an edge");
            assert!(
                (interrupt_ns + S..interrupt_ns + S + MS).contains(&drained_ns),
                "{drained_ns}"
            );
            assert_eq!(worker.under_way_at_end, 4);
            let arrivals = worker.arrivals;
            assert_eq!(arrivals.planned, arrivals.sent + arrivals.unsent);
        }
    }
}
