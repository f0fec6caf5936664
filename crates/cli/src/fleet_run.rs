//! One run from what the agents of a fleet measured.

use anyhow::{Context, Result};
use brunt_fleet::{AgentResult, Outcome};
use brunt_judge::{Finding, InvariantStatus, Judged, Quantile, ResponseQuantiles};
use brunt_record::{AgreedClock, FleetAgent, LostAgent, Run};

/// The run of all; agents whose results do not belong to it are among the lost ones.
pub(crate) fn merged(outcome: &Outcome) -> Result<Run> {
    let mut lost: Vec<LostAgent> = outcome
        .lost
        .iter()
        .map(|agent| {
            let workers = agent.part.workers();
            LostAgent {
                name: agent.name.clone(),
                first_worker: workers.start,
                workers: workers.end - workers.start,
                reason: agent.reason.clone(),
                at_ns: agent.at_ns,
            }
        })
        .collect();
    let runs = outcome.results.iter().map(completed);
    let runs: Vec<Run> = runs.collect::<Result<_>>()?;
    let window_ns = common_window_ns(&runs);
    let (runs, others): (Vec<Run>, Vec<Run>) =
        runs.into_iter().partition(|run| run.window_ns == window_ns);
    for other in others {
        let numbers = other.worker_numbers();
        lost.push(LostAgent {
            name: name_of(&other),
            first_worker: numbers.first().copied().unwrap_or(0),
            workers: numbers.len() as u32,
            reason: format!(
                "measured a window of {:.3} s, the others one of {:.3} s",
                other.window_ns as f64 / 1e9,
                window_ns as f64 / 1e9
            ),
            at_ns: other.window_ns.cast_signed(),
        });
    }
    let mut run = Run::merge(runs).context("what the agents measured is not one run")?;
    run.lost_agents = lost;
    Ok(run)
}

/// The length of window that most runs have.
fn common_window_ns(runs: &[Run]) -> u64 {
    let count = |ns: u64| runs.iter().filter(|run| run.window_ns == ns).count();
    let lengths = runs.iter().map(|run| run.window_ns);
    lengths.max_by_key(|&ns| (count(ns), ns)).unwrap_or(0)
}

fn name_of(run: &Run) -> String {
    let fleet = run.first().fleet.as_ref();
    fleet.map(|fleet| fleet.name.clone()).unwrap_or_default()
}

/// The run of one agent, with what the coordinator knows of it.
fn completed(result: &AgentResult) -> Result<Run> {
    let AgentResult {
        name,
        bytes,
        clocks,
    } = result;
    let read = brunt_report::read(&mut bytes.as_slice());
    let mut run = read.with_context(|| format!("the result of agent {name} cannot be read"))?;
    let clock = clocks.map(|clocks| AgreedClock {
        start_skew_ns: clocks.start_skew_ns,
        start_bound_ns: clocks.start_bound_ns,
        end_skew_ns: clocks.end_skew_ns,
        end_bound_ns: clocks.end_bound_ns,
        exchanges: clocks.exchanges,
        round_trip_ns_min: clocks.round_trip_ns_min,
    });
    let judged = Judged::of(&run);
    let verdict = judged.judgement.verdict.name().to_owned();
    let is_broken = |finding: &&Finding| finding.status == InvariantStatus::Broken;
    let broken = judged.findings.iter().filter(is_broken);
    let broken = broken.map(|finding| finding.id.to_owned()).collect();
    let response_p99_ns = match run.response_quantile(0.99) {
        Quantile::Known { ns, .. } => Some(ns),
        _ => None,
    };
    let parts = run.latencies.split.mean();
    let own_share = parts.map(|parts| parts.own_ns() / parts.response_ns());
    if let Some(agent) = run.agents.first_mut() {
        agent.fleet = Some(FleetAgent {
            name: name.clone(),
            clock,
            response_p99_ns,
            own_share: own_share.filter(|share| share.is_finite()),
            verdict,
            broken,
        });
    }
    Ok(run)
}
