//! Stored experiments of several rounds: sweeps, comparisons and searches for a capacity, in every
//! form.

mod capacity;
mod comparison;
mod comparison_text;
pub(crate) mod environment;
mod page;
mod sweep;
mod sweep_table;
mod words;

use std::io;

use brunt_judge::{Capacity, ComparedRounds, Sweep};
use serde::Serialize;

use crate::summary;
use crate::{Format, ReportError, Style, foreign};

pub use capacity::StoredCapacity;
pub use comparison::{ComparisonFigures, StoredComparison};
pub use sweep::{StoredSweep, SweepSummary};
pub use words::{exceeded_limits, limits_not_judged, limits_open, side_name};

/// An experiment, as it is stored.
#[derive(Clone, Debug, PartialEq)]
pub enum Experiment {
    /// Rounds at several values of a setting.
    Sweep(Sweep),
    /// Rounds of several servers in turns.
    Comparison(ComparedRounds),
    /// A search for the highest rate that holds objectives.
    Capacity(Capacity),
}

impl Experiment {
    /// What the experiment is called in messages.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Sweep(_) => "sweep",
            Self::Comparison(_) => "comparison",
            Self::Capacity(_) => "search for a capacity",
        }
    }
}

/// Prints an experiment to `out` and flushes it. `style` matters to the text form only.
///
/// # Errors
///
/// When `out` refuses the bytes, or when a figure cannot be encoded.
pub fn write_experiment(
    experiment: &Experiment,
    format: Format,
    style: &Style,
    out: &mut dyn io::Write,
) -> Result<(), ReportError> {
    match (format, experiment) {
        (Format::Text, Experiment::Sweep(it)) => {
            out.write_all(sweep::text(it, style).as_bytes())?
        }
        (Format::Text, Experiment::Comparison(it)) => {
            out.write_all(comparison_text::text(it, style).as_bytes())?;
        }
        (Format::Text, Experiment::Capacity(it)) => {
            out.write_all(capacity::text(it, style).as_bytes())?;
        }
        (Format::Json, Experiment::Sweep(it)) => json(&StoredSweep::of(it), out)?,
        (Format::Json, Experiment::Comparison(it)) => json(&StoredComparison::of(it), out)?,
        (Format::Json, Experiment::Capacity(it)) => json(&StoredCapacity::of(it), out)?,
        (Format::Summary, Experiment::Capacity(it)) => {
            let line = foreign::json_line(&capacity::summary(it)?).map_err(ReportError::Encode)?;
            out.write_all(line.as_bytes())?;
        }
        (Format::Summary, _) => return Err(ReportError::SummaryOfOneRun),
        (Format::Csv, Experiment::Sweep(it)) => sweep_table::write(it, out)?,
        (Format::Csv, Experiment::Comparison(it)) => comparison::table(it, out)?,
        (Format::Csv, Experiment::Capacity(it)) => {
            summary::write_table(&capacity::summary(it)?, out)?;
        }
        (Format::Markdown, Experiment::Comparison(it)) => {
            out.write_all(comparison_text::markdown(it).as_bytes())?;
        }
        (Format::Markdown, _) => return Err(ReportError::MarkdownOfComparison),
        (Format::Html, Experiment::Sweep(it)) => out.write_all(page::sweep(it)?.as_bytes())?,
        (Format::Html, Experiment::Comparison(it)) => {
            out.write_all(page::comparison(it)?.as_bytes())?;
        }
        (Format::Html, Experiment::Capacity(it)) => {
            out.write_all(page::capacity(it)?.as_bytes())?;
        }
    }
    Ok(out.flush()?)
}

/// Writes what a search found as test results in JUnit's form: each of its objectives is a test.
///
/// # Errors
///
/// When `out` refuses the bytes.
pub fn write_search_junit(capacity: &Capacity, out: &mut dyn io::Write) -> Result<(), ReportError> {
    out.write_all(capacity::test_results(capacity).as_bytes())?;
    Ok(out.flush()?)
}

/// Indented JSON with a newline at the end.
fn json(value: &impl Serialize, out: &mut dyn io::Write) -> Result<(), ReportError> {
    let mut bytes = Vec::new();
    foreign::write_json(&mut bytes, value).map_err(ReportError::Encode)?;
    bytes.push(b'\n');
    Ok(out.write_all(&bytes)?)
}

/// A table in CSV; cells are made fit for spreadsheets.
fn csv(
    header: &[String],
    rows: impl Iterator<Item = Vec<String>>,
    out: &mut dyn io::Write,
) -> Result<(), ReportError> {
    let mut writer = csv::Writer::from_writer(out);
    let failed = |error: csv::Error| ReportError::Output(io::Error::other(error));
    writer.write_record(header).map_err(failed)?;
    for row in rows {
        let cells = row.iter().map(|cell| foreign::cell(cell).into_owned());
        writer.write_record(cells).map_err(failed)?;
    }
    Ok(writer.flush()?)
}

/// A figure in a table; empty where it is not known.
fn figure(value: Option<impl ToString>) -> String {
    value.map_or_else(String::new, |value| value.to_string())
}
