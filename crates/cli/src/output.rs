//! Where reports go: opened before the run, written after it.

use std::fs::File;
use std::io::{self, IsTerminal, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use brunt_measure::Judged;
use brunt_report::{Experiment, Format, ReportError, Style};

use crate::args::{FormatName, OutputArguments};
use crate::replace::{self, replace};
use crate::request_log::NamedLog;
use crate::{exit_code, objectives};

/// Columns of a report that does not go to a terminal.
const PLAIN_WIDTH: u16 = 80;

/// Files and standard output, as the arguments ask for.
#[derive(Debug)]
pub(crate) struct Destination {
    files: Vec<OutputFile>,
    /// What goes to standard output, if anything.
    terminal: Option<Format>,
    verbose: bool,
    spectrum: bool,
    /// Absent until there is one.
    log: Option<NamedLog>,
}

/// The outcome of writing a report.
type Written = Result<(), ReportError>;

/// What a file is to hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Content {
    Report(Format),
    HdrLog,
    Hgrm,
    Junit,
    RequestLog,
}

/// A file that was opened before the run and is untouched until `write`, or standard output.
#[derive(Debug)]
struct OutputFile {
    path: PathBuf,
    /// Absent for standard output.
    file: Option<File>,
    content: Content,
    /// It was not there before: removed when there is nothing to write.
    created: bool,
}

impl Destination {
    /// Opens the output files for writing, without touching what is in them.
    pub(crate) fn open(arguments: &OutputArguments) -> Result<Self> {
        let asked = arguments.format.map(format_of);
        let files = [
            &arguments.output,
            &arguments.hdr_log,
            &arguments.hgrm,
            &arguments.junit,
            &arguments.request_log,
        ];
        let is_piped = files.into_iter().flatten().any(|path| is_standard(path));
        let terminal = match (&arguments.output, arguments.quiet) {
            // One report at a time: text would be mixed with the other.
            _ if is_piped => None,
            (None, _) => Some(asked.unwrap_or_default()),
            (Some(_), false) => Some(Format::Text),
            (Some(_), true) => None,
        };
        let report = match &arguments.output {
            Some(path) => Some((path, asked.map_or_else(|| format_by_name(path), Ok)?)),
            None => None,
        };
        let is_text = |format: Option<Format>| format == Some(Format::Text);
        if arguments.latency && !is_text(terminal) && !is_text(report.map(|(_, format)| format)) {
            bail!(
                "--latency adds to a text report, and there is none; --hgrm FILE writes the same \
                 to a file"
            );
        }
        let mut destination = Self {
            files: Vec::new(),
            terminal,
            verbose: arguments.verbose,
            spectrum: arguments.latency,
            log: None,
        };
        let wanted = report
            .map(|(path, format)| (path, Content::Report(format)))
            .into_iter()
            .chain(arguments.hdr_log.iter().map(|path| (path, Content::HdrLog)))
            .chain(arguments.hgrm.iter().map(|path| (path, Content::Hgrm)))
            .chain(arguments.junit.iter().map(|path| (path, Content::Junit)))
            .chain(
                arguments
                    .request_log
                    .iter()
                    .map(|path| (path, Content::RequestLog)),
            );
        for (path, content) in wanted {
            if let Err(error) = destination.add(path, content) {
                destination.abandon();
                return Err(error);
            }
        }
        Ok(destination)
    }

    /// The same for an experiment of several rounds, of which there are fewer forms.
    pub(crate) fn of_experiment(arguments: &OutputArguments) -> Result<Self> {
        for (is_given, option) in [
            (arguments.hdr_log.is_some(), "--hdr-log"),
            (arguments.hgrm.is_some(), "--hgrm"),
            (arguments.latency, "--latency"),
            (arguments.junit.is_some(), "--junit"),
            (arguments.request_log.is_some(), "--request-log"),
        ] {
            if is_given {
                bail!("{option} is about a single run; leave it out");
            }
        }
        Self::open(arguments)
    }

    /// The same for runs that are stored already.
    pub(crate) fn of_stored_runs(arguments: &OutputArguments) -> Result<Self> {
        if arguments.request_log.is_some() {
            bail!(
                "--request-log is written while a run is made, and a stored one holds no single \
                 requests; leave it out"
            );
        }
        Self::open(arguments)
    }

    /// A file for the stored run, if any, and nothing for standard output.
    pub(crate) fn of_stored_run(path: Option<&Path>) -> Result<Self> {
        let content = Content::Report(Format::Json);
        let file = path.map(|path| OutputFile::open(path, content));
        Ok(Self {
            files: file.transpose()?.into_iter().collect(),
            terminal: None,
            verbose: false,
            spectrum: false,
            log: None,
        })
    }

    /// What `--request-log` is to hold.
    pub(crate) fn keep_log(&mut self, log: Option<NamedLog>) {
        self.log = log;
    }

    fn add(&mut self, path: &Path, content: Content) -> Result<()> {
        let output = OutputFile::open(path, content)?;
        let twin = self.files.iter().find(|other| other.is_same_file(&output));
        if let Some(twin) = twin {
            let (first, second) = (twin.content.option(), content.option());
            bail!(
                "{first} and {second} name the same file, {}",
                path.display()
            );
        }
        self.files.push(output);
        Ok(())
    }

    /// Writes the reports, each even where others fail; the first failure is the one that is
    /// given. A reader that went away is no error. Says which objectives were missed, and gives the
    /// exit code that follows.
    pub(crate) fn write(self, judged: &Judged<'_>) -> Result<ExitCode> {
        let mut outcome = Ok(());
        for output in &self.files {
            outcome = outcome.and(output.write(judged, self.spectrum, self.log.as_ref()));
        }
        outcome.and(self.print(judged))?;
        objectives::announce(judged)?;
        Ok(exit_code(judged))
    }

    fn print(&self, judged: &Judged<'_>) -> Result<()> {
        self.print_with(|format, style, out| brunt_report::write(judged, format, style, out))
    }

    /// Prints what goes to standard output. A reader that went away is no error.
    fn print_with(
        &self,
        write: impl FnOnce(Format, &Style, &mut dyn Write) -> Written,
    ) -> Result<()> {
        if let Some(format) = self.terminal {
            let style = Style {
                verbose: self.verbose,
                spectrum: self.spectrum,
                ..terminal_style()
            };
            match write(format, &style, &mut io::stdout().lock()) {
                Err(ReportError::Output(error)) if error.kind() == io::ErrorKind::BrokenPipe => {}
                outcome => outcome?,
            }
        }
        Ok(())
    }

    /// Writes the reports of an experiment, as [`Self::write`] does those of a run.
    pub(crate) fn write_experiment(self, experiment: &Experiment) -> Result<()> {
        let mut outcome = Ok(());
        for output in &self.files {
            let Content::Report(format) = output.content else {
                continue;
            };
            outcome = outcome.and(output.write_bytes(|style, bytes| {
                brunt_report::write_experiment(experiment, format, style, bytes)
            }));
        }
        outcome.and(self.print_with(|format, style, out| {
            brunt_report::write_experiment(experiment, format, style, out)
        }))
    }

    /// There is nothing to write: leaves no empty files behind.
    pub(crate) fn abandon(self) {
        for output in self.files {
            output.remove();
        }
    }
}

impl Content {
    /// The option that asks for it.
    fn option(self) -> &'static str {
        match self {
            Self::Report(_) => "--output",
            Self::HdrLog => "--hdr-log",
            Self::Hgrm => "--hgrm",
            Self::Junit => "--junit",
            Self::RequestLog => "--request-log",
        }
    }
}

impl OutputFile {
    fn open(path: &Path, content: Content) -> Result<Self> {
        if is_standard(path) {
            return Ok(Self {
                path: path.to_owned(),
                file: None,
                content,
                created: false,
            });
        }
        let created = !path.exists();
        let file =
            replace::open(path).with_context(|| format!("cannot write to {}", path.display()))?;
        Ok(Self {
            path: path.to_owned(),
            // What a shell sends to a file goes behind what is there.
            file: Some(file).filter(|file| !is_standard_output(file)),
            content,
            created,
        })
    }

    /// Whether both would overwrite each other; pipes and devices do not.
    fn is_same_file(&self, other: &Self) -> bool {
        let (Some(own), Some(others)) = (&self.file, &other.file) else {
            return self.file.is_none() && other.file.is_none();
        };
        match (own.metadata(), others.metadata()) {
            (Ok(own), Ok(others)) => {
                own.is_file() && (own.dev(), own.ino()) == (others.dev(), others.ino())
            }
            _ => false,
        }
    }

    fn write(&self, judged: &Judged<'_>, spectrum: bool, log: Option<&NamedLog>) -> Result<()> {
        if self.content == Content::RequestLog {
            return self.write_log(log);
        }
        self.write_bytes(|style, bytes| {
            let style = Style { spectrum, ..*style };
            match self.content {
                Content::Report(format) => brunt_report::write(judged, format, &style, bytes),
                Content::HdrLog => brunt_report::write_hlog(judged.run, bytes),
                Content::Hgrm => brunt_report::write_hgrm(judged.run, bytes),
                Content::Junit => brunt_report::write_junit(judged, bytes),
                Content::RequestLog => Ok(()),
            }
        })
    }

    /// Writes what `make` makes.
    fn write_bytes(&self, make: impl FnOnce(&Style, &mut Vec<u8>) -> Written) -> Result<()> {
        let style = Style {
            colour: false,
            width: PLAIN_WIDTH,
            verbose: true,
            spectrum: false,
        };
        let mut bytes = Vec::new();
        make(&style, &mut bytes)?;
        let Some(file) = &self.file else {
            return print(&bytes);
        };
        self.written(replace(&self.path, file, |out| out.write_all(&bytes)))
    }

    /// The log, which may be too large to be held as text.
    fn write_log(&self, log: Option<&NamedLog>) -> Result<()> {
        let Some(named) = log else {
            return Ok(());
        };
        named.announce();
        let name = |request: u32| named.name(request).to_owned();
        let Some(file) = &self.file else {
            let outcome =
                brunt_report::write_request_log(&named.log, &name, &mut io::stdout().lock());
            return match outcome {
                Err(ReportError::Output(error)) if error.kind() == io::ErrorKind::BrokenPipe => {
                    Ok(())
                }
                outcome => Ok(outcome?),
            };
        };
        self.written(replace(&self.path, file, |out| {
            brunt_report::write_request_log(&named.log, &name, out)
        }))
    }

    /// The outcome of writing to the file.
    fn written<E>(&self, outcome: Result<(), E>) -> Result<()>
    where
        Result<(), E>: Context<(), E>,
    {
        if outcome.is_err() {
            self.remove();
        }
        outcome.with_context(|| format!("cannot write to {}", self.path.display()))
    }

    /// Removes a file that was not there before. Should it not go away, it is empty.
    fn remove(&self) {
        if self.created {
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

/// `--schema`: the JSON Schema of a stored run.
pub(crate) fn print_schema() -> Result<ExitCode> {
    print(brunt_report::SCHEMA.as_bytes())?;
    Ok(ExitCode::SUCCESS)
}

/// Writes to standard output. A reader that went away is no error.
pub(crate) fn print(bytes: &[u8]) -> Result<()> {
    let mut output = io::stdout().lock();
    match output.write_all(bytes).and_then(|()| output.flush()) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        outcome => outcome.context("cannot write to standard output"),
    }
}

/// Whether the name stands for standard output or standard input.
pub(crate) fn is_standard(path: &Path) -> bool {
    path.as_os_str() == "-"
}

/// Whether a file is where standard output goes: its name is that of a descriptor, say.
fn is_standard_output(file: &File) -> bool {
    let standard = io::stdout().as_fd().try_clone_to_owned().map(File::from);
    match (file.metadata(), standard.and_then(|it| it.metadata())) {
        (Ok(own), Ok(standard)) => {
            own.is_file() && (own.dev(), own.ino()) == (standard.dev(), standard.ino())
        }
        _ => false,
    }
}

/// The form that the name of a file stands for.
fn format_by_name(path: &Path) -> Result<Format> {
    // Devices, and what a shell puts in place of <(...), have names of their own.
    if path.starts_with("/dev") {
        return Ok(Format::Json);
    }
    match path.extension().and_then(|extension| extension.to_str()) {
        Some("txt" | "text") => Ok(Format::Text),
        Some("csv") => Ok(Format::Csv),
        Some("json") => Ok(Format::Json),
        Some("md") => Ok(Format::Markdown),
        Some("html" | "htm") => Ok(Format::Html),
        None if path.extension().is_none() => Ok(Format::Json),
        Some(_) | None => bail!(
            "{} ends in the name of no form of a report; end it in .json, .html, .csv, .txt or \
             .md, or say which one with --format",
            path.display()
        ),
    }
}

fn format_of(name: FormatName) -> Format {
    match name {
        FormatName::Text => Format::Text,
        FormatName::Json => Format::Json,
        FormatName::Csv => Format::Csv,
        FormatName::Markdown => Format::Markdown,
        FormatName::Html => Format::Html,
    }
}

/// How text on standard output looks.
pub(crate) fn terminal_style() -> Style {
    let is_terminal = io::stdout().is_terminal();
    Style {
        colour: is_terminal && std::env::var_os("NO_COLOR").is_none(),
        width: if is_terminal {
            terminal_width()
        } else {
            PLAIN_WIDTH
        },
        verbose: false,
        spectrum: false,
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
