//! What a host asks of a worker, and how it decides on answers.

use std::io;

use brunt_io::backend::Slot;

use crate::route::Route;

/// A request over HTTP/2 on whose answer the host decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Asked {
    /// Its connection.
    pub slot: Slot,
    /// Its stream.
    pub stream: u32,
}

/// A worker in the hands of a host.
pub(crate) trait Serving {
    /// Moves it on until there is nothing to do, and gives when there will be.
    fn settle(&mut self) -> io::Result<Option<u64>>;

    /// Takes the requests that came since the last time, where the host decides on the answers.
    fn take_asked(&mut self) -> Vec<Asked> {
        Vec::new()
    }

    /// Answers one of them, as one for this route; whether it still waits.
    fn answer(&mut self, _asked: Asked, _route: Route) -> bool {
        false
    }
}
