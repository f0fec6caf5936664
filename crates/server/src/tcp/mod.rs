//! Raw TCP: echoes, sinks, sources and replies of known bytes, and what was received and sent.

mod service;
mod worker;

use std::sync::Arc;

use brunt_io::clock;
use serde::{Deserialize, Serialize};

pub use self::service::{ParseTcpError, TcpOptions, TcpService};
use crate::count::counters;

counters! {
    /// Exact totals of raw TCP over all workers.
    ///
    /// Of services that answer messages, and with nothing in flight, `messages = replies +
    /// messages_abandoned`.
    TcpCounters of TcpWorkerCounters;
    sums {
        /// Bytes received that were thrown away in the kernel.
        bytes_discarded,
        /// Connections whose messages were not framed as they should be; they were closed.
        connections_misframed,
        /// Answers to messages that were given to the kernel for sending.
        replies,
        /// Messages whose connection was lost before their answer was due, or was sent.
        messages_abandoned,
        /// Messages completely received; none where the service has no framing.
        messages,
    }
    totals {
        /// When these totals were made, nanoseconds of the server's monotonic clock: the bytes
        /// between two readings, over the time between them, are a rate.
        clock_ns: u64,
    }
    worker {
    }
}

impl TcpCounters {
    /// The totals of these workers as of now.
    pub(crate) fn of(workers: &[Arc<TcpWorkerCounters>]) -> Self {
        let mut totals = Self::sums(workers);
        totals.clock_ns = clock::now_ns();
        totals
    }
}
