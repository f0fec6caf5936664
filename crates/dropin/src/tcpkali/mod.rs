//! tcpkali.

mod expression;
mod options;
mod plan;
mod report;

pub use options::{Content, Rate, TcpkaliOptions, table};
pub use plan::has_markers;
pub use report::{destination, not_connected, ramped_up, report};
