//! Questions that need several rounds of load: what limited a run, and what brunt itself reaches on
//! a machine.

mod calibrate;
mod compare;
mod diagnose;
mod turns;

pub use calibrate::{Bench, CalibrateError, Calibrated, calibrate, steps};
pub use compare::compare;
pub use diagnose::{Diagnose, DiagnoseError};
