//! One run from what the agents of a fleet measured.

use std::collections::BTreeMap;

use anyhow::{Context, Result, bail};
use brunt_io::tls_config;
use brunt_judge::{Finding, InvariantStatus, Judged, ResponseQuantiles};
use brunt_load::{Part, Plan};
use brunt_record::{AgentRecord, FleetAgent, LostAgent, Run};

use crate::{AgentResult, Outcome};

/// Results that are read before they are merged.
const BATCH: usize = 16;

/// The run of all, who were given parts of `plan`; agents whose windows were not that of the others
/// are among the lost ones.
///
/// # Errors
///
/// What was measured is not one run, or not what was assigned.
pub fn merged(plan: &Plan, outcome: &Outcome) -> Result<Run> {
    let mut lost = outcome.lost.clone();
    let mut sums = by_window(plan, &outcome.results)?;
    // That of most agents is the window of all.
    sums.sort_by_key(|run| (run.agents.len(), run.window_ns));
    let mut run = sums.pop().context("there is no result of any agent")?;
    for other in &sums {
        let agents = other.agents.iter();
        lost.extend(agents.map(|agent| astray(agent, other.window_ns, run.window_ns)));
    }
    run.lost_agents = lost;
    Ok(run)
}

/// An agent whose window was not that of the others.
fn astray(agent: &AgentRecord, own_ns: u64, common_ns: u64) -> LostAgent {
    let numbers = agent.workers.iter().map(|worker| worker.worker);
    let fleet = agent.fleet.as_ref();
    LostAgent {
        name: fleet.map(|fleet| fleet.name.clone()).unwrap_or_default(),
        first_worker: numbers.min().unwrap_or(0),
        workers: agent.workers.len() as u32,
        reason: format!(
            "measured a window of {:.3} s, the others one of {:.3} s",
            own_ns as f64 / 1e9,
            common_ns as f64 / 1e9
        ),
        at_ns: own_ns.cast_signed(),
    }
}

/// What agents measured, merged where their windows have one length. Few are in memory at once: a
/// run that is read takes twenty times the space of its result.
fn by_window(plan: &Plan, results: &[AgentResult]) -> Result<Vec<Run>> {
    let assigned = as_stored(plan)?;
    let mut sums: Vec<Run> = Vec::new();
    for batch in results.chunks(BATCH) {
        let mut alike: BTreeMap<u64, Vec<Run>> = BTreeMap::new();
        for run in sums
            .drain(..)
            .map(Ok)
            .chain(batch.iter().map(|result| completed(&assigned, result)))
        {
            let run = run?;
            alike.entry(run.window_ns).or_default().push(run);
        }
        let merged: Result<_, _> = alike.into_values().map(Run::merge).collect();
        sums = merged.context("what the agents measured is not one run")?;
    }
    Ok(sums)
}

/// A plan as runs of it have it.
fn as_stored(plan: &Plan) -> Result<Plan> {
    let mut plan = plan.clone();
    tls_config::read_files(&mut plan.connection.tls)?;
    let text = serde_json::to_vec(&plan.without_secrets())?;
    Ok(serde_json::from_slice(&text)?)
}

/// Whether a run is that part of the plan that was assigned, and nothing else.
fn is_assigned_part(assigned: &Plan, part: Part, run: &Run) -> bool {
    let workers = part.workers();
    let is_whole = workers.len() == assigned.workers.count.get() as usize;
    let amounts = (!is_whole).then(|| assigned.amounts());
    // That something beside it made the requests is known when the load begins.
    let mut measured = run.plan.clone();
    measured.traffic.is_generated = assigned.traffic.is_generated;
    run.agents.len() == 1
        && run.worker_numbers() == workers.clone().collect::<Vec<u32>>()
        && run.part_of == amounts
        && assigned.part(workers).is_some_and(|own| own == measured)
}

/// The run of one agent, with what the coordinator knows of it.
fn completed(assigned: &Plan, result: &AgentResult) -> Result<Run> {
    let AgentResult {
        name,
        part,
        bytes,
        clocks,
    } = result;
    let read = brunt_report::read(&mut bytes.as_slice());
    let mut run = read.with_context(|| format!("the result of agent {name} cannot be read"))?;
    if !is_assigned_part(assigned, *part, &run) {
        bail!("agent {name} measured another load than that which it was given");
    }
    let judged = Judged::of(&run);
    let verdict = judged.judgement.verdict.name().to_owned();
    let is_broken = |finding: &&Finding| finding.status == InvariantStatus::Broken;
    let broken = judged.findings.iter().filter(is_broken);
    let broken = broken.map(|finding| finding.id.to_owned()).collect();
    let response_p99_ns = run.response_quantile(0.99).known_ns();
    let own_share = run.latencies.split.mean().and_then(|mean| mean.own_share());
    if let Some(agent) = run.agents.first_mut() {
        agent.fleet = Some(FleetAgent {
            name: name.clone(),
            clock: *clocks,
            response_p99_ns,
            own_share,
            verdict,
            broken,
        });
    }
    Ok(run)
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU32;

    use brunt_load::Target;

    use super::*;

    const RUN: &[u8] = include_bytes!("../../report/tests/golden/complete.json");

    #[test]
    fn what_was_measured_of_another_plan_or_by_other_workers_was_not_dealt() {
        let mut run = brunt_report::read(&mut &*RUN).expect("a run");
        let amounts = run.part_of.as_ref().expect("it is a part");
        let assigned = run.plan.with_amounts(amounts).expect("a plan");
        let own = Part::new(0, NonZeroU32::MIN);
        // That run has every field, also those that no plan gives to one of its parts.
        run.plan = assigned.part(own.workers()).expect("a part");
        run.part_of = Some(assigned.amounts());
        let mut elsewhere = assigned.clone();
        elsewhere.target = Target::parse("http://elsewhere/", None).expect("a URL");
        let mut longer = assigned.clone();
        longer.load.warmup_ns += 1;
        for (plan, part, expected) in [
            (&assigned, own, true),
            (&assigned, Part::new(1, NonZeroU32::MIN), false),
            (&run.plan, own, false),
            (&elsewhere, own, false),
            (&longer, own, false),
        ] {
            assert_eq!(is_assigned_part(plan, part, &run), expected, "{part:?}");
        }
    }
}
