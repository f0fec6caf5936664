//! The course of a run: its edges, interrupts, and workers that are late.

use brunt_engine::{Phase, RunError, prepare};
use brunt_judge::RunFigures;
use brunt_load::{ArrivalProcess, BackendChoice, LoadModel, Plan, Target};
use brunt_record::Run;
use brunt_testkit::{ServiceTime, SimSettings};

use crate::common::{
    Kind, MS, S, Served, at_ns, change_request, choice, expect_equal_counts, expect_valid,
    lifetime, load, many, on_every_backend, plan, rate, requests_by_plan, serve, served, serving,
    simulate, simulated, url, window_start_ns,
};

on_every_backend! {
    an_interrupt_in_warm_up_leaves_no_run,
    an_interrupt_in_the_window_ends_it,
    a_hurried_run_waits_for_nothing,
}

/// A closed loop whose connections are opened so many per second.
fn opening(per_s: f64) -> LoadModel {
    LoadModel::Closed {
        connect_per_s: Some(per_s),
    }
}

/// A start that is late by several windows leaves no trace in the rate.
#[test]
fn a_late_worker_changes_no_rate_in_simulated_time() {
    let successes = |model| {
        let (run, _) = load(Kind::Sim, "/delay/10ms", |plan| {
            plan.workers.count = many(2);
            plan.load.model = model;
        });
        expect_valid(&run, "a late worker");
        run.summary().window.replies.successes()
    };
    let late = successes(opening(1.0));
    let punctual = plan("http://simulated/", BackendChoice::Auto);
    assert_eq!(late, successes(punctual.load.model));
    // Four connections, each with a reply every 10 ms for 200 ms.
    assert!((76..=80).contains(&late), "{late}");
}

/// Interrupts a long run as soon as `phase` is shown.
fn interrupted_in(kind: Kind, phase: Phase) -> (Result<Run, RunError>, Served) {
    let serving = serve(kind);
    let mut plan = plan(&url(&serving, "/"), choice(kind));
    (plan.load.warmup_ns, plan.load.stop.duration_ns) = match phase {
        Phase::WarmUp => (20 * S, Some(S)),
        _ => (10 * MS, Some(20 * S)),
    };
    plan.workers.count = many(2);
    let prepared = prepare(plan).expect("a plan that fits");
    let control = prepared.control();
    let run = prepared.run(&control, true, &mut |now, _: &_| {
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
            let plan = plan("http://simulated/", BackendChoice::Auto);
            simulate(plan, &settings).map(|(run, _)| run)
        }
        Kind::Uring | Kind::Epoll => interrupted_in(kind, Phase::WarmUp).0,
    };
    assert!(matches!(outcome, Err(RunError::Interrupted)), "{outcome:?}");
}

fn an_interrupt_in_the_window_ends_it(kind: Kind) {
    let (run, served) = match kind {
        Kind::Sim => {
            let mut settings = SimSettings::new(1);
            settings.interrupt_ns = Some(S);
            settings.server.service = ServiceTime::Constant(MS);
            simulated(settings, |plan| plan.load.stop.duration_ns = Some(20 * S))
        }
        Kind::Uring | Kind::Epoll => {
            let (run, served) = interrupted_in(kind, Phase::Measure);
            (run.expect("a run"), served)
        }
    };
    expect_valid(&run, "interrupted");
    expect_equal_counts(&run, served, "interrupted");
    assert!(run.agents[0].interrupted);
    assert!(run.window_ns > 0 && run.window_ns < 10 * S);
    assert_eq!(run.agents[0].clock.edges.measure_end_planned.get(), None);
}

/// A server that never answers, and a plan that waits long for it.
fn never_answered(kind: Kind, change: impl FnOnce(&mut Plan)) -> Plan {
    let mut plan = plan("http://simulated/", choice(kind));
    (plan.limits.timeout_ns, plan.load.drain_limit_ns) = (600 * S, 600 * S);
    (plan.load.warmup_ns, plan.load.stop.duration_ns) = (0, Some(300 * S));
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
    let run = prepared.run(&control, true, &mut |now, _: &_| {
        if now == Phase::Measure {
            control.hurry();
        }
    });
    let run = run.expect("a run");
    served(serving);
    assert!(run.agents[0].interrupted);
    assert_eq!(lifetime(&run).requests_sent, 4);
    assert_eq!(run.agents[0].workers[0].in_flight_at_end, 4);
    let end_ns = window_start_ns(&run) + run.window_ns;
    // It left as soon as the window was over, and not when an interrupt would end drain.
    let drained_ns = at_ns(&run, run.agents[0].workers[0].edges.drained);
    assert!(drained_ns < end_ns + 900 * MS, "{}", drained_ns - end_ns);
}

#[test]
fn after_an_interrupt_drain_lasts_a_second_at_most() {
    let open = |plan: &mut Plan| {
        requests_by_plan(plan, rate(ArrivalProcess::Constant, 100.0, 0), 100_000);
    };
    let closed = |_: &mut Plan| {};
    // In the window, which then ends, and after its end.
    for (interrupt_ns, early_end_ns) in [(20 * S, Some(20 * S + 60 * MS)), (400 * S, None)] {
        let changes: [&dyn Fn(&mut Plan); 2] = [&closed, &open];
        for change in changes {
            let plan = never_answered(Kind::Sim, change);
            let mut settings = serving(|server| server.faults.silent = 1.0);
            settings.interrupt_ns = Some(interrupt_ns);
            let (run, _) = simulate(plan, &settings).expect("a run");
            expect_valid(&run, "interrupted");
            assert!(run.agents[0].interrupted);
            let start_ns = window_start_ns(&run);
            let end_ns = early_end_ns.unwrap_or(start_ns + 300 * S);
            assert_eq!(start_ns + run.window_ns, end_ns);
            let worker = &run.agents[0].workers[0];
            let drained_ns = at_ns(&run, worker.edges.drained);
            let second_ns = interrupt_ns + S..interrupt_ns + S + MS;
            assert!(second_ns.contains(&drained_ns), "{drained_ns}");
            assert_eq!(worker.in_flight_at_end, 4);
            let arrivals = worker.arrivals;
            assert_eq!(arrivals.planned, arrivals.sent + arrivals.unsent);
        }
    }
}
