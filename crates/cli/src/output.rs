//! Where reports go: opened before the run, written after it. Files are replaced as a whole: what
//! is written stands beside the old one until it is complete, so that a full disk or a crash leaves
//! the old one as it was.

use std::collections::BTreeSet;
use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::{MetadataExt, fchown};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use brunt_dropin::verdict_line;
use brunt_judge::Judged;
use brunt_report::{Experiment, Format, ReportError, Style};
use rustix::termios::tcgetwinsize;
use tempfile::NamedTempFile;

use crate::args::OutputArguments;
use crate::message::with_limit;
use crate::redact::redact_experiment;
use crate::{exit, message, objectives};

/// Columns of a report that does not go to a terminal.
const PLAIN_WIDTH: u16 = 80;

/// Forms that the report of a run, and of a search, does not have.
pub(crate) const NOT_OF_RUN: &[Format] = &[Format::Markdown];
/// Forms that the report of a sweep does not have: the summary is of one rate.
pub(crate) const NOT_OF_SWEEP: &[Format] = &[Format::Markdown, Format::Summary];
/// Forms that the report of a comparison does not have.
pub(crate) const NOT_OF_COMPARISON: &[Format] = &[Format::Summary];

/// Files and standard output, as the arguments ask for.
#[derive(Debug)]
pub(crate) struct Destination {
    files: Vec<OutputFile>,
    terminal: Terminal,
    verbose: bool,
    spectrum: bool,
    /// Whether what may be secret is left out of experiments; of runs it is already.
    redacts: bool,
}

/// What goes to the terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Terminal {
    /// Nothing.
    Silent,
    /// A report, to standard output.
    Report(Format),
    /// The verdict of a run in a line, to standard error: another tool's text goes to standard
    /// output.
    Verdict,
}

/// What a file is to hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Content {
    Report(Format),
    HdrLog,
    Hgrm,
    Junit,
}

/// A file that was opened before the run and is untouched until `write`, or standard output.
#[derive(Debug)]
struct OutputFile {
    path: PathBuf,
    /// The open file; absent for standard output.
    file: Option<File>,
    content: Content,
    /// Whether the file is new and nothing was written to it: it is removed when this is dropped.
    is_new: bool,
}

impl Destination {
    /// Opens the output files for writing, without touching what is in them. Those that were not
    /// there before are removed where nothing is written to them.
    ///
    /// # Errors
    ///
    /// A file cannot be written to, or is to have one of the forms `refused`.
    pub(crate) fn open(arguments: &OutputArguments, refused: &[Format]) -> Result<Self> {
        let asked = arguments.format;
        let mut wanted = reports(&arguments.output, asked)?;
        for (path, content) in [
            (&arguments.hdr_log, Content::HdrLog),
            (&arguments.hgrm, Content::Hgrm),
            (&arguments.junit, Content::Junit),
        ] {
            wanted.extend(path.as_deref().map(|path| (path, content)));
        }
        let is_piped = wanted.iter().any(|(path, _)| is_standard(path));
        let terminal = match (arguments.output.is_empty(), arguments.quiet) {
            // One report at a time: text would be mixed with the other.
            _ if is_piped => Terminal::Silent,
            (true, _) => Terminal::Report(asked.unwrap_or_default()),
            (false, false) => Terminal::Report(Format::Text),
            (false, true) => Terminal::Silent,
        };
        let mut names = BTreeSet::new();
        if let Some((path, _)) = wanted.iter().find(|(path, _)| !names.insert(*path)) {
            bail!("two outputs name the same file, {}", path.display());
        }
        let files = wanted.into_iter();
        let files = files.map(|(path, content)| OutputFile::open(path, content));
        let destination = Self {
            files: files.collect::<Result<_>>()?,
            terminal,
            verbose: arguments.verbose,
            spectrum: arguments.latency,
            redacts: arguments.redact,
        };
        if arguments.latency && !destination.has(Format::Text) {
            bail!(
                "--latency adds to a text report, and there is none; --hgrm FILE writes the same \
                 to a file"
            );
        }
        match refused.iter().find(|&&format| destination.has(format)) {
            Some(Format::Summary) => Err(ReportError::SummaryOfOneRun.into()),
            Some(_) => Err(ReportError::MarkdownOfComparison.into()),
            None => Ok(destination),
        }
    }

    /// Whether a report has this form.
    fn has(&self, format: Format) -> bool {
        let is_report = |file: &OutputFile| file.content == Content::Report(format);
        self.terminal == Terminal::Report(format) || self.files.iter().any(is_report)
    }

    /// For a run in another tool's place: its verdict, and a file for the stored run, if any.
    pub(crate) fn beside_other_text(path: Option<&Path>) -> Result<Self> {
        let content = Content::Report(Format::Json);
        let file = path.map(|path| OutputFile::open(path, content));
        Ok(Self {
            files: file.transpose()?.into_iter().collect(),
            terminal: Terminal::Verdict,
            verbose: false,
            spectrum: false,
            redacts: false,
        })
    }

    /// Writes the reports, each even where others fail; the first failure is the one that is
    /// given. A reader that went away is no error. Says which objectives were missed, and gives the
    /// exit code that follows.
    pub(crate) fn write(&mut self, judged: &Judged<'_>) -> Result<ExitCode> {
        if self.terminal == Terminal::Verdict {
            message::print(&verdict_line(judged));
        }
        self.write_all(|content, style, out| match content {
            Content::Report(format) => brunt_report::write(judged, format, style, out),
            Content::HdrLog => brunt_report::write_hlog(judged.run, out),
            Content::Hgrm => brunt_report::write_hgrm(judged.run, out),
            Content::Junit => brunt_report::write_junit(judged, out),
        })?;
        objectives::announce(judged);
        Ok(exit::of_run(judged))
    }

    /// Writes the reports of an experiment, as [`Self::write`] does those of a run.
    pub(crate) fn write_experiment(&mut self, experiment: &Experiment) -> Result<()> {
        let redacted = self.redacts.then(|| {
            let mut experiment = experiment.clone();
            redact_experiment(&mut experiment);
            experiment
        });
        let experiment = redacted.as_ref().unwrap_or(experiment);
        self.write_all(|content, style, out| match (content, experiment) {
            (Content::Report(format), _) => {
                brunt_report::write_experiment(experiment, format, style, out)
            }
            (Content::Junit, Experiment::Capacity(found)) => {
                brunt_report::write_search_junit(found, out)
            }
            _ => Ok(()),
        })
    }

    fn write_all(
        &mut self,
        write: impl Fn(Content, &Style, &mut Vec<u8>) -> Result<(), ReportError>,
    ) -> Result<()> {
        let plain = Style {
            colour: false,
            width: PLAIN_WIDTH,
            verbose: true,
            spectrum: self.spectrum,
        };
        let mut outcome = Ok(());
        for file in &mut self.files {
            let mut bytes = Vec::new();
            let written = write(file.content, &plain, &mut bytes).map_err(anyhow::Error::from);
            outcome = outcome.and(written.and_then(|()| file.write(&bytes)));
        }
        if let Terminal::Report(format) = self.terminal {
            let is_terminal = message::is_output_terminal();
            let style = Style {
                colour: is_terminal && std::env::var_os("NO_COLOR").is_none(),
                width: if is_terminal {
                    terminal_width()
                } else {
                    PLAIN_WIDTH
                },
                verbose: self.verbose,
                spectrum: self.spectrum,
            };
            let mut bytes = Vec::new();
            let written = write(Content::Report(format), &style, &mut bytes);
            message::output_bytes(&bytes);
            outcome = outcome.and(written.map_err(anyhow::Error::from));
        }
        outcome
    }
}

impl OutputFile {
    fn open(path: &Path, content: Content) -> Result<Self> {
        let is_new = !is_standard(path) && !path.exists();
        let file = if is_standard(path) {
            None
        } else {
            let file = open_file(path);
            let file = file.with_context(|| format!("cannot write to {}", path.display()))?;
            // What a shell sends to a file goes behind what is there.
            Some(file).filter(|file| !is_standard_output(file))
        };
        Ok(Self {
            path: path.to_owned(),
            file,
            content,
            is_new,
        })
    }

    fn write(&mut self, bytes: &[u8]) -> Result<()> {
        let Some(file) = &self.file else {
            return message::output_as_file(bytes).context("cannot write to standard output");
        };
        let outcome = replace(&self.path, file, bytes);
        self.is_new &= outcome.is_err();
        outcome.with_context(|| format!("cannot write to {}", self.path.display()))
    }
}

impl Drop for OutputFile {
    fn drop(&mut self) {
        if self.is_new {
            // Should it not go away, it is empty.
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// Whether the name stands for standard output or standard input.
pub(crate) fn is_standard(path: &Path) -> bool {
    path.as_os_str() == "-"
}

/// Whether a regular file is where standard output goes: its name is that of a descriptor, say.
fn is_standard_output(file: &File) -> bool {
    let standard = io::stdout().as_fd().try_clone_to_owned().map(File::from);
    match (file.metadata(), standard.and_then(|file| file.metadata())) {
        (Ok(own), Ok(other)) => {
            own.is_file() && (own.dev(), own.ino()) == (other.dev(), other.ino())
        }
        _ => false,
    }
}

/// The files of `--output`, each with the form of its report: one of them has that of `--format`,
/// where it is given; of several, `-` has it, whose name ends in none.
fn reports(paths: &[PathBuf], asked: Option<Format>) -> Result<Vec<(&Path, Content)>> {
    if asked.is_some() && paths.len() > 1 && !paths.iter().any(|path| is_standard(path)) {
        bail!(
            "--format is about one report, and --output names {}; leave --format out, and end \
             each name in .json, .html, .csv, .txt or .md",
            paths.len()
        );
    }
    let of_path = |path| {
        let format = match asked {
            Some(format) if paths.len() == 1 || is_standard(path) => format,
            _ => format_by_name(path)?,
        };
        Ok((path, Content::Report(format)))
    };
    paths.iter().map(PathBuf::as_path).map(of_path).collect()
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
        _ => bail!(
            "{} ends in the name of no form of a report; end it in .json, .html, .csv, .txt or \
             .md, or say which one with --format",
            path.display()
        ),
    }
}

/// Columns of the terminal on standard output or standard error.
pub(crate) fn terminal_width() -> u16 {
    let sizes = [tcgetwinsize(io::stdout()), tcgetwinsize(io::stderr())];
    let mut columns = sizes.into_iter().flatten().map(|size| size.ws_col);
    columns.find(|&columns| columns > 0).unwrap_or(PLAIN_WIDTH)
}

/// An empty file beside the one at `path`, with its rights and its owner, and where that is behind
/// links. Absent where it has to be written as it is: a pipe or a device, one of several names of a
/// file, or in a directory in which nothing can be put.
fn beside(path: &Path, file: &File) -> Option<(NamedTempFile, PathBuf)> {
    // Descriptors have names there, too, of files that others write to.
    if path.starts_with("/dev") || path.starts_with("/proc") {
        return None;
    }
    let found = file.metadata().ok()?;
    if !found.is_file() || found.nlink() != 1 {
        return None;
    }
    let behind_links = fs::canonicalize(path).ok()?;
    let temporary = NamedTempFile::new_in(behind_links.parent()?).ok()?;
    let own = temporary.as_file().metadata().ok()?;
    if (own.uid(), own.gid()) != (found.uid(), found.gid()) {
        fchown(temporary.as_file(), Some(found.uid()), Some(found.gid())).ok()?;
    }
    let permissions = found.permissions();
    temporary.as_file().set_permissions(permissions).ok()?;
    Some((temporary, behind_links))
}

/// Writes `bytes` to `file`, which is open at `path`, in place of what it holds. Where that fails,
/// what it held is there still, but for files that have to be written as they are.
fn replace(path: &Path, mut file: &File, bytes: &[u8]) -> io::Result<()> {
    if let Some((mut temporary, behind_links)) = beside(path, file) {
        temporary.write_all(bytes).map_err(with_limit)?;
        temporary.as_file().sync_all()?;
        match temporary.persist(&behind_links) {
            // It cannot be taken away: another file system is mounted there, say.
            Err(failed) if failed.error.kind() == ErrorKind::ResourceBusy => {}
            outcome => return Ok(outcome.map(drop)?),
        }
    }
    // Pipes and devices have no length to set.
    let _ = file.set_len(0);
    let outcome = file.write_all(bytes);
    if outcome.is_err() {
        // Half a report could be taken for a whole one.
        let _ = file.set_len(0);
    }
    outcome.map_err(with_limit)
}

/// Opens a file for [`replace`], which may not be there yet, and leaves what it holds.
fn open_file(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(false).open(path)
}

/// Writes `bytes` in place of what `path` holds.
pub(crate) fn write_file(path: &Path, bytes: impl AsRef<[u8]>) -> Result<()> {
    let created = !path.exists();
    let outcome = open_file(path).and_then(|file| replace(path, &file, bytes.as_ref()));
    if outcome.is_err() && created {
        let _ = fs::remove_file(path);
    }
    outcome.with_context(|| format!("cannot write {}", path.display()))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    fn names(directory: &Path) -> Vec<String> {
        let entries = fs::read_dir(directory).unwrap();
        let mut names: Vec<_> = entries
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    #[test]
    fn rights_and_links_stay() {
        let directory = tempfile::tempdir().unwrap();
        let (path, link) = (directory.path().join("a"), directory.path().join("link"));
        fs::write(&path, "old").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
        symlink("a", &link).unwrap();
        write_file(&link, b"new").unwrap();
        assert!(link.symlink_metadata().unwrap().is_symlink());
        assert_eq!(fs::read_to_string(&path).unwrap(), "new");
        assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o640);
        // A link to what is not there yet, and a second name of a file.
        symlink("b", directory.path().join("to-b")).unwrap();
        write_file(&directory.path().join("to-b"), b"new").unwrap();
        assert_eq!(
            fs::read_to_string(directory.path().join("b")).unwrap(),
            "new"
        );
        fs::hard_link(&path, directory.path().join("second")).unwrap();
        write_file(&path, b"both").unwrap();
        let second = fs::read_to_string(directory.path().join("second"));
        assert_eq!(second.unwrap(), "both");
        assert_eq!(
            names(directory.path()),
            ["a", "b", "link", "second", "to-b"]
        );
    }
}
