//! Where reports go: opened before the run, written after it.

use std::fs::{File, OpenOptions};
use std::io::{self, IsTerminal, Write};
use std::path::PathBuf;

use anyhow::{Context, Result};
use brunt_measure::Run;
use brunt_report::{Format, ReportError, Style};

use crate::args::{FormatName, OutputArguments};

/// Columns of a report that does not go to a terminal.
const PLAIN_WIDTH: u16 = 80;

/// A file and standard output, as the arguments ask for.
#[derive(Debug)]
pub(crate) struct Destination {
    file: Option<OutputFile>,
    /// What goes to standard output, if anything.
    terminal: Option<Format>,
    verbose: bool,
}

/// A file that was opened before the run and is untouched until `write`.
#[derive(Debug)]
struct OutputFile {
    path: PathBuf,
    file: File,
    format: Format,
    /// It was not there before: removed when there is nothing to write.
    created: bool,
}

impl Destination {
    /// Opens the output file for writing, without touching what is in it.
    pub(crate) fn open(arguments: &OutputArguments) -> Result<Self> {
        let asked = arguments.format.map(format_of);
        let Some(path) = &arguments.output else {
            let terminal = Some(asked.unwrap_or(Format::Text));
            return Ok(Self {
                file: None,
                terminal,
                verbose: arguments.verbose,
            });
        };
        let created = !path.exists();
        let file = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(false)
            .open(path)
            .with_context(|| format!("cannot write to {}", path.display()))?;
        let by_name = match path.extension().and_then(|extension| extension.to_str()) {
            Some("txt" | "text") => Format::Text,
            Some("csv") => Format::Csv,
            _ => Format::Json,
        };
        let format = asked.unwrap_or(by_name);
        Ok(Self {
            file: Some(OutputFile {
                path: path.clone(),
                file,
                format,
                created,
            }),
            terminal: (!arguments.quiet).then_some(Format::Text),
            verbose: arguments.verbose,
        })
    }

    /// Writes the report. A reader that went away is no error.
    pub(crate) fn write(self, run: &Run) -> Result<()> {
        if let Some(output) = &self.file {
            output.write(run)?;
        }
        if let Some(format) = self.terminal {
            let stdout = io::stdout();
            let style = if stdout.is_terminal() {
                let colour = std::env::var_os("NO_COLOR").is_none();
                Style {
                    colour,
                    width: terminal_width(),
                    verbose: self.verbose,
                }
            } else {
                Style {
                    colour: false,
                    width: PLAIN_WIDTH,
                    verbose: self.verbose,
                }
            };
            match brunt_report::write(run, format, &style, &mut stdout.lock()) {
                Err(ReportError::Output(error)) if error.kind() == io::ErrorKind::BrokenPipe => {}
                outcome => outcome?,
            }
        }
        Ok(())
    }

    /// There is nothing to write: leaves no empty file behind.
    pub(crate) fn abandon(self) {
        if let Some(output) = self.file
            && output.created
        {
            // Should it not go away, it is empty.
            let _ = std::fs::remove_file(&output.path);
        }
    }
}

impl OutputFile {
    fn write(&self, run: &Run) -> Result<()> {
        let style = Style {
            colour: false,
            width: PLAIN_WIDTH,
            verbose: true,
        };
        let mut bytes = Vec::new();
        brunt_report::write(run, self.format, &style, &mut bytes)?;
        let mut file = &self.file;
        // Pipes and devices have no length to set.
        let _ = file.set_len(0);
        file.write_all(&bytes)
            .and_then(|()| file.flush())
            .with_context(|| format!("cannot write to {}", self.path.display()))
    }
}

fn format_of(name: FormatName) -> Format {
    match name {
        FormatName::Text => Format::Text,
        FormatName::Json => Format::Json,
        FormatName::Csv => Format::Csv,
    }
}

/// Columns of the terminal on standard output or standard error.
pub(crate) fn terminal_width() -> u16 {
    [
        rustix::termios::tcgetwinsize(io::stdout()),
        rustix::termios::tcgetwinsize(io::stderr()),
    ]
    .into_iter()
    .flatten()
    .map(|size| size.ws_col)
    .find(|&columns| columns > 0)
    .unwrap_or(PLAIN_WIDTH)
}
