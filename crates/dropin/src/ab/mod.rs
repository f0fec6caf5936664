//! ab, of the Apache HTTP server.

mod options;
mod plan;
mod report;

pub use options::{AbOptions, Url, table};
pub use plan::Planned;
pub use report::{AbMeasured, csv, gnuplot, heading, preparation_ending, report, run_ending};
