//! What a simulation simulates: the server, the network, and what goes wrong in brunt itself.

use std::num::{NonZeroU32, NonZeroU64};

use brunt_proto::messages::Framing as MessageFraming;
use brunt_server::Http2Options;
use rand::Rng;
use rand_pcg::Pcg64;

use super::datagrams::DatagramNetwork;
use super::streams::SimStreams;

const US: u64 = 1_000;
const MS: u64 = 1_000_000;

/// A simulation. Everything in it follows from these values and the plan alone: equal ones give
/// equal runs, to the last bit.
///
/// Every worker has a network and a server of its own, so that the limits of the server are per
/// worker, and a stream of random numbers of its own.
#[derive(Clone, Debug, PartialEq)]
pub struct SimSettings {
    /// Where the random numbers begin.
    pub seed: u64,
    /// The server.
    pub server: SimServer,
    /// The reference server speaks HTTP/1.1 in its place, as it always does HTTP/2 (with these
    /// options) and WebSocket: each path has its answer. Of `server` only what concerns attempts
    /// to connect, idle connections, outages and pieces of answers holds then. What it counts is
    /// [`crate::SimMachine::reference_counters`].
    pub reference: Option<Http2Options>,
    /// How the network treats datagrams. Of `server` its outage holds then, and that this machine
    /// has no socket.
    pub datagrams: DatagramNetwork,
    /// One way through the network, nanoseconds. A connection takes a round trip to open.
    pub network_ns: u64,
    /// Bytes that the network takes at once from a connection; each further such amount of a
    /// request takes a round trip more.
    pub send_buffer_bytes: NonZeroU32,
    /// What brunt's own work takes.
    pub costs: Costs,
    /// Delays of brunt's wake-ups by the scheduler.
    pub late_wake_ups: Option<LateWakeUps>,
    /// The machine that brunt runs on. Absent: each worker has a CPU to itself, and nothing is
    /// read of machine, threads and server.
    pub host: Option<SimHost>,
    /// When an interrupt comes, nanoseconds from the start of the simulation.
    pub interrupt_ns: Option<u64>,
}

impl SimSettings {
    /// A server that takes 1 ms on average (exponential) for an answer of 100 bytes, 50 µs away;
    /// nothing goes wrong.
    pub fn new(seed: u64) -> Self {
        Self {
            seed,
            server: SimServer::default(),
            reference: None,
            datagrams: DatagramNetwork::default(),
            network_ns: 50 * US,
            send_buffer_bytes: NonZeroU32::MIN.saturating_add(64 * 1024 - 1),
            costs: Costs::default(),
            late_wake_ups: None,
            host: None,
            interrupt_ns: None,
        }
    }
}

/// The simulated server of HTTP/1.1, messages and streams.
#[derive(Clone, Debug, PartialEq)]
pub struct SimServer {
    /// Time from the turn of a request until its answer. The requests of one connection are
    /// answered in order, one after the other.
    pub service: ServiceTime,
    /// Requests in service at once; the others queue in the order in which their turn came.
    /// Absent: no limit.
    pub concurrency: Option<NonZeroU32>,
    /// Part of the service time, at the start of the simulation, that is added to it per second:
    /// above 0 the server becomes slower.
    pub drift_per_s: f64,
    /// From the end of the service until the answer, nanoseconds: the server waits for others, and
    /// the place is free for the next request.
    pub delay_ns: u64,
    /// Refuses what comes above a rate.
    pub limiter: Option<Limiter>,
    /// Silences in which nothing is answered; what falls into one is answered at its end.
    pub stall: Option<Stall>,
    /// The server closes a connection after this many answers.
    pub close_after: Option<NonZeroU64>,
    /// It says so in the last answer (`Connection: close`).
    pub announces_close: bool,
    /// It closes when a request asks for it.
    pub honours_close: bool,
    /// It closes connections on which nothing happens for a while. Absent: it keeps them.
    pub idle: Option<IdleLimit>,
    /// Connections that it takes in all; it does not answer further attempts. Absent: no limit.
    pub accepts_max: Option<NonZeroU64>,
    /// A time in which the server is gone.
    pub outage: Option<Outage>,
    /// How often something goes wrong.
    pub faults: SimFaults,
    /// Bytes of the body of an answer.
    pub body_bytes: u32,
    /// How its end is marked.
    pub framing: Framing,
    /// Interim answers (103) before each answer.
    pub interim: u32,
    /// What a malformed answer consists of.
    pub malformed: Vec<u8>,
    /// What follows a malformed answer.
    pub after_malformed: AfterMalformed,
    /// Most pieces in which an answer arrives, cut at random; 1 for whole ones.
    pub pieces_max: NonZeroU32,
    /// Longest time between two of them, nanoseconds (uniform from 0).
    pub piece_gap_ns: u64,
    /// How it treats streams, where brunt has any; absent: as by default.
    pub streams: Option<SimStreams>,
    /// How it exchanges messages, where brunt sends any; absent: as by default.
    pub messages: Option<SimMessages>,
}

impl Default for SimServer {
    fn default() -> Self {
        Self {
            service: ServiceTime::Exponential { mean_ns: MS },
            concurrency: None,
            drift_per_s: 0.0,
            delay_ns: 0,
            limiter: None,
            stall: None,
            close_after: None,
            announces_close: true,
            honours_close: true,
            idle: None,
            accepts_max: None,
            outage: None,
            faults: SimFaults::default(),
            body_bytes: 100,
            framing: Framing::Length,
            interim: 0,
            malformed: b"this is not HTTP\r\n\r\n".to_vec(),
            after_malformed: AfterMalformed::Close,
            pieces_max: NonZeroU32::MIN,
            piece_gap_ns: 0,
            streams: None,
            messages: None,
        }
    }
}

/// How the simulated server exchanges messages.
#[derive(Clone, Debug, PartialEq)]
pub struct SimMessages {
    /// Where a message of brunt's ends.
    pub framing: MessageFraming,
    /// The answer to each; absent: the same bytes.
    pub reply: Option<Vec<u8>>,
    /// It ends the connection behind its answer.
    pub ends_connection: bool,
    /// The first message of a connection opens it, and is no request.
    pub has_opening: bool,
    /// What comes unasked behind an answer, where [`SimFaults::extra_bytes`] has it so.
    pub push: Vec<u8>,
}

impl Default for SimMessages {
    /// An echo of lines.
    fn default() -> Self {
        Self {
            framing: MessageFraming::Line,
            reply: None,
            ends_connection: false,
            has_opening: false,
            push: b"push\n".to_vec(),
        }
    }
}

/// How long the server takes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ServiceTime {
    /// Always the same, nanoseconds.
    Constant(u64),
    /// Evenly spread.
    Uniform {
        /// Shortest, nanoseconds.
        min_ns: u64,
        /// Longest, nanoseconds; not under `min_ns`.
        max_ns: u64,
    },
    /// Exponentially distributed.
    Exponential {
        /// Mean, nanoseconds.
        mean_ns: u64,
    },
    /// Mostly one time, and rarely another one: a cache that misses.
    Bimodal {
        /// The usual one, nanoseconds.
        usual_ns: u64,
        /// The rare one, nanoseconds.
        rare_ns: u64,
        /// How often it is the rare one, 0 to 1.
        rare: f64,
    },
    /// Heavy-tailed: longer than `t` with probability `(min_ns / t) ^ shape`. What is longer than
    /// `max_ns` takes that long.
    Pareto {
        /// Shortest, nanoseconds.
        min_ns: u64,
        /// Longest, nanoseconds.
        max_ns: u64,
        /// Above 0; up to 2 the variance has no bound but the one that `max_ns` gives.
        shape: f64,
    },
}

impl ServiceTime {
    /// Draws one.
    pub(super) fn draw(self, random: &mut impl Rng) -> u64 {
        match self {
            Self::Constant(ns) => ns,
            Self::Uniform { min_ns, max_ns } => random.random_range(min_ns..=max_ns.max(min_ns)),
            Self::Exponential { mean_ns } => {
                let even: f64 = random.random();
                (-(1.0 - even).ln() * mean_ns as f64) as u64
            }
            Self::Bimodal {
                usual_ns,
                rare_ns,
                rare,
            } => {
                if random.random::<f64>() < rare {
                    rare_ns
                } else {
                    usual_ns
                }
            }
            Self::Pareto {
                min_ns,
                max_ns,
                shape,
            } => {
                let even: f64 = random.random();
                let ns = min_ns as f64 * (1.0 - even).powf(-1.0 / shape);
                (ns as u64).min(max_ns)
            }
        }
    }
}

/// A limit of the rate: what is too early is answered with status 429 and `Retry-After`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limiter {
    /// Time per request that is admitted, nanoseconds: the inverse of the rate.
    pub every_ns: NonZeroU64,
    /// Requests admitted at once after a pause.
    pub burst: NonZeroU32,
    /// From the turn of a request that is refused until its answer, nanoseconds.
    pub refusal_ns: u64,
}

/// Silences that come at fixed times: the first `silence_ns` of every `period_ns`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stall {
    /// Length of a silence, nanoseconds; at most the period.
    pub silence_ns: u64,
    /// From the start of one to the start of the next, nanoseconds.
    pub period_ns: NonZeroU64,
}

/// For how long a connection may have nothing in flight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IdleLimit {
    /// Nanoseconds, from its opening or its last answer on.
    pub after_ns: u64,
    /// A reply with status 408 comes before the end.
    pub sends_408: bool,
}

/// A time in which the server is gone: its connections are reset at the start, and attempts to
/// connect are refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outage {
    /// First instant, nanoseconds from the start of the simulation.
    pub from_ns: u64,
    /// First instant after it.
    pub until_ns: u64,
}

impl Outage {
    /// Whether the server is gone at `at_ns`.
    pub(super) fn holds(self, at_ns: u64) -> bool {
        (self.from_ns..self.until_ns).contains(&at_ns)
    }
}

/// Probabilities, 0 to 1: the first five of an attempt to connect, the others of a request, which
/// meets one of them at most.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct SimFaults {
    /// This machine has no socket for the attempt.
    pub no_socket: f64,
    /// The attempt is refused.
    pub connect_refused: f64,
    /// The attempt is not answered.
    pub connect_unanswered: f64,
    /// The server closes when the handshake of TLS begins, or the opening message comes.
    pub handshake_cut: f64,
    /// It falls silent then.
    pub handshake_silent: f64,
    /// No answer, to this request and all later ones on the connection.
    pub silent: f64,
    /// The connection is reset in place of an answer.
    pub reset: f64,
    /// The connection is closed in place of an answer.
    pub closed: f64,
    /// The connection is closed in the middle of the answer.
    pub truncated: f64,
    /// A malformed answer; to a message a wrong echo, or the end of the connection.
    pub malformed: f64,
    /// Four unasked bytes behind the answer; with messages [`SimMessages::push`].
    pub extra_bytes: f64,
    /// An answer with status 503.
    pub error_status: f64,
}

/// How the end of a body is marked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Framing {
    /// Content-Length.
    #[default]
    Length,
    /// Chunks of at most 16 KiB, with a trailer.
    Chunked,
    /// An HTTP/1.0 reply that ends with the connection.
    UntilClose,
}

/// What the server does after a malformed answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AfterMalformed {
    /// It closes.
    #[default]
    Close,
    /// It goes on with the next request.
    Continue,
    /// It falls silent.
    FallSilent,
}

/// What brunt's own work takes, so that virtual time passes while it works; nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Costs {
    /// Reading the clock.
    pub clock_ns: u64,
    /// Starting a connection attempt, or closing.
    pub open_ns: u64,
    /// A send.
    pub send_ns: u64,
    /// Taking an event, and waiting, beside the time waited for.
    pub event_ns: u64,
}

impl Costs {
    /// Work takes no time at all.
    pub const NONE: Self = Self {
        clock_ns: 0,
        open_ns: 0,
        send_ns: 0,
        event_ns: 0,
    };
}

impl Default for Costs {
    fn default() -> Self {
        Self {
            clock_ns: 20,
            open_ns: 5_000,
            send_ns: 2_000,
            event_ns: 500,
        }
    }
}

/// Delays of wake-ups.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LateWakeUps {
    /// How often a sleep ends late, 0 to 1.
    pub probability: f64,
    /// How late, nanoseconds.
    pub delay_ns: u64,
}

/// The machine that brunt runs on, with a CPU of its own for each worker. It is read as exactly as
/// it is simulated: all of brunt's work ([`Costs`]) is CPU time in user space, and a server with a
/// limit to its concurrency has as many CPUs, each busy while it serves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SimHost {
    /// The hypervisor takes the CPUs. It is steal while a worker wants to run, as in Linux.
    pub steal: Option<Taken>,
    /// Another process takes them; the worker waits in the run queue.
    pub contention: Option<Taken>,
    /// The hypervisor takes them in bursts, and the server's with them. It is steal while a worker,
    /// or the server, wants to run.
    pub bursts: Option<Bursts>,
}

/// CPU time that is taken away in bursts of different lengths, one at some instant of each period.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bursts {
    /// Shortest, nanoseconds.
    pub shortest_ns: u64,
    /// Longest, nanoseconds, less than the period.
    pub longest_ns: u64,
    /// The period, nanoseconds.
    pub period_ns: NonZeroU64,
    /// Which bursts.
    pub seed: u64,
}

impl Bursts {
    /// The burst of period `number`: from when to when.
    fn of_period(self, number: u64) -> (u64, u64) {
        let period_ns = self.period_ns.get();
        let mut random = Pcg64::new(number.into(), self.seed.into());
        let longest_ns = self.longest_ns.min(period_ns - 1);
        let length_ns = random.random_range(self.shortest_ns.min(longest_ns)..=longest_ns);
        // The last nanosecond of each period is left.
        let from_ns = number * period_ns + random.random_range(0..period_ns - length_ns);
        (from_ns, from_ns + length_ns)
    }

    /// Until when the CPU is gone, if it is at `at_ns`.
    pub(super) fn until_ns(self, at_ns: u64) -> Option<u64> {
        let (from_ns, until_ns) = self.of_period(at_ns / self.period_ns);
        (from_ns..until_ns).contains(&at_ns).then_some(until_ns)
    }

    /// When the next burst after `at_ns` begins.
    pub(super) fn next_ns(self, at_ns: u64) -> u64 {
        let number = at_ns / self.period_ns;
        let (from_ns, _) = self.of_period(number);
        if from_ns > at_ns {
            from_ns
        } else {
            self.of_period(number + 1).0
        }
    }

    /// When `work_ns` of work is done that begins at `from_ns`.
    pub(super) fn done_ns(self, from_ns: u64, work_ns: u64) -> u64 {
        let (mut now_ns, mut left_ns) = (from_ns, work_ns);
        loop {
            if let Some(until_ns) = self.until_ns(now_ns) {
                now_ns = until_ns;
            }
            let next_ns = self.next_ns(now_ns);
            if left_ns <= next_ns - now_ns {
                return now_ns + left_ns;
            }
            left_ns -= next_ns - now_ns;
            now_ns = next_ns;
        }
    }
}

/// CPU time that is taken away at fixed times: the first `part_ns` of every `period_ns`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Taken {
    /// How much is taken at once, nanoseconds; less than the period: of a longer part the last
    /// nanosecond of each period is left.
    pub part_ns: u64,
    /// From the start of one part to the start of the next, nanoseconds.
    pub period_ns: NonZeroU64,
}

impl Taken {
    /// Until when the CPU is gone, if it is at `at_ns`.
    pub(super) fn until_ns(self, at_ns: u64) -> Option<u64> {
        let into_period_ns = at_ns % self.period_ns;
        let part_ns = self.part_ns.min(self.period_ns.get() - 1);
        (into_period_ns < part_ns).then(|| at_ns - into_period_ns + part_ns)
    }

    /// When the next part after `at_ns` begins.
    pub(super) fn next_ns(self, at_ns: u64) -> u64 {
        (at_ns - at_ns % self.period_ns).saturating_add(self.period_ns.get())
    }
}
