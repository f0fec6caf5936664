//! A3 to A5: figures are exact where they say so, and of one population each.

use brunt_record::{Population, counted};

use super::facts::{Facts, sum};
use super::outcome::{Outcome, Problems, time};

/// A3. The recorder keeps minimum, maximum and sum apart from the buckets: they must fit them.
pub(super) fn extremes_exact(facts: &Facts<'_>) -> Outcome {
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
pub(super) fn histograms_merged(facts: &Facts<'_>) -> Outcome {
    let run = facts.run;
    let mut problems = Problems::default();
    let held = sum([
        run.latencies.response.count(),
        run.latencies.response_error.count(),
    ]);
    let recorded = sum(facts.workers().map(|worker| worker.population.recorded));
    problems.expect(held == recorded, || {
        let held = counted(held as u64, "latency", "latencies");
        format!("{held} in the histograms, {recorded} recorded by the workers")
    });
    let (connects, opened) = (
        run.latencies.connect.count(),
        facts.summary.lifetime.connections_opened,
    );
    problems.expect(connects == opened, || {
        let connects = counted(connects, "time", "times");
        let opened = counted(opened, "connection", "connections");
        format!("{connects} to connect in the histogram, {opened} opened")
    });
    let successes = run.latencies.response.count();
    let services = run.latencies.service.count();
    // From the send, both are the same.
    let services_due = if facts.is_open() { successes } else { 0 };
    problems.expect(services == services_due, || {
        let services = counted(services, "service time", "service times");
        format!("{services} of {successes} successful, {services_due} due")
    });
    let over_time = run.latencies.intervals.count();
    problems.expect(over_time == successes, || {
        let successes = counted(successes, "response time", "response times");
        format!("{successes} of successes, over time {over_time}")
    });
    if !run.names.is_empty() {
        names_add_up(facts, &mut problems);
    }
    problems.or_held(format!(
        "{} and {} to connect, of {}",
        counted(held as u64, "latency", "latencies"),
        counted(connects, "time", "times"),
        counted(facts.workers().count() as u64, "worker", "workers")
    ))
}

/// The figures by name are those of the run.
fn names_add_up(facts: &Facts<'_>, problems: &mut Problems) {
    let run = facts.run;
    let mut of_names = Population::default();
    for name in &run.names {
        of_names.merge(&name.population());
    }
    let mut of_workers = Population::default();
    for worker in facts.workers() {
        of_workers.merge(&worker.population);
    }
    problems.expect(of_names == of_workers, || {
        format!("the names had {of_names:?}, and the workers {of_workers:?}")
    });
    let by_name = sum(run.names.iter().map(|name| name.requests_sent));
    let sent = facts.summary.lifetime.requests_sent;
    problems.expect(by_name == u128::from(sent), || {
        let by_name = counted(by_name as u64, "request", "requests");
        format!("{by_name} sent by name, {sent} in all")
    });
    let responses = sum(run.names.iter().map(|name| name.response.count()));
    let successes = run.latencies.response.count();
    // A generator may name its first request when others had responses.
    let successes = u128::from(successes);
    let is_part = responses == successes || run.is_generated() && responses < successes;
    problems.expect(is_part, || {
        let responses = counted(responses as u64, "response time", "response times");
        format!("{responses} of successes by name, {successes} in all")
    });
}

/// A5. Each histogram holds replies of its own kind, from the start of the window on: all of
/// them, but for those to requests that warm-up left in flight.
pub(super) fn populations_apart(facts: &Facts<'_>) -> Outcome {
    let run = facts.run;
    let mut problems = Problems::default();
    let left_by_warmup = sum(facts.workers().map(|worker| facts.left_by_warmup(worker)));
    let kinds = [
        (
            "successes",
            run.latencies.response.count(),
            sum(facts.workers().flat_map(|worker| {
                let tallies = &worker.tallies;
                [
                    tallies.measure.replies.successes(),
                    tallies.after.replies.successes(),
                ]
            })),
        ),
        (
            "error replies",
            run.latencies.response_error.count(),
            sum(facts.workers().flat_map(|worker| {
                let tallies = &worker.tallies;
                [
                    tallies.measure.replies.errors(),
                    tallies.after.replies.errors(),
                ]
            })),
        ),
    ];
    for (words, latencies, replies) in kinds {
        let latencies = u128::from(latencies);
        problems.expect(
            latencies <= replies && replies - latencies <= left_by_warmup,
            || {
                format!(
                    "latencies of {words}: {latencies}, such replies since the window began: \
                 {replies}, requests left by warm-up: {left_by_warmup}"
                )
            },
        );
    }
    let window = &facts.summary.window;
    problems.or_held(format!(
        "in the window: {} (the headline), {}, {}, {}",
        counted(window.replies.successes(), "success", "successes"),
        counted(window.replies.errors(), "error reply", "error replies"),
        counted(
            sum(window.failures.iter().map(|(_, count)| count)) as u64,
            "failure",
            "failures"
        ),
        counted(window.sends(), "attempt", "attempts"),
    ))
}
