//! L2, L5 and L6: arrivals as planned, requests without an end, overload.

use brunt_load::{ArrivalProcess, Schedule};
use brunt_record::{ArrivalCounts, FailureKind, StageRecord};

use super::outcome::{Checked, Outcome, Problems, only_if};
use super::sums::{self, sum};
use crate::facts::Facts;
use crate::units::exact::time;
use crate::units::plural;
use crate::{Quantile, ResponseQuantiles};

/// How far a Poisson count may be from its mean, in standard deviations.
const DEVIATIONS_MOST: f64 = 6.0;
/// The quantiles that reports print.
const QUANTILES: [f64; 6] = [0.5, 0.9, 0.95, 0.99, 0.999, 0.9999];

/// L2.
pub(super) fn plan_accounted(facts: &Facts<'_>) -> Checked {
    let (run, summary) = (facts.run, &facts.summary);
    let mut problems = Problems::default();
    sums::check("L2", facts, &mut problems);
    for worker in facts.workers() {
        let number = facts.number(worker);
        let (window, all) = (&worker.arrivals, &worker.arrivals_all);
        for (counts, when) in [(window, "in the window"), (all, "in all")] {
            let (sent, waited) = (counts.sent, counts.waited);
            let by_end = counts.sent_by_end.unwrap_or(0);
            problems.expect(by_end <= sent && waited <= sent, || {
                format!(
                    "worker {number}, {when}: {by_end} sent by the end of the window and {waited} \
                     waited, of {sent} sent"
                )
            });
        }
        let pairs = fields(window).into_iter().zip(fields(all));
        problems.expect(pairs.into_iter().all(|(window, all)| window <= all), || {
            format!("worker {number}: more arrivals in the window than in all phases")
        });
    }
    let arrivals = &summary.arrivals;
    let Some(schedule) = run.plan.model.schedule() else {
        let planned = summary.arrivals_all.planned;
        problems.expect(planned == 0, || {
            format!("{planned} arrivals in a closed loop")
        });
        problems.none()?;
        let words = "a closed loop plans no arrivals";
        return Err(Outcome::not_applicable(words));
    };
    if facts.is_sessions() {
        let opened = summary.lifetime.connections_opened;
        let sent = summary.arrivals_all.sent;
        let used = run.generator_use().and_then(|(used, _)| used.sessions);
        let again = used.map_or(0, |sessions| sessions.reconnected);
        problems.expect(opened <= sent.saturating_add(again), || {
            let opened = plural(opened, "connection");
            let sent = plural(sent, "arrival");
            format!("{opened} opened, of {sent} and {again} more for sessions")
        });
    }
    stages_add_up(facts, schedule, &mut problems);
    let mut words = format!(
        "{} planned = {} sent + {} skipped for a full queue + {} skipped for waiting + {} unsent",
        arrivals.planned,
        arrivals.sent,
        arrivals.skipped_full,
        arrivals.skipped_late,
        arrivals.unsent
    );
    // A count, a signal or what makes the requests ends a plan early.
    let stop = run.plan.stop;
    let is_whole = stop.requests.is_none() && stop.duration_ns.is_some();
    if is_whole && !facts.interrupted() && !facts.no_window() {
        let expected = run.expected_arrivals().unwrap_or(0.0);
        words = format!("{words}; the schedule has {expected:.1}");
        let is_on_plan = facts.agents.iter().all(|agent| {
            // Agents that have the same seed are off by chance in the same direction.
            let planned = sum(agent.workers.iter().map(|worker| worker.arrivals.planned));
            let expected = agent.expected_arrivals.unwrap_or(0.0);
            let mut tolerance = f64::from(agent.share.workers) + 1.0;
            if schedule.process() == ArrivalProcess::Poisson {
                tolerance += DEVIATIONS_MOST * expected.max(0.0).sqrt();
            }
            (planned as f64 - expected).abs() <= tolerance
        });
        problems.expect(is_on_plan, || words.clone());
    }
    problems.or_held(words)
}

/// The stages together are the window.
fn stages_add_up(facts: &Facts<'_>, schedule: &Schedule, problems: &mut Problems) {
    let stages = &facts.run.latencies.stages;
    if stages.is_empty() {
        return;
    }
    let (recorded, planned) = (stages.len(), schedule.stages().len());
    problems.expect(recorded == planned, || {
        format!("{recorded} stages recorded, {planned} planned")
    });
    let mut sum = StageRecord::default();
    for stage in stages {
        sum.arrivals.merge(&stage.arrivals);
        sum.population.merge(&stage.population);
    }
    let (arrivals, population) = (facts.summary.arrivals, facts.summary.population);
    problems.expect(sum.arrivals == arrivals, || {
        let (stages, window) = (fields(&sum.arrivals), fields(&arrivals));
        format!("arrivals of the stages {stages:?}, of the window {window:?}")
    });
    problems.expect(sum.population == population, || {
        let (stages, window) = (sum.population, population);
        format!("requests of the stages {stages:?}, of the window {window:?}")
    });
}

fn fields(counts: &ArrivalCounts) -> [u64; 7] {
    let [sent, full, late, unsent] = sums::outcomes(counts);
    let by_end = counts.sent_by_end.unwrap_or(0);
    let (planned, waited) = (counts.planned, counts.waited);
    [planned, sent, waited, by_end, full, late, unsent]
}

/// L5. The time-outs among the unfinished are what the other counts leave: as many as failed at
/// most, and all but those of requests that warm-up left at least. Where requests count from
/// their send, those of warm-up that outlasted the window are among the unfinished.
pub(super) fn unfinished_counted(facts: &Facts<'_>) -> Checked {
    let (run, summary) = (facts.run, &facts.summary);
    let unfinished = run.latencies.unfinished.count();
    let never_sent = if facts.is_open() {
        facts.never_sent()
    } else {
        0
    };
    // With a schedule of requests, those of warm-up are no part of the plan's.
    let outlasted = if facts.is_open() || facts.no_window() {
        0
    } else {
        summary.carried_in.unanswered
    };
    let censored = summary.population.censored;
    let others = sum([censored, outlasted]) + never_sent;
    let timed_out_since: u128 = facts.sum(|worker| {
        let (window, after) = (&worker.tallies.measure, &worker.tallies.after);
        let timed_out = window.failures.get(FailureKind::TimedOut);
        timed_out.saturating_add(after.failures.get(FailureKind::TimedOut))
    });
    let most = timed_out_since.min(summary.population.failed.into());
    let least = timed_out_since.saturating_sub(facts.left_by_warmup());
    let is_counted = (others + least..=others + most).contains(&u128::from(unfinished));
    let timed_out = plural(timed_out_since, "time-out");
    let words = format!(
        "{unfinished} without an end: {censored} censored, {never_sent} never sent, {outlasted} in \
         flight throughout, the rest timed out ({timed_out} since the window began)"
    );
    let mut problems = Problems::default();
    problems.expect(is_counted, || words.clone());
    let bounds = QUANTILES
        .into_iter()
        .filter_map(|q| match run.response_quantile(q) {
            Quantile::AtLeast { ns } => Some(format!("p{} at least {}", q * 100.0, time(ns))),
            Quantile::Known { .. } | Quantile::TooFew { .. } => None,
        });
    let bounds = bounds.collect::<Vec<_>>().join(", ");
    problems.or_held(if bounds.is_empty() {
        words
    } else {
        format!("{words}; {bounds}")
    })
}

/// L6. Not a fault of the run, but its quantiles are what the duration made them.
pub(super) fn overload_told(facts: &Facts<'_>) -> Checked {
    let is_planned = facts.run.plan.model.schedule().is_some();
    only_if(is_planned, "a closed loop waits for the server")?;
    let Some(overload) = &facts.overload else {
        return Ok(Outcome::held("what waited did not grow in number"));
    };
    let per_s = overload.capacity_per_s;
    let mut words = format!("overloaded: about {per_s:.1} per second were answered");
    if let Some(growth_ns) = overload.growth_ns_per_s {
        let growth = time(growth_ns as u64);
        words = format!("{words}, latency grows by {growth} per second");
    }
    let words = format!("{words}; quantiles depend on the duration");
    Ok(Outcome::flagged(words))
}

#[cfg(test)]
mod tests {
    use brunt_load::Stage;
    use brunt_record::{ArrivalCounts, Population, Run, StageRecord};

    use crate::invariants::sample::{open_run, set_stages};
    use crate::{InvariantStatus, RunFigures, check};

    /// An open loop of two stages, all but one of its requests in the first.
    fn staged_run() -> Run {
        let mut run = open_run();
        let (mut first, mut second) = (StageRecord::default(), StageRecord::default());
        second.arrivals = ArrivalCounts {
            planned: 1,
            sent: 1,
            sent_by_end: Some(1),
            ..ArrivalCounts::default()
        };
        second.population = Population {
            issued: 1,
            recorded: 1,
            ..Population::default()
        };
        let summary = run.summary();
        (first.arrivals, first.population) = (summary.arrivals, summary.population);
        first.arrivals.planned -= 1;
        first.arrivals.sent -= 1;
        first.arrivals.sent_by_end = first.arrivals.sent_by_end.map(|by_end| by_end - 1);
        first.population.issued -= 1;
        first.population.recorded -= 1;
        run.latencies.stages = vec![first, second];
        let stage = Stage {
            duration_ns: 1_000_000_000,
            from_per_s: 2_000.0,
            to_per_s: 2_000.0,
        };
        set_stages(&mut run, vec![stage; 2]);
        run
    }

    /// What the invariant of the plan says.
    fn plan(run: &Run) -> (InvariantStatus, String) {
        let findings = check(run);
        let found = findings.into_iter().find(|finding| finding.id == "L2");
        let finding = found.expect("it is checked");
        (finding.status, finding.detail)
    }

    #[test]
    fn stages_are_the_window() {
        assert_eq!(plan(&staged_run()).0, InvariantStatus::Held);
        type Fault = fn(&mut Vec<StageRecord>);
        let faults: [(Fault, &str); 4] = [
            (
                |stages| stages[0].arrivals.waited += 1,
                "arrivals of the stages",
            ),
            (
                |stages| stages[1].population.failed += 1,
                "requests of the stages",
            ),
            (
                |stages| stages[1].population.recorded = 0,
                "requests of the stages",
            ),
            (
                |stages| stages.push(StageRecord::default()),
                "3 stages recorded, 2 planned",
            ),
        ];
        for (fault, words) in faults {
            let mut run = staged_run();
            fault(&mut run.latencies.stages);
            let (status, detail) = plan(&run);
            assert_eq!(status, InvariantStatus::Broken, "{words}: {detail}");
            assert!(detail.contains(words), "{detail}");
        }
    }
}
