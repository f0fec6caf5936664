//! Everything that is decided before a run.

use std::net::IpAddr;
use std::num::{NonZeroU32, NonZeroU64};

use crate::Target;

/// The backend that was asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum BackendChoice {
    /// io_uring where the kernel allows it, else epoll.
    #[default]
    Auto,
    /// io_uring; where it is refused, epoll, and the report says so.
    Uring,
    /// epoll.
    Epoll,
    /// A simulated network in virtual time.
    Sim,
}

/// What one request holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestSpec {
    /// Method, such as `GET`.
    pub method: String,
    /// Header fields, in the order in which they are sent.
    pub headers: Vec<(String, String)>,
    /// Body; empty for none.
    pub body: Vec<u8>,
}

/// When a run ends: whichever comes first. At least one is given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stop {
    /// Length of the measure phase, nanoseconds.
    pub duration_ns: Option<u64>,
    /// Requests sent in the measure phase.
    pub requests: Option<u64>,
}

/// For how many requests a connection is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reuse {
    /// As many as the server allows.
    Unlimited,
    /// At most this many; the last one asks the server to close.
    Requests(NonZeroU64),
}

/// Disturbances of brunt itself, for tests of its own checks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Faults {
    /// Worker, and how much later than the others it starts, nanoseconds.
    pub start_delay: Option<(u32, u64)>,
    /// Worker, and how far its window is moved against the others', nanoseconds.
    pub window_shift: Option<(u32, u64)>,
}

/// A closed-loop run over HTTP/1.1.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The server under test.
    pub target: Target,
    /// What is sent.
    pub request: RequestSpec,
    /// Connections held at once, all workers together.
    pub connections: NonZeroU32,
    /// Worker threads; at most `connections`.
    pub workers: NonZeroU32,
    /// Requests under way per connection.
    pub pipeline: NonZeroU32,
    /// When connections are replaced.
    pub reuse: Reuse,
    /// When the run ends.
    pub stop: Stop,
    /// Length of the warm-up, nanoseconds.
    pub warmup_ns: u64,
    /// Limit of one request from its send to the end of its reply, nanoseconds.
    pub timeout_ns: u64,
    /// Limit of one connection attempt, nanoseconds.
    pub connect_timeout_ns: u64,
    /// Limit of the drain phase, nanoseconds.
    pub drain_limit_ns: u64,
    /// The backend that was asked for.
    pub backend: BackendChoice,
    /// Local addresses to connect from; empty lets the kernel choose.
    pub source_addresses: Vec<IpAddr>,
    /// Allows more workers than usable CPUs.
    pub oversubscribe: bool,
    /// Disturbances of brunt itself.
    pub faults: Faults,
}
