//! Merging: runs of several agents at the same plan become one run, exactly.
//!
//! Counts are added, histograms bucket by bucket, series by their place relative to the window;
//! agents stand side by side. Neither order nor grouping makes a difference.

use brunt_load::{Amounts, Plan, TlsSpec};
use serde::Serialize;
use serde_json::Value;
use thiserror::Error;

use super::{AGENTS_MAX, AgentRecord, Run, difference};
use crate::NameRecord;
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
        reason: String,
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
        field: String,
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

/// What differs, with both values.
pub(super) type Difference = Option<(String, String, String)>;

fn run_difference(first: &Run, other: &Run) -> Difference {
    let differ = |what: &str, of: fn(&Run) -> Value| whole_difference(what, &of(first), &of(other));
    let plans = [first, other].map(|run| plan_view(&run.plan));
    let of_plan = || leaf_differences("plan", [&plans[0], &plans[1]], &is_of_each_agent);
    differ("the version of brunt", |run| json(&run.brunt_version))
        .or_else(|| of_plan().into_iter().next())
        .or_else(|| differ("the plan that it is a part of", |run| json(&run.part_of)))
        // Each worker draws what it would draw among all of them.
        .or_else(|| {
            differ("the seed of a part", |run| {
                json(&run.part_of.as_ref().map(|_| run.first().seeds))
            })
        })
        .or_else(|| difference(first.first(), other.first()))
        .or_else(|| {
            differ("the length of the window", |run| {
                json(&format!("{} s", run.window_ns as f64 / 1e9))
            })
        })
        .or_else(|| names_difference(first, other))
}

fn names_difference(first: &Run, other: &Run) -> Difference {
    let (ours, theirs) = (&first.names, &other.names);
    // Requests that a generator did not name are forgotten where none has a name.
    let are_named = !ours.is_empty() && !theirs.is_empty();
    if first.plan.traffic.is_generated && are_named {
        return None;
    }
    let name = |names: &[NameRecord], place: usize| match names.get(place) {
        Some(record) => format!("`{}`", record.name),
        None => "nothing".to_owned(),
    };
    let mut pairs = (0..ours.len().max(theirs.len())).map(|at| (name(ours, at), name(theirs, at)));
    let (ours, theirs) = pairs.find(|(ours, theirs)| ours != theirs)?;
    Some(("a request of the list".to_owned(), ours, theirs))
}

fn json(value: &impl Serialize) -> Value {
    serde_json::to_value(value).unwrap_or_default()
}

/// What each agent may have of its own, such as places and what it watches.
const OWN: [&str; 16] = [
    "plan.target.host",
    "plan.target.port",
    "plan.target.authority",
    "plan.target.path",
    "plan.load.halves_warmup",
    "plan.traffic.think_seed",
    "plan.traffic.sequence_offset",
    "plan.connection.source_addresses",
    "plan.workers.placement",
    "plan.workers.held_beside_bytes",
    "plan.observation.watch",
    "plan.observation.server_counter",
    "plan.observation.link_bits_per_s",
    "plan.observation.keeps_errors",
    "plan.observation.logged_requests_max",
    "plan.observation.logged_responses_max",
];

/// Whether agents may differ in this leaf of their plans.
fn is_of_each_agent(path: &str, first: &Value, other: &Value) -> bool {
    let is_amount = AMOUNTS.iter().any(|amount| path.ends_with(amount));
    OWN.contains(&path) || is_amount && first.is_number() && other.is_number()
}

/// What of a plan is compared.
fn plan_view(plan: &Plan) -> Value {
    let mut plan = plan.clone();
    // Of files each agent has its own.
    let tls = plan.tls().map(|tls| TlsSpec {
        server_name: Some(tls.name_for(&plan.target.host).to_owned()),
        roots: None,
        roots_der: Vec::new(),
        identity: None,
        ..tls.clone()
    });
    let has_identity = plan.tls().is_some_and(|tls| tls.identity.is_some());
    plan.connection.tls = TlsSpec::default();
    let mut view = json(&plan);
    let connection = &mut view["connection"];
    connection["tls"] = json(&tls);
    connection["has_identity"] = has_identity.into();
    view
}

/// Ends of the paths of amounts and seeds, which may differ where both plans have them.
const AMOUNTS: [&str; 10] = [
    ".load.connections",
    ".connections_max",
    ".connect_per_s",
    ".from_per_s",
    ".to_per_s",
    ".rate_per_s",
    ".queue_max",
    ".stop.requests",
    ".workers.count",
    ".seed",
];

/// The leaves in which two JSON values differ, but for those that may: the path of each below
/// `path`, and both values in words.
pub fn leaf_differences(
    path: &str,
    [first, other]: [&Value; 2],
    may_differ: &dyn Fn(&str, &Value, &Value) -> bool,
) -> Vec<(String, String, String)> {
    if first == other || may_differ(path, first, other) {
        return Vec::new();
    }
    match (first, other) {
        (Value::Object(ours), Value::Object(theirs)) if variant(first) == variant(other) => {
            let theirs = theirs.keys().filter(|field| !ours.contains_key(*field));
            let of_field = |field: &String| {
                let path = format!("{path}.{field}");
                let path = path.trim_start_matches('.');
                leaf_differences(path, [&first[field], &other[field]], may_differ)
            };
            ours.keys().chain(theirs).flat_map(of_field).collect()
        }
        (Value::Array(ours), Value::Array(theirs)) if ours.len() == theirs.len() => {
            let pairs = ours.iter().zip(theirs);
            pairs
                .flat_map(|(first, other)| leaf_differences(path, [first, other], may_differ))
                .collect()
        }
        _ => whole_difference(path, first, other).into_iter().collect(),
    }
}

/// The name of the variant where the value is one of an enumeration, or looks like it.
fn variant(value: &Value) -> Option<&String> {
    let fields = value.as_object().filter(|fields| fields.len() == 1)?;
    fields.keys().next()
}

fn whole_difference(what: &str, first: &Value, other: &Value) -> Difference {
    if first == other {
        return None;
    }
    let (ours, theirs) = (shown(what, first), shown(what, other));
    let (ours, theirs) = if ours == theirs {
        // What has many parts is not spelt out.
        ("set in one way".to_owned(), "in another way".to_owned())
    } else {
        (ours, theirs)
    };
    Some((what.to_owned(), ours, theirs))
}

/// A value for people.
fn shown(field: &str, value: &Value) -> String {
    match (value, value.as_u64(), variant(value)) {
        (Value::Null, ..) => "not given".to_owned(),
        (_, Some(ns), _) if field.ends_with("_ns") => format!("{} s", ns as f64 / 1e9),
        (Value::String(text), ..) => text.clone(),
        (Value::Array(all), ..) => format!("{} of them", all.len()),
        (.., Some(name)) => name.clone(),
        (Value::Object(_), ..) => "given".to_owned(),
        _ => value.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn values_that_differ_are_given_as_people_write_them() {
        for (first, other, field, ours, theirs) in [
            (
                json!({"duration_ns": 4_000_000_000_u64, "x": 0}),
                json!({"duration_ns": 1, "x": 0}),
                "plan.duration_ns",
                "4 s",
                "0.000000001 s",
            ),
            (json!([null]), json!([3]), "plan", "not given", "3"),
            (json!([1]), json!([1, 2]), "plan", "1 of them", "2 of them"),
            (json!("on"), json!({"at": 3}), "plan", "on", "at"),
            (json!({"a": {}}), json!({"b": {}}), "plan", "a", "b"),
            (
                json!({"seed": null, "x": 0}),
                json!({"seed": 3, "x": 0}),
                "plan.seed",
                "not given",
                "3",
            ),
        ] {
            let found = leaf_differences("plan", [&first, &other], &is_of_each_agent);
            let [field, ours, theirs] = [field, ours, theirs].map(str::to_owned);
            assert_eq!(found, [(field, ours, theirs)]);
        }
        let parts = |seed| json!({"seed": seed, "x": 0});
        let seeds = [&parts(1), &parts(2)];
        assert_eq!(leaf_differences("plan", seeds, &is_of_each_agent), []);
        let whole = whole_difference("plan", &parts(1), &parts(2)).expect("they differ");
        assert_eq!(whole.1, "set in one way");
        let none = whole_difference("plan", &parts(1), &Value::Null).expect("they differ");
        assert_eq!((&*none.1, &*none.2), ("given", "not given"));
    }
}
