//! The agent as a state machine: introduces itself, takes the plan of one round after the other,
//! tells how it stands, and hands over what it measured.

use std::collections::VecDeque;
use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use brunt_load::{Part, Plan, Target, Watch};
use thiserror::Error;

use crate::address::SessionId;
use crate::chunks::{Assembly, Chunk, ChunkError, Chunks};
use crate::messages::{Counts, FromAgent, Hello, Phase, Pong, Status, Stop, ToAgent, shortened};

/// From one introduction to the next, while nobody answers.
const HELLO_NS: u64 = 1_000_000_000;
/// A coordinator that says nothing for this long is gone.
const SILENCE_NS: u64 = 10_000_000_000;
/// The farthest start that is taken: an agreed one is some round trips away.
const LEAD_NS_MAX: u64 = 60_000_000_000;
/// The largest plan that is taken.
const PLAN_BYTES_MAX: u64 = 64 << 20;

/// Why an agent has nothing more to do, other than that it is done.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum AgentError {
    /// The coordinator does not take it.
    #[error("refused by the coordinator: {0}")]
    Refused(String),
    /// There is no coordinator.
    #[error("no coordinator of this job answered for {0} s")]
    NobodyAnswers(u64),
    /// The coordinator is gone.
    #[error("the coordinator was silent for {0} s: the load was ended")]
    CoordinatorGone(u64),
    /// The coordinator let it go before it took the result.
    #[error("the coordinator does not wait for the result any more")]
    Unwanted,
    /// It is to wait for its load longer than any agreement takes.
    #[error("the coordinator has the load begin in {0} s, where 60 s are the most")]
    FarStart(u64),
    /// The plan did not come as it was sent.
    #[error("the plan cannot be read: {0}")]
    Plan(#[from] ChunkError),
}

/// What an agent is to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AgentEvent {
    /// Sets up a round, for these workers of a plan.
    Plan {
        /// As the coordinator sent it.
        bytes: Vec<u8>,
        /// The workers.
        part: Part,
    },
    /// Begins the load at this instant of its clock.
    Start {
        /// Nanoseconds.
        load_ns: u64,
    },
    /// Ends it before its time; a later one says more.
    Stop(Stop),
    /// Leaves. What it measured is not wanted, or has arrived.
    Leave(Result<(), AgentError>),
}

/// The agent.
#[derive(Debug, Default)]
pub struct Agent {
    hello: Hello,
    /// Longest wait for a coordinator; absent: for ever.
    wait_limit_ns: Option<u64>,
    began_ns: u64,
    hello_due_ns: u64,
    /// When the coordinator was heard last; absent before it was.
    heard_ns: Option<u64>,
    /// Whose agent it is: that of the first coordinator that it heard.
    session: Option<SessionId>,
    status: Status,
    plan: Assembly,
    result: Option<Chunks>,
    /// The last chunk of it was asked for, and sent: all others had arrived.
    is_taken: bool,
    is_over: bool,
    outgoing: VecDeque<FromAgent>,
    events: VecDeque<AgentEvent>,
}

impl Agent {
    /// An agent that introduces itself from `now_ns` on, for this long at most.
    pub fn new(hello: Hello, wait_limit_ns: Option<u64>, now_ns: u64) -> Self {
        Self {
            hello,
            wait_limit_ns,
            began_ns: now_ns,
            hello_due_ns: now_ns,
            ..Self::default()
        }
    }

    /// The session that its messages belong to; absent before there is one.
    pub fn session(&self) -> Option<&SessionId> {
        self.session.as_ref()
    }

    /// The next message to be sent.
    pub fn outgoing(&mut self) -> Option<FromAgent> {
        self.outgoing.pop_front()
    }

    /// The next thing to do.
    pub fn event(&mut self) -> Option<AgentEvent> {
        self.events.pop_front()
    }

    /// Whether it has left.
    pub fn is_over(&self) -> bool {
        self.is_over
    }

    /// When to look again, at the latest.
    pub fn due_ns(&self) -> u64 {
        match self.heard_ns {
            Some(heard_ns) => heard_ns.saturating_add(SILENCE_NS),
            None => self.hello_due_ns,
        }
    }

    /// Takes a message of a coordinator, which came at `now_ns`. Those of another one than the
    /// first are ignored.
    pub fn receive(&mut self, now_ns: u64, session: &SessionId, message: ToAgent) {
        let is_other = self.session.as_ref().is_some_and(|own| own != session);
        if self.is_over || is_other {
            return;
        }
        match message {
            ToAgent::Refused { reason } if self.heard_ns.is_none() => {
                self.leave(Err(AgentError::Refused(reason)));
                return;
            }
            ToAgent::Refused { .. } => {}
            ToAgent::Ping { sequence, sent_ns } => {
                self.outgoing.push_back(FromAgent::Pong(Pong {
                    sequence,
                    sent_ns,
                    received_ns: now_ns,
                    replied_ns: now_ns,
                    status: self.status.clone(),
                }));
            }
            ToAgent::Plan { round, part, chunk } => {
                self.begin(round);
                if round == self.status.round {
                    self.take_plan(part, &chunk);
                }
            }
            ToAgent::Start(start)
                if start.round == self.status.round && self.status.start_ns.is_none() =>
            {
                let lead_ns = start.load_ns.saturating_sub(now_ns);
                if lead_ns > LEAD_NS_MAX {
                    self.leave(Err(AgentError::FarStart(lead_ns / 1_000_000_000)));
                    return;
                }
                self.status.start_ns = Some(start.load_ns);
                self.events.push_back(AgentEvent::Start {
                    load_ns: start.load_ns,
                });
            }
            // It was heard before.
            ToAgent::Start(_) => {}
            ToAgent::Stop(stop) => {
                self.begin(stop.round);
                let is_new = self.status.stop.as_ref() != Some(&stop);
                if is_new && stop.round == self.status.round {
                    self.status.stop = Some(stop.clone());
                    self.events.push_back(AgentEvent::Stop(stop));
                }
            }
            ToAgent::Fetch { round, number } => {
                let result = self.result.as_ref();
                let result = result.filter(|_| round == self.status.round);
                let chunk = result.and_then(|result| result.chunk(number));
                let is_last = |chunk: &Chunk| chunk.number + 1 == chunk.of;
                self.is_taken |= chunk.as_ref().is_some_and(is_last);
                let chunk = chunk.map(|chunk| FromAgent::Result { round, chunk });
                self.outgoing.extend(chunk);
            }
            ToAgent::Done => {
                self.leave(match self.status.phase {
                    Phase::Idle | Phase::Failed { .. } => Ok(()),
                    Phase::Finished { .. } if self.is_taken => Ok(()),
                    // Its result is still to come, or to be taken.
                    _ => Err(AgentError::Unwanted),
                });
                return;
            }
        }
        self.heard_ns = Some(now_ns);
        self.session.get_or_insert_with(|| session.clone());
    }

    /// Looks at what is due at `now_ns`.
    pub fn look(&mut self, now_ns: u64) {
        if self.is_over {
            return;
        }
        let Some(heard_ns) = self.heard_ns else {
            let waited_ns = now_ns.saturating_sub(self.began_ns);
            if self
                .wait_limit_ns
                .is_some_and(|limit_ns| waited_ns > limit_ns)
            {
                self.leave(Err(AgentError::NobodyAnswers(waited_ns / 1_000_000_000)));
            } else if now_ns >= self.hello_due_ns {
                self.hello_due_ns = now_ns + HELLO_NS;
                self.outgoing
                    .push_back(FromAgent::Hello(self.hello.clone()));
            }
            return;
        };
        let silent_ns = now_ns.saturating_sub(heard_ns);
        if silent_ns >= SILENCE_NS {
            let silent_s = silent_ns / 1_000_000_000;
            self.leave(Err(AgentError::CoordinatorGone(silent_s)));
        }
    }

    /// The run is in `phase`, and has come so far.
    pub fn has_come(&mut self, phase: Phase, counts: Counts) {
        let has_ended = matches!(
            self.status.phase,
            Phase::Finished { .. } | Phase::Failed { .. }
        );
        if !has_ended {
            self.status.phase = phase;
            self.status.counts = counts;
        }
    }

    /// The round is over. What was measured goes over in chunks of `chunk_bytes`.
    pub fn finished(&mut self, bytes: Vec<u8>, chunk_bytes: usize) {
        let chunks = Chunks::new(bytes, chunk_bytes);
        self.status.phase = Phase::Finished {
            chunks: chunks.count(),
        };
        self.result = Some(chunks);
        self.is_taken = false;
    }

    /// There is no result.
    pub fn failed(&mut self, reason: &str) {
        self.status.phase = Phase::Failed {
            reason: shortened(reason),
        };
    }

    /// Begins a round, if this is the next one and there is nothing left to do of the one before.
    fn begin(&mut self, round: u32) {
        let is_free = matches!(self.status.phase, Phase::Idle | Phase::Finished { .. });
        if round > self.status.round && is_free {
            self.status = Status {
                round,
                ..Status::default()
            };
            self.plan = Assembly::default();
            self.result = None;
        }
    }

    fn take_plan(&mut self, part: Part, chunk: &Chunk) {
        match self.plan.take(chunk, PLAN_BYTES_MAX) {
            Ok(whole) => {
                self.status.plan_chunks = self.plan.next();
                if let Some(bytes) = whole {
                    self.status.phase = Phase::SetUp;
                    self.events.push_back(AgentEvent::Plan { bytes, part });
                }
            }
            Err(error) => self.failed(&AgentError::Plan(error).to_string()),
        }
    }

    fn leave(&mut self, outcome: Result<(), AgentError>) {
        self.is_over = true;
        self.events.push_back(AgentEvent::Leave(outcome));
    }
}

/// Why an agent does not do what a plan says.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum AdmissionError {
    /// A server that it names is none of those that the agent may load or read from.
    #[error(
        "this agent may not load {host}:{port}; start it with --allow-target {host}:{port} to \
         allow that"
    )]
    Target {
        /// Name or address of the server, as in the plan.
        host: String,
        /// Its port.
        port: u16,
    },
    /// It names a socket among the files of the machine.
    #[error("a plan from elsewhere may not name the socket {}", .0.display())]
    UnixSocket(PathBuf),
    /// It names a process of the machine.
    #[error("a plan from elsewhere may not name a process of this machine")]
    Process,
    /// Its requests come from a program that it does not hold.
    #[error("a plan from elsewhere may not have its requests made by a program")]
    Generated,
    /// Its requests come from a script.
    #[error(
        "this agent runs no scripts; start it with --allow-scripts to let whoever may speak as \
         coordinator run programs there"
    )]
    Script,
}

/// Why a text names no target that could be allowed.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("`{0}` names no target; give HOST or HOST:PORT, an address of IPv6 in brackets")]
pub struct AllowedTargetError(String);

/// A server that an agent may load: all ports of a host, or one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AllowedTarget {
    pub(crate) host: String,
    pub(crate) port: Option<u16>,
}

impl AllowedTarget {
    fn holds(&self, target: &Target) -> bool {
        let is_port = self.port.is_none_or(|port| port == target.port);
        is_port && self.host.eq_ignore_ascii_case(&target.host)
    }
}

impl FromStr for AllowedTarget {
    type Err = AllowedTargetError;

    fn from_str(typed: &str) -> Result<Self, AllowedTargetError> {
        let error = || AllowedTargetError(typed.to_owned());
        let (host, port) = match typed.strip_prefix('[') {
            Some(rest) => {
                let (host, rest) = rest.split_once(']').ok_or_else(error)?;
                let port = rest.strip_prefix(':');
                if port.is_none() && !rest.is_empty() {
                    return Err(error());
                }
                (host, port)
            }
            None => match typed.split_once(':') {
                Some((host, port)) => (host, Some(port)),
                None => (typed, None),
            },
        };
        let port = port.map(str::parse).transpose().map_err(|_| error())?;
        let is_host = !host.is_empty() && !host.contains(['/', '@', ' ', '*']);
        if is_host {
            Ok(Self {
                host: host.to_owned(),
                port,
            })
        } else {
            Err(error())
        }
    }
}

/// As it is typed.
impl fmt::Display for AllowedTarget {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.host.contains(':') {
            write!(out, "[{}]", self.host)?
        } else {
            out.write_str(&self.host)?
        }
        self.port.map_or(Ok(()), |port| write!(out, ":{port}"))
    }
}

/// Whether an agent that may load `allowed` (any target, where it is empty) does what `plan` says.
///
/// # Errors
///
/// It does not.
pub fn admit(plan: &Plan, allowed: &[AllowedTarget]) -> Result<(), AdmissionError> {
    if !matches!(plan.observation.watch, Watch::Auto | Watch::Off) {
        return Err(AdmissionError::Process);
    }
    let counter = plan
        .observation
        .server_counter
        .iter()
        .map(|counter| &counter.target);
    for target in plan.targets().chain(counter) {
        if let Some(path) = &target.unix_socket {
            return Err(AdmissionError::UnixSocket(path.clone()));
        }
        if !allowed.is_empty() && !allowed.iter().any(|allowed| allowed.holds(target)) {
            return Err(AdmissionError::Target {
                host: target.host.clone(),
                port: target.port,
            });
        }
    }
    if plan.traffic.is_generated {
        Err(AdmissionError::Generated)
    } else {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use brunt_load::{PlanFile, RequestSet, RequestSpec, ServerCounter};

    fn target(url: &str) -> Target {
        Target::parse(url, None).expect("a URL")
    }

    fn plan(url: &str) -> Plan {
        Plan::new(target(url), RequestSet::one(RequestSpec::get("/")))
    }

    fn allowed(typed: &[&str]) -> Vec<AllowedTarget> {
        let read = typed.iter().map(|typed| typed.parse());
        read.collect::<Result<_, _>>().expect("targets")
    }

    #[test]
    fn only_targets_of_the_list_are_loaded() {
        for (url, typed, is_allowed) in [
            ("http://host/", &[][..], true),
            ("http://host/", &["host"], true),
            ("http://HOST:81/", &["host"], true),
            ("http://host:81/", &["other", "host:81"], true),
            ("http://host:81/", &["host:80"], false),
            ("http://host.example/", &["host"], false),
            ("http://[::1]:7/", &["[::1]:7"], true),
            ("http://[::1]:7/", &["[::1]"], true),
            ("http://127.0.0.1/", &["localhost"], false),
        ] {
            let admitted = admit(&plan(url), &allowed(typed));
            assert_eq!(admitted.is_ok(), is_allowed, "{url} {typed:?}");
        }
    }

    #[test]
    fn pages_beside_the_load_are_targets_too() {
        let mut counted = plan("http://host/");
        counted.observation.server_counter = Some(ServerCounter {
            target: target("http://metadata/"),
            path: None,
        });
        let mut further = plan("http://host/");
        further.further_targets = vec![target("http://metadata/")];
        for plan in [counted, further] {
            assert_eq!(
                admit(&plan, &allowed(&["host"])),
                Err(AdmissionError::Target {
                    host: "metadata".to_owned(),
                    port: 80
                })
            );
            assert_eq!(admit(&plan, &[]), Ok(()));
        }
    }

    #[test]
    fn nothing_of_the_machine_is_named() {
        let mut with_socket = plan("http://host/");
        with_socket.target.unix_socket = Some("/run/docker.sock".into());
        let mut with_process = plan("http://host/");
        with_process.observation.watch = Watch::Process(1);
        let mut with_script = plan("http://host/");
        with_script.traffic.is_generated = true;
        for (plan, words) in [
            (with_socket, "/run/docker.sock"),
            (with_process, "process"),
            (with_script, "program"),
        ] {
            let error = admit(&plan, &[]).expect_err("it is refused").to_string();
            assert!(error.contains(words), "{error}");
        }
        // The content of files is in a plan, their paths cannot be.
        let mut with_file = plan("https://host/");
        with_file.connection.tls.roots = Some(PlanFile::At("/etc/shadow".into()));
        assert!(serde_json::to_vec(&with_file).is_err());
    }

    #[test]
    fn what_is_allowed_reads_as_it_was_typed() {
        for typed in ["host", "host:81", "127.0.0.1:1", "[::1]", "[::1]:7"] {
            let read: AllowedTarget = typed.parse().expect("a target");
            assert_eq!(read.to_string(), typed);
        }
    }

    #[test]
    fn what_names_no_target_is_refused() {
        for wrong in [
            "",
            ":80",
            "host:",
            "host:x",
            "host:99999",
            "http://host",
            "[::1",
            "[::1]7",
            "*",
        ] {
            assert!(wrong.parse::<AllowedTarget>().is_err(), "{wrong}");
        }
    }
}
