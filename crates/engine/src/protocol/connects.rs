//! Connections that are opened and closed again: each attempt is a request, and nothing is said.

use std::sync::Arc;

use brunt_io::backend::PayloadId;
use brunt_record::{FailureKind, RequestTiming};

use super::{Broken, ClientProtocol, Ending, Next, Out, Progress, StartOfWorker, TimedOut};

/// Attempts of one worker, one at a time in each place for a connection.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Connects;

impl ClientProtocol for Connects {
    /// Whether an attempt is in flight.
    type Connection = bool;

    const IN_ORDER: bool = true;
    const WRITES_AHEAD: bool = false;
    const CONNECTS: bool = true;

    fn start(&mut self, _start: StartOfWorker, _add: &mut dyn FnMut(Arc<[u8]>) -> PayloadId) {}

    fn connection(&self) -> bool {
        false
    }

    fn open(&mut self, _is_attempted: &mut bool, _out: &mut Out, _now_ns: u64) -> bool {
        true
    }

    fn close(&self, is_attempted: &mut bool) -> u64 {
        *is_attempted = false;
        0
    }

    fn request(&self, is_attempted: &mut bool, _next: Next, _out: &mut Out) -> u32 {
        *is_attempted = true;
        0
    }

    /// What a server says is not waited for.
    fn receive(
        &mut self,
        _is_attempted: &mut bool,
        bytes: &[u8],
        _received_ns: u64,
        _places: &[RequestTiming],
        _out: &mut Out,
    ) -> Result<Progress, Broken> {
        Ok(Progress {
            consumed: bytes.len(),
            event: None,
        })
    }

    fn ended(&self, _is_attempted: &mut bool) -> Ending {
        Ending::Fails(FailureKind::HandshakeCut)
    }

    /// Whoever opens connections sees to their limits.
    fn timed_out(
        &self,
        _is_attempted: &mut bool,
        _now_ns: u64,
        _places: &[RequestTiming],
        _out: &mut Out,
    ) -> Option<TimedOut> {
        None
    }

    fn abandon(&self, is_attempted: &mut bool) -> Option<(u32, u64)> {
        std::mem::take(is_attempted).then_some((0, 0))
    }
}
