//! One connection's client state: bytes and a time in, events out, what must be sent appended to
//! the caller's buffer.

mod frames;
mod replies;
mod sending;
mod streams;

use super::frame::{
    self, ErrorCode, HEADER_BYTES, PAYLOAD_BYTES, PREFACE, STREAM_MAX, Setting, WINDOW_BYTES,
};
use super::hpack::{Decoder, TABLE_BYTES};

/// Settings of a client (RFC 9113 sections 6.5.2 and 6.9).
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct ClientSettings {
    /// Flow-control window that each stream gets, bytes, at most 2^31 - 1. Brunt opens it again
    /// when half of it is used.
    pub stream_window_bytes: u32,
    /// Flow-control window of the connection, bytes, at most 2^31 - 1. Brunt opens it again when
    /// half of it is used. Every connection begins with 65,535 bytes. Where this window is smaller,
    /// brunt tells the server nothing until half of this window is left.
    pub connection_window_bytes: u32,
    /// Longest payload of a frame that is taken, 16,384 to 16,777,215.
    pub frame_bytes_max: u32,
    /// Size of the dynamic table that the server's field blocks may use.
    pub decoder_table_bytes: u32,
    /// Size of the dynamic table that ours use at most; the server may allow less, and more than
    /// 4,096 is never used.
    pub encoder_table_bytes: u32,
}

impl ClientSettings {
    /// What SETTINGS hold; what is the protocol's default is left out, but for the window.
    pub(super) fn frame(&self) -> Vec<Setting> {
        let mut settings = vec![
            Setting::EnablePush(0),
            Setting::InitialWindowSize(self.stream_window_bytes),
        ];
        if self.decoder_table_bytes != TABLE_BYTES {
            settings.push(Setting::HeaderTableSize(self.decoder_table_bytes));
        }
        if self.frame_bytes_max != PAYLOAD_BYTES {
            settings.push(Setting::MaxFrameSize(self.frame_bytes_max));
        }
        settings
    }

    /// The increment that raises the window of a new connection, bytes; `None`: it is not raised.
    pub(super) fn connection_increment_bytes(&self) -> Option<u32> {
        self.connection_window_bytes
            .checked_sub(WINDOW_BYTES)
            .filter(|&bytes| bytes > 0)
    }
}

impl Default for ClientSettings {
    /// Windows so large that no reply waits for us to open them, and else the protocol's defaults.
    fn default() -> Self {
        Self {
            stream_window_bytes: (1 << 30) - 1,
            connection_window_bytes: (1 << 30) - 1,
            frame_bytes_max: PAYLOAD_BYTES,
            decoder_table_bytes: TABLE_BYTES,
            encoder_table_bytes: TABLE_BYTES,
        }
    }
}

#[cfg(test)]
mod tests;

use self::frames::{Gathered, Stage};
use self::sending::PeerTable;
use self::streams::{Stream, Streams};
use super::head::KnownHead;
use super::reply::{ConnectionError, Event, Progress, StreamFailure};
use super::template::Template;
use crate::fields::reply_head::Meaning;
use crate::limits::Bodies;
use crate::{Body, Limits};

/// Streams that a client can open on one connection: the odd numbers of 31 bits (RFC 9113 section
/// 5.1.1).
pub const STREAMS_MAX: u64 = (STREAM_MAX as u64).div_ceil(2);

/// The client's side of one connection (RFC 9113).
///
/// It is small, and takes memory as streams are used, as the server's field blocks fill the
/// dynamic table (by HPACK's account at most what the settings give it), and for the one frame that
/// is split
/// over reads, DATA excepted, which is counted and not kept.
///
/// The events depend on the bytes alone, not on how they are cut. Every byte is accounted for: the
/// bytes received are those of the replies given out (`head_bytes + body_bytes`), those discarded
/// with failed, cancelled and abandoned streams, the overhead, and
/// [`pending_bytes`](Self::pending_bytes), at any time.
///
/// The server is not trusted: what is appended to the caller's buffer is bounded by a multiple of
/// what was received, bodies apart, and what is kept by [`Limits`].
#[derive(Debug)]
pub struct Client {
    settings: ClientSettings,
    streams: Streams,
    /// Streams that may be in flight at most.
    depth: u32,
    next_stream: u32,

    // What is being received.
    stage: Stage,
    /// A frame's header that is not complete, and its bytes so far.
    header: [u8; HEADER_BYTES],
    header_bytes: u8,
    /// When the first byte of the current frame came.
    frame_from_ns: u64,
    /// Whose field block is not complete; 0: no one's.
    block_stream: u32,
    gathered: Option<Box<Gathered>>,
    decoder: Decoder<Meaning>,
    bodies: Bodies,
    /// Bytes of DATA that the server may send.
    receive_window_bytes: u32,
    pending_bytes: u64,
    overhead_bytes: u64,

    // What the server said.
    is_ready: bool,
    peer_streams_max: Option<u32>,
    /// Its SETTINGS_INITIAL_WINDOW_SIZE.
    initial_window_bytes: u32,
    table: PeerTable,
    /// The last stream that GOAWAY names.
    last_stream: Option<u32>,
    /// Streams above it are still to be given out as failed, from this place on.
    refuse_from: Option<u32>,

    // Bodies of requests.
    /// Bytes of DATA that the server takes.
    send_window_bytes: i32,
    /// Streams whose bodies are not sent as a whole.
    sending: u32,
    /// The place whose body is continued first.
    send_from: u32,
    is_held_back: bool,

    has_reset_streams: bool,
    /// Why it cannot be used any more.
    failed: Option<ConnectionError>,
    is_abandoned: bool,
}

/// What a call of [`Client::receive`] brought along.
struct Call<'a> {
    now_ns: u64,
    templates: &'a [Template],
    limits: &'a Limits,
    known: &'a mut KnownHead,
    out: &'a mut Vec<u8>,
}

impl Client {
    /// A connection on which at most `depth` streams are in flight.
    pub fn new(depth: u32, settings: ClientSettings) -> Self {
        Self {
            settings,
            streams: Streams::new(),
            depth,
            next_stream: 1,
            stage: Stage::Header,
            header: [0; HEADER_BYTES],
            header_bytes: 0,
            frame_from_ns: 0,
            block_stream: 0,
            gathered: None,
            decoder: Decoder::new(settings.decoder_table_bytes),
            bodies: Bodies::default(),
            receive_window_bytes: settings.connection_window_bytes.max(WINDOW_BYTES),
            pending_bytes: 0,
            overhead_bytes: 0,
            is_ready: false,
            peer_streams_max: None,
            initial_window_bytes: WINDOW_BYTES,
            table: PeerTable::new(settings.encoder_table_bytes),
            last_stream: None,
            refuse_from: None,
            send_window_bytes: WINDOW_BYTES as i32,
            sending: 0,
            send_from: 0,
            is_held_back: false,
            has_reset_streams: false,
            failed: None,
            is_abandoned: false,
        }
    }

    /// Appends what a client sends first: the preface, SETTINGS (no push, the stream window), and,
    /// for a larger one, a WINDOW_UPDATE of the connection. To be called once, before anything
    /// else.
    pub fn open(&mut self, out: &mut Vec<u8>) {
        out.extend_from_slice(PREFACE);
        frame::write_settings(out, &self.settings.frame());
        if let Some(bytes) = self.settings.connection_increment_bytes() {
            frame::write_window_update(out, 0, bytes);
        }
    }

    /// The server's first SETTINGS are in.
    #[inline]
    pub fn is_ready(&self) -> bool {
        self.is_ready
    }

    /// Streams that may be in flight now: its own limit or the server's setting, whichever is
    /// lower. 0 before the server's first SETTINGS, after GOAWAY or an error, and when all stream
    /// identifiers are used up.
    #[inline]
    pub fn depth(&self) -> u32 {
        match (self.is_ready && !self.is_spent(), self.peer_streams_max) {
            (false, _) => 0,
            (true, None) => self.depth,
            (true, Some(streams_max)) => self.depth.min(streams_max),
        }
    }

    /// Whether no further stream can ever be opened: after GOAWAY or an error, and when all stream
    /// identifiers are used up.
    #[inline]
    pub fn is_spent(&self) -> bool {
        self.last_stream.is_some()
            || self.failed.is_some()
            || self.is_abandoned
            || self.next_stream > STREAM_MAX
    }

    /// The server's SETTINGS_MAX_CONCURRENT_STREAMS; `None`: no limit was sent.
    pub fn peer_streams_max(&self) -> Option<u32> {
        self.peer_streams_max
    }

    /// Streams in flight.
    #[inline]
    pub fn in_flight(&self) -> u32 {
        self.streams.in_flight()
    }

    /// Whether a stream was ever reset by us: frames of it may come though nothing is in flight.
    pub fn has_reset_streams(&self) -> bool {
        self.has_reset_streams
    }

    /// Takes bytes up to the next event. `now_ns`: when they were received. `templates`: as in
    /// [`request`](Self::request); `limits` and `known` are the same for all calls of a worker.
    ///
    /// To be called until there is no event: also without bytes left, since one frame may have
    /// several.
    ///
    /// # Errors
    ///
    /// The connection cannot be used any more; GOAWAY was appended to `out`, unless the server
    /// does not speak HTTP/2. All of `bytes` count as taken. Further calls give the same error.
    #[inline]
    pub fn receive(
        &mut self,
        bytes: &[u8],
        now_ns: u64,
        templates: &[Template],
        limits: &Limits,
        known: &mut KnownHead,
        out: &mut Vec<u8>,
    ) -> Result<Progress, ConnectionError> {
        let mut call = Call {
            now_ns,
            templates,
            limits,
            known,
            out,
        };
        let before = self.pending_bytes + self.overhead_bytes;
        match self.receive_frames(bytes, &mut call) {
            Ok(progress) => Ok(progress),
            Err(error) => {
                // Without an event no stream was taken out: all bytes are still here.
                self.pending_bytes = before + bytes.len() as u64 - self.overhead_bytes;
                if self.failed.is_none() && error != ConnectionError::NotHttp2 {
                    frame::write_go_away(call.out, 0, error.code());
                }
                self.failed = Some(error);
                self.gathered = None;
                Err(error)
            }
        }
    }

    /// Takes the body of the reply that was given out last, where [`Limits::bodies`] has it kept.
    pub fn take_body(&mut self) -> Option<Body> {
        self.bodies.take()
    }

    /// Gives up a stream: RST_STREAM(CANCEL) is appended. Gives the bytes of its incomplete reply;
    /// frames of it that come later count as overhead. 0 where the place is free.
    pub fn cancel(&mut self, place: u32, out: &mut Vec<u8>) -> u64 {
        let Some(stream) = self.take(place) else {
            return 0;
        };
        self.reset(stream.id, ErrorCode::Cancel, out);
        stream.reply.bytes()
    }

    /// The connection is lost: takes any one stream in flight out, its place and the bytes of its
    /// incomplete reply. Nothing can be requested after that.
    pub fn abandon(&mut self) -> Option<(u32, u64)> {
        self.is_abandoned = true;
        self.refuse_from = None;
        self.sending = 0;
        self.is_held_back = false;
        let (place, stream) = self.streams.abandon()?;
        self.pending_bytes -= stream.reply.bytes();
        Some((place, stream.reply.bytes()))
    }

    /// Bytes received since this was last asked that belong to no reply: frames about the
    /// connection as a whole, frames about streams that carry nothing of a reply, and frames of
    /// streams that are gone.
    #[inline]
    pub fn take_overhead(&mut self) -> u64 {
        std::mem::take(&mut self.overhead_bytes)
    }

    /// Bytes received that are in no reply, failure, cancellation or abandonment, nor in the
    /// overhead: those of replies in flight and of an incomplete frame; after an error, those that
    /// were not looked at.
    #[inline]
    pub fn pending_bytes(&self) -> u64 {
        self.pending_bytes
    }

    /// Takes a stream out of its place, and its bytes out of those pending. Inlined: a reply needs
    /// but some fields of the stream, which is long to copy.
    #[inline(always)]
    fn take(&mut self, place: u32) -> Option<Stream> {
        let stream = self.streams.remove(place)?;
        self.pending_bytes -= stream.reply.bytes();
        self.sending -= u32::from(stream.is_sending);
        self.bodies.forget(stream.id);
        Some(stream)
    }

    /// Fails a stream. Unless both sides are done with it, it is reset with `code`, if there is
    /// one; `is_ended`: the server has sent its last frame.
    #[cold]
    fn fail(
        &mut self,
        place: u32,
        why: impl Into<StreamFailure>,
        reset: Option<ErrorCode>,
        is_ended: bool,
        out: &mut Vec<u8>,
    ) -> Option<Event> {
        let stream = self.take(place)?;
        if let Some(code) = reset
            && (!is_ended || stream.is_sending)
        {
            self.reset(stream.id, code, out);
        }
        Some(Event::Failed {
            place,
            why: why.into(),
            discarded_bytes: stream.reply.bytes(),
        })
    }

    /// Appends RST_STREAM.
    #[cold]
    fn reset(&mut self, stream: u32, code: ErrorCode, out: &mut Vec<u8>) {
        self.has_reset_streams = true;
        frame::write_rst_stream(out, stream, code);
    }

    /// Notes that bytes taken belong to no reply.
    #[inline]
    fn add_overhead(&mut self, bytes: u64) {
        self.pending_bytes -= bytes;
        self.overhead_bytes += bytes;
    }

    /// The next stream that GOAWAY names as not processed.
    #[cold]
    fn refuse(&mut self, out: &mut Vec<u8>) -> Option<Event> {
        let last_stream = self.last_stream?;
        let first = self.refuse_from?;
        for place in first..self.streams.places() {
            if self
                .streams
                .get(place)
                .is_some_and(|stream| stream.id > last_stream)
            {
                self.refuse_from = Some(place + 1);
                return self.fail(place, StreamFailure::NotProcessed, None, true, out);
            }
        }
        self.refuse_from = None;
        None
    }
}
