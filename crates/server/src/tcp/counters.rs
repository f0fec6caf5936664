//! What was received and sent over raw TCP.

use std::collections::BTreeMap;
use std::sync::Arc;

use brunt_io::clock;
use serde::{Deserialize, Serialize};

use super::fault::TcpFaultKind;
use crate::count::{Count, LinkCounters, add_named};

/// Exact totals of raw TCP over all workers.
///
/// Of services that answer messages, and with nothing in flight, `messages = replies +
/// messages_unanswered + messages_abandoned`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TcpCounters {
    /// Connections accepted.
    pub connections_accepted: u64,
    /// Accepted connections that are not yet closed.
    pub connections_live: u64,
    /// Connections that could not be accepted, mostly for want of descriptors.
    pub accepts_failed: u64,
    /// TLS handshakes that failed; their connections are not among those accepted.
    pub handshakes_failed: u64,
    /// Connections closed because nothing got on for the idle time-out.
    pub connections_timed_out: u64,
    /// Connections closed because a message of theirs was too long to be kept.
    pub connections_overflowed: u64,
    /// Connections whose messages were not framed as they should be; they were closed.
    pub connections_misframed: u64,
    /// Bytes read, those included that were thrown away in the kernel; of TLS the plain text.
    pub bytes_received: u64,
    /// Bytes received that were thrown away in the kernel.
    pub bytes_discarded: u64,
    /// Bytes given to the kernel for sending; of TLS the plain text. What a connection was given
    /// last may not have been taken when it was closed.
    pub bytes_sent: u64,
    /// Messages completely received; none where the service has no framing.
    pub messages: u64,
    /// Answers to messages that were given to the kernel for sending.
    pub replies: u64,
    /// Messages without an answer, or with half of one, on purpose.
    pub messages_unanswered: u64,
    /// Messages whose connection was lost before their answer was due, or was sent.
    pub messages_abandoned: u64,
    /// Connections that failed on purpose, by how: close, refuse, reset, cut, silent, unread.
    pub faults_by_kind: BTreeMap<String, u64>,
    /// Answers that had to wait for an instant, and how late they were sent: from the instant at
    /// which they were due to the clock reading just before they were sent.
    pub replies_delayed: u64,
    /// Mean lateness of these answers, nanoseconds, rounded down; absent without any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lateness_ns_mean: Option<u64>,
    /// Greatest lateness of these answers, nanoseconds; absent without any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lateness_ns_max: Option<u64>,
    /// When these totals were made, nanoseconds of the server's monotonic clock: the bytes between
    /// two readings, over the time between them, are a rate.
    #[serde(default)]
    pub clock_ns: u64,
}

/// One worker's counts, on cache lines of their own.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(crate) struct TcpWorkerCounters {
    pub(crate) links: LinkCounters,
    pub(crate) misframed: Count,
    pub(crate) bytes_discarded: Count,
    pub(crate) bytes_sent: Count,
    pub(crate) messages: Count,
    pub(crate) replies: Count,
    pub(crate) unanswered: Count,
    pub(crate) abandoned: Count,
    delayed: Count,
    lateness_ns_sum: Count,
    lateness_ns_max: Count,
    faults: [Count; TcpFaultKind::ALL.len()],
}

impl TcpWorkerCounters {
    /// Counts a connection that fails.
    pub(crate) fn fault(&self, kind: TcpFaultKind) {
        self.faults[kind as usize].add(1);
    }

    /// Counts so many answers that had to wait for an instant and are sent this much after it.
    pub(crate) fn delayed(&self, replies: u64, lateness_ns: u64) {
        self.lateness_ns_sum
            .add(lateness_ns.saturating_mul(replies));
        self.lateness_ns_max.raise(lateness_ns);
        self.delayed.add(replies);
    }
}

/// The totals of these workers as of now.
pub(crate) fn totals(workers: &[Arc<TcpWorkerCounters>]) -> TcpCounters {
    let sum = |count: fn(&TcpWorkerCounters) -> &Count| {
        workers
            .iter()
            .map(|worker| count(worker).get())
            .sum::<u64>()
    };
    // Effects before their causes: what comes in between never makes a difference negative.
    let closed = sum(|worker| &worker.links.closed);
    let replies = sum(|worker| &worker.replies);
    let bytes_discarded = sum(|worker| &worker.bytes_discarded);
    let mut totals = TcpCounters {
        connections_accepted: sum(|worker| &worker.links.accepted),
        accepts_failed: sum(|worker| &worker.links.accepts_failed),
        handshakes_failed: sum(|worker| &worker.links.handshakes_failed),
        connections_timed_out: sum(|worker| &worker.links.timed_out),
        connections_overflowed: sum(|worker| &worker.links.overflowed),
        connections_misframed: sum(|worker| &worker.misframed),
        bytes_received: sum(|worker| &worker.links.bytes_received),
        bytes_discarded,
        bytes_sent: sum(|worker| &worker.bytes_sent),
        messages_unanswered: sum(|worker| &worker.unanswered),
        messages_abandoned: sum(|worker| &worker.abandoned),
        messages: sum(|worker| &worker.messages),
        replies,
        replies_delayed: sum(|worker| &worker.delayed),
        clock_ns: clock::now_ns(),
        ..TcpCounters::default()
    };
    totals.connections_live = totals.connections_accepted.saturating_sub(closed);
    totals.lateness_ns_mean =
        sum(|worker| &worker.lateness_ns_sum).checked_div(totals.replies_delayed);
    totals.lateness_ns_max = totals.lateness_ns_mean.and_then(|_| {
        let maxima = workers.iter().map(|worker| &worker.lateness_ns_max);
        maxima.map(Count::get).max()
    });
    let names = TcpFaultKind::ALL.map(|(_, name)| name);
    for worker in workers {
        add_named(&mut totals.faults_by_kind, &names, &worker.faults);
    }
    totals
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
            worker.delayed(2, 100 * index as u64);
            worker.fault(TcpFaultKind::Unread);
            Arc::new(worker)
        });
        let totals = totals(&workers);
        assert_eq!(
            (totals.connections_accepted, totals.connections_live),
            (30, 27)
        );
        assert_eq!((totals.bytes_received, totals.bytes_discarded), (21, 15));
        assert_eq!(totals.faults_by_kind["unread"], 3);
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

    #[test]
    fn each_kind_of_fault_is_counted_by_its_name() {
        for (place, (kind, name)) in TcpFaultKind::ALL.into_iter().enumerate() {
            assert_eq!((kind as usize, kind.to_string()), (place, name.to_owned()));
        }
    }
}
