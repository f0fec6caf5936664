//! The active experiments of `--diagnose`, as they are stored: parts of a run with other numbers of
//! connections, and with work added to each request.

use serde::{Deserialize, Serialize};

use brunt_load::bounded;

/// Most parts of an experiment: far more than it has.
const PARTS_MAX: usize = 1_000;

/// An experiment that was made after the run, with its parts in the order of time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Diagnosis {
    /// Worker threads.
    pub workers: u32,
    /// Connections of the run that is diagnosed.
    pub connections: u32,
    /// The parts, each at one setting.
    #[serde(deserialize_with = "bounded::list::<_, _, PARTS_MAX>")]
    pub parts: Vec<DiagnosisPart>,
}

/// A stretch of the experiment at one setting, without its beginning, in which the change of
/// setting still shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DiagnosisPart {
    /// Connections in use.
    pub connections: u32,
    /// Work added to each request of every worker, nanoseconds.
    pub delay_ns: u64,
    /// Complete replies, whatever their status.
    pub replies: u64,
    /// Length of the part, nanoseconds.
    pub length_ns: u64,
}
