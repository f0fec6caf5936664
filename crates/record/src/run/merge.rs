//! Merging: runs of several agents at the same plan become one run, exactly.
//!
//! Counts are added, histograms bucket by bucket, series by their place relative to the window;
//! agents stand side by side. Neither order nor grouping makes a difference.

use brunt_load::{Amounts, Plan, ProtocolSpec, TlsSpec};
use thiserror::Error;

use super::{AGENTS_MAX, AgentRecord, Run, UnsoundRun, difference};
use crate::by_name::{merge_alike, merge_by_name};

/// Why runs cannot be merged. Runs are numbered from 0, as they were given.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum MergeError {
    /// Nothing to merge.
    #[error("no run was given")]
    Nothing,
    /// The parts of one do not belong together.
    #[error("a run cannot be read: {reason}")]
    Unsound {
        /// Which run.
        run: usize,
        /// What is wrong with it.
        reason: UnsoundRun,
    },
    /// An agent is in two of them: what it did would be counted twice.
    #[error("the same run is in both")]
    SameAgent {
        /// The run that has it.
        first: usize,
        /// The other one.
        second: usize,
    },
    /// A worker of the plan that they are parts of is in two of them.
    #[error("both have worker {worker} of the plan")]
    SameWorker {
        /// Its number.
        worker: u32,
        /// The run that has it.
        first: usize,
        /// The other one.
        second: usize,
    },
    /// Something that must be alike is not.
    #[error("{field}: {first_value} in one and {second_value} in the other")]
    Differs {
        /// What differs.
        field: &'static str,
        /// The run that it is compared with.
        first: usize,
        /// Its value.
        first_value: String,
        /// The run that differs.
        second: usize,
        /// Its value.
        second_value: String,
    },
    /// No plan has the amounts of all together.
    #[error("the rates of all together are above any that a plan can have")]
    Amounts,
    /// More agents than a run may have.
    #[error("{0} agents are over the limit of {AGENTS_MAX}")]
    TooManyAgents(usize),
}

impl Run {
    /// One run of all agents in `runs`, which had the same plan but for its amounts. The amounts
    /// are added up. Parts that make the whole of a plan have its amounts again. Objectives of one
    /// agent, and the result of an experiment on one, do not hold for all and are left out.
    ///
    /// # Errors
    ///
    /// See [`MergeError`].
    pub fn merge(runs: Vec<Self>) -> Result<Self, MergeError> {
        check(&runs)?;
        let mut runs = runs;
        // The plan is that of the agent that comes first, with what each may have of its own.
        runs.sort_by_cached_key(|run| run.agents.first().map(order));
        let mut runs = runs.into_iter();
        let mut merged = runs.next().ok_or(MergeError::Nothing)?;
        if runs.len() == 0 {
            return Ok(merged);
        }
        for run in runs {
            merged.latencies.merge(&run.latencies);
            if merged.plan.traffic.is_generated {
                // They come up while a run goes on, in an order of each agent's own.
                merge_by_name(&mut merged.names, run.names)
            } else {
                merge_alike(&mut merged.names, &run.names)
            }
            merged.agents.extend(run.agents);
            merged.lost_agents.extend(run.lost_agents);
        }
        merged.objectives.clear();
        merged.agents.sort_by_cached_key(order);
        // Each of several runs may know of the same one.
        merged.lost_agents.sort_by_key(|lost| lost.first_worker);
        merged.lost_agents.dedup();
        // Sums of rates depend on the order of the summands: it is that of the agents.
        if let Some((first, others)) = merged.agents.split_first() {
            let mut amounts = first.share.clone();
            others.iter().for_each(|agent| amounts.add(&agent.share));
            let is_whole = |whole: &mut Amounts| whole.workers == amounts.workers;
            if let Some(whole) = merged.part_of.take_if(is_whole) {
                // A sum of rates may be off by its rounding.
                amounts = whole;
            }
            merged.plan = merged
                .plan
                .with_amounts(&amounts)
                .ok_or(MergeError::Amounts)?;
        }
        Ok(merged)
    }
}

/// In which order agents stand in a run: that of the parts of a fleet, which run at the same time;
/// else the one that began first. Ids are random.
fn order(agent: &AgentRecord) -> (u32, u64, String) {
    let first_worker = agent.workers.iter().map(|worker| worker.worker).min();
    (
        first_worker.unwrap_or(0),
        agent.clock.window_start_unix_ms,
        agent.id.clone(),
    )
}

/// Whether all of `runs` can be merged.
fn check(runs: &[Run]) -> Result<(), MergeError> {
    let (first, others) = runs.split_first().ok_or(MergeError::Nothing)?;
    for (run, number) in runs.iter().zip(0..) {
        run.check_sound().map_err(|reason| MergeError::Unsound {
            run: number,
            reason,
        })?;
    }
    let ids = |run: &Run| -> Vec<String> {
        let agents = run.agents.iter();
        agents.map(|agent| agent.id.clone()).collect()
    };
    if let Some((_, first, second)) = in_two(runs, ids) {
        return Err(MergeError::SameAgent { first, second });
    }
    for (other, second) in others.iter().zip(1..) {
        if let Some((field, first_value, second_value)) = run_difference(first, other) {
            return Err(MergeError::Differs {
                field,
                first: 0,
                first_value,
                second,
                second_value,
            });
        }
    }
    let is_part = first.part_of.is_some();
    if let Some((worker, first, second)) = in_two(runs, Run::worker_numbers).filter(|_| is_part) {
        return Err(MergeError::SameWorker {
            worker,
            first,
            second,
        });
    }
    let agents = runs.iter().map(|run| run.agents.len()).sum();
    if agents > AGENTS_MAX {
        return Err(MergeError::TooManyAgents(agents));
    }
    Ok(())
}

/// What two of these have, and which two; absent where there is nothing.
fn in_two<T: Ord>(runs: &[Run], of: fn(&Run) -> Vec<T>) -> Option<(T, usize, usize)> {
    let mut all: Vec<(T, usize)> = Vec::new();
    for (run, number) in runs.iter().zip(0..) {
        all.extend(of(run).into_iter().map(|value| (value, number)));
    }
    all.sort_unstable();
    let twice = all.windows(2).position(|pair| pair[0].0 == pair[1].0)?;
    let (second, first) = (all[twice + 1].1, all.swap_remove(twice));
    Some((first.0, first.1, second))
}

type Difference = Option<(&'static str, String, String)>;

fn run_difference(first: &Run, other: &Run) -> Difference {
    let window = |run: &Run| format!("{} s", run.window_ns as f64 / 1e9);
    let names = |run: &Run| {
        run.names
            .iter()
            .map(|record| record.name.clone())
            .collect::<Vec<String>>()
    };
    let versions = (&first.brunt_version, &other.brunt_version);
    differs("the version of brunt", versions.0, versions.1)
        .or_else(|| plan_difference(&first.plan, &other.plan))
        .or_else(|| part_difference(first, other))
        .or_else(|| difference(first.first(), other.first()))
        .or_else(|| {
            let differ = first.window_ns != other.window_ns;
            differ.then(|| ("the length of the window", window(first), window(other)))
        })
        .or_else(|| {
            let (ours, theirs) = (names(first), names(other));
            // Requests that a generator did not name are forgotten where none has a name.
            let are_named = !ours.is_empty() && !theirs.is_empty();
            if first.plan.traffic.is_generated && are_named {
                return None;
            }
            let place =
                (0..ours.len().max(theirs.len())).find(|&at| ours.get(at) != theirs.get(at))?;
            let name = |names: &[String]| match names.get(place) {
                Some(name) => format!("`{name}`"),
                None => "nothing".to_owned(),
            };
            Some(("a request of the list", name(&ours), name(&theirs)))
        })
}

/// In what two parts are not those of one plan.
fn part_difference(first: &Run, other: &Run) -> Difference {
    differs(
        "the plan that it is a part of",
        &first.part_of,
        &other.part_of,
    )
    .or_else(|| {
        // Each worker draws what it would draw among all of them.
        let seeds = |run: &Run| run.part_of.as_ref().map(|_| run.first().seeds);
        differs("the seed of a part", &seeds(first), &seeds(other))
    })
}

fn differs<T: PartialEq + std::fmt::Debug>(
    field: &'static str,
    first: &T,
    other: &T,
) -> Difference {
    if first == other {
        return None;
    }
    let (ours, theirs) = (format!("{first:?}"), format!("{other:?}"));
    let (ours, theirs) = match (value(field, &ours), value(field, &theirs)) {
        (Some(ours), Some(theirs)) => (ours, theirs),
        // What has many parts is not spelt out.
        (None, None) => ("set in one way".to_owned(), "in another way".to_owned()),
        (ours, theirs) => {
            let given = || "given".to_owned();
            (ours.unwrap_or_else(given), theirs.unwrap_or_else(given))
        }
    };
    Some((field, ours, theirs))
}

/// A value for people, from how Rust writes it; absent of one that has parts.
fn value(field: &str, written: &str) -> Option<String> {
    let inner = written
        .strip_prefix("Some(")
        .and_then(|rest| rest.strip_suffix(')'))
        .unwrap_or(written);
    if inner.contains('{') && !inner.starts_with('"') {
        return None;
    }
    Some(match inner.parse::<u64>() {
        _ if inner == "None" => "not given".to_owned(),
        Ok(ns) if field.ends_with("_ns") => format!("{} s", ns as f64 / 1e9),
        _ => inner.to_owned(),
    })
}

/// In what two plans differ beside their amounts and what each agent may have of its own: seeds,
/// places, what it watches.
fn plan_difference(first: &Plan, other: &Plan) -> Difference {
    macro_rules! compare {
        ($($field:literal: $of:expr),* $(,)?) => {
            None $(.or_else(|| {
                let of = $of;
                differs($field, &of(first), &of(other))
            }))*
        };
    }
    compare! {
        "plan.target.url": |plan: &Plan| plan.urls(),
        "plan.target.unix_socket": |plan: &Plan| plan.target.unix_socket.clone(),
        "the list of plan.traffic.requests": |plan: &Plan| plan.traffic.requests.outline().list,
        "the order of plan.traffic.requests": |plan: &Plan| plan.traffic.requests.order().name(),
        "plan.connection.protocol": protocol_spec,
        "the first of plan.traffic.requests": |plan: &Plan| {
            let is_message = plan.traffic.requests.first_outline().is_none();
            is_message.then(|| plan.traffic.requests.first_name())
        },
        "plan.connection.tls": tls,
        "whether there is a plan.connection.tls.identity": |plan: &Plan| {
            plan.tls().is_some_and(|tls| tls.identity.is_some())
        },
        "plan.traffic.pipeline": |plan: &Plan| plan.traffic.pipeline,
        "plan.traffic.streams": |plan: &Plan| plan.traffic.streams,
        "plan.connection.http2": |plan: &Plan| plan.connection.http2,
        "plan.traffic.reuse": |plan: &Plan| plan.traffic.reuse,
        "plan.traffic.think_time_ns": |plan: &Plan| plan.traffic.think_time_ns,
        "plan.traffic.think_spread": |plan: &Plan| plan.traffic.think_spread,
        "plan.load.stop.duration_ns": |plan: &Plan| plan.load.stop.duration_ns,
        "plan.traffic.has_equal_parts": |plan: &Plan| plan.traffic.has_equal_parts,
        "plan.load.warmup_ns": |plan: &Plan| plan.load.warmup_ns,
        "plan.limits.timeout_ns": |plan: &Plan| plan.limits.timeout_ns,
        "plan.traffic.sends_again": |plan: &Plan| plan.traffic.sends_again,
        "plan.connection.sockets": |plan: &Plan| plan.connection.sockets.clone(),
        "plan.limits.setup_timeout_ns": |plan: &Plan| plan.limits.setup_timeout_ns,
        "plan.limits.connect_timeout_ns": |plan: &Plan| plan.limits.connect_timeout_ns,
        "plan.load.drain_limit_ns": |plan: &Plan| plan.load.drain_limit_ns,
        "plan.workers.backend": |plan: &Plan| plan.workers.backend,
        "plan.observation.stamps": |plan: &Plan| plan.observation.stamps,
        "plan.workers.spin": |plan: &Plan| plan.workers.spin,
        "plan.workers.oversubscribe": |plan: &Plan| plan.workers.oversubscribe,
        "plan.observation.observe": |plan: &Plan| plan.observation.observe,
        "the method of plan.traffic.requests": |plan: &Plan| plan.first_request().map(|request| request.method),
        "the path of plan.traffic.requests": |plan: &Plan| plan.first_request().map(|request| request.path),
        "the header fields of plan.traffic.requests": |plan: &Plan| {
            plan.first_request().map(|request| request.header_names)
        },
        "the length of the body of plan.traffic.requests": |plan: &Plan| {
            plan.first_request().map(|request| request.body_bytes)
        },
        "the kind of plan.load.model": |plan: &Plan| plan.load.model.name(),
        "the process of plan.load.model.schedule": |plan: &Plan| {
            plan.load.model.schedule().map(|schedule| schedule.process().name())
        },
        "the lengths of plan.load.model.schedule.stages": |plan: &Plan| {
            let stages = plan.load.model.schedule().map(|schedule| schedule.stages().iter());
            stages.map(|stages| stages.map(|stage| stage.duration_ns).collect::<Vec<_>>())
        },
        "whether connections are paced": |plan: &Plan| plan.load.model.connect_per_s().is_some(),
        "whether requests are counted": |plan: &Plan| plan.load.stop.requests.is_some(),
    }
}

/// What is spoken, but for seeds.
fn protocol_spec(plan: &Plan) -> ProtocolSpec {
    let mut spec = plan.connection.protocol.clone();
    if let Some(exchange) = spec.exchange_mut() {
        exchange.set_seed(0);
    }
    spec
}

/// How TLS is spoken, but for files, of which each agent has its own.
fn tls(plan: &Plan) -> Option<TlsSpec> {
    let tls = plan.tls()?;
    Some(TlsSpec {
        server_name: Some(tls.name_for(&plan.target.host).to_owned()),
        roots: None,
        roots_der: Vec::new(),
        identity: None,
        ..tls.clone()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_that_differ_are_given_as_people_write_them() {
        let of = |field, first: Option<u64>, other: Option<u64>| {
            let (_, ours, theirs) = differs(field, &first, &other).expect("they differ");
            (ours, theirs)
        };
        let words = |ours: &str, theirs: &str| (ours.to_owned(), theirs.to_owned());
        assert_eq!(
            of("plan.load.stop.duration_ns", Some(4_000_000_000), Some(1)),
            words("4 s", "0.000000001 s")
        );
        assert_eq!(
            of("plan.requests_per_connection", None, Some(3)),
            words("not given", "3")
        );
        assert_eq!(differs("plan.traffic.pipeline", &1, &1), None);
        let parts = |mean_ns| {
            Some(Amounts {
                connections: mean_ns,
                ..Amounts::default()
            })
        };
        assert_eq!(
            differs("plan.think", &parts(1), &parts(2)),
            Some((
                "plan.think",
                "set in one way".to_owned(),
                "in another way".to_owned()
            ))
        );
        assert_eq!(
            differs("plan.think", &parts(1), &None),
            Some(("plan.think", "given".to_owned(), "not given".to_owned()))
        );
    }
}
