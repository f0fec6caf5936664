//! Raw TCP: echoes, sinks, sources and replies of known bytes.

mod answers;
pub(crate) mod counters;
mod service;
mod worker;

pub use counters::TcpCounters;
pub use service::{ParseTcpError, TcpOptions, TcpService};
