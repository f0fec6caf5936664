//! tcpkali.

mod expression;
mod options;
mod plan;
mod report;

pub use options::{Content, Options, Rate, Statsd, table};
pub use plan::{has_markers, has_replies};
pub use report::{
    Interval, Taken, datagrams, destination, listening, not_connected, ramped_up, report,
    report_of_listening, status,
};
