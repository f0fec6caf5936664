//! The journal of a sweep: a line for the sweep without rounds, then a line for each round as soon
//! as it was measured. What a killed process leaves is read up to its last whole line.

use std::io::Read;

use brunt_judge::{Sweep, SweepRound};

use crate::foreign::json_line;
use crate::read::{ReadError, STORED_BYTES_MAX, Stored, stored_in};
use crate::{Experiment, ReportError};

/// The first line of a journal, with its end.
///
/// # Errors
///
/// A figure has no JSON form.
pub fn journal_head(sweep: &Sweep) -> Result<String, ReportError> {
    json_line(sweep).map_err(ReportError::Encode)
}

/// The line of a round, with its end.
///
/// # Errors
///
/// A figure has no JSON form.
pub fn journal_line(round: &SweepRound) -> Result<String, ReportError> {
    json_line(round).map_err(ReportError::Encode)
}

/// Reads a journal. Gives the sweep with its rounds, and how many bytes its whole lines have: what
/// follows was cut.
///
/// # Errors
///
/// The first line is no sweep, or a whole line behind it is no round.
pub fn read_journal(input: &mut dyn Read) -> Result<(Sweep, u64), ReadError> {
    let mut bytes = Vec::new();
    input.take(STORED_BYTES_MAX + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > STORED_BYTES_MAX {
        return Err(ReadError::TooLarge {
            limit_bytes: STORED_BYTES_MAX,
        });
    }
    let whole = bytes
        .iter()
        .rposition(|&byte| byte == b'\n')
        .map_or(0, |end| end + 1);
    let mut lines = bytes[..whole].split_inclusive(|&byte| byte == b'\n');
    let head = lines.next().ok_or(ReadError::NoJournal)?;
    let Stored::Experiment(experiment) = stored_in(head).map_err(|_| ReadError::NoJournal)? else {
        return Err(ReadError::NoJournal);
    };
    let Experiment::Sweep(mut sweep) = *experiment else {
        return Err(ReadError::NoJournal);
    };
    for line in lines {
        let round = serde_json::from_slice(line).map_err(ReadError::Field)?;
        sweep.rounds.push(round);
    }
    Ok((sweep, whole as u64))
}
