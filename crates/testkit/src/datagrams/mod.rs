//! Simulated datagram sockets, their network and the server behind it.

pub(crate) mod backend;
mod counts;
mod datagram;
mod network;
mod reference;
mod settings;

pub use counts::{DatagramCounts, WayCounts};
pub use settings::{DatagramFault, DatagramNetwork, PlannedFault};
