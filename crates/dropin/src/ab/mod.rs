//! ab, of the Apache HTTP server.

mod options;
mod plan;
mod report;

pub use options::{Options, Url, table};
pub use plan::Planned;
pub use report::{Measured, csv, gnuplot, heading, preparation_ending, report, run_ending};
