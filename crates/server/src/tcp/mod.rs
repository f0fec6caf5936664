//! Raw TCP: echoes, sinks, sources and replies of known bytes, and what was received and sent.

mod answers;
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn totals_are_the_sum_over_workers() {
        let workers: [Arc<TcpWorkerCounters>; 3] = std::array::from_fn(|index| {
            let worker = TcpWorkerCounters::default();
            worker.links.accepted.add(10);
            worker.links.closed.add(index as u64);
            worker.links.bytes_received.add(7);
            worker.bytes_discarded.add(5);
            worker.lateness.add(2, 100 * index as u64);
            Arc::new(worker)
        });
        let totals = TcpCounters::of(&workers);
        assert_eq!(
            (totals.connections_accepted, totals.connections_live),
            (30, 27)
        );
        assert_eq!((totals.bytes_received, totals.bytes_discarded), (21, 15));
        assert_eq!(
            (
                totals.replies_delayed,
                totals.lateness_ns_mean,
                totals.lateness_ns_max
            ),
            (6, Some(100), Some(200))
        );
        let json = serde_json::to_string(&totals).expect("JSON");
        assert_eq!(
            serde_json::from_str::<TcpCounters>(&json).expect("counters"),
            totals
        );
    }
}
