//! h2load, of nghttp2.

mod options;
mod plan;
mod report;

pub use options::{H2loadOptions, table};
pub use plan::Uris;
pub use report::{heading, log_lines, report, unreached, unresolved};
