//! How the simulated server treats streams.

use std::num::NonZeroU64;

/// How the simulated server treats streams.
#[derive(Clone, Debug, PartialEq)]
pub struct SimStreams {
    /// How fast it reads each of them.
    pub reads: SimReads,
    /// Bytes of a stream after which it reads no more of it; absent: it reads on.
    pub stops_after: Option<u64>,
    /// Bytes of a stream after which it closes it; absent: it waits for brunt's end.
    pub closes_after: Option<NonZeroU64>,
    /// Bytes per second that it sends on each; absent: none.
    pub sends_per_s: Option<NonZeroU64>,
    /// Bytes that the receive buffer of each holds.
    pub buffer_bytes: NonZeroU64,
    /// How often what is sent at once is lost on its way and sent again, 0 to 1.
    pub loss: f64,
}

/// How fast the simulated server reads a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SimReads {
    /// The server reads what comes at once.
    AsItComes,
    /// The server reads so many bytes per second.
    PerSecond(NonZeroU64),
    /// The server reads nothing.
    Nothing,
}

impl Default for SimStreams {
    /// A server that reads what comes, sends 100 MB/s, and has a receive buffer of 256 KiB.
    fn default() -> Self {
        Self {
            reads: SimReads::AsItComes,
            stops_after: None,
            closes_after: None,
            sends_per_s: NonZeroU64::new(100_000_000),
            buffer_bytes: NonZeroU64::MIN.saturating_add(256 * 1024 - 1),
            loss: 0.0,
        }
    }
}
