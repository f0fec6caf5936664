//! The kernel's accounts of one worker's one-way streams over the window, and over their lives.

use serde::{Deserialize, Serialize};

use crate::merged::{Merge, merges};
use crate::once::since_ns;

/// What the kernel counted of some TCP connections over some time (TCP_INFO).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StreamAccount {
    /// Payload bytes that the peers' kernels acknowledged.
    pub bytes_acked: u64,
    /// Payload bytes that came in. Of a connection that was reset after the peer had ended its side
    /// the kernel counts that end as one.
    pub bytes_received: u64,
    /// Payload bytes sent again.
    pub bytes_retransmitted: u64,
    /// Segments with payload sent, with those sent again.
    pub segments_sent: u64,
    /// Segments sent again; connection requests are not among them.
    pub segments_retransmitted: u64,
    /// Segments with payload received.
    pub segments_received: u64,
    /// Segments received out of order.
    pub segments_out_of_order: u64,
    /// Time with something to send or unacknowledged, summed over connections, nanoseconds.
    pub busy_ns: u64,
    /// The part of `busy_ns` in which the peer's receive window held sending up, nanoseconds.
    pub receive_window_limited_ns: u64,
    /// The part of `busy_ns` in which the size of our send buffer held sending up, nanoseconds.
    pub send_buffer_limited_ns: u64,
}

merges!(StreamAccount:
    bytes_acked bytes_received bytes_retransmitted segments_sent segments_retransmitted
    segments_received segments_out_of_order busy_ns receive_window_limited_ns
    send_buffer_limited_ns
);

impl StreamAccount {
    /// What was counted since it stood at `earlier`.
    pub fn since(&self, earlier: &Self) -> Self {
        let since = |of: fn(&Self) -> u64| of(self).saturating_sub(of(earlier));
        Self {
            bytes_acked: since(|it| it.bytes_acked),
            bytes_received: since(|it| it.bytes_received),
            bytes_retransmitted: since(|it| it.bytes_retransmitted),
            segments_sent: since(|it| it.segments_sent),
            segments_retransmitted: since(|it| it.segments_retransmitted),
            segments_received: since(|it| it.segments_received),
            segments_out_of_order: since(|it| it.segments_out_of_order),
            busy_ns: since(|it| it.busy_ns),
            receive_window_limited_ns: since(|it| it.receive_window_limited_ns),
            send_buffer_limited_ns: since(|it| it.send_buffer_limited_ns),
        }
    }
}

/// How far the streams of a worker had come at one instant, counted from the first reading.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StreamReading {
    /// When the accounts were read, nanoseconds from the start of the window.
    pub at_ns: i64,
    /// Payload bytes acknowledged so far.
    pub bytes_acked: u64,
    /// Payload bytes that had come in so far, by the kernel's count.
    pub bytes_received: u64,
    /// Segments sent again so far.
    pub segments_retransmitted: u64,
}

impl StreamReading {
    /// Most readings of one worker that are kept: beyond, each other one is dropped.
    pub const KEPT_MAX: usize = 1_200;
}

/// The streams of one worker, by the kernel's accounts of all of them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StreamRecord {
    /// What was counted between the first and the last of `readings`, which are made at the
    /// window's edges. Streams that ended in between are included up to their end.
    pub window: StreamAccount,
    /// How far things had come, oldest first: at the start of the window, in between, and at its
    /// end.
    pub readings: Vec<StreamReading>,
    /// Bytes of the window, acknowledged and received, of each stream that was open at its end;
    /// empty where there were more than 4,096.
    pub bytes_of_streams: Vec<u64>,
    /// Streams that were open at the end of the window.
    pub streams: u32,
    /// Smallest round trip of any, nanoseconds; null where the kernel gave none.
    pub min_rtt_ns: Option<u64>,
    /// Smoothed round trips at the end of the window, summed over the streams open then.
    pub smoothed_rtt_ns_sum: u64,
    /// Bytes per second that their paths delivered lately, summed over them.
    pub delivery_bytes_per_s: u64,
    /// What was counted over the lives of all streams, up to the end of drain.
    pub lifetime: StreamAccount,
    /// Connections whose accounts could not be read when they ended.
    pub unread_accounts: u64,
    /// Bytes that were in our sockets and not yet acknowledged when their streams ended.
    pub unacknowledged_bytes: u64,
    /// Bytes that were in our sockets and not yet read when their streams ended.
    pub unread_bytes: u64,
    /// Streams that came to an end that both sides agreed on: ours was sent behind the last byte,
    /// all bytes were acknowledged, and the peer ended its side, with nothing left to read. A peer
    /// that closes a connection without having read it all resets it.
    pub ended_in_order: u64,
}

impl StreamRecord {
    /// The bytes of each stream are kept of so many.
    pub const STREAMS_KEPT_MAX: usize = 4_096;

    /// Adds a reading, which is later than those before.
    pub fn read(&mut self, reading: StreamReading) {
        if self.readings.len() == StreamReading::KEPT_MAX {
            // The first one is the begin of all counts.
            let mut number = 0_usize;
            self.readings.retain(|_| {
                number += 1;
                number % 2 == 1
            });
        }
        self.readings.push(reading);
    }

    /// Time between the first and the last reading, nanoseconds.
    pub fn interval_ns(&self) -> u64 {
        let (first, last) = (self.readings.first(), self.readings.last());
        let of = first
            .zip(last)
            .map(|(first, last)| last.at_ns.saturating_sub(first.at_ns));
        of.and_then(|ns| u64::try_from(ns).ok()).unwrap_or(0)
    }

    /// Counts its instants, which are those of the clock of the process, from `origin_ns`.
    pub(crate) fn count_from(&mut self, origin_ns: u64) {
        for reading in &mut self.readings {
            reading.at_ns = since_ns(reading.at_ns, origin_ns);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn readings_stay_bounded_and_keep_their_ends() {
        let mut record = StreamRecord::default();
        for at_ns in 0..10_000 {
            record.read(StreamReading {
                at_ns,
                bytes_acked: at_ns as u64,
                ..StreamReading::default()
            });
        }
        assert!(record.readings.len() <= StreamReading::KEPT_MAX);
        assert_eq!(record.interval_ns(), 9_999);
        assert!(record.readings.is_sorted_by_key(|reading| reading.at_ns));
    }

    #[test]
    fn accounts_are_differences() {
        let earlier = StreamAccount {
            bytes_acked: 10,
            busy_ns: 4,
            ..StreamAccount::default()
        };
        let mut later = StreamAccount {
            bytes_acked: 15,
            segments_sent: 3,
            busy_ns: 4,
            ..StreamAccount::default()
        };
        let since = later.since(&earlier);
        assert_eq!(
            (since.bytes_acked, since.segments_sent, since.busy_ns),
            (5, 3, 0)
        );
        later.merge(&since);
        assert_eq!((later.bytes_acked, later.segments_sent), (20, 6));
    }
}
