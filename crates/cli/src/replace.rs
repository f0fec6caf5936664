//! Files that are replaced as a whole: what is written stands beside the old one until it is
//! complete, so that a full disk or a crash leaves the old one as it was.

use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::{MetadataExt, fchown};
use std::path::{Path, PathBuf};

use rustix::process::{Resource, getrlimit};

/// Names that are tried for what stands beside a file: others are left by killed processes.
const NAMES_TRIED: u32 = 100;

/// What is to take the place of a file.
#[derive(Debug)]
pub(crate) struct Replacement {
    path: PathBuf,
    temporary: PathBuf,
    file: File,
}

impl Replacement {
    /// An empty file beside `path`, in a directory that is there.
    pub(crate) fn beside(path: &Path) -> io::Result<Self> {
        let name = path
            .file_name()
            .ok_or_else(|| io::Error::from(ErrorKind::IsADirectory))?;
        for number in 0..NAMES_TRIED {
            let mut hidden = std::ffi::OsString::from(".");
            hidden.push(name);
            hidden.push(format!(".{}-{number}", std::process::id()));
            let temporary = path.with_file_name(hidden);
            match OpenOptions::new()
                .write(true)
                .create_new(true)
                .open(&temporary)
            {
                Ok(file) => {
                    return Ok(Self {
                        path: path.to_owned(),
                        temporary,
                        file,
                    });
                }
                Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error),
            }
        }
        Err(ErrorKind::AlreadyExists.into())
    }

    /// One for a file that is there, with its rights and its owner. Absent where it has to be
    /// written as it is: a pipe or a device, one of several names of a file, or in a directory in
    /// which nothing can be put.
    fn of(path: &Path, file: &File) -> Option<Self> {
        // Descriptors have names there, too, of files that others write to.
        if path.starts_with("/dev") || path.starts_with("/proc") {
            return None;
        }
        let found = file.metadata().ok()?;
        if !found.is_file() || found.nlink() != 1 {
            return None;
        }
        let behind_links = fs::canonicalize(path).ok()?;
        let replacement = Self::beside(&behind_links).ok()?;
        let own = replacement.file.metadata().ok()?;
        if (own.uid(), own.gid()) != (found.uid(), found.gid()) {
            fchown(&replacement.file, Some(found.uid()), Some(found.gid())).ok()?;
        }
        replacement.file.set_permissions(found.permissions()).ok()?;
        Some(replacement)
    }

    /// The file that the new content is written to.
    pub(crate) fn file(&mut self) -> impl Write + '_ {
        Limited(&mut self.file)
    }

    /// Puts it in the place of the file, once it is on disk.
    pub(crate) fn put(self) -> io::Result<()> {
        self.file.sync_all()?;
        fs::rename(&self.temporary, &self.path)
    }
}

impl Drop for Replacement {
    fn drop(&mut self) {
        // In its place, it is not there any more.
        let _ = fs::remove_file(&self.temporary);
    }
}

/// What writes to a file met: where that is the largest size that a file may have, the limit is
/// named.
pub(crate) fn with_limit(error: io::Error) -> io::Error {
    match getrlimit(Resource::Fsize).current {
        Some(bytes) if error.kind() == ErrorKind::FileTooLarge => io::Error::new(
            ErrorKind::FileTooLarge,
            format!(
                "a file may have {bytes} bytes at most here (RLIMIT_FSIZE); raise that with \
                 `ulimit -f`"
            ),
        ),
        _ => error,
    }
}

/// A file whose errors name the limit.
struct Limited<W>(W);

impl<W: Write> Write for Limited<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes).map_err(with_limit)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush().map_err(with_limit)
    }
}

/// Writes what `write` writes to `file`, which is open at `path`, in place of what it holds. Where
/// that fails, what it held is there still, but for files that have to be written as they are.
pub(crate) fn replace<E: From<io::Error>>(
    path: &Path,
    file: &File,
    mut write: impl FnMut(&mut dyn Write) -> Result<(), E>,
) -> Result<(), E> {
    if let Some(mut replacement) = Replacement::of(path, file) {
        write(&mut replacement.file())?;
        match replacement.put() {
            // It cannot be taken away: another file system is mounted there, say.
            Err(error) if error.kind() == ErrorKind::ResourceBusy => {}
            outcome => return Ok(outcome?),
        }
    }
    let mut out = Limited(file);
    // Pipes and devices have no length to set.
    let _ = file.set_len(0);
    let outcome = write(&mut out).and_then(|()| Ok(out.flush()?));
    if outcome.is_err() {
        // Half a report could be taken for a whole one.
        let _ = file.set_len(0);
    }
    outcome
}

/// Opens a file for [`replace`], which may not be there yet, and leaves what it holds.
pub(crate) fn open(path: &Path) -> io::Result<File> {
    OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(false)
        .open(path)
}

/// Writes `bytes` in place of what `path` holds.
pub(crate) fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let created = !path.exists();
    let outcome = open(path).and_then(|file| replace(path, &file, |out| out.write_all(bytes)));
    if outcome.is_err() && created {
        let _ = fs::remove_file(path);
    }
    outcome
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
    fn what_fails_leaves_the_old_one() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a");
        fs::write(&path, "old").unwrap();
        let fail = |out: &mut dyn Write| {
            out.write_all(b"half")?;
            Err(io::Error::from(ErrorKind::StorageFull))
        };
        let error = replace(&path, &open(&path).unwrap(), fail).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::StorageFull);
        assert_eq!(fs::read_to_string(&path).unwrap(), "old");
        assert_eq!(names(directory.path()), ["a"]);
        write(&path, b"new").unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "new");
        assert_eq!(names(directory.path()), ["a"]);
    }

    #[test]
    fn rights_and_links_stay() {
        let directory = tempfile::tempdir().unwrap();
        let (path, link) = (directory.path().join("a"), directory.path().join("link"));
        fs::write(&path, "old").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
        symlink("a", &link).unwrap();
        write(&link, b"new").unwrap();
        assert!(link.symlink_metadata().unwrap().is_symlink());
        assert_eq!(fs::read_to_string(&path).unwrap(), "new");
        assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o640);
        // A link to what is not there yet, and a second name of a file.
        symlink("b", directory.path().join("to-b")).unwrap();
        write(&directory.path().join("to-b"), b"new").unwrap();
        assert_eq!(
            fs::read_to_string(directory.path().join("b")).unwrap(),
            "new"
        );
        fs::hard_link(&path, directory.path().join("second")).unwrap();
        write(&path, b"both").unwrap();
        let second = fs::read_to_string(directory.path().join("second"));
        assert_eq!(second.unwrap(), "both");
        assert_eq!(
            names(directory.path()),
            ["a", "b", "link", "second", "to-b"]
        );
    }

    #[test]
    fn names_that_are_taken_are_left_alone() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a");
        let (first, second) = (Replacement::beside(&path), Replacement::beside(&path));
        assert_eq!(names(directory.path()).len(), 2);
        drop(first);
        second.unwrap().put().unwrap();
        assert_eq!(names(directory.path()), ["a"]);
        assert!(Replacement::beside(Path::new("/")).is_err());
    }
}
