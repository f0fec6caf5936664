//! A3 to A5: figures are exact where they say so, and of one population each.

use brunt_record::{Population, StatusCounts, counted};

use super::outcome::{Checked, Problems};
use super::sums::{self, sum};
use crate::facts::Facts;
use crate::units::exact::time;
use crate::units::plural;

/// A3. The recorder keeps minimum, maximum and sum apart from the buckets: they must fit them.
pub(super) fn extremes_exact(facts: &Facts<'_>) -> Checked {
    let mut problems = Problems::default();
    let mut words = Vec::new();
    for (of, histogram) in facts.histograms() {
        let (Some(min_ns), Some(max_ns)) = (histogram.min_ns(), histogram.max_ns()) else {
            words.push(format!("{of}: none"));
            continue;
        };
        words.push(format!("{of}: {} to {}", time(min_ns), time(max_ns)));
        problems.expect(histogram.extremes_agree(), || {
            let (lowest_ns, highest_ns) = (histogram.buckets().min(), histogram.buckets().max());
            format!(
                "{of}: {min_ns} to {max_ns} ns, sum {} ns; buckets {lowest_ns} to {highest_ns} ns",
                histogram.sum_ns()
            )
        });
    }
    problems.or_held(words.join("; "))
}

/// A4.
pub(super) fn histograms_merged(facts: &Facts<'_>) -> Checked {
    let mut problems = Problems::default();
    sums::check("A4", facts, &mut problems);
    if !facts.run.names.is_empty() {
        names_add_up(facts, &mut problems);
    }
    let held = sum(facts.latencies().map(|(_, it)| it.count()));
    problems.or_held(format!(
        "{} and {} to connect, of {}",
        counted(held as u64, "latency", "latencies"),
        plural(facts.run.latencies.connect.count(), "time"),
        plural(facts.workers().count(), "worker")
    ))
}

/// The figures by name are those of the run.
fn names_add_up(facts: &Facts<'_>, problems: &mut Problems) {
    let run = facts.run;
    let mut of_names = Population::default();
    for name in &run.names {
        of_names.merge(&name.population);
    }
    let of_workers = facts.summary.population;
    problems.expect(of_names == of_workers, || {
        format!("the names had {of_names:?}, and the workers {of_workers:?}")
    });
    let by_name = sum(run.names.iter().map(|name| name.requests_sent));
    let sent = facts.summary.lifetime.requests_sent;
    problems.expect(by_name == u128::from(sent), || {
        let by_name = plural(by_name, "request");
        format!("{by_name} sent by name, {sent} in all")
    });
    let responses = sum(run.names.iter().map(|name| name.response.count()));
    let successes = u128::from(run.latencies.response.count());
    // A generator may name its first request when others had responses.
    let is_part = responses == successes || run.is_generated() && responses < successes;
    problems.expect(is_part, || {
        let responses = plural(responses, "response time");
        format!("{responses} of successes by name, {successes} in all")
    });
}

/// A5. Each histogram holds replies of its own kind, from the start of the window on: all of
/// them, but for those to requests that warm-up left in flight.
pub(super) fn populations_apart(facts: &Facts<'_>) -> Checked {
    let latencies = &facts.run.latencies;
    let mut problems = Problems::default();
    let left_by_warmup = facts.left_by_warmup();
    let since = |of: fn(&StatusCounts) -> u64| {
        facts.sum(|worker| {
            let (window, after) = (&worker.tallies.measure, &worker.tallies.after);
            of(&window.replies).saturating_add(of(&after.replies))
        })
    };
    let successes = (&latencies.response, since(StatusCounts::successes));
    let errors = (&latencies.response_error, since(StatusCounts::errors));
    for (words, (histogram, replies)) in [("successes", successes), ("error replies", errors)] {
        let count = u128::from(histogram.count());
        let fits = count <= replies && replies - count <= left_by_warmup;
        problems.expect(fits, || {
            format!(
                "latencies of {words}: {count}, such replies since the window began: {replies}, \
                 requests left by warm-up: {left_by_warmup}"
            )
        });
    }
    let window = &facts.summary.window;
    let failures = sum(window.failures.iter().map(|(_, count)| count));
    problems.or_held(format!(
        "in the window: {} (the headline), {}, {}, {}",
        counted(window.replies.successes(), "success", "successes"),
        counted(window.replies.errors(), "error reply", "error replies"),
        plural(failures, "failure"),
        plural(window.sends(), "attempt"),
    ))
}
