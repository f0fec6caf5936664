//! wrk and wrk2.

mod options;
mod plan;
mod report;
mod script;

pub use options::{Program, Url, WrkOptions, table};
pub use plan::plan;
pub use report::{heading, preparation_ending, report};
pub use script::{Scripted, outcome, script_error};
