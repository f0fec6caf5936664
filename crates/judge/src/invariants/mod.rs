//! The invariants of a run: a table of checks, each with what must hold and what was found.
//!
//! A check never panics, whatever a stored run says, and never refuses a run whose figures are
//! right: where the run cannot tell, it says `NotApplicable` and why.

mod fleet;
mod impossible;
mod load;
mod resources;
#[cfg(test)]
pub(crate) mod sample;
mod sums;
#[cfg(test)]
mod tests;
mod windows;

use brunt_record::Run;
use serde::{Deserialize, Serialize};

use crate::facts::Facts;

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
pub(crate) enum Scope {
    /// All agents together: sums, and histograms that all share.
    Run,
    /// Each agent: its clock, its machine, its share of the load.
    Agent,
}

/// The name of an invariant, what it is checked on, and the check.
type Invariant = (&'static str, Scope, fn(&Facts<'_>) -> Checked);

/// All invariants that are checked on every run, each with what must hold.
pub(crate) const INVARIANTS: &[Invariant] = &[
    // One monotonic clock orders every instant; the wall clock is only a label.
    ("W1", Scope::Agent, windows::one_clock),
    // Set-up, warm-up, measure and drain follow each other; rates count measure alone.
    ("W2", Scope::Agent, windows::phases_in_order),
    // The workers lived one common window, to 1 %.
    ("W4", Scope::Agent, windows::common_window),
    // The rate is the sum of the workers' rates, to 1 %; counts and bytes exactly.
    ("W5", Scope::Run, sums::workers_add_up),
    // Every request issued was recorded, failed or censored, exactly.
    ("W6", Scope::Agent, |facts| sums::hold("W6", facts)),
    // The phases add up to the process's time, to 10 ms.
    ("W7", Scope::Agent, windows::all_time_reported),
    // The window and the drain end on time.
    ("W8", Scope::Agent, windows::ends_on_time),
    // The agents have all workers of the plan that they share out, each once.
    ("F2", Scope::Run, fleet::parts_are_whole),
    // The agents of a fleet had one window, to 1 % at worst, by clocks that agree.
    ("F4", Scope::Run, fleet::windows_are_one),
    // What each agent of a fleet measured holds by itself.
    ("F5", Scope::Run, fleet::agents_hold),
    // At least 99 % of the connections asked for were open or, where the server closes or refuses
    // them, being opened, on average.
    ("L1", Scope::Agent, load::connections_held),
    // Planned arrivals were sent, skipped or left, exactly, and are those of the schedule.
    ("L2", Scope::Run, load::plan_accounted),
    // What never ended counts as at least the time it was given. Where requests count from their
    // send, those of warm-up that outlasted the window are among them.
    ("L5", Scope::Run, |facts| sums::hold("L5", facts)),
    // An open loop above capacity is said to be overloaded.
    ("L6", Scope::Run, load::overload_reported),
    // A time-out is one event of one request, never early, and no latency exceeds it.
    ("L7", Scope::Run, load::timeouts_once),
    // The histograms hold what all workers recorded.
    ("A4", Scope::Run, |facts| sums::hold("A4", facts)),
    // Successes, error replies and failures are counted apart.
    ("A5", Scope::Run, |facts| sums::hold("A5", facts)),
    // The parts of a response time add up to it, and brunt's own share is among them.
    ("S1", Scope::Run, |facts| sums::hold("S1", facts)),
    // Time to first byte and of transfer make the service time; connecting comes on top.
    ("S2", Scope::Run, |facts| sums::hold("S2", facts)),
    // Rate times service time is the number of requests in flight (Little).
    ("I1", Scope::Run, impossible::little),
    // No latency exceeds the time from the first request to the end of drain.
    ("I2", Scope::Run, impossible::latency_within_run),
    // No reply is faster than the network's round trip.
    ("I3", Scope::Run, impossible::latency_over_round_trip),
    // Bytes received are those of replies, discarded ones and protocol overhead, exactly.
    ("I4", Scope::Run, impossible::bytes_explained),
    // The kernel counted the same bytes.
    ("I5", Scope::Run, impossible::kernel_agrees),
    // Payload fits the link.
    ("I6", Scope::Agent, resources::payload_fits),
    // CPU time is neither more than there was nor less than a reply needs.
    ("I7", Scope::Agent, impossible::cpu_possible),
    // The server counted what was answered, and at most twice what was sent.
    ("I8", Scope::Run, impossible::server_agrees),
    // Bytes of streams that the peer's kernel acknowledged were sent, and read by the receiver, all
    // of them where both sides ended; what it sent was received.
    ("T1", Scope::Run, impossible::acknowledged_was_read),
    // Memory grows with connections plus workers, not with their product.
    ("R1", Scope::Agent, resources::memory_within_budget),
    // No more workers than usable CPUs, unless forced.
    ("R2", Scope::Agent, resources::workers_fit),
    // The limits checked before the run suffice.
    ("R3", Scope::Agent, resources::limits_suffice),
];

/// Checks every invariant, in the order of [`INVARIANTS`]. [`crate::Judged`] has the rest of what
/// follows from a run.
pub fn check(run: &Run) -> Vec<Finding> {
    check_facts(&Facts::of(run))
}

/// Checks every invariant on facts that are at hand: those of all agents.
pub(crate) fn check_facts(facts: &Facts<'_>) -> Vec<Finding> {
    let all = std::slice::from_ref(facts);
    let of_agents: Vec<Facts<'_>> = if facts.run.is_plain() {
        Vec::new()
    } else {
        Facts::of_agents(facts.run).collect()
    };
    let finding = |&(id, scope, check): &Invariant| {
        let is_of_agents = scope == Scope::Agent && !of_agents.is_empty();
        let checked = if is_of_agents { &of_agents } else { all };
        let outcomes = checked.iter().map(|facts| match check(facts) {
            Ok(outcome) | Err(outcome) => outcome,
        });
        let CheckOutcome { status, detail } = CheckOutcome::worst(outcomes.collect());
        Finding { id, status, detail }
    };
    INVARIANTS.iter().map(finding).collect()
}

/// Whether the figures may be printed: no invariant is broken.
pub fn is_valid(findings: &[Finding]) -> bool {
    findings
        .iter()
        .all(|finding| finding.status != InvariantStatus::Broken)
}

/// Problems spelt out; of the rest only the number is given.
const PROBLEMS_SHOWN: usize = 3;

/// How an invariant stands, with its inputs in words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CheckOutcome {
    pub(super) status: InvariantStatus,
    pub(super) detail: String,
}

/// What a check comes to; `Err` where something ended it early.
pub(crate) type Checked = Result<CheckOutcome, CheckOutcome>;

impl CheckOutcome {
    fn new(status: InvariantStatus, detail: impl Into<String>) -> Self {
        let detail = detail.into();
        Self { status, detail }
    }

    pub(super) fn held(detail: impl Into<String>) -> Self {
        Self::new(InvariantStatus::Held, detail)
    }

    pub(super) fn flagged(detail: impl Into<String>) -> Self {
        Self::new(InvariantStatus::Flagged, detail)
    }

    pub(super) fn broken(detail: impl Into<String>) -> Self {
        Self::new(InvariantStatus::Broken, detail)
    }

    pub(super) fn not_applicable(detail: impl Into<String>) -> Self {
        Self::new(InvariantStatus::NotApplicable, detail)
    }

    pub(super) fn held_or_flagged(is_flagged: bool, detail: impl Into<String>) -> Self {
        if is_flagged {
            Self::flagged(detail)
        } else {
            Self::held(detail)
        }
    }

    /// What the same check came to on each of several agents: it stands as on the one where it
    /// stands worst, and the detail is of those.
    pub(super) fn worst(mut outcomes: Vec<Self>) -> Self {
        if outcomes.len() == 1 {
            return outcomes.remove(0);
        }
        let badness = |status: &InvariantStatus| match status {
            InvariantStatus::NotApplicable => 0,
            InvariantStatus::Held => 1,
            InvariantStatus::Flagged => 2,
            InvariantStatus::Broken => 3,
        };
        let statuses = outcomes.iter().map(|outcome| outcome.status);
        let worst = statuses.max_by_key(badness);
        let status = worst.unwrap_or(InvariantStatus::NotApplicable);
        let numbered = (1..).zip(&outcomes);
        let of_worst = numbered.filter(|(_, outcome)| outcome.status == status);
        let words = of_worst.map(|(agent, outcome)| format!("agent {agent}: {}", outcome.detail));
        Self::new(status, first_of(&words.collect::<Vec<_>>()))
    }
}

/// The first of these, and how many more there are.
fn first_of(words: &[String]) -> String {
    let shown = words[..words.len().min(PROBLEMS_SHOWN)].join("; ");
    match words.len().saturating_sub(PROBLEMS_SHOWN) {
        0 => shown,
        more => format!("{shown}; and {more} more"),
    }
}

/// An invariant that says nothing about this run, for the reason in `words`, unless `applies`.
pub(super) fn only_if(applies: bool, words: &str) -> Result<(), CheckOutcome> {
    known(applies.then_some(()), words)
}

/// The value; or an invariant that says nothing about this run, for the reason in `words`.
pub(super) fn known<T>(value: Option<T>, words: &str) -> Result<T, CheckOutcome> {
    value.ok_or_else(|| CheckOutcome::not_applicable(words))
}

/// An invariant that is broken, as `words` say, unless it `holds`.
pub(super) fn must(holds: bool, words: &str) -> Result<(), CheckOutcome> {
    let broken = || CheckOutcome::broken(words);
    holds.then_some(()).ok_or_else(broken)
}

/// The problems found by a check that looks at many things.
#[derive(Debug, Default)]
pub(super) struct Problems(Vec<String>);

impl Problems {
    /// Notes the problem in `words` unless `holds`.
    pub(super) fn expect(&mut self, holds: bool, words: impl FnOnce() -> String) {
        if !holds {
            self.0.push(words());
        }
    }

    /// `Broken` with the problems, where there are any.
    pub(super) fn none(self) -> Result<(), CheckOutcome> {
        if self.0.is_empty() {
            Ok(())
        } else {
            Err(CheckOutcome::broken(first_of(&self.0)))
        }
    }

    /// `Broken` with the problems, or `Held` with `detail`.
    pub(super) fn or_held(self, detail: impl Into<String>) -> Checked {
        self.none().map(|()| CheckOutcome::held(detail))
    }
}
