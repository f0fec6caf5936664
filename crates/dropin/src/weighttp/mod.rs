//! weighttp, of lighttpd.

mod options;
mod plan;
mod report;

pub use options::{Form, Options, Proxy, table};
pub use report::{Measured, csv, heading, progress, report};
