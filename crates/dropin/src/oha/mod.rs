//! oha.

mod options;
mod plan;
mod report;

pub use options::{OhaOptions, ResultForm, table};
pub use plan::plan;
pub use report::report;

/// The version whose command line and output these are.
const VERSION: &str = "1.15.0";
