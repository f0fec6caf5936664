//! Every threshold of the verdict, in one place. Shares are of 1. Those marked [tuned] depart from
//! the first proposals, for the reason that is given.

/// Share of the time in which the least idle worker has nothing to do. Below this, it is near its
/// end.
pub(super) const IDLE_HEALTHY: f64 = 0.20;
/// Share of the time in which the least idle worker has nothing to do. Below this, it is at its
/// end.
pub(super) const IDLE_FAIL: f64 = 0.05;

/// Share of the time in which a worker with one request in flight has nothing to do. From here on a
/// second request gives more, though brunt is busy for most of each round trip [tuned].
pub(super) const IDLE_OF_ONE: f64 = 0.10;

/// Brunt's own share of the response time, from which on the signal warns.
pub(super) const OWN_SHARE_WARN: f64 = 0.02;
/// Brunt's own share of the response time, from which on the signal fails.
pub(super) const OWN_SHARE_FAIL: f64 = 0.10;
/// Brunt's own part of an open loop's response times at p50 or p99, as a share of them. Above this
/// and [`OWN_LARGE_NS`], they are not the server's. Either alone is a clause beside the verdict.
pub(super) const OWN_LARGE_SHARE: f64 = 0.20;
/// Brunt's own part of an open loop's response times at p50 or p99, nanoseconds. Above this and
/// [`OWN_LARGE_SHARE`], they are not the server's.
pub(super) const OWN_LARGE_NS: f64 = 100_000.0;
/// Brunt's own part of a quantile that is quoted, as a share of it. Above this and
/// [`OWN_LARGE_NS`], no report calls the figures sound.
pub(super) const OWN_MOST_SHARE: f64 = 0.50;
/// Responses with kernel stamps that a mean share needs.
pub(super) const OWN_SAMPLES_LEAST: u64 = 100;

/// Schedule lag at p99 that never matters, nanoseconds.
pub(super) const LAG_HEALTHY_NS: f64 = 50_000.0;
/// Schedule lag at p99 that does not matter, as a share of the median response time.
pub(super) const LAG_HEALTHY_OF_P50: f64 = 0.02;
/// Schedule lag at p99 that spoils latencies, as a share of the response time at p99.
pub(super) const LAG_FAIL_OF_P99: f64 = 0.10;
/// Schedule lag at p99 that spoils latencies, nanoseconds.
pub(super) const LAG_FAIL_NS: f64 = 1e6;

/// Arrivals sent, as a share of those planned while connections were free. Below this, the signal
/// warns.
pub(super) const SENT_HEALTHY: f64 = 0.999;
/// Arrivals sent, as a share of those planned while connections were free. Below this, the signal
/// fails.
pub(super) const SENT_FAIL: f64 = 0.99;

/// Share of a worker's run and wait in which it was ready and had no CPU, from which on the signal
/// warns.
pub(super) const RUN_WAIT_WARN: f64 = 0.01;
/// Share of a worker's run and wait in which it was ready and had no CPU, from which on the signal
/// fails.
pub(super) const RUN_WAIT_FAIL: f64 = 0.05;
/// Share of the time in which some task had no CPU, from which on there is pressure.
pub(super) const PRESSURE_WARN: f64 = 0.05;

/// Share of the CPUs' time that the hypervisor took, from which on the signal warns.
pub(super) const STEAL_WARN: f64 = 0.005;
/// Share of the CPUs' time that the hypervisor took, from which on the signal fails.
pub(super) const STEAL_FAIL: f64 = 0.05;
/// The least steal that counts, nanoseconds. The kernel counts steal in ticks of 10 ms: fewer than
/// three are the rounding of the reading [tuned].
pub(super) const STEAL_LEAST_NS: f64 = 30e6;

/// Share of the periods in which brunt's quota held it back. The proposal was any: a single period
/// at the edge of a long window moves no figure [tuned].
pub(super) const THROTTLED_FAIL: f64 = 0.01;

/// Share of the window in which no worker ran, though each was to.
pub(super) const PAUSED_FAIL: f64 = 0.01;

/// Rare events of the network (segments sent again, thrown away, out of order) below which a share
/// says nothing [tuned].
pub(super) const RARE_LEAST: u64 = 5;
/// Requests that a server that replaces connections did not process, per request sent, from which
/// on what to do about them comes before all other advice.
pub(super) const NOT_PROCESSED_NOTICEABLE: f64 = 0.01;
/// Share of its workers' time from which on the script is named where brunt is slow [tuned].
pub(super) const SCRIPT_TOLD: f64 = 0.2;
/// Zero windows and pruned segments per segment received. The proposal was any: the counters are
/// of the whole network namespace, and one may be another's [tuned].
pub(super) const NOT_READ_FAIL: f64 = 0.0001;

/// Bytes of a request from which on the limits of sending say something.
pub(super) const UPLOAD_BYTES: u64 = 16_384;
/// Share of the sending time held up by our send buffer, from which on the signal warns.
pub(super) const SEND_BUFFER_WARN: f64 = 0.01;
/// Share of the sending time held up by our send buffer, from which on the signal fails.
pub(super) const SEND_BUFFER_FAIL: f64 = 0.05;
/// Share of the sending time held up by the server's receive window, from which on the signal
/// warns.
pub(super) const RECEIVE_WINDOW_WARN: f64 = 0.01;
/// Share of the sending time held up by the server's receive window, from which on the signal
/// fails.
pub(super) const RECEIVE_WINDOW_FAIL: f64 = 0.10;

/// Share of the segments that were sent again, from which on the signal warns.
pub(super) const RETRANSMITS_WARN: f64 = 0.0001;
/// Share of the segments that were sent again, from which on the signal fails.
pub(super) const RETRANSMITS_FAIL: f64 = 0.005;
/// Share of the segments that were received out of order, from which on the signal warns.
pub(super) const OUT_OF_ORDER_WARN: f64 = 0.001;
/// Share of the segments that were received out of order, from which on the signal fails.
pub(super) const OUT_OF_ORDER_FAIL: f64 = 0.01;
/// Bytes per reply from which on the kernel measures the round trip of data received: several
/// segments.
pub(super) const BULK_REPLY_BYTES: f64 = 4.0 * 1448.0;
/// Largest round trip of data received over the smallest round trip, above which data queues.
pub(super) const QUEUEING_RATIO: f64 = 8.0;
/// Largest round trip of data received, nanoseconds, above which data queues. Less is the
/// receiver's own batching.
pub(super) const QUEUEING_LEAST_NS: f64 = 2e6;
/// Use of the link, from which on the signal warns.
pub(super) const LINK_WARN: f64 = 0.80;
/// Use of the link, from which on the signal fails. The proposal was 95 %: TCP's own ups and downs
/// keep a full link at 92 to 97 % [tuned].
pub(super) const LINK_FAIL: f64 = 0.90;

/// A connection that took this long had its first segment sent again, after 1 s, nanoseconds.
pub(super) const SLOW_CONNECT_NS: u64 = 900_000_000;
/// Connections opened in the window, as a share of all, from which on their times are those of the
/// window.
pub(super) const OF_WINDOW_LEAST: f64 = 0.1;
/// Share of the connections that may take [`SLOW_CONNECT_NS`] or longer.
pub(super) const SLOW_CONNECT_FAIL: f64 = 0.001;

/// Fill of the table of tracked connections, from which on the signal warns.
pub(super) const CONNTRACK_WARN: f64 = 0.80;
/// Fill of the table of tracked connections, from which on the signal fails.
pub(super) const CONNTRACK_FAIL: f64 = 0.95;

/// Replies that turned the request away.
pub(super) const REFUSED_FAIL: f64 = 0.001;
/// Replies that turned the request away, from which on nothing else is looked at. A server at its
/// end that sheds load turns away a few [tuned].
pub(super) const REFUSED_MOST: f64 = 0.1;
/// Share of the planned arrivals that must be answered for the rate to be met.
pub(super) const PLAN_MET: f64 = 0.99;
/// A shorter window does not show whether a backlog grows, nanoseconds.
pub(super) const PLAN_WINDOW_LEAST_NS: u64 = 800_000_000;

/// Share of the periods in which the server's quota held it back, and most of it was used.
pub(super) const SERVER_THROTTLED_FAIL: f64 = 0.1;
/// Share of its CPUs that the server used, from which on the signal warns.
pub(super) const SERVER_WARN: f64 = 0.80;
/// Share of its CPUs that the server used, from which on it is at its end.
pub(super) const SERVER_FAIL: f64 = 0.95;
/// Requests and handshakes in flight per saturated thread from which on there is always one for it.
pub(super) const DEMAND_PER_THREAD: f64 = 2.0;
/// CPU that threads beside the saturated ones may use, per saturated one, and be mere helpers
/// (a collector of garbage, a writer of logs) [tuned].
pub(super) const HELPER_CPUS: f64 = 0.25;
/// Share of the CPUs that saturated threads got, below which they waited for what others used
/// [tuned].
pub(super) const STARVED_BELOW: f64 = 0.85;
/// CPUs that a server uses with nothing to do, from which on its CPU time says nothing.
pub(super) const POLLING_CPUS: f64 = 0.5;
/// Share of its CPUs that a server must have left for it not to be the limit.
pub(super) const HEADROOM_LEAST: f64 = 0.20;
/// Share of its CPUs that a server must have left for a second request to give more than one at a
/// time: it works on one only, so that what it has left is not used [tuned].
pub(super) const HEADROOM_OF_ONE: f64 = 0.05;

/// Share of what a server receives that others send it, from which on the signal warns. A browser,
/// or somebody who looks whether the server is alive, stays below.
pub(super) const OTHERS_WARN: f64 = 0.01;
/// Share of what a server receives that others send it, from which on brunt's figures are not those
/// of the whole server.
pub(super) const OTHERS_FAIL: f64 = 0.05;
/// Requests that fit into a segment of any path, bytes.
pub(super) const ONE_SEGMENT_BYTES: u64 = 1_000;
/// What TLS or HTTP/2 adds to a request on its way at most, with a share of the frames about the
/// whole connection, bytes.
pub(super) const FRAMING_BYTES: f64 = 40.0;
/// Bytes that a handshake sends at most, without a client's certificate.
pub(super) const HANDSHAKE_BYTES: f64 = 4_096.0;
/// Segments that a handshake sends at most, without a client's certificate.
pub(super) const HANDSHAKE_SEGMENTS: f64 = 4.0;
/// Segments of all clients together below which shares of them are chance.
pub(super) const OTHERS_SEGMENTS_LEAST: u64 = 20;

/// Share of the CPUs of client and server that other programs used, from which on they disturb
/// whoever waits for one.
pub(super) const TAKEN_BY_OTHERS_FAIL: f64 = 0.05;
/// Share of what the server missed while it waited for a CPU that other programs used, from which
/// on the wait is theirs.
pub(super) const EXPLAINED_BY_OTHERS: f64 = 0.5;
/// CPU time that the server missed, as a share of what it used, from which on it would have done
/// more without other programs.
pub(super) const TAKEN_FROM_SERVER_LEAST: f64 = 0.05;
/// Busy share of the CPUs that client and server have in common, above which they disturb each
/// other.
pub(super) const SHARED_BUSY_FAIL: f64 = 0.90;
/// Busy share of the CPUs that client and server have in common, above which they disturb each
/// other if there is also pressure. The proposal had no such bound: on a machine with CPUs to spare
/// somebody always waits a little. Beside a server that follows a database and brunt on two CPUs,
/// each a third idle, more connections and fewer gave the same [tuned].
pub(super) const SHARED_BUSY_PRESSED: f64 = 0.70;
/// Busy share of all CPUs of a machine below which they do not limit a server that may live on it.
pub(super) const HOST_HAS_ROOM_BELOW: f64 = 0.50;
/// CPUs that others used, per common CPU, from which on client and server are not a pair but two
/// of several [tuned].
pub(super) const SHARED_OTHERS_MOST: f64 = 0.20;
/// Share of the CPUs that workers are bound to which the server used, from which on it is one of
/// two there. Less is how exact the accounts are.
pub(super) const TAKEN_LEAST: f64 = 0.05;
/// CPUs that both must have used to be competitors.
pub(super) const SHARED_USE_LEAST: f64 = 0.02;

/// Second half of the window against the first, as a ratio less 1, from which on no single figure
/// describes the run. What drifts less, but more than chance and 3 %, is said beside the headline:
/// on shared machines one run of 2 s in seven does, of a server that holds still [tuned].
pub(super) const DRIFT_FAIL_HALVES: f64 = 0.10;
/// Trend over the whole window, as a share of the median, from which on no single figure describes
/// the run.
pub(super) const DRIFT_FAIL_TREND: f64 = 0.20;

/// Second half of the window against the first, as a ratio less 1. Up to this, the drift does not
/// shake what more connections would give: twice as many that are free give twice as much [tuned].
pub(super) const DRIFT_BESIDE_CONNECTIONS: f64 = 0.30;

/// Replies that a verdict needs.
pub(super) const REPLIES_LEAST: u64 = 100;
/// A window that a verdict needs, nanoseconds: CPU times are counted in ticks of 10 ms.
pub(super) const WINDOW_LEAST_NS: u64 = 500_000_000;

/// Effect of an experiment above which the change went through.
pub(super) const EFFECT_STRONG: f64 = 0.5;
/// Effect of half of the connections in the warm-up, above which the change went through. A lock
/// that eight of ten connections fill gives 0.68, and its interval ends above this in one run of
/// 50. A second tells it to 0.2 at 3,000 requests per second [tuned].
pub(super) const EFFECT_WHOLE: f64 = 0.70;
/// Effect of an experiment below which the change did not go through.
pub(super) const EFFECT_WEAK: f64 = 0.3;

/// Share of the connections in flight that makes them all busy.
pub(super) const CONNECTIONS_BUSY: f64 = 0.90;
/// Mean service time over the fastest hundredth, from which on requests wait for each other.
pub(super) const QUEUED_RATIO: f64 = 2.0;
/// Mean service time over the fastest hundredth, up to which requests do not wait for each other.
/// Between this and [`QUEUED_RATIO`], only an experiment tells: a thread or a lock that is just at
/// its end makes requests wait for less than their own time.
pub(super) const UNQUEUED_RATIO: f64 = 1.25;
/// Service times that the ratio of the mean to the fastest hundredth needs.
pub(super) const QUEUED_SAMPLES_LEAST: u64 = 100;
