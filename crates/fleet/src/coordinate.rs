//! The coordinator over a broker: a loop on the calling thread for each round, which waits for
//! messages, signals and what is due.

use std::pin::pin;
use std::time::Duration;

use async_nats::Subscriber;
use brunt_io::clock;
use brunt_load::Part;
use futures_util::{FutureExt, StreamExt};
use thiserror::Error;
use tokio::runtime::Runtime;
use tokio::time::timeout;

use crate::address::{Direction, Job, Topic};
use crate::broker::{Broker, BrokerError, Connected, runtime};
use crate::coordinator::{Coordinator, FleetError, Outcome, Settings, Stage, Timing};
use crate::member::MemberView;
use crate::messages::FromAgent;

/// How often it is looked for signals while there is no connection.
const LOOK: Duration = Duration::from_millis(50);
/// Messages that are taken before it is looked what follows from them.
const BATCH: usize = 256;

/// What is handed out to the agents for a round.
#[derive(Clone, Debug)]
pub struct Deal {
    /// The plan, as agents read it.
    pub plan: Vec<u8>,
    /// The workers of each, in the order of [`Fleet::members`].
    pub parts: Vec<Part>,
    /// Its lengths.
    pub timing: Timing,
}

/// What whoever asked for the load wants.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Wish {
    /// That it goes on.
    GoOn,
    /// That it ends.
    End {
        /// Whether replies are not waited for.
        is_hurried: bool,
    },
    /// Nothing, but the agent of this name is known to be gone.
    Gone {
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
    fn look(&mut self, coordinator: &Coordinator, is_connected: bool) -> Wish;
}

/// Why a fleet measured nothing.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum CoordinateError {
    /// There is no way to the agents.
    #[error(transparent)]
    Broker(#[from] BrokerError),
    /// Something happened to them.
    #[error(transparent)]
    Fleet(#[from] FleetError),
}

/// Agents that are all there, and make one round after the other. Dropping it lets them go.
#[derive(Debug)]
pub struct Fleet {
    runtime: Runtime,
    connected: Connected,
    messages: Subscriber,
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
    ) -> Result<Self, CoordinateError> {
        let runtime = runtime()?;
        let nobody = Coordinator::new(settings.clone(), clock::now_ns());
        let connecting = runtime.block_on(unless(connect(broker, job), || {
            matches!(overseer.look(&nobody, true), Wish::End { .. })
        }));
        let Some(connected) = connecting else {
            // A name may take long to be resolved.
            runtime.shutdown_background();
            return Err(FleetError::Interrupted.into());
        };
        let (connected, messages) = connected?;
        let settings = Settings {
            chunk_bytes: settings.chunk_bytes.min(connected.chunk_bytes()),
            ..settings
        };
        let mut fleet = Self {
            runtime,
            connected,
            messages,
            job: job.clone(),
            coordinator: Coordinator::new(settings, clock::now_ns()),
        };
        match fleet.until_idle(overseer)? {
            Stage::Gathered => Ok(fleet),
            _ => Err(fleet
                .coordinator
                .outcome()
                .err()
                .unwrap_or(FleetError::Interrupted)
                .into()),
        }
    }

    /// The agents, in the order of their parts.
    pub fn members(&self) -> impl Iterator<Item = MemberView<'_>> {
        self.coordinator.members()
    }

    /// Makes a round. After one without an outcome, or with lost agents, there is no other.
    ///
    /// # Errors
    ///
    /// Nothing was measured.
    pub fn round(
        &mut self,
        deal: Deal,
        overseer: &mut dyn Overseer,
    ) -> Result<Outcome, CoordinateError> {
        let Deal {
            plan,
            parts,
            timing,
        } = deal;
        self.coordinator.deal(clock::now_ns(), plan, &parts, timing);
        self.until_idle(overseer)?;
        Ok(self.coordinator.outcome()?)
    }

    /// Lets the agents go because what is to be done cannot be done by them, for this reason.
    pub fn dismiss(&mut self, reason: &str) {
        self.coordinator.dismiss(reason);
    }

    /// Goes on until there is a result, or there will be none, or a plan is wanted.
    fn until_idle(&mut self, overseer: &mut dyn Overseer) -> Result<Stage, BrokerError> {
        let Self {
            runtime,
            connected,
            messages,
            job,
            coordinator,
        } = self;
        runtime.block_on(run((connected, messages), job, coordinator, overseer))
    }
}

impl Drop for Fleet {
    fn drop(&mut self) {
        self.coordinator.end();
        let Self {
            runtime,
            connected,
            job,
            coordinator,
            ..
        } = self;
        runtime.block_on(async {
            send_all(coordinator, connected, job).await;
            connected.flush().await;
        });
    }
}

/// What `body` gives; absent: `is_over` said before that nobody waits for it.
async fn unless<T>(body: impl Future<Output = T>, mut is_over: impl FnMut() -> bool) -> Option<T> {
    let mut body = pin!(body);
    loop {
        if let Ok(output) = timeout(LOOK, &mut body).await {
            return Some(output);
        }
        if is_over() {
            return None;
        }
    }
}

async fn connect(broker: &Broker, job: &Job) -> Result<(Connected, Subscriber), BrokerError> {
    let connected = broker.connect("brunt coordinator", None).await?;
    let subscribed = connected.client.subscribe(job.all_from_agents()).await;
    let messages = subscribed.map_err(|error| BrokerError::System(error.to_string()))?;
    Ok((connected, messages))
}

async fn run(
    (connected, messages): (&mut Connected, &mut Subscriber),
    job: &Job,
    coordinator: &mut Coordinator,
    overseer: &mut dyn Overseer,
) -> Result<Stage, BrokerError> {
    loop {
        coordinator.look(clock::now_ns());
        match overseer.look(coordinator, connected.is_up()) {
            Wish::GoOn => {}
            Wish::End { is_hurried } => coordinator.interrupt(clock::now_ns(), is_hurried),
            Wish::Gone { name, reason } => coordinator.is_gone(clock::now_ns(), &name, &reason),
        }
        send_all(coordinator, connected, job).await;
        let stage = coordinator.stage();
        if let Stage::Gathered | Stage::Collected | Stage::Over = stage {
            connected.flush().await;
            return Ok(stage);
        }
        if let Ok(refusal) = connected.refusals.try_recv() {
            return Err(BrokerError::Permission(refusal));
        }
        let now_ns = clock::now_ns();
        let pause_ns = coordinator.due_ns(now_ns).saturating_sub(now_ns);
        let mut next = timeout(Duration::from_nanos(pause_ns), messages.next()).await;
        for _ in 0..BATCH {
            let Ok(Some(message)) = next else {
                break;
            };
            let topic = Topic::parse(&message.subject);
            let read = FromAgent::decode(&message.payload);
            // What is not a message of an agent of this job is none of ours.
            if let (Some(topic), Ok((session, read))) = (topic, read)
                && topic.direction == Direction::FromAgent
                && topic.job == *job
            {
                let now_ns = clock::now_ns();
                coordinator.receive(now_ns, &topic.agent, session.as_ref(), read);
            }
            next = Ok(messages.next().now_or_never().flatten());
        }
    }
}

async fn send_all(coordinator: &mut Coordinator, connected: &Connected, job: &Job) {
    while let Some((agent, message)) = coordinator.outgoing() {
        let topic = Topic {
            job: job.clone(),
            direction: Direction::ToAgent,
            agent,
        };
        let bytes = message.encode(coordinator.session());
        connected.send(topic.subject(), bytes).await;
    }
}
