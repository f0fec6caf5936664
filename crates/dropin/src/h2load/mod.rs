//! h2load, of nghttp2.

mod explain;
mod options;
mod plan;
mod report;

pub use explain::explanation;
pub use options::{Options, Version, shown};
pub use report::{heading, report};
