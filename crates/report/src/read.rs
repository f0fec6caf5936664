//! A stored run, taken back: bounded, and refused with a reason where it cannot be believed.

use std::io::{self, Read};

use brunt_measure::Run;
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::error::Category;
use thiserror::Error;

/// The largest stored run that is read: 256 MiB.
pub const STORED_BYTES_MAX: u64 = 256 << 20;

/// Why a stored run could not be read.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ReadError {
    /// The input gave an error.
    #[error("cannot read the stored run")]
    Input(#[from] io::Error),
    /// The input is over the limit.
    #[error("over {limit_bytes} bytes: no stored run is that large; check the file's name")]
    TooLarge {
        /// The limit.
        limit_bytes: u64,
    },
    /// The input ends inside the JSON.
    #[error("cut short ({0}); copy the file again, or repeat the run")]
    Truncated(serde_json::Error),
    /// The input is not JSON.
    #[error("not JSON ({0}); give a file that was written with `--format json`")]
    NotJson(serde_json::Error),
    /// The input is JSON without a format number.
    #[error(
        "not a stored run: a `format` number is missing; \
         give a file that was written with `--format json`"
    )]
    NotARun,
    /// The run is stored in the layout of another version.
    #[error(
        "stored in format {found}, and this version reads format {known}; \
         use the version of brunt that wrote the file"
    )]
    OtherFormat {
        /// The format number of the input.
        found: u64,
        /// The format number that is read.
        known: u32,
    },
    /// A field is missing, or holds what no run can have put there.
    #[error("not a complete run ({0}); the file was changed after it was written: repeat the run")]
    Field(serde_json::Error),
}

/// Reads a run that [`crate::Format::Json`] wrote. Its `summary` is ignored, as are fields that
/// this version does not know.
///
/// # Errors
///
/// See [`ReadError`]; nothing is repaired or guessed.
pub fn read(json: &mut dyn Read) -> Result<Run, ReadError> {
    read_bounded(json, STORED_BYTES_MAX)
}

fn read_bounded(json: &mut dyn Read, limit_bytes: u64) -> Result<Run, ReadError> {
    let mut bytes = Vec::new();
    json.take(limit_bytes + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > limit_bytes {
        return Err(ReadError::TooLarge { limit_bytes });
    }
    let refusal = |error: serde_json::Error| match error.classify() {
        // A number that is cut behind its point or exponent is taken for an invalid one.
        Category::Syntax if is_at_the_end(&error, &bytes) => ReadError::Truncated(error),
        Category::Eof => ReadError::Truncated(error),
        Category::Syntax => ReadError::NotJson(error),
        Category::Data | Category::Io => ReadError::NotARun,
    };
    if bytes.trim_ascii_start().first() == Some(&b'[') {
        // A sequence could pass for the fields of an envelope.
        serde_json::from_slice::<IgnoredAny>(&bytes).map_err(refusal)?;
        return Err(ReadError::NotARun);
    }
    let envelope: Envelope = serde_json::from_slice(&bytes).map_err(refusal)?;
    match envelope.format {
        None => return Err(ReadError::NotARun),
        Some(found) if found != u64::from(Run::FORMAT) => {
            return Err(ReadError::OtherFormat {
                found,
                known: Run::FORMAT,
            });
        }
        Some(_) => {}
    }
    serde_json::from_slice(&bytes).map_err(ReadError::Field)
}

/// Whether what is wrong is that a number has no end.
fn is_at_the_end(error: &serde_json::Error, bytes: &[u8]) -> bool {
    let is_within_number = bytes
        .last()
        .is_some_and(|last| matches!(last, b'.' | b'e' | b'E' | b'+' | b'-'));
    let last_line = bytes.rsplit(|&byte| byte == b'\n').next();
    let lines = bytes.iter().filter(|&&byte| byte == b'\n').count() + 1;
    is_within_number
        && error.line() == lines
        && last_line.is_some_and(|line| error.column() >= line.len())
}

/// What is looked at before the whole run is.
#[derive(Deserialize)]
struct Envelope {
    format: Option<u64>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn input_over_the_limit_is_refused_unparsed() {
        let input = b"{\"format\": 1}";
        for (limit_bytes, too_large) in [(12, true), (13, false)] {
            let error = read_bounded(&mut input.as_slice(), limit_bytes).unwrap_err();
            assert_eq!(
                matches!(error, ReadError::TooLarge { .. }),
                too_large,
                "{error}"
            );
        }
    }
}
