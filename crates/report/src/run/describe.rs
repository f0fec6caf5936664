//! The words of a run's report: each function gives the items of one row.

use brunt_judge::{FailureTimes, Steadiness, Summary};
use brunt_load::Framing;
use brunt_record::{AgentRecord, CarriedIn, Once, Run, RunEdges, StatusCounts, after_ns};

use crate::units::{self, counted};

/// Status codes named per class, the most frequent ones, unless all are asked for.
const CODES_MAX: usize = 5;

/// How long set-up and drain may take before they are worth a word.
const LENGTH_USUAL_NS: u64 = 1_000_000_000;

/// How long each phase took, with several agents the longest of each; `is_full`: the short ones as
/// well.
pub(super) fn phases(run: &Run, is_full: bool) -> Vec<String> {
    let length_ns = |from: fn(&RunEdges) -> Once, to: fn(&RunEdges) -> Once| {
        let agents = run.agents.iter().map(|agent| &agent.clock.edges);
        let lengths = agents.filter_map(|edges| {
            let edges = from(edges).get().zip(to(edges).get());
            edges.map(|(from, to)| after_ns(from, to))
        });
        lengths.max()
    };
    let window = units::duration(run.window_ns);
    let warm_up_ns = length_ns(|it| it.warmup_start, |it| it.measure_start);
    let mut items = vec![match warm_up_ns.filter(|&ns| ns > 0 && !is_full) {
        Some(ns) => format!("{window} after {} warm-up", units::duration(ns)),
        None => format!("{window} measured"),
    }];
    let asked_ns = run.plan.stop.duration_ns.unwrap_or(u64::MAX);
    if run.window_ns > asked_ns {
        let asked = units::duration(asked_ns);
        items.push(format!("{asked} asked for, extended under steal"));
    }
    let set_up_ns = length_ns(|it| it.setup_start, |it| it.warmup_start);
    let drain_ns = length_ns(|it| it.measure_end, |it| it.drain_end);
    let unusual = |ns: Option<u64>| ns.filter(|&ns| is_full || ns >= LENGTH_USUAL_NS);
    for (name, length) in [
        ("set-up", unusual(set_up_ns)),
        ("warm-up", warm_up_ns.filter(|_| is_full)),
        ("drain", unusual(drain_ns)),
    ] {
        items.extend(length.map(|ns| format!("{name} {}", units::duration(ns))));
    }
    items
}

/// What sets this run apart from what was asked for; `is_full`: and what changes no figure.
pub(super) fn notes(run: &Run, summary: &Summary, is_full: bool) -> Vec<String> {
    let mut notes = Vec::new();
    if run.interrupted() {
        let window = units::seconds(run.window_ns, 3);
        let measured = match (run.plan.stop.duration_ns, run.plan.stop.requests) {
            (Some(asked_ns), _) => format!("{window} of {}", units::seconds(asked_ns, 3)),
            (None, Some(asked)) => {
                let asked = counted(asked, run.unit().one, run.unit().many);
                format!("{} of {asked}", units::count(summary.population.issued))
            }
            (None, None) => window,
        };
        notes.push(format!("interrupted: the figures describe {measured}"));
    }
    for (number, agent) in (1..).zip(&run.agents) {
        for note in agent_notes(agent) {
            notes.push(if run.is_plain() {
                note
            } else {
                format!("agent {number}: {note}")
            });
        }
    }
    if is_full || run.plan.spoken.may_mistake_pushes() {
        notes.extend(misplaced_stamps(run, summary));
    }
    notes.extend(unasked(run, summary));
    notes
}

/// Messages that came unasked, as a share of the replies, from which on they are told of.
const UNASKED_SHARE: f64 = 0.01;

/// A note where so many messages came unasked that replies may end elsewhere than where `--reply`
/// says. In Redis' protocol what is sent unasked says so.
fn unasked(run: &Run, summary: &Summary) -> Option<String> {
    let framing = run.plan.spoken.reply_framing()?;
    let (pushes, replies) = (summary.window.pushes, summary.window.replies.total());
    let is_few = (pushes as f64) <= UNASKED_SHARE * replies as f64;
    if pushes == 0 || is_few || *framing == Framing::Resp || !run.plan.awaits_replies() {
        return None;
    }
    let pushes = counted(pushes, "message", "messages");
    let replies = counted(replies, "reply", "replies");
    Some(format!(
        "{pushes} came unasked beside {replies}: does --reply {framing} end a reply too early? A \
         server that answers by several parts needs another framing, as --reply resp for Redis"
    ))
}

/// A wall clock that moved by less against the monotonic one was not seen to be set: it is read in
/// milliseconds.
const STEP_SEEN_NS: u64 = 3_000_000;

/// Kernel stamps that were outside of what is possible, and what is known of why.
fn misplaced_stamps(run: &Run, summary: &Summary) -> Option<String> {
    if summary.stamps_clamped == 0 {
        return None;
    }
    let stamps = summary.stamps_clamped;
    let stamps = counted(stamps, "kernel stamp was", "kernel stamps were");
    let moved_ns = run
        .agents
        .iter()
        .map(|agent| agent.clock.stepped_ns.unsigned_abs());
    let moved_ns = moved_ns.max().unwrap_or(0);
    let mut words = format!("{stamps} out of range and moved");
    if moved_ns >= STEP_SEEN_NS {
        let by = units::duration(moved_ns);
        return Some(format!("{words}: the wall clock was set, by {by} in all"));
    }
    let is_early = summary.stamps_before_send > 0;
    if is_early {
        let before_send = units::count(summary.stamps_before_send);
        words = format!("{words}, {before_send} of them from before the send");
    }
    Some(if is_early && run.plan.spoken.may_mistake_pushes() {
        format!("{words}: what the server sends unasked was taken for replies")
    } else {
        format!("{words}; at the end of the run the wall clock was as expected")
    })
}

/// What an agent could not do as it was asked to.
fn agent_notes(agent: &AgentRecord) -> Vec<String> {
    let (backend, protocol) = (agent.backend, agent.negotiated.protocol);
    let backend_note = agent.backend_note.iter();
    let protocol_note = agent.negotiated.note.iter();
    backend_note
        .map(|reason| format!("{}: {reason}", backend.name()))
        .chain(protocol_note.map(|reason| format!("{}: {reason}", protocol.name)))
        .collect()
}

/// How the rate drifts, where it does.
pub(super) fn drift(steadiness: &Steadiness) -> Option<String> {
    if !steadiness.drifts {
        return None;
    }
    // Where the halves tell it, the trend does not say more.
    Some(match (steadiness.halves_differ, steadiness.trend) {
        (Some(share), _) => {
            let way = if share < 0.0 { "slower" } else { "faster" };
            let share = units::percent(share.abs());
            format!("the rate drifts: the second half was {share} {way} than the first")
        }
        (None, Some(share)) => {
            let share = units::percent_change(share);
            format!("the rate drifts: the trend is {share} over the window")
        }
        (None, None) => "the rate drifts".to_owned(),
    })
}

/// The replies of the window by class and code. A class with one code is told by the code.
pub(super) fn statuses(counts: &StatusCounts, is_full: bool) -> Vec<String> {
    let mut items = Vec::new();
    for class in 1..=9 {
        let mut codes: Vec<(u16, u64)> = counts
            .iter()
            .filter(|(status, _)| status / 100 == class)
            .collect();
        match codes.as_slice() {
            [] => {}
            [(status, count)] => items.push(format!("{status}: {}", units::count(*count))),
            _ => {
                let total = units::count(counts.class(class));
                let codes = code_list(&mut codes, is_full);
                items.push(format!("{class}xx: {total} ({codes})"));
            }
        }
    }
    if items.is_empty() {
        items.push("no reply in the window".to_owned());
    }
    items
}

fn code_list(codes: &mut [(u16, u64)], is_full: bool) -> String {
    let most = if is_full { usize::MAX } else { CODES_MAX };
    let named = codes.len().min(most);
    if named < codes.len() {
        codes.sort_by_key(|&(status, count)| (std::cmp::Reverse(count), status));
    }
    let mut words: Vec<String> = codes[..named]
        .iter()
        .map(|(status, count)| format!("{status}: {}", units::count(*count)))
        .collect();
    if named < codes.len() {
        let others = (codes.len() - named) as u64;
        words.push(counted(others, "other code", "other codes"));
    }
    words.join(", ")
}

/// The outcome of the requests that were in flight when the window began.
pub(super) fn carried_in(carried_in: &CarriedIn) -> Vec<String> {
    let items = [
        (carried_in.in_flight, "in flight when the window began"),
        (carried_in.answered, "answered in it"),
        (carried_in.failed, "failed"),
        (carried_in.unanswered, "unanswered at its end"),
    ];
    let items = items.map(|(count, words)| format!("{} {words}", units::count(count)));
    items.into()
}

/// The failures of all phases by kind; empty when there were none. They are named as such where
/// those of the window, or of the requests issued in it, are not the same.
pub(super) fn failures(run: &Run, summary: &Summary) -> Vec<String> {
    let all = &summary.lifetime.failures;
    let mut items: Vec<String> = all
        .iter()
        .map(|(kind, count)| format!("{}: {}", kind.label(), units::count(count)))
        .collect();
    let of_requests = all.of_requests(run.plan.connects_only());
    let is_of_window = all.iter().eq(summary.window.failures.iter());
    if !items.is_empty() && (!is_of_window || of_requests != summary.population.failed) {
        items.push("in the whole run".to_owned());
    }
    items
}

/// When requests failed, and how many of those that ended then.
pub(super) fn failure_times(times: &FailureTimes) -> [String; 2] {
    let from = units::duration(times.from_ns);
    let when = match (times.from_ns, times.until_ns.map(units::duration)) {
        (0, None) => "throughout the window".to_owned(),
        (0, Some(until)) => format!("up to {until} of the window"),
        (_, None) => format!("from {from} of the window on"),
        (_, Some(until)) => format!("from {from} to {until} of the window"),
    };
    let then = if times.is_throughout() { "" } else { " then" };
    let share = units::percent(times.share);
    [when, format!("{share} of all outcomes{then}")]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn replies(codes: &[(u16, u64)]) -> StatusCounts {
        let mut counts = StatusCounts::default();
        for &(status, count) in codes {
            for _ in 0..count {
                counts.add(status);
            }
        }
        counts
    }

    #[test]
    fn statuses_are_told_by_class_unless_one_code_says_it_all() {
        let many: Vec<(u16, u64)> = (400..407).map(|status| (status, 3)).collect();
        type Case<'a> = (&'a [(u16, u64)], bool, &'a [&'a str]);
        let cases: &[Case<'_>] = &[
            (&[], false, &["no reply in the window"]),
            (&[(200, 1_234)], false, &["200: 1,234"]),
            (&[(200, 9), (404, 2)], false, &["200: 9", "404: 2"]),
            (&[(200, 9), (204, 1)], false, &["2xx: 10 (200: 9, 204: 1)"]),
            (
                &many,
                false,
                &["4xx: 21 (400: 3, 401: 3, 402: 3, 403: 3, 404: 3, 2 other codes)"],
            ),
            (
                &many,
                true,
                &["4xx: 21 (400: 3, 401: 3, 402: 3, 403: 3, 404: 3, 405: 3, 406: 3)"],
            ),
            (&[(999, 1)], false, &["999: 1"]),
        ];
        for (codes, is_full, items) in cases {
            assert_eq!(statuses(&replies(codes), *is_full), *items, "{codes:?}");
        }
    }

    #[test]
    fn drift_is_told_by_halves_and_trend() {
        // Halves, trend, whether it drifts, and the words.
        type Case<'a> = (Option<f64>, Option<f64>, bool, Option<&'a str>);
        let cases: &[Case<'_>] = &[
            (Some(-0.2), Some(-0.3), false, None),
            (
                Some(-0.083),
                Some(-0.12),
                true,
                Some("the rate drifts: the second half was 8.3 % slower than the first"),
            ),
            (
                Some(0.04),
                None,
                true,
                Some("the rate drifts: the second half was 4.0 % faster than the first"),
            ),
            (
                None,
                Some(-0.12),
                true,
                Some("the rate drifts: the trend is -12 % over the window"),
            ),
            (None, None, true, Some("the rate drifts")),
        ];
        for &(halves_differ, trend, drifts, words) in cases {
            let steadiness = Steadiness {
                halves_differ,
                trend,
                drifts,
            };
            assert_eq!(drift(&steadiness).as_deref(), words);
        }
    }
}
