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
#[serde(try_from = "String", into = "String")]
pub struct SessionId(String);

/// The way of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// From the coordinator to an agent.
    ToAgent,
    /// From an agent to the coordinator.
    FromAgent,
}

/// A subject of NATS, taken apart. Each agent has two subjects of its own, so that a broker can
/// keep one agent from speaking for another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Topic {
    /// The job.
    pub job: Job,
    /// The way.
    pub direction: Direction,
    /// The agent that speaks or is spoken to.
    pub agent: AgentId,
}

impl Job {
    /// A name that nobody else has.
    pub fn fresh() -> Self {
        Self(random())
    }

    /// The subject that matches all messages of agents to the coordinator.
    pub fn all_from_agents(&self) -> String {
        format!("{ROOT}.{}.from.*", self.0)
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

    /// The id as text.
    pub fn name(&self) -> &str {
        &self.0
    }
}

impl SessionId {
    /// An id that nobody else has.
    pub fn fresh() -> Self {
        Self(random())
    }
}

impl Topic {
    /// The subject.
    pub fn subject(&self) -> String {
        let way = match self.direction {
            Direction::ToAgent => "to",
            Direction::FromAgent => "from",
        };
        format!("{ROOT}.{}.{way}.{}", self.job.0, self.agent.0)
    }

    /// Takes a subject apart; absent where it is none of ours.
    pub fn parse(subject: &str) -> Option<Self> {
        let mut parts = subject.split('.');
        let is_ours = parts.next() == Some(ROOT);
        let job = parts.next()?.parse().ok()?;
        let direction = match parts.next()? {
            "to" => Direction::ToAgent,
            "from" => Direction::FromAgent,
            _ => return None,
        };
        let agent = parts.next()?.parse().ok()?;
        let is_whole = is_ours && parts.next().is_none();
        is_whole.then_some(Self {
            job,
            direction,
            agent,
        })
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

impl TryFrom<String> for SessionId {
    type Error = NameError;

    fn try_from(name: String) -> Result<Self, NameError> {
        checked(&name).map(Self)
    }
}

impl From<SessionId> for String {
    fn from(id: SessionId) -> Self {
        id.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn subjects_are_taken_apart() {
        let topic = Topic {
            job: "night-7".parse().expect("a name"),
            direction: Direction::FromAgent,
            agent: AgentId::fresh(),
        };
        assert_eq!(Topic::parse(&topic.subject()), Some(topic.clone()));
        let other_way = Topic {
            direction: Direction::ToAgent,
            ..topic
        };
        assert_eq!(Topic::parse(&other_way.subject()), Some(other_way));
        for foreign in [
            "",
            "brunt",
            "brunt.a.from",
            "brunt.a.from.b.c",
            "brunt.a.over.b",
            "other.a.from.b",
            "brunt.a b.from.c",
            "brunt.*.from.c",
            "brunt..from.c",
        ] {
            assert_eq!(Topic::parse(foreign), None, "{foreign}");
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
