//! `--diagnose`: the run once more, with connections and brunt's own work changed on purpose.

use std::num::NonZeroU32;
use std::sync::atomic::AtomicBool;

use anyhow::{Result, bail};
use brunt_engine::RunError;
use brunt_load::{Experiment, Level, LoadModel, Plan, Stop, Watch};
use brunt_measure::{Diagnosis, DiagnosisPart, Finding, Run, Series, Standing};

use crate::progress::Line;
use crate::signals::run_until_interrupted;

/// Each level has one part per round. With four levels they take 6.4 s in all.
const PART_NS: u64 = 400_000_000;
const ROUNDS: u32 = 4;
/// Beginning of a part in which the level before it may still show.
const SETTLING_NS: u64 = 100_000_000;
const WARMUP_NS: u64 = 200_000_000;
/// Late replies say nothing about any level: they are not waited for.
const DRAIN_NS_MAX: u64 = 1_000_000_000;
/// What the added work may be: long enough to be noticed among the rest, and short enough that a
/// request is still one.
const DELAY_NS_MIN: u64 = 1_000;
const DELAY_NS_MAX: u64 = 1_000_000;
/// Little's law compares requests under way with open connections, some of which are idle on
/// purpose.
const BROKEN_BY_PLAN: &str = "I1";

/// Makes the experiment on `plan`, whose run was `run`, and adds to that what came of it, or why
/// nothing did: that is no failure of the run. Gives whether a signal cut the experiment short.
pub(crate) fn diagnose(
    run: &mut Run,
    plan: Plan,
    own_server: bool,
    quiet: bool,
    interrupted: &AtomicBool,
) -> bool {
    let error = match experiment(run, plan, own_server, quiet, interrupted) {
        Ok(diagnosis) => {
            run.diagnosis = Some(diagnosis);
            return false;
        }
        Err(error) => error,
    };
    let was_interrupted = matches!(error.downcast_ref(), Some(RunError::Interrupted));
    let reason = if was_interrupted {
        "the experiment was interrupted".to_owned()
    } else {
        format!("{error:#}")
    };
    let missing = &mut run.evidence.missing;
    missing.insert("diagnosis".to_owned(), reason);
    was_interrupted
}

fn experiment(
    run: &Run,
    plan: Plan,
    own_server: bool,
    quiet: bool,
    interrupted: &AtomicBool,
) -> Result<Diagnosis> {
    if run.interrupted {
        bail!("the run was interrupted");
    }
    if !brunt_measure::is_valid(&run.findings) {
        bail!("the run is invalid");
    }
    let connections = connections_used(&plan, run);
    let experiment = Experiment::new(levels(connections, added_delay_ns(run)), PART_NS, ROUNDS);
    let plan = plan_of(plan, &experiment);
    let workers = plan.workers.get();
    let mut line = Line::new(quiet, &plan);
    let prepared = brunt_engine::prepare(plan)?;
    let made = run_until_interrupted(prepared, own_server, interrupted, &mut |_, progress| {
        line.draw("diagnose", progress);
    });
    line.clear();
    let made = made?;
    if made.interrupted {
        return Err(RunError::Interrupted.into());
    }
    if let Some(broken) = made.findings.iter().find(|finding| is_serious(finding)) {
        bail!("the experiment broke {}: {}", broken.id, broken.detail);
    }
    Ok(Diagnosis {
        workers,
        connections: connections.get(),
        parts: parts(&experiment, &made.summary().series),
    })
}

fn is_serious(finding: &Finding) -> bool {
    finding.standing == Standing::Broken && finding.id != BROKEN_BY_PLAN
}

/// The connections that the run had at its disposal: those held, and with a schedule of requests
/// those that were opened besides.
fn connections_used(plan: &Plan, run: &Run) -> NonZeroU32 {
    match plan.model {
        LoadModel::Open {
            connections_max, ..
        } => NonZeroU32::new(run.summary().live.max).map_or(plan.connections, |live| {
            live.clamp(plan.connections, connections_max)
        }),
        LoadModel::Closed { .. } | LoadModel::Sessions { .. } => plan.connections,
    }
}

/// The settings to compare: as the run was, with fewer connections where there can be fewer, with
/// more, and with work added to each request where it is known how much that is.
fn levels(connections: NonZeroU32, delay_ns: Option<u64>) -> Vec<Level> {
    let level = |connections, delay_ns| Level {
        connections,
        delay_ns,
    };
    let count = connections.get();
    let fewer = NonZeroU32::new(count / 2);
    let more = connections.saturating_add((count / 2).max(1));
    std::iter::once(level(connections, 0))
        .chain(fewer.map(|fewer| level(fewer, 0)))
        .chain([level(more, 0)])
        .chain(delay_ns.map(|delay_ns| level(connections, delay_ns)))
        .collect()
}

/// A quarter of what a request costs a worker. Absent where that is not known.
fn added_delay_ns(run: &Run) -> Option<u64> {
    let quarter_ns = worker_ns_per_reply(run)? / 4.0;
    Some((quarter_ns as u64).clamp(DELAY_NS_MIN, DELAY_NS_MAX))
}

/// CPU time of the workers' threads per complete reply of the window, without polling in vain,
/// nanoseconds. Absent where it is not known of all workers, and without a reply.
pub(crate) fn worker_ns_per_reply(run: &Run) -> Option<f64> {
    let mut worked_ns = 0_u64;
    let mut replies = 0_u64;
    for worker in &run.workers {
        worked_ns = worked_ns.saturating_add(worker.thread.as_ref()?.worked_ns());
        replies = replies.saturating_add(worker.tallies.measure.replies.total());
    }
    (replies > 0).then(|| worked_ns as f64 / replies as f64)
}

/// The same plan for the length of the experiment, with connections for all of its levels.
fn plan_of(mut plan: Plan, experiment: &Experiment) -> Plan {
    if let Some(most) = experiment.connections_max() {
        plan.connections = most;
        if let LoadModel::Open {
            connections_max, ..
        } = &mut plan.model
        {
            *connections_max = most;
        }
    }
    plan.stop = Stop {
        duration_ns: Some(experiment.length_ns()),
        requests: None,
    };
    plan.warmup_ns = WARMUP_NS;
    plan.drain_limit_ns = plan.drain_limit_ns.min(DRAIN_NS_MAX);
    plan.watch = Watch::Off;
    plan.server_counter = None;
    plan.experiment = Some(experiment.clone());
    plan
}

/// What each part of `experiment` brought, by the points of the series that lie within it and after
/// its beginning.
fn parts(experiment: &Experiment, series: &Series) -> Vec<DiagnosisPart> {
    let mut start_ns = 0;
    let mut parts = Vec::new();
    for level in experiment.parts() {
        let end_ns = start_ns + experiment.part_ns();
        let first = (start_ns + SETTLING_NS).div_ceil(series.interval_ns);
        let points = first..end_ns / series.interval_ns;
        // The series ends with its last event: what is beyond it is nothing.
        let replies = points.clone().filter_map(|at| {
            let point = series.points.get(usize::try_from(at).ok()?)?;
            Some(point.successes.saturating_add(point.errors))
        });
        parts.push(DiagnosisPart {
            connections: level.connections.get(),
            delay_ns: level.delay_ns,
            replies: replies.fold(0, u64::saturating_add),
            length_ns: points.end.saturating_sub(points.start) * series.interval_ns,
        });
        start_ns = end_ns;
    }
    parts
}

#[cfg(test)]
mod tests {
    use brunt_measure::SeriesPoint;

    use super::*;

    fn many(count: u32) -> NonZeroU32 {
        NonZeroU32::new(count).expect("not 0")
    }

    #[test]
    fn levels_lie_around_the_run() {
        let cases = [
            (1, vec![(1, 0), (2, 0), (1, 7)]),
            (2, vec![(2, 0), (1, 0), (3, 0), (2, 7)]),
            (3, vec![(3, 0), (1, 0), (4, 0), (3, 7)]),
            (64, vec![(64, 0), (32, 0), (96, 0), (64, 7)]),
        ];
        for (connections, expected) in cases {
            let found: Vec<_> = levels(many(connections), Some(7))
                .iter()
                .map(|level| (level.connections.get(), level.delay_ns))
                .collect();
            assert_eq!(found, expected, "{connections}");
        }
        assert_eq!(levels(many(64), None).len(), 3);
        let most = levels(NonZeroU32::MAX, None);
        assert_eq!(most[2].connections, NonZeroU32::MAX);
    }

    #[test]
    fn the_help_says_how_long_it_takes() {
        let experiment = Experiment::new(levels(many(64), Some(7)), PART_NS, ROUNDS);
        assert_eq!(
            (experiment.length_ns() + WARMUP_NS).div_ceil(1_000_000_000),
            7
        );
    }

    #[test]
    fn parts_are_counted_without_their_beginnings() {
        let levels = vec![
            Level {
                connections: many(4),
                delay_ns: 0,
            },
            Level {
                connections: many(4),
                delay_ns: 9,
            },
        ];
        let experiment = Experiment::new(levels, PART_NS, 2);
        let mut series = Series::default();
        // Points 0 to 13 of 16: nothing came in the last two.
        for (index, replies) in (0..14).zip(1_u64..) {
            let point: &mut SeriesPoint = series.at(index * series.interval_ns, 4);
            point.successes = replies;
            point.errors = 100;
        }
        let found: Vec<_> = parts(&experiment, &series)
            .iter()
            .map(|part| (part.delay_ns, part.replies, part.length_ns))
            .collect();
        assert_eq!(
            found,
            [
                (0, 2 + 3 + 4 + 300, 300_000_000),
                (9, 6 + 7 + 8 + 300, 300_000_000),
                (9, 10 + 11 + 12 + 300, 300_000_000),
                (0, 14 + 100, 300_000_000),
            ]
        );
    }

    #[test]
    fn no_points_make_parts_without_replies() {
        let experiment = Experiment::new(levels(many(1), None), PART_NS, 1);
        let parts = parts(&experiment, &Series::default());
        assert!(
            parts
                .iter()
                .all(|part| part.replies == 0 && part.length_ns == 300_000_000)
        );
        assert_eq!(parts.len(), 2);
    }
}
