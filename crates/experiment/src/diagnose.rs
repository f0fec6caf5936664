//! What limited a run: its load once more, in short rounds with connections and brunt's own work
//! changed on purpose.

use std::num::NonZeroU32;

use brunt_engine::{Rounds, RunError, RunObserver};
use brunt_judge::{InvariantStatus, RunFigures};
use brunt_load::{LoadModel, Placement, Plan, Round, Stop, Watch};
use brunt_record::{Diagnosis, DiagnosisPart, Latencies, Protocol, Run};
use thiserror::Error;

use crate::turns::turns;

/// How often each level has its turn. With quick responses four levels take 7 s in all.
const TURNS: u32 = 4;
/// The window of a round.
const WINDOW_NS: u64 = 300_000_000;
/// The warm-up of a round is a multiple of this.
const SETTLING_STEP_NS: u64 = 100_000_000;
/// The share of responses that come within the warm-up.
const SETTLING_QUANTILE: f64 = 0.99;
/// An experiment that would last longer than this is no small addition to a run.
const LENGTH_NS_MAX: u64 = 60_000_000_000;
/// Late responses say nothing about any level: they are not waited for.
const DRAIN_NS_MAX: u64 = 1_000_000_000;
/// How long brunt tries to open connections: those that cannot be opened say nothing about any
/// level.
const SETUP_NS_MAX: u64 = 2_000_000_000;
/// What the added work may be: long enough to be noticed among the rest, and short enough that a
/// request is still one.
const WORK_NS_MIN: u64 = 1_000;
const WORK_NS_MAX: u64 = 1_000_000;
/// A round whose figures cannot be believed is measured once more.
const ATTEMPTS: u32 = 2;

/// Why there is no diagnosis.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum DiagnoseError {
    /// The run cannot be diagnosed.
    #[error("{0}")]
    Run(&'static str),
    /// Responses are too slow.
    #[error(
        "replies take up to {} s, with which the experiment would take {} s; {} s is the most",
        *settling_ns as f64 / 1e9,
        length_ns.div_ceil(1_000_000_000),
        LENGTH_NS_MAX / 1_000_000_000
    )]
    TooLong {
        /// The warm-up of each round, nanoseconds.
        settling_ns: u64,
        /// The whole length, nanoseconds.
        length_ns: u64,
    },
    /// A round was invalid, and its repetition, too.
    #[error("the experiment broke {id}: {detail}")]
    Broken {
        /// The invariant.
        id: String,
        /// What is wrong.
        detail: String,
    },
    /// A round could not be measured, or was interrupted.
    #[error(transparent)]
    Round(#[from] RunError),
}

/// What is set for one round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Level {
    /// Connections, all workers together.
    connections: NonZeroU32,
    /// Work added to each request, nanoseconds.
    added_work_ns: u64,
}

/// An experiment on a run, still to be made.
#[derive(Clone, Debug)]
pub struct Diagnose {
    plan: Plan,
    /// Connections of the run.
    connections: NonZeroU32,
    levels: Vec<Level>,
    settling_ns: u64,
}

impl Diagnose {
    /// Plans the experiment on `run`, which was a run of `plan`.
    ///
    /// # Errors
    ///
    /// The run is none that could be diagnosed, or the experiment would take too long.
    pub fn of(run: &Run, plan: Plan) -> Result<Self, DiagnoseError> {
        if run.interrupted() {
            return Err(DiagnoseError::Run("the run was interrupted"));
        }
        if !brunt_judge::is_valid(&brunt_judge::check(run)) {
            return Err(DiagnoseError::Run("the run is invalid"));
        }
        if run.no_success().is_some() {
            return Err(DiagnoseError::Run("no request of the run succeeded"));
        }
        if run.server_failure().is_some() {
            return Err(DiagnoseError::Run("the server failed while the run lasted"));
        }
        let connections = connections_used(&plan, run);
        let levels = levels(connections, added_work_ns(run));
        let settling_ns = settling_ns(&run.latencies);
        check_length(levels.len(), settling_ns)?;
        let plan = plan_of(with_workers_of(plan, run), run.protocol(), &levels);
        Ok(Self {
            plan,
            connections,
            levels,
            settling_ns,
        })
    }

    /// The plan of the session that the experiment needs.
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// How long its rounds last by plan, nanoseconds.
    pub fn length_ns(&self) -> u64 {
        length_ns(self.levels.len(), self.settling_ns)
    }

    /// Makes the experiment.
    ///
    /// # Errors
    ///
    /// A round could not be measured, was invalid or was interrupted.
    pub fn measure(
        &self,
        session: &mut dyn Rounds,
        observer: &mut dyn RunObserver,
    ) -> Result<Diagnosis, DiagnoseError> {
        let mut parts = Vec::new();
        for number in turns(self.levels.len(), TURNS as usize) {
            let level = self.levels[number];
            let run = self.round(level, session, observer)?;
            parts.push(DiagnosisPart {
                connections: level.connections.get(),
                delay_ns: level.added_work_ns,
                replies: run.summary().window.replies.total(),
                length_ns: run.window_ns,
            });
        }
        Ok(Diagnosis {
            workers: self.plan.workers.get(),
            connections: self.connections.get(),
            parts,
        })
    }

    fn round(
        &self,
        level: Level,
        session: &mut dyn Rounds,
        observer: &mut dyn RunObserver,
    ) -> Result<Run, DiagnoseError> {
        let round = round_of(&self.plan, level, self.settling_ns);
        let mut attempt = 1;
        loop {
            let run = session.round(&round, observer)?;
            if run.interrupted() {
                return Err(RunError::Interrupted.into());
            }
            let findings = brunt_judge::check(&run);
            let broken = findings
                .iter()
                .find(|finding| finding.status == InvariantStatus::Broken);
            match broken {
                None => return Ok(run),
                Some(broken) if attempt == ATTEMPTS => {
                    return Err(DiagnoseError::Broken {
                        id: broken.id.to_owned(),
                        detail: broken.detail.clone(),
                    });
                }
                Some(_) => attempt += 1,
            }
        }
    }
}

/// The round of a level.
fn round_of(plan: &Plan, level: Level, settling_ns: u64) -> Round {
    let mut round = Round {
        connections: level.connections,
        added_work_ns: level.added_work_ns,
        warmup_ns: settling_ns,
        halves_warmup: false,
        extends: false,
        stop: Stop {
            duration_ns: Some(WINDOW_NS),
            requests: None,
        },
        ..Round::of(plan)
    };
    if let LoadModel::Open {
        connections_max, ..
    } = &mut round.model
    {
        *connections_max = level.connections;
    }
    round
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
        LoadModel::Closed { .. } | LoadModel::Held { .. } | LoadModel::Sessions { .. } => {
            plan.connections
        }
    }
}

/// The settings to compare: as the run was, with fewer connections where there can be fewer, with
/// more, and with work added to each request where it is known how much that is.
fn levels(connections: NonZeroU32, added_work_ns: Option<u64>) -> Vec<Level> {
    let level = |connections, added_work_ns| Level {
        connections,
        added_work_ns,
    };
    let count = connections.get();
    let fewer = NonZeroU32::new(count / 2);
    let more = connections.saturating_add((count / 2).max(1));
    std::iter::once(level(connections, 0))
        .chain(fewer.map(|fewer| level(fewer, 0)))
        .chain([level(more, 0)])
        .chain(added_work_ns.map(|added_work_ns| level(connections, added_work_ns)))
        .collect()
}

/// The warm-up of a round: until responses come at the pace of its level, by the service time of
/// the run. Nanoseconds.
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

fn length_ns(levels: usize, settling_ns: u64) -> u64 {
    let rounds = levels as u64 * u64::from(TURNS);
    settling_ns.saturating_add(WINDOW_NS).saturating_mul(rounds)
}

fn check_length(levels: usize, settling_ns: u64) -> Result<(), DiagnoseError> {
    let length_ns = length_ns(levels, settling_ns);
    if length_ns > LENGTH_NS_MAX {
        return Err(DiagnoseError::TooLong {
            settling_ns,
            length_ns,
        });
    }
    Ok(())
}

/// A quarter of what a request costs a worker. Absent where that is not known.
fn added_work_ns(run: &Run) -> Option<u64> {
    let quarter_ns = worker_ns_per_reply(run)? / 4.0;
    Some((quarter_ns as u64).clamp(WORK_NS_MIN, WORK_NS_MAX))
}

/// CPU time of the workers' threads per complete response of the window, without polling in vain,
/// nanoseconds. Absent where it is not known of all workers, and without a response.
pub(crate) fn worker_ns_per_reply(run: &Run) -> Option<f64> {
    let mut worked_ns = 0_u64;
    let mut replies = 0_u64;
    for worker in run.workers() {
        worked_ns = worked_ns.saturating_add(worker.thread.as_ref()?.worked_ns());
        replies = replies.saturating_add(worker.tallies.measure.replies.total());
    }
    (replies > 0).then(|| worked_ns as f64 / replies as f64)
}

/// The plan with the number of workers that the run had, on their CPUs where they were bound to
/// some. The run may have found that number by itself.
fn with_workers_of(mut plan: Plan, run: &Run) -> Plan {
    plan.workers = run.plan.workers;
    let cpus: Option<Vec<u32>> = run.workers().map(|worker| worker.bound_cpu).collect();
    plan.placement = match cpus {
        Some(cpus) => Placement::Bound(cpus),
        None => Placement::Scheduler,
    };
    plan
}

/// The plan with connections for all levels. It names the protocol that the server chose for the
/// run, so that the server does not choose again.
fn plan_of(mut plan: Plan, protocol: Protocol, levels: &[Level]) -> Plan {
    if let Some(exchange) = plan.spoken.exchange_mut() {
        exchange.narrow_to(protocol);
    }
    if let Some(most) = levels.iter().map(|level| level.connections).max() {
        plan.connections = most;
        if let LoadModel::Open {
            connections_max, ..
        } = &mut plan.model
        {
            *connections_max = most;
        }
    }
    plan.drain_limit_ns = plan.drain_limit_ns.min(DRAIN_NS_MAX);
    let setup_ns = plan.setup_timeout_ns.unwrap_or(SETUP_NS_MAX);
    plan.setup_timeout_ns = Some(setup_ns.min(SETUP_NS_MAX));
    plan.watch = Watch::Off;
    plan.server_counter = None;
    plan
}

#[cfg(test)]
mod tests {
    use super::*;

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
                .map(|level| (level.connections.get(), level.added_work_ns))
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
            // The wait for a connection is not a part of it.
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
        // Settling, and the whole in seconds, where the experiment is made.
        for (settling_ms, length_s) in [
            (100, Some(7)),
            (500, Some(13)),
            (3_400, Some(60)),
            (3_500, None),
            (u64::MAX / MS, None),
        ] {
            let made = check_length(4, settling_ms * MS);
            let Some(length_s) = length_s else {
                let reason = made.expect_err("too long").to_string();
                assert!(reason.ends_with("60 s is the most"), "{reason}");
                continue;
            };
            made.expect("short enough");
            let length_ns = length_ns(4, settling_ms * MS);
            assert_eq!(length_ns.div_ceil(1_000 * MS), length_s, "{settling_ms} ms");
        }
    }
}
