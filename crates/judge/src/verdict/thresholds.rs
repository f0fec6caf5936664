//! Thresholds that several signals and rules of the verdict share; the others stand where they are
//! used. Shares are of 1. Those marked [tuned] depart from the first proposals, for the reason that
//! is given.

/// Share of the time in which the least idle worker has nothing to do. Below this, it is near its
/// end.
pub(super) const IDLE_HEALTHY: f64 = 0.20;
/// Brunt's own share of the response time, from which on the signal fails.
pub(super) const OWN_SHARE_FAIL: f64 = 0.10;
/// Responses with kernel stamps that a mean share needs.
pub(super) const OWN_SAMPLES_LEAST: u64 = 100;
/// Schedule lag at p99 that spoils latencies, nanoseconds.
pub(super) const LAG_FAIL_NS: f64 = 1e6;
/// Share of a worker's run and wait in which it was ready and had no CPU, from which on the signal
/// warns.
pub(super) const RUN_WAIT_WARN: f64 = 0.01;
/// Share of a worker's run and wait in which it was ready and had no CPU, from which on the signal
/// fails.
pub(super) const RUN_WAIT_FAIL: f64 = 0.05;
/// Share of the CPUs' time that the hypervisor took, from which on the signal warns.
pub(super) const STEAL_WARN: f64 = 0.005;
/// The least steal that counts, nanoseconds. The kernel counts steal in ticks of 10 ms: fewer than
/// three are the rounding of the reading [tuned].
pub(super) const STEAL_LEAST_NS: f64 = 30e6;
/// Rare events of the network (segments sent again, thrown away, out of order) below which a share
/// says nothing [tuned].
pub(super) const RARE_LEAST: u64 = 5;
/// Use of the link, from which on the signal warns.
pub(super) const LINK_WARN: f64 = 0.80;
/// Share of the periods in which the server's quota held it back, and most of it was used.
pub(super) const SERVER_THROTTLED_FAIL: f64 = 0.1;
/// Share of its CPUs that the server used, from which on the signal warns.
pub(super) const SERVER_WARN: f64 = 0.80;
/// Share of its CPUs that the server used, from which on it is at its end.
pub(super) const SERVER_FAIL: f64 = 0.95;
/// Share of its CPUs that a server must have left for it not to be the limit.
pub(super) const HEADROOM_LEAST: f64 = 0.20;
/// Share of what a server receives that others send it, from which on brunt's figures are not those
/// of the whole server.
pub(super) const OTHERS_FAIL: f64 = 0.05;
/// A window that a verdict needs, nanoseconds: CPU times are counted in ticks of 10 ms.
pub(super) const WINDOW_LEAST_NS: u64 = 500_000_000;
/// Share of the connections in flight that makes them all busy.
pub(super) const CONNECTIONS_BUSY: f64 = 0.90;
/// Mean service time over the fastest hundredth, from which on requests wait for each other.
pub(super) const QUEUED_RATIO: f64 = 2.0;
