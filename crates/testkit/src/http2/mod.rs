//! HTTP/2 in simulation: the reference server speaks it, and the simulated one decides on answers.

mod connection;
mod directing;
pub(super) mod frames;
mod settings;

pub(super) use connection::Directed;
pub use settings::{SettingsChange, SimHttp2};
