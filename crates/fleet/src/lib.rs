//! Several agents as one load: what they and their coordinator say to each other, how their clocks
//! agree, and the way there over NATS.
//!
//! The coordinator and the agent are state machines ([`Coordinator`], [`Agent`]) without a socket,
//! a clock or a thread: messages and the time in, messages and events out. Messages may be lost, be
//! late or come twice. Each side repeats what it has to say until the other one's state shows that
//! it was heard. [`Fleet`] and [`join`] run them over a broker, core NATS, on threads that no
//! worker has.
//!
//! The commands of a fleet are [`Gathered`], which has agents make rounds of load, and [`serve`],
//! an agent at work. What they need of the program around them it gives as a [`Host`].
//!
//! Open `messages` first, then `coordinator` and `agent`, which are driven by them.

mod address;
mod agent;
mod agent_link;
mod agreement;
mod broker;
mod chunks;
mod coordinate;
mod coordinator;
mod gathered;
mod host;
mod launch;
mod member;
mod merged;
mod messages;
mod nats;
mod program;
mod working;

pub use address::{AgentId, Job, NameError, SessionId};
pub use agent::{
    AdmissionError, Agent, AgentError, AgentEvent, AllowedTarget, AllowedTargetError, admit,
};
pub use agent_link::{AgentLink, join};
pub use agreement::{Agreed, ClockAgreement, ClockExchange};
pub use broker::{Broker, BrokerError, Credentials, CredentialsError};
pub use chunks::{Assembly, CHUNK_BYTES_MAX, Chunk, ChunkError, Chunks};
pub use coordinate::{Action, Fleet, Overseer};
pub use coordinator::{AgentResult, Coordinator, FleetError, Outcome, Settings, Stage, Timing};
pub use gathered::Gathered;
pub use host::{AgentHost, Board, Generators, Host};
pub use launch::{NamedBroker, Task};
pub use member::Member;
pub use merged::merged;
pub use messages::{
    Counts, DecodeError, FromAgent, Hello, MESSAGE_BYTES_MAX, Phase, Pong, Start, Status, Stop,
    ToAgent, Version,
};
pub use program::{Assignment, Program, ProgramError, ScriptText, SessionsText};
pub use working::{Service, serve};
