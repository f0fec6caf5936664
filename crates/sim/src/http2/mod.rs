//! The simulated server's side of HTTP/2.

mod answer;
mod connection;
mod head;
pub(super) mod reader;
mod serving;
mod settings;

pub(super) use connection::Http2;
pub use settings::{HeadCoding, Http2Malformed, ResetCode, SettingsChange, SimHttp2};
