//! The rows of requests: their rate, what became of the schedule, of the requests and of their
//! connections' protocol, what failed, and what the server said in its errors.

use brunt_judge::{
    CleanFigures, FailureTimes, Figure, Judged, NoInterval, RateInterval, Summary, Verdict,
};
use brunt_load::{LoadModel, Work};
use brunt_record::{ErrorBody, FailureKind, FailureScope, Run, StatusCounts, Tally};

use super::{clean_beside, counts, load, verdict};
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
                Verdict::ServerFailed => format!("{per_s} on average, the failure included"),
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

/// How far the rate `per_s` may be off, behind it; empty where that is not known.
fn precision(interval: Result<RateInterval, NoInterval>, per_s: f64) -> String {
    let Ok(RateInterval {
        low_per_s,
        high_per_s,
    }) = interval
    else {
        return String::new();
    };
    let off = (high_per_s - per_s).max(per_s - low_per_s);
    if per_s <= 0.0 || !off.is_finite() {
        return String::new();
    }
    // Rounded up where it would look like none.
    format!(" ±{} (95 % CI)", units::percent((off / per_s).max(0.001)))
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
        page.row("overloaded", &load::overload(&overload), Tone::Warning);
    }
}

/// What became of the requests that ended in the window: those that the rate counts, whose statuses
/// and kinds of failure follow.
pub(super) fn requests(judged: &Judged<'_>, page: &mut Page) {
    let (run, summary, is_full) = (judged.run, &judged.summary, page.is_full());
    let (window, replies) = (&summary.window, &summary.window.replies);
    let has_statuses = run.protocol().has_statuses;
    let mut after = Tally::default();
    run.workers()
        .for_each(|worker| after.merge(&worker.tallies.after));
    let [failed, failed_after] =
        [&window.failures, &after.failures].map(|failures| failures.of_requests(run.work()));
    let mut items = vec![format!("{} ok", units::count(replies.successes()))];
    items.extend(counts([(replies.errors(), "error replies")], false));
    items.extend(counts([(failed, "failed")], true));
    // Of those in flight when the window ends, most are answered soon.
    if is_full || replies.successes() == 0 {
        items.extend(counts(
            [(after.replies.total(), "answered after the window")],
            false,
        ));
    }
    let seldom = [
        (failed_after, "failed after the window"),
        (summary.in_flight_at_end, "never answered"),
        (summary.unsent, "never sent"),
        (window.sent_again, "sent again"),
    ];
    items.extend(counts(seldom, false));
    let is_open = matches!(run.plan.load.model, LoadModel::Open { .. });
    if !is_full && is_open && load::all_sent(run, summary) {
        items.push("all sent".to_owned());
        items.extend(counts([(summary.arrivals.waited, load::WAITED)], false));
    }
    let tone = Tone::Warning.when(summary.in_flight_at_end > 0);
    page.row(run.unit().many, &items, tone);
    if has_statuses && (is_full || replies.iter().any(|(status, _)| status != 200)) {
        page.row("statuses", &statuses(replies, is_full), Tone::Plain);
    }
    error_bodies(run, page);
    failures(judged, page);
    beside(judged, page);
    quic(summary, page);
}

/// Packets of which fewer than one part in so many are lost are not said to be.
const LOST_PACKETS_PART: u64 = 200;

/// What QUIC did over the window where it was spoken: on a short page what is out of the ordinary.
fn quic(summary: &Summary, page: &mut Page) {
    let window = &summary.window.quic;
    let is_full = page.is_full() && window.packets_sent > 0;
    let mut items = Vec::new();
    // More than that is no accident.
    if is_full || window.packets_lost > window.packets_sent / LOST_PACKETS_PART {
        let lost = units::count(window.packets_lost);
        let sent = counted(window.packets_sent, "packet", "packets");
        items.push(format!("{lost} of {sent} lost"));
    }
    let round_trip = window.round_trip_mean_ns().filter(|_| is_full);
    items.extend(round_trip.map(|ns| format!("round trip {}", units::duration(ns as u64))));
    let (dropped, retried) = (
        window.datagrams_dropped,
        summary.lifetime.quic.handshakes_retried,
    );
    let seldom = [
        (dropped, "datagrams found brunt's receive buffers full"),
        (retried, "handshakes that the server refused at first"),
    ];
    items.extend(counts(seldom, false));
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

/// What failed, by its kind, where something did, and when.
pub(super) fn failures(judged: &Judged<'_>, page: &mut Page) {
    let Judged { run, summary, .. } = judged;
    let (window, all) = (&summary.window.failures, &summary.lifetime.failures);
    let is_of_request = |kind: FailureKind| match kind.scope() {
        FailureScope::Request => true,
        FailureScope::Connect => run.work() == Work::Connects,
        FailureScope::Connection => false,
    };
    let mut rows: [Vec<String>; 3] = Default::default();
    for (kind, count) in all.iter() {
        let in_window = window.get(kind);
        let counts = if is_of_request(kind) {
            [in_window, count.saturating_sub(in_window), 0]
        } else {
            [0, 0, count]
        };
        for (row, count) in rows.iter_mut().zip(counts).filter(|&(_, count)| count > 0) {
            row.push(format!("{}: {}", kind.label(), units::count(count)));
        }
    }
    let [in_window, mut outside, mut others] = rows;
    page.row("failures", &in_window, Tone::Bad);
    if !outside.is_empty() {
        outside.push("in warm-up or drain".to_owned());
        page.row("  outside", &outside, Tone::Bad);
    }
    if !others.is_empty() {
        // Where there are no requests, what failed had none.
        let (label, when) = if run.work().has_units() {
            ("  others", "without a request, warm-up included")
        } else {
            ("failures", "warm-up included")
        };
        others.push(when.to_owned());
        page.row(label, &others, Tone::Bad);
    }
    // Of a server that failed the verdict says when.
    let times = FailureTimes::of(run, &summary.series);
    let times = times.filter(|times| !times.is_throughout() && judged.server_failure().is_none());
    if let Some(times) = times {
        page.row("  when", &[failure_times(&times)], Tone::Plain);
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
    let redirects = counted(count, "redirect", "redirects");
    (count > 0).then(|| format!("{redirects} ({statuses}) not followed"))
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

/// Most status codes that are named unless all are asked for.
const CODES_MAX: usize = 8;

/// The replies of the window by their status.
fn statuses(counts: &StatusCounts, is_full: bool) -> Vec<String> {
    let codes = counts.iter();
    let mut codes: Vec<String> = codes
        .map(|(status, count)| format!("{status}: {}", units::count(count)))
        .collect();
    if !is_full && codes.len() > CODES_MAX {
        let more = codes.split_off(CODES_MAX).len();
        codes.push(format!("{more} other codes (-v has them)"));
    }
    codes
}

/// When requests failed, and how many of those that ended then.
fn failure_times(times: &FailureTimes) -> String {
    let from = units::duration(times.from_ns);
    let when = match (times.from_ns, times.until_ns.map(units::duration)) {
        (0, Some(until)) => format!("until {until} of the window"),
        (_, Some(until)) => format!("from {from} to {until} of the window"),
        (_, None) => format!("from {from} of the window on"),
    };
    let share = units::percent(times.share);
    format!("{when}; {share} of the requests of that time failed or had error replies")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_has_a_share_or_two_ends() {
        for (ends, per_s, words) in [
            (Ok((99.2, 100.8)), 100.0, " ±0.8 % (95 % CI)"),
            (Ok((99.2, 104.0)), 100.0, " ±4.0 % (95 % CI)"),
            (Ok((100.0, 100.0)), 100.0, " ±0.1 % (95 % CI)"),
            (Ok((50.0, 150.0)), 100.0, " ±50 % (95 % CI)"),
            (Ok((0.0, 30.0)), 10.0, " ±200 % (95 % CI)"),
            (Ok((0.0, 0.0)), 0.0, ""),
            (Err(NoInterval::NoRate), 10.0, ""),
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
            (&[200, 302, 404], Some("1 redirect (302) not followed")),
            (
                &[301, 302, 302],
                Some("3 redirects (301, 302) not followed"),
            ),
        ] {
            let mut replies = StatusCounts::default();
            statuses.iter().for_each(|&status| replies.add(status));
            assert_eq!(redirects(&replies).as_deref(), words);
        }
    }

    #[test]
    fn a_short_page_names_the_first_statuses() {
        let mut replies = StatusCounts::default();
        (400..410).for_each(|status| replies.add(status));
        let found = statuses(&replies, false);
        assert_eq!(found[7..], ["407: 1", "2 other codes (-v has them)"]);
        assert_eq!(statuses(&replies, true)[9], "409: 1");
    }
}
