//! Reports: a [`Run`] in, bytes out, as text for people, HTML with charts, JSON for keeping, CSV
//! for tables and Markdown of comparisons for pull requests.
//!
//! [`write()`] prints any of them, [`read()`] takes a stored run (the JSON form) back, so that
//! every report can be printed again later. [`write_hlog`] and [`write_hgrm`]
//! write files for the tools of HdrHistogram. A run with a broken invariant is printed and stored
//! with its counts, but no rate is given for it.
//!
//! Open `run` first: the rows of a page. `layout` lays them out as text and HTML.

mod experiment;
mod figures;
mod foreign;
mod hdr;
mod layout;
mod objective;
mod page;
mod progress;
mod run;
mod store;
mod wrap;

use std::fmt;
use std::io;

use brunt_judge::Judged;
pub use brunt_judge::units;
#[cfg(doc)]
use brunt_record::Run;
use hdrhistogram::serialization::V2DeflateSerializeError;
use thiserror::Error;

pub use experiment::{Experiment, limits_that, side_name, write_experiment, write_search_junit};
pub use foreign::{Foreign, annotation, lines, printable};
pub use hdr::{write_hgrm, write_hlog};
pub use progress::{
    AgentProgress, PhaseLength, PlannedRate, RunProgress, progress_json, progress_line,
};
pub use store::{ReadError, STORED_BYTES_MAX, Stored, read, read_stored};

/// The form of a report.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Format {
    /// Aligned lines for people.
    #[default]
    Text,
    /// The whole run with its histograms, which [`read()`] takes back.
    Json,
    /// One flat object of 34 keys on one line of JSON, for programs. Of a run only.
    Summary,
    /// A header and one row.
    Csv,
    /// A few lines for a pull request. Of a comparison only.
    Markdown,
    /// A page with charts, in one file that needs no network.
    Html,
}

/// The JSON Schema (draft 2020-12) of what [`Format::Summary`] writes of a run.
pub const SUMMARY_SCHEMA: &str = include_str!("../schema/summary.schema.json");

impl Format {
    /// Every format of a run.
    pub const OF_RUNS: &'static [Self] =
        &[Self::Text, Self::Json, Self::Summary, Self::Csv, Self::Html];

    /// Name of the format, as typed.
    pub fn name(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Json => "json",
            Self::Summary => "summary",
            Self::Csv => "csv",
            Self::Markdown => "markdown",
            Self::Html => "html",
        }
    }
}

impl fmt::Display for Format {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
    }
}

/// How the text report looks. The other formats have one look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Style {
    /// Whether escape codes for colour may be used: only on a terminal.
    pub colour: bool,
    /// Columns of the terminal; lines are wrapped there, but never narrower than 80 nor wider
    /// than 160.
    pub width: u16,
    /// Whether every invariant, status code and stage is named.
    pub verbose: bool,
    /// Whether the full percentile spectrum of the response times follows.
    pub spectrum: bool,
}

impl Default for Style {
    /// The style of a report that is piped: 80 columns, no colour.
    fn default() -> Self {
        Self {
            colour: false,
            width: 80,
            verbose: false,
            spectrum: false,
        }
    }
}

/// Why a report could not be written.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ReportError {
    /// The output refused the bytes; a closed pipe is `io::ErrorKind::BrokenPipe`.
    #[error("cannot write the report")]
    Output(#[from] io::Error),
    /// A value has no JSON form.
    #[error("cannot encode the run as JSON: {0}")]
    Encode(serde_json::Error),
    /// A sweep, a comparison and a search without a step have no summary of 34 keys.
    #[error("--format summary is of one run; use --format json or csv here")]
    SummaryOfOneRun,
    /// Only a comparison goes to pull requests.
    #[error("Markdown is of a comparison; take text, json, csv or html here")]
    MarkdownOfComparison,
    /// A histogram has no compressed form.
    #[error("cannot encode a histogram: {0}")]
    Histogram(V2DeflateSerializeError),
}

/// Prints a run to `out` and flushes it. `style` matters to the text form only.
///
/// # Errors
///
/// When `out` refuses the bytes, or when a histogram cannot be encoded.
pub fn write(
    judged: &Judged<'_>,
    format: Format,
    style: &Style,
    out: &mut dyn io::Write,
) -> Result<(), ReportError> {
    match format {
        Format::Text => out.write_all(run::text(judged, style).as_bytes())?,
        Format::Json => store::write(judged, out)?,
        Format::Summary => figures::write_summary(&figures::summary(judged), out)?,
        Format::Csv => figures::write_summary_table(figures::summary(judged), out)?,
        Format::Markdown => return Err(ReportError::MarkdownOfComparison),
        Format::Html => out.write_all(run::html(judged)?.as_bytes())?,
    }
    Ok(out.flush()?)
}

/// Writes the objectives of a run to `out` as test results in JUnit's form, and flushes it.
///
/// # Errors
///
/// When `out` refuses the bytes.
pub fn write_junit(judged: &Judged<'_>, out: &mut dyn io::Write) -> Result<(), ReportError> {
    out.write_all(objective::page(judged).as_bytes())?;
    Ok(out.flush()?)
}

/// The objectives that the run missed, a line each: what was asked, and what was measured.
pub fn missed_objectives(judged: &Judged<'_>) -> Vec<String> {
    let outcomes = judged.objectives();
    let missed = outcomes.iter().filter(|outcome| !outcome.is_met);
    missed
        .map(|outcome| objective::line(outcome, false))
        .collect()
}
