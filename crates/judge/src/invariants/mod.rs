//! The invariants of a run: a table of checks, each with what must hold and what was found.
//!
//! A check never panics, whatever a stored run says, and never refuses a run whose figures are
//! right: where the run cannot tell, it says `NotApplicable` and why.

mod accounting;
mod arithmetic;
mod arrivals;
mod facts;
mod fleet;
mod impossible;
mod load;
mod outcome;
mod parts;
mod protocol;
mod resources;
#[cfg(test)]
pub(crate) mod sample;
#[cfg(test)]
pub(crate) mod sample_held;
#[cfg(test)]
pub(crate) mod sample_streams;
mod streams;
#[cfg(test)]
mod tests;
mod windows;
mod witnesses;

use brunt_record::Run;
use serde::{Deserialize, Serialize};

pub(crate) use facts::Facts;
use outcome::Outcome;

/// How an invariant stands in one run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum InvariantStatus {
    /// It holds.
    Held,
    /// It holds within its refusal limit, but not well: worth a line in the report.
    Flagged,
    /// It is broken: the run is invalid.
    Broken,
    /// It says nothing about this run; the detail says why.
    NotApplicable,
}

/// What was found of one invariant.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// Its name, such as `W4`.
    pub id: &'static str,
    /// How it stands.
    pub status: InvariantStatus,
    /// The inputs and what they gave, in words.
    pub detail: String,
}

/// What an invariant is checked on, where a run has several agents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// All agents together: sums, and histograms that all share.
    Run,
    /// Each agent: its clock, its machine, its share of the load.
    Agent,
}

/// One invariant.
pub struct Invariant {
    /// Its name, such as `W4`.
    pub id: &'static str,
    /// What it is checked on.
    pub scope: Scope,
    /// What must hold, one line.
    pub rule: &'static str,
    check: fn(&Facts<'_>) -> Outcome,
}

/// All invariants that are checked on every run.
pub const INVARIANTS: &[Invariant] = &[
    Invariant {
        id: "W1",
        scope: Scope::Agent,
        rule: "one monotonic clock orders every instant; the wall clock is only a label",
        check: windows::one_clock,
    },
    Invariant {
        id: "W2",
        scope: Scope::Agent,
        rule: "set-up, warm-up, measure and drain follow each other; rates count measure alone",
        check: windows::phases_in_order,
    },
    Invariant {
        id: "W3",
        scope: Scope::Agent,
        rule: "edges are written once",
        check: windows::edges_written_once,
    },
    Invariant {
        id: "W4",
        scope: Scope::Agent,
        rule: "the workers lived one common window, to 1 %",
        check: windows::common_window,
    },
    Invariant {
        id: "W5",
        scope: Scope::Run,
        rule: "the rate is the sum of the workers' rates, to 1 %; counts and bytes exactly",
        check: accounting::workers_add_up,
    },
    Invariant {
        id: "W6",
        scope: Scope::Agent,
        rule: "every request issued was recorded, failed or censored, exactly",
        check: accounting::every_request_accounted,
    },
    Invariant {
        id: "W7",
        scope: Scope::Agent,
        rule: "the phases add up to the process's time, to 10 ms",
        check: windows::all_time_reported,
    },
    Invariant {
        id: "W8",
        scope: Scope::Agent,
        rule: "the window and the drain end on time",
        check: windows::ends_on_time,
    },
    Invariant {
        id: "F1",
        scope: Scope::Run,
        rule: "the agents that share out a plan have the same one",
        check: fleet::plan_is_one,
    },
    Invariant {
        id: "F2",
        scope: Scope::Run,
        rule: "the agents have all workers of the plan that they share out, each once",
        check: fleet::parts_are_whole,
    },
    Invariant {
        id: "F3",
        scope: Scope::Run,
        rule: "each agent has its exact share of the plan's connections, requests and rates",
        check: fleet::shares_are_of_the_plan,
    },
    Invariant {
        id: "F4",
        scope: Scope::Run,
        rule: "the agents of a fleet had one window, to 1 % at worst, by clocks that agree",
        check: fleet::windows_are_one,
    },
    Invariant {
        id: "F5",
        scope: Scope::Run,
        rule: "what each agent of a fleet measured holds by itself",
        check: fleet::agents_hold,
    },
    Invariant {
        id: "F8",
        scope: Scope::Run,
        rule: "the clocks of a fleet drift by less than their bounds allow for, 0.1 %",
        check: fleet::clocks_are_steady,
    },
    Invariant {
        id: "L1",
        scope: Scope::Agent,
        rule: "at least 99 % of the connections asked for were open or, where the server closes or \
               refuses them, being opened, on average",
        check: load::connections_held,
    },
    Invariant {
        id: "L2",
        scope: Scope::Run,
        rule: "planned arrivals were sent, skipped or left, exactly, and are those of the schedule",
        check: arrivals::plan_accounted,
    },
    Invariant {
        id: "L5",
        scope: Scope::Run,
        rule: "what never ended counts as at least the time it was given",
        check: arrivals::unfinished_counted,
    },
    Invariant {
        id: "L6",
        scope: Scope::Run,
        rule: "an open loop above capacity is said to be overloaded",
        check: arrivals::overload_told,
    },
    Invariant {
        id: "L7",
        scope: Scope::Run,
        rule: "a time-out is one event of one request, never early, and no latency exceeds it",
        check: load::timeouts_once,
    },
    Invariant {
        id: "A3",
        scope: Scope::Run,
        rule: "minimum and maximum are exact values",
        check: arithmetic::extremes_exact,
    },
    Invariant {
        id: "A4",
        scope: Scope::Run,
        rule: "the histograms hold what all workers recorded",
        check: arithmetic::histograms_merged,
    },
    Invariant {
        id: "A5",
        scope: Scope::Run,
        rule: "successes, error replies and failures are counted apart",
        check: arithmetic::populations_apart,
    },
    Invariant {
        id: "S1",
        scope: Scope::Run,
        rule: "the parts of a response time add up to it, and brunt's own share is among them",
        check: parts::parts_add_up,
    },
    Invariant {
        id: "S2",
        scope: Scope::Run,
        rule: "time to first byte and of transfer make the service time; connecting comes on top",
        check: parts::service_divided,
    },
    Invariant {
        id: "P1",
        scope: Scope::Run,
        rule: "handshakes, GOAWAYs and failures are those of the protocol: over TLS a handshake \
               per connection, resumed only where allowed",
        check: protocol::protocol_fits,
    },
    Invariant {
        id: "I1",
        scope: Scope::Run,
        rule: "rate times service time is the number of requests in flight (Little)",
        check: impossible::little,
    },
    Invariant {
        id: "I2",
        scope: Scope::Run,
        rule: "no latency exceeds the time from the first request to the end of drain",
        check: impossible::latency_within_run,
    },
    Invariant {
        id: "I3",
        scope: Scope::Run,
        rule: "no reply is faster than the network's round trip",
        check: impossible::latency_over_round_trip,
    },
    Invariant {
        id: "I4",
        scope: Scope::Run,
        rule: "bytes received are those of replies, discarded ones and protocol overhead, exactly",
        check: impossible::bytes_explained,
    },
    Invariant {
        id: "I5",
        scope: Scope::Run,
        rule: "the kernel counted the same bytes",
        check: impossible::kernel_agrees,
    },
    Invariant {
        id: "I6",
        scope: Scope::Agent,
        rule: "payload fits the link",
        check: witnesses::payload_fits,
    },
    Invariant {
        id: "I7",
        scope: Scope::Agent,
        rule: "CPU time is neither more than there was nor less than a reply needs",
        check: impossible::cpu_possible,
    },
    Invariant {
        id: "I8",
        scope: Scope::Run,
        rule: "the server counted what was answered, and at most twice what was sent",
        check: witnesses::server_agrees,
    },
    Invariant {
        id: "T1",
        scope: Scope::Run,
        rule: "bytes of streams that the peer's kernel acknowledged were sent, and read by the \
               receiver, all of them where both sides ended; what it sent was received",
        check: streams::acknowledged_was_read,
    },
    Invariant {
        id: "R1",
        scope: Scope::Agent,
        rule: "memory grows with connections plus workers, not with their product",
        check: resources::memory_within_budget,
    },
    Invariant {
        id: "R2",
        scope: Scope::Agent,
        rule: "no more workers than usable CPUs, unless forced",
        check: resources::workers_fit,
    },
    Invariant {
        id: "R3",
        scope: Scope::Agent,
        rule: "the limits checked before the run suffice",
        check: resources::limits_suffice,
    },
];

/// Checks every invariant, in the order of [`INVARIANTS`]. [`crate::Judged`] has the rest of what
/// follows from a run.
pub fn check(run: &Run) -> Vec<Finding> {
    check_facts(&Facts::of(run))
}

/// The same, of facts that are at hand: those of all agents.
pub(crate) fn check_facts(facts: &Facts<'_>) -> Vec<Finding> {
    let is_plain = facts.agents.len() == 1;
    let of_agents: Vec<Facts<'_>> = match is_plain {
        true => Vec::new(),
        false => Facts::of_agents(facts.run).collect(),
    };
    INVARIANTS
        .iter()
        .map(|invariant| {
            let outcome = match invariant.scope {
                Scope::Agent if !is_plain => {
                    let outcomes = of_agents.iter().map(|agent| (invariant.check)(agent));
                    Outcome::of_agents(outcomes)
                }
                Scope::Agent | Scope::Run => (invariant.check)(facts),
            };
            Finding {
                id: invariant.id,
                status: outcome.status,
                detail: outcome.detail,
            }
        })
        .collect()
}

/// Whether the figures may be printed: no invariant is broken.
pub fn is_valid(findings: &[Finding]) -> bool {
    findings
        .iter()
        .all(|finding| finding.status != InvariantStatus::Broken)
}
