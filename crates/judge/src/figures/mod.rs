//! The figures of a run that follow from its counts and histograms.

pub(crate) mod bandwidth;
pub(crate) mod figure;
pub(crate) mod held;
pub(crate) mod summary;
pub(crate) mod with_connect;
