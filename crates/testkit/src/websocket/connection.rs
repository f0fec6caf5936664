//! What the simulated server keeps of a connection of WebSocket.

use std::collections::VecDeque;
use std::rc::Rc;

/// What the server keeps of a connection.
#[derive(Debug, Default)]
pub(crate) struct WebSocket {
    /// Messages that are not answered yet, oldest first: whether they are texts, and their bytes.
    pub(super) messages: VecDeque<(bool, Rc<[u8]>)>,
    /// Payloads of pings whose pongs are awaited, oldest first.
    pub(super) pings: VecDeque<u64>,
    pub(super) answers: u64,
    /// A Close frame was sent: nothing is said behind it.
    pub(super) has_closed: bool,
    /// A Close frame of brunt came.
    pub(super) was_closed: bool,
}

impl WebSocket {
    /// What waits will not be answered.
    pub(crate) fn abandon(&mut self) {
        self.messages.clear();
    }
}
