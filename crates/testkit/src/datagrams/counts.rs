//! What the simulated network counted of datagrams.

/// Datagrams, each way and at its end. Exact, taken when no datagram is in flight:
/// `served = to_client.sent`, and `to_client.arrived = delivered + dropped + unclaimed`. Where the
/// server sends back what comes, `to_server.arrived = served + refused`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DatagramCounts {
    /// From brunt to the server.
    pub to_server: WayCounts,
    /// Back.
    pub to_client: WayCounts,
    /// Those that the server sent.
    pub served: u64,
    /// Those that came while it was gone.
    pub refused: u64,
    /// Those that brunt took.
    pub delivered: u64,
    /// Those that found the buffer of a socket full.
    pub dropped: u64,
    /// Those that came to a socket that was closed, or that brunt closed before it took them.
    pub unclaimed: u64,
}

/// Datagrams on one way: `sent + repeated = lost + too_large + arrived`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WayCounts {
    /// Given to the network.
    pub sent: u64,
    /// Lost there.
    pub lost: u64,
    /// Larger than what the path carries.
    pub too_large: u64,
    /// Second ones.
    pub repeated: u64,
    /// Held back.
    pub held_back: u64,
    /// Marked (CE).
    pub marked: u64,
    /// Arrived.
    pub arrived: u64,
}
