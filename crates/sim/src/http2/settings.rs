//! How the simulated server speaks HTTP/2, beside what holds for all protocols.

use std::num::{NonZeroU32, NonZeroU64};

use brunt_proto::http2::frame::Setting;
use brunt_server::Http2Options;

use crate::settings::SimServer;

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
    /// Time from a first GOAWAY, which names no last request, to a second one, which names it.
    /// Absent: only the second is sent (RFC 9113 section 6.8).
    pub goaway_notice_ns: Option<u64>,
    /// The code with which streams are reset in place of an answer
    /// ([`super::SimFaults::stream_reset`]).
    pub reset_code: ResetCode,
    /// The error code of [`super::SimFaults::goaway`].
    pub goaway_code: u32,
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
            goaway_notice_ns: None,
            reset_code: ResetCode::Any,
            goaway_code: 2,
            malformed: "no-status",
        }
    }
}

/// Streams in flight that a connection allows after some requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SettingsChange {
    /// Requests of a connection after which it gets these settings; 0 for at once.
    pub after: u64,
    /// Streams in flight from then on.
    pub streams_max: u32,
}

impl SettingsChange {
    /// As one of the settings of a frame.
    pub(super) fn setting(self) -> Setting {
        Setting::MaxConcurrentStreams(self.streams_max)
    }
}

/// A code of RST_STREAM.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResetCode {
    /// This code.
    One(u32),
    /// Any of RFC 9113 section 7 or one that is not in it, at random.
    Any,
}

/// How the reference server speaks HTTP/2 in the place of this one.
pub(crate) fn options(server: &SimServer) -> Http2Options {
    let http2 = &server.http2;
    let says_last = server.announces_close && http2.goaway_notice_ns.is_none();
    Http2Options {
        streams_max: http2.streams_max.unwrap_or(NonZeroU32::MAX),
        requests_max: server.close_after.filter(|_| says_last),
        window_bytes: http2.window_bytes,
    }
}
