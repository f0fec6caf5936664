//! The histograms of a run, by what they measure.

use serde::{Deserialize, Serialize};

use crate::{Histogram, Intervals, Split};

/// Durations of one worker, or of all together.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Latencies {
    /// Response time of successful replies (status below 400) to requests issued in the window:
    /// from the planned instant with a schedule of requests, else from the send.
    pub response: Histogram,
    /// The same, of error replies (status 400 and above).
    pub response_error: Histogram,
    /// Service time, from the send, of the replies in `response`. Empty where the response time
    /// counts from the send as well.
    pub service: Histogram,
    /// Lower bounds of the response time of what never had one because it took too long: requests
    /// that timed out or were censored and, with a schedule of requests, arrivals that were never
    /// sent. Of the window.
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
    /// Time from then on until the server's first HTTP/2 settings, over all phases. Empty in
    /// HTTP/1.1.
    #[serde(default)]
    pub greeting: Histogram,
    /// From the send of a request to the first byte of its reply, of the replies in `response`.
    pub first_byte: Histogram,
    /// From the first byte of a reply until it is complete and parsed, of the replies in
    /// `response`. With `first_byte` it adds up to the service time.
    pub transfer: Histogram,
    /// From the planned instant of a connection to its first complete reply. Of the connections
    /// planned in the window; empty without a schedule of connections.
    pub first_reply: Histogram,
    /// The parts of the response times in `response` that belong to connections with kernel
    /// stamps.
    pub split: Split,
    /// The response times in `response`, by the time of their completion.
    pub intervals: Intervals,
}

impl Latencies {
    /// How long it takes on average until a connection is open, nanoseconds: of TCP, TLS and
    /// HTTP/2 settings together.
    pub(crate) fn opening_mean_ns(&self) -> f64 {
        let steps = [&self.connect, &self.tls, &self.greeting];
        steps.into_iter().filter_map(Histogram::mean_ns).sum()
    }

    /// Adds the durations of `other`.
    pub fn merge(&mut self, other: &Self) {
        self.response.merge(&other.response);
        self.response_error.merge(&other.response_error);
        self.service.merge(&other.service);
        self.unfinished.merge(&other.unfinished);
        self.lag.merge(&other.lag);
        self.connect.merge(&other.connect);
        self.tls.merge(&other.tls);
        self.greeting.merge(&other.greeting);
        self.first_byte.merge(&other.first_byte);
        self.transfer.merge(&other.transfer);
        self.first_reply.merge(&other.first_reply);
        self.split.merge(&other.split);
        self.intervals.merge(&other.intervals);
    }
}
