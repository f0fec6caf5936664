//! httperf, of David Mosberger and others.

mod options;
mod plan;
mod report;

pub use options::{HttperfOptions, Period, Uris, Workload, table};
pub use plan::{Files, Planned};
pub use report::{heading, preparation_ending, report, unread, unread_log};
