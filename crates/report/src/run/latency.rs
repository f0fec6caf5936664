//! Response times: the table of mean and quantiles by what they are of, their precision, the parts
//! of the tail, and the full percentile spectrum.

use std::collections::BTreeSet;

use brunt_judge::{
    CleanFigures, Grade, Interval, Judged, Quantile, ResponseQuantiles, RunFigures, SignalId,
    Summary, Verdict,
};
use brunt_load::LoadModel;
use brunt_record::{
    Greeting, Histogram, Latencies, MeanParts, Run, max_at_least_ns, mean_at_least_ns,
};

use super::clean_beside;
use crate::hdr::{Spectrum, SpectrumStep};
use crate::page::{Grid, Page, Tone, WIDE};
use crate::units::{self, counted};

/// The columns of the table.
const COLUMNS: [(&str, Of); 7] = [
    ("mean", Of::Mean),
    ("p50", Of::Quantile(0.5)),
    ("p90", Of::Quantile(0.9)),
    ("p95", P95),
    ("p99", Of::Quantile(0.99)),
    ("p99.9", Of::Quantile(0.999)),
    ("max", Of::Max),
];
/// It has room where the page is wider than the least.
const P95: Of = Of::Quantile(0.95);
/// The grid of the table: all columns take 80 of the page.
const GRID: Grid = Grid { label: 17, cell: 9 };
/// The row of the response times that the verdict rests on.
const LABEL: &str = "latency";
/// Parts of a response time under this share of it are left out.
const PART_MIN: f64 = 0.01;
/// Share of the service times from which on their transfer has a row, and the first byte with it.
const TRANSFER_MIN: f64 = 0.05;
/// Service times have a row where their mean or maximum is this share below that of the response.
const SERVICE_DIFFERS: f64 = 0.05;
/// Differences of the service time below this, nanoseconds, are noise from run to run.
const SERVICE_DIFFERS_NS: f64 = 10_000.0;
/// Stands where there is no reply to time.
const NO_SUCCESS: &str = "no successful reply to a request of the window";

/// What a column is of.
#[derive(Clone, Copy, PartialEq)]
enum Of {
    Mean,
    Quantile(f64),
    Max,
}

/// Adds the table and what belongs to it to the page. On a full page with the rows that change
/// nothing about how the response times are to be read.
pub(super) fn table(judged: &Judged<'_>, page: &mut Page) {
    let is_full = page.is_full();
    let (run, summary) = (judged.run, &judged.summary);
    let latencies = &run.latencies;
    if !is_full && is_short(latencies, page) {
        return;
    }
    let is_sessions = matches!(run.plan.load.model, LoadModel::Sessions { .. });
    let is_open = matches!(run.plan.load.model, LoadModel::Open { .. });
    // Elsewhere the response time is the service time.
    let since = if is_open { "since due" } else { "since sent" };
    let has_connect = run.connects_per_request() && !is_sessions;
    let warns = |id| {
        let found = judged.judgement.signal(id);
        found.is_some_and(|signal| matches!(signal.grade, Grade::Warn | Grade::Fail))
    };
    let is_client_limited = judged.judgement.verdict == Verdict::ClientLimited;
    let mut table = Table::new(page);
    if let Some(clean) = judged.undisturbed() {
        table.row(LABEL, &Durations::clean(clean), "without steal");
        table.precision(|q| clean.response_quantile(q));
        table.row("  whole", &Durations::response(run), since);
    } else {
        table.response(judged, since);
        if let Some(clean) = clean_beside(judged).filter(|_| is_full) {
            table.row("  without steal", &Durations::clean(clean), "");
        }
    }
    if has_connect {
        table.row(
            "  with connect",
            &Durations::with_connect(run),
            "since connect",
        );
    }
    table.ended("error replies", &latencies.response_error, since);
    if is_open && (is_full || service_differs(latencies)) {
        table.ended("service time", &latencies.service, "since sent");
        let since = "latency counts from the planned instant, service time from the send";
        table.legend(&latencies.service, since);
        if latencies.unfinished.count() > 0 {
            let replies = "service time is of replies alone, latency of all that was planned";
            table.legend(&latencies.service, replies);
        }
    }
    let counts = is_client_limited || warns(SignalId::OwnShare) || own_differs(run);
    if is_full || counts && is_within(&latencies.split.rest, &latencies.response) {
        let every = run.plan.observation.stamps.every();
        let is_sampled = every.is_some_and(|every| every.get() > 1);
        let note = if is_sampled { "sampled" } else { "" };
        table.ended("of the server", &latencies.split.rest, note);
        if is_sampled && !is_full {
            let [stamped, all] = [&latencies.split.rest, &latencies.response];
            let [stamped, all] = [stamped, all].map(|of| units::count(of.count()));
            let words = format!("sampled: {stamped} of the {all} replies have kernel time stamps");
            table.legend(&latencies.split.rest, &words);
        }
    }
    if is_full {
        table.ended("of brunt", &latencies.split.own, "");
    }
    if is_full || warns(SignalId::ScheduleLag) {
        let has_schedule = run.plan.load.model.schedule().is_some();
        let note = if has_schedule {
            "sent late by"
        } else {
            "reply to send"
        };
        table.ended("lag", &latencies.lag, note);
    }
    if is_full || transfer_counts(latencies) {
        // Of the head: a body that is made while it is sent comes long after it.
        table.ended("first byte", &latencies.first_byte, "since sent");
        table.ended("transfer", &latencies.transfer, "since then");
    }
    if is_full || opens_connections(run, summary) && !has_connect {
        table.ended("connect", &latencies.connect, "");
        table.ended("TLS", &latencies.tls, "");
    }
    if is_full && let Greeting::Prescribed(Some([label, note])) = run.protocol().greeting {
        table.ended(label, &latencies.greeting, note);
    }
    if is_sessions {
        table.ended("first reply", &latencies.first_reply, "since due");
        let since = "first reply counts from the planned instant, latency from the send";
        table.legend(&latencies.first_reply, since);
    }
    if is_full {
        table.too_few();
        stamps(run, page);
    }
}

/// Adds what there is in one line where it is too little for a table.
fn is_short(latencies: &Latencies, page: &mut Page) -> bool {
    let (response, unfinished) = (&latencies.response, &latencies.unfinished);
    if unfinished.count() > 0 || latencies.response_error.count() > 0 {
        return false;
    }
    let replies = counted(response.count(), "reply", "replies");
    let ends = response.min_ns().zip(response.max_ns());
    let items = match (ends, response.mean_ns()) {
        (Some((min_ns, _)), _) if response.count() == 1 => {
            vec![format!("{} (one reply)", units::duration(min_ns))]
        }
        (Some((min_ns, max_ns)), Some(mean_ns)) => {
            if matches!(Quantile::of(response, 0.5), Quantile::Known { .. }) {
                return false;
            }
            let [least, most] = [min_ns, max_ns].map(units::duration);
            vec![
                format!("mean {}", duration(mean_ns)),
                format!("{least} to {most}"),
                format!("too few for quantiles ({replies})"),
            ]
        }
        _ => vec![NO_SUCCESS.to_owned()],
    };
    page.row(LABEL, &items, Tone::Plain);
    true
}

/// Whether connections were opened beside those of the set-up, so that opening them is part of the
/// load. Where the first reply has a row, that holds it.
fn opens_connections(run: &Run, summary: &Summary) -> bool {
    !matches!(run.plan.load.model, LoadModel::Sessions { .. })
        && summary.lifetime.connections_opened > run.plan.load.connections.get().into()
}

/// Whether waiting for a connection, or lag, made response times longer than service times.
fn service_differs(latencies: &Latencies) -> bool {
    let (response, service) = (&latencies.response, &latencies.service);
    let ends = |of: &Histogram| Some([of.mean_ns()?, of.max_ns()? as f64]);
    let pairs = ends(response).zip(ends(service));
    let mut pairs = pairs
        .into_iter()
        .flat_map(|(one, other)| one.into_iter().zip(other));
    latencies.unfinished.count() > 0
        || pairs.any(|(response_ns, service_ns)| {
            let least_ns = (response_ns * SERVICE_DIFFERS).max(SERVICE_DIFFERS_NS);
            (response_ns - service_ns).abs() > least_ns
        })
}

/// Whether brunt's own part of the response times is worth a row.
fn own_differs(run: &Run) -> bool {
    let split = &run.latencies.split;
    let own_ns = split.own.sum_ns() as f64;
    own_ns > (own_ns + split.rest.sum_ns() as f64) * SERVICE_DIFFERS
}

/// Whether a part of sampled response times is nowhere above the response times of all.
fn is_within(part: &Histogram, all: &Histogram) -> bool {
    let is_below = |q| part.quantile_ns(q) <= all.quantile_ns(q);
    part.mean_ns() <= all.mean_ns() && [0.5, 0.9, 0.99].into_iter().all(is_below)
}

/// Whether replies took a part of their time to come that is worth two rows.
fn transfer_counts(latencies: &Latencies) -> bool {
    let transfer_ns = latencies.transfer.sum_ns() as f64;
    let service_ns = latencies.first_byte.sum_ns() as f64 + transfer_ns;
    transfer_ns > 0.0 && transfer_ns >= service_ns * TRANSFER_MIN
}

/// What a row of the table is of. Where some of it never ended, mean and longest may be known to be
/// at least so long, and are absent else.
struct Durations<'a> {
    mean: String,
    longest: String,
    quantile: Box<dyn Fn(f64) -> Quantile + 'a>,
}

impl<'a> Durations<'a> {
    fn of(
        histogram: &Histogram,
        [mean_at_least_ns, max_at_least_ns]: [Option<u64>; 2],
        quantile: impl Fn(f64) -> Quantile + 'a,
    ) -> Self {
        let mean_ns = histogram.mean_ns().map(|ns| ns.round() as u64);
        Self {
            mean: known_or(mean_ns, mean_at_least_ns),
            longest: known_or(histogram.max_ns(), max_at_least_ns),
            quantile: Box::new(quantile),
        }
    }

    fn response(run: &'a Run) -> Self {
        let latencies = &run.latencies;
        let at_least_ns = [
            mean_at_least_ns(&latencies.response, &latencies.unfinished),
            max_at_least_ns(&latencies.response, &latencies.unfinished),
        ];
        let quantile = |q| run.response_quantile(q);
        Self::of(&latencies.response, at_least_ns, quantile)
    }

    /// Together with opening the connection.
    fn with_connect(run: &'a Run) -> Self {
        let latencies = &run.latencies;
        let at_least_ns = [
            mean_at_least_ns(&latencies.with_connect, &latencies.unfinished),
            max_at_least_ns(&latencies.with_connect, &latencies.unfinished),
        ];
        let quantile = |q| run.with_connect_quantile(q);
        Self::of(&latencies.with_connect, at_least_ns, quantile)
    }

    /// Response times without CPU steal; their maximum is not kept.
    fn clean(clean: &'a CleanFigures) -> Self {
        let quantile = |q| clean.response_quantile(q);
        Self {
            longest: String::new(),
            ..Self::of(&clean.response, [None; 2], quantile)
        }
    }
}

struct Table<'a> {
    page: &'a mut Page,
    /// The columns that the page has room for.
    columns: Vec<(&'static str, Of)>,
    /// Quantiles that some row has too few samples for, behind the samples that they need.
    needed: BTreeSet<(u64, &'static str)>,
}

impl<'a> Table<'a> {
    /// A table with its headings.
    fn new(page: &'a mut Page) -> Self {
        let is_wide = page.width() > GRID.label + COLUMNS.len() * GRID.cell;
        let mut columns = COLUMNS.to_vec();
        columns.retain(|&(_, column)| is_wide || column != P95);
        let headings: Vec<&str> = columns.iter().map(|column| column.0).collect();
        page.table_head(GRID, "", &headings, "");
        Self {
            page,
            columns,
            needed: BTreeSet::new(),
        }
    }

    /// The row of the response times with its precision, and what its bounds are of.
    fn response(&mut self, judged: &Judged<'_>, note: &str) {
        let run = judged.run;
        let is_full = self.page.is_full();
        let (response, unfinished) = (&run.latencies.response, &run.latencies.unfinished);
        if response.count() == 0 && unfinished.count() == 0 {
            // Replies with an error status have a row below.
            if is_full || run.latencies.response_error.count() == 0 {
                self.page.row(LABEL, &[NO_SUCCESS.to_owned()], Tone::Plain);
            }
            return;
        }
        self.row(LABEL, &Durations::response(run), note);
        // Where latencies grow with the duration, an interval would be one of nothing.
        if is_full || judged.overload.is_none() {
            self.precision(|q| run.response_quantile(q));
        }
        let shows_bound = self.columns.iter().any(|&(_, column)| match column {
            Of::Quantile(q) => matches!(run.response_quantile(q), Quantile::AtLeast { .. }),
            Of::Mean | Of::Max => false,
        });
        if unfinished.count() > 0 && (is_full || shows_bound) {
            let unit = run.unit();
            let [one, many] = [unit.one, unit.many].map(|noun| format!("{noun} had"));
            let unfinished = counted(unfinished.count(), &one, &many);
            let words = format!("at least so long: {unfinished} no reply in that time");
            self.page.row("  ≥", &[words], Tone::Plain);
        }
    }

    fn row(&mut self, label: &str, of: &Durations<'_>, note: &str) {
        let mut cells = Vec::new();
        for &(heading, column) in &self.columns {
            cells.push(match column {
                Of::Mean => of.mean.clone(),
                Of::Max => of.longest.clone(),
                Of::Quantile(q) => {
                    let found = (of.quantile)(q);
                    if let Quantile::TooFew { needed, .. } = found {
                        self.needed.insert((needed, heading));
                    }
                    cell(found)
                }
            });
        }
        self.page.table_row(GRID, label, &cells, note, Tone::Plain);
    }

    /// The row of durations that all ended; none where there are no such.
    fn ended(&mut self, label: &str, histogram: &Histogram, note: &str) {
        if histogram.count() > 0 {
            let of = Durations::of(histogram, [None; 2], |q| Quantile::of(histogram, q));
            self.row(&format!("  {label}"), &of, note);
        }
    }

    /// What the rows above mean, in words, where the last of them is there.
    fn legend(&mut self, histogram: &Histogram, words: &str) {
        if histogram.count() > 0 {
            self.page.row("", &[words.to_owned()], Tone::Plain);
        }
    }

    /// How well the quantiles are known; on a full page why that is not known of one.
    fn precision(&mut self, quantile: impl Fn(f64) -> Quantile) {
        const LABEL: &str = "  95 % CI";
        let mut unknown = None;
        let mut cells = Vec::new();
        for &(heading, column) in &self.columns {
            let found = match column {
                Of::Quantile(q) => Some(quantile(q)),
                Of::Mean | Of::Max => None,
            };
            cells.push(match found {
                Some(Quantile::Known { ns, interval }) if ns > 0 => match interval {
                    Ok(ends) => precision(ns, ends),
                    Err(reason) => {
                        unknown.get_or_insert((heading, reason));
                        String::new()
                    }
                },
                _ => String::new(),
            });
        }
        let mut label = LABEL;
        if cells.iter().any(|cell| !cell.is_empty()) {
            self.page.table_row(GRID, label, &cells, "", Tone::Plain);
            label = "";
        }
        if let Some((heading, reason)) = unknown.filter(|_| self.page.is_full()) {
            let words = format!("not known for {heading}: {reason}");
            self.page.row(label, &[words], Tone::Plain);
        }
    }

    /// What stands where there are too few samples: how many the quantiles need.
    fn too_few(self) {
        let needs = self.needed.iter();
        let needs =
            needs.map(|&(needed, heading)| format!("{heading} needs {}", units::count(needed)));
        let needs = needs.collect::<Vec<_>>().join(", ");
        if !needs.is_empty() {
            let words = format!("too few samples: {needs}");
            self.page
                .row(&format!("  {TOO_FEW}"), &[words], Tone::Plain);
        }
    }
}

/// Stands in place of a quantile that there are too few samples for.
const TOO_FEW: &str = "-";

/// A quantile in a table.
pub(super) fn cell(quantile: Quantile) -> String {
    match quantile {
        Quantile::TooFew { .. } => TOO_FEW.to_owned(),
        found => found.to_string(),
    }
}

/// A value, or the lower bound where there is no more.
pub(super) fn known_or(known_ns: Option<u64>, bound_ns: Option<u64>) -> String {
    match (bound_ns, known_ns) {
        (Some(ns), _) => Quantile::AtLeast { ns }.to_string(),
        (None, Some(ns)) => units::duration(ns),
        (None, None) => TOO_FEW.to_owned(),
    }
}

/// How many responses have kernel stamps, and the mean parts of the slowest of them.
fn stamps(run: &Run, page: &mut Page) {
    let latencies = &run.latencies;
    if let Ok(parts) = latencies.split.known_tail(0.99) {
        page.row("  above p99", &mean_parts(&parts), Tone::Plain);
    }
    let stamped = latencies.split.count();
    if stamped > 0 {
        let stamped = units::count(stamped);
        let responses = counted(latencies.response.count(), "response", "responses");
        let words = format!("on {stamped} of {responses}");
        page.row("  stamps", &[words], Tone::Plain);
    }
}

/// The mean response time and the parts of it that count.
fn mean_parts(parts: &MeanParts) -> Vec<String> {
    let whole_ns = parts.response_ns();
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

fn duration(ns: f64) -> String {
    units::duration(ns.round().max(0.0) as u64)
}

/// How far the value may be off, as a share: `±1.6 %`, `+290 %`.
fn precision(ns: u64, interval: Interval) -> String {
    let (below, above) = (ns.abs_diff(interval.low_ns), interval.high_ns.abs_diff(ns));
    let share = below.max(above) as f64 / ns as f64;
    // Below there is no more than the whole.
    let sign = if share > 1.0 { '+' } else { '±' };
    format!("{sign}{}", units::percent(share))
}

/// Adds how many responses took how long.
pub(super) fn spectrum(run: &Run, page: &mut Page) {
    // In the other models it is the response time.
    let service = matches!(run.plan.load.model, LoadModel::Open { .. })
        .then_some(&run.latencies.service)
        .filter(|service| service.count() > 0);
    let spectrum = Spectrum::of_response(run);
    if spectrum.steps.is_empty() {
        let none = "no reply to a request of the window".to_owned();
        return page.row("spectrum", &[none], Tone::Plain);
    }
    let mut headings = vec!["latency", "percentile", "total count"];
    headings.extend(service.map(|_| "service time"));
    page.table_head(WIDE, "spectrum", &headings, "");
    // Where nothing lies between two steps, the higher one tells it all.
    let is_last =
        |pair: &[SpectrumStep]| (pair[0].ns, pair[0].count) != (pair[1].ns, pair[1].count);
    let shown = spectrum.steps.windows(2).filter(|pair| is_last(pair));
    let shown = shown.map(|pair| &pair[0]).chain(spectrum.steps.last());
    for step in shown {
        let mut cells = vec![
            known_or(Some(step.ns), step.is_bound.then_some(step.ns)),
            format!("{:.5}", step.quantile * 100.0),
            units::count(step.count),
        ];
        let quantile = |service: &Histogram| service.quantile_ns(step.quantile);
        cells.extend(service.and_then(quantile).map(units::duration));
        page.table_row(WIDE, "", &cells, "", Tone::Plain);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_farther_end_tells_how_far_a_quantile_may_be_off() {
        for (low_ns, high_ns, words) in [
            (990, 1_005, "±1.0 %"),
            (900, 1_500, "±50 %"),
            (100, 1_200, "±90 %"),
            (900, 43_190, "+4,219 %"),
        ] {
            assert_eq!(precision(1_000, Interval { low_ns, high_ns }), words);
        }
    }
}
