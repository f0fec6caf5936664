//! The rows of requests: their rate, what became of the schedule, of the requests and of their
//! connections' protocol, what failed, and what the server said in its errors.

use brunt_judge::{
    CleanFigures, FailureTimes, Figure, Judged, NoInterval, RateInterval, Summary, Verdict,
};
use brunt_load::LoadModel;
use brunt_record::{ErrorBody, Run, StatusCounts};

use super::{clean_beside, counts, latency, load, verdict};
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
                _ => per_s + &precision(judged.successes_interval(), rate),
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
        let interval = precision(clean.successes_interval, rate);
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

/// How far the rate `per_s` may be off, behind it; empty where it is planned to vary.
fn precision(interval: Result<RateInterval, NoInterval>, per_s: f64) -> String {
    let RateInterval {
        low_per_s,
        high_per_s,
    } = match interval {
        Ok(interval) => interval,
        Err(NoInterval::PlannedToVary) => return String::new(),
        Err(_) => return " (± not known: the run is too short)".to_owned(),
    };
    let off = (high_per_s - per_s).max(per_s - low_per_s);
    if per_s <= 0.0 || !off.is_finite() {
        String::new()
    } else if off > per_s * latency::SHARE_MOST {
        let (low, high) = (units::rate(low_per_s), units::rate(high_per_s));
        format!(" (95 % CI {low} to {high})")
    } else {
        // Rounded up where it would look like none.
        format!(" ±{}", units::percent((off / per_s).max(0.001)))
    }
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
        page.row("arrivals", &load::arrivals(judged), tone);
    }
    if let Some(overload) = judged.overload.filter(|_| !is_withheld) {
        let is_sessions = matches!(run.plan.load.model, LoadModel::Sessions { .. });
        let per_s = run.unit().per_s;
        let unit = if is_sessions { "connections/s" } else { per_s };
        let items = load::overload(&overload, unit);
        page.row("overloaded", &items, Tone::Warning);
    }
}

/// What became of the requests.
pub(super) fn requests(judged: &Judged<'_>, page: &mut Page) {
    let (run, summary, is_full) = (judged.run, &judged.summary, page.is_full());
    let population = &summary.population;
    let has_statuses = run.protocol().has_statuses;
    let errors = if has_statuses {
        "error statuses"
    } else {
        "error replies"
    };
    let latencies = &run.latencies;
    let (ok, errors_count) = (latencies.response.count(), latencies.response_error.count());
    let from_warm_up = summary.carried_in.unanswered;
    let mut items = vec![format!("{} ok", units::count(ok))];
    items.extend(counts([(errors_count, errors)], false));
    items.extend(counts([(population.failed, "failed")], true));
    let seldom = [
        (population.censored, "without a reply at the end"),
        (from_warm_up, "sent in the warm-up and never answered"),
        (summary.unsent, "never sent"),
        (summary.window.sent_again, "sent again"),
    ];
    items.extend(counts(seldom, false));
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
    let replies = &summary.window.replies;
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

/// What QUIC did over the window where it was spoken: in full on a full page, else what is out of
/// the ordinary.
fn quic(summary: &Summary, page: &mut Page) {
    let window = &summary.window.quic;
    let is_full = page.is_full() && window.datagrams_sent > 0;
    let mut items = Vec::new();
    for (datagrams, calls, what) in [
        (window.datagrams_sent, window.sends, "sent"),
        (window.datagrams_received, window.receives, "received"),
    ] {
        let count = counted(datagrams, "datagram", "datagrams");
        let per_call = datagrams as f64 / calls.max(1) as f64;
        items.extend(is_full.then(|| format!("{count} {what}, {per_call:.1} per call")));
    }
    // More than that is no accident.
    if is_full || window.packets_lost > window.packets_sent / LOST_PACKETS_PART {
        let (lost, bytes) = (window.packets_lost, units::bytes(window.bytes_lost));
        let sent = counted(window.packets_sent, "packet", "packets");
        items.push(format!(
            "{} lost of {sent} sent, {bytes}",
            units::count(lost)
        ));
    }
    let round_trip = window.round_trip_mean_ns().filter(|_| is_full);
    items.extend(round_trip.map(|ns| format!("round trip {}", units::duration(ns as u64))));
    if window.datagrams_dropped > 0 {
        let dropped = counted(window.datagrams_dropped, "datagram", "datagrams");
        items.push(format!("{dropped} found brunt's receive buffers full"));
    }
    let retried = summary.lifetime.quic.handshakes_retried;
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

/// The redirects among `replies`, which are successes and lead elsewhere.
fn redirects(replies: &StatusCounts) -> Option<String> {
    let is_redirect = |status: u16| status / 100 == 3 && status != NOT_MODIFIED;
    let found = || replies.iter().filter(|&(status, _)| is_redirect(status));
    let count = found().map(|(_, count)| count).sum();
    let statuses: Vec<_> = found().map(|(status, _)| status.to_string()).collect();
    let statuses = statuses.join(", ");
    let redirects = counted(count, "was a redirect", "were redirects");
    (count > 0).then(|| format!("of these {redirects} ({statuses}), not followed"))
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

/// Most status codes that are named per class, unless all are asked for.
const CODES_MAX: usize = 5;

/// The replies of the window by class and code. A class of one code has the code alone.
fn statuses(counts: &StatusCounts, is_full: bool) -> Vec<String> {
    let mut items = Vec::new();
    for class in 1..=9 {
        let codes = counts.iter().filter(|(status, _)| status / 100 == class);
        let codes: Vec<String> = codes
            .map(|(status, count)| format!("{status}: {}", units::count(count)))
            .collect();
        let total = units::count(counts.class(class));
        match codes.len() {
            0 => {}
            1 => items.extend(codes),
            number if is_full || number <= CODES_MAX => {
                items.push(format!("{class}xx: {total} ({})", codes.join(", ")));
            }
            number => items.push(format!("{class}xx: {total} ({number} codes)")),
        }
    }
    if items.is_empty() {
        items.push("no reply in the window".to_owned());
    }
    items
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
    fn a_rate_has_a_share_or_two_ends() {
        for (ends, per_s, words) in [
            (Ok((99.2, 100.8)), 100.0, " ±0.8 %"),
            (Ok((99.2, 104.0)), 100.0, " ±4.0 %"),
            (Ok((100.0, 100.0)), 100.0, " ±0.1 %"),
            (Ok((50.0, 150.0)), 100.0, " ±50 %"),
            (Ok((0.0, 30.0)), 10.0, " (95 % CI 0 to 30.0)"),
            (Ok((0.0, 0.0)), 0.0, ""),
            (Err(NoInterval::PlannedToVary), 10.0, ""),
            (
                Err(NoInterval::NoWindow),
                10.0,
                " (± not known: the run is too short)",
            ),
        ] {
            let interval = ends.map(|(low_per_s, high_per_s)| RateInterval {
                low_per_s,
                high_per_s,
            });
            assert_eq!(precision(interval, per_s), words);
        }
    }

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
                Some("of these 3 were redirects (301, 302), not followed"),
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
            (&many, false, &["4xx: 21 (7 codes)"]),
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
