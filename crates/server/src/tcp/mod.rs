//! Raw TCP: echoes, sinks, sources and replies of known bytes.

mod answers;
pub(crate) mod counters;
mod fault;
mod service;
mod worker;

pub use counters::TcpCounters;
pub use fault::TcpFaultKind;
pub use service::{ParseTcpError, TcpDelay, TcpFault, TcpOptions, TcpService, TcpStall};
