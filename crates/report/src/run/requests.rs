//! The rows of requests: their rate, what became of the schedule, of the requests and of their
//! connections' protocol, what failed, and what the server said in its errors.

use brunt_judge::{CleanFigures, FailureTimes, Figure, Judged, Summary, Verdict};
use brunt_load::LoadModel;
use brunt_record::{ErrorBody, QuicCounts, Run, StatusCounts};

use super::{counts, latency, load, verdict};
use crate::foreign::printable;
use crate::page::{Page, Tone};
use crate::units::{self, counted};

/// The rate of what the verdict rests on. Where that is a part of the window, the rate of the whole
/// window stands below; else, on a full page, that of what the hypervisor left of it.
pub(super) fn throughput(judged: &Judged<'_>, page: &mut Page) {
    let run = judged.run;
    let found = judged.judgement.verdict;
    if verdict::withheld("throughput", judged, page) {
        return;
    }
    let headline = match judged.successes_per_s() {
        Figure::Known(rate) => {
            let unit = run.unit();
            let per_s = format!("{} {}", units::rate(rate), unit.per_s);
            match found {
                Verdict::ServerFailed => {
                    let failure = judged.server_failure();
                    let is_silence = failure.is_some_and(|failure| failure.is_silence);
                    let what = if is_silence { "silence" } else { "outages" };
                    format!("{per_s} on average, {what} included")
                }
                Verdict::NoSuccess => format!("none: no {} succeeded", unit.one),
                // The precision of a lower bound says nothing about the server.
                Verdict::ClientLimited => format!("at least {per_s}"),
                _ => per_s + &latency::of_rate(judged.successes_interval(), rate),
            }
        }
        Figure::Absent(reason) => format!("not known: {reason}"),
    };
    if let Some(clean) = judged.undisturbed() {
        page.row("throughput", &[headline, part(clean)], Tone::Strong);
        let whole = judged.summary.successes_per_s.known();
        let whole = whole.map(|rate| format!("{} {}", units::rate(rate), run.unit().per_s));
        let items: Vec<String> = whole.into_iter().chain(beside_rate(judged)).collect();
        page.row("  whole", &items, Tone::Plain);
        return;
    }
    let items: Vec<String> = [headline].into_iter().chain(beside_rate(judged)).collect();
    page.row("throughput", &items, Tone::Strong);
    if let Some(clean) = clean_beside(judged).filter(|_| page.is_full()) {
        let rate = clean.successes_per_s;
        let interval = latency::of_rate(clean.successes_interval, rate);
        let per_s = format!("{} {}{interval}", units::rate(rate), run.unit().per_s);
        page.row("  no steal", &[per_s, part(clean)], Tone::Plain);
    }
}

/// What stands beside the rate of the whole window.
fn beside_rate(judged: &Judged<'_>) -> Vec<String> {
    let summary = &judged.summary;
    let window = &summary.window;
    let mut items: Vec<String> = redirects(&window.replies).into_iter().collect();
    // The attempts stand beside the headline where not all that ended was a success.
    let has_other_ends = window.replies.errors() > 0
        || window.failures.iter().next().is_some()
        || window.sent_again > 0;
    if let Some(attempts) = summary.attempts_per_s.known().filter(|_| has_other_ends) {
        items.push(format!("sent {}/s", units::rate(attempts)));
    }
    if let Some(rate) = summary.bytes_received_per_s.known() {
        items.push(format!("{} received", units::bytes_per_s(rate)));
    }
    // Where nothing succeeded, what was sent for it is not worth a line.
    let has_success = judged.judgement.verdict != Verdict::NoSuccess;
    if let Some(rate) = summary.bytes_sent_per_s.known().filter(|_| has_success) {
        items.push(format!("{} sent", units::bytes_per_s(rate)));
    }
    items
}

/// The figures of the parts of the window without CPU steal, where the verdict does not rest on
/// them. Absent where these parts are too short for figures.
pub(super) fn clean_beside<'a>(judged: &'a Judged<'_>) -> Option<&'a CleanFigures> {
    let clean = judged.clean.as_ref()?.figures.as_ref();
    clean.filter(|_| judged.undisturbed().is_none() && judged.withheld().is_none())
}

/// Which part of the window these figures are of.
fn part(clean: &CleanFigures) -> String {
    let [clean, window] = [clean.clean_ns, clean.window_ns].map(units::duration);
    format!("in {clean} of {window} without CPU steal")
}

/// The outcome of the schedule, where there is one.
pub(super) fn arrivals(judged: &Judged<'_>, page: &mut Page) {
    let Judged { run, summary, .. } = judged;
    if run.plan.load.model.schedule().is_none() {
        return;
    }
    let is_withheld = judged.withheld().is_some();
    let lost = summary.arrivals.planned > summary.arrivals.sent;
    let tone = Tone::Warning.when(lost);
    if page.is_full() || !load::all_sent(run, summary) {
        page.row("arrivals", &load::arrivals(judged, is_withheld), tone);
    }
    if let Some(overload) = judged.overload.filter(|_| !is_withheld) {
        let is_sessions = matches!(run.plan.load.model, LoadModel::Sessions { .. });
        let per_s = run.unit().per_s;
        let unit = if is_sessions { "connections/s" } else { per_s };
        let items = load::overload(&overload, unit);
        page.row("overloaded", &items, Tone::Warning);
    }
}

/// Replies that are no successes, in protocols with statuses and without.
const ERROR_STATUSES: &str = "error statuses";

const ERROR_REPLIES: &str = "error replies";

/// Requests without a reply that could be read: printed where there are none as well.
const FAILED: &str = "failed";

/// Requests that the server did not process the first time: of those beside them.
const SENT_AGAIN: &str = "sent again";

/// What became of the requests.
pub(super) fn requests(judged: &Judged<'_>, page: &mut Page) {
    let (run, summary, is_full) = (judged.run, &judged.summary, page.is_full());
    let population = &summary.population;
    let (carried_in, latencies) = (summary.carried_in, &run.latencies);
    let errors = if run.protocol().has_statuses {
        ERROR_STATUSES
    } else {
        ERROR_REPLIES
    };
    let (ok, errors_count) = (latencies.response.count(), latencies.response_error.count());
    let from_warm_up = carried_in.unanswered;
    let mut items = vec![format!("{} ok", units::count(ok))];
    for (count, words) in [
        (errors_count, errors),
        (population.failed, FAILED),
        (population.censored, "without a reply at the end"),
        (from_warm_up, "sent in the warm-up and never answered"),
        (summary.unsent, "never sent"),
        (summary.window.sent_again, SENT_AGAIN),
    ] {
        let is_possible = ![ERROR_REPLIES, SENT_AGAIN].contains(&words);
        if is_full && is_possible || count > 0 || words == FAILED {
            items.push(format!("{} {words}", units::count(count)));
        }
    }
    let is_open = matches!(run.plan.load.model, LoadModel::Open { .. });
    if !is_full && is_open && load::all_sent(run, summary) {
        items.push("all sent".to_owned());
        items.extend(load::waited(run, summary));
    }
    // The rate counts those that ended in the window.
    if ok != summary.window.replies.successes() && population.censored == 0 {
        let begun = if is_open { "due" } else { "sent" };
        items.push(format!("{begun} in the window"));
    }
    page.row(
        run.unit().many,
        &items,
        Tone::Warning.when(from_warm_up > 0),
    );
    if is_full && carried_in.in_flight > 0 {
        let items = [
            (carried_in.in_flight, "in flight when the window began"),
            (carried_in.answered, "answered in it"),
            (carried_in.failed, "failed"),
            (carried_in.unanswered, "unanswered at its end"),
        ];
        let items: Vec<String> = counts(items, true).collect();
        page.row("  carried in", &items, Tone::Plain);
    }
    let replies = &summary.window.replies;
    let has_statuses = run.protocol().has_statuses;
    if has_statuses && (is_full || replies.iter().any(|(status, _)| status != 200)) {
        let mut statuses = statuses(replies, is_full);
        if (replies.successes(), replies.errors()) != (ok, errors_count) {
            // Some were answered in drain, others were sent in warm-up.
            statuses.push("of replies in the window".to_owned());
        }
        page.row("statuses", &statuses, Tone::Plain);
    }
    error_bodies(run, page);
    failures(judged, page);
    beside(judged, page);
    quic(summary, page);
}

/// Packets of which fewer than one part in so many are lost are not said to be.
const LOST_PACKETS_PART: u64 = 200;

fn lost_packets(window: &QuicCounts) -> String {
    let (lost, bytes) = (
        units::count(window.packets_lost),
        units::bytes(window.bytes_lost),
    );
    let sent = counted(window.packets_sent, "packet", "packets");
    format!("{lost} lost of {sent} sent, {bytes}")
}

/// What QUIC did over the window where it was spoken: in full on a full page, else what is out of
/// the ordinary.
fn quic(summary: &Summary, page: &mut Page) {
    let window = &summary.window.quic;
    let retried = summary.lifetime.quic.handshakes_retried;
    let per_call = |datagrams: u64, calls: u64| match calls {
        0 => String::new(),
        _ => format!(", {:.1} per call", datagrams as f64 / calls as f64),
    };
    let mut items = Vec::new();
    if page.is_full() && window.datagrams_sent > 0 {
        for (datagrams, calls, what) in [
            (window.datagrams_sent, window.sends, "sent"),
            (window.datagrams_received, window.receives, "received"),
        ] {
            let count = counted(datagrams, "datagram", "datagrams");
            items.push(format!("{count} {what}{}", per_call(datagrams, calls)));
        }
        items.push(lost_packets(window));
        let round_trip = window.round_trip_mean_ns();
        items.extend(round_trip.map(|ns| format!("round trip {}", units::duration(ns as u64))));
    }
    // More than that is no accident.
    if !page.is_full() && window.packets_lost > window.packets_sent / LOST_PACKETS_PART {
        items.push(lost_packets(window));
    }
    if window.datagrams_dropped > 0 {
        let dropped = counted(window.datagrams_dropped, "datagram", "datagrams");
        items.push(format!("{dropped} found brunt's receive buffers full"));
    }
    if retried > 0 {
        let handshakes = counted(retried, "handshake", "handshakes");
        items.push(format!(
            "{handshakes} refused by the server and tried once again, all phases"
        ));
    }
    page.row("QUIC", &items, Tone::Plain);
}

/// What came and went beside messages and their replies, where something did.
pub(super) fn beside(judged: &Judged<'_>, page: &mut Page) {
    let window = &judged.summary.window;
    let controls = &window.controls;
    let mut items = Vec::new();
    if window.pushes > 0 {
        let per_s = window.pushes as f64 * 1e9 / judged.run.window_ns.max(1) as f64;
        let (pushes, per_s) = (units::count(window.pushes), units::rate(per_s));
        items.push(format!("{pushes} sent by the server unasked, {per_s}/s"));
    }
    let closes = controls.closes_received;
    for (count, one, many) in [
        (controls.pings_sent, "ping sent", "pings sent"),
        (controls.pongs_received, "pong received", "pongs received"),
        (controls.pings_received, "ping answered", "pings answered"),
        (closes, "Close received", "Closes received"),
    ] {
        if count > 0 {
            items.push(counted(count, one, many));
        }
    }
    page.row("beside", &items, Tone::Plain);
}

/// What failed and when, where something did.
pub(super) fn failures(judged: &Judged<'_>, page: &mut Page) {
    let Judged { run, summary, .. } = judged;
    let failures = failures_by_kind(run, summary);
    page.row("failures", &failures, Tone::Bad);
    // Of a server that failed the verdict says when.
    let times = FailureTimes::of(run, &summary.series);
    let times = times.filter(|times| times.share < 1.0 && judged.server_failure().is_none());
    if let Some(times) = times {
        page.row("  when", &failure_times(&times), Tone::Plain);
    }
}

/// A reply that says that it was not modified: no redirect, though its code is among theirs.
const NOT_MODIFIED: u16 = 304;

/// The redirects among `replies`, which are successes and lead elsewhere; empty without any.
fn redirects(replies: &StatusCounts) -> Option<String> {
    let found: Vec<_> = replies
        .iter()
        .filter(|&(status, _)| status / 100 == 3 && status != NOT_MODIFIED)
        .collect();
    let count = found.iter().map(|&(_, count)| count).sum();
    let statuses: Vec<_> = found.iter().map(|(status, _)| status.to_string()).collect();
    let statuses = statuses.join(", ");
    match count {
        0 => None,
        _ if count == replies.successes() => Some(format!(
            "all of these were redirects ({statuses}), not followed"
        )),
        _ => {
            let redirects = counted(count, "was a redirect", "were redirects");
            Some(format!("of these {redirects} ({statuses}), not followed"))
        }
    }
}

/// A row for each error status of which a body was kept, as the first worker met it, and one for
/// the first call of gRPC that failed with a message.
fn error_bodies(run: &Run, page: &mut Page) {
    let mut kept: Vec<&ErrorBody> = Vec::new();
    for body in run.workers().flat_map(|worker| &worker.error_bodies) {
        if kept.iter().all(|one| one.status != body.status) {
            kept.push(body);
        }
    }
    kept.sort_by_key(|body| body.status);
    for body in kept {
        // On one line: markup and JSON are still read that way.
        let words: Vec<_> = body.text.split_whitespace().collect();
        let text = printable(&words.join(" ")).into_owned();
        let shown = match (text.is_empty(), body.is_cut) {
            (true, _) => "(an empty body)".to_owned(),
            (false, false) => text,
            (false, true) => format!("{text} ..."),
        };
        page.row(&format!("  {}", body.status), &[shown], Tone::Plain);
    }
    let mut messages = run
        .workers()
        .filter_map(|worker| worker.unexpected.as_deref());
    if let Some(message) = messages.next().filter(|_| run.protocol().has_statuses) {
        let shown = [printable(message).into_owned()];
        page.row("  grpc-message", &shown, Tone::Plain);
    }
}

/// Status codes named per class, the most frequent ones, unless all are asked for.
const CODES_MAX: usize = 5;

/// The replies of the window by class and code. A class with one code is told by the code.
fn statuses(counts: &StatusCounts, is_full: bool) -> Vec<String> {
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

/// The failures of all phases by kind; empty when there were none. They are named as such where
/// those of the window, or of the requests issued in it, are not the same.
fn failures_by_kind(run: &Run, summary: &Summary) -> Vec<String> {
    let all = &summary.lifetime.failures;
    let mut items: Vec<String> = all
        .iter()
        .map(|(kind, count)| format!("{}: {}", kind.label(), units::count(count)))
        .collect();
    let of_requests = all.of_requests(run.work());
    let is_of_window = all.iter().eq(summary.window.failures.iter());
    if !items.is_empty() && (!is_of_window || of_requests != summary.population.failed) {
        items.push("in the whole run".to_owned());
    }
    items
}

/// When requests failed, and how many of those that ended then.
fn failure_times(times: &FailureTimes) -> [String; 2] {
    let from = units::duration(times.from_ns);
    let when = match (times.from_ns, times.until_ns.map(units::duration)) {
        (0, None) => "all through the window".to_owned(),
        (0, Some(until)) => format!("up to {until} of the window"),
        (_, None) => format!("from {from} of the window on"),
        (_, Some(until)) => format!("from {from} to {until} of the window"),
    };
    let then = if times.is_throughout() { "" } else { " then" };
    let share = units::percent(times.share);
    [when, format!("{share} of what ended{then}")]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn redirects_are_told_from_other_successes() {
        for (statuses, words) in [
            (&[200, 204, 304, 404][..], None),
            (
                &[200, 302, 404],
                Some("of these 1 was a redirect (302), not followed"),
            ),
            (
                &[301, 302, 302],
                Some("all of these were redirects (301, 302), not followed"),
            ),
        ] {
            let mut replies = StatusCounts::default();
            statuses.iter().for_each(|&status| replies.add(status));
            assert_eq!(redirects(&replies).as_deref(), words);
        }
    }

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
}
