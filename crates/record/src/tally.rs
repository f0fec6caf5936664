//! Counters of one phase of one worker.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::FailureCounts;
use crate::merged::{Merge, merges, sum};

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
    #[serde(default, skip_serializing_if = "crate::merged::is_zero")]
    pub idle_replies: u64,
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

const FIRST: u16 = 100;
const LAST: u16 = 999;
/// RFC 9110 section 15: 4xx and 5xx report errors.
const FIRST_ERROR: u16 = 400;

/// How a request was answered: with a status, or in a protocol without them with a success or an
/// error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReplyOutcome(u16);

impl ReplyOutcome {
    /// A success in a protocol without statuses.
    pub const SUCCESS: Self = Self(0);
    /// An error in a protocol without statuses.
    pub const ERROR: Self = Self(LAST + 1);

    /// A reply with this status, which is an error from 400 on (RFC 9110 section 15). A code
    /// outside 100 to 999 is not HTTP and must have been refused before: it is not counted, so
    /// that the exact accounting (invariant W6) refuses the run.
    #[inline]
    pub fn of_status(status: u16) -> Self {
        match status {
            FIRST..=LAST => Self(status),
            _ => Self(u16::MAX),
        }
    }

    /// The status; absent in a protocol without them.
    #[inline]
    pub fn status(self) -> Option<u16> {
        (FIRST..=LAST).contains(&self.0).then_some(self.0)
    }

    /// Whether the status counts as successful.
    #[inline]
    pub fn is_success(self) -> bool {
        self.0 < FIRST_ERROR
    }
}

impl From<u16> for ReplyOutcome {
    fn from(status: u16) -> Self {
        Self::of_status(status)
    }
}

/// Names in the stored form of what has no status.
const SUCCESS: &str = "success";
const ERROR: &str = "error";

/// Final replies counted by status code, 100 to 999, and those without one as successes and errors.
/// Serialises as a map of what came.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StatusCounts(Box<[u64]>);

impl Default for StatusCounts {
    fn default() -> Self {
        Self(vec![0; usize::from(ReplyOutcome::ERROR.0) + 1].into())
    }
}

impl StatusCounts {
    /// Counts one reply.
    #[inline]
    pub fn add(&mut self, outcome: impl Into<ReplyOutcome>) {
        if let Some(count) = self.0.get_mut(usize::from(outcome.into().0)) {
            *count += 1;
        }
    }

    /// How many replies had this outcome.
    pub fn count(&self, outcome: impl Into<ReplyOutcome>) -> u64 {
        let count = self.0.get(usize::from(outcome.into().0));
        count.copied().unwrap_or(0)
    }

    /// The codes that came, with their counts.
    pub fn iter(&self) -> impl Iterator<Item = (u16, u64)> + '_ {
        let codes = FIRST..=LAST;
        codes
            .map(|status| (status, self.0[usize::from(status)]))
            .filter(|&(_, count)| count > 0)
    }

    /// How many replies came in all.
    pub fn total(&self) -> u64 {
        sum(&self.0)
    }

    /// Replies that report success: status below 400.
    pub fn successes(&self) -> u64 {
        sum(&self.0[..usize::from(FIRST_ERROR)])
    }

    /// Replies that report an error: status 400 and above.
    pub fn errors(&self) -> u64 {
        sum(&self.0[usize::from(FIRST_ERROR)..])
    }

    /// Replies of the class `class` (2 for 200 to 299).
    pub fn class(&self, class: u16) -> u64 {
        self.iter()
            .filter(|(status, _)| status / 100 == class)
            .fold(0, |sum, (_, count)| sum.saturating_add(count))
    }

    /// Adds the counts of `other`.
    pub fn merge(&mut self, other: &Self) {
        self.0.merge(&other.0);
    }
}

impl Serialize for StatusCounts {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let named = [
            (SUCCESS, ReplyOutcome::SUCCESS),
            (ERROR, ReplyOutcome::ERROR),
        ]
        .map(|(name, outcome)| (name.to_owned(), self.count(outcome)))
        .into_iter()
        .filter(|&(_, count)| count > 0);
        let codes = self
            .iter()
            .map(|(status, count)| (status.to_string(), count));
        serializer.collect_map(codes.chain(named))
    }
}

impl<'de> Deserialize<'de> for StatusCounts {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut counts = Self::default();
        for (name, count) in BTreeMap::<String, u64>::deserialize(deserializer)? {
            let outcome = match name.as_str() {
                SUCCESS => Some(ReplyOutcome::SUCCESS),
                ERROR => Some(ReplyOutcome::ERROR),
                // As it is written: no sign, and no digit more.
                code if code.len() == 3 && code.bytes().all(|byte| byte.is_ascii_digit()) => {
                    code.parse().ok().map(ReplyOutcome::of_status)
                }
                _ => None,
            };
            let place = outcome.and_then(|outcome| counts.0.get_mut(usize::from(outcome.0)));
            *place.ok_or_else(|| serde::de::Error::custom(format!("no such status: {name}")))? =
                count;
        }
        Ok(counts)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replies_are_counted_by_code_class_and_outcome() {
        let mut counts = StatusCounts::default();
        for status in [100, 200, 204, 304, 399, 400, 503, 999] {
            counts.add(status);
        }
        // Not HTTP: not counted.
        [0, 99, 1_000, u16::MAX]
            .into_iter()
            .for_each(|status| counts.add(status));
        assert_eq!(
            (counts.total(), counts.successes(), counts.errors()),
            (8, 5, 3)
        );
        assert_eq!(
            [1, 2, 3, 4, 5, 9].map(|class| counts.class(class)),
            [1, 2, 2, 1, 1, 1]
        );
        let mut twice = counts.clone();
        twice.merge(&counts);
        assert_eq!(twice.total(), 16);
    }

    #[test]
    fn a_protocol_without_statuses_has_successes_and_errors() {
        let mut counts = StatusCounts::default();
        for outcome in [
            ReplyOutcome::SUCCESS,
            ReplyOutcome::SUCCESS,
            ReplyOutcome::ERROR,
        ] {
            counts.add(outcome);
            assert_eq!(outcome.status(), None);
        }
        counts.add(500);
        assert_eq!(
            (counts.total(), counts.successes(), counts.errors()),
            (4, 2, 2)
        );
        assert_eq!(counts.iter().collect::<Vec<_>>(), [(500, 1)]);
        let text = serde_json::to_string(&counts).expect("counts serialise");
        assert_eq!(text, r#"{"500":1,"success":2,"error":1}"#);
        let read: StatusCounts = serde_json::from_str(&text).expect("its own form");
        assert_eq!(read, counts);
    }

    #[test]
    fn the_stored_form_names_the_codes_that_came() {
        let mut counts = StatusCounts::default();
        counts.add(200);
        counts.add(404);
        counts.add(404);
        let text = serde_json::to_string(&counts).expect("counts serialise");
        assert_eq!(text, r#"{"200":1,"404":2}"#);
        assert_eq!(
            serde_json::from_str::<StatusCounts>(&text).expect("its own form"),
            counts
        );
        for text in [
            r#"{"99":1}"#,
            r#"{"1000":1}"#,
            r#"{"0":1}"#,
            r#"{"+20":1}"#,
            r#"{"ok":1}"#,
            r#"{"200":-1}"#,
        ] {
            assert!(
                serde_json::from_str::<StatusCounts>(text).is_err(),
                "{text}"
            );
        }
    }
}
