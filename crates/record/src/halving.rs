//! The experiment within the warm-up of a closed loop, as it is stored: replies while half of the
//! connections paused.

use serde::{Deserialize, Serialize};

/// What one worker did in the experiment. Its time is cut into slices. In the first ones all
/// connections are used, then half of them pause, then all are used for somewhat longer, then half
/// pause again, so that a steady drift falls on both levels alike; the last slices belong to the
/// window's start.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Halving {
    /// Connections that the worker holds.
    pub connections: u32,
    /// Connections that are used while the others pause.
    pub used_by_half: u32,
    /// Connections whose first requests were still unanswered at its end: the server serves others
    /// first, and half of the connections may be all that it serves.
    pub starved: u32,
    /// Length of a slice, nanoseconds.
    pub slice_ns: u64,
    /// Complete replies in each slice, whatever their status; in the first one with those of the
    /// warm-up before it.
    pub replies: Vec<u64>,
}

impl Halving {
    /// Slices of the experiment.
    pub const SLICES: usize = 50;
    /// The longest experiment, nanoseconds: in a longer warm-up it is the last part.
    pub const LENGTH_NS_MAX: u64 = 5_000_000_000;
    /// Most connections of a worker that takes part: with more, switching takes too long.
    pub const CONNECTIONS_MAX: u32 = 1_000;
    /// The shortest one, nanoseconds: in a shorter warm-up there is none.
    pub const LENGTH_NS_MIN: u64 = 250_000_000;

    /// Edges of the stretches: half of the connections pause from the first to the second, and from
    /// the third to the fourth.
    pub const EDGES: [usize; 4] = [3, 18, 30, 45];

    /// Whether half of the connections pause in this slice.
    pub fn pauses_half(slice: usize) -> bool {
        let [from, until, again_from, again_until] = Self::EDGES;
        (from..until).contains(&slice) || (again_from..again_until).contains(&slice)
    }
}
