//! The agent over a broker: a thread of its own, which speaks while workers work.

use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, TryRecvError, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use brunt_io::{clock, threads};

use crate::address::{AgentId, Job};
use crate::agent::{Agent, AgentEvent};
use crate::broker::{Broker, BrokerError, Connected};
use crate::messages::{Counts, Hello, Phase, ToAgent};

/// How often the thread looks for what the run has it say.
const LOOK_NS: u64 = 20_000_000;
/// What has come is read whatever is due.
const PAUSE_NS_MIN: u64 = 1_000_000;

/// What the run has the thread say.
#[derive(Debug)]
enum Report {
    Progress(Phase, Counts),
    Finished(Vec<u8>),
    Failed(String),
}

/// The run's side of the thread that speaks to the coordinator.
#[derive(Debug)]
pub struct AgentLink {
    events: Receiver<Heard>,
    reports: Sender<Report>,
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
    let (reports, reported) = channel();
    let body = move || {
        let outcome = speak(&broker, &job, hello, wait_limit_ns, &reported, &heard);
        if let Err(error) = outcome {
            // The run may be over.
            let _ = heard.send(Err(error));
        }
    };
    let thread = threads::spawn("brunt-fleet", body);
    let thread = thread.map_err(|error| BrokerError::System(error.to_string()))?;
    Ok(AgentLink {
        events,
        reports,
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
            Err(RecvTimeoutError::Disconnected) => Err(BrokerError::System(
                "the thread that speaks to the broker ended".to_owned(),
            )),
        }
    }

    /// The run is in `phase`, and has come so far.
    pub fn has_come(&self, phase: Phase, counts: Counts) {
        self.report(Report::Progress(phase, counts));
    }

    /// The run is over, and this was measured.
    pub fn finished(&self, bytes: Vec<u8>) {
        self.report(Report::Finished(bytes));
    }

    /// There is no result.
    pub fn failed(&self, reason: &str) {
        self.report(Report::Failed(reason.to_owned()));
    }

    /// Waits for the thread, which ends when it has nothing more to say.
    pub fn end(mut self) {
        if let Some(thread) = self.thread.take() {
            // What went wrong with it was reported.
            let _ = thread.join();
        }
    }

    fn report(&self, report: Report) {
        // A thread that has left has nobody to tell.
        let _ = self.reports.send(report);
    }
}

fn speak(
    broker: &Broker,
    job: &Job,
    hello: Hello,
    wait_limit_ns: Option<u64>,
    reported: &Receiver<Report>,
    heard: &Sender<Heard>,
) -> Result<(), BrokerError> {
    let id = AgentId::fresh();
    let (ours, theirs) = (job.from_agent(&id), job.to_agent(&id));
    let connected = broker.connect("brunt agent", theirs, wait_limit_ns, || false)?;
    let Some(mut connected) = connected else {
        return Ok(());
    };
    let mut agent = Agent::new(hello, wait_limit_ns, clock::now_ns());
    loop {
        agent.look(clock::now_ns());
        send_all(&mut agent, &mut connected, &ours);
        while let Some(event) = agent.event() {
            // The run may be over.
            let _ = heard.send(Ok(event));
        }
        if agent.is_over() {
            connected.flush();
            return Ok(());
        }
        if let Some(refusal) = connected.refusal.take() {
            return Err(BrokerError::Permission(refusal));
        }
        loop {
            match reported.try_recv() {
                Ok(Report::Progress(phase, counts)) => agent.has_come(phase, counts),
                Ok(Report::Finished(bytes)) => agent.finished(bytes, connected.chunk_bytes()),
                Ok(Report::Failed(reason)) => agent.failed(&reason),
                Err(TryRecvError::Empty) => break,
                // The run is over, and whoever made it has left.
                Err(TryRecvError::Disconnected) => return Ok(()),
            }
        }
        let due_ns = agent.due_ns().saturating_sub(clock::now_ns());
        let pause_ns = due_ns.clamp(PAUSE_NS_MIN, LOOK_NS);
        if let Some(message) = connected.next(Duration::from_nanos(pause_ns)) {
            let now_ns = clock::now_ns();
            // What is not a message of this version is not for us.
            if let Ok((session, message)) = ToAgent::decode(&message.payload) {
                agent.receive(now_ns, &session, message);
            }
        }
    }
}

fn send_all(agent: &mut Agent, connected: &mut Connected, subject: &str) {
    while let Some(message) = agent.outgoing() {
        let bytes = message.encode(agent.session());
        connected.send(subject, &bytes);
    }
}
