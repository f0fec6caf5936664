//! The latency table: quantiles by what they are of, their precision, and the parts of the tail.

use brunt_measure::{
    Histogram, Latencies, MeanParts, ModelDescription, Protocol, Quantile, Run, Summary,
};

use super::describe::counted;
use super::layout::{Page, Tone};
use crate::figures::tail_is_known;
use crate::units;

/// The quantiles of the table, by their heading.
const QUANTILES: &[(&str, f64)] = &[("p50", 0.5), ("p90", 0.9), ("p99", 0.99), ("p99.9", 0.999)];
/// The line above which the parts of response times are told.
const TAIL: (&str, f64) = ("above p99", 0.99);
/// Parts of a response time under this share of it are left out.
const PART_MIN: f64 = 0.01;
/// Share of the service times from which on their transfer has a row, and the first byte with it.
const TRANSFER_MIN: f64 = 0.05;

/// Prints the table and what belongs to it; `client_limited`: with which row to believe.
pub(super) fn table(
    run: &Run,
    summary: &Summary,
    client_limited: bool,
    verbose: bool,
    page: &mut Page,
) {
    let latencies = &run.latencies;
    let words = Words::of(run);
    let headings = QUANTILES.iter().map(|(heading, _)| *heading).chain(["max"]);
    let headings: Vec<String> = headings.map(str::to_owned).collect();
    page.cells("latency", &headings, "", Tone::Plain);
    let mut table = Table {
        page,
        needed: Vec::new(),
        too_few: Vec::new(),
    };
    table.response(run, words.response);
    if latencies.response_error.count() > 0 {
        table.row("errors", &latencies.response_error, words.response, "");
    }
    if let Some(note) = words.service {
        table.row("service", &latencies.service, note, NO_SUCCESS);
    }
    match run.load.stamps_every {
        Some(_) => {
            let (split, none) = (
                &latencies.split,
                "no successful reply on a connection with kernel stamps",
            );
            table.row("brunt's", &split.own, "its own share", none);
            table.row("the rest", &split.rest, "without it", none);
        }
        None => table.none(
            "brunt's",
            "its own share needs kernel stamps; none were taken",
        ),
    }
    table.row(
        "lag",
        &latencies.lag,
        words.lag,
        "nothing was due in the window",
    );
    if verbose || transfer_counts(latencies) {
        table.row("1st byte", &latencies.first_byte, "since sent", NO_SUCCESS);
        table.row(
            "transfer",
            &latencies.transfer,
            "since 1st byte",
            NO_SUCCESS,
        );
    }
    let none = "no connection was opened";
    table.row("connect", &latencies.connect, "", none);
    if run.load.tls.is_some() {
        table.row("TLS", &latencies.tls, handshakes(summary), none);
    }
    if verbose && run.load.protocol == Protocol::Http2 {
        table.row("settings", &latencies.greeting, "of HTTP/2", none);
    }
    if let Some(note) = words.first_reply {
        let none = "no connection due in the window was answered";
        table.row("1st reply", &latencies.first_reply, note, none);
    }
    table.tail(run);
    if client_limited {
        table.without_own_share(run);
    }
    if verbose {
        table.stamps(run);
    }
    table.finish();
}

/// Whether replies took a part of their time to come that is worth two rows.
fn transfer_counts(latencies: &Latencies) -> bool {
    let transfer_ns = latencies.transfer.sum_ns() as f64;
    let service_ns = latencies.first_byte.sum_ns() as f64 + transfer_ns;
    transfer_ns > 0.0 && transfer_ns >= service_ns * TRANSFER_MIN
}

/// Which handshakes the row of TLS is of.
fn handshakes(summary: &Summary) -> &'static str {
    let lifetime = &summary.lifetime;
    match (lifetime.handshakes_full, lifetime.handshakes_resumed) {
        (_, 0) => "full",
        (0, _) => "resumed",
        _ => "full and resumed",
    }
}

const NO_SUCCESS: &str = "no successful reply to a request of the window";

/// What a row counts from, at its end where there is room.
struct Words {
    response: &'static str,
    /// Absent where the response time counts from the send as well.
    service: Option<&'static str>,
    lag: &'static str,
    first_reply: Option<&'static str>,
}

impl Words {
    fn of(run: &Run) -> Self {
        let closed = Self {
            response: "since sent",
            service: None,
            lag: "reply to send",
            first_reply: None,
        };
        match run.load.model {
            ModelDescription::Closed { .. } => closed,
            ModelDescription::Open { .. } => Self {
                response: "since due",
                service: Some("since sent"),
                lag: "late by",
                first_reply: None,
            },
            ModelDescription::Sessions { .. } => Self {
                lag: "late by",
                first_reply: Some("since due"),
                ..closed
            },
        }
    }
}

struct Table<'a> {
    page: &'a mut Page,
    /// Quantiles that some row has too few samples for, and the samples that they need.
    needed: Vec<(&'static str, u64)>,
    /// Rows that have too few for some quantile, and their samples.
    too_few: Vec<(String, u64)>,
}

impl Table<'_> {
    /// The row of the response times, with bounds where there is no more, and its precision.
    fn response(&mut self, run: &Run, note: &str) {
        let (response, unfinished) = (&run.latencies.response, &run.latencies.unfinished);
        let max = match (response.max_ns(), unfinished.max_ns()) {
            (None, None) => return self.none("response", NO_SUCCESS),
            (Some(max_ns), None) => units::duration(max_ns),
            (max_ns, Some(bound_ns)) => at_least(max_ns.map_or(bound_ns, |ns| ns.max(bound_ns))),
        };
        let quantiles: Vec<Quantile> = QUANTILES
            .iter()
            .map(|&(_, q)| run.response_quantile(q))
            .collect();
        self.line("response", &quantiles, max, note);
        let precision: Vec<String> = quantiles.iter().map(half_width).collect();
        if precision.iter().any(|cell| !cell.is_empty()) {
            self.page.cells("  ± 95 %", &precision, "", Tone::Plain);
        }
    }

    fn row(&mut self, label: &str, histogram: &Histogram, note: &str, none: &str) {
        let Some(max_ns) = histogram.max_ns() else {
            return self.none(label, none);
        };
        let quantiles: Vec<Quantile> = QUANTILES
            .iter()
            .map(|&(_, q)| histogram.quantile(q))
            .collect();
        self.line(label, &quantiles, units::duration(max_ns), note);
    }

    fn none(&mut self, label: &str, reason: &str) {
        let label = format!("  {label}");
        self.page.row(&label, &[reason.to_owned()], Tone::Plain);
    }

    fn line(&mut self, label: &str, quantiles: &[Quantile], max: String, note: &str) {
        let mut cells = Vec::new();
        for (quantile, &(heading, _)) in quantiles.iter().zip(QUANTILES) {
            cells.push(match *quantile {
                Quantile::Known { ns, .. } => units::duration(ns),
                Quantile::AtLeast { ns } => at_least(ns),
                Quantile::TooFew { samples, needed } => {
                    self.note_too_few(label, samples, (heading, needed));
                    "too few".to_owned()
                }
            });
        }
        cells.push(max);
        let label = format!("  {label}");
        self.page.cells(&label, &cells, note, Tone::Plain);
    }

    /// Where the kernel stamps come from.
    fn stamps(&mut self, run: &Run) {
        let Some(every) = run.load.stamps_every else {
            return;
        };
        let items = [
            match every {
                1 => "on every connection".to_owned(),
                _ => format!("on 1 connection in {}", units::count(every.into())),
            },
            format!(
                "on {} of {}",
                units::count(run.latencies.split.count()),
                counted(run.latencies.response.count(), "response", "responses")
            ),
        ];
        self.page.row("  stamps", &items, Tone::Plain);
    }

    /// The parts of the response times in the tail.
    fn tail(&mut self, run: &Run) {
        let (label, q) = TAIL;
        if !tail_is_known(run, q) {
            return;
        }
        if let Some(parts) = run.latencies.split.tail(q) {
            self.page
                .row(&format!("  {label}"), &mean_parts(&parts), Tone::Plain);
        }
    }

    /// Which row is about the server where brunt was the limit.
    fn without_own_share(&mut self, run: &Run) {
        let words = if run.latencies.split.rest.count() > 0 {
            "brunt was the limit: `the rest` is the latency without its share"
        } else {
            "brunt was the limit, and its share of these is not known"
        };
        self.page.row("  note", &[words.to_owned()], Tone::Warning);
    }

    fn note_too_few(&mut self, label: &str, samples: u64, needed: (&'static str, u64)) {
        if !self.needed.contains(&needed) {
            self.needed.push(needed);
        }
        let row = (label.to_owned(), samples);
        if !self.too_few.contains(&row) {
            self.too_few.push(row);
        }
    }

    /// Says what was too few, and for what.
    fn finish(mut self) {
        self.needed.sort_by_key(|&(_, needed)| needed);
        let needs = |(index, &(heading, needed)): (usize, &(&str, u64))| match index {
            0 => format!("{heading} needs {}", counted(needed, "sample", "samples")),
            _ => format!("{heading} {}", units::count(needed)),
        };
        let has = |(index, (label, samples)): (usize, &(String, u64))| {
            let has = if index == 0 { " has" } else { "" };
            format!("{label}{has} {}", units::count(*samples))
        };
        let needs: Vec<String> = self.needed.iter().enumerate().map(needs).collect();
        let has: Vec<String> = self.too_few.iter().enumerate().map(has).collect();
        if !has.is_empty() {
            let items = [needs.join(", "), has.join(", ")];
            self.page.row("  too few", &items, Tone::Plain);
        }
    }
}

/// A lower bound. One of 0 says nothing.
pub(super) fn at_least(ns: u64) -> String {
    match ns {
        0 => "unknown".to_owned(),
        _ => format!("≥ {}", units::duration(ns)),
    }
}

/// Half the width of a quantile's interval as a share of its value; empty where there is none.
fn half_width(quantile: &Quantile) -> String {
    match quantile {
        Quantile::Known { ns, interval } if *ns > 0 => {
            let width_ns = interval.high_ns.saturating_sub(interval.low_ns);
            units::percent(width_ns as f64 / 2.0 / *ns as f64)
        }
        _ => String::new(),
    }
}

/// The mean response time and the parts of it that count.
fn mean_parts(parts: &MeanParts) -> Vec<String> {
    let whole_ns = parts.response_ns();
    let duration = |ns: f64| units::duration(ns.round() as u64);
    let mut items = vec![format!("mean {}", duration(whole_ns))];
    for (ns, words) in [
        (parts.wait_ns, "waiting for a connection"),
        (parts.server_ns, "server and network"),
        (parts.send_ns, "sending"),
        (parts.own_ns(), "brunt"),
    ] {
        if ns >= whole_ns * PART_MIN && ns > 0.0 {
            items.push(format!("{} {words}", duration(ns)));
        }
    }
    items
}
