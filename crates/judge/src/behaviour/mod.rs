//! How server and load behaved over the window: outages, silences, overload, drift, and what of the
//! window was left undisturbed.

pub(crate) mod clean;
pub(crate) mod cpu_ledger;
pub(crate) mod ended_streams;
pub(crate) mod failure_times;
pub(crate) mod outage;
pub(crate) mod overlap;
pub(crate) mod overload;
pub(crate) mod silence;
pub(crate) mod steadiness;
pub(crate) mod success;
