//! Stored experiments of several rounds: sweeps, comparisons and searches for a capacity, in every
//! form.

mod capacity;
mod comparison;
pub(crate) mod environment;
mod sweep;
mod words;

use std::io;

use brunt_judge::{Capacity, ComparedRounds, Sweep};
use serde::Serialize;

use crate::layout::html::Head;
use crate::object::Object;
use crate::page::Page;
use crate::shortened::word;
use crate::{Format, ReportError, Style, foreign, layout, summary};

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
        (Format::Text, it) => out.write_all(text(it, style).as_bytes())?,
        (Format::Html, it) => out.write_all(html(it)?.as_bytes())?,
        (Format::Markdown, Experiment::Comparison(_)) => {
            let mut page = Page::unbroken();
            sections(experiment, &mut page);
            let text = layout::markdown::markdown("brunt compare", &page);
            out.write_all(text.as_bytes())?;
        }
        (Format::Markdown, _) => return Err(ReportError::MarkdownOfComparison),
        (Format::Json, Experiment::Sweep(it)) => json(&sweep::stored(it), out)?,
        (Format::Json, Experiment::Comparison(it)) => json(&comparison::stored(it), out)?,
        (Format::Json, Experiment::Capacity(it)) => json(&capacity::stored(it), out)?,
        (Format::Summary, Experiment::Capacity(it)) => {
            summary::write(&capacity::summary(it)?, out)?;
        }
        (Format::Summary, _) => return Err(ReportError::SummaryOfOneRun),
        (Format::Csv, Experiment::Sweep(it)) => sweep::table(it, out)?,
        (Format::Csv, Experiment::Comparison(it)) => comparison::table(it, out)?,
        (Format::Csv, Experiment::Capacity(it)) => {
            summary::write_table(capacity::summary(it)?, out)?;
        }
    }
    Ok(out.flush()?)
}

fn sections(experiment: &Experiment, page: &mut Page) {
    match experiment {
        Experiment::Sweep(it) => sweep::sections(it, page),
        Experiment::Comparison(it) => comparison::sections(it, page),
        Experiment::Capacity(it) => capacity::sections(it, page),
    }
}

fn text(experiment: &Experiment, style: &Style) -> String {
    let mut page = Page::new(style);
    sections(experiment, &mut page);
    layout::text::text(&page, style.colour)
}

fn html(experiment: &Experiment) -> Result<String, ReportError> {
    let mut page = Page::unbroken();
    sections(experiment, &mut page);
    let url = |url: &str| word(url).into_owned();
    let (kind, heading, data) = match experiment {
        Experiment::Sweep(it) => ("sweep", url(&it.plan.url), sweep::charts(it)),
        Experiment::Comparison(it) => ("compare", comparison::sides(it), comparison::charts(it)),
        Experiment::Capacity(it) => {
            let search = vec![capacity::chart(it, None)];
            let data = Object::new().with("searches", search);
            ("find", url(&it.plan.url), data)
        }
    };
    let head = Head {
        kind,
        title: format!("{kind}: {heading}"),
        heading,
        lines: Vec::new(),
        figures: Vec::new(),
    };
    let style = Style {
        verbose: true,
        width: 100,
        ..Style::default()
    };
    layout::html::document(&head, &page, &data, &text(experiment, &style))
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
