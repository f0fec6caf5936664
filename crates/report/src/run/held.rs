//! The rows of connections that were only kept open.

use brunt_judge::{Held, Judged};
use brunt_record::Histogram;

use super::checks;
use crate::page::{Page, Tone};
use crate::units;

/// All rows of held connections; none in a run of requests.
pub(super) fn rows(judged: &Judged<'_>, page: &mut Page) {
    let Some(held) = Held::of(judged.run, &judged.summary) else {
        return;
    };
    headline(judged, &held, page);
    if judged.withheld().is_some() {
        return;
    }
    ends(&held, page);
    opening(judged, &held, page);
    if let Some(bytes) = held.client_bytes_per_connection.known() {
        let each = format!("{} of brunt's process each", units::bytes(bytes));
        page.row("memory", &[each], Tone::Plain);
    }
}

/// How many were open at the end.
pub(super) fn headline(judged: &Judged<'_>, held: &Held, page: &mut Page) {
    if checks::withheld("held", judged, page) {
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
fn ends(held: &Held, page: &mut Page) {
    let mut items = vec![format!("{} opened", units::count(held.opened))];
    for (count, words) in [
        (held.closed_by_server, "closed by the server"),
        (held.given_up, "given up for what the server sent"),
        (held.attempts_failed, "attempts failed"),
    ] {
        if count > 0 || words == "closed by the server" {
            items.push(format!("{} {words}", units::count(count)));
        }
    }
    let is_lossy = held.closed_by_server + held.given_up + held.attempts_failed > 0;
    let tone = if is_lossy { Tone::Warning } else { Tone::Plain };
    page.row("connections", &items, tone);
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
        items.extend(quantiles(histogram).map(|times| format!("{name} {times}")));
    }
    page.row("opening", &items, Tone::Plain);
}

fn quantiles(histogram: &Histogram) -> Option<String> {
    let (median_ns, longest_ns) = (histogram.quantile_ns(0.5)?, histogram.max_ns()?);
    let [median, longest] = [median_ns, longest_ns].map(units::duration);
    Some(format!("p50 {median}, at most {longest}"))
}
