//! W1 to W4, W7, W8: clocks, phases and windows.

use brunt_record::{Backend, Once, after_ns, counted};

use super::facts::Facts;
use super::outcome::{Outcome, Problems, percent, time};

/// A wall clock that moved further than this against the monotonic one was set.
const STEP_FLAGGED_NS: u64 = 1_000_000_000;
/// Overlap of the workers' windows, as a share of the longest, below which the run is refused.
pub(super) const OVERLAP_BROKEN: f64 = 0.99;
/// Overlap of the workers' windows, as a share of the longest, below which the run is flagged.
pub(super) const OVERLAP_FLAGGED: f64 = 0.999;
/// How late an idle machine's scheduler may wake a thread. Events belong to the window by their
/// time stamps, so a loss under this harms no figure, and in a short run it says nothing.
pub(super) const WAKE_UP_NS: u64 = 10_000_000;
/// What the phases may miss of the process's time.
const TIME_UNREPORTED_NS: u64 = 10_000_000;
/// An end later than this is flagged, and one later than 0.1 % of the duration.
const END_LATE_NS: u64 = 10_000_000;
const END_LATE_SHARE: f64 = 0.001;
/// How far drain may overrun its limit.
const DRAIN_OVERRUN_NS: u64 = 100_000_000;

/// W1.
pub(super) fn one_clock(facts: &Facts<'_>) -> Outcome {
    let agent = facts.agent();
    let mut problems = Problems::default();
    for worker in facts.workers() {
        let (number, edges) = (worker.worker, &worker.edges);
        let orders: [(&str, &[Once]); 4] = [
            (
                "start, ready, window",
                &[
                    edges.started,
                    edges.ready,
                    edges.window_start,
                    edges.window_end,
                ],
            ),
            // A run by count ends with the last reply of all workers: this one may be done before.
            (
                "ready, drained, end of the run",
                &[edges.ready, edges.drained, agent.clock.edges.finished],
            ),
            (
                "start of set-up, start",
                &[agent.clock.edges.setup_start, edges.started],
            ),
            ("start, first send", &[edges.started, worker.first_send]),
        ];
        for (words, order) in orders {
            problems.expect(in_order(order), || {
                format!(
                    "worker {number}: not in order: {words} ({})",
                    instants(order)
                )
            });
        }
    }
    if let Some(broken) = problems.broken() {
        return broken;
    }
    let step_ns = agent.clock.stepped_ns;
    let words = format!(
        "instants of {} in order; wall clock moved {} against the monotonic clock",
        counted(agent.workers.len() as u64, "worker", "workers"),
        instant(step_ns),
    );
    if step_ns.unsigned_abs() > STEP_FLAGGED_NS {
        Outcome::flagged(format!(
            "{words}: it was set; only the date of the run is affected"
        ))
    } else {
        Outcome::held(words)
    }
}

/// W2.
pub(super) fn phases_in_order(facts: &Facts<'_>) -> Outcome {
    let edges = &facts.agent().clock.edges;
    if facts.interrupted() && facts.no_window() {
        return Outcome::not_applicable("interrupted before the window");
    }
    let order = [
        ("start of set-up", edges.setup_start),
        ("start of warm-up", edges.warmup_start),
        ("start of measure", edges.measure_start),
        ("end of measure", edges.measure_end),
        ("end of drain", edges.drain_end),
        ("end of the run", edges.finished),
    ];
    let mut problems = Problems::default();
    for (words, edge) in order {
        problems.expect(edge.get().is_some(), || format!("no {words}"));
    }
    let order = order.map(|(_, edge)| edge);
    problems.expect(in_order(&order), || {
        format!("edges of the phases not in order ({})", instants(&order))
    });
    for (words, at_ns, edge) in [
        ("starts", 0, edges.measure_start),
        ("ends", facts.window_end_ns(), edges.measure_end),
    ] {
        if let Some(edge_ns) = edge.get() {
            problems.expect(at_ns == edge_ns, || {
                format!(
                    "the window {words} at {}, measure at {}",
                    instant(at_ns),
                    instant(edge_ns)
                )
            });
        }
    }
    problems.expect(!facts.no_window(), || {
        "the measure phase has no length".to_owned()
    });
    for worker in facts.workers() {
        let sent_before = worker.tallies.before.requests_sent;
        let first_before = worker.first_send.get().is_some_and(|first_ns| first_ns < 0);
        problems.expect((sent_before > 0) == first_before, || {
            format!(
                "worker {}: {} counted before the window, but its first was sent {}",
                worker.worker,
                counted(sent_before, "request", "requests"),
                if first_before { "before it" } else { "in it" },
            )
        });
    }
    problems.or_held(format!(
        "edges at {}; rates are counts in a window of {}",
        instants(&order),
        time(facts.window_ns())
    ))
}

/// W3.
pub(super) fn edges_written_once(facts: &Facts<'_>) -> Outcome {
    let edges = &facts.agent().clock.edges;
    let mut problems = Problems::default();
    let of_run = [
        ("start of set-up", edges.setup_start),
        ("start of warm-up", edges.warmup_start),
        ("start of measure", edges.measure_start),
        ("end of measure", edges.measure_end),
        ("planned end of measure", edges.measure_end_planned),
        ("end of drain", edges.drain_end),
        ("end of the run", edges.finished),
    ];
    for (words, edge) in of_run {
        problems.expect(edge.rewrites() == 0, || {
            format!(
                "{words}: written {} more",
                counted(edge.rewrites().into(), "time", "times")
            )
        });
    }
    for worker in facts.workers() {
        let edges = &worker.edges;
        let of_worker = [
            ("start", edges.started),
            ("ready", edges.ready),
            ("start of its window", edges.window_start),
            ("end of its window", edges.window_end),
            ("drained", edges.drained),
            ("first send", worker.first_send),
        ];
        for (words, edge) in of_worker {
            problems.expect(edge.rewrites() == 0, || {
                format!(
                    "worker {}, {words}: written {} more",
                    worker.worker,
                    counted(edge.rewrites().into(), "time", "times")
                )
            });
        }
    }
    problems.or_held("no edge was written twice")
}

/// W4.
pub(super) fn common_window(facts: &Facts<'_>) -> Outcome {
    if facts.interrupted() && facts.no_window() {
        return Outcome::not_applicable("interrupted before the window");
    }
    let mut problems = Problems::default();
    problems.expect(facts.workers().next().is_some(), || {
        "no worker reported".to_owned()
    });
    let common_end = facts.window_end_ns();
    let (mut latest_start, mut earliest_end) = (0, common_end);
    let (mut earliest_start, mut latest_end) = (0, common_end);
    let mut longest_ns = facts.window_ns();
    for worker in facts.workers() {
        let edges = (
            worker.edges.window_start.get(),
            worker.edges.window_end.get(),
        );
        let (Some(start_ns), Some(end_ns)) = edges else {
            problems.expect(false, || format!("worker {} had no window", worker.worker));
            continue;
        };
        latest_start = latest_start.max(start_ns);
        earliest_end = earliest_end.min(end_ns);
        earliest_start = earliest_start.min(start_ns);
        latest_end = latest_end.max(end_ns);
        longest_ns = longest_ns.max(after_ns(start_ns, end_ns));
    }
    let overlap_ns = after_ns(latest_start, earliest_end);
    let outside_ns = after_ns(earliest_start, 0).max(after_ns(common_end, latest_end));
    let lost_ns = (longest_ns - overlap_ns.min(longest_ns)).max(outside_ns);
    let shared = 1.0 - lost_ns as f64 / longest_ns.max(1) as f64;
    let words = format!(
        "the workers measured together for {} of a window of {} ({}), the longest for {}, and at \
         most {} outside of it",
        time(overlap_ns),
        time(facts.window_ns()),
        percent(shared),
        time(longest_ns),
        time(outside_ns),
    );
    problems.expect(shared >= OVERLAP_BROKEN || lost_ns <= WAKE_UP_NS, || {
        words.clone()
    });
    match problems.broken() {
        Some(broken) => broken,
        None if shared < OVERLAP_FLAGGED => Outcome::flagged(words),
        None => Outcome::held(words),
    }
}

/// W7.
pub(super) fn all_time_reported(facts: &Facts<'_>) -> Outcome {
    let clock = &facts.agent().clock;
    let edges = &clock.edges;
    if facts.agent().backend == Backend::Sim {
        return Outcome::not_applicable("simulated time is not the process's time");
    }
    let names = [
        "start-up", "set-up", "warm-up", "measure", "drain", "merging",
    ];
    let ends = [
        edges.setup_start,
        edges.warmup_start,
        edges.measure_start,
        edges.measure_end,
        edges.drain_end,
        edges.finished,
    ];
    // A run that was interrupted early lacks edges: the phase before a missing one reaches on.
    let (mut from_ns, mut sum_ns, mut words) = (clock.process_start_ns, 0_u64, Vec::new());
    for (name, end) in names.into_iter().zip(ends) {
        if let Some(end_ns) = end.get() {
            let length_ns = after_ns(from_ns, end_ns);
            words.push(format!("{name} {}", time(length_ns)));
            sum_ns = sum_ns.saturating_add(length_ns);
            from_ns = end_ns;
        }
    }
    let process_ns = clock.process_ns;
    let words = format!(
        "{} make {} of the process's {}",
        words.join(", "),
        time(sum_ns),
        time(process_ns)
    );
    if sum_ns.abs_diff(process_ns) > TIME_UNREPORTED_NS {
        Outcome::broken(words)
    } else {
        Outcome::held(words)
    }
}

/// W8.
pub(super) fn ends_on_time(facts: &Facts<'_>) -> Outcome {
    let (run, edges) = (facts.run, &facts.agent().clock.edges);
    if facts.ended_by_count() {
        return Outcome::not_applicable("a run by count ends with its last reply");
    }
    let (Some(end_ns), Some(drain_end_ns)) = (edges.measure_end.get(), edges.drain_end.get())
    else {
        return Outcome::not_applicable("the run has no end of measure or of drain");
    };
    let drain_ns = after_ns(end_ns, drain_end_ns);
    let limit_ns = run.plan.drain_limit_ns;
    let drain = format!(
        "drain took {} of at most {}",
        time(drain_ns),
        time(limit_ns)
    );
    if drain_ns > limit_ns.saturating_add(DRAIN_OVERRUN_NS) {
        return Outcome::broken(drain);
    }
    if facts.interrupted() {
        return Outcome::held(format!("interrupted; {drain}"));
    }
    let Some(planned_ns) = edges.measure_end_planned.get() else {
        return Outcome::broken(format!("a run by duration has no planned end; {drain}"));
    };
    let off_ns = end_ns.abs_diff(planned_ns);
    let duration_ns = run.plan.stop.duration_ns.unwrap_or(facts.window_ns());
    let words = format!(
        "measure ended {} {} its planned end; {drain}",
        time(off_ns),
        if end_ns < planned_ns {
            "before"
        } else {
            "after"
        },
    );
    if off_ns > END_LATE_NS || off_ns as f64 > duration_ns as f64 * END_LATE_SHARE {
        Outcome::flagged(words)
    } else {
        Outcome::held(words)
    }
}

/// Whether those that were written do not decrease.
fn in_order(edges: &[Once]) -> bool {
    edges.iter().filter_map(|edge| edge.get()).is_sorted()
}

/// An instant in words.
fn instant(ns: i64) -> String {
    let sign = if ns < 0 { "-" } else { "" };
    format!("{sign}{}", time(ns.unsigned_abs()))
}

fn instants(edges: &[Once]) -> String {
    let words: Vec<_> = edges
        .iter()
        .map(|edge| edge.get().map_or("none".to_owned(), instant))
        .collect();
    words.join(", ")
}
