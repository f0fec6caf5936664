//! Whose command line it is.

/// wrk or wrk2.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Program {
    /// wrk: as many requests as replies allow.
    Wrk,
    /// wrk2: a planned rate.
    Wrk2,
}
