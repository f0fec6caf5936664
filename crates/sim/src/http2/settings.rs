//! How the simulated server speaks HTTP/2, beside what holds for both protocols.

use std::num::{NonZeroU32, NonZeroU64};

/// The window that holds where SETTINGS say nothing (RFC 9113 section 6.5.2).
const WINDOW_BYTES: u32 = 65_535;
/// The size of the dynamic table that holds where SETTINGS say nothing.
const TABLE_BYTES: u32 = 4_096;

/// The simulated server's HTTP/2.
#[derive(Clone, Debug, PartialEq)]
pub struct SimHttp2 {
    /// Streams that brunt may have in flight on a connection (SETTINGS_MAX_CONCURRENT_STREAMS).
    /// Absent: no limit.
    pub streams_max: Option<u32>,
    /// Bytes of a request's body that may come before the server gives room for more
    /// (SETTINGS_INITIAL_WINDOW_SIZE); up to 2^31 - 1. The window of the connection is always
    /// 65,535.
    pub window_bytes: u32,
    /// Size of the dynamic table that brunt may use (SETTINGS_HEADER_TABLE_SIZE).
    pub table_bytes: u32,
    /// Settings that the server changes in mid-run.
    pub change: Option<SettingsChange>,
    /// How heads of answers are coded.
    pub heads: HeadCoding,
    /// Most bytes of a DATA frame; brunt's own limit holds besides.
    pub frame_bytes: NonZeroU32,
    /// Longest time between two frames of an answer, nanoseconds (uniform from 0). Frames of other
    /// answers may lie between them.
    pub frame_gap_ns: u64,
    /// A PING follows every this many requests of a connection.
    pub ping_every: Option<NonZeroU64>,
    /// Time from a first GOAWAY, which names no last request, to a second one, which names it.
    /// Absent: only the second is sent (RFC 9113 section 6.8).
    pub goaway_notice_ns: Option<u64>,
    /// The code with which streams are reset ([`super::SimFaults::stream_reset`] and `stream_cut`).
    pub reset_code: ResetCode,
    /// The error code of [`super::SimFaults::goaway`].
    pub goaway_code: u32,
    /// What a malformed answer consists of.
    pub malformed: Http2Malformed,
}

impl Default for SimHttp2 {
    fn default() -> Self {
        Self {
            streams_max: Some(128),
            window_bytes: WINDOW_BYTES,
            table_bytes: TABLE_BYTES,
            change: None,
            heads: HeadCoding::default(),
            frame_bytes: NonZeroU32::MIN.saturating_add(16 * 1_024 - 1),
            frame_gap_ns: 0,
            ping_every: None,
            goaway_notice_ns: None,
            reset_code: ResetCode::Any,
            goaway_code: 2,
            malformed: Http2Malformed::default(),
        }
    }
}

impl SimHttp2 {
    /// The largest dynamic table that brunt may ever have.
    pub(in super::super) fn table_bytes_max(&self) -> u32 {
        let later = self.change.map_or(0, |change| change.table_bytes);
        // The initial one holds until brunt has seen the server's settings.
        TABLE_BYTES.max(self.table_bytes).max(later)
    }
}

/// Settings that a connection gets after some requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SettingsChange {
    /// Requests of a connection after which it gets these settings.
    pub after: NonZeroU64,
    /// Streams in flight from then on.
    pub streams_max: u32,
    /// The initial window from then on, also of streams that are in flight.
    pub window_bytes: u32,
    /// Size of the dynamic table from then on.
    pub table_bytes: u32,
}

/// How the fields of an answer's head are coded (RFC 7541).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum HeadCoding {
    /// Literals that are not kept: equal answers have equal bytes.
    #[default]
    Literal,
    /// Kept in the dynamic table at their first use, and named by index later.
    Indexed,
    /// Kept in the dynamic table and named by index, beside a field that is new in each answer, so
    /// that indices move and entries are lost.
    Churning,
}

/// A code of RST_STREAM.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResetCode {
    /// This code.
    One(u32),
    /// Any of RFC 9113 section 7 or one that is not in it, at random.
    Any,
}

/// What is wrong with a malformed answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Http2Malformed {
    /// Error of the stream: the head has no status.
    #[default]
    NoStatus,
    /// Error of the stream: the body is one byte shorter than its length.
    ShortBody,
    /// Error of the stream: the body is one byte longer than its length.
    LongBody,
    /// Error of the connection: the head refers to an entry that the dynamic table does not have.
    HeadBlock,
    /// Error of the connection: a frame is longer than brunt allows.
    FrameSize,
    /// Error of the connection: DATA comes on stream 0.
    DataOnConnection,
    /// Error of the connection: an answer comes on a stream that brunt never opened.
    UnknownStream,
    /// Error of the connection: a window grows beyond 2^31 - 1 bytes.
    WindowOverflow,
    /// Error of the connection: bytes of HTTP/1.1 come.
    NotHttp2,
}

impl Http2Malformed {
    /// All ways in which an answer is malformed.
    pub const ALL: [Self; 9] = [
        Self::NoStatus,
        Self::ShortBody,
        Self::LongBody,
        Self::HeadBlock,
        Self::FrameSize,
        Self::DataOnConnection,
        Self::UnknownStream,
        Self::WindowOverflow,
        Self::NotHttp2,
    ];

    /// Whether only the stream fails, and the connection goes on.
    pub fn is_of_stream(self) -> bool {
        matches!(self, Self::NoStatus | Self::ShortBody | Self::LongBody)
    }
}
