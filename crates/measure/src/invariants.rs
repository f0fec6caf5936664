//! The invariants of a run: a table of checks, each with what must hold and what was found.

use serde::{Deserialize, Serialize};

use crate::Run;

/// How an invariant stands in one run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Standing {
    /// It holds.
    Held,
    /// It holds within its refusal limit, but not well: worth a line in the report.
    Flagged,
    /// It is broken: the run is invalid.
    Broken,
    /// It says nothing about this run; the detail says why.
    NotApplicable,
}

/// What was found of one invariant.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Finding {
    /// Its name, such as `W4`.
    pub id: String,
    /// How it stands.
    pub standing: Standing,
    /// The inputs and what they gave, in words.
    pub detail: String,
}

/// One invariant.
pub struct Invariant {
    /// Its name, such as `W4`.
    pub id: &'static str,
    /// What must hold, one line.
    pub rule: &'static str,
    check: fn(&Run) -> (Standing, String),
}

/// All invariants that are checked on every run.
pub const INVARIANTS: &[Invariant] = &[];

/// Checks every invariant, in the order of [`INVARIANTS`].
pub fn check(run: &Run) -> Vec<Finding> {
    INVARIANTS
        .iter()
        .map(|invariant| {
            let (standing, detail) = (invariant.check)(run);
            Finding {
                id: invariant.id.to_owned(),
                standing,
                detail,
            }
        })
        .collect()
}

/// Whether the figures may be printed: no invariant is broken.
pub fn is_valid(findings: &[Finding]) -> bool {
    findings
        .iter()
        .all(|finding| finding.standing != Standing::Broken)
}
