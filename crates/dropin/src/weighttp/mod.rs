//! weighttp, of lighttpd.

mod options;
mod plan;
mod report;

pub use options::{Form, Options, Proxy, TABLE};
pub use report::{Measured, csv, heading, progress, report};
