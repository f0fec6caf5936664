//! What must be true of a run before anything is read off it: that its parts belong together.

use brunt_load::Amounts;
use thiserror::Error;

use super::{AgentRecord, Run};

/// Why the parts of a stored run do not belong together.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum UnsoundRun {
    /// There is no agent.
    #[error("it has no agent")]
    NoAgent,
    /// Two agents have one id.
    #[error("two agents have the id `{0}`")]
    SameAgent(String),
    /// The agents' shares are not the plan's amounts.
    #[error("the shares of its agents do not make the amounts of its plan")]
    Amounts,
    /// The agents have other workers than those of a part of the plan.
    #[error("its workers are no part of the plan that it is said to be a part of")]
    Part,
    /// The agents did not do the same.
    #[error("its agents differ in {0}")]
    Differs(&'static str),
}

impl Run {
    /// Checks that its parts belong together, as they do in any run that was made or merged.
    ///
    /// # Errors
    ///
    /// They do not.
    pub fn check_sound(&self) -> Result<(), UnsoundRun> {
        let (first, others) = self.agents.split_first().ok_or(UnsoundRun::NoAgent)?;
        let mut ids: Vec<&str> = self.agents.iter().map(|agent| agent.id.as_str()).collect();
        ids.sort_unstable();
        if let Some(pair) = ids.windows(2).find(|pair| pair[0] == pair[1]) {
            return Err(UnsoundRun::SameAgent(pair[0].to_owned()));
        }
        let mut sum = first.share.clone();
        for agent in others {
            sum.add(&agent.share);
            if let Some((what, _, _)) = difference(first, agent) {
                return Err(UnsoundRun::Differs(what));
            }
        }
        if !sum.is_about(&self.plan.amounts()) {
            return Err(UnsoundRun::Amounts);
        }
        match &self.part_of {
            Some(whole) if !self.is_part_of(whole) => Err(UnsoundRun::Part),
            _ => Ok(()),
        }
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

/// In what two agents differ that agents of one run have in common, with both values.
pub(super) fn difference(
    first: &AgentRecord,
    other: &AgentRecord,
) -> Option<(&'static str, String, String)> {
    let (ours, theirs) = (&first.negotiated, &other.negotiated);
    if ours.protocol != theirs.protocol {
        let names = [ours, theirs].map(|it| it.protocol.name.to_owned());
        let [ours, theirs] = names;
        return Some(("the protocol", ours, theirs));
    }
    if ours.depth != theirs.depth {
        let what = "requests in flight per connection";
        return Some((what, ours.depth.to_string(), theirs.depth.to_string()));
    }
    if ours.tls.is_some() != theirs.tls.is_some() {
        let name = |tls: bool| if tls { "TLS" } else { "clear text" }.to_owned();
        let (ours, theirs) = (ours.tls.is_some(), theirs.tls.is_some());
        return Some(("encryption", name(ours), name(theirs)));
    }
    None
}
