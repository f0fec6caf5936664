//! What QUIC did beside requests and replies.

use crate::merged::{Merge, merges};
use serde::{Deserialize, Serialize};

/// Counts of QUIC, of connections together. Those of a connection are read at the edges of the
/// window and at its end, and belong to the phase before.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct QuicCounts {
    /// Handshakes that the server refused, and that were tried once again on the same socket. Those
    /// that were refused again are failures, too.
    pub handshakes_retried: u64,
    /// Datagrams sent. Their bytes are the bytes sent.
    pub datagrams_sent: u64,
    /// Datagrams received. Their bytes are the bytes received.
    pub datagrams_received: u64,
    /// Times that datagrams were handed to the kernel, one or several at once.
    pub sends: u64,
    /// Times that datagrams were taken from the kernel, one or several at once.
    pub receives: u64,
    /// Datagrams that found a receive buffer of brunt's full, as far as what came behind them told.
    pub datagrams_dropped: u64,
    /// Packets sent, of which a datagram may carry several, without those that close connections.
    pub packets_sent: u64,
    /// Sent packets that were held for lost.
    pub packets_lost: u64,
    /// Bytes of these. What they carried was sent again.
    pub bytes_lost: u64,
    /// Smoothed round trips that were read (RFC 9002 section 5.3).
    pub round_trips: u64,
    /// Their sum, nanoseconds.
    pub round_trips_ns: u64,
}

merges!(QuicCounts:
    handshakes_retried datagrams_sent datagrams_received sends receives datagrams_dropped
    packets_sent packets_lost bytes_lost round_trips round_trips_ns
);

impl QuicCounts {
    /// Whether nothing was counted.
    pub fn is_none(&self) -> bool {
        *self == Self::default()
    }

    /// Mean of the smoothed round trips, nanoseconds; absent without any.
    pub fn round_trip_mean_ns(&self) -> Option<f64> {
        (self.round_trips > 0).then(|| self.round_trips_ns as f64 / self.round_trips as f64)
    }
}
