//! What the server received and sent: counted per worker without locks, added up on demand.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use serde::{Deserialize, Serialize};

use crate::count::{Count, add_named, counters};
use crate::pace::Pace;
use crate::route::{Method, Route};
use crate::tcp::{TcpCounters, TcpWorkerCounters};

/// Distinct `/refuse-after` paths that are counted; requests on more are refused at once.
const REFUSALS_MAX: usize = 1_024;
const STATUS_MIN: u16 = 101;
const STATUS_MAX: u16 = 999;

counters! {
    /// Exact totals over all workers.
    ///
    /// Requests are counted when head and body are completely received, replies when they are
    /// handed to the kernel. Requests to `/counters` and their replies are counted nowhere but in
    /// `counters_requests` (their connections are counted like all others). When nothing is in
    /// flight, `requests + requests_malformed + websocket_messages_received = replies +
    /// websocket_messages_answered + faults + requests_abandoned`. Those of `replies_delayed` are
    /// replies of `/delay`, `/drift` and `/locked`, and those of `/stall` to requests that came in
    /// a silence.
    Counters of WorkerCounters;
    sums {
        /// Connections accepted over TCP that resumed the TLS session of an earlier one.
        handshakes_resumed,
        /// Connections that speak HTTP/2.
        connections_http2,
        /// Connections that speak HTTP/3.
        connections_http3,
        /// Streams of HTTP/2 and HTTP/3 that clients gave up.
        streams_cancelled,
        /// Streams of HTTP/2 that were refused, because too many were in flight. They are no
        /// requests.
        streams_refused,
        /// Streams of HTTP/2 and HTTP/3 that a GOAWAY named as not processed: those that came
        /// behind it, and those in flight above the last one that it took in. They are no requests,
        /// unless theirs was complete before the GOAWAY.
        streams_ignored,
        /// GOAWAY frames sent.
        goaways,
        /// Errors of clients of HTTP/2, each of which ended a stream or the connection; without
        /// streams refused.
        http2_errors,
        /// Requests that could not be read; each is answered with 400.
        requests_malformed,
        /// Requests whose connection was lost, or whose stream was given up, before their reply
        /// was due.
        requests_abandoned,
        /// Interim replies (1xx), not in `replies`.
        replies_interim,
        /// Requests to `/counters`.
        counters_requests,
        /// Connections that speak WebSocket; each has a request, and 101 as the reply to it.
        connections_websocket,
        /// Messages of WebSocket completely received.
        websocket_messages_received,
        /// Messages of WebSocket received that were answered by a message.
        websocket_messages_answered,
        /// Messages of WebSocket sent that answer none.
        websocket_messages_pushed,
        /// Bytes of the messages received, without heads of frames.
        websocket_bytes_received,
        /// Bytes of the messages sent, without heads of frames.
        websocket_bytes_sent,
        /// Pings received; each is answered by a pong.
        websocket_pings,
        /// Pongs received.
        websocket_pongs,
        /// Close frames received.
        websocket_closes,
        /// Connections of WebSocket that were closed since their client broke the protocol, or
        /// sent a message over 1 MiB.
        websocket_refused,
    }
    totals {
        /// Requests completely received.
        requests: u64,
        /// Requests completely received, by method. Methods without a name of their own are
        /// "other".
        requests_by_method: BTreeMap<String, u64>,
        /// Replies that keep to the protocol.
        replies: u64,
        /// Replies that keep to the protocol, by status.
        replies_by_status: BTreeMap<u16, u64>,
        /// Requests that ended in a fault on purpose instead of a reply.
        faults: u64,
        /// Requests that ended in a fault on purpose, by kind: silent, reset, closed, truncated,
        /// raw, and in HTTP/2 and HTTP/3 stream_reset, refused, goaway.
        faults_by_kind: BTreeMap<String, u64>,
        /// What was received and sent over raw TCP, on its own address; absent where none is
        /// served. None of the others counts it.
        #[serde(skip_serializing_if = "Option::is_none")]
        tcp: Option<TcpCounters>,
    }
    worker {
        methods: [Count; Method::NAMES.len()],
        faults: [Count; FaultKind::NAMES.len()],
        statuses: Statuses,
    }
}

/// Replies by their status, from the lowest one on.
#[derive(Debug)]
struct Statuses([Count; (STATUS_MAX - STATUS_MIN + 1) as usize]);

impl Default for Statuses {
    fn default() -> Self {
        Self(std::array::from_fn(|_| Count::default()))
    }
}

/// How a request ends without a reply that keeps to the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FaultKind {
    Silent,
    Reset,
    Closed,
    Truncated,
    Raw,
    StreamReset,
    Refused,
    GoneAway,
}

impl FaultKind {
    const NAMES: [&'static str; 8] = [
        "silent",
        "reset",
        "closed",
        "truncated",
        "raw",
        "stream_reset",
        "refused",
        "goaway",
    ];
}

impl WorkerCounters {
    /// Counts a complete request of so many bytes. One for the counters is not to be found in its
    /// own figures, nor in those of the next one.
    pub(crate) fn request(&self, route: Route, method: Method, bytes: u64) {
        if route == Route::Counters {
            self.links.bytes_received.subtract(bytes);
            self.counters_requests.add(1);
        } else {
            self.methods[method.index()].add(1);
        }
    }

    /// Counts a reply with this final status (101, or 200 to 999).
    pub(crate) fn reply(&self, status: u16) {
        let index = usize::from(status.wrapping_sub(STATUS_MIN));
        if let Some(count) = self.statuses.0.get(index) {
            count.add(1);
        }
    }

    /// Counts a request that ended in a fault.
    pub(crate) fn fault(&self, fault: FaultKind) {
        self.faults[fault as usize].add(1);
    }
}

/// What the workers of one server have in common.
#[derive(Debug, Default)]
pub(crate) struct Shared {
    workers: Box<[Arc<WorkerCounters>]>,
    /// The counts of the workers of raw TCP.
    tcp_workers: Box<[Arc<TcpWorkerCounters>]>,
    /// Told to the workers to end.
    pub(crate) stop: AtomicBool,
    /// Requests to `/random-close` so far.
    draws: AtomicU64,
    /// Requests on each `/refuse-after` path so far.
    refusals: Mutex<BTreeMap<u64, u64>>,
    /// What `/limit` and `/locked` keep.
    pub(crate) pace: Pace,
}

impl Shared {
    pub(crate) fn new(workers: usize) -> Self {
        Self {
            workers: (0..workers).map(|_| Arc::default()).collect(),
            ..Self::default()
        }
    }

    /// The state with `workers` workers of raw TCP beside the others.
    pub(crate) fn with_tcp(self, workers: usize) -> Self {
        Self {
            tcp_workers: (0..workers).map(|_| Arc::default()).collect(),
            ..self
        }
    }

    /// The counts of worker `index` of raw TCP; only that worker may add to them.
    pub(crate) fn tcp_worker(&self, index: usize) -> &Arc<TcpWorkerCounters> {
        &self.tcp_workers[index]
    }

    /// The counts of worker `index`; only that worker may add to them.
    pub(crate) fn worker(&self, index: usize) -> &Arc<WorkerCounters> {
        &self.workers[index]
    }

    /// The next value of the sequence behind `/random-close`, below 100.
    pub(crate) fn draw_percent(&self) -> u16 {
        (mix(self.draws.fetch_add(1, Ordering::Relaxed)) % 100) as u16
    }

    /// Counts a request on the `/refuse-after` path of this number; whether it is to be refused.
    pub(crate) fn refuses(&self, most: u64) -> bool {
        let refusals = self.refusals.lock();
        let mut refusals = refusals.unwrap_or_else(PoisonError::into_inner);
        if refusals.len() >= REFUSALS_MAX && !refusals.contains_key(&most) {
            return true;
        }
        let count = refusals.entry(most).or_default();
        *count += 1;
        *count > most
    }

    /// The totals as of now.
    pub(crate) fn totals(&self) -> Counters {
        let mut totals = Counters::sums(&self.workers);
        for worker in &self.workers {
            let methods = &mut totals.requests_by_method;
            add_named(methods, &Method::NAMES, &worker.methods);
            add_named(
                &mut totals.faults_by_kind,
                &FaultKind::NAMES,
                &worker.faults,
            );
            for (status, count) in (STATUS_MIN..).zip(&worker.statuses.0) {
                match count.get() {
                    0 => {}
                    count => *totals.replies_by_status.entry(status).or_default() += count,
                }
            }
        }
        totals.requests = totals.requests_by_method.values().sum();
        totals.replies = totals.replies_by_status.values().sum();
        totals.faults = totals.faults_by_kind.values().sum();
        totals.tcp = (!self.tcp_workers.is_empty()).then(|| TcpCounters::of(&self.tcp_workers));
        totals
    }
}

/// The mixing function of SplitMix64: a fixed, evenly spread sequence over a counter.
pub(crate) fn mix(counter: u64) -> u64 {
    let mut value = counter.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ (value >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn totals_are_the_sum_over_workers() {
        let shared = Shared::new(3);
        for index in 0..3 {
            let worker = shared.worker(index);
            worker.links.accepted.add(10);
            worker.links.closed.add(index as u64);
            worker.request(Route::Null, Method::GET, 7);
            worker.request(Route::Null, Method::OTHER, 7);
            worker.reply(200);
            worker.reply(999);
            worker.fault(FaultKind::Closed);
            worker.links.bytes_received.add(7);
            worker.links.bytes_received.subtract(2);
        }
        let totals = shared.totals();
        assert_eq!(
            [totals.connections_accepted, totals.connections_live],
            [30, 27]
        );
        assert_eq!((totals.requests, totals.replies, totals.faults), (6, 6, 3));
        assert_eq!(totals.requests_by_method["other"], 3);
        assert_eq!(totals.replies_by_status[&999], 3);
        assert_eq!(totals.bytes_received, 15);
        let lateness = (totals.lateness_ns_mean, totals.lateness_ns_max);
        assert_eq!((totals.replies_delayed, lateness), (0, (None, None)));
        for (index, lateness_ns) in [(0, 500), (1, 900), (1, 100), (2, 300)] {
            shared.worker(index).lateness.add(1, lateness_ns);
        }
        let totals = shared.totals();
        let lateness = (totals.lateness_ns_mean, totals.lateness_ns_max);
        assert_eq!(
            (totals.replies_delayed, lateness),
            (4, (Some(450), Some(900)))
        );
        let json = serde_json::to_string(&totals).unwrap();
        assert_eq!(serde_json::from_str::<Counters>(&json).unwrap(), totals);
    }

    #[test]
    fn refusals_begin_after_their_number() {
        let shared = Shared::new(1);
        let refused: Vec<_> = (0..4).map(|_| shared.refuses(2)).collect();
        assert_eq!(refused, [false, false, true, true]);
        for most in 10..10 + REFUSALS_MAX as u64 {
            shared.refuses(most);
        }
        assert!(shared.refuses(5), "bounded");
    }

    #[test]
    fn draws_are_spread_evenly() {
        let shared = Shared::new(1);
        let below_30 = (0..10_000).filter(|_| shared.draw_percent() < 30).count();
        assert!((2_900..3_100).contains(&below_30), "{below_30}");
    }
}
