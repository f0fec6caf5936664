//! What the server received and sent: counted per worker without locks, added up on demand.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use serde::{Deserialize, Serialize};

use crate::count::{Count, LinkCounters, add_named};
use crate::pace::Pace;
use crate::route::{Method, Refusal};
use crate::tcp::counters::{self as tcp_counters, TcpCounters, TcpWorkerCounters};

/// Distinct `/refuse-after` paths that are counted; requests on more are refused at once.
const REFUSALS_MAX: usize = 1_024;
const STATUS_MIN: u16 = 101;
const STATUS_MAX: u16 = 999;

/// Exact totals over all workers.
///
/// Requests are counted when head and body are completely received, replies when they are handed
/// to the kernel. Requests to `/counters` and their replies are counted nowhere but in
/// `counters_requests` (their connections are counted like all others). When nothing is in flight,
/// `requests + requests_malformed + websocket_messages_received = replies +
/// websocket_messages_answered + faults + requests_abandoned`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counters {
    /// Connections accepted.
    pub connections_accepted: u64,
    /// Accepted connections that are not yet closed.
    pub connections_live: u64,
    /// Connections that could not be accepted, mostly for want of descriptors.
    pub accepts_failed: u64,
    /// Connections closed because too much of their input was waiting, or of their output.
    pub connections_overflowed: u64,
    /// Connections closed because neither their client nor an answer to it got on for the idle
    /// time-out, or a body or a message came too slowly.
    #[serde(default)]
    pub connections_timed_out: u64,
    /// TLS handshakes that failed; their connections are not among those accepted.
    #[serde(default)]
    pub handshakes_failed: u64,
    /// Connections accepted over TCP that resumed the TLS session of an earlier one.
    #[serde(default)]
    pub handshakes_resumed: u64,
    /// Connections that speak HTTP/2.
    #[serde(default)]
    pub connections_http2: u64,
    /// Connections that speak HTTP/3.
    #[serde(default)]
    pub connections_http3: u64,
    /// Streams of HTTP/2 and HTTP/3 that clients gave up.
    #[serde(default)]
    pub streams_cancelled: u64,
    /// Streams of HTTP/2 that were refused, because too many were in flight. They are no requests.
    #[serde(default)]
    pub streams_refused: u64,
    /// Streams of HTTP/2 and HTTP/3 that a GOAWAY named as not processed: those that came behind
    /// it, and those in flight above the last one that it took in. They are no requests, unless
    /// theirs was complete before the GOAWAY.
    #[serde(default)]
    pub streams_ignored: u64,
    /// GOAWAY frames sent.
    #[serde(default)]
    pub goaways: u64,
    /// Errors of clients of HTTP/2, each of which ended a stream or the connection; without streams
    /// refused.
    #[serde(default)]
    pub http2_errors: u64,
    /// Requests completely received.
    pub requests: u64,
    /// Requests completely received, by method. Methods without a name of their own are "other".
    pub requests_by_method: BTreeMap<String, u64>,
    /// Requests that could not be read; each is answered with 400.
    pub requests_malformed: u64,
    /// Requests whose connection was lost, or whose stream was given up, before their reply was
    /// due.
    pub requests_abandoned: u64,
    /// Replies that keep to the protocol.
    pub replies: u64,
    /// Replies that keep to the protocol, by status.
    pub replies_by_status: BTreeMap<u16, u64>,
    /// Interim replies (1xx), not in `replies`.
    pub replies_interim: u64,
    /// Requests that ended in a fault on purpose instead of a reply.
    pub faults: u64,
    /// Requests that ended in a fault on purpose, by kind: silent, reset, closed, truncated,
    /// and in HTTP/2 and HTTP/3 stream_reset, refused, goaway.
    pub faults_by_kind: BTreeMap<String, u64>,
    /// Bytes read; of TLS the plain text, of HTTP/3 those of requests' streams.
    pub bytes_received: u64,
    /// Bytes given to the kernel for sending; of TLS the plain text, of HTTP/3 those of requests'
    /// streams.
    pub bytes_sent: u64,
    /// Replies that had to wait for an instant: those of `/delay`, `/drift` and `/locked`, and
    /// those of `/stall` to requests that came in a silence. How late they were sent follows: from
    /// the instant at which a reply was due to the clock reading just before it was sent
    /// for sending.
    pub replies_delayed: u64,
    /// Mean lateness of these replies, nanoseconds, rounded down; absent without any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lateness_ns_mean: Option<u64>,
    /// Greatest lateness of these replies, nanoseconds; absent without any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lateness_ns_max: Option<u64>,
    /// Requests to `/counters`.
    pub counters_requests: u64,
    /// Connections that speak WebSocket; each has a request, and 101 as the reply to it.
    #[serde(default)]
    pub connections_websocket: u64,
    /// Messages of WebSocket completely received.
    #[serde(default)]
    pub websocket_messages_received: u64,
    /// Messages of WebSocket received that were answered by a message.
    #[serde(default)]
    pub websocket_messages_answered: u64,
    /// Messages of WebSocket sent that answer none.
    #[serde(default)]
    pub websocket_messages_pushed: u64,
    /// Bytes of the messages received, without heads of frames.
    #[serde(default)]
    pub websocket_bytes_received: u64,
    /// Bytes of the messages sent, without heads of frames.
    #[serde(default)]
    pub websocket_bytes_sent: u64,
    /// Pings received; each is answered by a pong.
    #[serde(default)]
    pub websocket_pings: u64,
    /// Pongs received.
    #[serde(default)]
    pub websocket_pongs: u64,
    /// Close frames received.
    #[serde(default)]
    pub websocket_closes: u64,
    /// Connections of WebSocket that were closed since their client broke the protocol, or sent a
    /// message over 1 MiB.
    #[serde(default)]
    pub websocket_refused: u64,
    /// What was received and sent over raw TCP, on its own address; absent where none is served.
    /// None of the others counts it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tcp: Option<TcpCounters>,
}

/// How a request ends without a reply that keeps to the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    Silent,
    Reset,
    Closed,
    Truncated,
    Raw,
    StreamReset,
    Refused,
    GoneAway,
}

impl Fault {
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

/// One worker's counts, on cache lines of their own.
#[derive(Debug)]
#[repr(align(128))]
pub(crate) struct WorkerCounters {
    pub(crate) links: LinkCounters,
    pub(crate) bytes_sent: Count,
    pub(crate) malformed: Count,
    pub(crate) abandoned: Count,
    pub(crate) interim: Count,
    pub(crate) counters_requests: Count,
    pub(crate) handshakes_resumed: Count,
    pub(crate) http2: Count,
    pub(crate) http3: Count,
    pub(crate) cancelled: Count,
    pub(crate) refused: Count,
    pub(crate) ignored: Count,
    pub(crate) goaways: Count,
    pub(crate) http2_errors: Count,
    pub(crate) websocket: WebSocketCounters,
    delayed: Count,
    lateness_ns_sum: Count,
    lateness_ns_max: Count,
    methods: [Count; Method::NAMES.len()],
    faults: [Count; Fault::NAMES.len()],
    statuses: [Count; (STATUS_MAX - STATUS_MIN + 1) as usize],
}

/// One worker's counts of WebSocket.
#[derive(Debug, Default)]
pub(crate) struct WebSocketCounters {
    pub(crate) connections: Count,
    pub(crate) received: Count,
    pub(crate) answered: Count,
    pub(crate) pushed: Count,
    pub(crate) bytes_received: Count,
    pub(crate) bytes_sent: Count,
    pub(crate) pings: Count,
    pub(crate) pongs: Count,
    pub(crate) closes: Count,
    pub(crate) refused: Count,
}

impl Default for WorkerCounters {
    fn default() -> Self {
        Self {
            links: LinkCounters::default(),
            bytes_sent: Count::default(),
            malformed: Count::default(),
            abandoned: Count::default(),
            interim: Count::default(),
            counters_requests: Count::default(),
            handshakes_resumed: Count::default(),
            http2: Count::default(),
            http3: Count::default(),
            cancelled: Count::default(),
            refused: Count::default(),
            ignored: Count::default(),
            goaways: Count::default(),
            http2_errors: Count::default(),
            websocket: WebSocketCounters::default(),
            delayed: Count::default(),
            lateness_ns_sum: Count::default(),
            lateness_ns_max: Count::default(),
            methods: Default::default(),
            faults: Default::default(),
            statuses: std::array::from_fn(|_| Count::default()),
        }
    }
}

impl WorkerCounters {
    /// Counts a complete request.
    pub(crate) fn request(&self, method: Method) {
        self.methods[method as usize].add(1);
    }

    /// Counts a reply with this final status (101, or 200 to 999).
    pub(crate) fn reply(&self, status: u16) {
        if let Some(count) = self
            .statuses
            .get(usize::from(status.wrapping_sub(STATUS_MIN)))
        {
            count.add(1);
        }
    }

    /// Counts a reply that had to wait for an instant and is sent this much after it.
    pub(crate) fn delayed(&self, lateness_ns: u64) {
        self.lateness_ns_sum.add(lateness_ns);
        self.lateness_ns_max.raise(lateness_ns);
        self.delayed.add(1);
    }

    /// Counts a request that ended in a fault.
    pub(crate) fn fault(&self, fault: Fault) {
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
    refusals: Mutex<BTreeMap<Refusal, u64>>,
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
    pub(crate) fn draw_percent(&self) -> u8 {
        (mix(self.draws.fetch_add(1, Ordering::Relaxed)) % 100) as u8
    }

    /// Counts a request on a `/refuse-after` path; whether it is to be refused.
    pub(crate) fn refuses(&self, refusal: Refusal) -> bool {
        let mut refusals = self
            .refusals
            .lock()
            .unwrap_or_else(|poisoned| poisoned.into_inner());
        if refusals.len() >= REFUSALS_MAX && !refusals.contains_key(&refusal) {
            return true;
        }
        let count = refusals.entry(refusal).or_default();
        *count += 1;
        *count > refusal.after
    }

    /// The totals as of now.
    pub(crate) fn totals(&self) -> Counters {
        let sum = |count: fn(&WorkerCounters) -> &Count| {
            self.workers
                .iter()
                .map(|worker| count(worker).get())
                .sum::<u64>()
        };
        let mut totals = Counters {
            accepts_failed: sum(|worker| &worker.links.accepts_failed),
            connections_overflowed: sum(|worker| &worker.links.overflowed),
            connections_timed_out: sum(|worker| &worker.links.timed_out),
            requests_malformed: sum(|worker| &worker.malformed),
            requests_abandoned: sum(|worker| &worker.abandoned),
            replies_interim: sum(|worker| &worker.interim),
            bytes_received: sum(|worker| &worker.links.bytes_received),
            bytes_sent: sum(|worker| &worker.bytes_sent),
            counters_requests: sum(|worker| &worker.counters_requests),
            handshakes_failed: sum(|worker| &worker.links.handshakes_failed),
            handshakes_resumed: sum(|worker| &worker.handshakes_resumed),
            connections_http2: sum(|worker| &worker.http2),
            connections_http3: sum(|worker| &worker.http3),
            streams_cancelled: sum(|worker| &worker.cancelled),
            streams_refused: sum(|worker| &worker.refused),
            streams_ignored: sum(|worker| &worker.ignored),
            goaways: sum(|worker| &worker.goaways),
            http2_errors: sum(|worker| &worker.http2_errors),
            replies_delayed: sum(|worker| &worker.delayed),
            connections_websocket: sum(|worker| &worker.websocket.connections),
            websocket_messages_received: sum(|worker| &worker.websocket.received),
            websocket_messages_answered: sum(|worker| &worker.websocket.answered),
            websocket_messages_pushed: sum(|worker| &worker.websocket.pushed),
            websocket_bytes_received: sum(|worker| &worker.websocket.bytes_received),
            websocket_bytes_sent: sum(|worker| &worker.websocket.bytes_sent),
            websocket_pings: sum(|worker| &worker.websocket.pings),
            websocket_pongs: sum(|worker| &worker.websocket.pongs),
            websocket_closes: sum(|worker| &worker.websocket.closes),
            websocket_refused: sum(|worker| &worker.websocket.refused),
            ..Counters::default()
        };
        // Closed before accepted: a connection that comes in between never makes live negative.
        let closed = sum(|worker| &worker.links.closed);
        totals.connections_accepted = sum(|worker| &worker.links.accepted);
        totals.connections_live = totals.connections_accepted.saturating_sub(closed);
        totals.lateness_ns_mean =
            sum(|worker| &worker.lateness_ns_sum).checked_div(totals.replies_delayed);
        totals.lateness_ns_max = totals.lateness_ns_mean.and_then(|_| {
            let maxima = self.workers.iter().map(|worker| &worker.lateness_ns_max);
            maxima.map(Count::get).max()
        });
        for worker in &self.workers {
            add_named(
                &mut totals.requests_by_method,
                &Method::NAMES,
                &worker.methods,
            );
            add_named(&mut totals.faults_by_kind, &Fault::NAMES, &worker.faults);
            for (status, count) in (STATUS_MIN..).zip(&worker.statuses) {
                match count.get() {
                    0 => {}
                    count => *totals.replies_by_status.entry(status).or_default() += count,
                }
            }
        }
        totals.requests = totals.requests_by_method.values().sum();
        totals.replies = totals.replies_by_status.values().sum();
        totals.faults = totals.faults_by_kind.values().sum();
        totals.tcp =
            (!self.tcp_workers.is_empty()).then(|| tcp_counters::totals(&self.tcp_workers));
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
            worker.request(Method::Get);
            worker.request(Method::Other);
            worker.reply(200);
            worker.reply(999);
            worker.fault(Fault::Closed);
            worker.links.bytes_received.add(7);
            worker.links.bytes_received.subtract(2);
        }
        let totals = shared.totals();
        assert_eq!(
            (totals.connections_accepted, totals.connections_live),
            (30, 27)
        );
        assert_eq!((totals.requests, totals.replies, totals.faults), (6, 6, 3));
        assert_eq!(totals.requests_by_method["other"], 3);
        assert_eq!(totals.replies_by_status[&999], 3);
        assert_eq!(totals.bytes_received, 15);
        let lateness = |totals: &Counters| {
            (
                totals.replies_delayed,
                totals.lateness_ns_mean,
                totals.lateness_ns_max,
            )
        };
        assert_eq!(lateness(&totals), (0, None, None));
        for (index, lateness_ns) in [(0, 500), (1, 900), (1, 100), (2, 300)] {
            shared.worker(index).delayed(lateness_ns);
        }
        let totals = shared.totals();
        assert_eq!(lateness(&totals), (4, Some(450), Some(900)));
        let json = serde_json::to_string(&totals).unwrap();
        assert_eq!(serde_json::from_str::<Counters>(&json).unwrap(), totals);
    }

    #[test]
    fn refusals_begin_after_their_number() {
        let shared = Shared::new(1);
        let refusal = Refusal {
            after: 2,
            close: false,
        };
        let refused: Vec<_> = (0..4).map(|_| shared.refuses(refusal)).collect();
        assert_eq!(refused, [false, false, true, true]);
        assert!(!shared.refuses(Refusal {
            close: true,
            ..refusal
        }));
        for after in 10..10 + REFUSALS_MAX as u64 {
            shared.refuses(Refusal {
                after,
                close: false,
            });
        }
        assert!(
            shared.refuses(Refusal {
                after: 5,
                close: false
            }),
            "bounded"
        );
    }

    #[test]
    fn draws_are_spread_evenly() {
        let shared = Shared::new(1);
        let below_30 = (0..10_000).filter(|_| shared.draw_percent() < 30).count();
        assert!((2_900..3_100).contains(&below_30), "{below_30}");
    }
}
