//! A sweep in sections, as it is stored, and in CSV.

use std::io;

use brunt_judge::{
    RoundRecord, RoundUse, Spread, Sweep, SweepAxis, SweepHighest, SweepPoint, Verdict,
};

use super::{environment, figure, known, load_of, per_s};
use crate::ReportError;
use crate::figures::Object;
use crate::foreign::{data_name, word, write_csv};
use crate::page::{Grid, Page, Role, Tone};
use crate::units;

/// Columns of the two tables.
const RATES: Grid = Grid { label: 8, cell: 9 };
const USES: Grid = Grid { label: 8, cell: 10 };

/// A sweep as it is stored: its own fields, and a `summary` that is derived from them and ignored
/// when the sweep is read again.
pub(super) fn stored(sweep: &Sweep) -> Object {
    let summary = Object::new()
        // Whether every planned round was measured.
        .with("complete", sweep.is_complete())
        // Each value, ascending.
        .with("points", points(sweep))
        // The highest throughput.
        .with("highest", sweep.highest());
    Object::of(sweep).with("summary", summary)
}

/// The figures of each value over its rounds.
fn points(sweep: &Sweep) -> Vec<Object> {
    let point = |point: SweepPoint<'_>| {
        let found = Object::new()
            .with("value", point.value)
            .with("rounds", point.rounds.len())
            .with("verdict", point.verdict)
            .with("elasticity", point.elasticity);
        FIGURES.iter().fold(found, |found, (name, unit, of)| {
            found.with(&format!("{name}{unit}"), point.spread(of))
        })
    };
    sweep.points().into_iter().map(point).collect()
}

/// What the charts are drawn from.
pub(super) fn charts(sweep: &Sweep) -> Object {
    let data = Object::new()
        .with("varied", sweep.plan.varied.name())
        .with("values", &sweep.plan.values)
        .with("points", points(sweep));
    Object::new().with("sweep", data)
}

/// A value of what is varied.
fn value(axis: SweepAxis, value: f64) -> String {
    match axis {
        SweepAxis::Rate => units::rate(value),
        _ => units::count(value as u64),
    }
}

/// A value with its name.
fn named(axis: SweepAxis, number: f64) -> String {
    let name = if number == 1.0 {
        axis.name().trim_end_matches('s')
    } else {
        axis.name()
    };
    format!("{} {name}", value(axis, number))
}

/// How many rounds there were, and in which order.
fn rounds(sweep: &Sweep) -> String {
    let length = match sweep.plan.window_ns {
        Some(ns) => format!("{} each", units::duration(ns)),
        None => "ended by requests".to_owned(),
    };
    let order = match sweep.plan.seed {
        Some(seed) => format!("shuffled (seed {seed})"),
        None => "in ascending order".to_owned(),
    };
    format!("{} of each value, {length}, {order}", sweep.plan.rounds)
}

/// What is varied, and how far.
fn varied(sweep: &Sweep) -> String {
    let (plan, axis) = (&sweep.plan, sweep.plan.varied);
    let [first, last] = [plan.values.first(), plan.values.last()]
        .map(|end| end.map_or_else(String::new, |&end| value(axis, end)));
    match plan.values.len() {
        1 => format!("{} {first}", axis.name()),
        count => format!("{} {first} to {last}, {count} values", axis.name()),
    }
}

/// What a verdict says of a number of connections or a rate.
fn meaning(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Invalid => "the figures are not to be trusted",
        Verdict::NoSuccess => "no request succeeded",
        Verdict::ServerFailed => "the server was gone or silent for a time",
        Verdict::Disturbed => "other programs or the hypervisor took the CPUs",
        Verdict::Inconclusive => "the limit is not known",
        Verdict::ClientLimited => "brunt was the limit",
        Verdict::NetworkLimited => "the network was the limit",
        Verdict::RateLimited => "the planned rate, or a limit that the server sets, was the limit",
        Verdict::ThinkTime => "the think time was the limit",
        Verdict::ServerLimited => "the server was at its limit, or more connections give no more",
        Verdict::ConcurrencyLimited => "more connections give more",
        Verdict::SharedHost => "brunt and the server competed for CPUs",
        Verdict::SharedServer => "the server was busy with other clients too",
    }
}

/// The rows of what was found.
fn findings(sweep: &Sweep, page: &mut Page) {
    let axis = sweep.plan.varied;
    let shortfall = shortfall(sweep);
    let is_complete = shortfall.is_none();
    let tone = if is_complete {
        Tone::Strong
    } else {
        Tone::Warning
    };
    let mut found = |label, words| page.row(label, &[words], tone);
    if let Some(SweepHighest {
        value: best,
        successes_per_s: rate,
        from,
    }) = sweep.highest()
    {
        let per_s = per_s(sweep.load.as_ref());
        let at = if from < best {
            format!("from {} on", named(axis, from))
        } else {
            format!("at {}", named(axis, best))
        };
        let rounds = units::counted(rate.rounds as u64, "round", "rounds");
        let median = units::rate(rate.median);
        let of = if rate.rounds > 1 { "median of " } else { "" };
        found("highest", format!("{median} {per_s} {at} ({of}{rounds})"));
    }
    let points = sweep.points();
    let widths = points.iter();
    let widths = widths.filter_map(|point| half_width(point.successes_per_s()?));
    if let Some(widest) = widths.reduce(f64::max) {
        let widest = units::percent(widest);
        let words = format!("every median is known to ±{widest} or better (95 % CI)");
        found("precision", words);
    }
    if let Some(words) = shortfall {
        page.row("incomplete", &[words], Tone::Warning);
    }
}

/// Half of the interval's width, as a share of the median.
fn half_width(spread: Spread) -> Option<f64> {
    let width = (spread.high? - spread.median).max(spread.median - spread.low?);
    (spread.median > 0.0).then(|| width / spread.median)
}

/// How far the sweep came, where that is not to the end, and why.
fn shortfall(sweep: &Sweep) -> Option<String> {
    let planned = sweep.plan.values.len() as u64 * u64::from(sweep.plan.rounds);
    let planned = units::counted(planned, "round was", "rounds were");
    let rounds = units::count(sweep.rounds.len() as u64);
    let reason = sweep
        .broke_off
        .as_ref()
        .map(|reason| format!(" ({})", word(reason)));
    let reason = reason.unwrap_or_default();
    (!sweep.is_complete()).then(|| format!("{rounds} of {planned} measured{reason}"))
}

/// The sections of a sweep.
pub(super) fn sections(sweep: &Sweep, page: &mut Page) {
    let (axis, points) = (sweep.plan.varied, sweep.points());
    let url = word(&sweep.plan.url).into_owned();
    page.row("sweep", &[varied(sweep), url], Tone::Plain);
    if let Some(plan) = &sweep.load {
        page.row("load", &load_of(plan, Some(axis)), Tone::Plain);
    }
    page.row("rounds", &[rounds(sweep)], Tone::Plain);
    page.section("Environment", Role::Background);
    environment(&sweep.environment, &sweep.brunt_version, page);
    page.section("Rates and response times", Role::Figures);
    page.charts("sweep");
    let per_s = per_s(sweep.load.as_ref());
    let first = format!("{}: successful {per_s}, and response times", axis.name());
    page.line(&first, Tone::Plain);
    let heads = ["min", "median", "max", "p50", "p99"];
    page.table_head(RATES, "", &heads, "verdict");
    for point in &points {
        let rates = point.successes_per_s();
        let rate = |of: fn(Spread) -> f64| known(rates.map(of), units::rate);
        let quantile = |q: f64| {
            let spread = point.spread(|round| float(round.response.quantile_ns(q)));
            known(spread, |spread| units::duration(spread.median as u64))
        };
        let cells = [
            rate(|spread| spread.min),
            rate(|spread| spread.median),
            rate(|spread| spread.max),
            quantile(0.5),
            quantile(0.99),
        ];
        let label = value(axis, point.value);
        let verdict = point.verdict.map_or("-", |verdict| verdict.name());
        page.table_row(RATES, &label, &cells, verdict, Tone::Plain);
    }
    let mut verdicts: Vec<Verdict> = points.iter().filter_map(|point| point.verdict).collect();
    verdicts.sort_by_key(|verdict| verdict.name());
    verdicts.dedup();
    for verdict in verdicts {
        let words = format!("{}: {}", verdict.name(), meaning(verdict));
        page.row("", &[words], Tone::Plain);
    }
    page.section("Errors, CPUs and memory", Role::Figures);
    let name = axis.name();
    let second = format!("{name}: requests without success, CPUs used, and peak memory");
    page.line(&second, Tone::Plain);
    for heads in [
        ["", "server", "", "", "brunt", "", ""],
        [
            "errors", "user", "system", "memory", "user", "system", "memory",
        ],
    ] {
        page.table_head(USES, "", &heads, "");
    }
    for point in &points {
        let errors = point.spread(RoundRecord::error_share);
        let mut cells = vec![known(errors, |spread| match spread.max {
            0.0 => "0 %".to_owned(),
            share => units::percent(share),
        })];
        let sides: [fn(&RoundRecord) -> Option<RoundUse>; 2] =
            [|round| round.server, |round| Some(round.client)];
        for side in sides {
            let cpus = |of: fn(RoundUse) -> Option<f64>| {
                let spread = point.spread(|round| of(side(round)?));
                known(spread, |cpus| units::cpus(cpus.median))
            };
            let bytes = point.spread(|round| float(side(round)?.resident_bytes));
            cells.extend([
                cpus(|used| used.user_cpus),
                cpus(|used| used.system_cpus),
                known(bytes, |bytes| units::bytes(bytes.max as u64)),
            ]);
        }
        page.table_row(USES, &value(axis, point.value), &cells, "", Tone::Plain);
    }
    page.section("What was found", Role::Outcome);
    findings(sweep, page);
}

/// A count or a length of time as the number that it is.
fn float(value: Option<u64>) -> Option<f64> {
    value.map(|value| value as f64)
}

/// A figure of rounds: its name, its unit, and where it is.
type RoundFigure = (&'static str, &'static str, fn(&RoundRecord) -> Option<f64>);
/// A part of a figure: its name, and where it is.
type SpreadPart = (&'static str, fn(&Spread) -> Option<f64>);

/// The figures that data have of each value.
const FIGURES: &[RoundFigure] = &[
    ("successes", "_per_s", |round| round.successes_per_s),
    ("response_mean", "_ns", |round| {
        float(round.response.mean_ns)
    }),
    ("response_p50", "_ns", |round| float(round.response.p50_ns)),
    ("response_p90", "_ns", |round| float(round.response.p90_ns)),
    ("response_p99", "_ns", |round| float(round.response.p99_ns)),
    ("response_p99_9", "_ns", |round| {
        float(round.response.p99_9_ns)
    }),
    ("response_max", "_ns", |round| float(round.response.max_ns)),
    ("error_share", "", RoundRecord::error_share),
    ("server_user", "_cpus", |round| round.server?.user_cpus),
    ("server_system", "_cpus", |round| round.server?.system_cpus),
    ("server_resident", "_bytes", |round| {
        float(round.server?.resident_bytes)
    }),
    ("client_user", "_cpus", |round| round.client.user_cpus),
    ("client_system", "_cpus", |round| round.client.system_cpus),
    ("client_resident", "_bytes", |round| {
        float(round.client.resident_bytes)
    }),
];

/// What there is of each.
const PARTS: &[SpreadPart] = &[
    ("min", |spread| Some(spread.min)),
    ("median", |spread| Some(spread.median)),
    ("max", |spread| Some(spread.max)),
    ("median_low_95", |spread| spread.low),
    ("median_high_95", |spread| spread.high),
];

/// A header and a row per value. Names are an interface: add at the end, never rename. A cell is
/// empty where the figure is not known.
pub(super) fn table(sweep: &Sweep, out: &mut dyn io::Write) -> Result<(), ReportError> {
    let mut header = vec![
        sweep.plan.varied.data_name().to_owned(),
        "rounds".to_owned(),
        "verdict".to_owned(),
        "window_requests_issued".to_owned(),
        "window_requests_error_status".to_owned(),
        "window_requests_failed".to_owned(),
    ];
    for (name, unit, _) in FIGURES {
        header.extend(PARTS.iter().map(|(part, _)| format!("{name}_{part}{unit}")));
    }
    let points = sweep.points().into_iter();
    write_csv(&header, points.map(|point| row(&point)), out)
}

fn row(point: &SweepPoint<'_>) -> Vec<String> {
    let sum = |of: fn(&RoundRecord) -> u64| {
        let counts = point.rounds.iter().map(|round| of(round));
        counts.fold(0, u64::saturating_add).to_string()
    };
    let mut cells = vec![
        point.value.to_string(),
        point.rounds.len().to_string(),
        point.verdict.map_or_else(String::new, data_name),
        sum(|round| round.issued),
        sum(|round| round.errors),
        sum(|round| round.failed),
    ];
    for (_, _, of) in FIGURES {
        let spread = point.spread(of);
        let parts = PARTS
            .iter()
            .map(|(_, part)| figure(spread.as_ref().and_then(part)));
        cells.extend(parts);
    }
    cells
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_of_them_has_no_plural() {
        for (axis, number, words) in [
            (SweepAxis::Connections, 1.0, "1 connection"),
            (SweepAxis::Connections, 2.0, "2 connections"),
            (SweepAxis::Rate, 1.0, "1.00 rate"),
        ] {
            assert_eq!(named(axis, number), words);
        }
    }
}
