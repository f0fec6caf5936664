//! One whole run, as stored: every report can be printed from it again.

mod agent;
mod merge;
mod overlap;
mod sound;

use brunt_load::{Amounts, Plan};
use brunt_protocols::{Protocol, Unit};
use serde::{Deserialize, Serialize};

use crate::{
    Backend, Evidence, GeneratorUse, Latencies, NameRecord, Objective, ServerCount, ServerWindow,
    SetUp, StreamRecord, WorkerRecord,
};

pub use agent::{
    AgentClock, AgentRecord, AgreedClock, FleetAgent, HostUse, LimitsChecked, LostAgent,
    Negotiated, NegotiatedTls, RunEdges, Seeds, after_ns,
};
pub use merge::MergeError;
pub use overlap::WindowOverlap;
pub use sound::UnsoundRun;

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

    /// Whether its connections carried streams and no requests.
    pub fn is_streams(&self) -> bool {
        self.plan.one_way().is_some()
    }

    /// The records of its streams.
    pub fn stream_records(&self) -> impl Iterator<Item = &StreamRecord> {
        self.workers().filter_map(|worker| worker.streams.as_ref())
    }

    /// Whether its connections were only kept open.
    pub fn is_held(&self) -> bool {
        self.plan.model.is_held()
    }

    /// Whether its connections carried units that are counted and timed: they carried no streams,
    /// and were not only kept open.
    pub fn has_units(&self) -> bool {
        !self.is_streams() && !self.is_held()
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

    /// Length of the longest drain of all agents, nanoseconds.
    pub fn drain_ns_most(&self) -> u64 {
        let agents = self.agents.iter();
        let drains = agents.filter_map(|agent| agent.clock.drain_ns());
        drains.max().unwrap_or(0)
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

    /// The same of the bytes that the server sent on streams.
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
