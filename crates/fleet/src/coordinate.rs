//! The coordinator over a broker: a loop on the calling thread, which waits for messages, signals
//! and what is due.

use std::error::Error as StdError;
use std::time::Duration;

use brunt_io::clock;
use brunt_load::Part;
use futures_util::{FutureExt, StreamExt};
use thiserror::Error;
use tokio::time::timeout;

use crate::address::{Direction, Job, Topic};
use crate::broker::{Broker, BrokerError, Connected, runtime};
use crate::coordinator::{Coordinator, FleetError, Outcome, Settings, Stage, Timing};
use crate::member::MemberView;
use crate::messages::FromAgent;

/// Messages that are taken before it is looked what follows from them.
const BATCH: usize = 256;

/// What is handed out to the agents that came.
#[derive(Clone, Debug)]
pub struct Deal {
    /// The plan, as agents read it.
    pub plan: Vec<u8>,
    /// The workers of each, in the order in which they came.
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
    /// All agents are there: what do they do?
    ///
    /// # Errors
    ///
    /// It cannot be done with these.
    fn deal(&mut self, members: &[MemberView<'_>])
    -> Result<Deal, Box<dyn StdError + Send + Sync>>;

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
    /// What is to be done cannot be done by them.
    #[error(transparent)]
    Deal(Box<dyn StdError + Send + Sync>),
}

/// Makes a load with the agents of a job.
///
/// # Errors
///
/// Nothing was measured.
pub fn coordinate(
    broker: &Broker,
    job: &Job,
    settings: Settings,
    overseer: &mut dyn Overseer,
) -> Result<Outcome, CoordinateError> {
    runtime()?.block_on(run(broker, job, settings, overseer))
}

async fn run(
    broker: &Broker,
    job: &Job,
    settings: Settings,
    overseer: &mut dyn Overseer,
) -> Result<Outcome, CoordinateError> {
    let mut connected = broker.connect("brunt coordinator").await?;
    let subscribed = connected.client.subscribe(job.all_from_agents()).await;
    let mut messages = subscribed.map_err(|error| BrokerError::System(error.to_string()))?;
    let settings = Settings {
        chunk_bytes: settings.chunk_bytes.min(connected.chunk_bytes()),
        ..settings
    };
    let mut coordinator = Coordinator::new(settings, clock::now_ns());
    loop {
        coordinator.look(clock::now_ns());
        if coordinator.stage() == Stage::Gathered {
            let members: Vec<MemberView<'_>> = coordinator.members().collect();
            match overseer.deal(&members) {
                Ok(deal) => {
                    let now_ns = clock::now_ns();
                    coordinator.deal(now_ns, deal.plan, &deal.parts, deal.timing);
                }
                Err(error) => {
                    let reason = error.to_string();
                    coordinator.dismiss(&reason);
                    send_all(&mut coordinator, &connected, job).await;
                    connected.flush().await;
                    return Err(CoordinateError::Deal(error));
                }
            }
        }
        match overseer.look(&coordinator, connected.is_up()) {
            Wish::GoOn => {}
            Wish::End { is_hurried } => coordinator.interrupt(clock::now_ns(), is_hurried),
            Wish::Gone { name, reason } => coordinator.is_gone(clock::now_ns(), &name, &reason),
        }
        send_all(&mut coordinator, &connected, job).await;
        if coordinator.stage() == Stage::Over {
            connected.flush().await;
            return Ok(coordinator.outcome()?);
        }
        if let Ok(refusal) = connected.refusals.try_recv() {
            return Err(BrokerError::Permission(refusal).into());
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
            // What is no message of an agent of this job is none of ours.
            if let (Some(topic), Ok(read)) = (topic, read)
                && topic.direction == Direction::FromAgent
                && topic.job == *job
            {
                coordinator.receive(clock::now_ns(), &topic.agent, read);
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
        connected.send(topic.subject(), message.encode()).await;
    }
}
