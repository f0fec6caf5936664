//! What the simulated server and network counted.

use super::piece::Completes;

/// What the simulated server and network counted, to set beside what brunt counted. Exact: taken
/// after everything that was in flight has come to its end.
///
/// `requests_sent = requests + requests_lost`, and
/// `requests = replies + faults() + abandoned`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SimCounts {
    /// Attempts to connect for which there was no socket.
    pub connections_impossible: u64,
    /// Attempts to connect that the server took.
    pub connections_accepted: u64,
    /// Of these, those that were open for brunt before it gave up on them, with their handshakes;
    /// none of the reference server's over HTTP/2 and WebSocket.
    pub connections_established: u64,
    /// Attempts to connect that were refused.
    pub connections_refused: u64,
    /// Attempts to connect that were never answered.
    pub connections_unanswered: u64,
    /// Connections that the server closed when the handshake began.
    pub handshakes_cut: u64,
    /// Connections on which it fell silent then.
    pub handshakes_silent: u64,
    /// Requests given to the network.
    pub requests_sent: u64,
    /// Requests completely received by the server.
    pub requests: u64,
    /// Requests that the server never received in full: it had closed, or brunt had.
    pub requests_lost: u64,
    /// Answers that keep to the protocol, those with status 429 and 503 included.
    pub replies: u64,
    /// Of these, those with status 503.
    pub replies_error: u64,
    /// Of these, those with status 429: refused by the limiter.
    pub replies_limited: u64,
    /// Of all answers, those that brunt took in full.
    pub replies_delivered: u64,
    /// Requests that met silence.
    pub silent: u64,
    /// Requests that met a reset.
    pub reset: u64,
    /// Requests that met a close.
    pub closed: u64,
    /// Requests whose answer was truncated.
    pub truncated: u64,
    /// Requests whose answer was malformed.
    pub malformed: u64,
    /// Answers with unasked bytes behind them.
    pub extra_bytes: u64,
    /// Requests received whose connection ended before their turn.
    pub abandoned: u64,
    /// Connections that the server closed because they had nothing in flight for too long.
    pub closed_idle: u64,
    /// Bytes of streams that the server read.
    pub stream_bytes_read: u64,
    /// Bytes of streams that it sent.
    pub stream_bytes_sent: u64,
    /// Bytes of HTTP given to the network, without what TLS adds.
    pub bytes_sent: u64,
    /// Bytes that brunt took, with those of TLS.
    pub bytes_delivered: u64,
    /// Wake-ups that were delayed.
    pub late_wake_ups: u64,
}

impl SimCounts {
    /// Requests that met something else than an answer.
    pub fn faults(&self) -> u64 {
        self.silent + self.reset + self.closed + self.truncated + self.malformed
    }

    /// Brunt took something in full.
    pub(super) fn completed(&mut self, what: Completes) {
        match what {
            Completes::Nothing => {}
            Completes::Answer => self.replies_delivered += 1,
            Completes::Opening => self.connections_established += 1,
        }
    }
}
