//! A sweep in CSV: a header and a row per value. Column names are stable and end in their unit; a
//! cell is empty where the figure is not known.

use std::io;

use brunt_judge::{Spread, Sweep, SweepPoint};

use super::{csv, figure};
use crate::ReportError;
use crate::figures::data_name;

/// A figure of a value: its name, its unit, and where it is.
type SpreadColumn = (
    &'static str,
    &'static str,
    fn(&SweepPoint) -> Option<Spread>,
);
/// A part of a figure: its name, and where it is.
type Part = (&'static str, fn(&Spread) -> Option<f64>);

/// The figures that have five columns each: the ends over the rounds, the median, and the ends of
/// its interval.
const SPREADS: &[SpreadColumn] = &[
    ("successes", "_per_s", |point| point.successes_per_s),
    ("response_mean", "_ns", |point| point.mean_ns),
    ("response_p50", "_ns", |point| point.p50_ns),
    ("response_p90", "_ns", |point| point.p90_ns),
    ("response_p99", "_ns", |point| point.p99_ns),
    ("response_p99_9", "_ns", |point| point.p99_9_ns),
    ("response_max", "_ns", |point| point.max_ns),
    ("error_share", "", |point| point.error_share),
    ("server_user", "_cpus", |point| point.server.user_cpus),
    ("server_system", "_cpus", |point| point.server.system_cpus),
    ("server_resident", "_bytes", |point| {
        point.server.resident_bytes
    }),
    ("client_user", "_cpus", |point| point.client.user_cpus),
    ("client_system", "_cpus", |point| point.client.system_cpus),
    ("client_resident", "_bytes", |point| {
        point.client.resident_bytes
    }),
];

/// What there is of each.
const PARTS: &[Part] = &[
    ("min", |spread| Some(spread.min)),
    ("median", |spread| Some(spread.median)),
    ("max", |spread| Some(spread.max)),
    ("median_low_95", |spread| spread.low),
    ("median_high_95", |spread| spread.high),
];

/// Names are an interface: add at the end, never rename.
pub(super) fn write(sweep: &Sweep, out: &mut dyn io::Write) -> Result<(), ReportError> {
    let mut header = vec![
        sweep.plan.varied.data_name().to_owned(),
        "rounds".to_owned(),
        "verdict".to_owned(),
        "window_requests_issued".to_owned(),
        "window_requests_error_status".to_owned(),
        "window_requests_failed".to_owned(),
    ];
    for (name, unit, _) in SPREADS {
        header.extend(PARTS.iter().map(|(part, _)| format!("{name}_{part}{unit}")));
    }
    let points = sweep.points().into_iter();
    csv(&header, points.map(|point| row(&point)), out)
}

fn row(point: &SweepPoint) -> Vec<String> {
    let mut cells = vec![
        point.value.to_string(),
        point.rounds.to_string(),
        point.verdict.map_or_else(String::new, data_name),
        point.issued.to_string(),
        point.errors.to_string(),
        point.failed.to_string(),
    ];
    for (_, _, of) in SPREADS {
        let spread = of(point);
        let parts = PARTS.iter().map(|(_, part)| figure(part_of(spread, *part)));
        cells.extend(parts);
    }
    cells
}

fn part_of(spread: Option<Spread>, part: fn(&Spread) -> Option<f64>) -> Option<f64> {
    part(spread.as_ref()?)
}
