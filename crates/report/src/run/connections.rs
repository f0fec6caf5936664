//! The rows of connections, those that were only kept open among them, and of all phases of a run.

use brunt_judge::{Figure, Held, Judged, RunFigures, Summary};
use brunt_load::{LoadModel, Work};
use brunt_record::Run;

use super::{counts, load, verdict};
use crate::figures::server_counted;
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
    let (live, all) = (&summary.live, &summary.lifetime);
    let is_sessions = matches!(run.plan.load.model, LoadModel::Sessions { .. });
    let is_steady = !is_sessions && live.min == live.asked && live.max == live.asked;
    let mut items = Vec::new();
    // Those of workers that were too few are no connections of this load.
    let opened = all.connections_opened;
    if !is_full && is_sessions && load::all_sent(run, summary) {
        let planned = units::count(summary.arrivals.planned);
        items.push(format!("{planned} planned, all opened"));
        items.extend(counts([(summary.arrivals.waited, load::WAITED)], false));
    } else if is_full || opened != u64::from(live.asked) {
        items.push(format!("{} opened", units::count(opened)));
        if run.plan.tls().is_some_and(|tls| is_full || tls.resumption) {
            let [full, resumed] = [all.handshakes_full, all.handshakes_resumed].map(units::count);
            items.push(format!("{full} full and {resumed} resumed handshakes"));
        }
    }
    items.extend(short_set_up(run));
    let (closed, shut) = (all.connections_closed_idle, all.connections_shut);
    let seldom = [
        (closed, "closed by the server while idle"),
        (all.idle_replies, "of these after a reply such as 408"),
        (all.goaways, "that the server asked to replace (GOAWAY)"),
        (shut, "times the server set MAX_CONCURRENT_STREAMS to 0"),
    ];
    items.extend(counts(seldom, false));
    if run.work() == Work::Connects {
        // The report shows attempts as it shows requests, and the run keeps none of them open.
        page.row("all phases", &items, Tone::Plain);
    } else if is_full || !is_steady || !items.is_empty() {
        // Of connections that carry one request each, few are open, and that is no news.
        if is_full || !run.connects_per_request() {
            items.insert(0, live_connections(summary, is_steady));
        }
        // An open loop opens no connection that no request needs.
        let is_unneeded = live.missing.unneeded_ns > 0;
        let is_short = !is_sessions && !is_unneeded && live.min < live.asked;
        page.row("connections", &items, Tone::Warning.when(is_short));
    }
}

/// What was open when set-up ended, where that was not all that was asked for.
fn short_set_up(run: &Run) -> Option<String> {
    let set_up = run.set_up().filter(|set_up| set_up.open < set_up.asked)?;
    let open = units::count(set_up.open.into());
    let asked = units::count(set_up.asked.into());
    let when = if set_up.timed_out {
        "was over its limit"
    } else {
        "ended"
    };
    Some(format!("{open} of {asked} open when set-up {when}"))
}

/// How many were open over the window.
fn live_connections(summary: &Summary, is_steady: bool) -> String {
    let live = &summary.live;
    let count = |connections: u32| units::count(connections.into());
    if is_steady {
        return format!("{} open throughout", count(live.asked));
    }
    let mut open = format!("{} to {} open", count(live.min), count(live.max));
    if let Figure::Known(mean) = summary.live_mean {
        open = format!("{open}, mean {}", units::rate(mean));
    }
    open
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
            format!("the server counted {count}, up to {own} of them brunt's reads of its counter")
        }
    }));
    page.row("whole run", &items, Tone::Plain);
}

/// All rows of held connections; none in a run of requests.
pub(super) fn held(judged: &Judged<'_>, page: &mut Page) {
    let Some(held) = Held::of(judged.run, &judged.summary) else {
        return;
    };
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
    let ends = [
        (held.closed_by_server, "closed by the server"),
        (held.given_up, "given up for what the server sent"),
        (held.attempts_failed, "attempts failed"),
    ];
    let is_lossy = ends.iter().any(|(count, _)| *count > 0);
    let items = counts([(held.opened, "opened")], true).chain(counts(ends, false));
    let items: Vec<String> = items.collect();
    page.row("connections", &items, Tone::Warning.when(is_lossy));
    let set_up = held.set_up_ns.known();
    let mut items: Vec<String> = set_up
        .map(|ns| format!("{} in all", units::duration(ns)))
        .into_iter()
        .collect();
    let latencies = &judged.run.latencies;
    for (name, histogram) in [
        ("TCP", &latencies.connect),
        ("TLS", &latencies.tls),
        ("first reply", &latencies.greeting),
    ] {
        let ends = histogram.quantile_ns(0.5).zip(histogram.max_ns());
        items.extend(ends.map(|(median_ns, longest_ns)| {
            let [median, longest] = [median_ns, longest_ns].map(units::duration);
            format!("{name} p50 {median}, at most {longest}")
        }));
    }
    page.row("opening", &items, Tone::Plain);
    if let Some(bytes) = held.client_bytes_per_connection.known() {
        let each = format!("{} of brunt's process each", units::bytes(bytes));
        page.row("memory", &[each], Tone::Plain);
    }
}
