//! Options about what a run leaves behind: reports, files beside them, progress and objectives.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use crate::objectives::{Objectives, objectives};

/// The form of a report, as typed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum FormatName {
    /// Aligned lines for people
    Text,
    /// The whole run, readable by `brunt report`
    Json,
    /// One line of JSON with 34 keys, for programs
    Summary,
    /// A header and one row
    Csv,
    /// A few lines for a pull request
    Markdown,
    /// A page with charts, in one file that needs no network
    Html,
}

/// The form of the progress, as typed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ProgressName {
    /// A live line on a terminal, else a line now and then
    Text,
    /// One object per line: when a phase begins, and each second
    Json,
}

#[derive(Debug, Args)]
pub(crate) struct OutputArguments {
    /// Write the report to this file, and text to the terminal; - is standard output. May be given
    /// again, each in the form that its name ends in
    #[arg(short, long, value_name = "FILE", help_heading = "Output")]
    pub(crate) output: Vec<PathBuf>,
    /// Form of the report [default: text, or with --output what the file's name ends in: .json,
    /// .html, .csv, .txt, .md, and json without an ending]
    #[arg(long, value_name = "FORM", help_heading = "Output")]
    pub(crate) format: Option<FormatName>,
    /// No progress on standard error; with --output, nothing on the terminal
    #[arg(short, long, help_heading = "Output")]
    pub(crate) quiet: bool,
    /// Form of the progress on standard error; docs/reports.md describes the fields of JSON
    #[arg(
        long,
        value_name = "FORM",
        default_value = "text",
        conflicts_with = "quiet",
        help_heading = "Output"
    )]
    pub(crate) progress: ProgressName,
    /// Everything in the text report: all signals of the verdict, resources, invariants and status
    /// codes
    #[arg(short, long, help_heading = "Output")]
    pub(crate) verbose: bool,
    /// Leave out what may be secret: queries of URLs, messages, subprotocols and the commands of
    /// --start are neither printed nor stored. Header values, bodies, --first and the arguments of
    /// scripts never are
    #[arg(long, help_heading = "Output")]
    pub(crate) redact: bool,
    /// The full percentile spectrum in the text report
    #[arg(long, help_heading = "Output")]
    pub(crate) latency: bool,
    /// Write response times over time to this file, as an HdrHistogram interval log
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub(crate) hdr_log: Option<PathBuf>,
    /// Write the percentiles of the response times to this file, as HdrHistogram's tools do
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub(crate) hgrm: Option<PathBuf>,
    /// What the run is to reach, as in 'p99 < 10ms, errors < 0.1%, rate > 5k', errors = 0,
    /// max < 1s, mean < 2ms, or of one name, 'login: p99 < 50ms'; may be given again. Exit code 1
    /// where that is not shown with 95 % confidence
    #[arg(long, value_name = "TEXT", value_parser = objectives, help_heading = "Output")]
    pub(crate) objective: Vec<Objectives>,
    /// Write the objectives as test results to this file, in JUnit's form
    #[arg(
        long,
        value_name = "FILE",
        requires = "objective",
        help_heading = "Output"
    )]
    pub(crate) junit: Option<PathBuf>,
}
