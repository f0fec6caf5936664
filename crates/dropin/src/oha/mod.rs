//! oha.

mod figures;
mod options;
mod plan;
mod report;
mod usage;

pub use figures::Figures;
pub use options::{Body, Form, Options, shown};
pub use plan::plan;
pub use report::report;

/// The version whose command line and output these are.
const VERSION: &str = "1.15.0";
