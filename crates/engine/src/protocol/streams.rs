//! One-way streams as a worker carries them: one payload over and over, and nothing that is read.

use std::sync::Arc;

use brunt_io::backend::PayloadId;
use brunt_load::Streams;
use brunt_record::{FailureKind, RequestTiming};

use super::{Broken, ClientProtocol, Ending, Next, Out, Part, Progress, StartOfWorker, TimedOut};

/// Bytes that are sent at a time: enough that a system call is a small part of what copying them
/// takes, and few enough to stay in the cache of a CPU.
const PAYLOAD_BYTES: usize = 256 * 1024;

/// What streams of a run have in common.
#[derive(Clone, Debug)]
pub(crate) struct StreamPayload {
    bytes: Arc<[u8]>,
}

impl StreamPayload {
    pub(crate) fn new(streams: Streams) -> Self {
        // No device on the way is to find a pattern (Knuth's MMIX generator).
        let mut state = 1_u64;
        let bytes = std::iter::repeat_with(|| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            (state >> 56) as u8
        });
        let length = if streams.sends { PAYLOAD_BYTES } else { 0 };
        Self {
            bytes: bytes.take(length).collect(),
        }
    }

    /// Bytes that are sent at a time.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes.len()
    }
}

/// Streams of one worker.
#[derive(Clone, Debug)]
pub(crate) struct StreamProtocol {
    payload: Arc<StreamPayload>,
    /// Absent where nothing is sent.
    part: Option<Part>,
}

impl StreamProtocol {
    pub(super) fn new(payload: Arc<StreamPayload>) -> Self {
        Self {
            payload,
            part: None,
        }
    }
}

impl ClientProtocol for StreamProtocol {
    type Connection = ();

    const IN_ORDER: bool = true;
    const WRITES_AHEAD: bool = false;
    const IS_STREAM: bool = true;

    fn start(&mut self, _start: StartOfWorker, add: &mut dyn FnMut(Arc<[u8]>) -> PayloadId) {
        let bytes = &self.payload.bytes;
        self.part = (!bytes.is_empty()).then(|| Part {
            payload: add(Arc::clone(bytes)),
            start: 0,
            end: bytes.len() as u32,
        });
    }

    fn stream(&self) -> Option<Part> {
        self.part
    }

    fn connection(&self) {}

    fn open(&mut self, _connection: &mut (), _out: &mut Out, _now_ns: u64) -> bool {
        true
    }

    fn close(&self, _connection: &mut ()) -> u64 {
        0
    }

    /// Streams have none: none is ever due.
    fn request(&self, _connection: &mut (), _next: Next, _out: &mut Out) -> u32 {
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

    fn ended(&self, _connection: &mut ()) -> Ending {
        Ending::Fails(FailureKind::ClosedBeforeReply)
    }

    fn timed_out(
        &self,
        _connection: &mut (),
        _now_ns: u64,
        _places: &[RequestTiming],
        _out: &mut Out,
    ) -> Option<TimedOut> {
        None
    }

    fn abandon(&self, _connection: &mut ()) -> Option<(u32, u64)> {
        None
    }

    fn may_still_hear(&self, _connection: &()) -> bool {
        true
    }
}
