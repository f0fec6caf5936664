//! One connection's client state: bytes and a time in, events out, what must be sent appended to
//! the caller's buffer.

mod streams;
#[cfg(test)]
mod tests;

use thiserror::Error;

use self::streams::{Http2Stream, Streams};
use super::frame::{
    self, ErrorCode, FrameHeader, HEADER_BYTES, Kind, PAYLOAD_BYTES, PREFACE, STREAM_MAX, Setting,
    WINDOW_BYTES, flags,
};
use super::hpack::{Decoded, Decoder, HpackError, TABLE_BYTES, encode_size_update};
use super::template::Template;
use crate::fields::reply::{self, KnownHead, MalformedReply, Meaning, ReplyFields};
use crate::limits::Bodies;
use crate::{Body, Limits};

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
    fn frame(&self) -> Vec<Setting> {
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
    fn connection_increment_bytes(&self) -> Option<u32> {
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

/// What [`Client::receive`] did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub struct Progress {
    /// Bytes taken. Without an event: all of them.
    pub consumed: usize,
    /// What they complete. There may be more without further bytes: call again, with what is left,
    /// until there is none.
    pub event: Option<Event>,
}

/// What happened on a connection.
pub type Event = reply::StreamsEvent<ErrorCode>;

/// Why one request failed. Its stream was reset by us, unless both sides were done with it.
pub type StreamFailure = reply::StreamFailure<ErrorCode>;

/// Why a whole connection cannot be used any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum ConnectionError {
    /// The server's first frame is not SETTINGS.
    #[error("the server does not speak HTTP/2")]
    NotHttp2,
    /// A frame breaks the rules.
    #[error("the server broke the protocol: {0}")]
    Protocol(#[from] Violation),
    /// More DATA than the window allows, or a window beyond its maximum.
    #[error("the server broke flow control")]
    FlowControl,
    /// A frame is larger than we accept, or has not the size of its kind.
    #[error("a frame has a wrong size")]
    FrameSize,
    /// A field block cannot be decoded.
    #[error("header compression failed: {0}")]
    Compression(#[from] HpackError),
    /// A field block is over [`head_bytes`](crate::Limits::head_bytes) as it came.
    #[error("a head is too large")]
    HeadTooLarge,
}

/// Which rule a frame breaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum Violation {
    /// It is about a stream that was never opened.
    #[error("a frame on a stream that was not opened")]
    IdleStream,
    /// It belongs to the connection and names a stream, or the other way around.
    #[error("a frame on the wrong stream")]
    WrongStream,
    /// It is not the CONTINUATION of the field block before it, or continues none.
    #[error("a field block is interrupted, or continued where there is none")]
    Continuation,
    /// It pushes a reply, which our SETTINGS forbid.
    #[error("a pushed reply, though none are allowed")]
    Push,
    /// Its padding is larger than its payload.
    #[error("more padding than payload")]
    Padding,
    /// A setting is out of its range.
    #[error("a setting out of its range")]
    Setting,
    /// The connection's window was raised by 0.
    #[error("a window raised by 0")]
    Window,
    /// GOAWAY names a higher last stream than the one before it.
    #[error("GOAWAY raises the last stream")]
    GoAway,
}

impl ConnectionError {
    /// The code to send to the server (RFC 9113 section 5.4.1).
    pub const fn code(self) -> ErrorCode {
        match self {
            Self::NotHttp2 | Self::Protocol(_) => ErrorCode::ProtocolError,
            Self::FlowControl => ErrorCode::FlowControlError,
            Self::FrameSize => ErrorCode::FrameSizeError,
            Self::Compression(_) => ErrorCode::CompressionError,
            Self::HeadTooLarge => ErrorCode::EnhanceYourCalm,
        }
    }
}

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
    stage: FrameStage,
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

/// What the next byte belongs to.
#[derive(Clone, Copy, Debug)]
enum FrameStage {
    /// The header of a frame.
    Header,
    /// The first byte of padded DATA: the length of the padding.
    Padding(FrameHeader),
    /// The payload of DATA.
    Data(Data),
    /// The payload of another frame, which is gathered.
    Payload(FrameHeader),
}

/// A DATA frame that is not complete.
#[derive(Clone, Copy, Debug)]
struct Data {
    stream: u32,
    /// Bytes to come, padding included.
    left_bytes: u32,
    padding_bytes: u8,
    ends_stream: bool,
}

/// What came in earlier reads, or earlier frames, and is not complete. Boxed, and freed when it
/// is: most connections have none most of the time.
#[derive(Debug, Default)]
struct Gathered {
    /// The payload of a frame.
    payload: Vec<u8>,
    /// A field block without its last frame.
    block: Vec<u8>,
    /// Bytes of that block's frames.
    block_wire_bytes: u64,
    /// The block's first frame ends its stream, but for CONTINUATION.
    block_ends_stream: bool,
    /// When the first byte of the block's first frame came.
    block_from_ns: u64,
}

/// A complete field block's frames.
struct BlockFrames {
    stream: u32,
    ends_stream: bool,
    wire_bytes: u64,
    /// When the first byte came.
    from_ns: u64,
}

/// Bodies are held back while the caller's buffer has more than this.
const OUT_BYTES: usize = 128 * 1024;

/// The server's dynamic table, as far as its state is our doing (RFC 7541 section 4.2).
#[derive(Debug)]
struct PeerTable {
    /// What is used at most: no more than the default is of use to us.
    bytes_max: u32,
    /// What the server allows of that.
    allowed_bytes: u32,
    /// The lowest that it allowed since the last field block.
    lowest_bytes: u32,
    /// The table's size as of the last field block.
    current_bytes: u32,
    /// The template's fields are in it.
    is_filled: bool,
}

impl PeerTable {
    /// One of which at most so many bytes are used.
    fn new(bytes_max: u32) -> Self {
        let bytes_max = bytes_max.min(TABLE_BYTES);
        Self {
            bytes_max,
            allowed_bytes: bytes_max,
            lowest_bytes: bytes_max,
            current_bytes: TABLE_BYTES,
            is_filled: false,
        }
    }

    /// The server's SETTINGS_HEADER_TABLE_SIZE.
    fn allow(&mut self, bytes: u32) {
        self.allowed_bytes = bytes.min(self.bytes_max);
        self.lowest_bytes = self.lowest_bytes.min(self.allowed_bytes);
    }

    /// Appends the head of a request.
    #[inline]
    fn write_head(&mut self, template: &Template, stream: u32, out: &mut Vec<u8>) {
        if self.lowest_bytes < self.current_bytes || self.allowed_bytes != self.current_bytes {
            self.write_resized_head(template, stream, out);
            return;
        }
        let (form, is_filled) = template.form(self.current_bytes, self.is_filled);
        self.is_filled = is_filled;
        form.write(out, stream);
    }

    /// Appends the head of a request, with the change of the table's size that is due before it.
    #[cold]
    fn write_resized_head(&mut self, template: &Template, stream: u32, out: &mut Vec<u8>) {
        let mut block = Vec::new();
        if self.lowest_bytes < self.current_bytes.min(self.allowed_bytes) {
            encode_size_update(&mut block, self.lowest_bytes);
        }
        encode_size_update(&mut block, self.allowed_bytes);
        self.is_filled &= self.lowest_bytes >= template.table_bytes();
        self.current_bytes = self.allowed_bytes;
        self.lowest_bytes = self.allowed_bytes;

        let (form, is_filled) = template.form(self.current_bytes, self.is_filled);
        self.is_filled = is_filled;
        block.extend_from_slice(&form.block);
        let end_stream = template.body().is_empty();
        frame::write_head(out, stream, &block, end_stream, PAYLOAD_BYTES);
    }
}

impl Client {
    /// A connection on which at most `depth` streams are in flight.
    pub fn new(depth: u32, settings: ClientSettings) -> Self {
        Self {
            settings,
            streams: Streams::new(),
            depth,
            next_stream: 1,
            stage: FrameStage::Header,
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
    fn take(&mut self, place: u32) -> Option<Http2Stream> {
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

    /// Appends the request with this number of `templates`, which are the same for all calls of a
    /// connection. Gives its place, below the depth given to [`new`](Self::new), which is
    /// free again after its [`Event::Reply`](crate::http2::Event::Reply) or
    /// [`Event::Failed`](crate::http2::Event::Failed), or [`cancel`](Self::cancel).
    ///
    /// Of the body, what fits the server's windows is appended, as long as `out` holds under
    /// 128 KiB; the rest follows by [`receive`](Self::receive) as the windows open, or by
    /// [`resume`](Self::resume).
    ///
    /// # Panics
    ///
    /// Unless `in_flight() < depth()`, or where there is no such template.
    #[inline]
    pub fn request(&mut self, templates: &[Template], request: u32, out: &mut Vec<u8>) -> u32 {
        let template = &templates[request as usize];
        assert!(
            self.in_flight() < self.depth(),
            "more streams than are allowed"
        );
        let id = self.next_stream;
        self.next_stream += 2;
        self.table.write_head(template, id, out);
        let mut stream = Http2Stream::new(
            id,
            self.initial_window_bytes as i32,
            self.settings.stream_window_bytes,
        );
        stream.request = request;
        stream.reply.is_head = template.is_head();
        stream.reply.is_call = template.is_call();
        stream.is_sending = !template.body().is_empty();
        let place = self.streams.insert(stream);
        if stream.is_sending {
            self.sending += 1;
            self.send_body(place, templates, out);
        }
        place
    }

    /// Whether bodies wait for [`resume`](Self::resume) and for nothing else: the windows would
    /// let more through, but it was held back so that `out` stays small.
    #[inline]
    pub fn wants_resume(&self) -> bool {
        self.is_held_back
    }

    /// Appends more of the bodies that wait, as long as `out` holds under 128 KiB. To be called
    /// when what was appended before has been sent.
    pub fn resume(&mut self, templates: &[Template], out: &mut Vec<u8>) {
        self.send_bodies(templates, out);
    }

    /// Appends what may be sent of all bodies.
    fn send_bodies(&mut self, templates: &[Template], out: &mut Vec<u8>) {
        self.is_held_back = false;
        for _ in 0..self.streams.places() {
            if self.sending == 0 || self.send_window_bytes <= 0 || self.is_held_back {
                return;
            }
            let place = self.send_from;
            self.send_body(place, templates, out);
            // One that is limited by the connection's window or by `out` is continued first.
            if self.send_window_bytes > 0 && !self.is_held_back {
                self.send_from = (place + 1) % self.streams.places();
            }
        }
    }

    /// Appends what may be sent of one body.
    fn send_body(&mut self, place: u32, templates: &[Template], out: &mut Vec<u8>) {
        let Some(stream) = self.streams.get_mut(place) else {
            return;
        };
        while stream.is_sending {
            let window = self.send_window_bytes.min(stream.send_window_bytes);
            let Ok(window @ 1..) = usize::try_from(window) else {
                return;
            };
            if out.len() >= OUT_BYTES {
                self.is_held_back = true;
                return;
            }
            let body = templates[stream.request as usize].body();
            let rest = body.get(stream.body_sent_bytes..).unwrap_or(&[]);
            let piece = &rest[..rest.len().min(window).min(PAYLOAD_BYTES as usize)];
            let is_last = piece.len() == rest.len();
            frame::write_data_header(out, stream.id, piece.len() as u32, is_last);
            out.extend_from_slice(piece);
            stream.body_sent_bytes += piece.len();
            stream.send_window_bytes -= piece.len() as i32;
            self.send_window_bytes -= piece.len() as i32;
            if is_last {
                stream.is_sending = false;
                self.sending -= 1;
            }
        }
    }

    /// Takes `bytes` up to the next event.
    fn receive_frames(
        &mut self,
        bytes: &[u8],
        call: &mut Call<'_>,
    ) -> Result<Progress, ConnectionError> {
        if let Some(error) = self.failed {
            return Err(error);
        }
        let mut consumed = 0;
        loop {
            if self.refuse_from.is_some()
                && let event @ Some(_) = self.refuse(call.out)
            {
                return Ok(Progress { consumed, event });
            }
            let rest = &bytes[consumed..];
            if rest.is_empty() {
                let event = None;
                return Ok(Progress { consumed, event });
            }
            let (taken, event) = match self.stage {
                FrameStage::Header => {
                    let (taken, header) = self.take_header(rest, call.now_ns);
                    self.pending_bytes += taken as u64;
                    consumed += taken;
                    match header {
                        Some(header) => self.begin(header, &rest[taken..], call)?,
                        None => (0, None),
                    }
                }
                FrameStage::Padding(header) => {
                    self.pending_bytes += 1;
                    (1, self.begin_data(header, Some(rest[0]), call)?)
                }
                FrameStage::Data(data) => self.more_data(data, rest, call)?,
                FrameStage::Payload(header) => self.more_payload(header, rest, call)?,
            };
            consumed += taken;
            if event.is_some() {
                return Ok(Progress { consumed, event });
            }
        }
    }

    /// Takes a frame's header; `None`: it is not complete.
    #[inline]
    fn take_header(&mut self, bytes: &[u8], now_ns: u64) -> (usize, Option<FrameHeader>) {
        let before = usize::from(self.header_bytes);
        if before == 0 {
            self.frame_from_ns = now_ns;
            if let Some(header) = bytes.first_chunk() {
                return (HEADER_BYTES, Some(FrameHeader::read(header)));
            }
        }
        let taken = bytes.len().min(HEADER_BYTES - before);
        self.header[before..before + taken].copy_from_slice(&bytes[..taken]);
        if before + taken < HEADER_BYTES {
            self.header_bytes = (before + taken) as u8;
            return (taken, None);
        }
        self.header_bytes = 0;
        (taken, Some(FrameHeader::read(&self.header)))
    }

    /// A frame's header is complete, and `rest` comes after it; also returns how much of that was
    /// taken.
    #[inline]
    fn begin(
        &mut self,
        header: FrameHeader,
        rest: &[u8],
        call: &mut Call<'_>,
    ) -> Result<(usize, Option<Event>), ConnectionError> {
        self.check_order(header)?;
        if header.kind == Kind::Data {
            self.check_opened(header.stream)?;
            if !header.has(flags::PADDED) {
                return Ok((0, self.begin_data(header, None, call)?));
            }
            if header.length == 0 {
                return Err(ConnectionError::FrameSize);
            }
            self.stage = FrameStage::Padding(header);
            return Ok((0, None));
        }
        let length = header.length as usize;
        if let Some(payload) = rest.get(..length) {
            self.pending_bytes += length as u64;
            return Ok((length, self.whole_frame(header, payload, call)?));
        }
        // Of a longer one, memory is taken as it comes.
        let room = length.min(PAYLOAD_BYTES as usize);
        self.gathered.get_or_insert_default().payload = Vec::with_capacity(room);
        self.stage = FrameStage::Payload(header);
        Ok((0, None))
    }

    /// Whether the frame may come now.
    #[inline]
    fn check_order(&self, header: FrameHeader) -> Result<(), ConnectionError> {
        if !self.is_ready && (header.kind != Kind::Settings || header.has(flags::ACK)) {
            return Err(ConnectionError::NotHttp2);
        }
        if header.length > self.settings.frame_bytes_max {
            return Err(ConnectionError::FrameSize);
        }
        let continues = header.kind == Kind::Continuation;
        let is_continued = self.block_stream != 0;
        if continues != is_continued || (continues && header.stream != self.block_stream) {
            return Err(Violation::Continuation.into());
        }
        Ok(())
    }

    /// Whether `stream` is one that was opened. Ours are odd.
    #[inline]
    fn check_opened(&self, stream: u32) -> Result<(), Violation> {
        if stream == 0 {
            Err(Violation::WrongStream)
        } else if stream.is_multiple_of(2) || stream >= self.next_stream {
            Err(Violation::IdleStream)
        } else {
            Ok(())
        }
    }

    /// Takes more of a payload that is gathered; also returns how much.
    fn more_payload(
        &mut self,
        header: FrameHeader,
        bytes: &[u8],
        call: &mut Call<'_>,
    ) -> Result<(usize, Option<Event>), ConnectionError> {
        let gathered = self.gathered.get_or_insert_default();
        let left = (header.length as usize).saturating_sub(gathered.payload.len());
        let piece = &bytes[..bytes.len().min(left)];
        gathered.payload.extend_from_slice(piece);
        self.pending_bytes += piece.len() as u64;
        if piece.len() < left {
            return Ok((piece.len(), None));
        }
        let payload = std::mem::take(&mut gathered.payload);
        if self.block_stream == 0 {
            self.gathered = None;
        }
        self.stage = FrameStage::Header;
        Ok((piece.len(), self.whole_frame(header, &payload, call)?))
    }

    /// Takes a whole frame other than DATA. Its bytes are pending.
    #[inline]
    fn whole_frame(
        &mut self,
        header: FrameHeader,
        payload: &[u8],
        call: &mut Call<'_>,
    ) -> Result<Option<Event>, ConnectionError> {
        match header.kind {
            Kind::Headers => self.headers(header, payload, call),
            Kind::Continuation => self.continuation(header, payload, call),
            _ => self.other_frame(header, payload, call),
        }
    }

    /// Takes a frame that carries nothing of a reply.
    fn other_frame(
        &mut self,
        header: FrameHeader,
        payload: &[u8],
        call: &mut Call<'_>,
    ) -> Result<Option<Event>, ConnectionError> {
        if header.kind == Kind::RstStream {
            return self.rst_stream(header, payload, call);
        }
        self.add_overhead((HEADER_BYTES + payload.len()) as u64);
        if matches!(header.kind, Kind::Settings | Kind::Ping | Kind::GoAway) && header.stream != 0 {
            return Err(Violation::WrongStream.into());
        }
        match header.kind {
            Kind::Settings => self.settings(header, payload, call),
            Kind::Ping => {
                let payload = frame::ping(payload).map_err(|_| ConnectionError::FrameSize)?;
                if !header.has(flags::ACK) {
                    frame::write_ping(call.out, payload, true);
                }
                Ok(None)
            }
            Kind::GoAway => self.go_away(payload),
            Kind::WindowUpdate => self.window_update(header, payload, call),
            Kind::PushPromise => Err(Violation::Push.into()),
            Kind::Data
            | Kind::Headers
            | Kind::Continuation
            | Kind::RstStream
            | Kind::Priority
            | Kind::Other(_) => Ok(None),
        }
    }

    /// RFC 9113 section 6.4.
    fn rst_stream(
        &mut self,
        header: FrameHeader,
        payload: &[u8],
        call: &mut Call<'_>,
    ) -> Result<Option<Event>, ConnectionError> {
        let wire_bytes = (HEADER_BYTES + payload.len()) as u64;
        self.check_opened(header.stream)?;
        let code = frame::rst_stream(payload).map_err(|_| ConnectionError::FrameSize)?;
        let Some((place, stream)) = self.streams.find(header.stream) else {
            self.add_overhead(wire_bytes);
            return Ok(None);
        };
        stream.reply.body_bytes += wire_bytes;
        Ok(self.fail(place, StreamFailure::Reset(code), None, true, call.out))
    }

    /// RFC 9113 section 6.5.
    fn settings(
        &mut self,
        header: FrameHeader,
        payload: &[u8],
        call: &mut Call<'_>,
    ) -> Result<Option<Event>, ConnectionError> {
        if header.has(flags::ACK) {
            return if payload.is_empty() {
                Ok(None)
            } else {
                Err(ConnectionError::FrameSize)
            };
        }
        let mut initial_window_bytes = self.initial_window_bytes;
        for setting in frame::settings(payload).map_err(|_| ConnectionError::FrameSize)? {
            match setting.check() {
                Ok(()) => {}
                Err(ErrorCode::FlowControlError) => return Err(ConnectionError::FlowControl),
                Err(_) => return Err(Violation::Setting.into()),
            }
            match setting {
                Setting::HeaderTableSize(bytes) => self.table.allow(bytes),
                Setting::MaxConcurrentStreams(streams) => self.peer_streams_max = Some(streams),
                Setting::InitialWindowSize(bytes) => initial_window_bytes = bytes,
                // Only a client can allow it.
                Setting::EnablePush(1) => return Err(Violation::Setting.into()),
                // Frames never have more than every endpoint takes.
                Setting::EnablePush(_)
                | Setting::MaxFrameSize(_)
                | Setting::MaxHeaderListSize(_)
                | Setting::Other { .. } => {}
            }
        }
        frame::write_settings_ack(call.out);
        if initial_window_bytes != self.initial_window_bytes {
            let difference = i64::from(initial_window_bytes) - i64::from(self.initial_window_bytes);
            self.initial_window_bytes = initial_window_bytes;
            if !self.streams.widen(difference) {
                return Err(ConnectionError::FlowControl);
            }
            self.send_bodies(call.templates, call.out);
        }
        if self.is_ready {
            return Ok(None);
        }
        self.is_ready = true;
        Ok(Some(Event::Ready))
    }

    /// RFC 9113 section 6.8.
    fn go_away(&mut self, payload: &[u8]) -> Result<Option<Event>, ConnectionError> {
        let (last_stream, code) =
            frame::go_away(payload).map_err(|_| ConnectionError::FrameSize)?;
        let earlier = self.last_stream.replace(last_stream);
        if earlier.is_some_and(|earlier| earlier < last_stream) {
            return Err(Violation::GoAway.into());
        }
        if earlier != Some(last_stream) {
            self.refuse_from = Some(0);
        }
        Ok(earlier
            .is_none()
            .then_some(Event::GoAway { code: Some(code) }))
    }

    /// RFC 9113 section 6.9.
    fn window_update(
        &mut self,
        header: FrameHeader,
        payload: &[u8],
        call: &mut Call<'_>,
    ) -> Result<Option<Event>, ConnectionError> {
        let increment = frame::window_update(payload).map_err(|_| ConnectionError::FrameSize)?;
        // Both have at most 31 bits.
        let increment = increment as i32;
        if header.stream == 0 {
            if increment == 0 {
                return Err(Violation::Window.into());
            }
            self.send_window_bytes = self
                .send_window_bytes
                .checked_add(increment)
                .ok_or(ConnectionError::FlowControl)?;
            self.send_bodies(call.templates, call.out);
            return Ok(None);
        }
        self.check_opened(header.stream)?;
        let Some((place, stream)) = self.streams.find(header.stream) else {
            return Ok(None);
        };
        let code = match stream.send_window_bytes.checked_add(increment) {
            Some(window) if increment > 0 => {
                stream.send_window_bytes = window;
                if stream.is_sending {
                    self.send_body(place, call.templates, call.out);
                }
                return Ok(None);
            }
            Some(_) => ErrorCode::ProtocolError,
            None => ErrorCode::FlowControlError,
        };
        Ok(self.fail(place, StreamFailure::Window, Some(code), false, call.out))
    }

    /// Counts the payload of a DATA frame against the connection's window, and opens that again.
    #[inline]
    fn use_window(&mut self, bytes: u32, out: &mut Vec<u8>) -> Result<(), ConnectionError> {
        let window = self.receive_window_bytes.checked_sub(bytes);
        self.receive_window_bytes = window.ok_or(ConnectionError::FlowControl)?;
        let whole_bytes = self.settings.connection_window_bytes;
        if self.receive_window_bytes <= whole_bytes / 2 && whole_bytes > 0 {
            frame::write_window_update(out, 0, whole_bytes - self.receive_window_bytes);
            self.receive_window_bytes = whole_bytes;
        }
        Ok(())
    }

    /// RFC 9113 section 6.2.
    #[inline]
    fn headers(
        &mut self,
        header: FrameHeader,
        payload: &[u8],
        call: &mut Call<'_>,
    ) -> Result<Option<Event>, ConnectionError> {
        self.check_opened(header.stream)?;
        let block = header.content(payload).map_err(|code| match code {
            ErrorCode::FrameSizeError => ConnectionError::FrameSize,
            _ => Violation::Padding.into(),
        })?;
        let frames = BlockFrames {
            stream: header.stream,
            ends_stream: header.has(flags::END_STREAM),
            wire_bytes: (HEADER_BYTES + payload.len()) as u64,
            from_ns: self.frame_from_ns,
        };
        if header.has(flags::END_HEADERS) {
            return self.block(&frames, block, call);
        }
        check_block(block.len(), call)?;
        self.block_stream = header.stream;
        let gathered = self.gathered.get_or_insert_default();
        gathered.block = block.to_vec();
        gathered.block_wire_bytes = frames.wire_bytes;
        gathered.block_ends_stream = frames.ends_stream;
        gathered.block_from_ns = frames.from_ns;
        Ok(None)
    }

    /// RFC 9113 section 6.10.
    fn continuation(
        &mut self,
        header: FrameHeader,
        payload: &[u8],
        call: &mut Call<'_>,
    ) -> Result<Option<Event>, ConnectionError> {
        let gathered = self.gathered.get_or_insert_default();
        gathered.block_wire_bytes += (HEADER_BYTES + payload.len()) as u64;
        // Frames without content count too: they could go on for ever.
        check_block(gathered.block_wire_bytes as usize, call)?;
        gathered.block.extend_from_slice(payload);
        if !header.has(flags::END_HEADERS) {
            return Ok(None);
        }
        let frames = BlockFrames {
            stream: header.stream,
            ends_stream: gathered.block_ends_stream,
            wire_bytes: gathered.block_wire_bytes,
            from_ns: gathered.block_from_ns,
        };
        let block = std::mem::take(&mut gathered.block);
        self.block_stream = 0;
        self.gathered = None;
        self.block(&frames, &block, call)
    }

    /// Takes a complete field block: a head, an interim one, trailers, or one of a stream that is
    /// gone.
    #[inline]
    fn block(
        &mut self,
        frames: &BlockFrames,
        block: &[u8],
        call: &mut Call<'_>,
    ) -> Result<Option<Event>, ConnectionError> {
        check_block(block.len(), call)?;
        let Some((place, stream)) = self.streams.find(frames.stream) else {
            // The dynamic table needs it (RFC 9113 section 4.3).
            let scratch = call.known.scratch();
            self.decoder.decode(block, scratch, |_, _| {})?;
            self.add_overhead(frames.wire_bytes);
            return Ok(None);
        };
        let reply = &mut stream.reply;
        if reply.has_head() {
            reply.body_bytes += frames.wire_bytes;
            return self.trailers(place, frames, block, call);
        }
        if reply.head_bytes == 0 {
            reply.first_byte_ns = frames.from_ns;
        }
        reply.head_bytes += frames.wire_bytes;

        let is_closed = self.decoder.is_closed();
        let decode = decode(&mut self.decoder, block);
        let head = call.known.head(block, is_closed, call.limits, decode)?;
        let taken = head.and_then(|head| {
            let is_final = reply.take_head(head, frames.ends_stream, call.limits)?;
            Ok(is_final.then_some(head.status))
        });
        match taken {
            Ok(None) => return Ok(None),
            Ok(Some(status)) => self
                .bodies
                .begin(stream.id, status, call.limits.bodies, &[]),
            Err(why) => return Ok(self.malformed(place, why, frames.ends_stream, call)),
        }
        if frames.ends_stream {
            return Ok(self.complete(place, call));
        }
        Ok(None)
    }

    fn trailers(
        &mut self,
        place: u32,
        frames: &BlockFrames,
        block: &[u8],
        call: &mut Call<'_>,
    ) -> Result<Option<Event>, ConnectionError> {
        let decode = decode(&mut self.decoder, block);
        let trailers = call.known.trailers(call.limits, decode)?;
        let why = match (trailers, self.streams.get_mut(place)) {
            (Ok(call_code), Some(stream)) if frames.ends_stream => {
                stream.reply.take_trailers(call_code);
                return Ok(self.complete(place, call));
            }
            (trailers, _) => trailers.err().unwrap_or(MalformedReply::Head),
        };
        Ok(self.malformed(place, why, frames.ends_stream, call))
    }

    /// A DATA frame begins (RFC 9113 section 6.1). `padding`: the length of its padding, whose
    /// byte was taken, where it is padded.
    #[inline]
    fn begin_data(
        &mut self,
        header: FrameHeader,
        padding: Option<u8>,
        call: &mut Call<'_>,
    ) -> Result<Option<Event>, ConnectionError> {
        let left_bytes = header.length - u32::from(padding.is_some());
        let content_bytes = left_bytes
            .checked_sub(u32::from(padding.unwrap_or(0)))
            .ok_or(Violation::Padding)?;
        self.use_window(header.length, call.out)?;
        let ends_stream = header.has(flags::END_STREAM);
        self.stage = match left_bytes {
            0 => FrameStage::Header,
            _ => FrameStage::Data(Data {
                stream: header.stream,
                left_bytes,
                padding_bytes: padding.unwrap_or(0),
                ends_stream,
            }),
        };

        let wire_bytes = HEADER_BYTES as u64 + u64::from(padding.is_some());
        let Some((place, stream)) = self.streams.find(header.stream) else {
            self.add_overhead(wire_bytes);
            return Ok(None);
        };
        stream.reply.body_bytes += wire_bytes;
        if !stream.reply.has_head() {
            return Ok(self.malformed(place, MalformedReply::Head, ends_stream, call));
        }
        if let Err(why) = stream.reply.take_content(content_bytes.into()) {
            return Ok(self.malformed(place, why, ends_stream, call));
        }
        let window = stream.receive_window_bytes.checked_sub(header.length);
        stream.receive_window_bytes = window.ok_or(ConnectionError::FlowControl)?;
        let whole_bytes = self.settings.stream_window_bytes;
        let is_used = stream.receive_window_bytes <= whole_bytes / 2 && header.length > 0;
        if is_used && !ends_stream {
            let increment_bytes = whole_bytes - stream.receive_window_bytes;
            frame::write_window_update(call.out, stream.id, increment_bytes);
            stream.receive_window_bytes = whole_bytes;
        }
        if left_bytes == 0 && ends_stream {
            return Ok(self.complete(place, call));
        }
        Ok(None)
    }

    /// Takes more of a DATA frame's payload; also returns how much.
    #[inline]
    fn more_data(
        &mut self,
        data: Data,
        bytes: &[u8],
        call: &mut Call<'_>,
    ) -> Result<(usize, Option<Event>), ConnectionError> {
        let taken = bytes.len().min(data.left_bytes as usize);
        let left_bytes = data.left_bytes - taken as u32;
        self.pending_bytes += taken as u64;
        self.stage = match left_bytes {
            0 => FrameStage::Header,
            _ => FrameStage::Data(Data { left_bytes, ..data }),
        };
        let Some((place, stream)) = self.streams.find(data.stream) else {
            self.add_overhead(taken as u64);
            return Ok((taken, None));
        };
        stream.reply.body_bytes += taken as u64;
        // The padding comes last.
        let content_bytes = data.left_bytes.saturating_sub(data.padding_bytes.into()) as usize;
        let content = &bytes[..taken.min(content_bytes)];
        self.bodies.add(data.stream, content);
        let event = if left_bytes == 0 && data.ends_stream {
            self.complete(place, call)
        } else {
            None
        };
        Ok((taken, event))
    }

    /// The server has sent its last frame of a stream.
    #[inline]
    fn complete(&mut self, place: u32, call: &mut Call<'_>) -> Option<Event> {
        let stream = self.streams.get(place)?;
        let reply = match stream.reply.end() {
            Ok(reply) => reply,
            Err(why) => return self.malformed(place, why, true, call),
        };
        self.bodies.complete(stream.id);
        let stream = self.take(place)?;
        if stream.is_sending {
            // The server did not need the rest of the body (RFC 9113 section 8.1).
            self.reset(stream.id, ErrorCode::Cancel, call.out);
        }
        Some(Event::Reply { place, reply })
    }

    /// A reply breaks a rule (RFC 9113 section 8.1.1).
    #[cold]
    fn malformed(
        &mut self,
        place: u32,
        why: MalformedReply,
        is_ended: bool,
        call: &mut Call<'_>,
    ) -> Option<Event> {
        let code = Some(ErrorCode::ProtocolError);
        self.fail(place, why, code, is_ended, call.out)
    }
}

/// Field blocks are bounded as they come: the decoder's state would be lost with a part of one.
#[inline]
fn check_block(bytes: usize, call: &Call<'_>) -> Result<(), ConnectionError> {
    if bytes > call.limits.head_bytes as usize {
        return Err(ConnectionError::HeadTooLarge);
    }
    Ok(())
}

/// Decodes a field block for [`KnownHead`].
fn decode<'a>(
    decoder: &'a mut Decoder<Meaning>,
    block: &'a [u8],
) -> impl FnOnce(&mut Vec<u8>, &mut ReplyFields) -> Result<Decoded, HpackError> + 'a {
    move |scratch, fields| decoder.decode(block, scratch, |field, bytes| fields.add(field, bytes))
}
