//! The report for people: what was asked, the outcome, and whether it may be believed.

pub(crate) mod agents;
pub(crate) mod bandwidth;
mod brief;
pub(crate) mod describe;
mod errors;
pub(crate) mod evidence;
pub(crate) mod held;
pub(crate) mod latency;
pub(crate) mod layout;
pub(crate) mod load;
pub(crate) mod names;
mod objectives;
pub(crate) mod outage;
pub(crate) mod outcome;
pub(crate) mod precision;
pub(crate) mod resources;
mod spectrum;
pub(crate) mod stages;
pub(crate) mod verdict;

use brunt_judge::{
    CleanFigures, Figure, Finding, InvariantStatus, Judged, RunFigures, SignalId, Summary, Verdict,
};
use brunt_load::LoadModel;
use brunt_record::{QuicCounts, Run};

use self::layout::{Page, Tone};
use crate::figures::{AllPhases, ids, server_counted};
use crate::{Style, units};

/// The whole report; with `-v` all that is known of the run.
pub(crate) fn page(judged: &Judged<'_>, style: &Style) -> String {
    match style.verbose {
        true => in_full(judged, style),
        false => brief::page(judged, style),
    }
}

fn in_full(judged: &Judged<'_>, style: &Style) -> String {
    let Judged {
        run,
        summary,
        judgement,
        ..
    } = judged;
    let is_withheld = judged.withheld().is_some();
    let mut page = Page::new(style);
    errors_above(judged, &mut page);
    asked(run, &mut page);
    for command in load::commands(run) {
        page.row("command", &[command], Tone::Plain);
    }
    page.row("window", &describe::phases(run, true), Tone::Plain);
    agents::rows(judged, true, &mut page);
    notes(judged, true, &mut page);
    page.blank();
    figures(judged, true, &mut page);
    page.blank();
    verdict::rows(judgement, &mut page);
    if judgement.verdict == Verdict::ServerFailed {
        outage::rows(run, true, &mut page);
    }
    objectives::rows(judged, &mut page);
    page.blank();
    if style.spectrum && run.has_units() {
        spectrum::spectrum(run, &mut page);
        page.blank();
    }
    if !run.is_held() {
        connections(run, summary, true, &mut page);
    }
    whole_run(run, summary, true, &mut page);
    resources::used(run, summary, is_withheld, &mut page);
    if let Some(items) = resources::cpus(run, true) {
        page.row("CPUs", &items, Tone::Plain);
        for (cpu, items) in resources::each_cpu(run) {
            page.row(&format!("  CPU {cpu}"), &items, Tone::Plain);
        }
    }
    evidence::rows(run, &mut page);
    page.blank();
    checks(judged, &[], true, &mut page);
    page.into_text()
}

/// What was asked for.
pub(crate) fn asked(run: &Run, page: &mut Page) {
    page.row("target", &load::target(run, true), Tone::Plain);
    page.row("load", &load::load(run, true), Tone::Plain);
    for (number, stage) in (1..).zip(load::stages(run)) {
        page.row(&format!("  stage {number}"), &[stage], Tone::Plain);
    }
    // Those of several agents are in the data.
    if let Some(placement) = run.first().placement.as_ref().filter(|_| run.is_plain()) {
        page.row("workers", &load::placement(placement), Tone::Plain);
    }
}

/// What must be said before any figure.
fn errors_above(judged: &Judged<'_>, page: &mut Page) {
    refusal(judged, page);
    outcome::first_line(&judged.judgement, page);
    if let Some(line) = unopened(judged.run, &judged.summary) {
        page.line(&line, Tone::Warning);
        page.blank();
    }
}

/// What sets the run apart from others of its kind.
fn notes(judged: &Judged<'_>, verbose: bool, page: &mut Page) {
    let mut notes = describe::notes(judged.run, &judged.summary, verbose);
    // Where the drift decides, the verdict speaks of it.
    let is_said = judged.judgement.decisive.contains(&SignalId::Drift);
    if judged.withheld().is_none() && !is_said {
        notes.extend(describe::drift(&judged.run.steadiness()));
    }
    for note in notes {
        page.row("note", &[note], Tone::Warning);
    }
}

/// What was measured, by the kind of load.
fn figures(judged: &Judged<'_>, verbose: bool, page: &mut Page) {
    let Judged { run, summary, .. } = judged;
    let is_withheld = judged.withheld().is_some();
    if run.is_streams() {
        bandwidth::rows(judged, verbose, page);
        if verbose && !is_withheld {
            bandwidth::over_time(run, page);
        }
        failures(run, summary, page);
    } else if run.is_held() {
        held::rows(judged, page);
        failures(run, summary, page);
        beside(run, summary, page);
    } else {
        throughput(judged, verbose, page);
        arrivals(run, summary, is_withheld, verbose, page);
        requests(run, summary, verbose, page);
        latency::table(judged, verbose, page);
        stages::table(run, is_withheld, verbose, page);
        names::table(run, verbose, page);
    }
}

/// The first line of a run whose figures are refused.
fn refusal(judged: &Judged<'_>, page: &mut Page) {
    let broken = ids(judged.with_status(InvariantStatus::Broken));
    if !broken.is_empty() {
        let line = format!(
            "INVALID: the figures below break {} of {} invariants ({})",
            broken.len(),
            judged.findings.len(),
            broken.join(", "),
        );
        page.line(&line, Tone::Refusal);
        page.blank();
    }
}

/// The line above all others where connections were still missing when the window began.
pub(crate) fn unopened(run: &Run, summary: &Summary) -> Option<String> {
    let unopened = summary.live.unopened_at_start.filter(|&count| count > 0)?;
    let were = if unopened == 1 { "was" } else { "were" };
    Some(format!(
        "{} of {} {were} not open when the window began",
        units::count(unopened.into()),
        units::counted(
            run.plan.connections.get().into(),
            "connection",
            "connections"
        )
    ))
}

/// The rate of what the verdict rests on. Where that is a part of the window, the rate of the whole
/// window stands below; else, with `verbose`, that of what the hypervisor left of it.
pub(crate) fn throughput(judged: &Judged<'_>, verbose: bool, page: &mut Page) {
    let run = judged.run;
    let verdict = judged.judgement.verdict;
    let broken = ids(judged.with_status(InvariantStatus::Broken));
    if !broken.is_empty() {
        let reason = format!("withheld: {} broken, see below", broken.join(", "));
        return page.row("throughput", &[reason], Tone::Refusal);
    }
    let headline = match judged.successes_per_s() {
        Figure::Known(rate) => {
            let unit = run.unit();
            let per_s = format!("{} {}", units::rate(rate), unit.per_s);
            match verdict {
                Verdict::ServerFailed => {
                    let failure = run.server_failure();
                    let is_silence = failure.is_some_and(|it| !it.silences.is_empty());
                    let what = if is_silence { "silence" } else { "outages" };
                    format!("{per_s} on average, {what} included")
                }
                Verdict::NoSuccess => format!("none: no {} succeeded", unit.one),
                // The precision of a lower bound says nothing about the server.
                Verdict::ClientLimited => format!("at least {per_s}"),
                _ => per_s + &precision::of_rate(judged.successes_interval(), rate),
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
    if let Some(clean) = clean_beside(judged).filter(|_| verbose) {
        let rate = clean.successes_per_s;
        let interval = precision::of_rate(clean.successes_interval, rate);
        let per_s = format!("{} {}{interval}", units::rate(rate), run.unit().per_s);
        page.row("  undisturbed", &[per_s, part(clean)], Tone::Plain);
    }
}

/// What stands beside the rate of the whole window.
fn beside_rate(judged: &Judged<'_>) -> Vec<String> {
    let summary = &judged.summary;
    let window = &summary.window;
    let mut items: Vec<String> = outcome::redirects(&window.replies).into_iter().collect();
    // The attempts stand beside the headline where not all that ended was a success.
    let has_other_ends = window.replies.errors() > 0
        || window.failures.iter().next().is_some()
        || window.sent_again > 0;
    if let Some(attempts) = summary.attempts_per_s.known().filter(|_| has_other_ends) {
        items.push(format!("of {} sent/s", units::rate(attempts)));
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

/// The figures of the parts of the window in which the hypervisor took nothing, where the verdict
/// does not rest on them. Absent where these parts are too short for figures.
fn clean_beside<'a>(judged: &'a Judged<'_>) -> Option<&'a CleanFigures> {
    let clean = judged.clean.as_ref()?.figures.as_ref();
    clean.filter(|_| judged.undisturbed().is_none() && judged.withheld().is_none())
}

/// Which part of the window these figures are of.
fn part(clean: &CleanFigures) -> String {
    format!(
        "{} of {}: the hypervisor took nothing",
        units::duration(clean.clean_ns),
        units::duration(clean.window_ns)
    )
}

/// The outcome of the schedule, where there is one.
pub(crate) fn arrivals(
    run: &Run,
    summary: &Summary,
    is_withheld: bool,
    verbose: bool,
    page: &mut Page,
) {
    if run.plan.model.schedule().is_none() {
        return;
    }
    let lost = summary.arrivals.planned > summary.arrivals.sent;
    let tone = if lost { Tone::Warning } else { Tone::Plain };
    if verbose || !load::all_sent(run, summary) {
        page.row("arrivals", &load::arrivals(run, summary, is_withheld), tone);
    }
    if let Some(overload) = run.overload().filter(|_| !is_withheld) {
        let unit = match run.plan.model {
            LoadModel::Sessions { .. } => "connections/s",
            _ => run.unit().per_s,
        };
        page.row(
            "overloaded",
            &load::overload(&overload, unit),
            Tone::Warning,
        );
    }
}

/// Replies that are no successes, in protocols with statuses and without.
const ERROR_STATUSES: &str = "error statuses";
const ERROR_REPLIES: &str = "error replies";
/// Requests without a reply that could be read: printed where there are none as well.
const FAILED: &str = "failed";
/// Requests that the server did not process the first time: of those beside them.
const SENT_AGAIN: &str = "sent again";

pub(crate) fn requests(run: &Run, summary: &Summary, verbose: bool, page: &mut Page) {
    let population = &summary.population;
    let carried_in = summary.carried_in;
    let errors = match run.protocol().has_statuses {
        true => ERROR_STATUSES,
        false => ERROR_REPLIES,
    };
    let mut items = vec![format!(
        "{} ok",
        units::count(run.latencies.response.count())
    )];
    for (count, words) in [
        (run.latencies.response_error.count(), errors),
        (population.failed, FAILED),
        (population.censored, "without a reply at the end"),
        (
            carried_in.unanswered,
            "from the warm-up unanswered throughout",
        ),
        (summary.unsent, "never sent"),
        (summary.window.sent_again, SENT_AGAIN),
    ] {
        let is_possible = ![ERROR_REPLIES, SENT_AGAIN].contains(&words);
        if verbose && is_possible || count > 0 || words == FAILED {
            items.push(format!("{} {words}", units::count(count)));
        }
    }
    let is_open = matches!(run.plan.model, LoadModel::Open { .. });
    if !verbose && is_open && load::all_sent(run, summary) {
        items.push("all sent".to_owned());
        items.extend(load::waited(run, summary));
    }
    let tone = match carried_in.unanswered {
        0 => Tone::Plain,
        _ => Tone::Warning,
    };
    page.row(run.unit().many, &items, tone);
    if verbose && carried_in.in_flight > 0 {
        page.row(
            "  carried in",
            &describe::carried_in(&carried_in),
            Tone::Plain,
        );
    }
    let replies = &summary.window.replies;
    let has_statuses = run.protocol().has_statuses;
    if has_statuses && (verbose || replies.iter().any(|(status, _)| status != 200)) {
        let mut statuses = describe::statuses(replies, verbose);
        let latencies = &run.latencies;
        let answered = (latencies.response.count(), latencies.response_error.count());
        if (replies.successes(), replies.errors()) != answered {
            // Some were answered in drain, others were sent in warm-up.
            statuses.push("of replies in the window".to_owned());
        }
        page.row("statuses", &statuses, Tone::Plain);
    }
    errors::rows(run, page);
    failures(run, summary, page);
    beside(run, summary, page);
    quic(summary, verbose, page);
}

/// Packets of which fewer than one part in so many are lost are not said to be.
const LOST_PACKETS_PART: u64 = 200;

fn lost_packets(window: &QuicCounts) -> String {
    format!(
        "{} lost of {} sent, {}",
        units::count(window.packets_lost),
        units::counted(window.packets_sent, "packet", "packets"),
        units::bytes(window.bytes_lost)
    )
}

/// What QUIC did over the window where it was spoken: with `verbose` in full, else what is out of
/// the ordinary.
pub(crate) fn quic(summary: &Summary, verbose: bool, page: &mut Page) {
    let (window, retried) = (
        &summary.window.quic,
        summary.lifetime.quic.handshakes_retried,
    );
    let per_call = |datagrams: u64, calls: u64| match calls {
        0 => String::new(),
        _ => format!(", {:.1} per call", datagrams as f64 / calls as f64),
    };
    let mut items = Vec::new();
    if verbose && window.datagrams_sent > 0 {
        for (datagrams, calls, what) in [
            (window.datagrams_sent, window.sends, "sent"),
            (window.datagrams_received, window.receives, "received"),
        ] {
            let count = units::counted(datagrams, "datagram", "datagrams");
            items.push(format!("{count} {what}{}", per_call(datagrams, calls)));
        }
        items.push(lost_packets(window));
        let round_trip = window.round_trip_mean_ns();
        items.extend(round_trip.map(|ns| format!("round trip {}", units::duration(ns as u64))));
    }
    // More than that is no accident.
    if !verbose && window.packets_lost > window.packets_sent / LOST_PACKETS_PART {
        items.push(lost_packets(window));
    }
    if window.datagrams_dropped > 0 {
        let dropped = units::counted(window.datagrams_dropped, "datagram", "datagrams");
        items.push(format!("{dropped} found brunt's receive buffers full"));
    }
    if retried > 0 {
        let handshakes = units::counted(retried, "handshake", "handshakes");
        items.push(format!(
            "{handshakes} refused by the server and tried once again, all phases"
        ));
    }
    if !items.is_empty() {
        page.row("QUIC", &items, Tone::Plain);
    }
}

/// What came and went beside messages and their replies, where something did.
pub(crate) fn beside(run: &Run, summary: &Summary, page: &mut Page) {
    let window = &summary.window;
    let controls = &window.controls;
    let mut items = Vec::new();
    if window.pushes > 0 {
        let per_s = window.pushes as f64 * 1e9 / run.window_ns.max(1) as f64;
        let pushes = units::count(window.pushes);
        let per_s = units::rate(per_s);
        items.push(format!("{pushes} sent by the server unasked, {per_s}/s"));
    }
    for (count, one, many) in [
        (controls.pings_sent, "ping sent", "pings sent"),
        (controls.pongs_received, "pong received", "pongs received"),
        (controls.pings_received, "ping answered", "pings answered"),
        (
            controls.closes_received,
            "Close received",
            "Closes received",
        ),
    ] {
        if count > 0 {
            items.push(units::counted(count, one, many));
        }
    }
    if !items.is_empty() {
        page.row("beside", &items, Tone::Plain);
    }
}

/// What failed and when, where something did.
pub(crate) fn failures(run: &Run, summary: &Summary, page: &mut Page) {
    let failures = describe::failures(run, summary);
    if !failures.is_empty() {
        page.row("failures", &failures, Tone::Bad);
    }
    // Of a server that failed the verdict says when.
    let times = brunt_judge::FailureTimes::of(run, &summary.series);
    let times = times.filter(|it| it.share < 1.0 && run.server_failure().is_none());
    if let Some(times) = times {
        page.row("  when", &describe::failure_times(&times), Tone::Plain);
    }
}

/// The connections, where they are not just those of the set-up, open throughout.
pub(crate) fn connections(run: &Run, summary: &Summary, verbose: bool, page: &mut Page) {
    let live = &summary.live;
    let all = AllPhases::new(&run.plan, summary);
    let is_sessions = matches!(run.plan.model, LoadModel::Sessions { .. });
    let is_steady = !is_sessions && live.min == live.asked && live.max == live.asked;
    // Attempts are told of as requests are, and what they open is not kept.
    let connects_only = run.plan.connects_only();
    let mut items = Vec::new();
    if !connects_only {
        items.push(live_connections(summary, is_sessions, is_steady));
    }
    let is_plan_told = !verbose && is_sessions && load::all_sent(run, summary);
    if is_plan_told {
        let planned = units::count(summary.arrivals.planned);
        items.push(format!("{planned} planned, all opened"));
        items.extend(load::waited(run, summary));
    }
    // Those of workers that were too few are no connections of this load.
    let opened = summary.lifetime.connections_opened;
    let opened_beside = verbose || opened != u64::from(live.asked);
    if opened_beside && !is_plan_told {
        let opened = format!("{} opened", units::count(opened));
        let (full, resumed) = (
            summary.lifetime.handshakes_full,
            summary.lifetime.handshakes_resumed,
        );
        let resumed = format!("{} resumed", units::count(resumed));
        if run.first().negotiated.tls.is_none() {
            items.push(opened);
        } else if verbose {
            let full = units::counted(full, "full handshake", "full handshakes");
            items.extend([opened, format!("{full}, {resumed}")]);
        } else if run.plan.tls().is_some_and(|tls| tls.resumption) {
            items.push(format!("{opened}, {resumed}"));
        } else {
            items.push(opened);
        }
    }
    let set_up = short_set_up(run);
    let is_short_set_up = set_up.is_some();
    items.extend(set_up);
    let mut seldom = 0;
    // What was opened beside those asked for is told in full.
    let replaced = if verbose { all.connections_replaced } else { 0 };
    for (count, words) in [
        (
            all.connections_closed_by_server,
            "closed by the server while idle",
        ),
        (
            summary.lifetime.idle_replies,
            "of these after a reply such as 408",
        ),
        (replaced, "replaced"),
        (all.goaways, "that the server asked to replace (GOAWAY)"),
        (
            all.connections_shut,
            "times the server's settings allowed no streams",
        ),
    ] {
        seldom += count;
        if count > 0 {
            items.push(format!("{} {words}", units::count(count)));
        }
    }
    if verbose || is_sessions || !is_steady || opened_beside || is_short_set_up || seldom > 0 {
        // An open loop opens no connection that no request needs.
        let is_unneeded = live.missing.unneeded_ns > 0;
        let is_short = !is_sessions && !connects_only && !is_unneeded && live.min < live.asked;
        let tone = if is_short { Tone::Warning } else { Tone::Plain };
        let label = if connects_only {
            "all phases"
        } else {
            "connections"
        };
        page.row(label, &items, tone);
    }
}

/// What was open when set-up ended, where that was not all that was asked for.
fn short_set_up(run: &Run) -> Option<String> {
    let set_up = run.set_up().filter(|it| it.open < it.asked)?;
    let open = format!(
        "{} of {} open when set-up {}",
        units::count(set_up.open.into()),
        units::count(set_up.asked.into()),
        match (set_up.timed_out, set_up.waited_ns) {
            (false, _) => "ended".to_owned(),
            (true, None) => "was over its limit".to_owned(),
            (true, Some(ns)) => format!("ended, after {} without a new one", units::duration(ns)),
        }
    );
    Some(match set_up.main_failure() {
        None => open,
        Some((kind, count)) => {
            format!("{open} (mostly {}: {})", kind.label(), units::count(count))
        }
    })
}

/// How many were open over the window.
fn live_connections(summary: &Summary, is_sessions: bool, is_steady: bool) -> String {
    let live = &summary.live;
    let count = |connections: u32| units::count(connections.into());
    if is_steady {
        return format!("{} open throughout", count(live.asked));
    }
    let mean = summary.live_mean.known().map_or_else(
        || "mean not known".to_owned(),
        |mean| format!("mean {}", units::rate(mean)),
    );
    if is_sessions {
        // The row of the load says how many there may be.
        return format!("{} to {} open, {mean}", count(live.min), count(live.max));
    }
    let asked = if live.most > live.asked {
        format!("{} to {} asked", count(live.asked), count(live.most))
    } else {
        format!("{} asked", count(live.asked))
    };
    format!(
        "{} to {} open, {mean}, of {asked}",
        count(live.min),
        count(live.max),
    )
}

/// The requests of all phases, with the server's own count of them where it was asked for.
pub(crate) fn whole_run(run: &Run, summary: &Summary, verbose: bool, page: &mut Page) {
    let counted = server_counted(run);
    if (!verbose && counted.is_none()) || !run.has_units() {
        return;
    }
    let all = AllPhases::new(&run.plan, summary);
    let mut items = vec![format!("{} sent", units::count(all.sent))];
    match !verbose && all.answered == all.sent {
        true => items[0].push_str(" and answered"),
        false => items.push(format!("{} answered", units::count(all.answered))),
    }
    for (count, words) in [
        (all.failed, "failed"),
        (all.in_flight, "in flight at the end"),
    ] {
        if verbose || count > 0 {
            items.push(format!("{} {words}", units::count(count)));
        }
    }
    let own_reads = run.server_count().ok().flatten().map(|it| it.own_reads);
    items.extend(counted.map(|counted| match (counted, own_reads) {
        (Err(reason), _) => reason,
        (Ok(count), None | Some(0)) => format!("server counted {}", units::count(count)),
        (Ok(count), Some(own)) => format!(
            "server counted {}, ≤{} by being asked",
            units::count(count),
            units::count(own)
        ),
    }));
    page.row("whole run", &items, Tone::Plain);
}

/// The invariants that an overload flags, and missing connections.
const OVERLOADED: &str = "L6";
const CONNECTIONS_MISSING: &str = "L1";

/// What was checked; `told` are those of which all that they would say stands above.
pub(crate) fn checks(judged: &Judged<'_>, told: &[&str], verbose: bool, page: &mut Page) {
    let count = |status| judged.with_status(status).count() as u64;
    let (held, broken) = (count(InvariantStatus::Held), count(InvariantStatus::Broken));
    let beside = count(InvariantStatus::NotApplicable);
    let is_told = |finding: &Finding| !verbose && told.contains(&finding.id);
    let flagged = judged
        .with_status(InvariantStatus::Flagged)
        .filter(|finding| !is_told(finding));
    let flagged = flagged.count() as u64;
    let mut items = Vec::new();
    let mut tone = Tone::Plain;
    if broken > 0 {
        items.push(format!("{} BROKEN", units::count(broken)));
        tone = Tone::Refusal;
    }
    items.push(units::counted(held, "invariant holds", "invariants hold"));
    if flagged > 0 {
        items.push(format!("{} flagged", units::count(flagged)));
    }
    if verbose && beside > 0 {
        items.push(units::counted(beside, "does not apply", "do not apply"));
    }
    if !verbose && flagged + broken == 0 {
        return;
    }
    page.row("checks", &items, tone);
    for status in [
        InvariantStatus::Broken,
        InvariantStatus::Flagged,
        InvariantStatus::Held,
        InvariantStatus::NotApplicable,
    ] {
        for finding in judged.with_status(status) {
            let is_notable = matches!(status, InvariantStatus::Broken | InvariantStatus::Flagged);
            if verbose || (is_notable && !is_told(finding)) {
                check(finding, page);
            }
        }
    }
}

/// The line of one invariant.
fn check(finding: &Finding, page: &mut Page) {
    let (word, tone) = match finding.status {
        InvariantStatus::Held => ("holds", Tone::Plain),
        InvariantStatus::Flagged => ("flagged", Tone::Warning),
        InvariantStatus::Broken => ("BROKEN", Tone::Bad),
        InvariantStatus::NotApplicable => ("does not apply", Tone::Plain),
    };
    let line = match finding.detail.as_str() {
        "" => word.to_owned(),
        detail => format!("{word}: {detail}"),
    };
    page.row(&format!("  {}", finding.id), &[line], tone);
}
