//! A simulated network, server, machine and clock: the backend of a client in virtual time,
//! deterministic from a seed. An hour passes in the time that it takes to compute what happens in
//! it.
//!
//! Open `machine` first: all workers and their one network; then `sim`, the backend of one of them.
//! The servers behind it are in `reference` and `malformed`.

mod client;
mod counts;
mod cpu;
mod datagrams;
mod evidence;
mod handle;
mod http1;
mod ledger;
mod link;
mod machine;
pub mod malformed;
mod message;
mod message_scanner;
mod messages;
mod outside;
mod piece;
mod reference;
mod reference_traffic;
mod reply;
mod request;
mod served_protocol;
mod service;
mod settings;
mod side;
mod sim;
mod streams;
mod tls;
mod world;

pub use counts::SimCounts;
pub use datagrams::DatagramNetwork;
pub use machine::SimMachine;
pub use settings::{
    AfterMalformed, Bursts, Costs, Framing, IdleLimit, LateWakeUps, Limiter, Outage, ServiceTime,
    SimFaults, SimHost, SimMessages, SimServer, SimSettings, Stall, Taken,
};
pub use sim::{Sim, SimDatagrams};
pub use streams::{SimReads, SimStreams};
