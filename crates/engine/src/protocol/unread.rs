//! Connections on which nothing is requested, and whose bytes nobody reads.

use brunt_io::transport::Stream;
use brunt_record::{FailureKind, RequestTiming};

use super::{Broken, ClientProtocol, Ending, Next, Out, Progress, TimedOut};

/// What is said on the connections of one-way streams, and of those that are opened and closed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Unread;

impl ClientProtocol for Unread {
    type Transport = Stream;
    type Connection = ();

    const IN_ORDER: bool = true;
    const WRITES_AHEAD: bool = false;

    fn connection(&self) {}

    fn open(&mut self, _connection: &mut (), _out: &mut Out, _now_ns: u64) -> bool {
        true
    }

    fn close(&mut self, _connection: &mut ()) -> u64 {
        0
    }

    /// What is in flight is one attempt at a time, or nothing.
    fn request(&mut self, _connection: &mut (), _next: Next, _out: &mut Out) -> u32 {
        0
    }

    fn receive(
        &mut self,
        _connection: &mut (),
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

    fn unread_bytes(&self, _connection: &()) -> u64 {
        u64::MAX
    }

    fn ended(&mut self, _connection: &mut ()) -> Ending {
        Ending::Fails(FailureKind::ClosedBeforeReply)
    }

    fn timed_out(
        &mut self,
        _connection: &mut (),
        _now_ns: u64,
        _places: &[RequestTiming],
        _out: &mut Out,
    ) -> Option<TimedOut> {
        None
    }

    fn abandon(&mut self, _connection: &mut ()) -> Option<(u32, u64)> {
        Some((0, 0))
    }

    fn may_still_hear(&self, _connection: &()) -> bool {
        true
    }
}
