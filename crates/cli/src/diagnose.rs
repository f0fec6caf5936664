//! `--diagnose`: the run once more, with connections and brunt's own work changed on purpose.

use std::num::NonZeroU32;

use anyhow::{Result, bail};
use brunt_engine::RunError;
use brunt_load::{Experiment, HttpChoice, Level, LoadModel, Plan, Stop, Watch};
use brunt_measure::{
    Diagnosis, DiagnosisPart, Finding, Latencies, Protocol, Run, Series, Standing,
};

use crate::progress::Line;
use crate::signals::{Interrupts, Wanted};

/// Each level has one part per round. With quick replies four levels take 6.4 s in all.
const ROUNDS: u32 = 4;
/// What is counted of a part, after its settling.
const COUNTED_NS: u64 = 300_000_000;
/// Settling is a multiple of this: the parts are counted by the points of the series.
const SETTLING_STEP_NS: u64 = 100_000_000;
/// The share of replies that come before settling ends.
const SETTLING_QUANTILE: f64 = 0.99;
const WARMUP_NS: u64 = 200_000_000;
/// Beyond this, an experiment is no small addition to a run.
const LENGTH_NS_MAX: u64 = 60_000_000_000;
/// Late replies say nothing about any level: they are not waited for.
const DRAIN_NS_MAX: u64 = 1_000_000_000;
/// What the added work may be: long enough to be noticed among the rest, and short enough that a
/// request is still one.
const DELAY_NS_MIN: u64 = 1_000;
const DELAY_NS_MAX: u64 = 1_000_000;
/// Little's law compares requests in flight with open connections, some of which are idle on
/// purpose.
const BROKEN_BY_PLAN: &str = "I1";

/// Makes the experiment on `plan`, whose run was `run`, and adds to that its outcome, or why
/// nothing did: that is no failure of the run. Gives whether a signal cut the experiment short.
pub(crate) fn diagnose(
    run: &mut Run,
    plan: Plan,
    own_server: bool,
    quiet: bool,
    interrupts: &Interrupts,
) -> bool {
    let error = match experiment(run, plan, own_server, quiet, interrupts) {
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
    interrupts: &Interrupts,
) -> Result<Diagnosis> {
    if run.interrupted {
        bail!("the run was interrupted");
    }
    if !brunt_measure::is_valid(&run.findings) {
        bail!("the run is invalid");
    }
    if run.no_success().is_some() {
        bail!("no request of the run succeeded");
    }
    if run.server_failure().is_some() {
        bail!("the server failed while the run lasted");
    }
    let connections = connections_used(&plan, run);
    let settling_ns = settling_ns(&run.latencies);
    let levels = levels(connections, added_delay_ns(run));
    let experiment = experiment_of(levels, settling_ns)?;
    let plan = plan_of(plan, run.load.protocol, &experiment);
    let workers = plan.workers.get();
    let mut line = Line::new(quiet, &plan);
    let prepared = interrupts.prepare(plan)?;
    let made = interrupts.run(prepared, own_server, Wanted::Whole, &mut |_, progress| {
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
        parts: parts(&experiment, settling_ns, &made.summary().series),
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

/// Beginning of a part in which the level before it may still show: requests sent at that level are
/// answered only then. Nanoseconds; by the service time of the run, in whole points of a series.
fn settling_ns(latencies: &Latencies) -> u64 {
    let mut replies = latencies.service.clone();
    // Without service times of their own, response times count from the send as well. Where nothing
    // succeeded on a schedule, they may count from the plan, which is earlier.
    if replies.count() == 0 {
        replies.merge(&latencies.response);
        replies.merge(&latencies.response_error);
    }
    let slow_ns = replies.quantile_ns(SETTLING_QUANTILE).unwrap_or(0);
    slow_ns
        .div_ceil(SETTLING_STEP_NS)
        .max(1)
        .saturating_mul(SETTLING_STEP_NS)
}

/// The experiment at `levels` whose parts begin with this settling.
///
/// # Errors
///
/// It would take too long.
fn experiment_of(levels: Vec<Level>, settling_ns: u64) -> Result<Experiment> {
    let parts = levels.len() as u64 * u64::from(ROUNDS);
    let part_ns = settling_ns.saturating_add(COUNTED_NS);
    let length_ns = part_ns.saturating_mul(parts).saturating_add(WARMUP_NS);
    if length_ns > LENGTH_NS_MAX {
        bail!(
            "replies take up to {} s, with which the experiment would take {} s; {} s is the most",
            settling_ns as f64 / 1e9,
            length_ns.div_ceil(1_000_000_000),
            LENGTH_NS_MAX / 1_000_000_000
        );
    }
    Ok(Experiment::new(levels, part_ns, ROUNDS))
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

/// The same plan for the length of the experiment, with connections for all of its levels. What the
/// server chose for the run is not left to it again.
fn plan_of(mut plan: Plan, protocol: Protocol, experiment: &Experiment) -> Plan {
    plan.http = match protocol {
        Protocol::Http1 => HttpChoice::Http1,
        Protocol::Http2 => HttpChoice::Http2,
    };
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
/// its settling.
fn parts(experiment: &Experiment, settling_ns: u64, series: &Series) -> Vec<DiagnosisPart> {
    let mut start_ns = 0;
    let mut parts = Vec::new();
    for level in experiment.parts() {
        let end_ns = start_ns + experiment.part_ns();
        let first = (start_ns + settling_ns).div_ceil(series.interval_ns);
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
    use brunt_load::Target;
    use brunt_measure::SeriesPoint;
    use clap::Parser;

    use super::*;
    use crate::args::Arguments;
    use crate::plan::Load;

    const MS: u64 = 1_000_000;

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
    fn settling_outlasts_slow_replies() {
        // (service times in ms, or response times of successes and of errors, settling in ms)
        let cases: [([&[u64]; 3], u64); 8] = [
            ([&[], &[], &[]], 100),
            ([&[0], &[], &[]], 100),
            ([&[], &[100], &[]], 100),
            ([&[], &[101], &[]], 200),
            ([&[], &[1], &[450]], 500),
            ([&[], &[], &[250]], 300),
            // The wait for a connection is no part of it.
            ([&[450, 250], &[9_000], &[9_000]], 500),
            ([&[2_000], &[], &[]], 2_000),
        ];
        for (replies_ms, expected_ms) in cases {
            let mut latencies = Latencies::default();
            let Latencies {
                service,
                response,
                response_error,
                ..
            } = &mut latencies;
            for (histogram, ms) in [service, response, response_error]
                .into_iter()
                .zip(replies_ms)
            {
                ms.iter().for_each(|ms| histogram.record(ms * MS));
            }
            assert_eq!(settling_ns(&latencies), expected_ms * MS, "{replies_ms:?}");
        }
        // One reply in a thousand is late: it may be left out.
        let mut latencies = Latencies::default();
        for index in 0..1_000 {
            let ms = if index == 0 { 5_000 } else { 1 };
            latencies.response.record(ms * MS);
        }
        assert_eq!(settling_ns(&latencies), 100 * MS);
    }

    #[test]
    fn the_help_says_how_long_it_takes() {
        let levels = || levels(many(64), Some(7));
        // Settling, a part, and the whole in seconds, where it is made.
        for (settling_ms, part_ms, length_s) in [
            (100, 400, Some(7)),
            (500, 800, Some(13)),
            (3_400, 3_700, Some(60)),
            (3_500, 0, None),
            (u64::MAX / MS, 0, None),
        ] {
            let made = experiment_of(levels(), settling_ms * MS);
            let Some(length_s) = length_s else {
                let reason = made.expect_err("too long").to_string();
                assert!(reason.ends_with("60 s is the most"), "{reason}");
                continue;
            };
            let experiment = made.expect("short enough");
            assert_eq!(experiment.part_ns(), part_ms * MS);
            let length_ns = experiment.length_ns() + WARMUP_NS;
            assert_eq!(length_ns.div_ceil(1_000 * MS), length_s, "{settling_ms} ms");
        }
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
        let experiment = Experiment::new(levels, 400 * MS, 2);
        let mut series = Series::default();
        // Points 0 to 13 of 16: nothing came in the last two.
        for (index, replies) in (0..14).zip(1_u64..) {
            let point: &mut SeriesPoint = series.at(index * series.interval_ns, 4);
            point.successes = replies;
            point.errors = 100;
        }
        let found: Vec<_> = parts(&experiment, 100 * MS, &series)
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
    fn what_was_agreed_for_the_run_is_kept() {
        let typed = ["brunt", "--streams=7", "--tls-resume", "https://host/"];
        let arguments = Arguments::try_parse_from(typed).expect("sound").load;
        let target = Target::parse("https://host/", None).expect("a URL");
        let load = Load::new(&arguments, Some(&target)).expect("sound");
        let plan = load.plan(&arguments, target, NonZeroU32::MIN);
        assert_eq!((plan.http, plan.streams.get()), (HttpChoice::Auto, 7));
        let experiment = Experiment::new(levels(many(4), None), 400 * MS, 1);
        for (protocol, http) in [
            (Protocol::Http1, HttpChoice::Http1),
            (Protocol::Http2, HttpChoice::Http2),
        ] {
            let again = plan_of(plan.clone(), protocol, &experiment);
            assert_eq!(again.http, http);
            assert_eq!(
                (again.streams, again.pipeline),
                (plan.streams, plan.pipeline)
            );
            assert_eq!(again.tls, plan.tls);
        }
    }

    #[test]
    fn no_points_make_parts_without_replies() {
        let experiment = Experiment::new(levels(many(1), None), 700 * MS, 1);
        let parts = parts(&experiment, 400 * MS, &Series::default());
        assert!(
            parts
                .iter()
                .all(|part| part.replies == 0 && part.length_ns == 300_000_000)
        );
        assert_eq!(parts.len(), 2);
    }
}
