//! What several signals and rules need of a run, worked out once, with the thresholds and the words
//! that they share; the other thresholds stand where they are used. Shares are of 1. Thresholds
//! marked [tuned] depart from the first proposals, for the reason that is given.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::ops::Deref;
use std::rc::Rc;

use brunt_load::{LoadModel, Work};
use brunt_record::{
    AgentRecord, CpuTimes, Evidence, FailureKind, KernelSample, NetworkEvidence, Route, Run,
    ServerConnections, ServerEvidence, ServerThreads, TcpCounters, ThreadUse, Throttling,
    WorkerRecord,
};

use crate::behaviour::steadiness::steadiness_of;
use crate::elasticity::Elasticity;
use crate::facts::Facts;
use crate::invariants::{Finding, InvariantStatus};
use crate::units::short::percent;
use crate::units::{self, count, plural};
use crate::{
    Bandwidth, Clean, CleanFigures, Quantile, ROUND_QUANTILES, Steadiness, Summary, samples_needed,
};

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

/// Share of the time in which a worker with one request in flight has nothing to do. From here on a
/// second request gives more, though brunt is busy for most of each round trip [tuned].
const IDLE_OF_ONE: f64 = 0.10;
/// Requests and handshakes in flight per saturated thread from which on there is always one for it.
const DEMAND_PER_THREAD: f64 = 2.0;
/// CPU that threads beside the saturated ones may use, per saturated one, and be mere helpers
/// (a collector of garbage, a writer of logs) [tuned].
const HELPER_CPUS: f64 = 0.25;
/// Share of the CPUs that saturated threads got, below which they waited for what others used
/// [tuned].
const STARVED_BELOW: f64 = 0.85;
/// CPUs that a server uses with nothing to do, from which on its CPU time says nothing.
const POLLING_CPUS: f64 = 0.5;
/// Share of what the server missed while it waited for a CPU that other programs used, from which
/// on the wait is theirs.
const EXPLAINED_BY_OTHERS: f64 = 0.5;
/// CPU time that the server missed, as a share of what it used, from which on it would have done
/// more without other programs.
const TAKEN_FROM_SERVER_LEAST: f64 = 0.05;
/// Busy share of all CPUs of a machine below which they do not limit a server that may live on it.
const HOST_HAS_ROOM_BELOW: f64 = 0.50;
/// Service times that the ratio of the mean to the fastest hundredth needs.
const QUEUED_SAMPLES_LEAST: u64 = 100;

/// What an HTTP/2 server resets a stream with when it is asked for too much.
pub(super) const REFUSING_RESETS: [(FailureKind, &str); 2] = [
    (FailureKind::StreamRefused, "REFUSED_STREAM"),
    (FailureKind::StreamEnhanceYourCalm, "ENHANCE_YOUR_CALM"),
];

/// A run with what is derived from it, as one of its agents saw it.
pub(super) struct RunFacts<'a> {
    /// What all agents saw together.
    pub(super) all: Rc<Facts<'a>>,
    /// The agent, whose machine, network and server are looked at.
    pub(super) agent: &'a AgentRecord,
    /// Invariants that are broken.
    pub(super) broken: Vec<Finding>,
    /// The threads of the workers; absent when none was read.
    pub(super) threads: Option<Threads>,
    /// CPUs that brunt's workers ran on, where they were bound; else those that brunt may run on.
    pub(super) client_cpus: BTreeSet<u32>,
    /// CPUs of this machine that the server may run on.
    pub(super) server_cpus: BTreeSet<u32>,
    /// The kernel's samples of all workers.
    pub(super) kernel: KernelSample,
    /// Share of what the server receives that is others', or why that is not known.
    pub(super) others: Result<f64, &'static str>,
    pub(super) elasticity: Option<Elasticity>,
    /// What the hypervisor left of the window, where it took something.
    pub(super) left: Option<&'a Clean>,
    /// The figures of what the hypervisor left, where it took so much that the verdict is found on
    /// them, and left enough.
    pub(super) clean: Option<&'a CleanFigures>,
}

/// The workers' threads over the window.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Threads {
    /// Workers whose thread was not read.
    pub(super) unread: usize,
    /// Share of the time for which the least idle worker had nothing to do.
    pub(super) idle_least: f64,
    /// Share of a worker's run and wait for which it waited for a CPU, the highest of all workers.
    pub(super) run_wait: Option<f64>,
    /// Share of the time for which a worker waited for a CPU, the highest of all.
    pub(super) waited: Option<f64>,
    /// CPUs that all workers used together.
    pub(super) cpus_used: f64,
}

/// What limits a server's threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Saturation {
    /// All threads that do the server's work are busy.
    Busy,
    /// The threads are ready, but others use their CPUs.
    Starved,
}

/// A quotient that is a number.
pub(super) fn ratio(numerator: f64, denominator: f64) -> Option<f64> {
    let value = numerator / denominator;
    (denominator > 0.0 && value.is_finite()).then_some(value)
}

impl Threads {
    /// `available`: the share of the time that the hypervisor left of the CPU that it took most of.
    fn of(workers: &[WorkerRecord], available: f64) -> Option<Self> {
        let read = workers.iter().filter_map(|worker| worker.thread);
        let read: Vec<ThreadUse> = read.filter(|thread| thread.interval_ns > 0).collect();
        let most = |of: &dyn Fn(&ThreadUse) -> Option<f64>| {
            let shares = read.iter().filter_map(of);
            shares.max_by(f64::total_cmp)
        };
        let over_time = |thread: &ThreadUse, ns: u64| ns as f64 / thread.interval_ns as f64;
        // Time that was stolen is not idle time.
        let busy_most = most(&|thread| {
            let waited_ns = thread.run_queue_wait_ns.unwrap_or(0);
            let busy_ns = thread.worked_ns().saturating_add(waited_ns);
            Some(over_time(thread, busy_ns) / available)
        });
        let run_wait = most(&|thread| {
            let waited_ns = thread.run_queue_wait_ns? as f64;
            let share = ratio(waited_ns, thread.cpu_ns() as f64 + waited_ns);
            Some(share.unwrap_or(0.0))
        });
        let used = read.iter();
        let used = used.map(|thread| over_time(thread, thread.cpu_ns()));
        Some(Self {
            unread: workers.len() - read.len(),
            idle_least: (1.0 - busy_most?).clamp(0.0, 1.0),
            run_wait,
            waited: most(&|thread| Some(over_time(thread, thread.run_queue_wait_ns?))),
            cpus_used: used.sum(),
        })
    }
}

/// Share of its periods in which a quota was used up.
pub(super) fn throttled_share(throttling: Throttling) -> f64 {
    let (throttled, all) = (throttling.throttled_periods, throttling.periods);
    let share = ratio(throttled as f64, all as f64);
    share.unwrap_or(1.0).clamp(0.0, 1.0)
}

/// The share of the time that the hypervisor left of one of these CPUs, the one that it took most
/// of. 1 where it took less than is noticed.
fn available(evidence: &Evidence, cpus: &BTreeSet<u32>) -> f64 {
    let times = evidence.host.cpus.iter();
    let wanted = times.filter(|times| cpus.contains(&times.cpu));
    let taken = wanted.filter_map(|times| {
        let steal_ns = times.steal_ns as f64;
        let share = ratio(steal_ns, times.total_ns() as f64)?;
        (share >= STEAL_WARN && steal_ns >= STEAL_LEAST_NS).then_some(share)
    });
    // A worker that had nothing at all was not idle either.
    1.0 - taken.fold(0.0, f64::max).min(0.99)
}

impl<'a> Deref for RunFacts<'a> {
    type Target = Facts<'a>;

    fn deref(&self) -> &Facts<'a> {
        &self.all
    }
}

impl<'a> RunFacts<'a> {
    /// The run as each of its agents saw it. `all` and `findings` are of all together.
    pub(super) fn of_agents(
        all: &Rc<Facts<'a>>,
        findings: &[Finding],
        left: Option<&'a Clean>,
    ) -> Vec<Self> {
        let agents = all.run.agents.iter();
        let cases = agents.map(|agent| Self::of(all, agent, findings));
        let mut cases: Vec<Self> = cases.collect();
        let is_stolen = cases.iter().any(Self::is_stolen);
        let clean = left.and_then(|left| left.figures.as_ref());
        for facts in &mut cases {
            (facts.left, facts.clean) = (left, clean.filter(|_| is_stolen));
        }
        cases
    }

    fn of(all: &Rc<Facts<'a>>, agent: &'a AgentRecord, findings: &[Finding]) -> Self {
        let (run, summary) = (all.run, &all.summary);
        let mut kernel = KernelSample::default();
        for worker in &agent.workers {
            kernel.merge(&worker.kernel);
            let streams = worker.streams.as_ref();
            kernel.merge(&streams.map(KernelSample::of_streams).unwrap_or_default());
        }
        let (server, client_cpus) = (&agent.evidence.server, agent.client_cpus());
        let server_cpus = server.iter().flat_map(|server| &server.cpu_list);
        let findings = findings.iter();
        let broken = findings.filter(|finding| finding.status == InvariantStatus::Broken);
        let available = available(&agent.evidence, &client_cpus);
        Self {
            broken: broken.cloned().collect(),
            threads: Threads::of(&agent.workers, available),
            client_cpus,
            server_cpus: server_cpus.copied().collect(),
            kernel,
            others: others_of(run, agent, summary),
            elasticity: Elasticity::of_warm_up(run, summary),
            left: None,
            clean: None,
            agent,
            all: Rc::clone(all),
        }
    }

    /// A sum over the times of CPUs, nanoseconds.
    pub(super) fn sum_ns(cpus: &[&CpuTimes], ns: fn(&CpuTimes) -> u64) -> f64 {
        cpus.iter().map(|times| ns(times) as f64).sum()
    }

    /// Share of the time of the CPUs that brunt or the server used that the hypervisor took, and
    /// that time, nanoseconds. Absent where it was not read.
    pub(super) fn steal(&self) -> Option<(f64, f64)> {
        let wanted = self.agent.cpus_of_both();
        let cpus = self.cpus(|cpu| wanted.is_empty() || wanted.contains(&cpu));
        let steal_ns = Self::sum_ns(&cpus, |times| times.steal_ns);
        let share = ratio(steal_ns, Self::sum_ns(&cpus, CpuTimes::total_ns))?;
        Some((share, steal_ns))
    }

    /// The part of the window that the verdict is found on, where that is not all of it: `7.60 s
    /// of 10.0 s without CPU steal`.
    pub(super) fn clean_words(&self) -> Option<String> {
        self.clean.map(undisturbed_words)
    }

    /// Whether the hypervisor took enough to be noticed.
    fn is_stolen(&self) -> bool {
        let steal = self.steal();
        steal.is_some_and(|(share, ns)| share >= STEAL_WARN && ns >= STEAL_LEAST_NS)
    }

    /// Whether the rate held still over the parts of the window that the verdict is found on.
    pub(super) fn steadiness(&self) -> Steadiness {
        let of_all = || steadiness_of(self.run, &self.summary);
        self.clean.map_or_else(of_all, |clean| clean.steadiness)
    }

    pub(super) fn evidence(&self) -> &'a Evidence {
        &self.agent.evidence
    }

    /// Length of the readings, nanoseconds. Absent when there were none.
    pub(super) fn interval_ns(&self) -> Option<f64> {
        let interval_ns = self.evidence().interval_ns;
        (interval_ns > 0).then_some(interval_ns as f64)
    }

    /// Share of the bandwidth asked for that the peers acknowledged; absent where none was.
    pub(super) fn paced_share(&self) -> Option<(f64, f64)> {
        let bits_per_s = self.run.plan.one_way()?.paced_bits_per_s?.get() as f64;
        let up = Bandwidth::of(self.run, &self.summary)
            .up_bytes_per_s
            .known()?;
        Some((ratio(up * 8.0, bits_per_s)?, bits_per_s))
    }

    /// Complete replies in the window, whatever their status.
    pub(super) fn replies(&self) -> u64 {
        self.summary.window.replies.total()
    }

    /// Share of the answers that turned the request away, and said so. Absent without any answer.
    pub(super) fn refused_share(&self) -> Option<f64> {
        let window = &self.summary.window;
        let by_status = [429_u16, 503].map(|status| window.replies.count(status));
        let by_reset = REFUSING_RESETS.map(|(kind, _)| window.failures.get(kind));
        let sum = |counts: [u64; 2]| counts[0].saturating_add(counts[1]);
        let by_reset = sum(by_reset);
        // A reply that says when to come again is mostly one of those two.
        let refused = sum(by_status).max(window.retry_afters);
        let refused = refused.saturating_add(by_reset) as f64;
        let failed = window.failures.of_requests(self.run.work());
        ratio(refused, self.replies().saturating_add(failed) as f64)
    }

    /// Whether every worker is known to have time to spare, so that what it does late is a matter
    /// of waking up: it lengthens response times and lowers no throughput.
    pub(super) fn workers_have_time(&self) -> bool {
        self.are_idle_for(IDLE_HEALTHY)
    }

    fn are_idle_for(&self, share: f64) -> bool {
        self.threads
            .is_some_and(|threads| threads.unread == 0 && threads.idle_least >= share)
    }

    /// Whether no worker of a closed loop had more than one request in flight, and each was idle
    /// for a part of the time: what brunt does is a part of each round trip then, and its CPU is
    /// not used up.
    pub(super) fn is_one_at_a_time(&self) -> bool {
        let workers = self.run.workers().count() as u64;
        self.is_closed() && self.places() <= workers && self.are_idle_for(IDLE_OF_ONE)
    }

    /// How busy the connections of a closed loop were that paused by plan.
    pub(super) fn paused_by_plan(&self) -> Option<f64> {
        let busy = self.connections_busy().filter(|_| self.is_closed())?;
        (busy < CONNECTIONS_BUSY).then_some(busy)
    }

    pub(super) fn network(&self) -> Option<&'a NetworkEvidence> {
        self.evidence().network.as_ref()
    }

    pub(super) fn tcp(&self) -> Option<&'a TcpCounters> {
        self.network()?.tcp.as_ref()
    }

    /// Whether client and server share a machine and nothing lies between them, as in simulation.
    pub(super) fn is_local(&self) -> bool {
        if self.run.is_simulated() {
            return true;
        }
        match self.network().map(|network| &network.route) {
            Some(Route::UnixSocket | Route::Loopback) => true,
            Some(Route::Interface { .. }) => false,
            Some(Route::Unknown) | None => {
                let address: Result<SocketAddr, _> = self.agent.negotiated.address.parse();
                self.run.plan.target.unix_socket.is_some()
                    || address.is_ok_and(|address| address.ip().is_loopback())
            }
        }
    }

    /// Use of the link in its busier direction. Absent without a link, or its speed.
    pub(super) fn link_use(&self) -> Option<f64> {
        let Route::Interface {
            link_bits_per_s: Some(bits_per_s),
            received_bytes,
            sent_bytes,
            ..
        } = self.network()?.route
        else {
            return None;
        };
        let bits = received_bytes.max(sent_bytes) as f64 * 8.0;
        ratio(bits, self.interval_ns()? / 1e9 * bits_per_s as f64)
    }

    /// Whether the way to the server cannot be what limits: there is none, or its speed was given
    /// and leaves room. What our own interface could carry says nothing of the links behind it.
    pub(super) fn network_has_room(&self) -> bool {
        let is_given = |network: &NetworkEvidence| match network.route {
            Route::Interface { was_given, .. } => was_given,
            _ => false,
        };
        let is_free = self.link_use().is_some_and(|used| used < LINK_WARN);
        self.is_local() || is_free && self.network().is_some_and(is_given)
    }

    /// Whether the CPUs of this machine are known not to be what limits a server that may live on
    /// it.
    pub(super) fn host_has_room(&self) -> bool {
        if !self.is_local() || self.server().is_some() {
            return true;
        }
        let cpus = self.cpus(|_| true);
        let busy_ns = Self::sum_ns(&cpus, |times| times.busy_ns);
        let busy = ratio(busy_ns, Self::sum_ns(&cpus, CpuTimes::total_ns));
        busy.is_some_and(|busy| busy < HOST_HAS_ROOM_BELOW)
    }

    pub(super) fn server(&self) -> Option<&'a ServerEvidence> {
        let server = self.evidence().server.as_ref();
        server.filter(|server| server.interval_ns > 0)
    }

    /// Whether the server uses CPUs with nothing to do, so that their use says nothing. One that
    /// others load has something to do also before brunt's load.
    pub(super) fn server_polls(&self) -> bool {
        let has_others = self.others.is_ok_and(|share| share >= OTHERS_FAIL);
        self.server()
            .filter(|_| !has_others)
            .and_then(|server| server.idle_cpus_used)
            .is_some_and(|used| used >= POLLING_CPUS)
    }

    /// Share of its CPUs that the server used. Absent where either is unknown.
    pub(super) fn server_use(&self) -> Option<f64> {
        let server = self.server().filter(|_| !self.server_polls())?;
        let available = available(self.evidence(), &self.server_cpus);
        let used = ratio(server.cpus_used()?, server.cpus? * available)?;
        // What the kernel counts in ticks may be a little more than there is.
        Some(if available < 1.0 { used.min(1.0) } else { used })
    }

    /// Whether the threads that do the server's work are all at their end. Threads count only as
    /// long as each has something to work on: one that spends all of its time on one is held up by
    /// nobody but itself. Absent where one has time left, or too little is asked of them.
    pub(super) fn server_saturation(&self) -> Option<Saturation> {
        let (server, threads) = self.server_threads()?;
        let saturated = f64::from(threads.saturated);
        let (used, in_flight) = (server.cpus_used()?, self.summary.in_flight_mean.known()?);
        // Handshakes are work as well.
        let demand = in_flight + self.opening_mean().unwrap_or(0.0);
        if threads.saturated == 0 || demand < DEMAND_PER_THREAD * saturated {
            return None;
        }
        let theirs = threads.saturated_cpu_ns as f64 / server.interval_ns as f64;
        let all = threads.saturated >= threads.active;
        if !all && used - theirs > HELPER_CPUS * saturated {
            return None;
        }
        let could_use = server.cpus.map_or(saturated, |cpus| saturated.min(cpus));
        let could_use = could_use * available(self.evidence(), &self.server_cpus);
        let is_starved = theirs < STARVED_BELOW * could_use;
        Some(if is_starved {
            Saturation::Starved
        } else {
            Saturation::Busy
        })
    }

    fn server_threads(&self) -> Option<(&'a ServerEvidence, ServerThreads)> {
        let server = self.server().filter(|_| !self.server_polls())?;
        Some((server, server.threads?))
    }

    /// Share of its CPUs that the server has left; of one CPU, where its busiest thread has less.
    /// Absent where its use is unknown.
    pub(super) fn server_headroom(&self) -> Option<f64> {
        let of_cpus = 1.0 - self.server_use()?;
        let server = self.server()?;
        if server.threads.is_none() && server.cpus.is_none_or(|cpus| cpus > 1.0) {
            // One thread may be at its end while other CPUs idle.
            return None;
        }
        let of_busiest = self.server_threads().and_then(|(server, threads)| {
            ratio(threads.busiest_cpu_ns as f64, server.interval_ns as f64).map(|used| 1.0 - used)
        });
        let headroom = of_busiest.map_or(of_cpus, |busiest| busiest.min(of_cpus));
        let throttled = server.throttling.map_or(0.0, throttled_share);
        let is_held_back = throttled >= SERVER_THROTTLED_FAIL;
        if is_held_back || self.server_saturation().is_some() {
            return Some(0.0);
        }
        let idle = self.idle_beside_one().unwrap_or(headroom);
        Some(headroom.max(idle).clamp(0.0, 1.0))
    }

    /// Whether brunt and the server take turns: there is one request, which either of them has.
    pub(super) fn takes_turns(&self) -> bool {
        self.is_closed() && self.places() == 1 && self.run.work() != Work::Streams
    }

    /// Share of the time in which the server had no request, where brunt and it take turns. What it
    /// did then (it compiled, it collected garbage) would not keep it from a second request. Absent
    /// where they do not, or the share is too small to tell.
    pub(super) fn idle_beside_one(&self) -> Option<f64> {
        let idle = self.own_share().filter(|_| self.takes_turns())?;
        (idle >= HEADROOM_LEAST).then_some(idle)
    }

    /// Share of its run and wait for which the server waited for a CPU.
    pub(super) fn server_run_wait(&self) -> Option<f64> {
        let server = self.server()?;
        let waited_ns = server.run_queue_wait_ns? as f64;
        ratio(waited_ns, server.cpu_ns() as f64 + waited_ns)
    }

    /// Whether other programs, which used so many CPUs, took CPU time from the server that it would
    /// have used: as much as matters beside what it had, and theirs rather than that of a quota, of
    /// waking up or of brunt. Threads that wait behind one another miss no more than the CPUs that
    /// the server did not have. If that is not known, they did.
    pub(super) fn others_took_from_server(&self, others_cpus: f64) -> bool {
        let lost = self.server().and_then(|server| {
            let waited = ratio(server.run_queue_wait_ns? as f64, server.interval_ns as f64)?;
            let used = server.cpus_used()?;
            let missed = waited.min((server.cpus? - used).max(0.0));
            Some((missed, used))
        });
        lost.is_none_or(|(missed, used)| {
            missed >= TAKEN_FROM_SERVER_LEAST * used && others_cpus >= EXPLAINED_BY_OTHERS * missed
        })
    }

    /// CPUs that the server is known to have used on the CPUs that workers are bound to: all that
    /// others used there, but for what processes beside the two used anywhere. Absent where workers
    /// are not bound, or that is unknown.
    pub(super) fn taken_from_workers(&self) -> Option<f64> {
        self.agent.bound_cpus()?;
        let threads = self.threads.filter(|threads| threads.unread == 0)?;
        let interval_ns = self.interval_ns()?;
        let server_used = self.server().and_then(ServerEvidence::cpus_used);
        let both_used = threads.cpus_used + server_used.unwrap_or(0.0);
        let used = |wanted: &dyn Fn(u32) -> bool, ns: fn(&CpuTimes) -> u64| {
            Self::sum_ns(&self.cpus(wanted), ns) / interval_ns
        };
        let of_tasks = |times: &CpuTimes| times.busy_ns.saturating_sub(times.softirq_ns);
        let busy = |times: &CpuTimes| times.busy_ns;
        // Most kernels count soft interrupts as the time of the thread that they interrupt, too.
        let is_counted_twice = both_used > used(&|_| true, of_tasks);
        let of_all = if is_counted_twice { busy } else { of_tasks };
        let is_worker = |cpu: u32| self.client_cpus.contains(&cpu);
        let by_others = (used(&|_| true, of_all) - both_used).max(0.0);
        let taken = used(&is_worker, of_all) - threads.cpus_used - by_others;
        // What the server used beyond its other CPUs it used here.
        let is_servers = |cpu: u32| self.server_cpus.contains(&cpu) && !is_worker(cpu);
        let beyond = server_used.unwrap_or(0.0) - used(&is_servers, busy);
        Some(taken.max(beyond).max(0.0))
    }

    /// The readings of those CPUs for which `wanted` holds.
    pub(super) fn cpus(&self, wanted: impl Fn(u32) -> bool) -> Vec<&'a CpuTimes> {
        let cpus = self.evidence().host.cpus.iter();
        cpus.filter(|times| wanted(times.cpu)).collect()
    }

    /// Mean service time over the best: that of the fastest hundredth (or of the fastest, where
    /// they are few), or of the fastest first reply on any connection, which found a server with
    /// nothing to do. Near 1 where requests do not wait for each other. Absent with too few.
    pub(super) fn queueing(&self) -> Option<f64> {
        let latencies = &self.run.latencies;
        let service = match self.clean {
            _ if latencies.service.count() > 0 => &latencies.service,
            Some(clean) => &clean.response,
            None => &latencies.response,
        };
        let fastest_ns = if service.count() >= samples_needed(0.01) {
            service.quantile_ns(0.01)?
        } else if service.count() >= QUEUED_SAMPLES_LEAST {
            service.min_ns()?
        } else {
            return None;
        };
        let workers = self.run.workers();
        let first_ns = workers.filter_map(|worker| worker.first_service_ns_min);
        let best_ns = first_ns.min().unwrap_or(fastest_ns).min(fastest_ns);
        ratio(service.mean_ns()?, best_ns as f64)
    }

    /// Connections that there may be.
    pub(super) fn connections_most(&self) -> u32 {
        self.run.plan.connections_most()
    }

    /// Requests that could be in flight at once: the places on all connections.
    pub(super) fn places(&self) -> u64 {
        u64::from(self.connections_most()).saturating_mul(self.depth())
    }

    /// Requests that may be in flight on a connection: never more than it carries in all.
    fn depth(&self) -> u64 {
        let carried = self.run.plan.requests_per_connection().unwrap_or(u64::MAX);
        u64::from(self.run.depth()).min(carried).max(1)
    }

    /// The places on all connections in words: `100 connections of 10 streams`.
    pub(super) fn places_words(&self) -> String {
        let noun = match self.run.work() {
            Work::Streams => "stream",
            _ => "connection",
        };
        let places = plural(self.connections_most(), noun);
        match self.depth() {
            1 => places,
            depth => {
                let many = self.run.protocol().depth.many;
                format!("{places} of {} {many}", count(depth))
            }
        }
    }

    /// Share of the open connections (with a schedule of connections: of those allowed) in use on
    /// average, which bounds the share of the time in which all were.
    pub(super) fn connections_busy(&self) -> Option<f64> {
        let summary = &self.summary;
        let plan = &self.run.plan;
        let live = if plan.work() == Work::Connects {
            f64::from(self.connections_most())
        } else {
            summary.live_mean.known()?
        };
        let has_pauses = plan.traffic.think_time_ns > 0 || self.run.is_generated();
        let busy = match plan.load.model {
            LoadModel::Closed { .. } if !has_pauses => 1.0,
            // Nothing is in flight on them.
            LoadModel::Held { .. } => 0.0,
            LoadModel::Closed { .. } | LoadModel::Open { .. } => {
                // Users whose connection the server ended think without one, and what no request
                // needs could be opened again.
                let missing = summary.live.missing;
                let unasked_ns = missing.thinking_ns.saturating_add(missing.unneeded_ns);
                let places = live + ratio(unasked_ns as f64, self.run.window_ns as f64)?;
                let in_flight = summary.in_flight_mean.known()?;
                ratio(in_flight, places * self.depth() as f64)?
            }
            LoadModel::Sessions { .. } => {
                ratio(live + self.opening_mean()?, f64::from(summary.live.most))?
            }
        };
        Some(busy.clamp(0.0, 1.0))
    }

    /// How many connections were being opened on average: each takes its place from the first
    /// step on.
    fn opening_mean(&self) -> Option<f64> {
        if self.run.work() == Work::Connects {
            // Those are the requests in flight.
            return None;
        }
        let (window, latencies) = (&self.summary.window, &self.run.latencies);
        let kinds = [FailureKind::ConnectTimedOut, FailureKind::HandshakeTimedOut];
        let timed_out: u64 = kinds.map(|kind| window.failures.get(kind)).iter().sum();
        let in_vain_ns = timed_out as f64 * self.run.plan.limits.connect_timeout_ns as f64;
        let opened_ns = window.connections_opened as f64 * latencies.opening_mean_ns();
        ratio(opened_ns + in_vain_ns, self.run.window_ns as f64)
    }
}

/// Requests that fit into a segment of any path, bytes.
const ONE_SEGMENT_BYTES: u64 = 1_000;
/// What TLS or HTTP/2 adds to a request on its way at most, with a share of the frames about the
/// whole connection, bytes.
const FRAMING_BYTES: f64 = 40.0;
/// Bytes that a handshake sends at most, without a client's certificate.
const HANDSHAKE_BYTES: f64 = 4_096.0;
/// Segments that a handshake sends at most, without a client's certificate.
const HANDSHAKE_SEGMENTS: f64 = 4.0;
/// Segments of all clients together below which shares of them are chance.
const OTHERS_SEGMENTS_LEAST: u64 = 20;

/// The share of what the kernel counted on the server's connections that brunt did not send. With
/// several agents, what each agent saw of the others is brunt's own traffic.
fn others_of(run: &Run, agent: &AgentRecord, summary: &Summary) -> Result<f64, &'static str> {
    let seen = agent.evidence.server_connections.as_ref();
    let seen = seen.ok_or("the server's connections were not counted")?;
    if seen.interval_ns == 0 || seen.segments_received < OTHERS_SEGMENTS_LEAST {
        return Err("the server received too little to tell");
    }
    if run.work() == Work::Streams {
        return Err("what is under way on streams hides what others send");
    }
    let (received, own) = accounts(run, summary, seen);
    if seen.connections <= u64::from(summary.live.max) {
        let is_known = received >= own / 2.0;
        let too_fast = "brunt's connections come and go too fast to be told from those of others";
        return is_known.then_some(0.0).ok_or(too_fast);
    }
    // Were brunt's the most active ones: what connections did before they were replaced is not
    // known, neither of brunt's nor of others'.
    let least = if run.is_plain() {
        seen.segments_received_beyond as f64 / seen.segments_received as f64
    } else {
        0.0
    };
    let beyond = 1.0 - own / received.max(1.0);
    Ok(beyond.max(least).clamp(0.0, 1.0))
}

/// What the server received, and most of it that was brunt's, in units that the two have in common:
/// segments where each holds a request, else bytes.
fn accounts(run: &Run, summary: &Summary, seen: &ServerConnections) -> (f64, f64) {
    let window = &summary.window;
    // The first reading may have been late.
    let part = (seen.interval_ns as f64 / run.window_ns.max(1) as f64).min(1.0);
    let requests = window.sends() as f64 * part;
    // Sent before the first reading, and received after it.
    let under_way = f64::from(summary.live.max) * f64::from(run.depth().max(1));
    let is_secure = run.plan.tls().is_some();
    let opened = window.connections_opened as f64;
    let handshakes = if is_secure { opened } else { 0.0 };
    if run.depth() <= 1 && run.request_bytes() <= ONE_SEGMENT_BYTES {
        let own = requests + under_way + handshakes * HANDSHAKE_SEGMENTS;
        return (seen.segments_received as f64, own);
    }
    let is_framed = is_secure || run.protocol().adds_frames;
    let framing = if is_framed { FRAMING_BYTES } else { 0.0 };
    let own = window.bytes_sent as f64 * part
        + under_way * run.request_bytes() as f64
        + (requests + under_way) * framing
        + handshakes * HANDSHAKE_BYTES;
    (seen.bytes_received as f64, own)
}

/// Brunt's own part of the response times at p50 or p99, as a share of them. Above this and
/// [`OWN_LARGE_NS`], they are not the server's.
const OWN_LARGE_SHARE: f64 = 0.20;
/// Brunt's own part of the response times at p50 or p99, nanoseconds. Above this and
/// [`OWN_LARGE_SHARE`], they are not the server's.
const OWN_LARGE_NS: f64 = 100_000.0;
/// Brunt's own part of a quantile that is quoted, as a share of it. Above this and
/// [`OWN_LARGE_NS`], no report calls the figures sound.
const OWN_MOST_SHARE: f64 = 0.50;

/// Brunt's own part of the response times at a quantile.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct OwnPart {
    /// The quantile's name.
    pub of: &'static str,
    /// The share (0 to 1) that the part has of the response time at that quantile.
    pub share: f64,
    /// The length of the part, nanoseconds.
    pub ns: f64,
}

impl OwnPart {
    /// The part `ns` of `response_ns`, where that is more than `share` of it, and large.
    fn over(of: &'static str, ns: f64, response_ns: f64, share: f64) -> Option<Self> {
        let found = ratio(ns, response_ns)?.min(1.0);
        (found > share && ns > OWN_LARGE_NS).then_some(Self {
            of,
            share: found,
            ns,
        })
    }

    /// `about 67 % of p99 and above is brunt's own`: of a sample, whose p99 may be another.
    pub(super) fn words(&self) -> String {
        let is_of_slowest = self.of.starts_with("p99");
        let above = if is_of_slowest { " and above" } else { "" };
        let share = percent(self.share);
        format!("about {share} of {}{above} is brunt's own", self.of)
    }
}

fn known_ns(quantile: Quantile) -> Option<f64> {
    quantile.known_ns().map(|ns| ns as f64)
}

impl RunFacts<'_> {
    /// Brunt's own share of the response times on connections with kernel stamps, over the parts of
    /// the window that the verdict is found on.
    pub(super) fn own_share(&self) -> Option<f64> {
        match self.clean {
            Some(clean) => clean.own_share,
            None => self.run.latencies.split.mean()?.own_share(),
        }
    }

    /// The quantile of the response time of which brunt's own part is large, and not small: the
    /// median first. Absent where the verdict is found on a part of the window.
    pub(super) fn own_of_quantiles(&self) -> Option<OwnPart> {
        if self.clean.is_some() {
            return None;
        }
        first_part(self.run, &[("p50", 0.5), ("p99", 0.99)], OWN_LARGE_SHARE)
    }

    /// Brunt's own part where that is large: most of a quantile that is quoted, or a part of the
    /// median or p99.
    pub(super) fn own_part(&self) -> Option<OwnPart> {
        self.mostly_own().or_else(|| self.own_of_quantiles())
    }

    /// The first quantile that is quoted most of which is brunt's own, of what the verdict is found
    /// on.
    pub(super) fn mostly_own(&self) -> Option<OwnPart> {
        let Some(clean) = self.clean else {
            return first_part(self.run, &ROUND_QUANTILES, OWN_MOST_SHARE);
        };
        // Over time, the parts are not kept: what is longer than it is without brunt's own in the
        // whole window is brunt's.
        let rest = &self.run.latencies.split.rest;
        let mut parts = ROUND_QUANTILES.into_iter().filter_map(|(of, q)| {
            let response_ns = known_ns(clean.response_quantile(q))?;
            let ns = response_ns - known_ns(Quantile::of(rest, q))?;
            OwnPart::over(of, ns, response_ns, OWN_MOST_SHARE)
        });
        parts.next()
    }
}

/// The first of these quantiles of the response time of which brunt's own part is over `share`, and
/// large. By kernel stamps where those are enough, else by the schedule lag, which is known of each
/// request.
fn first_part(run: &Run, quantiles: &[(&'static str, f64)], share: f64) -> Option<OwnPart> {
    let latencies = &run.latencies;
    let by_stamps = quantiles.iter().filter_map(|&(of, q)| {
        // What is above p90 is as much of the slowest as of it.
        let parts = if q > 0.9 {
            latencies.split.known_tail(q).ok()?
        } else {
            let is_known = latencies.split.count() >= OWN_SAMPLES_LEAST;
            latencies.split.around(q).filter(|_| is_known)?
        };
        OwnPart::over(of, parts.own_ns(), parts.response_ns(), share)
    });
    let is_open = matches!(run.plan.load.model, LoadModel::Open { .. });
    let planned = quantiles.iter().filter(|_| is_open);
    let by_lag = planned.filter_map(|&(of, q)| {
        let lag_ns = known_ns(Quantile::of(&latencies.lag, q))?;
        let response_ns = known_ns(Quantile::of(&latencies.response, q))?;
        OwnPart::over(of, lag_ns, response_ns, share)
    });
    by_stamps.chain(by_lag).next()
}

/// How much of a quantile of the response time is brunt's own, in words, where that is much.
pub(crate) fn own_part_of(run: &Run, name: &'static str, q: f64) -> Option<String> {
    Some(first_part(run, &[(name, q)], OWN_LARGE_SHARE)?.words())
}

/// Most characters that are printed of a name or a reason from outside.
const CHARS_MAX: usize = 160;

/// The part of a window that was left undisturbed: `7.60 s of 10.0 s without CPU steal`.
pub(crate) fn undisturbed_words(clean: &CleanFigures) -> String {
    let [clean, all] = [clean.clean_ns, clean.window_ns].map(units::duration);
    format!("{clean} of {all} without CPU steal")
}

/// What came from outside, no longer than it may be. Reports make it printable.
pub(super) fn truncated(words: &str) -> String {
    words.chars().take(CHARS_MAX).collect()
}

/// The name of the server, no longer than it may be.
pub(super) fn name(name: &str) -> String {
    match truncated(name).as_str() {
        // Brunt's own server has brunt's name.
        "" | "brunt" => "the server".to_owned(),
        shown => shown.to_owned(),
    }
}

/// A word that a shell takes as it is.
pub fn shell_word(word: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b":/._-~%@+,=".contains(&byte);
    if !word.is_empty() && word.bytes().all(is_plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

/// A length as options take it: `10s`, `250ms`.
pub(super) fn length(ns: u64) -> String {
    match ns {
        _ if ns.is_multiple_of(1_000_000_000) => format!("{}s", ns / 1_000_000_000),
        _ if ns.is_multiple_of(1_000_000) => format!("{}ms", ns / 1_000_000),
        _ => format!("{}us", ns.div_ceil(1_000)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_reasons_are_bounded() {
        assert_eq!(name("nginx"), "nginx");
        assert_eq!(name("brunt"), "the server");
        assert_eq!(name(""), "the server");
        assert_eq!(truncated("at most 8 streams"), "at most 8 streams");
        let long = "é".repeat(999);
        assert_eq!(truncated(&long).chars().count(), CHARS_MAX);
    }
}
