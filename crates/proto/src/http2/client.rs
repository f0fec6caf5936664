//! One connection's client state.

use super::head::KnownHead;
use super::reply::{ConnectionError, Limits, Progress};
use super::template::Template;

/// The client's side of one connection: bytes and a time in, events out, what must be sent
/// appended to the caller's buffer.
#[derive(Debug)]
pub struct Client {}

impl Client {
    /// A connection on which at most `depth` streams are under way.
    pub fn new(depth: u32) -> Self {
        let _ = depth;
        Self {}
    }

    /// Appends what a client sends first: the preface, SETTINGS (no push, large windows), and a
    /// WINDOW_UPDATE of the connection. To be called once, before anything else.
    pub fn open(&mut self, out: &mut Vec<u8>) {
        let _ = out;
    }

    /// The server's first SETTINGS are in.
    pub fn is_ready(&self) -> bool {
        false
    }

    /// Streams that may be under way now: its own limit or the server's setting, whichever is
    /// lower. 0 before the server's first SETTINGS, after GOAWAY, and when all stream identifiers
    /// are used up.
    pub fn depth(&self) -> u32 {
        0
    }

    /// The server's SETTINGS_MAX_CONCURRENT_STREAMS; `None`: no limit was told.
    pub fn peer_streams_max(&self) -> Option<u32> {
        None
    }

    /// Streams under way.
    pub fn under_way(&self) -> u32 {
        0
    }

    /// Appends a request. Gives its place, below the depth given to [`new`](Self::new), which is
    /// free again after its [`Event::Reply`](super::Event::Reply) or
    /// [`Event::Failed`](super::Event::Failed), or [`cancel`](Self::cancel).
    ///
    /// Of the body, what fits the server's windows is appended, at most 128 KiB per call; the rest
    /// follows by [`receive`](Self::receive) as the windows open, or [`resume`](Self::resume).
    ///
    /// `under_way() < depth()` is required; otherwise nothing is sent and the stream of place 0 is
    /// named.
    pub fn request(&mut self, template: &Template, out: &mut Vec<u8>) -> u32 {
        let _ = (template, out);
        0
    }

    /// Whether bodies wait for [`resume`](Self::resume) and for nothing else: the windows would
    /// let more through, but it was held back so that `out` stays small.
    pub fn wants_resume(&self) -> bool {
        false
    }

    /// Appends more of the bodies that wait, at most 128 KiB. To be called when what was appended
    /// before has been sent.
    pub fn resume(&mut self, template: &Template, out: &mut Vec<u8>) {
        let _ = (template, out);
    }

    /// Takes bytes up to the next event.
    ///
    /// # Errors
    ///
    /// The connection cannot be used any more; GOAWAY was appended to `out`. All of `bytes` count
    /// as taken.
    pub fn receive(
        &mut self,
        bytes: &[u8],
        now_ns: u64,
        template: &Template,
        limits: &Limits,
        known: &mut KnownHead,
        out: &mut Vec<u8>,
    ) -> Result<Progress, ConnectionError> {
        let _ = (now_ns, template, limits, known, out);
        Ok(Progress {
            consumed: bytes.len(),
            event: None,
        })
    }

    /// Gives up a stream: RST_STREAM(CANCEL) is appended. Gives the bytes of its incomplete reply;
    /// frames of it that come later count as overhead.
    pub fn cancel(&mut self, place: u32, out: &mut Vec<u8>) -> u64 {
        let _ = (place, out);
        0
    }

    /// The connection is lost: takes any one stream under way out, its place and the bytes of its
    /// incomplete reply.
    pub fn abandon(&mut self) -> Option<(u32, u64)> {
        None
    }

    /// Bytes received since this was last asked that belong to no stream: frames about the
    /// connection as a whole, and frames of streams that are gone.
    pub fn take_overhead(&mut self) -> u64 {
        0
    }

    /// Bytes received that are in no reply, failure, cancellation or abandonment, nor in the
    /// overhead: those of replies under way and of an incomplete frame.
    pub fn pending_bytes(&self) -> u64 {
        0
    }
}
