//! W1, W2, W4, W7, W8: clocks, phases and windows.

use brunt_record::{Backend, Once, after_ns};

use crate::facts::Facts;
use crate::invariants::{CheckOutcome, Checked, Problems, known, must, only_if};
use crate::units::exact::{percent, time};
use crate::units::plural;

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

/// The edges of the phases in their order, and the phase that each ends.
fn edges_of(facts: &Facts<'_>) -> [(&'static str, &'static str, Once); 6] {
    let edges = &facts.agent().clock.edges;
    [
        ("start of set-up", "start-up", edges.setup_start),
        ("start of warm-up", "set-up", edges.warmup_start),
        ("start of measure", "warm-up", edges.measure_start),
        ("end of measure", "measure", edges.measure_end),
        ("end of drain", "drain", edges.drain_end),
        ("end of the run", "merging", edges.finished),
    ]
}

/// W1.
pub(super) fn one_clock(facts: &Facts<'_>) -> Checked {
    let clock = &facts.agent().clock;
    let (setup_start, finished) = (clock.edges.setup_start, clock.edges.finished);
    let mut problems = Problems::default();
    for worker in facts.workers() {
        let number = worker.worker;
        let edges = &worker.edges;
        let (started, ready) = (edges.started, edges.ready);
        let lived = [
            setup_start,
            started,
            ready,
            edges.window_start,
            edges.window_end,
        ];
        // A run by count ends with the last reply of all workers: this one may be done before.
        let ended = [ready, edges.drained, finished];
        let sent = [started, worker.first_send];
        for (words, order) in [
            ("start of set-up, start, ready, window", &lived[..]),
            ("ready, drained, end of the run", &ended),
            ("start, first send", &sent),
        ] {
            problems.expect(in_order(order), || {
                format!("worker {number}: not in order: {words}")
            });
        }
    }
    problems.none()?;
    let words = format!(
        "instants of {} in order; wall clock moved {} against the monotonic clock",
        plural(facts.workers().count(), "worker"),
        instant(clock.stepped_ns),
    );
    if clock.stepped_ns.unsigned_abs() > STEP_FLAGGED_NS {
        return Ok(CheckOutcome::flagged(format!(
            "{words}: it was set; only the date of the run is affected"
        )));
    }
    Ok(CheckOutcome::held(words))
}

/// W2.
pub(super) fn phases_in_order(facts: &Facts<'_>) -> Checked {
    let before = facts.interrupted() && facts.no_window();
    only_if(!before, "interrupted before the window")?;
    let mut problems = Problems::default();
    for (words, _, edge) in edges_of(facts) {
        problems.expect(edge.get().is_some(), || format!("no {words}"));
    }
    let order = edges_of(facts).map(|(.., edge)| edge);
    problems.expect(in_order(&order), || {
        "edges of the phases not in order".to_owned()
    });
    let edges = &facts.agent().clock.edges;
    for (words, at_ns, edge) in [
        ("starts", 0, edges.measure_start),
        ("ends", facts.window_end_ns(), edges.measure_end),
    ] {
        let edge_ns = edge.get().unwrap_or(at_ns);
        problems.expect(at_ns == edge_ns, || {
            let [window, measure] = [at_ns, edge_ns].map(instant);
            format!("the window {words} at {window}, measure at {measure}")
        });
    }
    problems.expect(!facts.no_window(), || {
        "the measure phase has no length".to_owned()
    });
    for worker in facts.workers() {
        let sent_before = worker.tallies.before.requests_sent;
        let first_before = worker.first_send.get().is_some_and(|first_ns| first_ns < 0);
        problems.expect((sent_before > 0) == first_before, || {
            format!(
                "worker {}: {} counted before the window, but its first was sent {} it",
                worker.worker,
                plural(sent_before, "request"),
                if first_before { "before" } else { "in" },
            )
        });
    }
    let window = time(facts.run.window_ns);
    problems.or_held(format!("rates are counts in a window of {window}"))
}

/// W4.
pub(super) fn common_window(facts: &Facts<'_>) -> Checked {
    let before = facts.interrupted() && facts.no_window();
    only_if(!before, "interrupted before the window")?;
    let mut problems = Problems::default();
    problems.expect(facts.workers().next().is_some(), || {
        "no worker reported".to_owned()
    });
    let common_end = facts.window_end_ns();
    let (mut latest_start, mut earliest_end) = (0, common_end);
    let (mut earliest_start, mut latest_end) = (0, common_end);
    let mut longest_ns = facts.run.window_ns;
    for worker in facts.workers() {
        let edges = &worker.edges;
        let (Some(start_ns), Some(end_ns)) = (edges.window_start.get(), edges.window_end.get())
        else {
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
    let [together, window] = [overlap_ns, facts.run.window_ns].map(time);
    let share = percent(shared);
    let words = format!("all workers measured at once for {together} of {window} ({share})");
    problems.none()?;
    must(shared >= OVERLAP_BROKEN || lost_ns <= WAKE_UP_NS, &words)?;
    Ok(CheckOutcome::held_or_flagged(
        shared < OVERLAP_FLAGGED,
        words,
    ))
}

/// W7.
pub(super) fn all_time_reported(facts: &Facts<'_>) -> Checked {
    let clock = &facts.agent().clock;
    let is_real = facts.agent().backend != Backend::Sim;
    only_if(is_real, "simulated time is not the process's time")?;
    // A run that was interrupted early lacks edges: the phase before a missing one reaches on.
    let (mut from_ns, mut sum_ns, mut words) = (clock.process_start_ns, 0_u64, Vec::new());
    for (_, phase, end) in edges_of(facts) {
        if let Some(end_ns) = end.get() {
            let length_ns = after_ns(from_ns, end_ns);
            words.push(format!("{phase} {}", time(length_ns)));
            sum_ns = sum_ns.saturating_add(length_ns);
            from_ns = end_ns;
        }
    }
    let process_ns = clock.process_ns;
    let (phases, [sum, all]) = (words.join(", "), [sum_ns, process_ns].map(time));
    let words = format!("{phases} make {sum} of the process's {all}");
    let is_all = sum_ns.abs_diff(process_ns) <= TIME_UNREPORTED_NS;
    must(is_all, &words)?;
    Ok(CheckOutcome::held(words))
}

/// W8.
pub(super) fn ends_on_time(facts: &Facts<'_>) -> Checked {
    let (run, edges) = (facts.run, &facts.agent().clock.edges);
    let by_count = "a run by count ends with its last reply";
    only_if(!facts.ended_by_count(), by_count)?;
    let ends = edges.measure_end.get().zip(edges.drain_end.get());
    let without = "the run has no end of measure or of drain";
    let (end_ns, drain_end_ns) = known(ends, without)?;
    let drain_ns = after_ns(end_ns, drain_end_ns);
    let limit_ns = run.plan.load.drain_limit_ns;
    let [took, limit] = [drain_ns, limit_ns].map(time);
    let drain = format!("drain took {took} of at most {limit}");
    let most_ns = limit_ns.saturating_add(DRAIN_OVERRUN_NS);
    must(drain_ns <= most_ns, &drain)?;
    if facts.interrupted() {
        return Ok(CheckOutcome::held(format!("interrupted; {drain}")));
    }
    let unplanned =
        || CheckOutcome::broken(format!("a run by duration has no planned end; {drain}"));
    let planned_ns = edges.measure_end_planned.get().ok_or_else(unplanned)?;
    let off_ns = end_ns.abs_diff(planned_ns);
    let duration_ns = run
        .plan
        .load
        .stop
        .duration_ns
        .unwrap_or(facts.run.window_ns);
    let off = time(off_ns);
    let words = format!("the window ended {off} from its planned end; {drain}");
    let is_late = off_ns > END_LATE_NS || off_ns as f64 > duration_ns as f64 * END_LATE_SHARE;
    Ok(CheckOutcome::held_or_flagged(is_late, words))
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
