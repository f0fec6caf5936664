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

/// The columns of the table.
const COLUMNS: &[Column] = &[
    Column::new("mean", Of::Mean, 80),
    Column::new("p50", Of::Quantile(0.5), 0),
    Column::new("p90", Of::Quantile(0.9), 0),
    Column::new("p95", Of::Quantile(0.95), 81),
    Column::new("p99", Of::Quantile(0.99), 0),
    Column::new("p99.9", Of::Quantile(0.999), 0),
    Column::new("max", Of::Max, 0),
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

/// One column.
#[derive(Clone, Copy)]
struct Column {
    heading: &'static str,
    of: Of,
    /// Columns that the page needs to have for it.
    page_min: usize,
}

#[derive(Clone, Copy, PartialEq)]
enum Of {
    Mean,
    Quantile(f64),
    Max,
}

impl Column {
    const fn new(heading: &'static str, of: Of, page_min: usize) -> Self {
        Self {
            heading,
            of,
            page_min,
        }
    }
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
    let words = Words::of(run);
    let warns = |id| {
        let found = judgement.signals.iter().find(|signal| signal.id == id);
        found.is_some_and(|signal| matches!(signal.grade, Grade::Warn | Grade::Fail))
    };
    let mut table = Table::new(page);
    if let Some(clean) = judged.undisturbed() {
        table.clean(LABEL, clean);
        table.response(run, "  whole", words.response);
    } else {
        table.response(run, LABEL, words.response);
        if let Some(clean) = clean_beside(judged).filter(|_| is_full) {
            table.clean(CLEAN, clean);
        }
    }
    if run.connects_per_request() && words.first_reply.is_none() {
        table.with_connect(run);
    }
    if latencies.response_error.count() > 0 {
        table.row("error replies", &latencies.response_error, words.response);
    }
    if let Some(note) = words.service.filter(|_| is_full || service_differs(run)) {
        table.row_or("service time", &latencies.service, note, NO_SUCCESS);
    }
    let is_client_limited = judgement.verdict == Verdict::ClientLimited;
    let counts = is_client_limited || warns(SignalId::OwnShare) || own_differs(run);
    table.own(run, counts);
    if is_full || warns(SignalId::ScheduleLag) {
        let none = match run.plan.model {
            LoadModel::Closed { .. } => "needs kernel receive stamps; there were none",
            _ => "nothing was due in the window",
        };
        table.row_or("lag", &latencies.lag, words.lag, none);
    }
    if is_full || transfer_counts(latencies) {
        // A body that is made while it is sent comes long after its head.
        let label = match run.protocol().has_statuses {
            true => "head, 1st byte",
            false => "1st byte",
        };
        table.row_or(label, &latencies.first_byte, "since sent", NO_SUCCESS);
        table.row_or(
            "transfer",
            &latencies.transfer,
            "since 1st byte",
            NO_SUCCESS,
        );
    }
    let has_connect = run.connects_per_request() && words.first_reply.is_none();
    if is_full || opens_connections(run, summary) && !has_connect {
        table.connections(run, summary);
    }
    if is_full && let Greeting::Prescribed(Some([label, note])) = run.protocol().greeting {
        table.row_or(label, &latencies.greeting, note, NO_CONNECTION);
    }
    if let Some(note) = words.first_reply {
        let none = "no connection due in the window was answered";
        table.row_or("first reply", &latencies.first_reply, note, none);
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
    let ends = response.min_ns().zip(response.max_ns());
    let items = match (ends, response.mean_ns()) {
        (Some((min_ns, _)), _) if response.count() == 1 => {
            vec![format!("{} (one reply)", units::duration(min_ns))]
        }
        (Some((min_ns, max_ns)), Some(mean_ns)) => {
            if matches!(Quantile::of(response, 0.5), Quantile::Known { .. }) {
                return false;
            }
            vec![
                format!("mean {}", duration(mean_ns)),
                format!("{} to {}", units::duration(min_ns), units::duration(max_ns)),
                format!(
                    "too few for quantiles ({})",
                    counted(response.count(), "reply", "replies")
                ),
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
    COLUMNS.iter().any(|column| match column.of {
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
    let (own_ns, rest_ns) = (
        run.latencies.split.own.sum_ns() as f64,
        run.latencies.split.rest.sum_ns() as f64,
    );
    own_ns > (own_ns + rest_ns) * SERVICE_DIFFERS
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

/// What a row counts from, at its end where there is room.
struct Words {
    response: &'static str,
    /// What the service time counts from; absent where the response time counts from the send as
    /// well.
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
        match run.plan.model {
            LoadModel::Closed { .. } | LoadModel::Held { .. } => closed,
            LoadModel::Open { .. } => Self {
                response: "since due",
                service: Some("since sent"),
                lag: "late by",
                first_reply: None,
            },
            LoadModel::Sessions { .. } => Self {
                lag: "late by",
                first_reply: Some("since due"),
                ..closed
            },
        }
    }
}

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
        let columns: Vec<Column> = COLUMNS
            .iter()
            .copied()
            .filter(|column| column.page_min <= page.width())
            .collect();
        let headings: Vec<String> = columns.iter().map(|it| it.heading.to_owned()).collect();
        page.table_head(GRID, "", &headings, "");
        Self {
            page,
            columns,
            needed: Vec::new(),
            too_few: Vec::new(),
        }
    }

    /// The row of the response times, with bounds where there is no more, and its precision.
    fn response(&mut self, run: &Run, label: &str, note: &str) {
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
        let mean_ns = response.mean_ns().map(|ns| ns.round() as u64);
        let is_bound = unfinished.count() > 0;
        let mean = known_or(mean_ns, run.latencies.response_mean_at_least_ns());
        let max = known_or(response.max_ns(), run.latencies.response_max_at_least_ns());
        let (cells, precision) = self.cells("response", mean, max, |q| run.response_quantile(q));
        let is_bound_told = self.columns.iter().any(|column| match column.of {
            Of::Quantile(q) => matches!(run.response_quantile(q), Quantile::AtLeast { .. }),
            Of::Mean | Of::Max => false,
        });
        self.page.table_row(GRID, label, &cells, note, Tone::Plain);
        // Where latencies grow with the duration, an interval would be one of nothing.
        if label == LABEL && (is_full || run.overload().is_none()) {
            self.precision(&precision, run.window_ns);
        }
        // Of an overload the rows above say what was never answered.
        if is_full && is_bound || is_bound_told && run.overload().is_none() {
            let unit = run.unit();
            let [one, many] = [unit.one, unit.many].map(|noun| format!("{noun} had"));
            let told = format!(
                "at least: {} no reply in that time",
                counted(unfinished.count(), &one, &many)
            );
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
        for column in self.columns.clone() {
            let mut known = None;
            cells.push(match column.of {
                Of::Mean => mean.clone(),
                Of::Max => max.clone(),
                Of::Quantile(q) => {
                    let found = quantile(q);
                    known = Some((column.heading, found));
                    self.quantile(of, column, found)
                }
            });
            precision.push(known);
        }
        (cells, precision)
    }

    /// The response times where the hypervisor took nothing; their maximum is not kept.
    fn clean(&mut self, label: &str, clean: &CleanFigures) {
        let mean = clean.response.mean_ns().map_or_else(String::new, duration);
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
        let mean_ns = histogram.mean_ns().map(|ns| ns.round() as u64);
        let mean = known_or(mean_ns, run.with_connect_mean_at_least_ns());
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
        let is_full = self.page.is_full();
        const WITHOUT: &str = "of the server";
        const SHARE: &str = "of brunt";
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
            self.row_or(SHARE, &split.own, "", none);
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
        let mean = histogram.mean_ns().map_or_else(String::new, duration);
        let max = histogram.max_ns().map_or_else(String::new, units::duration);
        let (cells, _) = self.cells(label, mean, max, |q| Quantile::of(histogram, q));
        let label = format!("  {label}");
        self.page.table_row(GRID, &label, &cells, note, Tone::Plain);
    }

    fn quantile(&mut self, label: &str, column: Column, quantile: Quantile) -> String {
        match quantile {
            Quantile::Known { ns, .. } => units::duration(ns),
            Quantile::AtLeast { ns } => at_least(ns),
            Quantile::TooFew { samples, needed } => {
                self.note_too_few(label, samples, (column.heading, needed));
                "too few".to_owned()
            }
        }
    }

    /// Where the kernel stamps come from.
    fn stamps(&mut self, run: &Run) {
        let Some(every) = run.plan.stamps.every() else {
            return;
        };
        let items = [
            match every.get() {
                1 => "on every connection".to_owned(),
                every => format!("on 1 connection in {}", units::count(every.into())),
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
        if run.plan.stamps.every().is_none() {
            return;
        }
        match run.latencies.split.known_tail(q) {
            Ok(parts) => {
                let label = format!("  {label}");
                self.page.row(&label, &mean_parts(&parts), Tone::Plain);
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

fn duration(ns: f64) -> String {
    units::duration(ns.round().max(0.0) as u64)
}
