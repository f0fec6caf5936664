//! How the simulated server speaks HTTP/2, beside what holds for all protocols.

use std::num::{NonZeroU32, NonZeroU64};

use brunt_proto::http2::frame::Setting;
use brunt_server::Http2Options;

/// The simulated server's HTTP/2.
#[derive(Clone, Debug, PartialEq)]
pub struct SimHttp2 {
    /// Streams that brunt may have in flight on a connection (SETTINGS_MAX_CONCURRENT_STREAMS).
    /// Absent: no limit.
    pub streams_max: Option<NonZeroU32>,
    /// [`Http2Options::window_bytes`].
    pub window_bytes: u32,
    /// Settings that the server changes in mid-run.
    pub change: Option<SettingsChange>,
    /// A PING follows every this many requests of a connection.
    pub ping_every: Option<NonZeroU64>,
    /// What a malformed answer is: a kind of the reference server's `/malformed`.
    pub malformed: &'static str,
}

impl Default for SimHttp2 {
    fn default() -> Self {
        Self {
            streams_max: NonZeroU32::new(128),
            window_bytes: 65_535,
            change: None,
            ping_every: None,
            malformed: "no-status",
        }
    }
}

impl SimHttp2 {
    /// How the reference server speaks HTTP/2 in its place, where a connection ends, with a GOAWAY,
    /// after so many requests.
    pub(crate) fn options(&self, requests_max: Option<NonZeroU64>) -> Http2Options {
        Http2Options {
            streams_max: self.streams_max.unwrap_or(NonZeroU32::MAX),
            requests_max,
            window_bytes: self.window_bytes,
        }
    }
}

/// Settings that a connection gets after some requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SettingsChange {
    /// Requests of a connection after which it gets these settings; 0 for at once.
    pub after: u64,
    /// Streams in flight from then on.
    pub streams_max: u32,
    /// Size of the dynamic table that brunt may use from then on (SETTINGS_HEADER_TABLE_SIZE), at
    /// most 4,096, which holds without it.
    pub table_bytes: u32,
}

impl SettingsChange {
    /// The settings of its frame.
    pub(super) fn settings(self) -> [Setting; 2] {
        [
            Setting::MaxConcurrentStreams(self.streams_max),
            Setting::HeaderTableSize(self.table_bytes),
        ]
    }
}
