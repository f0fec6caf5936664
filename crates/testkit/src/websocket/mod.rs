//! The simulated server's side of WebSocket.

mod connection;
pub(super) mod scanner;
mod serving;
mod settings;

pub(super) use connection::WebSocket;
pub use settings::SimWebSocket;
