//! The messages: a struct for each, versioned, bounded, as JSON.

use brunt_load::Part;
use brunt_record::Run;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::address::SessionId;
use crate::chunks::Chunk;

/// Largest message that is read: what a broker takes unless it is told otherwise.
pub const MESSAGE_BYTES_MAX: usize = 1 << 20;
/// Most bytes of a name or a reason.
const TEXT_BYTES_MAX: usize = 4 << 10;
/// Largest count: sums of those of all agents fit into 64 bits.
const COUNT_MAX: u64 = 1 << 48;

/// What both sides must have in common.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Version {
    /// Of these messages.
    pub protocol: u32,
    /// Of stored runs.
    pub format: u32,
    /// Of brunt.
    pub brunt: String,
}

impl Version {
    /// The messages that this version speaks.
    pub const PROTOCOL: u32 = 4;

    /// What this process speaks.
    pub(crate) fn own() -> Self {
        Self {
            protocol: Self::PROTOCOL,
            format: Run::FORMAT,
            brunt: env!("CARGO_PKG_VERSION").to_owned(),
        }
    }
}

/// The first message of an agent, repeated until it is answered.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hello {
    /// What it speaks.
    pub version: Version,
    /// What people call it: the name of its machine, as a rule.
    pub name: String,
    /// CPUs that it may use.
    pub usable_cpus: u32,
}

/// A message as it travels.
#[derive(Serialize, Deserialize)]
struct Framed<S, M> {
    /// The session that it belongs to.
    session: S,
    #[serde(flatten)]
    message: M,
}

/// From the coordinator.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum ToAgent {
    /// It is not needed, or does not fit.
    Refused {
        /// Why.
        reason: String,
    },
    /// A sign of life and a reading of the coordinator's clock; to be answered at once.
    Ping {
        /// Counts up.
        sequence: u64,
        /// The coordinator's clock, nanoseconds.
        sent_ns: u64,
    },
    /// A chunk of a round's plan, and what the agent does of it.
    Plan {
        /// The number of the round, from 1.
        round: u32,
        /// The workers that it has.
        part: Part,
        /// A part of the plan's bytes.
        chunk: Chunk,
    },
    /// When the load begins.
    Start(Start),
    /// When the load ends, before its time.
    Stop(Stop),
    /// A chunk of a round's result is wanted.
    Fetch {
        /// The number of the round.
        round: u32,
        /// Its number, from 0.
        number: u32,
    },
    /// There are no more rounds: the result is there, or is not wanted. The agent may leave.
    Done,
}

/// When the load begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Start {
    /// The number of the round.
    pub round: u32,
    /// On the agent's own clock, nanoseconds.
    pub load_ns: u64,
}

/// The end of a load before its time, or of one by count.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stop {
    /// The number of the round; 0 before there was one.
    pub round: u32,
    /// Length of the window, the same for all agents, nanoseconds; absent: nothing is measured.
    pub window_ns: Option<u64>,
    /// Whether replies are not waited for.
    pub is_hurried: bool,
    /// Why.
    pub reason: String,
}

/// From an agent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum FromAgent {
    /// It is there.
    Hello(Hello),
    /// The answer to a ping.
    Pong(Pong),
    /// A chunk of a round's result.
    Result {
        /// The number of the round.
        round: u32,
        /// A part of the result's bytes.
        chunk: Chunk,
    },
}

/// The answer to a ping: readings of both clocks, and how the agent stands.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pong {
    /// Of the ping.
    pub sequence: u64,
    /// The coordinator's clock, as it said, nanoseconds.
    pub sent_ns: u64,
    /// The agent's clock when the ping came, nanoseconds.
    pub received_ns: u64,
    /// The agent's clock when this was sent, nanoseconds.
    pub replied_ns: u64,
    /// How the agent stands.
    pub status: Status,
}

/// How an agent stands.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Status {
    /// The number of the round that this is about; 0 before there was one.
    pub round: u32,
    /// What it does.
    pub phase: Phase,
    /// Chunks of the plan that it has.
    pub plan_chunks: u32,
    /// The start that it knows, on its own clock, nanoseconds.
    pub start_ns: Option<u64>,
    /// The end of the load before its time that it knows of.
    pub stop: Option<Stop>,
    /// What it counted so far.
    pub counts: Counts,
}

/// What an agent does.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Phase {
    /// It waits for a plan.
    #[default]
    Idle,
    /// It looks for the server and opens connections.
    SetUp,
    /// It waits for the start.
    Ready,
    /// Load that is not measured yet.
    WarmUp,
    /// The window.
    Measure,
    /// It waits for what was sent.
    Drain,
    /// Its share of a number of requests is done. It waits for the end of the window, which is that
    /// of the agent that takes longest.
    Done {
        /// From the start of the window until then, nanoseconds.
        window_ns: u64,
    },
    /// It has a result.
    Finished {
        /// Chunks of it.
        chunks: u32,
    },
    /// It has no result.
    Failed {
        /// Why.
        reason: String,
    },
}

/// What an agent counted so far, in all phases.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts {
    /// Responses with a status below 400.
    pub successes: u64,
    /// Responses with a status of 400 and more.
    pub errors: u64,
    /// Failures of any scope.
    pub failures: u64,
    /// Bytes received.
    pub bytes_received: u64,
    /// Bytes handed to the kernel.
    pub bytes_sent: u64,
    /// Open connections now.
    pub live: u64,
    /// Planned arrivals that wait for a connection now.
    pub waiting: u64,
}

/// Why bytes are no message.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum DecodeError {
    /// It is over the limit.
    #[error("a message of {0} bytes, where {MESSAGE_BYTES_MAX} are the most")]
    TooLarge(usize),
    /// It is not what it should be.
    #[error("not a message of this version: {0}")]
    Malformed(#[from] serde_json::Error),
    /// A text in it is over the limit.
    #[error("a text of {0} bytes in a message, where {TEXT_BYTES_MAX} are the most")]
    LongText(usize),
    /// A count in it is over the limit.
    #[error("a count of {0} in a message, where {COUNT_MAX} is the most")]
    LargeCount(u64),
}

impl ToAgent {
    /// The message as bytes.
    pub fn encode(&self, session: &SessionId) -> Vec<u8> {
        encode(session, self)
    }

    /// The message in these bytes, and its session.
    ///
    /// # Errors
    ///
    /// They are none.
    pub fn decode(bytes: &[u8]) -> Result<(SessionId, Self), DecodeError> {
        let Framed { session, message }: Framed<SessionId, _> = decode(bytes)?;
        bounded(&session.0)?;
        match &message {
            Self::Refused { reason } | Self::Stop(Stop { reason, .. }) => bounded(reason)?,
            _ => {}
        }
        Ok((session, message))
    }
}

impl FromAgent {
    /// The message as bytes. An agent that introduces itself has no session yet.
    pub fn encode(&self, session: Option<&SessionId>) -> Vec<u8> {
        encode(session, self)
    }

    /// The message in these bytes, and its session.
    ///
    /// # Errors
    ///
    /// They are none.
    pub fn decode(bytes: &[u8]) -> Result<(Option<SessionId>, Self), DecodeError> {
        let Framed { session, message }: Framed<Option<SessionId>, _> = decode(bytes)?;
        session.iter().try_for_each(|session| bounded(&session.0))?;
        match &message {
            Self::Hello(hello) => {
                bounded(&hello.name)?;
                bounded(&hello.version.brunt)?;
            }
            Self::Pong(pong) => {
                match &pong.status.phase {
                    Phase::Failed { reason } => bounded(reason)?,
                    &Phase::Done { window_ns } => countable(window_ns)?,
                    _ => {}
                }
                if let Some(stop) = &pong.status.stop {
                    bounded(&stop.reason)?;
                }
                pong.status.counts.bounded()?;
            }
            Self::Result { .. } => {}
        }
        Ok((session, message))
    }
}

impl Counts {
    fn bounded(&self) -> Result<(), DecodeError> {
        let all = [
            self.successes,
            self.errors,
            self.failures,
            self.bytes_received,
            self.bytes_sent,
            self.live,
            self.waiting,
        ];
        all.into_iter().try_for_each(countable)
    }
}

fn countable(count: u64) -> Result<(), DecodeError> {
    match count {
        0..=COUNT_MAX => Ok(()),
        count => Err(DecodeError::LargeCount(count)),
    }
}

/// Cuts a text to what a message may hold.
pub(crate) fn shortened(text: &str) -> String {
    let mut end = text.len().min(TEXT_BYTES_MAX);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text[..end].to_owned()
}

fn bounded(text: &str) -> Result<(), DecodeError> {
    match text.len() {
        0..=TEXT_BYTES_MAX => Ok(()),
        bytes => Err(DecodeError::LongText(bytes)),
    }
}

fn encode(session: impl Serialize, message: impl Serialize) -> Vec<u8> {
    // Numbers, texts and lists of them: there is nothing that JSON cannot hold.
    serde_json::to_vec(&Framed { session, message }).unwrap_or_default()
}

fn decode<'a, T: Deserialize<'a>>(bytes: &'a [u8]) -> Result<T, DecodeError> {
    if bytes.len() > MESSAGE_BYTES_MAX {
        return Err(DecodeError::TooLarge(bytes.len()));
    }
    Ok(serde_json::from_slice(bytes)?)
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU32;

    use super::*;

    fn pong(status: Status) -> FromAgent {
        FromAgent::Pong(Pong {
            sequence: 1,
            sent_ns: 2,
            received_ns: 3,
            replied_ns: 4,
            status,
        })
    }

    #[test]
    fn messages_are_read_as_they_were_written() {
        let session = SessionId::fresh();
        let chunk = crate::chunks::Chunks::new(vec![7; 9], 4)
            .chunk(1)
            .expect("there are three");
        let part = Part::new(3, NonZeroU32::MIN);
        let stop = Stop {
            round: 1,
            window_ns: Some(7),
            is_hurried: false,
            reason: "on purpose".to_owned(),
        };
        for message in [
            ToAgent::Refused {
                reason: "full".to_owned(),
            },
            ToAgent::Ping {
                sequence: u64::MAX,
                sent_ns: 1,
            },
            ToAgent::Plan {
                round: 2,
                part,
                chunk: chunk.clone(),
            },
            ToAgent::Start(Start {
                round: 1,
                load_ns: 5,
            }),
            ToAgent::Stop(stop.clone()),
            ToAgent::Fetch {
                round: 1,
                number: 3,
            },
            ToAgent::Done,
        ] {
            let read = ToAgent::decode(&message.encode(&session)).expect("a message");
            assert_eq!(read, (session.clone(), message));
        }
        let finished = Status {
            phase: Phase::Finished { chunks: 2 },
            stop: Some(stop),
            ..Status::default()
        };
        for message in [pong(finished), FromAgent::Result { round: 1, chunk }] {
            for session in [None, Some(&session)] {
                let read = FromAgent::decode(&message.encode(session)).expect("a message");
                assert_eq!(read, (session.cloned(), message.clone()));
            }
        }
        // An agent of a version before is refused by name, not overheard.
        let before = br#"{"kind":"hello","version":{"protocol":3,"format":4,"brunt":"0"},
                          "name":"n","usable_cpus":1}"#;
        assert!(matches!(
            FromAgent::decode(before),
            Ok((None, FromAgent::Hello(_)))
        ));
    }

    #[test]
    fn what_is_no_message_is_refused() {
        for wrong in [&b""[..], b"{}", b"[]", b"{\"kind\":\"shell\"}", b"\xff"] {
            assert!(ToAgent::decode(wrong).is_err());
            assert!(FromAgent::decode(wrong).is_err());
        }
        let large = vec![b' '; MESSAGE_BYTES_MAX + 1];
        assert!(matches!(
            ToAgent::decode(&large),
            Err(DecodeError::TooLarge(_))
        ));
        let long = ToAgent::Refused {
            reason: "x".repeat(TEXT_BYTES_MAX + 1),
        };
        assert!(matches!(
            ToAgent::decode(&long.encode(&SessionId::fresh())),
            Err(DecodeError::LongText(_))
        ));
        let large = COUNT_MAX + 1;
        let counted = Status {
            counts: Counts {
                bytes_sent: large,
                ..Counts::default()
            },
            ..Status::default()
        };
        let done = Status {
            phase: Phase::Done { window_ns: large },
            ..Status::default()
        };
        for status in [counted, done] {
            let read = FromAgent::decode(&pong(status).encode(None));
            assert!(matches!(read, Err(DecodeError::LargeCount(_))));
        }
        assert_eq!(shortened(&"ä".repeat(TEXT_BYTES_MAX)).len(), TEXT_BYTES_MAX);
    }
}
