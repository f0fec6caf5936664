//! tcpkali.

mod content;
mod escape;
mod expression;
mod live;
mod number;
mod options;
mod plan;
mod report;
mod usage;

pub use expression::{ExpressionError, Frame, Piece, pieces};
pub use live::{Interval, datagrams, status};
pub use options::{Content, Options, Rate, Statsd, shown};
pub use plan::{has_markers, has_replies};
pub use report::{
    Taken, destination, listening, not_connected, ramped_up, report, report_of_listening,
};
