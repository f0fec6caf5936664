//! What a worker knows of each connection, whatever is spoken on it.

/// What each connection has, whatever is spoken on it.
#[derive(Debug, Default)]
pub(crate) struct Link {
    /// Whether there is a connection in the slot.
    pub(crate) open: bool,
    /// Whether a send is in flight.
    pub(crate) sending: bool,
    /// Whether the peer has closed its side.
    pub(crate) ended: bool,
    /// Whether the connection is among those to go on with.
    pub(crate) queued: bool,
    /// The page of the worker's calendar on which the peer or an answer to it got on last.
    pub(crate) moved: u16,
}

/// A connection of a service, or a slot without one.
pub(crate) trait Connection: Default {
    fn link(&mut self) -> &mut Link;

    /// Where it is noted when the worker is to come back; absent where nothing waits.
    fn wake_ns(&mut self) -> Option<&mut Option<u64>>;
}
