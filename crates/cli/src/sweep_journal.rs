//! Where the rounds of a sweep are kept while it lasts: a file that grows by a line per round, each
//! on disk before the next round begins.

use std::fs::{DirBuilder, File, OpenOptions, TryLockError};
use std::io::{ErrorKind, Write};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use brunt_io::clock;
use brunt_judge::{Sweep, SweepRound};

use crate::calibration_store;
use crate::output::is_standard;
use crate::replace;

/// Rights of the directory, as the XDG specification asks.
const DIRECTORY_MODE: u32 = 0o700;

/// A journal that is open for appending.
#[derive(Debug)]
pub(crate) struct Journal {
    path: PathBuf,
    file: File,
}

impl Journal {
    /// A new one, for a sweep whose reports go to `outputs`: beside the first of them.
    pub(crate) fn create(outputs: &[PathBuf]) -> Result<Self> {
        // There is no room for files beside a device.
        let is_file = |path: &&PathBuf| !is_standard(path) && !path.starts_with("/dev");
        let path = match outputs.iter().find(is_file) {
            Some(output) => beside(output),
            None => in_state_directory()?,
        };
        let mut options = OpenOptions::new();
        options.append(true);
        let file = match options.create_new(true).open(&path) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {
                refuse_link(&path)?;
                options.create_new(false).open(&path)
            }
            outcome => outcome,
        };
        let file = file.with_context(|| format!("cannot write to {}", path.display()))?;
        let journal = Self::locked(path, file)?;
        // Without a line, its process was killed before the first round.
        if journal.file.metadata().is_ok_and(|found| found.len() > 0) {
            bail!(
                "{0} holds a sweep that did not end; go on with --resume {0}, or remove it",
                journal.path.display()
            );
        }
        Ok(journal)
    }

    /// The only one who writes to the file.
    fn locked(path: PathBuf, file: File) -> Result<Self> {
        // Not every file system has locks.
        if let Err(TryLockError::WouldBlock) = file.try_lock() {
            bail!(
                "another brunt sweep writes to {}; let it end, or give another file with --output",
                path.display()
            );
        }
        Ok(Self { path, file })
    }

    /// Opens an existing journal, and reads the sweep that it holds.
    pub(crate) fn resume(path: &Path) -> Result<(Self, Sweep)> {
        let mut options = OpenOptions::new();
        options.read(true).append(true);
        // The name of the report is as good, which may be there already.
        let beside = beside(path);
        let opened = match options.open(&beside) {
            Ok(file) => Ok((file, beside)),
            Err(_) => options.open(path).map(|file| (file, path.to_owned())),
        };
        let (file, path) =
            opened.with_context(|| format!("cannot open the journal {}", path.display()))?;
        let mut journal = Self::locked(path, file)?;
        let name = journal.path.display().to_string();
        let read = brunt_report::read_journal(&mut journal.file);
        let (sweep, whole_bytes) = read.with_context(|| format!("cannot read {name}"))?;
        // What a killed process wrote of its last line.
        let truncated = journal.file.set_len(whole_bytes);
        truncated.with_context(|| format!("cannot write to {name}"))?;
        Ok((journal, sweep))
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Writes the first line.
    pub(crate) fn begin(&mut self, sweep: &Sweep) -> Result<()> {
        let head = brunt_report::journal_head(sweep)?;
        self.append(&head)
    }

    /// Writes the line of a round.
    pub(crate) fn add(&mut self, round: &SweepRound) -> Result<()> {
        let line = brunt_report::journal_line(round)?;
        self.append(&line)
    }

    fn append(&mut self, line: &str) -> Result<()> {
        // In one piece: a truncated line is the last one.
        self.file
            .write_all(line.as_bytes())
            .and_then(|()| self.file.sync_data())
            .map_err(replace::with_limit)
            .with_context(|| format!("cannot write to {}", self.path.display()))
    }

    /// Removes it: its rounds are in a report, or there are none.
    pub(crate) fn remove(self) {
        // Should it stay, --resume finds that nothing is left to be measured.
        let _ = std::fs::remove_file(&self.path);
    }
}

/// Nobody typed the name of a new journal: a link there is not ours to follow.
fn refuse_link(path: &Path) -> Result<()> {
    if path
        .symlink_metadata()
        .is_ok_and(|found| found.is_symlink())
    {
        bail!(
            "{} is a symbolic link, where the journal of the sweep is to be; remove it, or give \
             another file with --output",
            path.display()
        );
    }
    Ok(())
}

/// `FILE.journal`.
fn beside(output: &Path) -> PathBuf {
    let mut name = output.as_os_str().to_owned();
    name.push(".journal");
    name.into()
}

fn in_state_directory() -> Result<PathBuf> {
    let directory = calibration_store::directory().context(
        "there is no place for the journal: neither XDG_STATE_HOME nor HOME is an absolute path; \
         set one, or give a file with --output",
    )?;
    DirBuilder::new()
        .recursive(true)
        .mode(DIRECTORY_MODE)
        .create(&directory)
        .with_context(|| {
            format!(
                "cannot keep the journal in {}; set XDG_STATE_HOME, or give a file with --output",
                directory.display()
            )
        })?;
    let name = format!("sweep-{}-{}.journal", clock::unix_ms(), std::process::id());
    Ok(directory.join(name))
}
