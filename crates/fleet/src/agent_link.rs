//! The agent over a broker: a thread of its own, which speaks while workers work.

use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, TryRecvError, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use brunt_io::{clock, threads};
use futures_util::StreamExt;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::time::sleep;

use crate::address::{AgentId, Direction, Job, Topic};
use crate::agent::{Agent, AgentEvent};
use crate::broker::{Broker, BrokerError, Connected, runtime};
use crate::messages::{Counts, Hello, Phase, ToAgent};

/// What the run has the thread say.
#[derive(Debug)]
enum Said {
    HasCome(Phase, Counts),
    Finished(Vec<u8>),
    Failed(String),
}

/// The run's side of the thread that speaks to the coordinator.
#[derive(Debug)]
pub struct AgentLink {
    events: Receiver<Heard>,
    said: UnboundedSender<Said>,
    thread: Option<JoinHandle<()>>,
}

/// What the thread says to the run.
type Heard = Result<AgentEvent, BrokerError>;

/// Joins a job, and waits for its coordinator: for this long at most, where a limit is given.
///
/// # Errors
///
/// The broker cannot be spoken to as it is given, or the system refuses a thread.
pub fn join(
    broker: Broker,
    job: Job,
    hello: Hello,
    wait_limit_ns: Option<u64>,
) -> Result<AgentLink, BrokerError> {
    broker.check()?;
    let (heard, events) = channel();
    let (said, saying) = unbounded_channel();
    let body = move || {
        let outcome = runtime().and_then(|runtime| {
            runtime.block_on(speak(&broker, job, hello, wait_limit_ns, saying, &heard))
        });
        if let Err(error) = outcome {
            // The run may be over.
            let _ = heard.send(Err(error));
        }
    };
    let thread = threads::spawn("brunt-fleet", body);
    let thread = thread.map_err(|error| BrokerError::System(error.to_string()))?;
    Ok(AgentLink {
        events,
        said,
        thread: Some(thread),
    })
}

impl AgentLink {
    /// The next thing to do, if there is one within this time; absent: not yet.
    ///
    /// # Errors
    ///
    /// There will be none any more.
    pub fn wait(&self, limit: Duration) -> Result<Option<AgentEvent>, BrokerError> {
        match self.events.recv_timeout(limit) {
            Ok(heard) => heard.map(Some),
            Err(RecvTimeoutError::Timeout) => Ok(None),
            Err(RecvTimeoutError::Disconnected) => Err(gone()),
        }
    }

    /// The next thing to do, if there is one now.
    ///
    /// # Errors
    ///
    /// As [`AgentLink::wait`].
    pub fn next(&self) -> Result<Option<AgentEvent>, BrokerError> {
        match self.events.try_recv() {
            Ok(heard) => heard.map(Some),
            Err(TryRecvError::Empty) => Ok(None),
            Err(TryRecvError::Disconnected) => Err(gone()),
        }
    }

    /// The run is in `phase`, and has come so far.
    pub fn has_come(&self, phase: Phase, counts: Counts) {
        self.say(Said::HasCome(phase, counts));
    }

    /// The run is over, and this was measured.
    pub fn finished(&self, bytes: Vec<u8>) {
        self.say(Said::Finished(bytes));
    }

    /// There is no result.
    pub fn failed(&self, reason: &str) {
        self.say(Said::Failed(reason.to_owned()));
    }

    /// Waits for the thread, which ends when it has nothing more to say.
    pub fn end(mut self) {
        if let Some(thread) = self.thread.take() {
            // What went wrong with it was said.
            let _ = thread.join();
        }
    }

    fn say(&self, said: Said) {
        // A thread that has left has nobody to tell.
        let _ = self.said.send(said);
    }
}

fn gone() -> BrokerError {
    BrokerError::System("the thread that speaks to the broker ended".to_owned())
}

async fn speak(
    broker: &Broker,
    job: Job,
    hello: Hello,
    wait_limit_ns: Option<u64>,
    mut saying: UnboundedReceiver<Said>,
    heard: &Sender<Heard>,
) -> Result<(), BrokerError> {
    let mut connected = broker.connect("brunt agent", wait_limit_ns).await?;
    let id = AgentId::fresh();
    let topic = |direction| Topic {
        job: job.clone(),
        direction,
        agent: id.clone(),
    };
    let ours = topic(Direction::FromAgent).subject();
    let subscribed = connected
        .client
        .subscribe(topic(Direction::ToAgent).subject());
    let mut messages = subscribed
        .await
        .map_err(|error| BrokerError::System(error.to_string()))?;
    let mut agent = Agent::new(hello, wait_limit_ns, clock::now_ns());
    loop {
        agent.look(clock::now_ns());
        send_all(&mut agent, &connected, &ours).await;
        while let Some(event) = agent.event() {
            // The run may be over.
            let _ = heard.send(Ok(event));
        }
        if agent.is_over() {
            connected.flush().await;
            return Ok(());
        }
        let pause_ns = agent.due_ns().saturating_sub(clock::now_ns());
        tokio::select! {
            message = messages.next() => {
                let now_ns = clock::now_ns();
                let payload = message.map(|message| message.payload);
                // What is not a message of this version is not for us.
                if let Some(Ok((session, message))) = payload.map(|bytes| ToAgent::decode(&bytes)) {
                    agent.receive(now_ns, &session, message);
                }
            }
            said = saying.recv() => match said {
                Some(Said::HasCome(phase, counts)) => agent.has_come(phase, counts),
                Some(Said::Finished(bytes)) => agent.finished(bytes, connected.chunk_bytes()),
                Some(Said::Failed(reason)) => agent.failed(&reason),
                // The run is over, and whoever made it has left.
                None => return Ok(()),
            },
            refusal = connected.refusals.recv() => {
                if let Some(refusal) = refusal {
                    return Err(BrokerError::Permission(refusal));
                }
            }
            () = sleep(Duration::from_nanos(pause_ns)) => {}
        }
    }
}

async fn send_all(agent: &mut Agent, connected: &Connected, subject: &str) {
    while let Some(message) = agent.outgoing() {
        let bytes = message.encode(agent.session());
        connected.send(subject.to_owned(), bytes).await;
    }
}
