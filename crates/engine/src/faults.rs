//! Disturbances of brunt itself, so that the checks of a run can be seen to find them.

/// Disturbances of brunt itself, for tests of its own checks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Faults {
    /// How long after the start of load the workers are found to be too few, nanoseconds: once, or
    /// on a machine as often as there may be more of them.
    pub too_few: Option<u64>,
}
