//! The histograms of a run, by what they measure, and what is known of durations of which some
//! never ended, from lower bounds of those.

use serde::{Deserialize, Serialize};

use crate::merged::{Merge, merges};
use crate::unfinished::{max_at_least_ns, mean_at_least_ns};
use crate::{Histogram, Intervals, Split, StageRecord};

/// Durations of one worker, or of all together.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Latencies {
    /// Response time of successful replies (status below 400) to requests issued in the window:
    /// from the planned instant with a schedule of requests, else from the send.
    pub response: Histogram,
    /// Response time of error replies (status 400 and above) to requests issued in the window: from
    /// the planned instant with a schedule of requests, else from the send.
    pub response_error: Histogram,
    /// Service time, from the send, of the replies in `response`. Empty where the response time
    /// counts from the send as well.
    pub service: Histogram,
    /// Lower bounds of the response time of what never had one because it took too long: requests
    /// that timed out or were censored and, with a schedule of requests, arrivals that were never
    /// sent. Of the window. Without a schedule of requests also of those that were in flight
    /// throughout the window.
    pub unfinished: Histogram,
    /// Schedule lag: from the first instant at which brunt could have sent until it did. That
    /// instant is the planned one or, if no connection was free then, the one at which the reply
    /// came that freed one. In a closed loop there is no planned instant: it is the time from a
    /// reply to the next request. Of the window.
    pub lag: Histogram,
    /// Time of the TCP handshake of a connection, over all phases.
    pub connect: Histogram,
    /// Time of the TLS handshake of a connection, from the end of the TCP handshake, over all
    /// phases. Empty in clear text.
    pub tls: Histogram,
    /// Time from the end of the TLS handshake, in clear text of the TCP handshake, until the
    /// server's first HTTP/2 settings, over all phases. Empty in HTTP/1.1.
    pub greeting: Histogram,
    /// The response times in `response` of the first reply of each connection, together with what
    /// opening the connection took before the response time began: TCP, TLS and HTTP/2 settings.
    /// Where every connection carries one request, as many as in `response`.
    pub with_connect: Histogram,
    /// Times from the send of a request to the first byte of its reply, of the replies in
    /// `response`.
    pub first_byte: Histogram,
    /// Times from the first byte of a reply until it is complete and parsed, of the replies in
    /// `response`. With `first_byte` they add up to the service time.
    pub transfer: Histogram,
    /// Times from the planned instant of a connection to its first complete reply, of the
    /// connections planned in the window; empty without a schedule of connections.
    pub first_reply: Histogram,
    /// The parts of the response times in `response` that belong to connections with kernel
    /// stamps.
    pub split: Split,
    /// The response times in `response`, by the time of their completion.
    pub intervals: Intervals,
    /// The outcome of the requests due in each stage, with a schedule of requests in stages. Empty
    /// without stages, and with over 64 of them.
    pub stages: Vec<StageRecord>,
}

merges!(Latencies:
    response response_error service unfinished lag connect tls greeting with_connect first_byte
    transfer first_reply split intervals stages
);

impl Latencies {
    /// How long it takes on average until a connection is open, nanoseconds: of TCP, TLS and
    /// HTTP/2 settings together.
    pub fn opening_mean_ns(&self) -> f64 {
        let steps = [&self.connect, &self.tls, &self.greeting];
        let known = steps.into_iter().filter_map(Histogram::mean_ns);
        // The sum of nothing is -0.0.
        known.fold(0.0, |sum, ns| sum + ns)
    }

    /// The least that the mean response time can be, nanoseconds, with what was never answered at
    /// its bounds. Absent where everything was answered: the mean is known.
    pub fn response_mean_at_least_ns(&self) -> Option<u64> {
        mean_at_least_ns(&self.response, &self.unfinished)
    }

    /// The least that the longest response time can be, nanoseconds, with what was never answered
    /// at its bounds. Absent where everything was answered: the longest is known.
    pub fn response_max_at_least_ns(&self) -> Option<u64> {
        max_at_least_ns(&self.response, &self.unfinished)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_never_answered_makes_mean_and_maximum_lower_bounds() {
        // (answered, bounds of what was not, mean, maximum)
        type Case<'a> = (&'a [u64], &'a [u64], Option<u64>, Option<u64>);
        let cases: [Case<'_>; 5] = [
            (&[], &[], None, None),
            (&[10, 20], &[], None, None),
            (&[], &[7, 9], Some(8), Some(9)),
            (&[10, 20], &[60], Some(30), Some(60)),
            (&[10, 80], &[0], Some(30), Some(80)),
        ];
        for (answered, bounds, mean_ns, max_ns) in cases {
            let mut latencies = Latencies::default();
            answered
                .iter()
                .for_each(|&ns| latencies.response.record(ns));
            bounds
                .iter()
                .for_each(|&ns| latencies.unfinished.record(ns));
            let found = (
                latencies.response_mean_at_least_ns(),
                latencies.response_max_at_least_ns(),
            );
            assert_eq!(found, (mean_ns, max_ns), "{answered:?} {bounds:?}");
        }
    }
}
