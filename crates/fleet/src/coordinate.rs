//! The coordinator over a broker: a loop on the calling thread for each round, which waits for
//! messages, signals and what is due.

use std::time::Duration;

use brunt_io::clock;
use brunt_load::Part;

use crate::address::Job;
use crate::broker::{Broker, BrokerError, Connected};
use crate::coordinator::{Coordinator, FleetError, Outcome, Settings, Stage, Timing};
use crate::member::Member;
use crate::messages::FromAgent;

/// Messages that are taken before it is looked what follows from them.
const BATCH: usize = 256;
/// What has come is read whatever is due.
const PAUSE_NS_MIN: u64 = 1_000_000;

/// What whoever asked for the load wants.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// That it goes on.
    GoOn,
    /// That it ends.
    End {
        /// Whether replies are not waited for.
        is_hurried: bool,
    },
    /// Nothing, but the agent of this name is known to be gone.
    AgentGone {
        /// Its name.
        name: String,
        /// What is known of that.
        reason: String,
    },
}

/// Whoever asked for the load.
pub trait Overseer {
    /// Looks at how far it has come, ten times a second or more often. `is_connected`: there is a
    /// way to the broker now.
    fn look(&mut self, coordinator: &Coordinator, is_connected: bool) -> Action;
}

/// Agents that are all there, and make one round after the other. Dropping it lets them go.
pub struct Fleet {
    connected: Connected,
    job: Job,
    coordinator: Coordinator,
}

impl Fleet {
    /// Gathers the agents of a job, and agrees with them on their clocks.
    ///
    /// # Errors
    ///
    /// They are not all there, or there is no way to them.
    pub fn gather(
        broker: &Broker,
        job: &Job,
        settings: Settings,
        overseer: &mut dyn Overseer,
    ) -> Result<Self, FleetError> {
        let nobody = Coordinator::new(settings.clone(), clock::now_ns());
        let is_over = || matches!(overseer.look(&nobody, true), Action::End { .. });
        let subject = job.all_from_agents();
        let connected = broker.connect("brunt coordinator", subject, None, is_over)?;
        let connected = connected.ok_or(FleetError::Interrupted)?;
        let settings = Settings {
            chunk_bytes: settings.chunk_bytes.min(connected.chunk_bytes()),
            ..settings
        };
        let mut fleet = Self {
            connected,
            job: job.clone(),
            coordinator: Coordinator::new(settings, clock::now_ns()),
        };
        match fleet.until_idle(overseer)? {
            Stage::Gathered => Ok(fleet),
            _ => {
                let error = fleet.coordinator.outcome().err();
                Err(error.unwrap_or(FleetError::Interrupted))
            }
        }
    }

    /// The agents, in the order of their parts.
    pub fn members(&self) -> &[Member] {
        self.coordinator.members()
    }

    /// Makes a round. After one without an outcome, or with lost agents, there is no other.
    ///
    /// # Errors
    ///
    /// Nothing was measured.
    pub fn round(
        &mut self,
        plan: Vec<u8>,
        parts: &[Part],
        timing: Timing,
        overseer: &mut dyn Overseer,
    ) -> Result<Outcome, FleetError> {
        self.coordinator
            .begin_round(clock::now_ns(), plan, parts, timing);
        self.until_idle(overseer)?;
        self.coordinator.outcome()
    }

    /// Lets the agents go because what is to be done cannot be done by them, for this reason.
    pub fn dismiss(&mut self, reason: &str) {
        self.coordinator.dismiss(reason);
    }

    /// Goes on until there is a result, or there will be none, or a plan is wanted.
    fn until_idle(&mut self, overseer: &mut dyn Overseer) -> Result<Stage, BrokerError> {
        let Self {
            connected,
            job,
            coordinator,
        } = self;
        loop {
            coordinator.look(clock::now_ns());
            match overseer.look(coordinator, connected.is_up()) {
                Action::GoOn => {}
                Action::End { is_hurried } => coordinator.interrupt(clock::now_ns(), is_hurried),
                Action::AgentGone { name, reason } => {
                    coordinator.is_gone(clock::now_ns(), &name, &reason)
                }
            }
            send_all(coordinator, connected, job);
            let stage = coordinator.stage();
            if let Stage::Gathered | Stage::Collected | Stage::Over = stage {
                return Ok(stage);
            }
            if let Some(refusal) = connected.refusal.take() {
                return Err(BrokerError::Permission(refusal));
            }
            let now_ns = clock::now_ns();
            let pause_ns = coordinator.due_ns(now_ns).saturating_sub(now_ns);
            let mut next = connected.next(Duration::from_nanos(pause_ns.max(PAUSE_NS_MIN)));
            for _ in 0..BATCH {
                let Some(message) = next else {
                    break;
                };
                let agent = job.agent_on(&message.subject);
                let read = FromAgent::decode(&message.payload);
                // What is not a message of an agent of this job is none of ours.
                if let (Some(agent), Ok((session, read))) = (agent, read) {
                    coordinator.receive(clock::now_ns(), &agent, session.as_ref(), read);
                }
                next = connected.next(Duration::ZERO);
            }
        }
    }
}

impl Drop for Fleet {
    fn drop(&mut self) {
        self.coordinator.end();
        send_all(&mut self.coordinator, &mut self.connected, &self.job);
        self.connected.flush();
    }
}

fn send_all(coordinator: &mut Coordinator, connected: &mut Connected, job: &Job) {
    while let Some((agent, message)) = coordinator.outgoing() {
        let bytes = message.encode(coordinator.session());
        connected.send(&job.to_agent(&agent), &bytes);
    }
}
