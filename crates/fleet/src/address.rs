//! Who speaks to whom: names of jobs and of agents, and the subjects of NATS made of them.

use std::hash::{BuildHasher, RandomState};
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use thiserror::Error;

/// Most characters of a name.
const NAME_CHARS_MAX: usize = 64;
/// What all subjects begin with.
const ROOT: &str = "brunt";

/// Why a name cannot be that of a job or an agent.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("`{0}` is not a name: use 1 to 64 letters, digits, - and _")]
pub struct NameError(String);

/// The name of a job: agents serve the coordinator that names the same one.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Job(String);

/// Tells an agent from all others.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AgentId(String);

/// Tells what one coordinator does with its agents from all else, under the same job, too.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct SessionId(pub(crate) String);

impl Job {
    /// A name that nobody else has.
    pub fn fresh() -> Self {
        Self(random())
    }

    /// The subject on which the coordinator speaks to this agent. Each agent has two subjects of
    /// its own, so that a broker can keep one agent from speaking for another.
    pub fn to_agent(&self, agent: &AgentId) -> String {
        format!("{ROOT}.{}.to.{}", self.0, agent.0)
    }

    /// The subject on which this agent speaks to the coordinator.
    pub fn from_agent(&self, agent: &AgentId) -> String {
        format!("{ROOT}.{}.from.{}", self.0, agent.0)
    }

    /// The subject that matches all messages of agents to the coordinator.
    pub fn all_from_agents(&self) -> String {
        format!("{ROOT}.{}.from.*", self.0)
    }

    /// The agent that speaks on this subject; absent where none of this job does.
    pub fn agent_on(&self, subject: &str) -> Option<AgentId> {
        let id = subject.strip_prefix(&format!("{ROOT}.{}.from.", self.0))?;
        id.parse().ok()
    }

    /// The name.
    pub fn name(&self) -> &str {
        &self.0
    }
}

impl AgentId {
    /// An id that nobody else has.
    pub fn fresh() -> Self {
        Self(random())
    }
}

impl SessionId {
    /// An id that nobody else has.
    pub fn fresh() -> Self {
        Self(random())
    }
}

fn checked(name: &str) -> Result<String, NameError> {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
    let is_name = (1..=NAME_CHARS_MAX).contains(&name.len()) && name.bytes().all(is_plain);
    if is_name {
        Ok(name.to_owned())
    } else {
        Err(NameError(name.chars().take(NAME_CHARS_MAX).collect()))
    }
}

/// 128 random bits of the operating system.
fn random() -> String {
    let half = |number: u8| RandomState::new().hash_one(number);
    format!("{:016x}{:016x}", half(0), half(1))
}

impl FromStr for Job {
    type Err = NameError;

    fn from_str(name: &str) -> Result<Self, NameError> {
        checked(name).map(Self)
    }
}

impl FromStr for AgentId {
    type Err = NameError;

    fn from_str(name: &str) -> Result<Self, NameError> {
        checked(name).map(Self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_agents_of_the_job_are_known_by_their_subjects() {
        let (job, agent): (Job, _) = ("night-7".parse().expect("a name"), AgentId::fresh());
        let known = |subject: &str| job.agent_on(subject);
        assert_eq!(known(&job.from_agent(&agent)), Some(agent.clone()));
        assert_eq!(known(&job.to_agent(&agent)), None);
        assert_eq!(known(&Job::fresh().from_agent(&agent)), None);
        for foreign in [
            "",
            "brunt",
            "brunt.night-7.from",
            "brunt.night-7.from.",
            "brunt.night-7.from.b.c",
            "brunt.night-7.over.b",
            "other.night-7.from.b",
            "brunt.night-7.from.*",
            "brunt..from.c",
        ] {
            assert_eq!(known(foreign), None, "{foreign}");
        }
    }

    #[test]
    fn names_have_no_wildcards() {
        let long = "x".repeat(65);
        for wrong in ["", "a.b", "*", ">", "a b", "ä", &long] {
            assert!(wrong.parse::<Job>().is_err(), "{wrong}");
        }
        assert_ne!(AgentId::fresh(), AgentId::fresh());
    }
}
