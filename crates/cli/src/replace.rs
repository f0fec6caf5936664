//! Files that are replaced as a whole: what is written stands beside the old one until it is
//! complete, so that a full disk or a crash leaves the old one as it was.

use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::{MetadataExt, fchown};
use std::path::{Path, PathBuf};

use rustix::process::{Resource, getrlimit};
use tempfile::NamedTempFile;

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

/// Writes `bytes` to `file`, which is open at `path`, in place of what it holds. Where that fails,
/// what it held is there still, but for files that have to be written as they are.
pub(crate) fn replace(path: &Path, mut file: &File, bytes: &[u8]) -> io::Result<()> {
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
pub(crate) fn open(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(false).open(path)
}

/// Writes `bytes` in place of what `path` holds.
pub(crate) fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let created = !path.exists();
    let outcome = open(path).and_then(|file| replace(path, &file, bytes));
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
}
