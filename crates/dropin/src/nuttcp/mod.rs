//! nuttcp: its command line, what it says to its server, and its text.

mod control;
mod explain;
mod options;
mod report;
mod usage;

pub use control::{HELLO, ServerReport, is_hello, parameters, refusal};
pub use explain::explanation;
pub use options::{Options, shown};
pub use report::{intervals, prefix, report};
