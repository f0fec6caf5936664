//! Streams of bytes, and the simulated server that reads and sends them.

mod serving;
mod settings;
pub(super) mod stream;

pub use settings::{SimReads, SimStreams};
