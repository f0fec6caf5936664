//! The coordinator as a state machine: gathers agents and agrees on clocks. Then, in each round, it
//! hands out a plan, starts all at once, and collects what they measured.

use std::collections::VecDeque;

use brunt_load::Part;
use brunt_record::{AgreedClock, LostAgent, Window};
use thiserror::Error;

use crate::address::{AgentId, SessionId};
use crate::broker::BrokerError;
use crate::chunks::Chunks;
use crate::member::{EXCHANGES_LEAST, Member, REPEAT_LONG_NS, REPEAT_ORDER_NS};
use crate::messages::{FromAgent, Hello, Phase, Start, Stop, ToAgent, Version, shortened};

/// An agent that says nothing for this long is lost.
const SILENCE_NS: u64 = 5_000_000_000;
/// A coordinator that looked at nothing for this long was stopped itself: no agent was silent then.
const OWN_PAUSE_NS: u64 = 1_000_000_000;
/// From the order to start to the start, at least: all must have heard of it by then.
const LEAD_NS: u64 = 2_000_000_000;
/// From the order to the start in later rounds: there may be many, and agents and ways are known.
const LEAD_AGAIN_NS: u64 = 1_000_000_000;
/// From the order to end the load to its end, at least.
const STOP_LEAD_NS: u64 = 500_000_000;
/// Either is this many round trips at least.
const LEAD_ROUND_TRIPS: u64 = 8;
/// Longest wait for agents to say that they have stopped, where nothing is measured.
const ABORT_NS: u64 = 4_000_000_000;
/// Longest wait for agents that were told of a signal: the process ends within a second of it.
const SIGNAL_NS: u64 = 700_000_000;
/// Longest wait for replies where a signal ended the window, as agents have it.
const SIGNAL_DRAIN_NS: u64 = 1_000_000_000;
/// Longest wait for a result beyond the drain.
const RESULT_NS: u64 = 30_000_000_000;
/// From one look at what is due to the next, at most.
const LOOK_NS: u64 = 100_000_000;
/// The largest result that is taken.
const RESULT_BYTES_MAX: u64 = 1 << 30;

/// What a coordinator is told.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    /// Agents that are needed.
    pub agents: u32,
    /// What all must speak.
    pub version: Version,
    /// Longest wait for them, nanoseconds.
    pub gather_limit_ns: u64,
    /// Bytes of a chunk of the plan.
    pub chunk_bytes: usize,
}

/// The lengths of what is to come, nanoseconds.
#[derive(Clone, Copy, Debug)]
pub struct Timing {
    /// Load before the window.
    pub warmup_ns: u64,
    /// The window, at most; absent: it ends when all have done their shares.
    pub window_ns: Option<u64>,
    /// Agents have shares of a number of requests. They wait for the end of the window, which is
    /// that of the one that takes longest.
    pub is_counted: bool,
    /// Longest wait for replies after it.
    pub drain_ns: u64,
}

/// How far a coordinator has come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Stage {
    /// Not all agents are there.
    #[default]
    Gathering,
    /// They are, and wait for the plan of the first round.
    Gathered,
    /// They set up what the plan needs.
    SettingUp,
    /// All know when to start, or are told.
    Starting,
    /// The load goes on, or results are collected.
    Loading,
    /// Results are there, and those agents that are left wait for the plan of another round.
    Collected,
    /// There will be no result, and agents are told to stop.
    Aborting,
    /// Nothing is left to do.
    Over,
}

/// What an agent measured.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AgentResult {
    /// What it is called.
    pub name: String,
    /// The workers that it was given.
    pub part: Part,
    /// As it sent it.
    pub bytes: Vec<u8>,
    /// How its window lay; absent where its clock contradicts itself.
    pub clocks: Option<AgreedClock>,
}

/// What all measured.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// By agent, in the order of their parts.
    pub results: Vec<AgentResult>,
    /// Those without.
    pub lost: Vec<LostAgent>,
    /// The load was ended by whoever asked for it.
    pub was_interrupted: bool,
}

/// Why nothing was measured.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum FleetError {
    /// The broker cannot be used.
    #[error(transparent)]
    Broker(#[from] BrokerError),
    /// Not all agents came.
    #[error("{here} of {wanted} agents are there after {waited_s} s{refused}")]
    TooFew {
        /// That came.
        here: u32,
        /// That are needed.
        wanted: u32,
        /// For how long they were waited for.
        waited_s: u64,
        /// Why others were refused, in words; empty where none was.
        refused: String,
    },
    /// An agent said that it cannot.
    #[error("agent {name}: {reason}")]
    Agent {
        /// What it is called.
        name: String,
        /// As it said.
        reason: String,
    },
    /// An agent was lost before there was anything to measure.
    #[error("agent {name} {reason} before the window began: nothing was measured")]
    Lost {
        /// What it is called.
        name: String,
        /// What is known of that.
        reason: String,
    },
    /// No agent gave a result.
    #[error("there is no result of any agent: agent {name} {reason}")]
    AllLost {
        /// What the first of them is called.
        name: String,
        /// What is known of that.
        reason: String,
    },
    /// It was asked for before there was anything to report.
    #[error("interrupted before there was a result")]
    Interrupted,
}

/// The coordinator.
#[derive(Debug, Default)]
pub struct Coordinator {
    settings: Settings,
    session: SessionId,
    began_ns: u64,
    looked_ns: u64,
    stage: Stage,
    members: Vec<Member>,
    /// Why agents were refused, or serve another coordinator.
    refused: Vec<String>,
    /// The number of the round, from 1; 0 before there was one.
    round: u32,
    plan: Option<Chunks>,
    timing: Option<Timing>,
    /// When the load begins, on our clock.
    load_ns: Option<u64>,
    stop: Option<Stop>,
    /// When it was ordered.
    stopped_ns: u64,
    was_interrupted: bool,
    /// Until when a signal leaves agents time to have a result.
    unfinished_limit_ns: u64,
    /// Until when another one leaves them time to hand it over.
    limit_ns: u64,
    error: Option<FleetError>,
    abort_ns: u64,
    outgoing: VecDeque<(AgentId, ToAgent)>,
}

impl Coordinator {
    /// A coordinator that gathers agents from `now_ns` on.
    pub fn new(settings: Settings, now_ns: u64) -> Self {
        Self {
            settings,
            session: SessionId::fresh(),
            began_ns: now_ns,
            looked_ns: now_ns,
            unfinished_limit_ns: u64::MAX,
            limit_ns: u64::MAX,
            abort_ns: u64::MAX,
            ..Self::default()
        }
    }

    /// The session that its messages belong to.
    pub fn session(&self) -> &SessionId {
        &self.session
    }

    /// How far it has come.
    pub fn stage(&self) -> Stage {
        self.stage
    }

    /// The agents, in the order in which they came; with a plan, of their parts.
    pub fn members(&self) -> &[Member] {
        &self.members
    }

    /// The next message to be sent.
    pub fn outgoing(&mut self) -> Option<(AgentId, ToAgent)> {
        self.outgoing.pop_front()
    }

    /// When to look again, at the latest.
    pub fn due_ns(&self, now_ns: u64) -> u64 {
        let pings = self.members.iter().filter(|member| member.lost.is_none());
        let ping_ns = pings
            .map(|member| member.ping_due_ns)
            .min()
            .unwrap_or(u64::MAX);
        ping_ns.min(now_ns + LOOK_NS).max(now_ns)
    }

    /// Takes a message of `from`, which is the agent that its subject belongs to. What follows from
    /// it is for the next [`Coordinator::look`].
    pub fn receive(
        &mut self,
        now_ns: u64,
        from: &AgentId,
        session: Option<&SessionId>,
        message: FromAgent,
    ) {
        if let Some(other) = session
            && *other != self.session
        {
            self.serves_another(now_ns, from);
            return;
        }
        match message {
            // Only those who introduce themselves have no session.
            FromAgent::Pong(_) | FromAgent::Result { .. } if session.is_none() => {}
            FromAgent::Hello(hello) => self.hello(now_ns, from, hello),
            FromAgent::Pong(pong) => {
                let window = self.window();
                if let Some(member) = self.member(from) {
                    let chunks = member.status.plan_chunks;
                    member.pong(now_ns, pong, window);
                    if member.status.plan_chunks != chunks {
                        member.was_heard(now_ns);
                    }
                }
            }
            FromAgent::Result { round, chunk } => {
                let is_now = round == self.round;
                let member = self.member(from);
                let Some(member) = member.filter(|member| is_now && !member.is_settled()) else {
                    return;
                };
                member.heard_ns = now_ns;
                match member.assembly.take(&chunk, RESULT_BYTES_MAX) {
                    Ok(whole) => {
                        member.result = whole;
                        member.was_heard(now_ns);
                    }
                    Err(error) => {
                        member.lost = Some((format!("gave no sound result: {error}"), now_ns));
                    }
                }
            }
        }
    }

    /// Hands out the plan of the next round, whose workers the agents have by `parts`, one for each
    /// in their order.
    pub fn begin_round(&mut self, now_ns: u64, plan: Vec<u8>, parts: &[Part], timing: Timing) {
        if !matches!(self.stage, Stage::Gathered | Stage::Collected) {
            return;
        }
        self.round += 1;
        for (member, part) in self.members.iter_mut().zip(parts) {
            member.begin(self.round, *part, now_ns);
        }
        self.load_ns = None;
        self.stop = None;
        self.stopped_ns = 0;
        self.plan = Some(Chunks::new(plan, self.settings.chunk_bytes));
        self.timing = Some(timing);
        self.stage = Stage::SettingUp;
        self.look(now_ns);
    }

    /// Nothing will be done: the agents may leave.
    pub fn dismiss(&mut self, reason: &str) {
        let stop = Stop {
            round: self.round + 1,
            window_ns: None,
            is_hurried: true,
            reason: shortened(reason),
        };
        for member in &self.members {
            let stop = ToAgent::Stop(stop.clone());
            self.outgoing.push_back((member.id.clone(), stop));
        }
        self.end();
    }

    /// There are no more rounds: the agents may leave.
    pub fn end(&mut self) {
        let members = self.members.iter_mut();
        for member in members.filter(|member| !member.is_dismissed) {
            member.is_dismissed = true;
            self.outgoing.push_back((member.id.clone(), ToAgent::Done));
        }
        self.stage = Stage::Over;
    }

    /// The load is to end now: by those who asked for it. Again: without waiting for replies, and
    /// for agents that do not end.
    pub fn interrupt(&mut self, now_ns: u64, is_hurried: bool) {
        if self.stage == Stage::Collected {
            // It came too late for this round.
            return;
        }
        // It is said as long as the process lasts.
        let is_first = !self.was_interrupted;
        self.was_interrupted = true;
        let is_over = self.window().is_some_and(|window| now_ns >= window.end_ns);
        if !self.end_load(now_ns, is_hurried || is_first && is_over, "interrupted") {
            self.abort(now_ns, FleetError::Interrupted);
        }
        if is_first {
            let Window { end_ns, .. } = self.window().unwrap_or_default();
            let drained_ns = if is_over || self.stage == Stage::Aborting {
                now_ns
            } else {
                end_ns.saturating_add(SIGNAL_DRAIN_NS)
            };
            self.unfinished_limit_ns = drained_ns.saturating_add(SIGNAL_NS);
        }
        if is_hurried {
            let limit_ns = now_ns.saturating_add(SIGNAL_NS);
            self.limit_ns = self.limit_ns.min(limit_ns);
        }
        self.look(now_ns);
    }

    /// It is known otherwise that the agent of this name is gone.
    pub fn is_gone(&mut self, now_ns: u64, name: &str, reason: &str) {
        let mut members = self.members.iter_mut();
        match members.find(|member| member.hello.name == name) {
            Some(member) if self.stage != Stage::Gathering => {
                if !member.is_settled() {
                    member.lost = Some((reason.to_owned(), now_ns));
                }
            }
            // Without it there will never be enough.
            _ => {
                let (name, reason) = (name.to_owned(), reason.to_owned());
                self.abort(now_ns, FleetError::Agent { name, reason });
            }
        }
        self.look(now_ns);
    }

    /// The outcome of the round, once all is collected or over. A second call gives no results.
    pub fn outcome(&mut self) -> Result<Outcome, FleetError> {
        if let Some(error) = &self.error {
            return Err(error.clone());
        }
        let window = self.window().unwrap_or_default();
        let warmup_ns = self.timing.map_or(0, |timing| timing.warmup_ns);
        let mut outcome = Outcome {
            was_interrupted: self.was_interrupted,
            ..Outcome::default()
        };
        for member in &mut self.members {
            let (name, clocks) = (member.hello.name.clone(), member.clocks(window, warmup_ns));
            match (member.result.take(), member.lost.clone(), member.part) {
                (Some(bytes), None, Some(part)) => outcome.results.push(AgentResult {
                    name,
                    part,
                    bytes,
                    clocks,
                }),
                (_, lost, Some(part)) => {
                    let (reason, at_ns) = lost.unwrap_or_default();
                    let workers = part.workers();
                    outcome.lost.push(LostAgent {
                        name,
                        first_worker: workers.start,
                        workers: workers.end - workers.start,
                        reason,
                        at_ns: at_ns.cast_signed() - window.start_ns.cast_signed(),
                    });
                }
                (_, _, None) => {}
            }
        }
        match (outcome.results.is_empty(), outcome.lost.first()) {
            (true, Some(_)) if self.was_interrupted => Err(FleetError::Interrupted),
            (true, Some(first)) => Err(FleetError::AllLost {
                name: first.name.clone(),
                reason: first.reason.clone(),
            }),
            _ => Ok(outcome),
        }
    }

    /// Looks at what is due at `now_ns`.
    pub fn look(&mut self, now_ns: u64) {
        if self.stage == Stage::Over {
            return;
        }
        let paused_ns = now_ns.saturating_sub(self.looked_ns);
        self.looked_ns = now_ns;
        if paused_ns > OWN_PAUSE_NS {
            for member in &mut self.members {
                member.heard_ns = now_ns.min(member.heard_ns + paused_ns);
            }
        }
        self.look_for_the_silent(now_ns);
        match self.stage {
            Stage::Gathering => self.gather(now_ns),
            Stage::Gathered | Stage::Collected | Stage::Over => {}
            Stage::SettingUp => self.set_up(now_ns),
            Stage::Starting => self.start(now_ns),
            Stage::Loading => self.load(now_ns),
            Stage::Aborting => self.end_abort(now_ns),
        }
        for at in 0..self.members.len() {
            let member = &mut self.members[at];
            if member.lost.is_none()
                && let Some(ping) = member.ping(now_ns, false)
            {
                self.outgoing.push_back((member.id.clone(), ping));
            }
        }
    }

    fn member(&mut self, id: &AgentId) -> Option<&mut Member> {
        self.members.iter_mut().find(|member| member.id == *id)
    }

    /// When the window begins and ends, on our clock; with no end, as far as is known, at the
    /// greatest instant.
    fn window(&self) -> Option<Window> {
        let timing = self.timing?;
        let start_ns = self.load_ns?.checked_add(timing.warmup_ns)?;
        let stopped_ns = self.stop.as_ref().and_then(|stop| stop.window_ns);
        // Of a load by count the end is not known before all are done.
        let planned_ns = timing.window_ns.filter(|_| !timing.is_counted);
        let window_ns = stopped_ns.or(planned_ns).unwrap_or(u64::MAX);
        Some(Window {
            start_ns,
            end_ns: start_ns.saturating_add(window_ns),
        })
    }

    /// The length of the window of a load by count, once all agents that are left have done their
    /// shares.
    fn counted_window_ns(&self) -> Option<u64> {
        let left = self.members.iter().filter(|member| !member.is_settled());
        let lengths = left.map(|member| match member.status.phase {
            Phase::Done { window_ns } => Some(window_ns),
            _ => None,
        });
        lengths.collect::<Option<Vec<u64>>>()?.into_iter().max()
    }

    fn hello(&mut self, now_ns: u64, from: &AgentId, hello: Hello) {
        if let Some(member) = self.member(from) {
            // It did not hear the answer.
            member.heard_ns = now_ns;
            return;
        }
        let version = &self.settings.version;
        let reason = if hello.version.protocol != version.protocol {
            Some(format!(
                "it speaks version {} of the fleet's messages, and the coordinator version {}",
                hello.version.protocol, version.protocol
            ))
        } else if hello.version != *version {
            Some(format!(
                "it is brunt {}, and the coordinator brunt {}: use one version",
                hello.version.brunt, version.brunt
            ))
        } else if self.stage != Stage::Gathering || self.has_all() {
            Some(format!("the job has its {} agents", self.settings.agents))
        } else {
            None
        };
        match reason {
            Some(reason) => {
                if self.stage == Stage::Gathering {
                    self.note(format!("; {} was refused: {reason}", hello.name));
                }
                let refused = ToAgent::Refused { reason };
                self.outgoing.push_back((from.clone(), refused));
            }
            None => self.members.push(Member::new(from.clone(), hello, now_ns)),
        }
    }

    /// This agent is that of another coordinator, which named the same job.
    fn serves_another(&mut self, now_ns: u64, from: &AgentId) {
        let is_gathering = self.stage == Stage::Gathering;
        let Some(member) = self.member(from).filter(|member| !member.is_settled()) else {
            return;
        };
        let reason = "serves another coordinator of the same job".to_owned();
        if is_gathering {
            let name = member.hello.name.clone();
            self.members.retain(|member| member.id != *from);
            self.note(format!("; {name} {reason}"));
        } else {
            member.lost = Some((reason, now_ns));
        }
    }

    /// Keeps a few words for the case that too few agents come.
    fn note(&mut self, words: String) {
        if self.refused.len() < 3 && !self.refused.contains(&words) {
            self.refused.push(words);
        }
    }

    fn look_for_the_silent(&mut self, now_ns: u64) {
        let is_silent = |member: &Member| now_ns.saturating_sub(member.heard_ns) > SILENCE_NS;
        match self.stage {
            // It left before anything was asked of it.
            Stage::Gathering => {
                self.members.retain(|member| !is_silent(member));
                return;
            }
            // The next round shows who is there.
            Stage::Collected => return,
            _ => {}
        }
        for member in self
            .members
            .iter_mut()
            .filter(|member| !member.is_settled())
        {
            if is_silent(member) {
                let silent_s = (now_ns - member.heard_ns) as f64 / 1e9;
                member.lost = Some((format!("was silent for {silent_s:.1} s"), now_ns));
            } else if let Some(reason) = member.has_failed() {
                member.lost = Some((format!("failed: {reason}"), now_ns));
            }
        }
        let first = self.members.iter().find(|member| member.lost.is_some());
        let Some(first) = first else {
            return;
        };
        let failed = first.has_failed().map(str::to_owned);
        let (name, lost) = (first.hello.name.clone(), first.lost.clone());
        let reason = lost.unwrap_or_default().0;
        let words = format!("agent {name} {reason}");
        let stage = self.stage;
        match stage {
            Stage::Aborting | Stage::Collected | Stage::Over => {}
            Stage::Loading if self.end_load(now_ns, false, &words) => {}
            _ => {
                let error = match failed {
                    Some(reason) => FleetError::Agent { name, reason },
                    None => FleetError::Lost { name, reason },
                };
                self.abort(now_ns, error);
            }
        }
    }

    fn has_all(&self) -> bool {
        self.members.len() as u32 >= self.settings.agents
    }

    fn gather(&mut self, now_ns: u64) {
        let here = self.members.len() as u32;
        let waited_ns = now_ns.saturating_sub(self.began_ns);
        // One that has not answered yet may be that of another coordinator.
        if self.has_all() && self.members.iter().all(|member| member.answered.is_some()) {
            self.stage = Stage::Gathered;
        } else if waited_ns > self.settings.gather_limit_ns {
            let error = FleetError::TooFew {
                here,
                wanted: self.settings.agents,
                waited_s: waited_ns / 1_000_000_000,
                refused: self.refused.concat(),
            };
            self.abort(now_ns, error);
        }
    }

    fn set_up(&mut self, now_ns: u64) {
        let Some(plan) = &self.plan else {
            return;
        };
        for member in &mut self.members {
            let number = member.status.plan_chunks;
            let next = plan.chunk(number).zip(member.part);
            if let Some((chunk, part)) = next
                && member.may_say(now_ns, REPEAT_LONG_NS)
            {
                let round = self.round;
                let message = ToAgent::Plan { round, part, chunk };
                order(&mut self.outgoing, member, message, now_ns);
            }
        }
        let is_ready = |member: &Member| {
            member.status.phase == Phase::Ready && member.clock.count() >= EXCHANGES_LEAST
        };
        if self.members.iter().all(is_ready) {
            let least_ns = match self.round {
                1 => LEAD_NS,
                _ => LEAD_AGAIN_NS,
            };
            self.load_ns = Some(now_ns + self.lead_ns(least_ns));
            self.stage = Stage::Starting;
            for member in &mut self.members {
                member.was_heard(now_ns);
            }
            self.start(now_ns);
        }
    }

    /// Time for all to hear of something.
    fn lead_ns(&self, least_ns: u64) -> u64 {
        let members = self.members.iter();
        let trips = members.filter_map(|member| member.clock.round_trip_ns_min());
        let longest_ns = trips.max().unwrap_or(0);
        least_ns.max(longest_ns.saturating_mul(LEAD_ROUND_TRIPS))
    }

    fn start(&mut self, now_ns: u64) {
        let Some(load_ns) = self.load_ns else {
            return;
        };
        let mut contradictory = None;
        for member in &mut self.members {
            if member.status.start_ns.is_some() || !member.may_say(now_ns, REPEAT_ORDER_NS) {
                continue;
            }
            let Some(agreed) = member.clock.at(load_ns) else {
                contradictory = Some(member.hello.name.clone());
                continue;
            };
            let start = ToAgent::Start(Start {
                round: self.round,
                load_ns: agreed.theirs_ns(load_ns),
            });
            order(&mut self.outgoing, member, start, now_ns);
        }
        if let Some(name) = contradictory {
            let reason = "its clock contradicts itself: it was set, or drifts".to_owned();
            self.abort(now_ns, FleetError::Agent { name, reason });
        } else if now_ns >= load_ns {
            let mut members = self.members.iter();
            let deaf = members.find(|member| member.status.start_ns.is_none());
            match deaf.map(|member| member.hello.name.clone()) {
                None => self.stage = Stage::Loading,
                Some(name) => {
                    let reason = "did not hear of the start".to_owned();
                    self.abort(now_ns, FleetError::Lost { name, reason });
                }
            }
        }
    }

    fn load(&mut self, now_ns: u64) {
        if let (None, Some(window_ns)) = (&self.stop, self.counted_window_ns()) {
            self.stop_at(now_ns, window_ns, false, "all requests are done");
        }
        let (Some(window), Some(timing)) = (self.window(), self.timing) else {
            return;
        };
        let late_ns = window
            .end_ns
            .max(self.stopped_ns)
            .saturating_add(timing.drain_ns)
            .saturating_add(RESULT_NS);
        let late_ns = late_ns.min(self.limit_ns);
        let unfinished_ns = late_ns.min(self.unfinished_limit_ns);
        for member in &mut self.members {
            if member.is_settled() {
                if member.lost.is_some() && !member.is_dismissed {
                    member.is_dismissed = true;
                    self.outgoing.push_back((member.id.clone(), ToAgent::Done));
                }
                continue;
            }
            let message = match (&member.status.phase, &self.stop) {
                (Phase::Finished { .. }, _) => Some(ToAgent::Fetch {
                    round: self.round,
                    number: member.assembly.next(),
                }),
                (_, Some(stop)) if !member.knows(stop) => Some(ToAgent::Stop(stop.clone())),
                _ => None,
            };
            match message {
                Some(stop @ ToAgent::Stop(_)) if member.may_say(now_ns, REPEAT_ORDER_NS) => {
                    order(&mut self.outgoing, member, stop, now_ns);
                }
                Some(fetch @ ToAgent::Fetch { .. }) if member.may_say(now_ns, REPEAT_LONG_NS) => {
                    self.outgoing.push_back((member.id.clone(), fetch));
                }
                _ => {}
            }
            let limit_ns = match member.status.phase {
                Phase::Finished { .. } => late_ns,
                _ => unfinished_ns,
            };
            if now_ns > limit_ns {
                member.lost = Some(("gave no result".to_owned(), now_ns));
            }
        }
        if self.members.iter().all(Member::is_settled) {
            self.stage = Stage::Collected;
        }
    }

    /// Ends the window of all agents at one instant, where it has begun and is not nearly over.
    /// False where it has not begun.
    fn end_load(&mut self, now_ns: u64, is_hurried: bool, reason: &str) -> bool {
        let (Some(Window { start_ns, end_ns }), Some(timing)) = (self.window(), self.timing) else {
            return false;
        };
        if self.stage != Stage::Loading || now_ns < start_ns {
            return false;
        }
        let soon_ns = now_ns + self.lead_ns(STOP_LEAD_NS) - start_ns;
        let window_ns = self.counted_window_ns().unwrap_or(soon_ns);
        match (&mut self.stop, timing.window_ns) {
            // The instant stays; whether replies are waited for may change.
            (Some(stop), _) => {
                if is_hurried && !stop.is_hurried {
                    stop.is_hurried = true;
                    self.stopped_ns = now_ns;
                    for member in &mut self.members {
                        member.was_heard(now_ns);
                    }
                }
            }
            (None, Some(planned_ns)) if window_ns >= planned_ns || now_ns >= end_ns => {
                // Those with a share of a count wait for the end to be said.
                if is_hurried || timing.is_counted {
                    self.stop_at(now_ns, planned_ns, is_hurried, reason);
                }
            }
            (None, _) => self.stop_at(now_ns, window_ns, is_hurried, reason),
        }
        true
    }

    /// Orders the end of the load: of a window of this length.
    fn stop_at(&mut self, now_ns: u64, window_ns: u64, is_hurried: bool, reason: &str) {
        let before = self.window();
        self.stop = Some(Stop {
            round: self.round,
            window_ns: Some(window_ns),
            is_hurried,
            reason: shortened(reason),
        });
        self.stopped_ns = now_ns;
        let is_other = self.window() != before;
        for member in &mut self.members {
            if is_other {
                member.end = None;
            }
            member.was_heard(now_ns);
        }
    }

    /// Ends all without a result.
    fn abort(&mut self, now_ns: u64, error: FleetError) {
        if matches!(self.stage, Stage::Aborting | Stage::Over) {
            return;
        }
        self.stop = Some(Stop {
            round: self.round,
            window_ns: None,
            is_hurried: true,
            reason: shortened(&error.to_string()),
        });
        self.error = Some(error);
        self.stage = Stage::Aborting;
        self.abort_ns = now_ns + ABORT_NS;
        for member in &mut self.members {
            member.was_heard(now_ns);
        }
    }

    fn end_abort(&mut self, now_ns: u64) {
        let Some(stop) = &self.stop else {
            return;
        };
        for member in &mut self.members {
            if !member.is_settled()
                && !member.knows(stop)
                && member.may_say(now_ns, REPEAT_ORDER_NS)
            {
                let stop = ToAgent::Stop(stop.clone());
                order(&mut self.outgoing, member, stop, now_ns);
            }
        }
        let has_stopped = |member: &Member| member.is_settled() || member.knows(stop);
        let limit_ns = self
            .abort_ns
            .min(self.unfinished_limit_ns)
            .min(self.limit_ns);
        if self.members.iter().all(has_stopped) || now_ns >= limit_ns {
            self.end();
        }
    }
}

/// Has a member told to do something, and asked at once how it stands.
fn order(
    outgoing: &mut VecDeque<(AgentId, ToAgent)>,
    member: &mut Member,
    message: ToAgent,
    now_ns: u64,
) {
    outgoing.push_back((member.id.clone(), message));
    let ping = member.ping(now_ns, true);
    outgoing.extend(ping.map(|ping| (member.id.clone(), ping)));
}
