//! Simulated datagram sockets, their network and the server behind it.

mod client;
mod counts;
mod datagram;
pub(crate) mod network;
mod reference;
mod settings;

pub use counts::{DatagramCounts, WayCounts};
pub use settings::{DatagramFault, DatagramNetwork, PlannedFault};
