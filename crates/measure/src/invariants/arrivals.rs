//! L2, L5 and L6: arrivals as planned, requests without an end, overload.

use super::facts::{Facts, sum};
use super::outcome::{Outcome, Problems, time};
use crate::{ArrivalCounts, FailureKind, Quantile};

/// How far a Poisson count may be from its mean, in standard deviations.
const DEVIATIONS_MOST: f64 = 6.0;

/// L2.
pub(super) fn plan_accounted(facts: &Facts<'_>) -> Outcome {
    let (run, summary) = (facts.run, &facts.summary);
    let mut problems = Problems::default();
    for worker in &run.workers {
        let number = worker.worker;
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
    let Some(schedule) = run.load.model.schedule() else {
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
        problems.expect(opened <= sent, || {
            format!("{opened} connections opened, of {sent} arrivals")
        });
    }
    let planned = arrivals.planned as f64;
    let mut words = format!(
        "{} planned = {} sent + {} skipped for a full queue + {} skipped for waiting + {} unsent",
        arrivals.planned,
        arrivals.sent,
        arrivals.skipped_full,
        arrivals.skipped_late,
        arrivals.unsent
    );
    // A count or a signal ends a plan early.
    if run.load.requests.is_none() && !run.interrupted && !facts.no_window() {
        let expected = schedule.expected;
        let mut tolerance = f64::from(run.load.workers) + 1.0;
        if schedule.process == "poisson" {
            tolerance += DEVIATIONS_MOST * expected.max(0.0).sqrt();
        }
        words = format!("{words}; the schedule has {expected:.1}");
        problems.expect((planned - expected).abs() <= tolerance, || words.clone());
    }
    problems.or_held(words)
}

fn fields(counts: &ArrivalCounts) -> [u64; 6] {
    let ArrivalCounts {
        planned,
        sent,
        waited,
        skipped_full,
        skipped_late,
        unsent,
    } = *counts;
    [planned, sent, waited, skipped_full, skipped_late, unsent]
}

fn add_up(counts: &ArrivalCounts, whose: &str, problems: &mut Problems) {
    let [planned, sent, waited, full, late, unsent] = fields(counts);
    problems.expect(
        sum([sent, full, late, unsent]) == u128::from(planned),
        || {
            format!(
                "{whose}: {planned} planned, but {sent} sent, {full} and {late} skipped, {unsent} \
             unsent"
            )
        },
    );
    problems.expect(waited <= sent, || {
        format!("{whose}: {waited} waited, {sent} sent")
    });
}

/// L5. The time-outs among the unfinished are what the other counts leave: as many as failed at
/// most, and all but those of requests that warm-up left at least.
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
    let others = sum([summary.population.censored]) + never_sent;
    let timed_out_since = sum(run.workers.iter().flat_map(|worker| {
        let tallies = &worker.tallies;
        [&tallies.measure, &tallies.after].map(|tally| tally.failures.get(FailureKind::TimedOut))
    }));
    let left_by_warmup = sum(run
        .workers
        .iter()
        .map(|worker| facts.left_by_warmup(worker)));
    let most = timed_out_since.min(summary.population.failed.into());
    let least = timed_out_since.saturating_sub(left_by_warmup);
    let counted = (others + least..=others + most).contains(&u128::from(unfinished));
    let words = format!(
        "{unfinished} without an end: {} censored, {never_sent} never sent, the rest timed out \
         ({timed_out_since} time-outs since the window began)",
        summary.population.censored
    );
    problems.expect(counted, || words.clone());
    let samples = unfinished.saturating_add(run.latencies.response.count());
    let share = unfinished as f64 / samples.max(1) as f64;
    let mut at_least = Vec::new();
    for quantile in facts.response_quantiles() {
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
    if facts.run.load.model.schedule().is_none() {
        return Outcome::not_applicable("a closed loop waits for the server");
    }
    let Some(overload) = &facts.overload else {
        return Outcome::held("what waited did not grow in number");
    };
    let mut words = format!(
        "overloaded: capacity about {:.1} per second",
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
