//! L1, L2, L6 and L7: the load that was asked for was put on, arrivals came as planned, and
//! overload is reported.

use brunt_load::{ArrivalProcess, Schedule};
use brunt_record::{FailureKind, StageRecord, after_ns};

use crate::facts::Facts;
use crate::invariants::sums::sum;
use crate::invariants::windows::WAKE_UP_NS;
use crate::invariants::{CheckOutcome, Checked, Problems, must, only_if, sums};
use crate::units::exact::{percent, time};
use crate::units::plural;

/// Share of the connections asked for that must be open on average.
const LIVE_LEAST: f64 = 0.99;
/// How far a timer may be off, beside 1 % of its length.
const TIMER_NS: u64 = 10_000_000;

/// L1. Whoever replaces connections by plan has fewer of them open; so has a client whose server
/// closes or refuses them. The first is what was asked for; the second is the server's doing, and
/// flagged: while a connection is being opened, and while the pause after an attempt that failed
/// lasts, brunt does what it can. What is missing beside that is brunt's fault.
pub(super) fn connections_held(facts: &Facts<'_>) -> Checked {
    let (run, live) = (facts.run, &facts.summary.live);
    let asked = facts.agent().share.connections;
    only_if(!facts.no_window(), "there is no window")?;
    sums::add_up("L1", facts)?;
    let window_ns = facts.run.window_ns as f64;
    let needed = f64::from(asked) * LIVE_LEAST;
    let mean = live.connection_ns as f64 / window_ns;
    let (min, max) = (live.min, live.max);
    let open = format!("open: {mean:.2} on average, {min} at least, {max} at most");
    let by_plan = format!("connections come and go by plan, at most {asked} at once; {open}");
    only_if(!facts.is_sessions(), &by_plan)?;
    let share = percent(mean / f64::from(asked.max(1)));
    let connections = plural(asked, "connection");
    let words = format!("{connections} asked for; {open} ({share})");
    let are_kept = run.plan.keepalive() && run.plan.requests_per_connection().is_none();
    let replaced = format!("connections are replaced by plan; {words}");
    only_if(are_kept, &replaced)?;
    // Users whose connection ended think by plan before they open the next one, and an open loop
    // opens none that no request needs.
    let missing = live.missing;
    let unasked_ns = missing.thinking_ns.saturating_add(missing.unneeded_ns);
    let unasked = unasked_ns as f64 / window_ns;
    if mean + unasked >= needed {
        return Ok(CheckOutcome::held(words));
    }
    let opened = facts.summary.window.connections_opened;
    if facts.ended_by_count() {
        // Connections idle or close as the count runs out: only never having had them counts.
        let were_tried = missing.retrying_ns > 0 || missing.opening_ns > 0;
        let had_few = f64::from(live.max) < needed;
        only_if(had_few, &format!("the count ran out; {words}"))?;
        let why = if were_tried {
            "they were not to be had"
        } else {
            must(facts.summary.window.replies.total() == 0, &words)?;
            "nothing was answered"
        };
        return Ok(CheckOutcome::flagged(format!("{why}; {words}")));
    }
    let [opening, retrying] =
        [missing.opening_ns, missing.retrying_ns].map(|ns| ns as f64 / window_ns);
    let words = format!(
        "{words}; {opened} were opened anew, {opening:.2} on average were being opened, \
         {retrying:.2} waited for the next attempt"
    );
    // A worker that wakes up late opens late.
    let late = f64::from(asked) * WAKE_UP_NS as f64 / window_ns;
    let accounted = mean + opening + retrying + unasked + late;
    must(accounted >= needed, &words)?;
    Ok(CheckOutcome::flagged(words))
}

/// L7. In an open loop the time runs from the planned instant. That a timed-out request is not also
/// answered is W6's sum; here: not more often than requests went unanswered, not before its time,
/// and no answer after it.
pub(super) fn timeouts_once(facts: &Facts<'_>) -> Checked {
    let timeout_ns = facts.run.plan.limits.timeout_ns;
    let slack_ns = TIMER_NS.max(timeout_ns / 100);
    let of = time(timeout_ns);
    sums::add_up("L7", facts)?;
    let mut problems = Problems::default();
    let with_edges = facts.agents.iter().flat_map(|agent| {
        let workers = agent.workers.iter();
        workers.map(|worker| (worker, &agent.clock.edges))
    });
    for (worker, edges) in with_edges {
        let (number, lifetime) = (worker.worker, worker.tallies.lifetime());
        let count = lifetime.failures.get(FailureKind::TimedOut);
        let timed_out = plural(count, "time-out");
        let first = if facts.is_open() {
            edges.warmup_start
        } else {
            worker.first_send
        };
        if let (Some(first_ns), Some(end_ns)) = (first.get(), edges.drain_end.get()) {
            let lasted_ns = after_ns(first_ns, end_ns);
            let is_due = lasted_ns >= timeout_ns.saturating_sub(slack_ns);
            problems.expect(count == 0 || is_due, || {
                let lasted = time(lasted_ns);
                format!("worker {number}: {timed_out} of {of} in {lasted}")
            });
        }
    }
    for (words, histogram) in facts.latencies() {
        let max_ns = histogram.max_ns().unwrap_or(0);
        problems.expect(max_ns <= timeout_ns.saturating_add(slack_ns), || {
            format!("{words}: {} recorded, the time-out is {of}", time(max_ns))
        });
    }
    problems.none()?;
    let count = facts.summary.lifetime.failures.get(FailureKind::TimedOut);
    let (timed_out, longest) = (plural(count, "time-out"), time(facts.longest_ns()));
    let words = format!("{timed_out} of {of}; longest latency {longest}");
    let is_over = facts.longest_ns() > timeout_ns;
    Ok(CheckOutcome::held_or_flagged(is_over, words))
}

/// How far a Poisson count may be from its mean, in standard deviations.
const DEVIATIONS_MOST: f64 = 6.0;

/// L2.
pub(super) fn plan_accounted(facts: &Facts<'_>) -> Checked {
    let run = facts.run;
    let mut words = sums::add_up("L2", facts)?;
    let schedule = run.plan.load.model.schedule();
    let none = || CheckOutcome::not_applicable("a closed loop plans no arrivals");
    let schedule = schedule.ok_or_else(none)?;
    stages_add_up(facts, schedule)?;
    // A count, a signal or what makes the requests ends a plan early.
    let stop = run.plan.load.stop;
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
        must(is_on_plan, &words)?;
    }
    Ok(CheckOutcome::held(words))
}

/// The stages together are the window.
fn stages_add_up(facts: &Facts<'_>, schedule: &Schedule) -> Result<(), CheckOutcome> {
    let stages = &facts.run.latencies.stages;
    if stages.is_empty() {
        return Ok(());
    }
    let (recorded, planned) = (stages.len(), schedule.stages().len());
    let words = format!("{recorded} stages recorded, {planned} planned");
    must(recorded == planned, &words)?;
    let mut sum = StageRecord::default();
    for stage in stages {
        sum.arrivals.merge(&stage.arrivals);
        sum.population.merge(&stage.population);
    }
    let (arrivals, population) = (facts.summary.arrivals, facts.summary.population);
    let is_all = sum.arrivals == arrivals && sum.population == population;
    must(is_all, "the stages do not add up to the window")
}

/// L6. Not a fault of the run, but its quantiles are what the duration made them.
pub(super) fn overload_reported(facts: &Facts<'_>) -> Checked {
    let is_planned = facts.run.plan.load.model.schedule().is_some();
    only_if(is_planned, "a closed loop waits for the server")?;
    let held = || CheckOutcome::held("what waited did not grow in number");
    let overload = facts.overload.ok_or_else(held)?;
    let per_s = overload.capacity_per_s;
    let mut words = format!("overloaded: about {per_s:.1} per second were answered");
    if let Some(growth_ns) = overload.growth_ns_per_s {
        let growth = time(growth_ns as u64);
        words = format!("{words}, latency grows by {growth} per second");
    }
    let words = format!("{words}; quantiles depend on the duration");
    Ok(CheckOutcome::flagged(words))
}

#[cfg(test)]
mod tests {
    use super::*;
    use brunt_load::Stage;
    use brunt_record::{ArrivalCounts, Population, Run};

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
        let faults: [Fault; 4] = [
            |stages| stages[0].arrivals.waited += 1,
            |stages| stages[1].population.failed += 1,
            |stages| stages[1].population.recorded = 0,
            |stages| stages.push(StageRecord::default()),
        ];
        for (number, fault) in faults.into_iter().enumerate() {
            let mut run = staged_run();
            fault(&mut run.latencies.stages);
            let (status, detail) = plan(&run);
            assert_eq!(status, InvariantStatus::Broken, "{number}: {detail}");
            assert!(detail.contains("stages"), "{number}: {detail}");
        }
    }
}
