//! Response times: the table of mean and quantiles by what they are of, their precision, the parts
//! of the tail, and the full percentile spectrum.

use std::collections::BTreeSet;

use brunt_judge::{
    CleanFigures, Grade, Interval, Judged, NoInterval, Quantile, RateInterval, ResponseQuantiles,
    RunFigures, SignalId, Summary, Verdict,
};
use brunt_load::LoadModel;
use brunt_record::{
    Greeting, Histogram, Latencies, MeanParts, Run, TooFewInTail, max_at_least_ns, mean_at_least_ns,
};

use super::requests::clean_beside;
use crate::hdr::{Spectrum, Step};
use crate::objective;
use crate::page::{Grid, NARROW, Page, Tone, WIDE};
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
/// The row of response times without CPU steal.
const CLEAN: &str = "  without steal";
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
    let is_sessions = matches!(run.plan.load.model, LoadModel::Sessions { .. });
    let is_open = matches!(run.plan.load.model, LoadModel::Open { .. });
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
        let (note, none) = if run.plan.load.model.schedule().is_none() {
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
    !matches!(run.plan.load.model, LoadModel::Sessions { .. })
        && summary.lifetime.connections_opened > run.plan.load.connections.get().into()
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
    /// Quantiles that some row has too few samples for, behind the samples that they need.
    needed: BTreeSet<(u64, &'static str)>,
    /// Rows that have too few for some quantile, and their samples.
    too_few: Vec<(String, u64)>,
}

impl<'a> Table<'a> {
    /// A table with its headings.
    fn new(page: &'a mut Page) -> Self {
        let mut columns = COLUMNS.to_vec();
        columns.retain(|&(_, _, page_min)| page_min <= page.width());
        let headings: Vec<&str> = columns.iter().map(|column| column.0).collect();
        page.table_head(GRID, "", &headings, "");
        Self {
            page,
            columns,
            needed: BTreeSet::new(),
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
        let mean = known_or(mean_ns(response), mean_at_least_ns(response, unfinished));
        let max = known_or(response.max_ns(), max_at_least_ns(response, unfinished));
        let (cells, precision) = self.cells("response", mean, max, |q| run.response_quantile(q));
        let shows_bound = self.columns.iter().any(|&(_, of, _)| match of {
            Of::Quantile(q) => matches!(run.response_quantile(q), Quantile::AtLeast { .. }),
            Of::Mean | Of::Max => false,
        });
        self.page.table_row(GRID, label, &cells, note, Tone::Plain);
        // Where latencies grow with the duration, an interval would be one of nothing.
        if label == LABEL && (is_full || judged.overload.is_none()) {
            self.precision(&precision, run.window_ns);
        }
        // Of an overload the rows above say what was never answered.
        if is_full && is_bound || shows_bound && judged.overload.is_none() {
            let unit = run.unit();
            let [one, many] = [unit.one, unit.many].map(|noun| format!("{noun} had"));
            let unfinished = counted(unfinished.count(), &one, &many);
            let words = format!("at least: {unfinished} no reply in that time");
            self.page.row("  ≥", &[words], Tone::Plain);
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
                        self.needed.insert((needed, heading));
                        self.too_few.push((of.to_owned(), samples));
                    }
                    found.to_string()
                }
            });
            precision.push(known);
        }
        (cells, precision)
    }

    /// The response times without CPU steal; their maximum is not kept.
    fn clean(&mut self, label: &str, clean: &CleanFigures) {
        let mean = known_or(mean_ns(&clean.response), None);
        let quantile = |q| clean.response_quantile(q);
        let (cells, precision) = self.cells("without steal", mean, String::new(), quantile);
        let note = if label == LABEL { "without steal" } else { "" };
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

    /// How well the response times are known, and on a full page why that is not known of some.
    fn precision(&mut self, precision: &Precision, window_ns: u64) {
        let is_full = self.page.is_full();
        let rows = precision.rows(is_full);
        for (label, cells) in &rows {
            self.page.table_row(GRID, label, cells, "", Tone::Plain);
        }
        if let Some(reason) = precision.unknown(window_ns).filter(|_| is_full) {
            let label = if rows.is_empty() { PRECISION } else { "" };
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
        let Some(every) = run.plan.observation.stamps.every() else {
            return self.none(WITHOUT, "not known: no kernel stamps were taken");
        };
        let none = "not known: no successful reply on a connection with kernel stamps";
        let note = if every.get() > 1 { "sampled" } else { "" };
        self.row_or(WITHOUT, &split.rest, note, none);
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
        let Some(every) = run.plan.observation.stamps.every() else {
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
        if run.plan.observation.stamps.every().is_none() {
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

    /// Says what was too few, and for what.
    fn finish(mut self) {
        self.too_few.dedup();
        let needs = |(index, &(needed, heading)): (usize, &(u64, &str))| match index {
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
    Quantile::AtLeast { ns }.to_string()
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

/// Heading of the precision of the response times.
pub(super) const PRECISION: &str = "  ± 95 %";
/// A share beyond which `±` says little: the ends do.
const SHARE_MOST: f64 = 0.5;
/// What stands in place of an interval.
const UNKNOWN: &str = "?";

/// How far the rate `per_s` may be off, behind it; empty where it is planned to vary.
pub(crate) fn of_rate(interval: Result<RateInterval, NoInterval>, per_s: f64) -> String {
    let RateInterval {
        low_per_s,
        high_per_s,
    } = match interval {
        Ok(interval) => interval,
        Err(NoInterval::PlannedToVary) => return String::new(),
        Err(_) => return " (± unknown: too short)".to_owned(),
    };
    let off = (high_per_s - per_s).max(per_s - low_per_s);
    if per_s <= 0.0 || !off.is_finite() {
        String::new()
    } else if off > per_s * SHARE_MOST {
        let (low, high) = (units::rate(low_per_s), units::rate(high_per_s));
        format!(" (95 %: {low} to {high})")
    } else {
        // Rounded up where it would look like none.
        format!(" ±{}", units::percent((off / per_s).max(0.001)))
    }
}

/// The precision of the columns of a table of quantiles.
#[derive(Default)]
pub(crate) struct Precision {
    /// Absent where the column has none by its nature.
    columns: Vec<Option<Known>>,
}

/// Heading, value and interval of a quantile.
type Known = (&'static str, u64, Result<Interval, NoInterval>);

impl Precision {
    /// Adds a column: with a quantile by its heading, or none.
    pub(crate) fn push(&mut self, column: Option<(&'static str, Quantile)>) {
        self.columns.push(match column {
            Some((heading, Quantile::Known { ns, interval })) if ns > 0 => {
                Some((heading, ns, interval))
            }
            _ => None,
        });
    }

    /// The rows of the table, each with a label and its cells. There is one row of shares; where an
    /// interval is wide, a cell has its farther end. With `is_full` and a wide interval, there are
    /// two rows with the ends, and a mark where there is no interval. There is no row without any.
    pub(crate) fn rows(&self, is_full: bool) -> Vec<(&'static str, Vec<String>)> {
        let row = |label, cell: fn(u64, Interval) -> String| {
            let cells = self.columns.iter().map(|column| match *column {
                Some((_, ns, Ok(interval))) => cell(ns, interval),
                Some((_, _, Err(_))) if is_full => UNKNOWN.to_owned(),
                Some((_, _, Err(_))) | None => String::new(),
            });
            (label, cells.collect())
        };
        let known = || self.columns.iter().flatten();
        let mut intervals = known().filter_map(|&(_, ns, interval)| Some((ns, interval.ok()?)));
        let Some(first) = intervals.next() else {
            return Vec::new();
        };
        let is_wide = |(ns, interval)| share(ns, interval) > SHARE_MOST;
        if is_full && (is_wide(first) || intervals.any(is_wide)) {
            vec![
                row("  95 % from", |_, interval| {
                    units::duration(interval.low_ns)
                }),
                row("  to", |_, interval| units::duration(interval.high_ns)),
            ]
        } else {
            vec![row(PRECISION, share_or_end)]
        }
    }

    /// Says which columns have no interval, and why the first of them has none. Where a longer run
    /// is what is missing, says how much longer than `window_ns` it would have to be.
    pub(crate) fn unknown(&self, window_ns: u64) -> Option<String> {
        let columns = || self.columns.iter().flatten();
        let unknown = |&&(_, _, interval): &&Known| interval.is_err();
        let (heading, _, interval) = columns().find(unknown)?;
        let reason = reason_words(interval.err()?, window_ns);
        let which = match columns().filter(unknown).count() {
            count if count == columns().count() => String::new(),
            1 => format!(" for {heading}"),
            _ => format!(" from {heading} on"),
        };
        Some(format!("{UNKNOWN}{which}: {reason}"))
    }
}

/// How far `ns` is from the farther end of `interval`, as a share of `ns`.
fn share(ns: u64, interval: Interval) -> f64 {
    let off_ns = interval
        .high_ns
        .abs_diff(ns)
        .max(ns.abs_diff(interval.low_ns));
    off_ns as f64 / ns as f64
}

/// How far the value may be off, as a share. Where the share is so large that it says little, the
/// end of the interval.
fn share_or_end(ns: u64, interval: Interval) -> String {
    let share = share(ns, interval);
    if share <= SHARE_MOST {
        units::percent(share)
    } else if interval.high_ns.abs_diff(ns) >= ns.abs_diff(interval.low_ns) {
        format!("≤{}", units::duration(interval.high_ns))
    } else {
        format!("≥{}", units::duration(interval.low_ns))
    }
}

/// The reason, with the option that mends it.
fn reason_words(reason: NoInterval, window_ns: u64) -> String {
    match reason.times_longer() {
        Some(times) => {
            let length = typed(window_ns.saturating_mul(times));
            format!("the run is too short to tell; try -d {length}")
        }
        None => reason.to_string(),
    }
}

/// A duration as `-d` takes it, rounded up: `40s`, `12m`, `3h`.
fn typed(duration_ns: u64) -> String {
    const SECOND_NS: u64 = 1_000_000_000;
    let seconds = duration_ns.div_ceil(SECOND_NS);
    match seconds {
        0..=300 => format!("{seconds}s"),
        301..=10_800 => format!("{}m", seconds.div_ceil(60)),
        _ => format!("{}h", seconds.div_ceil(3_600)),
    }
}

/// The quantiles whose intervals are given.
const QUANTILES: [f64; 8] = [0.5, 0.75, 0.9, 0.95, 0.99, 0.999, 0.999_9, 0.999_99];

/// Prints both tables.
pub(super) fn spectrum(run: &Run, page: &mut Page) {
    // In the other models it is the response time.
    let service = matches!(run.plan.load.model, LoadModel::Open { .. })
        .then_some(&run.latencies.service)
        .filter(|service| service.count() > 0);
    quantiles(run, service, page);
    steps(run, service, page);
}

fn quantiles(run: &Run, service: Option<&Histogram>, page: &mut Page) {
    let mut headings = vec!["response", "95 % from", "to"];
    headings.extend(service.map(|_| "service"));
    page.table_head(NARROW, "quantiles", &headings, "");
    for q in QUANTILES {
        let name = objective::quantile(q);
        let mut cells = match run.response_quantile(q) {
            Quantile::Known { ns, interval } => {
                let ends = interval.map(|ends| [ends.low_ns, ends.high_ns].map(units::duration));
                let [low, high] = ends.unwrap_or_default();
                vec![units::duration(ns), low, high]
            }
            Quantile::AtLeast { ns } => vec![at_least(ns), String::new(), String::new()],
            Quantile::TooFew { samples, needed } => {
                let [samples, needed] = [samples, needed].map(units::count);
                let reason = format!("and above: too few samples ({samples}, need {needed})");
                page.row(&format!("  {name}"), &[reason], Tone::Plain);
                break;
            }
        };
        cells.extend(service.map(|service| Quantile::of(service, q).to_string()));
        page.table_row(NARROW, &format!("  {name}"), &cells, "", Tone::Plain);
    }
}

fn steps(run: &Run, service: Option<&Histogram>, page: &mut Page) {
    let spectrum = Spectrum::of_response(run);
    page.blank();
    if spectrum.steps.is_empty() {
        let none = "no reply to a request of the window".to_owned();
        return page.row("spectrum", &[none], Tone::Plain);
    }
    let mut headings = vec!["response", "percentile", "count"];
    headings.extend(service.map(|_| "service"));
    page.table_head(WIDE, "spectrum", &headings, "");
    // Where nothing lies between two steps, the higher one tells it all.
    let is_last = |pair: &[Step]| (pair[0].ns, pair[0].count) != (pair[1].ns, pair[1].count);
    let shown = spectrum.steps.windows(2).filter(|pair| is_last(pair));
    let shown = shown.map(|pair| &pair[0]).chain(spectrum.steps.last());
    for step in shown {
        let mut cells = vec![
            if step.is_bound {
                at_least(step.ns)
            } else {
                units::duration(step.ns)
            },
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
    fn a_rate_has_a_share_or_two_ends() {
        for (ends, per_s, words) in [
            (Ok((99.2, 100.8)), 100.0, " ±0.8 %"),
            (Ok((99.2, 104.0)), 100.0, " ±4.0 %"),
            (Ok((100.0, 100.0)), 100.0, " ±0.1 %"),
            (Ok((50.0, 150.0)), 100.0, " ±50 %"),
            (Ok((0.0, 30.0)), 10.0, " (95 %: 0 to 30.0)"),
            (Ok((0.0, 0.0)), 0.0, ""),
            (Err(NoInterval::PlannedToVary), 10.0, ""),
            (Err(NoInterval::NoWindow), 10.0, " (± unknown: too short)"),
        ] {
            let interval = ends.map(|(low_per_s, high_per_s)| RateInterval {
                low_per_s,
                high_per_s,
            });
            assert_eq!(of_rate(interval, per_s), words);
        }
    }

    type Ends = Result<(u64, u64), NoInterval>;

    fn of(columns: &[Option<(&'static str, Ends)>]) -> Precision {
        let mut precision = Precision::default();
        for column in columns {
            precision.push(column.map(|(heading, ends)| {
                let interval = ends.map(|(low_ns, high_ns)| Interval { low_ns, high_ns });
                let ns = 1_000;
                (heading, Quantile::Known { ns, interval })
            }));
        }
        precision
    }

    const WINDOW_NS: u64 = 10_000_000_000;

    const ALIKE: NoInterval = NoInterval::TooAlike {
        samples: 20_000,
        worth: 1_234,
        needed: 3_688,
    };

    #[test]
    fn narrow_intervals_are_one_row_and_wide_ones_two() {
        let narrow = of(&[
            None,
            Some(("p50", Ok((990, 1_005)))),
            Some(("p90", Ok((900, 1_500)))),
        ]);
        let [(label, cells)] = narrow.rows(true).try_into().unwrap();
        assert_eq!(label, PRECISION);
        assert_eq!(cells, ["", "1.0 %", "50 %"]);
        assert_eq!(narrow.unknown(WINDOW_NS), None);
        let wide = of(&[
            Some(("p50", Ok((990, 1_005)))),
            Some(("p90", Ok((900, 43_190)))),
            Some(("p99", Err(ALIKE))),
        ]);
        let [low, high] = wide.rows(true).try_into().unwrap();
        assert_eq!(low.1, ["990 ns", "900 ns", "?"]);
        assert_eq!(high.1, ["1.00 µs", "43.2 µs", "?"]);
    }

    #[test]
    fn lengths_are_as_they_are_typed() {
        for (seconds, words) in [(1, "1s"), (300, "300s"), (301, "6m"), (10_801, "4h")] {
            assert_eq!(typed(seconds * 1_000_000_000), words);
        }
    }

    #[test]
    fn what_is_not_known_is_said_with_its_reason() {
        let ends = || Ok((990, 1_005));
        for (columns, words) in [
            (
                of(&[Some(("p50", ends())), Some(("p90", Err(ALIKE)))]),
                "? for p90: the run is too short to tell; try -d 30s",
            ),
            (
                of(&[
                    Some(("p50", ends())),
                    Some(("p90", Err(ALIKE))),
                    Some(("p99", Err(ALIKE))),
                    None,
                ]),
                "? from p90 on: the run is too short to tell; try -d 30s",
            ),
            (
                of(&[Some(("p50", Err(NoInterval::PlannedToVary))), None]),
                "?: the rate is planned to vary over the window",
            ),
        ] {
            assert_eq!(columns.unknown(WINDOW_NS).as_deref(), Some(words));
        }
        assert!(of(&[Some(("p50", Err(ALIKE)))]).rows(true).is_empty());
        assert!(of(&[None]).rows(false).is_empty());
    }
}
