//! How the simulated network treats datagrams.

/// The network between brunt and a server of datagrams. Equal ones, on either way.
#[derive(Clone, Copy, Debug, PartialEq)]
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
    /// Bytes of datagrams that wait in a socket of brunt's, at most; others are dropped.
    pub socket_bytes_max: u32,
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
            socket_bytes_max: 212_992,
        }
    }
}
