//! The stored form: the whole run as JSON, with derived figures beside it.

use std::io;

use brunt_judge::Judged;
use brunt_record::Run;
use serde::Serialize;

use crate::figures::figures;
use crate::object::Object;
use crate::read::STORED_BYTES_MAX;
use crate::{ReportError, foreign};

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
    let mut buffered = io::BufWriter::new(Readable {
        out,
        left: STORED_BYTES_MAX,
    });
    let stored = StoredRun {
        run: judged.run,
        summary: figures(judged),
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
