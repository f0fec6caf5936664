//! weighttp, of lighttpd.

mod form;
mod options;
mod plan;
mod report;
mod usage;

pub use form::Form;
pub use options::{Options, Proxy, shown};
pub use report::{Measured, csv, heading, progress, report};
