//! Parts of a plan on a real kernel: agents that begin at an agreed instant are one load.

use std::sync::Arc;

use brunt_engine::{
    Control, Phase, PrepareError, Prepared, Progress, RunError, prepare, prepare_part,
};
use brunt_io::clock;
use brunt_judge::{InvariantStatus, RunFigures};
use brunt_load::{ArrivalProcess, Part, Plan, Schedule};
use brunt_record::Run;

use crate::common::{
    Kind, MS, S, Served, at_ns, broken, choice, expect_equal_connections, lifetime, many, plan,
    requests_by_plan, serve, served, status, url,
};

crate::common::on_both_kernels! {
    parts_make_the_load_of_the_plan,
    a_start_that_has_passed_is_missed,
    an_interrupt_ends_the_wait_for_the_start,
    an_interrupt_ends_the_wait_for_a_start_that_is_far_off,
    a_count_ends_with_the_part_that_takes_longest,
    an_interrupt_ends_the_wait_for_the_end,
}

/// From now until the load of parts begins: on a busy machine, too, all are ready by then.
const START_NS: u64 = S;

fn part_of(plan: &Plan, first: u32, workers: u32) -> (Prepared, Arc<Control>) {
    let part = Part::new(first, many(workers));
    let prepared = prepare_part(plan.clone(), Some(part)).expect("a plan that fits");
    let control = prepared.control();
    control.hold_start();
    (prepared, control)
}

fn nobody() -> impl FnMut(Phase, &Progress) {
    |_: Phase, _: &Progress| {}
}

/// Runs these parts at once, as agents of their own.
fn at_once(plan: &Plan, parts: &[(u32, u32)]) -> Vec<Run> {
    let parts: Vec<_> = parts
        .iter()
        .map(|&(first, workers)| part_of(plan, first, workers))
        .collect();
    let start_ns = clock::now_ns() + START_NS;
    std::thread::scope(|scope| {
        let running: Vec<_> = parts
            .into_iter()
            .map(|(part, control)| {
                control.start_at(start_ns);
                scope.spawn(move || part.run(&control, true, &mut nobody()))
            })
            .collect();
        let runs = running
            .into_iter()
            .map(|thread| thread.join().expect("no panic"));
        let runs: Vec<Run> = runs.map(|run| run.expect("a run")).collect();
        for run in &runs {
            let warmup_ns = at_ns(run, run.agents[0].clock.edges.warmup_start);
            assert_eq!(warmup_ns, start_ns);
        }
        runs
    })
}

fn parts_make_the_load_of_the_plan(kind: Kind) {
    for is_open in [false, true] {
        let serving = serve(kind);
        let mut plan = plan(&url(&serving, "/"), choice(kind));
        plan.workers.count = many(3);
        plan.load.connections = many(7);
        if is_open {
            let schedule = Schedule::constant_rate(ArrivalProcess::Constant, 1_000.0, 0);
            requests_by_plan(&mut plan, schedule.expect("a rate"), 1_000);
        }
        let runs = at_once(&plan, &[(0, 1), (1, 2)]);
        let served = served(serving);
        let shares: Vec<u32> = runs
            .iter()
            .map(|run| run.plan.load.connections.get())
            .collect();
        assert_eq!(shares, [3, 4]);
        for run in &runs {
            let broken = broken(run, &["W5", "R1"]);
            assert!(broken.is_empty(), "{broken:#?}");
            assert_eq!(run.window_ns, 200 * MS);
        }
        let merged = Run::merge(runs).expect("runs of one plan");
        assert_eq!(merged.window_ns, 200 * MS);
        assert_eq!(merged.plan.amounts(), plan.amounts());
        assert_eq!(status(&merged, "F2"), InvariantStatus::Held);
        let sent = lifetime(&merged);
        assert_eq!(sent.requests_sent, served.requests);
        assert_eq!(sent.replies.total(), served.replies);
        // Each agent looked whether the server is there.
        let opened = Served {
            connections: served.connections - 1,
            ..served
        };
        expect_equal_connections(&merged, opened, "parts");
        if is_open {
            assert_eq!(merged.summary().arrivals.planned, 200);
        }
    }
}

fn an_interrupt_ends_the_wait_for_a_start_that_is_far_off(kind: Kind) {
    let serving = serve(kind);
    let plan = plan(&url(&serving, "/"), choice(kind));
    let (part, control) = part_of(&plan, 0, 1);
    let began_ns = clock::now_ns();
    control.start_at(began_ns + 1_000 * S);
    let mut ready = 0;
    let mut observer = |phase: Phase, _: &Progress| {
        ready += u32::from(phase == Phase::Ready);
        if ready == 2 {
            control.interrupt();
        }
    };
    let outcome = part.run(&control, true, &mut observer);
    assert!(matches!(outcome, Err(RunError::Interrupted)), "{outcome:?}");
    assert!(clock::now_ns() - began_ns < 500 * S);
    served(serving);
}

fn a_start_that_has_passed_is_missed(kind: Kind) {
    let serving = serve(kind);
    let plan = plan(&url(&serving, "/"), choice(kind));
    let (prepared, control) = part_of(&plan, 0, 1);
    control.start_at(clock::now_ns());
    let missed = prepared.run(&control, true, &mut nobody());
    assert!(
        matches!(missed, Err(RunError::StartMissed { late_ns }) if late_ns > 0),
        "{missed:?}"
    );
    assert_eq!(served(serving).requests, 0);
}

fn an_interrupt_ends_the_wait_for_the_start(kind: Kind) {
    let serving = serve(kind);
    let plan = plan(&url(&serving, "/"), choice(kind));
    let (prepared, control) = part_of(&plan, 0, 1);
    let mut looks = 0;
    let interrupted = prepared.run(&control, true, &mut |phase, progress: &Progress| {
        if phase == Phase::Ready {
            assert_eq!(progress.live, 4);
            looks += 1;
            if looks == 10 {
                control.interrupt();
            }
        }
    });
    assert!(
        matches!(interrupted, Err(RunError::Interrupted)),
        "{interrupted:?}"
    );
    assert_eq!(served(serving).requests, 0);
}

/// Parts of a run by count: the second one has replies that take longer.
fn a_count_ends_with_the_part_that_takes_longest(kind: Kind) {
    let serving = serve(kind);
    let mut plan = plan(&url(&serving, "/delay/1ms"), choice(kind));
    plan.workers.count = many(2);
    plan.load.connections = many(5);
    // The first worker has three connections, and as many requests for each.
    plan.load.stop.requests = Some(501);
    plan.load.stop.duration_ns = None;
    let parts = [part_of(&plan, 0, 1), part_of(&plan, 1, 1)];
    let controls = parts.each_ref().map(|(_, control)| Arc::clone(control));
    let load_ns = clock::now_ns() + START_NS;
    let window_start_ns = load_ns + plan.load.warmup_ns;
    let runs: Vec<Run> = std::thread::scope(|scope| {
        let running = parts.map(|(part, control)| {
            control.hold_end();
            control.start_at(load_ns);
            let controls = &controls;
            let mut look = move |_: Phase, _: &Progress| {
                let done = controls.each_ref().map(|control| control.done_window_ns());
                if let [Some(first_ns), Some(second_ns)] = done {
                    // An end that was agreed on may be later than any of theirs.
                    let window_ns = first_ns.max(second_ns) + MS;
                    let end_at =
                        |control: &Arc<Control>| control.end_at(window_start_ns + window_ns);
                    controls.iter().for_each(end_at);
                }
            };
            scope.spawn(move || part.run(&control, true, &mut look))
        });
        let runs = running
            .into_iter()
            .map(|thread| thread.join().expect("no panic"));
        runs.map(|run| run.expect("a run")).collect()
    });
    let served = served(serving);
    let done = controls.map(|control| control.done_window_ns());
    let longest_ns = done.into_iter().flatten().max().expect("they are done");
    for run in &runs {
        assert_eq!(run.window_ns, longest_ns + MS);
        assert!(!run.agents[0].interrupted);
        let broken = broken(run, &["W5", "R1"]);
        assert!(broken.is_empty(), "{broken:#?}");
    }
    let merged = Run::merge(runs).expect("runs of one plan");
    assert_eq!(merged.plan.load.stop.requests, Some(501));
    assert_eq!(merged.summary().population.issued, 501);
    assert_eq!(lifetime(&merged).requests_sent, served.requests);
    assert_eq!(status(&merged, "F2"), InvariantStatus::Held);
}

fn an_interrupt_ends_the_wait_for_the_end(kind: Kind) {
    let serving = serve(kind);
    let mut plan = plan(&url(&serving, "/"), choice(kind));
    plan.load.stop.requests = Some(100);
    plan.load.stop.duration_ns = None;
    let (prepared, control) = part_of(&plan, 0, 1);
    control.hold_end();
    control.start_at(clock::now_ns() + START_NS);
    let mut looks = 0;
    let run = prepared.run(&control, true, &mut |_: Phase, _: &Progress| {
        if control.done_window_ns().is_some() {
            looks += 1;
            if looks == 3 {
                control.interrupt();
            }
        }
    });
    let run = run.expect("what was measured");
    assert!(run.agents[0].interrupted);
    assert_eq!(run.summary().population.issued, 100);
    drop(serving);
}

/// A plan that no machine has room for is no matter of one that makes a small part of it.
#[test]
fn limits_are_checked_for_the_part_alone() {
    let serving = serve(Kind::Uring);
    let mut plan = plan(&url(&serving, "/"), choice(Kind::Uring));
    plan.workers.count = many(1_000_000);
    plan.load.connections = many(4_000_000_000);
    let refused = prepare(plan.clone()).map(drop);
    let is_refused =
        |words| matches!(&refused, Err(PrepareError::Plan(why)) if why.contains(words));
    assert!(is_refused("are needed"), "{refused:?}");
    plan.workers.oversubscribe = false;
    let refused = prepare(plan.clone()).map(drop);
    assert!(
        matches!(&refused, Err(PrepareError::Plan(why)) if why.contains("workers need as many CPUs")),
        "{refused:?}"
    );
    plan.load.connections = many(4_000_000);
    let (prepared, control) = part_of(&plan, 999_999, 1);
    control.start_at(clock::now_ns() + START_NS);
    let run = prepared.run(&control, true, &mut nobody()).expect("a run");
    drop(serving);
    assert_eq!(run.plan.load.connections.get(), 4);
    assert_eq!(run.agents[0].workers[0].worker, 999_999);
    assert_eq!(run.window_ns, 200 * MS);
}
