//! Results per stage of a schedule: each stage shows what its own requests met.

use brunt_judge::{Quantile, ResponseQuantiles};
use brunt_load::{ArrivalProcess, Schedule};
use brunt_record::{Run, STAGES_RECORDED_MAX, StageRecord};
use brunt_testkit::{ServiceTime, SimSettings};

use super::{at_the_door, faithful, open_loop};
use crate::common::{MS, S, US, many, staged};

/// One request after the other, 1 ms each.
fn one_by_one() -> SimSettings {
    at_the_door(|server| {
        server.service = ServiceTime::Constant(MS);
        server.concurrency = Some(many(1));
    })
}

/// Whole seconds at a rate each.
fn steps(stages: &[(u64, f64)]) -> Schedule {
    let stages = stages.iter();
    let stages: Vec<_> = stages
        .map(|&(seconds, per_s)| (seconds * S, per_s, per_s))
        .collect();
    staged(ArrivalProcess::Constant, &stages)
}

fn p99(stage: &StageRecord) -> Quantile {
    stage.response_quantile(0.99)
}

fn run_of(stages: &[(u64, f64)], warmup_ns: u64, timeout_ns: u64) -> Run {
    let seconds = stages.iter().map(|(seconds, _)| seconds).sum::<u64>();
    let mut plan = open_loop(steps(stages), 8, seconds * S);
    plan.load.warmup_ns = warmup_ns;
    plan.limits.timeout_ns = timeout_ns;
    let (run, _) = faithful(&plan, &one_by_one(), &format!("{stages:?}"));
    run
}

#[test]
fn a_stage_shows_what_it_would_alone() {
    let (quick, overloaded, silent) = ((2, 200.0), (2, 1_250.0), (1, 0.0));
    for warmup_ns in [0, S] {
        let run = run_of(&[quick, overloaded, silent], warmup_ns, 100 * S);
        let stages = &run.latencies.stages;
        assert_eq!(stages.len(), 3);
        // Those that the overload left are answered in the silence, and belong to the overload.
        let planned: Vec<u64> = stages.iter().map(|stage| stage.arrivals.planned).collect();
        assert_eq!(planned, [400, 2_500, 0]);
        assert_eq!(stages[0].response.max_ns(), Some(MS));
        assert!(matches!(p99(&stages[0]), Quantile::Known { ns: MS, .. }));
        // Request k is due 0.8 ms after the one before it, and answered 1 ms after that.
        assert_eq!(stages[1].response.max_ns(), Some(500 * MS + 800 * US));
        for (stage, alone) in stages.iter().zip([quick, overloaded]) {
            let alone = run_of(&[alone], 0, 100 * S);
            // What overload leaves is sent after the end of the stage: alone, after the window.
            let without_end = |stage: &StageRecord| {
                let mut stage = stage.clone();
                stage.arrivals.sent_by_end = None;
                stage
            };
            let [alone] = &alone.latencies.stages[..] else {
                panic!("one stage");
            };
            assert_eq!(without_end(alone), without_end(stage));
        }
    }
}

#[test]
fn bounds_stand_where_requests_had_no_reply() {
    let run = run_of(&[(2, 200.0), (2, 1_250.0)], 0, 100 * MS);
    let stages = &run.latencies.stages;
    assert!(matches!(p99(&stages[0]), Quantile::Known { ns: MS, .. }));
    assert_eq!(stages[0].unfinished.count(), 0);
    let Quantile::AtLeast { ns } = p99(&stages[1]) else {
        panic!("{:?}", p99(&stages[1]));
    };
    assert!((50 * MS..=101 * MS).contains(&ns), "{ns}");
    assert_eq!(
        stages[1].unfinished.count(),
        run.latencies.unfinished.count()
    );
}

#[test]
fn stages_of_all_workers_are_one_list_of_bounded_length() {
    for (count, recorded) in [
        (STAGES_RECORDED_MAX, STAGES_RECORDED_MAX),
        (STAGES_RECORDED_MAX + 1, 0),
    ] {
        let stages = vec![(1, 50.0); count];
        let mut plan = open_loop(steps(&stages), 8, count as u64 * S);
        plan.workers.count = many(3);
        let (run, _) = faithful(&plan, &one_by_one(), &format!("{count} stages"));
        let stages = &run.latencies.stages;
        assert_eq!(stages.len(), recorded);
        let even = |stage: &StageRecord| stage.response.count() == 50;
        assert!(stages.iter().all(even));
    }
}
