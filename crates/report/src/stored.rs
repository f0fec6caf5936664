//! The stored form: the whole run as JSON, with derived figures beside it.

use std::io;

use brunt_measure::{Judged, Run};
use serde::Serialize;

use crate::{ReportError, StoredSummary, foreign};

/// A run as it is stored: its own fields, and a `summary` that is derived from them.
#[derive(Debug, Serialize)]
#[cfg_attr(
    feature = "schema",
    derive(schemars::JsonSchema),
    schemars(rename = "StoredRun")
)]
pub struct StoredRun<'a> {
    /// The run.
    #[serde(flatten)]
    pub run: &'a Run,
    /// Derived figures; ignored when the run is read again.
    pub summary: StoredSummary,
}

/// Writes the run as indented JSON with a newline at the end.
pub(crate) fn write(judged: &Judged<'_>, out: &mut dyn io::Write) -> Result<(), ReportError> {
    let mut buffered = io::BufWriter::new(out);
    let stored = StoredRun {
        run: judged.run,
        summary: StoredSummary::new(judged),
    };
    foreign::write_json(&mut buffered, &stored).map_err(|error| {
        if error.is_io() {
            ReportError::Output(error.into())
        } else {
            ReportError::Encode(error)
        }
    })?;
    io::Write::write_all(&mut buffered, b"\n")?;
    Ok(io::Write::flush(&mut buffered)?)
}
