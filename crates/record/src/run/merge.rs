//! Merging: runs of several agents at the same plan become one run, exactly.
//!
//! Counts are added, histograms bucket by bucket, series by their place relative to the window;
//! agents stand side by side. Neither order nor grouping makes a difference.

use thiserror::Error;

use super::sound::{UnsoundRun, difference};
use super::{AGENTS_MAX, AgentRecord, PlanDescription, RequestDescription, Run};
use crate::Name;
use crate::by_name::merge_alike;

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
    /// More agents than a run may have.
    #[error("{0} agents are over the limit of {AGENTS_MAX}")]
    TooManyAgents(usize),
}

impl Run {
    /// One run of all agents in `runs`, which had the same plan but for its amounts. The amounts
    /// are added up. What was asked of one of them, and the result of an experiment on one, does
    /// not hold for all, and is left out.
    ///
    /// # Errors
    ///
    /// See [`MergeError`].
    pub fn merge(runs: Vec<Self>) -> Result<Self, MergeError> {
        check(&runs)?;
        let mut runs = runs.into_iter();
        let mut merged = runs.next().ok_or(MergeError::Nothing)?;
        if runs.len() == 0 {
            return Ok(merged);
        }
        for run in runs {
            merged.latencies.merge(&run.latencies);
            merge_alike(&mut merged.names, &run.names);
            merged.agents.extend(run.agents);
        }
        merged.diagnosis = None;
        merged.objectives.clear();
        let order = |agent: &AgentRecord| (agent.clock.window_start_unix_ms, agent.id.clone());
        merged.agents.sort_by_cached_key(order);
        // Sums of rates depend on the order of the summands: it is that of the agents.
        if let Some((first, others)) = merged.agents.split_first() {
            let mut amounts = first.share.clone();
            others.iter().for_each(|agent| amounts.add(&agent.share));
            merged.plan.set_amounts(&amounts);
        }
        Ok(merged)
    }
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
    let mut ids: Vec<(&str, usize)> = runs
        .iter()
        .zip(0..)
        .flat_map(|(run, number)| run.agents.iter().map(move |agent| (&*agent.id, number)))
        .collect();
    ids.sort_unstable();
    if let Some(pair) = ids.windows(2).find(|pair| pair[0].0 == pair[1].0) {
        return Err(MergeError::SameAgent {
            first: pair[0].1,
            second: pair[1].1,
        });
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
    let agents = runs.iter().map(|run| run.agents.len()).sum();
    if agents > AGENTS_MAX {
        return Err(MergeError::TooManyAgents(agents));
    }
    Ok(())
}

type Difference = Option<(&'static str, String, String)>;

fn run_difference(first: &Run, other: &Run) -> Difference {
    let window = |run: &Run| format!("{} s", run.window_ns as f64 / 1e9);
    let names = |run: &Run| {
        run.names
            .iter()
            .map(|it| it.name.clone())
            .collect::<Vec<Name>>()
    };
    let versions = (&first.brunt_version, &other.brunt_version);
    differs("the version of brunt", versions.0, versions.1)
        .or_else(|| plan_difference(&first.plan, &other.plan))
        .or_else(|| difference(first.first(), other.first()))
        .or_else(|| {
            let differ = first.window_ns != other.window_ns;
            differ.then(|| ("the length of the window", window(first), window(other)))
        })
        .or_else(|| {
            let (ours, theirs) = (names(first), names(other));
            let place =
                (0..ours.len().max(theirs.len())).find(|&at| ours.get(at) != theirs.get(at))?;
            let name = |names: &[Name]| match names.get(place) {
                Some(name) => format!("`{name}`"),
                None => "nothing".to_owned(),
            };
            Some(("a request of the list", name(&ours), name(&theirs)))
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

/// In what two plans differ beside their amounts.
fn plan_difference(first: &PlanDescription, other: &PlanDescription) -> Difference {
    macro_rules! compare {
        ($($field:literal: $($name:ident).+),* $(,)?) => {
            None $(.or_else(|| differs($field, &first.$($name).+, &other.$($name).+)))*
        };
    }
    compare! {
        "plan.url": url,
        "plan.unix_socket": unix_socket,
        "plan.requests.list": requests.list,
        "plan.http": http,
        "plan.messages": messages,
        "plan.websocket": websocket,
        "plan.connects_only": connects_only,
        "plan.tls": tls,
        "plan.pipeline": pipeline,
        "plan.streams": streams,
        "plan.http2": http2,
        "plan.requests_per_connection": requests_per_connection,
        "plan.think": think,
        "plan.stop.duration_ns": stop.duration_ns,
        "plan.has_equal_parts": has_equal_parts,
        "plan.warmup_ns": warmup_ns,
        "plan.timeout_ns": timeout_ns,
        "plan.setup_timeout_ns": setup_timeout_ns,
        "plan.connect_timeout_ns": connect_timeout_ns,
        "plan.drain_limit_ns": drain_limit_ns,
        "plan.backend": backend,
        "plan.stamps": stamps,
        "plan.spin": spin,
        "plan.oversubscribe": oversubscribe,
        "plan.observe": observe,
    }
    .or_else(|| request_difference(&first.requests.first, &other.requests.first))
    .or_else(|| model_difference(first, other))
}

fn request_difference(
    first: &Option<RequestDescription>,
    other: &Option<RequestDescription>,
) -> Difference {
    let (Some(ours), Some(theirs)) = (first, other) else {
        return differs("plan.requests.first", first, other);
    };
    let paths = (&ours.path, &theirs.path);
    let header_names = (&ours.header_names, &theirs.header_names);
    let body_bytes = (&ours.body_bytes, &theirs.body_bytes);
    differs("plan.requests.first.method", &ours.method, &theirs.method)
        .or_else(|| differs("plan.requests.first.path", paths.0, paths.1))
        .or_else(|| {
            differs(
                "plan.requests.first.header_names",
                header_names.0,
                header_names.1,
            )
        })
        .or_else(|| differs("plan.requests.first.body_bytes", body_bytes.0, body_bytes.1))
}

fn model_difference(first: &PlanDescription, other: &PlanDescription) -> Difference {
    let (ours, theirs) = (first.amounts(), other.amounts());
    let schedules = (first.model.schedule(), other.model.schedule());
    let process =
        |at: Option<&super::ScheduleDescription>| at.map(|schedule| schedule.process.name());
    let stages = |at: Option<&super::ScheduleDescription>| {
        let stages = at.map(|schedule| schedule.stages.iter().map(|stage| stage.duration_ns));
        stages.map(Iterator::collect::<Vec<_>>)
    };
    let is_given = |given: bool| if given { "given" } else { "not given" };
    differs("plan.model.kind", &first.model.name(), &other.model.name())
        .or_else(|| {
            let field = "plan.model.schedule.process";
            differs(field, &process(schedules.0), &process(schedules.1))
        })
        .or_else(|| {
            let field = "the lengths of plan.model.schedule.stages";
            differs(field, &stages(schedules.0), &stages(schedules.1))
        })
        .or_else(|| {
            let (ours, theirs) = (ours.connect_per_s.is_some(), theirs.connect_per_s.is_some());
            differs(
                "plan.model.connect_per_s",
                &is_given(ours),
                &is_given(theirs),
            )
        })
        .or_else(|| {
            let (ours, theirs) = (ours.requests.is_some(), theirs.requests.is_some());
            differs("plan.stop.requests", &is_given(ours), &is_given(theirs))
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
            of("plan.stop.duration_ns", Some(4_000_000_000), Some(1)),
            words("4 s", "0.000000001 s")
        );
        assert_eq!(
            of("plan.requests_per_connection", None, Some(3)),
            words("not given", "3")
        );
        assert_eq!(differs("plan.pipeline", &1, &1), None);
        let parts = |mean_ns| {
            Some(crate::Amounts {
                connections: mean_ns,
                ..crate::Amounts::default()
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
