//! How server and load behaved over the window: outages, silences, overload, drift, and what of the
//! window was left undisturbed.

pub(crate) mod cpus;
pub(crate) mod failures;
pub(crate) mod steadiness;
