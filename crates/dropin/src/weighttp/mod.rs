//! weighttp, of lighttpd.

mod options;
mod plan;
mod report;

pub use options::{Form, Proxy, WeighttpOptions, table};
pub use report::{Measured, csv, heading, progress, report};
