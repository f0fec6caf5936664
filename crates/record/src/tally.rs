//! Counters of one phase of one worker.

use serde::{Deserialize, Serialize};

use crate::merged::{Merge, merges};
use crate::{FailureCounts, StatusCounts};

/// The phase in which an event fell, by its time stamp.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// The time before the window: set-up and warm-up.
    Before = 0,
    /// Inside the window.
    Measure = 1,
    /// The time after the window: drain.
    After = 2,
}

/// What happened in one phase.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tally {
    /// Requests handed to the kernel, each once, however often it was sent.
    pub requests_sent: u64,
    /// Sends beside those of requests that their servers had not processed, and that were sent
    /// again.
    pub sent_again: u64,
    /// Complete final replies, by status.
    pub replies: StatusCounts,
    /// Replies that report an error and say when to ask again (`Retry-After`).
    pub retry_afters: u64,
    /// Interim (1xx) replies.
    pub interim_replies: u64,
    /// Messages received that answer nothing, where messages are exchanged. Their bytes are
    /// overhead.
    pub pushes: u64,
    /// Control frames of WebSocket; absent without any. The bytes of those received are overhead.
    #[serde(default, skip_serializing_if = "ControlFrames::is_none")]
    pub controls: ControlFrames,
    /// What QUIC counted; absent without it.
    #[serde(default, skip_serializing_if = "QuicCounts::is_none")]
    pub quic: QuicCounts,
    /// Failures by kind.
    pub failures: FailureCounts,
    /// Bytes handed to the kernel: of requests, and in HTTP/2 of all frames. Without what TLS adds.
    pub bytes_sent: u64,
    /// Bytes read from sockets.
    pub bytes_received: u64,
    /// Bytes of heads of complete replies, interim ones included; in HTTP/2 of the frames that
    /// carry them.
    pub reply_head_bytes: u64,
    /// Bytes of bodies of complete replies, framing included.
    pub reply_body_bytes: u64,
    /// Bytes received of replies that were never complete, or that say that a call of gRPC failed,
    /// and bytes that nobody asked for.
    pub discarded_bytes: u64,
    /// Bytes received that belong to no reply by their nature: TLS handshakes and what TLS records
    /// add; in HTTP/2 frames about the connection as a whole, and what still came of streams that
    /// had ended; messages that answer nothing, and what answers the first one of a connection.
    pub overhead_bytes: u64,
    /// Connections opened: with TLS and HTTP/2, when the first request may be sent.
    pub connections_opened: u64,
    /// Connections opened with a full TLS handshake.
    pub handshakes_full: u64,
    /// Connections opened that resumed the TLS session of an earlier one.
    pub handshakes_resumed: u64,
    /// Connections that the server asked to be replaced (GOAWAY, RFC 9113 section 6.8).
    pub goaways: u64,
    /// Times that the server allowed no streams on an open connection for a while (HTTP/2, its
    /// SETTINGS_MAX_CONCURRENT_STREAMS at 0).
    pub connections_shut: u64,
    /// Connections that the server closed while no request was in flight. Not a failure.
    pub connections_closed_idle: u64,
    /// Connections that the server closed so after a reply with an error status that said so, such
    /// as 408 (RFC 9110 section 15.5.9). The bytes of these replies are overhead.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub idle_replies: u64,
}

fn is_zero(count: &u64) -> bool {
    *count == 0
}

merges!(Tally:
    requests_sent sent_again replies retry_afters interim_replies pushes controls quic failures
    bytes_sent bytes_received reply_head_bytes reply_body_bytes discarded_bytes overhead_bytes
    handshakes_full handshakes_resumed goaways connections_shut connections_opened
    connections_closed_idle idle_replies
);

impl Tally {
    /// Sends of requests, each as often as it was sent.
    pub fn sends(&self) -> u64 {
        self.requests_sent.saturating_add(self.sent_again)
    }
}

/// The counters of the three phases. Their sum is everything that the process did.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PhaseTallies {
    /// Set-up and warm-up.
    pub before: Tally,
    /// The window: the only source of rates.
    pub measure: Tally,
    /// Drain.
    pub after: Tally,
}

merges!(PhaseTallies: before measure after);

impl PhaseTallies {
    /// The counters of one phase.
    pub fn get_mut(&mut self, phase: Phase) -> &mut Tally {
        match phase {
            Phase::Before => &mut self.before,
            Phase::Measure => &mut self.measure,
            Phase::After => &mut self.after,
        }
    }

    /// Everything, whatever the phase.
    pub fn lifetime(&self) -> Tally {
        let mut sum = self.before.clone();
        sum.merge(&self.measure);
        sum.merge(&self.after);
        sum
    }
}

/// Control frames of WebSocket, which are exchanged beside messages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ControlFrames {
    /// Pings sent.
    pub pings_sent: u64,
    /// Pongs received: answers to these, or sent unasked.
    pub pongs_received: u64,
    /// Pings received; each is answered by a pong.
    pub pings_received: u64,
    /// Close frames received; each is answered by one.
    pub closes_received: u64,
}

merges!(ControlFrames: pings_sent pongs_received pings_received closes_received);

impl ControlFrames {
    /// Whether there was none.
    pub fn is_none(&self) -> bool {
        *self == Self::default()
    }
}

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
