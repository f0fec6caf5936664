//! The latency table: mean and quantiles by what they are of, their precision, and the parts of the
//! tail.

use brunt_judge::{
    CleanFigures, Grade, Judged, Quantile, ResponseQuantiles, RunFigures, SignalId, Summary,
    Verdict,
};
use brunt_load::LoadModel;
use brunt_record::{Greeting, Histogram, Latencies, MeanParts, Run, TooFewInTail};

use super::precision::{self, Precision};
use super::requests::clean_beside;
use crate::page::{Grid, Page, Tone};
use crate::units::{self, counted};

/// The columns of the table, each with the columns that the page needs to have for it.
const COLUMNS: [Column; 7] = [
    ("mean", Of::Mean, 80),
    ("p50", Of::Quantile(0.5), 0),
    ("p90", Of::Quantile(0.9), 0),
    ("p95", Of::Quantile(0.95), 81),
    ("p99", Of::Quantile(0.99), 0),
    ("p99.9", Of::Quantile(0.999), 0),
    ("max", Of::Max, 0),
];
/// The grid of the table: all columns take 80 of the page.
const GRID: Grid = Grid { label: 17, cell: 9 };
/// The line above which the parts of response times are told.
const TAIL: (&str, f64) = ("above p99", 0.99);
/// The row of response times together with opening the connection.
const WITH_CONNECT: &str = "with connect";
/// The row of response times where the hypervisor took nothing.
const CLEAN: &str = "  undisturbed";
/// The row of the response times that the verdict rests on.
const LABEL: &str = "latency";
/// Parts of a response time under this share of it are left out.
const PART_MIN: f64 = 0.01;
/// Share of the service times from which on their transfer has a row, and the first byte with it.
const TRANSFER_MIN: f64 = 0.05;
/// Service times have a row where one of their columns is this share below that of the response.
const SERVICE_DIFFERS: f64 = 0.05;
/// Differences of the service time below this, nanoseconds, are noise from run to run.
const SERVICE_DIFFERS_NS: f64 = 10_000.0;

/// One column: its heading, what it is of, and the columns that the page needs to have for it.
type Column = (&'static str, Of, usize);

#[derive(Clone, Copy, PartialEq)]
enum Of {
    Mean,
    Quantile(f64),
    Max,
}

/// Prints the table and what belongs to it. On a full page with the rows that change nothing about
/// how the response times are to be read.
pub(super) fn table(judged: &Judged<'_>, page: &mut Page) {
    let is_full = page.is_full();
    let Judged {
        run,
        summary,
        judgement,
        ..
    } = judged;
    let latencies = &run.latencies;
    if !is_full && is_short(latencies, page) {
        return;
    }
    let is_sessions = matches!(run.plan.model, LoadModel::Sessions { .. });
    let is_open = matches!(run.plan.model, LoadModel::Open { .. });
    // Elsewhere the response time is the service time.
    let response = if is_open { "since due" } else { "since sent" };
    let has_connect = run.connects_per_request() && !is_sessions;
    let warns = |id| {
        let found = judgement.signal(id);
        found.is_some_and(|signal| matches!(signal.grade, Grade::Warn | Grade::Fail))
    };
    let mut table = Table::new(page);
    if let Some(clean) = judged.undisturbed() {
        table.clean(LABEL, clean);
        table.response(judged, "  whole", response);
    } else {
        table.response(judged, LABEL, response);
        if let Some(clean) = clean_beside(judged).filter(|_| is_full) {
            table.clean(CLEAN, clean);
        }
    }
    if has_connect {
        table.with_connect(run);
    }
    if latencies.response_error.count() > 0 {
        table.row("error replies", &latencies.response_error, response);
    }
    if is_open && (is_full || service_differs(run)) {
        table.row_or("service time", &latencies.service, "since sent", NO_SUCCESS);
    }
    let is_client_limited = judgement.verdict == Verdict::ClientLimited;
    let counts = is_client_limited || warns(SignalId::OwnShare) || own_differs(run);
    table.own(run, counts);
    if is_full || warns(SignalId::ScheduleLag) {
        let (note, none) = if run.plan.model.schedule().is_none() {
            (
                "reply to send",
                "needs kernel receive stamps; there were none",
            )
        } else {
            ("late by", "nothing was due in the window")
        };
        table.row_or("lag", &latencies.lag, note, none);
    }
    if is_full || transfer_counts(latencies) {
        // A body that is made while it is sent comes long after its head.
        let has_head = run.protocol().has_statuses;
        let label = if has_head {
            "head, 1st byte"
        } else {
            "1st byte"
        };
        table.row_or(label, &latencies.first_byte, "since sent", NO_SUCCESS);
        let transfer = &latencies.transfer;
        table.row_or("transfer", transfer, "since 1st byte", NO_SUCCESS);
    }
    if is_full || opens_connections(run, summary) && !has_connect {
        table.connections(run, summary);
    }
    if is_full && let Greeting::Prescribed(Some([label, note])) = run.protocol().greeting {
        table.row_or(label, &latencies.greeting, note, NO_CONNECTION);
    }
    if is_sessions {
        let none = "no connection due in the window was answered";
        table.row_or("first reply", &latencies.first_reply, "since due", none);
    }
    if is_full {
        table.tail(run);
        table.stamps(run);
        table.finish();
    }
}

/// Prints what there is in one line where it is too little for a table.
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
    page.row("latency", &items, Tone::Plain);
    true
}

/// Whether connections were opened beside those of the set-up, so that opening them is part of the
/// load. Where the first reply has a row, that holds it.
fn opens_connections(run: &Run, summary: &Summary) -> bool {
    !matches!(run.plan.model, LoadModel::Sessions { .. })
        && summary.lifetime.connections_opened > run.plan.connections.get().into()
}

/// Whether waiting for a connection, or lag, made response times longer than service times.
fn service_differs(run: &Run) -> bool {
    let (response, service) = (&run.latencies.response, &run.latencies.service);
    if service.count() == 0 {
        return false;
    }
    let differ = |response: Option<f64>, service: Option<f64>| {
        let (response, service) = (response.unwrap_or(0.0), service.unwrap_or(0.0));
        (response - service).abs() > (response * SERVICE_DIFFERS).max(SERVICE_DIFFERS_NS)
    };
    COLUMNS.iter().any(|&(_, of, _)| match of {
        Of::Mean => differ(response.mean_ns(), service.mean_ns()),
        Of::Max => differ(
            response.max_ns().map(|ns| ns as f64),
            service.max_ns().map(|ns| ns as f64),
        ),
        Of::Quantile(q) => match (run.response_quantile(q), Quantile::of(service, q)) {
            (Quantile::Known { ns, .. }, Quantile::Known { ns: service_ns, .. }) => {
                differ(Some(ns as f64), Some(service_ns as f64))
            }
            (Quantile::AtLeast { .. }, Quantile::Known { .. }) => true,
            _ => false,
        },
    })
}

/// Whether brunt's own part of the response times is worth a row.
fn own_differs(run: &Run) -> bool {
    let split = &run.latencies.split;
    let own_ns = split.own.sum_ns() as f64;
    own_ns > (own_ns + split.rest.sum_ns() as f64) * SERVICE_DIFFERS
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
const NO_CONNECTION: &str = "no connection was opened";

struct Table<'a> {
    page: &'a mut Page,
    /// The columns that the page has room for.
    columns: Vec<Column>,
    /// Quantiles that some row has too few samples for, and the samples that they need.
    needed: Vec<(&'static str, u64)>,
    /// Rows that have too few for some quantile, and their samples.
    too_few: Vec<(String, u64)>,
}

impl<'a> Table<'a> {
    /// A table with its headings.
    fn new(page: &'a mut Page) -> Self {
        let mut columns = COLUMNS.to_vec();
        columns.retain(|&(_, _, page_min)| page_min <= page.width());
        let headings: Vec<String> = columns.iter().map(|it| it.0.to_owned()).collect();
        page.table_head(GRID, "", &headings, "");
        Self {
            page,
            columns,
            needed: Vec::new(),
            too_few: Vec::new(),
        }
    }

    /// The row of the response times, with bounds where there is no more, and its precision.
    fn response(&mut self, judged: &Judged<'_>, label: &str, note: &str) {
        let run = judged.run;
        let is_full = self.page.is_full();
        let (response, unfinished) = (&run.latencies.response, &run.latencies.unfinished);
        let samples = response.count().saturating_add(unfinished.count());
        if samples == 0 {
            // Replies with an error status have a row below.
            if is_full || run.latencies.response_error.count() == 0 {
                self.none("response", NO_SUCCESS);
            }
            return;
        }
        let is_bound = unfinished.count() > 0;
        let mean = known_or(mean_ns(response), run.latencies.response_mean_at_least_ns());
        let max = known_or(response.max_ns(), run.latencies.response_max_at_least_ns());
        let (cells, precision) = self.cells("response", mean, max, |q| run.response_quantile(q));
        let is_bound_told = self.columns.iter().any(|&(_, of, _)| match of {
            Of::Quantile(q) => matches!(run.response_quantile(q), Quantile::AtLeast { .. }),
            Of::Mean | Of::Max => false,
        });
        self.page.table_row(GRID, label, &cells, note, Tone::Plain);
        // Where latencies grow with the duration, an interval would be one of nothing.
        if label == LABEL && (is_full || judged.overload.is_none()) {
            self.precision(&precision, run.window_ns);
        }
        // Of an overload the rows above say what was never answered.
        if is_full && is_bound || is_bound_told && judged.overload.is_none() {
            let unit = run.unit();
            let [one, many] = [unit.one, unit.many].map(|noun| format!("{noun} had"));
            let unfinished = counted(unfinished.count(), &one, &many);
            let told = format!("at least: {unfinished} no reply in that time");
            self.page.row("  ≥", &[told], Tone::Plain);
        }
    }

    /// The cells of a row that notes call `of`, and how well its quantiles are known.
    fn cells(
        &mut self,
        of: &str,
        mean: String,
        max: String,
        quantile: impl Fn(f64) -> Quantile,
    ) -> (Vec<String>, Precision) {
        let (mut cells, mut precision) = (Vec::new(), Precision::default());
        for (heading, of_column, _) in self.columns.clone() {
            let mut known = None;
            cells.push(match of_column {
                Of::Mean => mean.clone(),
                Of::Max => max.clone(),
                Of::Quantile(q) => {
                    let found = quantile(q);
                    known = Some((heading, found));
                    if let Quantile::TooFew { samples, needed } = found {
                        self.note_too_few(of, samples, (heading, needed));
                    }
                    found.to_string()
                }
            });
            precision.push(known);
        }
        (cells, precision)
    }

    /// The response times where the hypervisor took nothing; their maximum is not kept.
    fn clean(&mut self, label: &str, clean: &CleanFigures) {
        let mean = known_or(mean_ns(&clean.response), None);
        let quantile = |q| clean.response_quantile(q);
        let (cells, precision) = self.cells("undisturbed", mean, String::new(), quantile);
        let note = if label == LABEL { "undisturbed" } else { "" };
        self.page.table_row(GRID, label, &cells, note, Tone::Plain);
        if label == LABEL {
            self.precision(&precision, clean.clean_ns);
        }
    }

    /// The response times together with opening the connection.
    fn with_connect(&mut self, run: &Run) {
        let histogram = &run.latencies.with_connect;
        let mean = known_or(mean_ns(histogram), run.with_connect_mean_at_least_ns());
        let max = known_or(histogram.max_ns(), run.with_connect_max_at_least_ns());
        let quantile = |q| run.with_connect_quantile(q);
        let (cells, _) = self.cells(WITH_CONNECT, mean, max, quantile);
        let label = format!("  {WITH_CONNECT}");
        self.page
            .table_row(GRID, &label, &cells, "since connect", Tone::Plain);
    }

    /// How well the response times are known.
    fn precision(&mut self, precision: &Precision, window_ns: u64) {
        let is_full = self.page.is_full();
        let rows = precision.rows(is_full);
        if let ([(label, cells)], false) = (&*rows, is_full)
            && let Some(needs) = precision.needs(window_ns)
            && self.page.has_room(GRID, cells, &needs)
        {
            return self.page.table_row(GRID, label, cells, &needs, Tone::Plain);
        }
        for (label, cells) in &rows {
            self.page.table_row(GRID, label, cells, "", Tone::Plain);
        }
        if let Some(reason) = precision.unknown(window_ns) {
            let label = if rows.is_empty() {
                precision::LABEL
            } else {
                ""
            };
            self.page.row(label, &[reason], Tone::Plain);
        }
    }

    /// The response times without brunt's own share where that counts, and the share itself on
    /// a full page.
    fn own(&mut self, run: &Run, counts: bool) {
        const WITHOUT: &str = "of the server";
        let is_full = self.page.is_full();
        let split = &run.latencies.split;
        if !(is_full || counts) {
            return;
        }
        if run.plan.stamps.every().is_none() {
            return self.none(WITHOUT, "not known: no kernel stamps were taken");
        }
        let none = "not known: no successful reply on a connection with kernel stamps";
        self.row_or(WITHOUT, &split.rest, "less brunt's own", none);
        if is_full {
            self.row_or("of brunt", &split.own, "", none);
        }
    }

    /// What opening connections took.
    fn connections(&mut self, run: &Run, summary: &Summary) {
        let latencies = &run.latencies;
        self.row_or("connect", &latencies.connect, "", NO_CONNECTION);
        if run.plan.tls().is_some() {
            self.row_or("TLS", &latencies.tls, handshakes(summary), NO_CONNECTION);
        }
    }

    /// A row, or why there is none.
    fn row_or(&mut self, label: &str, histogram: &Histogram, note: &str, none: &str) {
        match histogram.max_ns() {
            Some(_) => self.row(label, histogram, note),
            None => self.none(label, none),
        }
    }

    fn none(&mut self, label: &str, reason: &str) {
        let label = format!("  {label}");
        self.page.row(&label, &[reason.to_owned()], Tone::Plain);
    }

    fn row(&mut self, label: &str, histogram: &Histogram, note: &str) {
        let mean = known_or(mean_ns(histogram), None);
        let max = known_or(histogram.max_ns(), None);
        let (cells, _) = self.cells(label, mean, max, |q| Quantile::of(histogram, q));
        let label = format!("  {label}");
        self.page.table_row(GRID, &label, &cells, note, Tone::Plain);
    }

    /// Where the kernel stamps come from.
    fn stamps(&mut self, run: &Run) {
        let Some(every) = run.plan.stamps.every() else {
            return;
        };
        let connections = match every.get() {
            1 => "on every connection".to_owned(),
            every => format!("on 1 connection in {}", units::count(every.into())),
        };
        let stamped = units::count(run.latencies.split.count());
        let responses = counted(run.latencies.response.count(), "response", "responses");
        let items = [connections, format!("on {stamped} of {responses}")];
        self.page.row("  stamps", &items, Tone::Plain);
    }

    /// The parts of the response times in the tail.
    fn tail(&mut self, run: &Run) {
        let (label, q) = TAIL;
        if run.plan.stamps.every().is_none() {
            return;
        }
        match run.latencies.split.known_tail(q) {
            Ok(parts) => {
                let parts = mean_parts(&parts);
                self.page.row(&format!("  {label}"), &parts, Tone::Plain);
            }
            Err(TooFewInTail { responses, needed }) => {
                let has = counted(responses, "response", "responses");
                let needs = units::count(needed);
                let words = format!("not known: {has} with kernel stamps, needs {needs}");
                self.none(label, &words);
            }
        }
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

/// A value, or the lower bound where there is no more.
fn known_or(known_ns: Option<u64>, bound_ns: Option<u64>) -> String {
    match (bound_ns, known_ns) {
        (Some(ns), _) => at_least(ns),
        (None, Some(ns)) => units::duration(ns),
        (None, None) => String::new(),
    }
}

/// A lower bound. One of 0 says nothing.
pub(super) fn at_least(ns: u64) -> String {
    match ns {
        0 => "unknown".to_owned(),
        _ => format!("≥{}", units::duration(ns)),
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

fn mean_ns(histogram: &Histogram) -> Option<u64> {
    histogram.mean_ns().map(|ns| ns.round() as u64)
}

fn duration(ns: f64) -> String {
    units::duration(ns.round().max(0.0) as u64)
}
