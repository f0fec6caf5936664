//! The names of the signals.

use std::fmt;

use serde::{Serialize, Serializer};

/// A signal by its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SignalId {
    /// How idle the least idle worker is.
    WorkerIdle,
    /// Brunt's own share of response times.
    OwnShare,
    /// How late planned requests were sent, and how many were not though they could be.
    ScheduleLag,
    /// How long workers waited for a CPU.
    RunQueueWait,
    /// Whether a CPU quota stopped brunt.
    Throttling,
    /// Whether brunt did not run for long.
    Pauses,
    /// Whether brunt's sockets were full, or the kernel dropped what brunt had not read.
    UnreadData,
    /// Whether brunt's send buffers were full.
    SendBuffer,
    /// Whether brunt ran out of ports or descriptors.
    ClientLimits,
    /// Segments that were sent again or overtaken, and round trips that grew with them.
    LostSegments,
    /// How full the link was.
    LinkUse,
    /// How much of its CPU the server used.
    ServerCpu,
    /// Whether a CPU quota stopped the server.
    ServerThrottling,
    /// Whether the server's accept queue overflowed.
    AcceptQueue,
    /// Whether the server did not read.
    ReceiveWindow,
    /// Whether others load the server as well.
    OtherClients,
    /// Whether other programs took CPUs that brunt or the server needed.
    OtherPrograms,
    /// Whether brunt and server shared CPUs.
    SharedHost,
    /// Whether the server refused work.
    Refusals,
    /// Whether the planned rate was met.
    PlannedRate,
    /// Whether planned requests piled up.
    Backlog,
    /// How busy the connections were.
    ConnectionsBusy,
    /// How the rate grows with the connections.
    Elasticity,
    /// How much the hypervisor took.
    Steal,
    /// Whether the rate was steady.
    Drift,
    /// Whether there are responses enough.
    Samples,
}

impl SignalId {
    /// The signal's name in data, such as `worker_idle`.
    pub fn name(self) -> &'static str {
        match self {
            Self::WorkerIdle => "worker_idle",
            Self::OwnShare => "own_share",
            Self::ScheduleLag => "schedule_lag",
            Self::RunQueueWait => "run_queue_wait",
            Self::Throttling => "throttling",
            Self::Pauses => "pauses",
            Self::UnreadData => "unread_data",
            Self::SendBuffer => "send_buffer",
            Self::ClientLimits => "client_limits",
            Self::LostSegments => "lost_segments",
            Self::LinkUse => "link_use",
            Self::ServerCpu => "server_cpu",
            Self::ServerThrottling => "server_throttling",
            Self::AcceptQueue => "accept_queue",
            Self::ReceiveWindow => "receive_window",
            Self::OtherClients => "other_clients",
            Self::OtherPrograms => "other_programs",
            Self::SharedHost => "shared_host",
            Self::Refusals => "refusals",
            Self::PlannedRate => "planned_rate",
            Self::Backlog => "backlog",
            Self::ConnectionsBusy => "connections_busy",
            Self::Elasticity => "elasticity",
            Self::Steal => "steal",
            Self::Drift => "drift",
            Self::Samples => "samples",
        }
    }
}

impl fmt::Display for SignalId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl Serialize for SignalId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}
