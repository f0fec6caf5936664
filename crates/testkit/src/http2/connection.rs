//! What the simulation keeps of a connection over HTTP/2.

use std::collections::BTreeSet;

/// What is known of a connection beside what the reference server knows.
#[derive(Debug, Default)]
pub(crate) struct Directed {
    /// Something of brunt's reached the server.
    pub(super) has_begun: bool,
    /// The server's settings were sent, and a GOAWAY.
    pub(super) is_greeted: bool,
    pub(super) has_left: bool,
    /// Requests that were complete.
    pub(super) asked: u64,
    /// Streams whose answers are going to be whole.
    pub(super) whole: BTreeSet<u32>,
    /// What is sent next is cut, and the connection ends with it.
    pub(super) is_cut: bool,
}
