//! What the simulated server keeps of one HTTP/2 connection: its streams, windows and settings.

use std::collections::{BTreeMap, VecDeque};

use brunt_proto::http2::frame;

use super::super::request::Request;
use super::super::status::Status;
use super::head::HeadEncoder;
use super::settings::SimHttp2;

/// What brunt may send before the first SETTINGS.
const WINDOW_BYTES: i64 = frame::WINDOW_BYTES as i64;

/// What follows the body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Tail {
    /// Nothing: the last frame of the body ends the stream, or the head does.
    None,
    EmptyData,
    Trailer,
}

/// An answer in flight.
#[derive(Clone, Copy, Debug)]
pub(super) struct Answer {
    pub(super) status: Status,
    pub(super) body_left: u32,
    pub(super) tail: Tail,
    pub(super) extra: bool,
}

/// How far a request is.
#[derive(Debug)]
pub(super) enum Stage {
    /// More of the request's body is to come.
    Half(Request),
    /// The request waits for its turn, or has it.
    Waiting,
    /// The request is being answered.
    Answering(Answer),
    /// The request will not be answered.
    Left,
}

/// A stream that the server has not ended.
#[derive(Debug)]
pub(super) struct Stream {
    pub(super) stage: Stage,
    /// Bytes that brunt may still send, and the server may.
    pub(super) inward: i64,
    pub(super) outward: i64,
}

/// What the server allows, from brunt's acknowledgement on.
#[derive(Clone, Copy, Debug)]
pub(super) struct Allowed {
    pub(super) streams_max: u32,
    pub(super) window_bytes: u32,
}

/// The end of a connection, as announced by GOAWAY.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum GoAway {
    None,
    /// Announced, without a last stream.
    Announced,
    /// Sent: no stream after this one is taken.
    Final(u32),
}

/// The server's side of one connection.
#[derive(Debug)]
pub(in super::super) struct Http2 {
    pub(super) streams: BTreeMap<u32, Stream>,
    /// The latest stream that brunt opened, and the latest one that was taken.
    pub(super) latest: u32,
    pub(super) last_taken: u32,
    /// Requests taken.
    pub(super) taken: u64,
    pub(super) goaway: GoAway,
    pub(super) allowed: Allowed,
    /// Settings that brunt has not acknowledged, earliest first.
    pub(super) unacknowledged: VecDeque<Allowed>,
    /// Bytes of bodies that brunt may still send on the connection, and the server may.
    pub(super) inward: i64,
    pub(super) outward: i64,
    /// Brunt's settings.
    pub(super) window_bytes: i64,
    pub(super) frame_bytes: u32,
    /// Answers that wait for a window, longest waiting first.
    pub(super) blocked: VecDeque<u32>,
    pub(super) heads: HeadEncoder,
    pub(super) pings: VecDeque<[u8; 8]>,
}

impl Http2 {
    pub(in super::super) fn new(settings: &SimHttp2) -> Self {
        Self {
            streams: BTreeMap::new(),
            latest: 0,
            last_taken: 0,
            taken: 0,
            goaway: GoAway::None,
            allowed: Allowed {
                streams_max: u32::MAX,
                window_bytes: frame::WINDOW_BYTES,
            },
            unacknowledged: VecDeque::new(),
            inward: WINDOW_BYTES,
            outward: WINDOW_BYTES,
            window_bytes: WINDOW_BYTES,
            frame_bytes: frame::PAYLOAD_BYTES,
            blocked: VecDeque::new(),
            heads: HeadEncoder::new(settings.heads),
            pings: VecDeque::new(),
        }
    }

    /// The connection is over: how many answers were in flight, and how many requests had not come
    /// in full.
    pub(in super::super) fn abandon(&mut self) -> (usize, usize) {
        let streams = std::mem::take(&mut self.streams);
        let count = |is: fn(&Stage) -> bool| {
            let stages = streams.values().map(|stream| &stream.stage);
            stages.filter(|stage| is(stage)).count()
        };
        (
            count(|stage| matches!(stage, Stage::Answering(_))),
            count(|stage| matches!(stage, Stage::Half(_))),
        )
    }
}
