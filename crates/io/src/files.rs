//! What others wrote, read to its end or to a limit: a file may be of any size, and a device or a
//! pipe has no end.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use thiserror::Error;

/// Largest file of certificates or keys.
pub const PEM_BYTES_MAX: u64 = 16 << 20;

/// Why there is nothing to be had of a file.
#[derive(Debug, Error)]
pub enum FileError {
    /// The file cannot be opened or read.
    #[error(transparent)]
    Input(#[from] io::Error),
    /// The file is longer than the limit.
    #[error("it has more than {} MiB, the most that is read", .bytes_max >> 20)]
    TooLarge {
        /// The limit.
        bytes_max: u64,
    },
}

/// The bytes of a file, at most so many.
///
/// # Errors
///
/// See [`FileError`].
pub fn read_file(path: &Path, bytes_max: u64) -> Result<Vec<u8>, FileError> {
    read_bounded(File::open(path)?, bytes_max)
}

/// The bytes of `input` up to its end, at most so many.
///
/// # Errors
///
/// See [`FileError`].
pub fn read_bounded(input: impl Read, bytes_max: u64) -> Result<Vec<u8>, FileError> {
    let mut bytes = Vec::new();
    let read = input
        .take(bytes_max.saturating_add(1))
        .read_to_end(&mut bytes)?;
    if read as u64 > bytes_max {
        return Err(FileError::TooLarge { bytes_max });
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_has_no_end_is_refused() {
        assert_eq!(
            read_bounded(&b"four"[..], 4).expect("as many as may be"),
            b"four"
        );
        for refused in [
            read_bounded(&b"five!"[..], 4),
            read_bounded(io::repeat(0), 3 << 20),
            read_file(Path::new("/dev/zero"), 3 << 20),
        ] {
            assert!(
                matches!(refused, Err(FileError::TooLarge { .. })),
                "{refused:?}"
            );
        }
        let words = read_bounded(io::repeat(0), 3 << 20)
            .expect_err("no end")
            .to_string();
        assert_eq!(words, "it has more than 3 MiB, the most that is read");
        let missing = read_file(Path::new("/no/such/file"), 1);
        assert!(matches!(missing, Err(FileError::Input(_))));
    }
}
