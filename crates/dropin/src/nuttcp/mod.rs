//! nuttcp: its command line, what it says to its server, and its text.

mod control;
mod options;
mod report;

pub use control::{HELLO, ServerReport, is_hello, parameters, refusal};
pub use options::{NuttcpOptions, table};
pub use report::{intervals, prefix, report};
