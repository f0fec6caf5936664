//! For fuzzing: a whole connection from its bytes.

use std::num::NonZeroU32;
use std::sync::atomic::Ordering;

use brunt_proto::http2::frame::{FrameHeader, HEADER_BYTES};

use super::{End, Http2Options, Http2Session};
use crate::answer::Context;
use crate::batch::Batch;
use crate::counters::{Counters, Shared};

/// Bytes that gather for one send at most: a batch that is nearly full, and then the largest answer
/// that is one in one piece, a malformed one.
const BATCH_BYTES_MAX: usize = 2 << 20;

/// Reads `data` as what a client sends behind the preface: all at once, frame by frame, and byte by
/// byte. Panics when the latter two differ in anything, or when more gathers for sending than may.
pub fn fuzz_http2(data: &[u8]) {
    take([data]);
    assert!(take(frames(data)) == take(data.chunks(1)));
}

/// The frames in `data`, with an incomplete one at the end.
fn frames(mut data: &[u8]) -> impl Iterator<Item = &[u8]> {
    std::iter::from_fn(move || {
        if data.is_empty() {
            return None;
        }
        let bytes = match data.first_chunk() {
            Some(header) => HEADER_BYTES + FrameHeader::read(header).length as usize,
            None => data.len(),
        };
        let (frame, rest) = data.split_at(bytes.min(data.len()));
        data = rest;
        Some(frame)
    })
}

/// What is sent and counted when the input comes in these pieces, and whether it ended in failure.
fn take<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> (Vec<u8>, Counters, bool) {
    let shared = Shared::new(1);
    // No answer keeps this thread busy.
    shared.stop.store(true, Ordering::Relaxed);
    let context = Context::new(&shared, shared.worker(0), None, &|| 0);
    let options = Http2Options {
        streams_max: NonZeroU32::MAX,
        ..Http2Options::default()
    };
    let mut batch = Batch::default();
    let mut session = Http2Session::new(options, &mut batch);
    let mut scratch = Vec::new();
    let (mut input, mut sent) = (Vec::new(), Vec::new());
    for piece in pieces {
        input.extend_from_slice(piece);
        loop {
            let taken = session.receive(&input, &mut batch, &mut scratch, &context);
            if taken == 0 {
                break;
            }
            input.drain(..taken);
            session.advance(0, &mut batch, context.counters);
            let was_full = batch.is_full();
            let bytes = batch.take_bytes(Vec::new());
            assert!(bytes.len() < BATCH_BYTES_MAX);
            // Not what has no end.
            let room = BATCH_BYTES_MAX.saturating_sub(sent.len());
            sent.extend_from_slice(&bytes[..bytes.len().min(room)]);
            session.all_sent();
            if !was_full {
                break;
            }
        }
    }
    let has_failed = session.end() == End::Failed;
    session.abandon(context.counters);
    (sent, shared.totals(), has_failed)
}
