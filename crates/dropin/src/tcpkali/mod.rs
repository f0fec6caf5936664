//! tcpkali.

mod explain;
mod expression;
mod number;
mod options;
mod plan;
mod report;
mod usage;

pub use explain::explanation;
pub use expression::{ExpressionError, Piece, pieces};
pub use options::{Content, Options, shown};
pub use report::report;
