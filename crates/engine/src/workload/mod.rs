//! What the connections of a run are for: requests and their replies, one-way streams, or nothing
//! but being opened. Chosen once when a worker is made, beside the protocol.

mod streams;

use std::fmt::Debug;

use brunt_io::backend::{ClientBackend, PayloadId, Slot};
use brunt_record::{FailureKind, Recorder, StreamRecord, Window};

pub(crate) use streams::{StreamPayload, Streams};

use crate::observer::StreamsSoFar;

/// A connection that lives as long was worth opening, even if it carried nothing.
const LIFE_NS_LEAST: u64 = 100_000_000;

/// What a connection that can send is to carry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Carried {
    /// Requests, as many as it has room for.
    Requests,
    /// Nothing: the next request is to open a connection in its place.
    Attempt,
    /// Bytes without end, these next; absent where they come from the server alone.
    Bytes(Option<Chunk>),
}

/// A payload that the backend holds, sent as a whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Chunk {
    pub(crate) payload: PayloadId,
    pub(crate) bytes: u32,
}

/// What it means that the server closed a connection with nothing in flight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ClosedByServer {
    /// The server had no use for the connection.
    Idle,
    /// The server answered the end of our side.
    Answered,
    /// The server was not to close it.
    Failed(FailureKind),
}

/// A workload of one worker. What is said here by default is said of requests and replies.
pub(crate) trait Workload: Clone + Debug + Send + Sync + 'static {
    /// What a connection that can send is to carry now.
    fn carried(&self) -> Carried;

    /// Called once by each worker, before all else.
    fn start<B: ClientBackend>(&mut self, _backend: &mut B) {}

    /// A round begins that has as many slots; nothing is left of the one before.
    fn begin_round(&mut self, _slots: u32, _recorder: &mut Recorder) {}

    /// How many of the connections that are `held` set-up opens.
    fn opened_first(&self, held: u32) -> u32 {
        held
    }

    /// Whether replies are awaited, so that a connection on which none is, and which takes nothing,
    /// is of no use.
    fn awaits_replies(&self) -> bool {
        true
    }

    /// How a connection with nothing in flight breaks.
    fn broken_idle(&self) -> FailureKind {
        FailureKind::IdleReset
    }

    /// The server closed its side of a connection with nothing in flight.
    fn closed_by_server(&mut self, _slot: Slot) -> ClosedByServer {
        ClosedByServer::Idle
    }

    /// Whether a connection was opened in vain that lasted for `life_ns`, and carried something if
    /// it `is_used`.
    fn is_doomed(&self, is_used: bool, life_ns: u64) -> bool {
        !is_used && life_ns < LIFE_NS_LEAST
    }

    /// An open connection is about to be closed; in the drain, if it `is_drained`.
    fn closing<B: ClientBackend>(&mut self, _slot: Slot, _is_drained: bool, _backend: &B) {}

    /// Tells the workload when the window is.
    fn set_window(&mut self, _window: Window) {}

    /// When the connections are to be read next; [`u64::MAX`] for never.
    fn next_reading_ns(&self) -> u64 {
        u64::MAX
    }

    /// Reads the `open` connections, since that is due, or the window `is_over`.
    fn read<B: ClientBackend>(
        &mut self,
        _now_ns: u64,
        _is_over: bool,
        _open: impl Iterator<Item = Slot>,
        _backend: &B,
    ) {
    }

    /// The latest reading; absent where there is none.
    fn so_far(&self) -> Option<StreamsSoFar> {
        None
    }

    /// The load is over. Ends our side of the `open` connections, each of which may still be
    /// sending something. Gives until when it is to be waited at most before this is called again;
    /// absent when there is nothing to wait for.
    fn wind_up<B: ClientBackend>(
        &mut self,
        _now_ns: u64,
        _open: impl Iterator<Item = (Slot, bool)>,
        _backend: &mut B,
    ) -> Option<u64> {
        None
    }

    /// The round is over. Gives whether the open connection in `slot` is of no use to the next one;
    /// it is closed then, where there is one.
    fn gives_up<B: ClientBackend>(&mut self, _slot: Slot, _backend: &mut B) -> bool {
        false
    }

    /// Ends the round; gives the record of its streams.
    fn end_round(&mut self) -> Option<StreamRecord> {
        None
    }
}

/// Requests and their replies.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Requests;

impl Workload for Requests {
    #[inline]
    fn carried(&self) -> Carried {
        Carried::Requests
    }
}

/// Attempts of one worker, one at a time in each slot.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Attempts;

impl Workload for Attempts {
    #[inline]
    fn carried(&self) -> Carried {
        Carried::Attempt
    }

    fn begin_round(&mut self, _slots: u32, recorder: &mut Recorder) {
        recorder.count_attempts();
    }

    /// Set-up opens none: the load consists of opening them.
    fn opened_first(&self, _held: u32) -> u32 {
        0
    }

    /// What is open here is a slot that can take an attempt: there is no connection in it.
    fn gives_up<B: ClientBackend>(&mut self, _slot: Slot, _backend: &mut B) -> bool {
        true
    }
}
