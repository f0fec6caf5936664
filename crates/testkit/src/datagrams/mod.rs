//! Simulated datagram sockets, their network and the server behind it.

mod client;
mod datagram;
pub(crate) mod network;
mod reference;
mod settings;

pub use settings::DatagramNetwork;
