//! wrk and wrk2.

mod latencies;
mod options;
mod plan;
mod report;
mod script;
mod units;
mod url;

pub use options::{Options, Program, TABLE};
pub use plan::plan;
pub use report::{heading, preparation_ending, report};
pub use script::{Scripted, outcome, script_error};
pub use url::Url;
