//! The rows of connections, those that were only kept open among them, and of all phases of a run.

use brunt_judge::{Figure, Held, Judged, Summary};
use brunt_load::{LoadModel, Work};
use brunt_record::{Histogram, Run};

use super::{counts, load, verdict};
use crate::figures::{connections_replaced, server_counted};
use crate::page::{Page, Tone};
use crate::units;

/// The line above all others where connections were still missing when the window began.
pub(super) fn unopened(run: &Run, summary: &Summary) -> Option<String> {
    let unopened = summary.live.unopened_at_start.filter(|&count| count > 0)?;
    let were = if unopened == 1 { "was" } else { "were" };
    let unopened = units::count(unopened.into());
    let asked = run.plan.load.connections.get().into();
    let asked = units::counted(asked, "connection", "connections");
    Some(format!(
        "{unopened} of {asked} {were} not open when the window began"
    ))
}

/// The connections, where they are not just those of the set-up, open throughout.
pub(super) fn connections(judged: &Judged<'_>, page: &mut Page) {
    let (run, summary, is_full) = (judged.run, &judged.summary, page.is_full());
    let live = &summary.live;
    let all = &summary.lifetime;
    let is_sessions = matches!(run.plan.load.model, LoadModel::Sessions { .. });
    let is_steady = !is_sessions && live.min == live.asked && live.max == live.asked;
    // The report shows attempts as it shows requests, and the run keeps none of them open.
    let connects_only = run.work() == Work::Connects;
    let mut items = Vec::new();
    if !connects_only {
        items.push(live_connections(summary, is_sessions, is_steady));
    }
    let shows_plan = !is_full && is_sessions && load::all_sent(run, summary);
    if shows_plan {
        let planned = units::count(summary.arrivals.planned);
        items.push(format!("{planned} planned, all opened"));
        items.extend(load::waited(run, summary));
    }
    // Those of workers that were too few are no connections of this load.
    let opened = all.connections_opened;
    let opened_beside = is_full || opened != u64::from(live.asked);
    if opened_beside && !shows_plan {
        let opened = format!("{} opened", units::count(opened));
        let resumed = format!("{} resumed", units::count(all.handshakes_resumed));
        let has_tls = run.first().negotiated.tls.is_some();
        if has_tls && is_full {
            let full = all.handshakes_full;
            let full = units::counted(full, "full handshake", "full handshakes");
            items.extend([opened, format!("{full}, {resumed}")]);
        } else if has_tls && run.plan.tls().is_some_and(|tls| tls.resumption) {
            items.push(format!("{opened}, {resumed}"));
        } else {
            items.push(opened);
        }
    }
    let set_up = short_set_up(run);
    let is_short_set_up = set_up.is_some();
    items.extend(set_up);
    // What was opened beside those asked for is told in full.
    let replaced = if is_full {
        connections_replaced(run, summary)
    } else {
        0
    };
    let (closed, shut) = (all.connections_closed_idle, all.connections_shut);
    let common = items.len();
    let seldom = [
        (closed, "closed by the server while idle"),
        (all.idle_replies, "of these after a reply such as 408"),
        (replaced, "replaced"),
        (all.goaways, "that the server asked to replace (GOAWAY)"),
        (shut, "times the server set MAX_CONCURRENT_STREAMS to 0"),
    ];
    items.extend(counts(seldom, false));
    let is_usual = is_steady && !opened_beside && !is_short_set_up && items.len() == common;
    if is_full || is_sessions || !is_usual {
        // An open loop opens no connection that no request needs.
        let is_unneeded = live.missing.unneeded_ns > 0;
        let is_short = !is_sessions && !connects_only && !is_unneeded && live.min < live.asked;
        let tone = Tone::Warning.when(is_short);
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
    let set_up = run.set_up().filter(|set_up| set_up.open < set_up.asked)?;
    let when = match (set_up.timed_out, set_up.waited_ns) {
        (false, _) => "ended".to_owned(),
        (true, None) => "was over its limit".to_owned(),
        (true, Some(ns)) => format!("ended, after {} without a new one", units::duration(ns)),
    };
    let open = units::count(set_up.open.into());
    let asked = units::count(set_up.asked.into());
    let mostly = set_up
        .main_failure()
        .map_or_else(String::new, |(kind, count)| {
            format!(" (mostly {}: {})", kind.label(), units::count(count))
        });
    Some(format!("{open} of {asked} open when set-up {when}{mostly}"))
}

/// How many were open over the window.
fn live_connections(summary: &Summary, is_sessions: bool, is_steady: bool) -> String {
    let live = &summary.live;
    let count = |connections: u32| units::count(connections.into());
    if is_steady {
        return format!("{} open throughout", count(live.asked));
    }
    let mean = match summary.live_mean {
        Figure::Known(mean) => format!("mean {}", units::rate(mean)),
        Figure::Absent(_) => "mean not known".to_owned(),
    };
    let open = format!("{} to {} open, {mean}", count(live.min), count(live.max));
    let asked = count(live.asked);
    if is_sessions {
        // The row of the load says how many there may be.
        open
    } else if live.most > live.asked {
        format!("{open}, of {asked} to {} asked", count(live.most))
    } else {
        format!("{open}, of {asked} asked")
    }
}

/// The requests of all phases, with the server's own count of them where it was asked for.
pub(super) fn whole_run(judged: &Judged<'_>, page: &mut Page) {
    let (run, summary, is_full) = (judged.run, &judged.summary, page.is_full());
    let counted = server_counted(run);
    if (!is_full && counted.is_none()) || !run.work().has_units() {
        return;
    }
    let all = &summary.lifetime;
    let (sent, answered) = (all.requests_sent, all.replies.total());
    let failed = all.failures.of_requests(run.work());
    let mut items = vec![format!("{} sent", units::count(sent))];
    if !is_full && answered == sent {
        items[0].push_str(" and answered");
    } else {
        items.push(format!("{} answered", units::count(answered)));
    }
    let in_flight = summary.in_flight_at_end;
    let unanswered = [(failed, "failed"), (in_flight, "in flight at the end")];
    items.extend(counts(unanswered, is_full));
    let server_count = run.server_count().ok().flatten();
    let own_reads = server_count.map(|count| count.own_reads);
    items.extend(counted.map(|counted| match (counted, own_reads) {
        (Err(reason), _) => reason,
        (Ok(count), None | Some(0)) => format!("server counted {}", units::count(count)),
        (Ok(count), Some(own)) => {
            let [count, own] = [count, own].map(units::count);
            format!("server counted {count}, up to {own} of them readings of brunt")
        }
    }));
    page.row("whole run", &items, Tone::Plain);
}

/// All rows of held connections; none in a run of requests.
pub(super) fn held(judged: &Judged<'_>, page: &mut Page) {
    let Some(found) = Held::of(judged.run, &judged.summary) else {
        return;
    };
    held_headline(judged, &found, page);
    if judged.withheld().is_some() {
        return;
    }
    held_ends(&found, page);
    opening(judged, &found, page);
    if let Some(bytes) = found.client_bytes_per_connection.known() {
        let each = format!("{} of brunt's process each", units::bytes(bytes));
        page.row("memory", &[each], Tone::Plain);
    }
}

/// How many were open at the end.
pub(super) fn held_headline(judged: &Judged<'_>, held: &Held, page: &mut Page) {
    if verdict::withheld("held", judged, page) {
        return;
    }
    let [open, asked] = [held.open_at_end, held.asked].map(units::count);
    let mut items = vec![format!("{open} of {asked} open at the end")];
    if held.open_min < held.asked {
        let least = units::count(held.open_min);
        items.push(format!("{least} at the fewest in the window"));
    }
    page.row("held", &items, Tone::Strong);
}

/// What was opened, and what became of it.
fn held_ends(held: &Held, page: &mut Page) {
    let ends = [
        (held.opened, "opened"),
        (held.closed_by_server, "closed by the server"),
    ];
    let seldom = [
        (held.given_up, "given up for what the server sent"),
        (held.attempts_failed, "attempts failed"),
    ];
    let items: Vec<String> = counts(ends, true).chain(counts(seldom, false)).collect();
    let is_lossy = held.closed_by_server + held.given_up + held.attempts_failed > 0;
    page.row("connections", &items, Tone::Warning.when(is_lossy));
}

/// How long opening took.
fn opening(judged: &Judged<'_>, held: &Held, page: &mut Page) {
    let latencies = &judged.run.latencies;
    let mut items = Vec::new();
    if let Some(ns) = held.set_up_ns.known() {
        items.push(format!("{} in all", units::duration(ns)));
    }
    for (name, histogram) in [
        ("TCP", &latencies.connect),
        ("TLS", &latencies.tls),
        ("first reply", &latencies.greeting),
    ] {
        items.extend(opening_quantiles(histogram).map(|times| format!("{name} {times}")));
    }
    page.row("opening", &items, Tone::Plain);
}

fn opening_quantiles(histogram: &Histogram) -> Option<String> {
    let (median_ns, longest_ns) = (histogram.quantile_ns(0.5)?, histogram.max_ns()?);
    let [median, longest] = [median_ns, longest_ns].map(units::duration);
    Some(format!("p50 {median}, at most {longest}"))
}
