//! Bytes of a caller's own in the place of answers: for tests of clients, which have to bear what a
//! server should never send.

use std::fmt;
use std::sync::OnceLock;

use crate::listeners::Protocol;

/// Bytes of an endless answer that are sent at once, about.
const PIECE_BYTES: usize = 16 * 1024;

/// What is sent in the place of an answer. It counts as a fault.
#[derive(Debug)]
pub struct RawAnswer {
    /// Its bytes; of an endless one, its beginning.
    pub bytes: RawBytes,
    /// Where they go.
    pub place: RawPlace,
    /// What follows them.
    pub ending: RawEnding,
}

/// Appends the bytes of a raw answer. It gets the stream of the request, which is 0 but over
/// HTTP/2.
#[derive(Clone, Copy)]
pub struct RawBytes(pub &'static (dyn Fn(&mut Vec<u8>, u32) + Sync));

impl fmt::Debug for RawBytes {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("RawBytes")
    }
}

/// Where the bytes of a raw answer go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RawPlace {
    /// The connection, or the stream of the request in HTTP/3. What is below exists there alone.
    Request,
    /// The server's control stream.
    Control,
    /// The control stream, which ends behind them.
    ControlEnd,
    /// A new unidirectional stream.
    NewStream,
}

/// What follows a raw answer.
#[derive(Clone, Copy, Debug)]
pub enum RawEnding {
    /// The connection is closed.
    Close,
    /// The server goes on as if the answer had been one.
    GoOn,
    /// Nothing, until the client leaves or gives up the stream.
    Silence,
    /// These, again and again.
    Endless(RawBytes),
}

impl RawAnswer {
    /// Appends the next piece of an endless answer, of about `bytes_max` bytes at most.
    pub(crate) fn write_more(&self, out: &mut Vec<u8>, stream: u32, bytes_max: usize) {
        if let RawEnding::Endless(more) = self.ending {
            let end = out.len() + bytes_max.min(PIECE_BYTES);
            while out.len() < end {
                more.0(out, stream);
            }
        }
    }
}

/// Each is the same as itself alone.
impl PartialEq for RawAnswer {
    fn eq(&self, other: &Self) -> bool {
        std::ptr::eq(self, other)
    }
}

impl Eq for RawAnswer {}

/// The raw answers of one path; absent over protocols where it is no route.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RawAnswers {
    /// Over HTTP/1.1.
    pub http1: Option<&'static RawAnswer>,
    /// Over HTTP/2.
    pub http2: Option<&'static RawAnswer>,
    /// Over HTTP/3.
    pub http3: Option<&'static RawAnswer>,
    /// In the place of the answer to a message of WebSocket.
    pub websocket: Option<&'static RawAnswer>,
}

impl RawAnswers {
    pub(crate) fn over(self, protocol: Protocol) -> Option<&'static RawAnswer> {
        match protocol {
            Protocol::Http1 => self.http1,
            Protocol::Http2 => self.http2,
            Protocol::Http3 => self.http3,
            Protocol::WebSocket => self.websocket,
        }
    }
}

/// What gives the raw answers of a path that is no route.
type RawSource = fn(&str) -> Option<RawAnswers>;

/// Of the whole process: a route is read where nothing but its path is known.
static SOURCE: OnceLock<RawSource> = OnceLock::new();

/// Has every server of this process ask `source` for the answers of paths that are no routes. The
/// first one that is set stays.
#[doc(hidden)]
pub fn set_raw_answers(source: RawSource) {
    SOURCE.get_or_init(|| source);
}

/// The raw answers of this path.
pub(crate) fn answers(path: &str) -> Option<RawAnswers> {
    SOURCE.get().and_then(|source| source(path))
}

/// Raw answers for tests, one for each ending.
#[cfg(test)]
pub(crate) mod samples {
    use super::*;

    pub(crate) const START: &str = "raw bytes";

    const fn sample(ending: RawEnding) -> RawAnswer {
        RawAnswer {
            bytes: RawBytes(&|out, _| out.extend_from_slice(START.as_bytes())),
            place: RawPlace::Request,
            ending,
        }
    }

    static CLOSE: RawAnswer = sample(RawEnding::Close);
    static GO_ON: RawAnswer = sample(RawEnding::GoOn);
    static SILENCE: RawAnswer = sample(RawEnding::Silence);
    static ENDLESS: RawAnswer = sample(RawEnding::Endless(RawBytes(&|out, _| out.push(b'.'))));

    /// Their paths.
    pub(crate) const PATHS: [&str; 4] = ["/raw/close", "/raw/on", "/raw/silence", "/raw/endless"];

    /// Has the servers of this process give them.
    pub(crate) fn install() {
        set_raw_answers(|path| {
            let all = [&CLOSE, &GO_ON, &SILENCE, &ENDLESS];
            let place = PATHS.iter().position(|known| *known == path)?;
            let answer = Some(all[place]);
            Some(RawAnswers {
                http1: answer,
                http2: answer,
                http3: answer,
                websocket: answer,
            })
        });
    }
}
