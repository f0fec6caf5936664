//! Disturbances of brunt itself, so that the checks of a run can be seen to find them.

/// Disturbances of brunt itself, for tests of its own checks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Faults {
}
