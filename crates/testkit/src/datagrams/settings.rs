//! How the simulated network treats datagrams.

use std::num::NonZeroU16;

/// The network between brunt and a server of datagrams. Equal ones, on either way.
#[derive(Clone, Debug, PartialEq)]
pub struct DatagramNetwork {
    /// How often a datagram is lost, 0 to 1.
    pub lost: f64,
    /// How often one that is not lost comes twice, 0 to 1.
    pub repeated: f64,
    /// How often one that is not lost is held back, so that others overtake it, 0 to 1.
    pub held_back: f64,
    /// How often one that may be marked is (CE), 0 to 1.
    pub marked: f64,
    /// For how long one is held back, nanoseconds.
    pub held_back_ns: u64,
    /// What happens at an instant, whatever the probabilities say; in the order of the instants.
    pub planned: Vec<PlannedFault>,
    /// Bytes of the largest datagram that the path carries; larger ones are lost. Absent: any.
    pub bytes_max: Option<NonZeroU16>,
    /// Bytes of datagrams that wait in a socket of brunt's, at most; others are dropped.
    pub socket_bytes_max: u32,
}

/// Something that happens once, to the first datagram that is sent from an instant on, on either
/// way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlannedFault {
    /// The instant, nanoseconds from the start of the simulation.
    pub at_ns: u64,
    /// What happens to it.
    pub fault: DatagramFault,
}

/// What may happen to a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DatagramFault {
    /// It is lost.
    Lost,
    /// It comes twice.
    Repeated,
    /// It is held back.
    HeldBack,
    /// It is marked (CE), if it may be.
    Marked,
}

impl Default for DatagramNetwork {
    /// One that loses nothing, with the buffers that Linux gives to sockets.
    fn default() -> Self {
        Self {
            lost: 0.0,
            repeated: 0.0,
            held_back: 0.0,
            marked: 0.0,
            held_back_ns: 0,
            planned: Vec::new(),
            bytes_max: None,
            socket_bytes_max: 212_992,
        }
    }
}
