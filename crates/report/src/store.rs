//! The stored form of a run: the whole run as JSON, with derived figures beside it; and what is
//! stored, taken back: bounded, and refused with a reason where it cannot be believed.

use std::io::{self, Read};

use brunt_judge::{Capacity, ComparedRounds, ExperimentKind, Judged, Sweep};
use brunt_record::Run;
use serde::de::{DeserializeOwned, IgnoredAny};
use serde::{Deserialize, Serialize};
use serde_json::error::Category;
use thiserror::Error;

use crate::figures::{Object, figures};
use crate::foreign::{shortened, write_json};
use crate::{Experiment, ReportError};

/// A run as it is stored: its own fields, and a `summary` that is derived from them.
#[derive(Debug, Serialize)]
pub(crate) struct StoredRun<'a> {
    /// The run.
    #[serde(flatten)]
    run: &'a Run,
    /// Derived figures; ignored when the run is read again.
    summary: Object,
}

/// Writes the run as indented JSON with a newline at the end.
pub(crate) fn write(judged: &Judged<'_>, out: &mut dyn io::Write) -> Result<(), ReportError> {
    let stored = StoredRun {
        run: judged.run,
        summary: figures(judged),
    };
    let left = STORED_BYTES_MAX;
    write_json(&mut Readable { out, left }, &stored)
}

/// Takes no more than is read back.
struct Readable<'a> {
    out: &'a mut dyn io::Write,
    left: u64,
}

impl io::Write for Readable<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if bytes.len() as u64 > self.left {
            return Err(io::Error::other(format!(
                "the run takes more than {} MiB, and no larger one is read back; use fewer workers \
                 or a shorter list, or another --format",
                STORED_BYTES_MAX >> 20
            )));
        }
        let written = self.out.write(bytes)?;
        self.left -= written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

/// The largest stored run that is read, and written: 1 GiB.
pub const STORED_BYTES_MAX: u64 = 1 << 30;
/// Characters of serde's words about a field that are passed on: they quote what they found.
const WORDS_MAX: usize = 300;

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
    #[error("truncated ({0}); copy the file again, or repeat the run")]
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
    #[error("stored in format {found} {}", other_format(*.found, *.known))]
    OtherFormat {
        /// The format number of the input.
        found: u64,
        /// The format number that is read.
        known: u32,
    },
    /// The input holds an experiment, where a run is needed.
    #[error("a {0} is stored here, not a run; brunt report prints it")]
    Experiment(&'static str),
    /// The parts of the run do not belong together.
    #[error("not a sound run ({0}); the file was changed after it was written: repeat the run")]
    Unsound(String),
    /// A field is missing, or holds what no run can have put there.
    #[error(
        "not a complete run ({}); the file was changed after it was written: repeat the run",
        brief(.0)
    )]
    Field(serde_json::Error),
}

/// What a stored file holds.
#[derive(Clone, Debug, PartialEq)]
pub enum Stored {
    /// A run.
    Run(Box<Run>),
    /// An experiment of several rounds.
    Experiment(Box<Experiment>),
}

/// Reads a run that [`crate::Format::Json`] wrote. Its `summary` is ignored, as are fields that
/// this version does not know. The memory that this takes is at most a few times that of the input,
/// which is bounded, whatever the input says.
///
/// # Errors
///
/// See [`ReadError`]; nothing is repaired or guessed.
pub fn read(json: &mut dyn Read) -> Result<Run, ReadError> {
    match read_stored(json)? {
        Stored::Run(run) => Ok(*run),
        Stored::Experiment(experiment) => Err(ReadError::Experiment(experiment.name())),
    }
}

/// Reads a run or an experiment, in the same way.
///
/// # Errors
///
/// See [`ReadError`]; nothing is repaired or guessed.
pub fn read_stored(json: &mut dyn Read) -> Result<Stored, ReadError> {
    read_bounded(json, STORED_BYTES_MAX)
}

fn read_bounded(json: &mut dyn Read, limit_bytes: u64) -> Result<Stored, ReadError> {
    let mut bytes = Vec::new();
    json.take(limit_bytes + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > limit_bytes {
        return Err(ReadError::TooLarge { limit_bytes });
    }
    stored_in(&bytes)
}

/// What is stored in these bytes.
pub(crate) fn stored_in(bytes: &[u8]) -> Result<Stored, ReadError> {
    let refusal = |error: serde_json::Error| match error.classify() {
        Category::Syntax if ends_within_number(bytes) => ReadError::Truncated(error),
        Category::Eof => ReadError::Truncated(error),
        Category::Syntax => ReadError::NotJson(error),
        Category::Data | Category::Io => ReadError::NotARun,
    };
    if bytes.trim_ascii_start().first() == Some(&b'[') {
        // A sequence could pass for the fields of an envelope.
        serde_json::from_slice::<IgnoredAny>(bytes).map_err(refusal)?;
        return Err(ReadError::NotARun);
    }
    let envelope: Envelope = serde_json::from_slice(bytes).map_err(refusal)?;
    let found = envelope.format.ok_or(ReadError::NotARun)?;
    let experiment = match envelope.kind {
        None => {
            let run: Run = of_format(bytes, found, Run::FORMAT)?;
            run.check_sound().map_err(ReadError::Unsound)?;
            return Ok(Stored::Run(Box::new(run)));
        }
        Some(ExperimentKind::Sweep) => Experiment::Sweep(of_format(bytes, found, Sweep::FORMAT)?),
        Some(ExperimentKind::Comparison) => {
            Experiment::Comparison(of_format(bytes, found, ComparedRounds::FORMAT)?)
        }
        Some(ExperimentKind::Capacity) => {
            Experiment::Capacity(of_format(bytes, found, Capacity::FORMAT)?)
        }
    };
    Ok(Stored::Experiment(Box::new(experiment)))
}

/// What is stored in this format, if it is the known one.
fn of_format<T: DeserializeOwned>(json: &[u8], found: u64, known: u32) -> Result<T, ReadError> {
    if found != u64::from(known) {
        return Err(ReadError::OtherFormat { found, known });
    }
    serde_json::from_slice(json).map_err(ReadError::Field)
}

/// Which version wrote the format, and what to do about that.
fn other_format(found: u64, known: u32) -> String {
    let (whose, remedy) = if found < u64::from(known) {
        ("an older", "run it again")
    } else {
        ("a newer", "use the version of brunt that wrote the file")
    };
    format!("of {whose} version, which this version does not read; {remedy}")
}

/// What is wrong with a field, in words of a bounded number. Their end says where it is.
fn brief(error: &serde_json::Error) -> String {
    shortened(&error.to_string(), WORDS_MAX).into_owned()
}

/// Whether the bytes end within a number, behind its point or exponent: serde_json takes such a
/// number for an invalid one.
fn ends_within_number(bytes: &[u8]) -> bool {
    let last = bytes
        .last()
        .filter(|_| bytes.trim_ascii_start().starts_with(b"{"));
    matches!(last, Some(b'.' | b'e' | b'E' | b'+' | b'-'))
}

/// What is looked at before the whole run is.
#[derive(Deserialize)]
struct Envelope {
    /// Absent in a run.
    kind: Option<ExperimentKind>,
    format: Option<u64>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_about_a_field_are_bounded() {
        #[derive(Debug, Deserialize)]
        #[serde(deny_unknown_fields)]
        struct Nothing {}
        let json = format!("{{\"{}\": 1}}", "é".repeat(5_000));
        let error = serde_json::from_str::<Nothing>(&json).unwrap_err();
        let words = brief(&error);
        assert!(words.chars().count() <= WORDS_MAX, "{words}");
        assert!(words.starts_with("unknown field `é"), "{words}");
        assert!(words.contains("at line 1 column"), "{words}");
    }

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
