//! One whole run, as stored: every report can be printed from it again.

mod agent;
mod merge;

use brunt_load::protocol::{Protocol, Unit};
use brunt_load::{Amounts, Plan, Work};
use serde::{Deserialize, Serialize};

use crate::{
    Backend, Evidence, GeneratorUse, Latencies, NameRecord, Objective, Phase, ServerCount,
    ServerWindow, SetUp, StreamRecord, WorkerRecord,
};

pub use agent::{
    AgentClock, AgentRecord, AgreedClock, FleetAgent, HostUse, LimitsChecked, LostAgent,
    Negotiated, NegotiatedTls, RunEdges, Seeds, after_ns,
};
use merge::Difference;
pub use merge::{MergeError, leaf_differences};

/// Most agents of a run.
pub const AGENTS_MAX: usize = 1_024;
/// Most workers of an agent.
pub const WORKERS_MAX: u32 = 4_096;

/// One run: what was asked, and what happened. Whether it may be believed follows from it, see
/// `brunt_judge::Judged`. All instants in it count from the start of the window, in nanoseconds, so
/// that what several machines recorded lies side by side.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Run {
    /// Version of this layout: 4.
    pub format: u32,
    /// Version of brunt that made the run.
    pub brunt_version: String,
    /// What was asked for, without what may be secret. Its amounts are those of all agents
    /// together.
    pub plan: Plan,
    /// The amounts of the plan that these agents have only a part of; absent where they have all of
    /// it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub part_of: Option<Amounts>,
    /// Length of the window, common to all workers, nanoseconds.
    pub window_ns: u64,
    /// Those that made the load: one in a plain run, never none.
    pub agents: Vec<AgentRecord>,
    /// Those that were to make a part of it, and gave no result.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lost_agents: Vec<LostAgent>,
    /// What the workers' histograms make together.
    pub latencies: Latencies,
    /// The outcome of the requests of a list, by their names, all workers together; empty for a
    /// single request.
    pub names: Vec<NameRecord>,
    /// What it was asked to reach; whether it did follows from the rest.
    pub objectives: Vec<Objective>,
}

impl Run {
    /// The layout that this version writes and reads.
    pub const FORMAT: u32 = 4;

    /// The first agent: of a plain run, the only one.
    pub fn first(&self) -> &AgentRecord {
        &self.agents[0]
    }

    /// Whether one process made all of the load.
    pub fn is_plain(&self) -> bool {
        self.agents.len() == 1
    }

    /// The workers of all agents, in order.
    pub fn workers(&self) -> impl Iterator<Item = &WorkerRecord> + Clone {
        self.agents.iter().flat_map(|agent| &agent.workers)
    }

    /// What its connections were for.
    pub fn work(&self) -> Work {
        self.plan.work()
    }

    /// The records of its streams.
    pub fn stream_records(&self) -> impl Iterator<Item = &StreamRecord> {
        self.workers().filter_map(|worker| worker.streams.as_ref())
    }

    /// Whether requests were made while the run went on, such as by a script.
    pub fn is_generated(&self) -> bool {
        self.workers().any(|worker| worker.generator.is_some())
    }

    /// What made them did in all, and for how many workers; absent where they were those of the
    /// plan.
    pub fn generator_use(&self) -> Option<(GeneratorUse, u64)> {
        GeneratorUse::sum(
            self.workers()
                .filter_map(|worker| worker.generator.as_ref()),
        )
    }

    /// The protocol that all agents speak.
    pub fn protocol(&self) -> Protocol {
        self.first().negotiated.protocol
    }

    /// The words for what it sent and had answered.
    pub fn unit(&self) -> Unit {
        self.plan.unit()
    }

    /// Requests in flight per connection, the same for all agents.
    pub fn depth(&self) -> u32 {
        self.first().negotiated.depth
    }

    /// Bytes of one request as sent, the most of all agents: each may name another host.
    pub fn request_bytes(&self) -> u64 {
        let requests = self.agents.iter();
        let bytes = requests.map(|agent| agent.negotiated.request_bytes);
        bytes.max().unwrap_or(0)
    }

    /// Whether any agent simulated its network.
    pub fn is_simulated(&self) -> bool {
        let mut agents = self.agents.iter();
        agents.any(|agent| agent.backend == Backend::Sim)
    }

    /// Whether any agent held the reference server in its process.
    pub fn own_server(&self) -> bool {
        self.agents.iter().any(|agent| agent.own_server)
    }

    /// Whether any agent was cut short by a signal.
    pub fn interrupted(&self) -> bool {
        self.agents.iter().any(|agent| agent.interrupted)
    }

    /// Arrivals that the schedule has in the window on average, all agents together. Absent
    /// without a schedule.
    pub fn expected_arrivals(&self) -> Option<f64> {
        let agents = self.agents.iter();
        agents.map(|agent| agent.expected_arrivals).sum()
    }

    /// A seed, where all agents have the same one.
    pub fn seed(&self, of: impl Fn(&Seeds) -> Option<u64>) -> Option<u64> {
        let seed = of(&self.first().seeds);
        let mut agents = self.agents.iter();
        agents
            .all(|agent| of(&agent.seeds) == seed)
            .then_some(seed)?
    }

    /// What set-up came to, all workers together. Absent where a worker did not say.
    pub fn set_up(&self) -> Option<SetUp> {
        let mut sum = SetUp::default();
        for worker in self.workers() {
            sum.merge(worker.set_up.as_ref()?);
        }
        Some(sum)
    }

    /// The evidence of the agent that watched the server, else of the first one.
    pub fn evidence_of_server(&self) -> &Evidence {
        let mut agents = self.agents.iter();
        let watching = agents.find(|agent| agent.evidence.server.is_some());
        &watching.unwrap_or(self.first()).evidence
    }

    /// The server's own count of requests: of several agents the one over all of their time, for
    /// each saw the requests of the others. Absent where none was read.
    ///
    /// # Errors
    ///
    /// Not all agents read the same count; the reason in words.
    pub fn server_count(&self) -> Result<Option<ServerCount>, String> {
        self.counted_by_server(|evidence| &evidence.server_count)
    }

    /// The server's count of the bytes that it sent on streams.
    ///
    /// # Errors
    ///
    /// As [`Run::server_count`].
    pub fn server_sent(&self) -> Result<Option<ServerCount>, String> {
        self.counted_by_server(|evidence| &evidence.server_sent)
    }

    /// What the reference server counted over the window of streams. Of several agents the count of
    /// the first that read it: each saw the bytes of all.
    pub fn server_window(&self) -> Option<&ServerWindow> {
        let mut agents = self.agents.iter();
        agents.find_map(|agent| agent.evidence.server_window.as_ref())
    }

    fn counted_by_server(
        &self,
        of: fn(&Evidence) -> &Option<ServerCount>,
    ) -> Result<Option<ServerCount>, String> {
        let mut counts = self.agents.iter().map(|agent| of(&agent.evidence));
        let first = counts.next().cloned().flatten();
        counts.try_fold(first, |sum, count| match (sum, count) {
            (None, None) => Ok(None),
            (Some(sum), Some(count)) if (&sum.url, &sum.path) == (&count.url, &count.path) => {
                Ok(Some(ServerCount {
                    before: sum.before.min(count.before),
                    after: sum.after.max(count.after),
                    own_reads: sum.own_reads.saturating_add(count.own_reads),
                    ..sum
                }))
            }
            _ => Err("not all agents read the same count of the server".to_owned()),
        })
    }
}

impl Run {
    /// Checks that its parts belong together, as they do in any run that was made or merged.
    ///
    /// # Errors
    ///
    /// They do not; why, in words.
    pub fn check_sound(&self) -> Result<(), String> {
        let (first, others) = self.agents.split_first().ok_or("it has no agent")?;
        let mut ids: Vec<&str> = self.agents.iter().map(|agent| agent.id.as_str()).collect();
        ids.sort_unstable();
        if let Some(pair) = ids.windows(2).find(|pair| pair[0] == pair[1]) {
            return Err(format!("two agents have the id `{}`", pair[0]));
        }
        let mut sum = first.share.clone();
        for agent in others {
            sum.add(&agent.share);
            if let Some((what, _, _)) = difference(first, agent) {
                return Err(format!("its agents differ in {what}"));
            }
        }
        if !sum.is_about(&self.plan.amounts()) {
            return Err("the shares of its agents do not make the amounts of its plan".to_owned());
        }
        if let Some(whole) = &self.part_of
            && !self.is_part_of(whole)
        {
            let words = "its workers are no part of the plan that it is said to be a part of";
            return Err(words.to_owned());
        }
        Ok(())
    }

    /// Whether its agents have some workers of a plan with these amounts, none of them twice, and
    /// not all.
    fn is_part_of(&self, whole: &Amounts) -> bool {
        let numbers = self.worker_numbers();
        let has_each_once = numbers.windows(2).all(|pair| pair[0] < pair[1]);
        let last = numbers.last().copied().unwrap_or(0);
        let count = numbers.len();
        has_each_once
            && last < whole.workers
            && (1..whole.workers as usize).contains(&count)
            && self.plan.amounts().workers as usize == count
    }

    /// The numbers of all workers, lowest first.
    pub fn worker_numbers(&self) -> Vec<u32> {
        let mut numbers: Vec<u32> = self.workers().map(|worker| worker.worker).collect();
        numbers.sort_unstable();
        numbers
    }
}

/// In what two agents differ that agents of one run have in common.
fn difference(first: &AgentRecord, other: &AgentRecord) -> Difference {
    let facts = |agent: &AgentRecord| {
        let negotiated = &agent.negotiated;
        let is_encrypted = negotiated.tls.is_some();
        [
            ("the protocol", negotiated.protocol.name.to_owned()),
            (
                "requests in flight per connection",
                negotiated.depth.to_string(),
            ),
            (
                "encryption",
                if is_encrypted { "TLS" } else { "clear text" }.to_owned(),
            ),
        ]
    };
    let mut pairs = facts(first).into_iter().zip(facts(other));
    let ((what, ours), (_, theirs)) = pairs.find(|(ours, theirs)| ours != theirs)?;
    Some((what.to_owned(), ours, theirs))
}

/// Overlap of the agents' windows, as a share of their length, from which on they are one load.
const ONE_LOAD_LEAST: f64 = 0.9;

impl Run {
    /// For which share of the window, 0 to 1, all agents measured at once: of a fleet at least, by
    /// the clocks that its agents agreed on, else by their machines' wall clocks. Absent for one
    /// agent.
    pub fn overlap(&self) -> Option<f64> {
        if self.is_plain() {
            return None;
        }
        let starts = || {
            let agents = self.agents.iter();
            agents.map(|agent| agent.clock.window_start_unix_ms)
        };
        let apart_ms = starts().max()?.saturating_sub(starts().min()?);
        let apart_ns = apart_ms.saturating_mul(1_000_000);
        let by_wall_clocks = || self.window_ns.saturating_sub(apart_ns);
        let shared_ns = self.agreed_overlap_ns().unwrap_or_else(by_wall_clocks);
        Some((shared_ns as f64 / self.window_ns.max(1) as f64).min(1.0))
    }

    /// For how long all agents measured at once in any case, by the clocks that they agreed on,
    /// nanoseconds. Absent where one agreed on none.
    pub fn agreed_overlap_ns(&self) -> Option<u64> {
        let agents = self.agents.iter();
        let clocks = agents.map(|agent| agent.fleet.as_ref()?.clock);
        let clocks: Vec<AgreedClock> = clocks.collect::<Option<_>>()?;
        let sure = || clocks.iter().map(|clock| clock.sure_ns(self.window_ns));
        let start_ns = sure().map(|(start_ns, _)| start_ns).max()?;
        let end_ns = sure().map(|(_, end_ns)| end_ns).min()?;
        let shared_ns = u64::try_from(end_ns.saturating_sub(start_ns)).unwrap_or(0);
        Some(shared_ns.min(self.window_ns))
    }

    /// Why the agents' rates may not be added up. Absent where they may, and for one agent.
    pub fn not_one_load(&self) -> Option<String> {
        let overlap = self.overlap().filter(|share| *share < ONE_LOAD_LEAST)?;
        Some(format!(
            "the windows of the {} agents overlapped by {:.0} %: they are not one load",
            self.agents.len(),
            overlap * 100.0
        ))
    }
}

/// The interval that every rate is counted in and divided by, on the clock of the process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Window {
    /// The first instant of the window.
    pub start_ns: u64,
    /// The first instant after it.
    pub end_ns: u64,
}

impl Window {
    /// The length of the window, nanoseconds.
    pub fn length_ns(&self) -> u64 {
        self.end_ns.saturating_sub(self.start_ns)
    }

    #[inline]
    pub(crate) fn contains(&self, at_ns: u64) -> bool {
        self.phase(at_ns) == Phase::Measure
    }

    #[inline]
    pub(crate) fn offset(&self, at_ns: u64) -> Option<u64> {
        self.contains(at_ns).then(|| at_ns - self.start_ns)
    }

    /// The offset of the instant of the window that is nearest to `at_ns`.
    pub(crate) fn nearest_offset(&self, at_ns: u64) -> u64 {
        at_ns
            .min(self.end_ns.saturating_sub(1))
            .saturating_sub(self.start_ns)
    }

    /// How much of `[from_ns, to_ns)` lies in the window.
    pub(crate) fn overlap_ns(&self, from_ns: u64, to_ns: u64) -> u64 {
        to_ns
            .min(self.end_ns)
            .saturating_sub(from_ns.max(self.start_ns))
    }

    #[inline]
    pub(crate) fn phase(&self, at_ns: u64) -> Phase {
        if at_ns < self.start_ns {
            Phase::Before
        } else if at_ns < self.end_ns {
            Phase::Measure
        } else {
            Phase::After
        }
    }
}
