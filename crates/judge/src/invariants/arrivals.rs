//! L2, L5 and L6: arrivals as planned, requests without an end, overload.

use brunt_load::{ArrivalProcess, Schedule};
use brunt_record::{ArrivalCounts, FailureKind, StageRecord, counted};

use super::facts::{Facts, sum};
use super::outcome::{Outcome, Problems, time};
use crate::Quantile;

/// How far a Poisson count may be from its mean, in standard deviations.
const DEVIATIONS_MOST: f64 = 6.0;

/// L2.
pub(super) fn plan_accounted(facts: &Facts<'_>) -> Outcome {
    let (run, summary) = (facts.run, &facts.summary);
    let mut problems = Problems::default();
    for worker in facts.workers() {
        let number = facts.number(worker);
        let (window, all) = (&worker.arrivals, &worker.arrivals_all);
        add_up(window, &format!("worker {number}, window"), &mut problems);
        add_up(all, &format!("worker {number}, all phases"), &mut problems);
        let pairs = fields(window).into_iter().zip(fields(all));
        problems.expect(pairs.into_iter().all(|(window, all)| window <= all), || {
            format!("worker {number}: more arrivals in the window than in all phases")
        });
    }
    let arrivals = &summary.arrivals;
    add_up(arrivals, "all workers", &mut problems);
    let Some(schedule) = run.plan.model.schedule() else {
        let planned = summary.arrivals_all.planned;
        problems.expect(planned == 0, || {
            format!("{planned} arrivals in a closed loop")
        });
        return problems
            .broken()
            .unwrap_or_else(|| Outcome::not_applicable("a closed loop plans no arrivals"));
    };
    if facts.is_sessions() {
        let (opened, sent) = (
            summary.lifetime.connections_opened,
            summary.arrivals_all.sent,
        );
        let used = run.generator_use().and_then(|(used, _)| used.sessions);
        let again = used.map_or(0, |sessions| sessions.reconnected);
        problems.expect(opened <= sent.saturating_add(again), || {
            let opened = counted(opened, "connection", "connections");
            let sent = counted(sent, "arrival", "arrivals");
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
        let mut on_plan = true;
        for agent in facts.agents {
            // Agents that have the same seed are off by chance in the same direction.
            let planned = sum(agent.workers.iter().map(|worker| worker.arrivals.planned));
            let expected = agent.expected_arrivals.unwrap_or(0.0);
            let mut tolerance = f64::from(agent.share.workers) + 1.0;
            if schedule.process() == ArrivalProcess::Poisson {
                tolerance += DEVIATIONS_MOST * expected.max(0.0).sqrt();
            }
            on_plan &= (planned as f64 - expected).abs() <= tolerance;
        }
        problems.expect(on_plan, || words.clone());
    }
    problems.or_held(words)
}

/// The stages together are the window.
fn stages_add_up(facts: &Facts<'_>, schedule: &Schedule, problems: &mut Problems) {
    let stages = &facts.run.latencies.stages;
    if stages.is_empty() {
        return;
    }
    problems.expect(stages.len() == schedule.stages().len(), || {
        let (recorded, planned) = (stages.len(), schedule.stages().len());
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
    let ArrivalCounts {
        planned,
        sent,
        waited,
        sent_by_end,
        skipped_full,
        skipped_late,
        unsent,
    } = *counts;
    let by_end = sent_by_end.unwrap_or(0);
    [
        planned,
        sent,
        waited,
        by_end,
        skipped_full,
        skipped_late,
        unsent,
    ]
}

fn add_up(counts: &ArrivalCounts, whose: &str, problems: &mut Problems) {
    let [planned, sent, waited, by_end, full, late, unsent] = fields(counts);
    problems.expect(
        sum([sent, full, late, unsent]) == u128::from(planned),
        || {
            format!(
                "{whose}: {planned} planned, but {sent} sent, {full} and {late} skipped, {unsent} \
             unsent"
            )
        },
    );
    problems.expect(by_end <= sent, || {
        format!("{whose}: {by_end} sent by the end of the window, {sent} in all")
    });
    problems.expect(waited <= sent, || {
        format!("{whose}: {waited} waited, {sent} sent")
    });
}

/// L5. The time-outs among the unfinished are what the other counts leave: as many as failed at
/// most, and all but those of requests that warm-up left at least. Where requests count from
/// their send, those of warm-up that outlasted the window are among the unfinished.
pub(super) fn unfinished_counted(facts: &Facts<'_>) -> Outcome {
    let (run, summary) = (facts.run, &facts.summary);
    let mut problems = Problems::default();
    let unfinished = run.latencies.unfinished.count();
    let never_sent = if facts.is_open() {
        let ArrivalCounts {
            skipped_full,
            skipped_late,
            unsent,
            ..
        } = summary.arrivals;
        sum([skipped_full, skipped_late, unsent])
    } else {
        0
    };
    // With a schedule of requests, those of warm-up are no part of the plan's.
    let outlasted = if facts.is_open() || facts.no_window() {
        0
    } else {
        summary.carried_in.unanswered
    };
    let others = sum([summary.population.censored, outlasted]) + never_sent;
    let timed_out_since = sum(facts.workers().flat_map(|worker| {
        let tallies = &worker.tallies;
        [&tallies.measure, &tallies.after].map(|tally| tally.failures.get(FailureKind::TimedOut))
    }));
    let left_by_warmup = sum(facts.workers().map(|worker| facts.left_by_warmup(worker)));
    let most = timed_out_since.min(summary.population.failed.into());
    let least = timed_out_since.saturating_sub(left_by_warmup);
    let is_counted = (others + least..=others + most).contains(&u128::from(unfinished));
    let words = format!(
        "{unfinished} without an end: {} censored, {never_sent} never sent, {outlasted} in flight \
         throughout, the rest timed out ({} since the window began)",
        summary.population.censored,
        counted(timed_out_since as u64, "time-out", "time-outs")
    );
    problems.expect(is_counted, || words.clone());
    let samples = unfinished.saturating_add(run.latencies.response.count());
    let share = unfinished as f64 / samples.max(1) as f64;
    let mut at_least = Vec::new();
    for quantile in &facts.quantiles {
        let p = quantile.q * 100.0;
        match quantile.printed {
            Quantile::Known { ns, .. } => problems.expect(share <= 1.0 - quantile.q, || {
                format!("p{p} is said to be {}; {words}", time(ns))
            }),
            Quantile::AtLeast { ns } => {
                problems.expect(unfinished > 0, || {
                    format!("p{p} is not known, though every request ended")
                });
                at_least.push(format!("p{p} at least {}", time(ns)));
            }
            Quantile::TooFew { .. } => {}
        }
    }
    let words = match at_least.as_slice() {
        [] => words,
        at_least => format!("{words}; {}", at_least.join(", ")),
    };
    problems.or_held(words)
}

/// L6. Not a fault of the run, but its quantiles are what the duration made them.
pub(super) fn overload_told(facts: &Facts<'_>) -> Outcome {
    if facts.run.plan.model.schedule().is_none() {
        return Outcome::not_applicable("a closed loop waits for the server");
    }
    let Some(overload) = &facts.overload else {
        return Outcome::held("what waited did not grow in number");
    };
    let mut words = format!(
        "overloaded: about {:.1} per second were answered",
        overload.capacity_per_s
    );
    if let Some(growth_ns) = overload.growth_ns_per_s {
        words = format!(
            "{words}, latency grows by {} per second",
            time(growth_ns as u64)
        );
    }
    Outcome::flagged(format!("{words}; quantiles depend on the duration"))
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
