//! Messages on one request stream, in either direction, at any split of the input (RFC 9114
//! sections 4.1 and 7): their frames, replies as a client sees them, requests as a server does.

use super::error::{ConnectionError, ReplyError, RequestReadError, StreamFailure};
use super::frame::{Kind, Pieces, Side};
use super::qpack::{self, QpackError};
use crate::fields::coding::Decoded;
use crate::fields::reply::{
    KnownHead, MalformedReply, Meaning, ReadField, Reply, ReplyFields, ReplyState,
};
use crate::limits::Bodies;
use crate::{Body, Limits};

/// What comes on a request stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part<'a> {
    /// A whole field section.
    Fields {
        section: &'a [u8],
        /// It came behind a final head.
        is_trailers: bool,
        /// Bytes of its frame.
        wire_bytes: u64,
    },
    /// The header of a DATA frame.
    DataHeader { payload_bytes: u64, wire_bytes: u64 },
    /// A piece of the payload of a DATA frame, not empty.
    Data(&'a [u8]),
    /// So many bytes of frames that are passed over.
    PassedOver(u64),
}

/// Why the frames cannot be read on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    /// A field section is longer than allowed; nothing of it was kept.
    HeadTooLarge,
    Connection(ConnectionError),
}

/// What the next byte belongs to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum MessageStage {
    /// The type of a frame.
    #[default]
    Kind,
    /// The length of a frame.
    Length(Kind),
    /// The payload of HEADERS, which is gathered: bytes to come.
    Fields(usize),
    /// The payload of DATA: bytes to come.
    Data(u64),
    /// The payload of a frame that is passed over: bytes to come.
    PassedOver(u64),
}

impl MessageStage {
    /// Within a payload of which so many bytes are to come, or behind it.
    #[inline]
    fn of_left(left: u64, payload: impl Fn(u64) -> Self) -> Self {
        match left {
            0 => Self::Kind,
            _ => payload(left),
        }
    }
}

/// Which of the frames of a message may come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum MessagePhase {
    /// HEADERS: a head.
    #[default]
    Head,
    /// DATA, and HEADERS: trailers.
    Content,
    /// Neither.
    End,
}

/// Reads the frames of one direction of a request stream.
#[derive(Debug, Default)]
struct MessageReader {
    stage: MessageStage,
    phase: MessagePhase,
    number: Pieces,
    /// Bytes of the current frame that were taken and are in no part.
    pending_bytes: u64,
    /// A field section that came in several pieces; freed when it is used.
    gathered: Vec<u8>,
}

impl MessageReader {
    /// Bytes taken that are in no part.
    #[inline]
    fn pending_bytes(&self) -> u64 {
        self.pending_bytes
    }

    /// Bytes that are kept of a field section.
    fn kept_bytes(&self) -> usize {
        self.gathered.capacity()
    }

    /// Whether the next byte begins a frame.
    #[inline]
    fn is_between_frames(&self) -> bool {
        self.stage == MessageStage::Kind && self.number.is_empty()
    }

    /// The head that came last is an interim one: another follows.
    #[inline]
    fn expect_head(&mut self) {
        self.phase = MessagePhase::Head;
    }

    /// Takes bytes off `rest` up to the next part. `side`: who reads. `section_bytes_max`: bytes of
    /// a field section as it comes. `None`: all of `rest` was taken.
    #[inline]
    fn receive<'s, 'b: 's>(
        &'s mut self,
        rest: &mut &'b [u8],
        side: Side,
        section_bytes_max: u32,
    ) -> Result<Option<Part<'s>>, Fault> {
        if !self.gathered.is_empty() && !matches!(self.stage, MessageStage::Fields(_)) {
            self.gathered = Vec::new();
        }
        while !rest.is_empty() {
            match self.stage {
                MessageStage::Kind => {
                    let Some(number) = self.take_number(rest) else {
                        return Ok(None);
                    };
                    let kind = Kind::of(number);
                    self.check(kind, side).map_err(Fault::Connection)?;
                    self.stage = MessageStage::Length(kind);
                }
                MessageStage::Length(kind) => {
                    let Some(length) = self.take_number(rest) else {
                        return Ok(None);
                    };
                    match kind {
                        Kind::Headers if length > section_bytes_max.into() => {
                            return Err(Fault::HeadTooLarge);
                        }
                        Kind::Headers => {
                            let length = length as usize;
                            if let Some((section, tail)) = rest.split_at_checked(length) {
                                *rest = tail;
                                self.pending_bytes += length as u64;
                                let (is_trailers, wire_bytes) = self.end_fields();
                                return Ok(Some(Part::Fields {
                                    section,
                                    is_trailers,
                                    wire_bytes,
                                }));
                            }
                            self.stage = MessageStage::Fields(length);
                        }
                        Kind::Data => {
                            self.stage = MessageStage::of_left(length, MessageStage::Data);
                            return Ok(Some(Part::DataHeader {
                                payload_bytes: length,
                                wire_bytes: std::mem::take(&mut self.pending_bytes),
                            }));
                        }
                        _ => {
                            self.stage = MessageStage::of_left(length, MessageStage::PassedOver);
                            let bytes = std::mem::take(&mut self.pending_bytes);
                            return Ok(Some(Part::PassedOver(bytes)));
                        }
                    }
                }
                MessageStage::Fields(left) => {
                    let (piece, tail) = rest.split_at(rest.len().min(left));
                    *rest = tail;
                    self.gathered.extend_from_slice(piece);
                    self.pending_bytes += piece.len() as u64;
                    if piece.len() < left {
                        self.stage = MessageStage::Fields(left - piece.len());
                        return Ok(None);
                    }
                    let (is_trailers, wire_bytes) = self.end_fields();
                    return Ok(Some(Part::Fields {
                        section: &self.gathered,
                        is_trailers,
                        wire_bytes,
                    }));
                }
                MessageStage::Data(left) => {
                    let (piece, left) = take_piece(rest, left);
                    self.stage = MessageStage::of_left(left, MessageStage::Data);
                    return Ok(Some(Part::Data(piece)));
                }
                MessageStage::PassedOver(left) => {
                    let (piece, left) = take_piece(rest, left);
                    self.stage = MessageStage::of_left(left, MessageStage::PassedOver);
                    return Ok(Some(Part::PassedOver(piece.len() as u64)));
                }
            }
        }
        Ok(None)
    }

    /// The stream ended. True where a head came and no other is to follow; a frame that is cut off
    /// is an error (RFC 9114 section 7.1).
    fn end(&self) -> Result<bool, ConnectionError> {
        if self.is_between_frames() {
            Ok(self.phase != MessagePhase::Head)
        } else {
            Err(ConnectionError::FrameSize)
        }
    }

    #[inline]
    fn take_number(&mut self, rest: &mut &[u8]) -> Option<u64> {
        let before = rest.len();
        let number = self.number.take(rest);
        self.pending_bytes += (before - rest.len()) as u64;
        number
    }

    /// A field section is whole: whether it is trailers, and the bytes of its frame.
    #[inline]
    fn end_fields(&mut self) -> (bool, u64) {
        let is_trailers = self.phase == MessagePhase::Content;
        self.stage = MessageStage::Kind;
        self.phase = if is_trailers {
            MessagePhase::End
        } else {
            MessagePhase::Content
        };
        (is_trailers, std::mem::take(&mut self.pending_bytes))
    }

    /// Whether a frame may come now.
    #[inline]
    fn check(&self, kind: Kind, side: Side) -> Result<(), ConnectionError> {
        match (kind, self.phase) {
            (Kind::Headers, MessagePhase::Head | MessagePhase::Content)
            | (Kind::Data, MessagePhase::Content) => Ok(()),
            (Kind::Other(_), _) if !kind.is_of_http2() => Ok(()),
            // We sent no MAX_PUSH_ID (RFC 9114 section 7.2.5).
            (Kind::PushPromise, _) if side == Side::Client => Err(ConnectionError::Push),
            _ => Err(ConnectionError::FrameUnexpected),
        }
    }
}

/// Takes what there is of `left` bytes; also returns how many are to come.
#[inline]
fn take_piece<'b>(rest: &mut &'b [u8], left: u64) -> (&'b [u8], u64) {
    let bytes = usize::try_from(left).map_or(rest.len(), |left| rest.len().min(left));
    let (piece, tail) = rest.split_at(bytes);
    *rest = tail;
    (piece, left - bytes as u64)
}

/// The number under which bodies are kept: a reader has one.
const STREAM: u32 = 0;

/// Reads the reply on one request stream (RFC 9114 section 4.1).
///
/// What it gives depends on the bytes alone, not on how they are cut. It keeps a field section that
/// is split over reads, which [`Limits::head_bytes`] bounds before anything is kept, and otherwise
/// counts. Every byte is accounted for: the bytes received are those of the reply
/// (`head_bytes + body_bytes`), or those pending, and the overhead.
#[derive(Debug)]
pub(super) struct ReplyReader {
    frames: MessageReader,
    state: ReplyState,
    bodies: Bodies,
    overhead_bytes: u64,
}

impl ReplyReader {
    /// A stream of which nothing came. `is_head`: the request's method is `HEAD`.
    pub(super) fn new(is_head: bool) -> Self {
        Self {
            frames: MessageReader::default(),
            state: ReplyState::new(is_head),
            bodies: Bodies::default(),
            overhead_bytes: 0,
        }
    }

    /// The request is a call of gRPC: its reply is to say that it succeeded.
    pub(super) fn expect_call(&mut self) {
        self.state.is_call = true;
    }

    /// Takes bytes of the stream, in their order. `now_ns`: when they were received. `limits` and
    /// `known` are the same for all calls of a worker.
    ///
    /// # Errors
    ///
    /// The stream, or the connection, cannot be used any more, and nor can the reader. All of
    /// `bytes` count as taken.
    #[inline]
    pub(super) fn receive(
        &mut self,
        bytes: &[u8],
        now_ns: u64,
        limits: &Limits,
        known: &mut KnownHead,
    ) -> Result<(), ReplyError> {
        let mut rest = bytes;
        let taken = self.take_parts(&mut rest, now_ns, limits, known);
        if taken.is_err() {
            self.state.body_bytes += rest.len() as u64;
        }
        taken
    }

    #[inline]
    fn take_parts(
        &mut self,
        rest: &mut &[u8],
        now_ns: u64,
        limits: &Limits,
        known: &mut KnownHead,
    ) -> Result<(), ReplyError> {
        if self.state.head_bytes == 0 && self.frames.is_between_frames() {
            self.state.first_byte_ns = now_ns;
        }
        loop {
            let received = self.frames.receive(rest, Side::Client, limits.head_bytes);
            let part = match received {
                Ok(Some(part)) => part,
                Ok(None) => return Ok(()),
                Err(Fault::HeadTooLarge) => return Err(MalformedReply::HeadTooLarge.into()),
                Err(Fault::Connection(error)) => return Err(error.into()),
            };
            match part {
                Part::Fields {
                    section,
                    is_trailers: false,
                    wire_bytes,
                } => {
                    self.state.head_bytes += wire_bytes;
                    // Without a dynamic table, all of them are closed.
                    let head = known.head(section, true, limits, decode(section));
                    let head = head.map_err(ConnectionError::from)??;
                    if self.state.take_head(head, false, limits)? {
                        let wanted = limits.bodies;
                        self.bodies.begin(STREAM, head.status, wanted, &[]);
                    } else {
                        self.frames.expect_head();
                    }
                }
                Part::Fields {
                    section,
                    is_trailers: true,
                    wire_bytes,
                } => {
                    self.state.body_bytes += wire_bytes;
                    let read = known.trailers(limits, decode(section));
                    let call_code = read.map_err(ConnectionError::from)??;
                    self.state.take_trailers(call_code);
                }
                Part::DataHeader {
                    payload_bytes,
                    wire_bytes,
                } => {
                    self.state.body_bytes += wire_bytes;
                    self.state.take_content(payload_bytes)?;
                }
                Part::Data(content) => {
                    self.state.body_bytes += content.len() as u64;
                    self.bodies.add(STREAM, content);
                }
                Part::PassedOver(bytes) => {
                    self.overhead_bytes += bytes;
                    if self.state.head_bytes == 0 {
                        // Of the frame that may follow.
                        self.state.first_byte_ns = now_ns;
                    }
                }
            }
        }
    }

    /// The server ended the stream: gives the reply.
    ///
    /// # Errors
    ///
    /// The reply is not complete, or is cut off inside a frame, which is an error of the
    /// connection.
    #[inline]
    pub(super) fn end(&mut self) -> Result<Reply, ReplyError> {
        if !self.frames.end()? {
            return Err(StreamFailure::Incomplete.into());
        }
        let reply = self.state.end()?;
        self.bodies.complete(STREAM);
        Ok(reply)
    }

    /// Takes the body of the reply that [`end`](Self::end) gave, where [`Limits::bodies`] has it
    /// kept.
    pub(super) fn take_body(&mut self) -> Option<Body> {
        self.bodies.take()
    }

    /// Bytes received of the reply, which are its own once it is given out, and of a frame that is
    /// not complete; after an error, with those that were not looked at.
    #[inline]
    pub(super) fn pending_bytes(&self) -> u64 {
        self.state.bytes() + self.frames.pending_bytes()
    }

    /// Bytes received since this was last asked that belong to no reply: frames that are passed
    /// over (RFC 9114 section 7.2.8).
    #[inline]
    pub(super) fn take_overhead(&mut self) -> u64 {
        std::mem::take(&mut self.overhead_bytes)
    }
}

/// What comes of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequestPart<'a> {
    /// The whole field section of the head, to be [decoded](qpack::decode).
    Head(&'a [u8]),
    /// A piece of the content, not empty.
    Content(&'a [u8]),
    /// The whole field section of the trailers.
    Trailers(&'a [u8]),
    /// Nothing of the request itself: the header of a frame, or a frame that is passed over.
    Framing,
}

/// Reads the request on one stream (RFC 9114 section 4.1).
///
/// What it gives depends on the bytes alone, but for how the content is cut. It keeps a field
/// section that is split over reads, which is bounded before anything is kept.
#[derive(Debug, Default)]
pub struct RequestReader {
    frames: MessageReader,
    /// Bytes that DATA frames must add up to.
    content_length: Option<u64>,
    /// Bytes in DATA frames.
    content_bytes: u64,
    wire_bytes: u64,
}

impl RequestReader {
    /// Takes bytes off `rest`, in their order, up to the next part of the request. `None`: all of
    /// `rest` was taken. `head_bytes_max`: bytes of a field section as it comes.
    ///
    /// # Errors
    ///
    /// The stream, or the connection, cannot be used any more, and nor can the reader.
    pub fn receive<'s, 'b: 's>(
        &'s mut self,
        rest: &mut &'b [u8],
        head_bytes_max: u32,
    ) -> Result<Option<RequestPart<'s>>, RequestReadError> {
        let before = rest.len();
        let received = self.frames.receive(rest, Side::Server, head_bytes_max);
        self.wire_bytes += (before - rest.len()) as u64;
        Ok(match received {
            Ok(None) => None,
            Ok(Some(part)) => Some(match part {
                Part::Fields {
                    section,
                    is_trailers: false,
                    ..
                } => RequestPart::Head(section),
                Part::Fields { section, .. } => RequestPart::Trailers(section),
                Part::Data(content) => RequestPart::Content(content),
                Part::PassedOver(_) => RequestPart::Framing,
                Part::DataHeader { payload_bytes, .. } => {
                    self.content_bytes = self.content_bytes.saturating_add(payload_bytes);
                    let is_more = |length| self.content_bytes > length;
                    if self.content_length.is_some_and(is_more) {
                        return Err(RequestReadError::ContentLength);
                    }
                    RequestPart::Framing
                }
            }),
            Err(Fault::HeadTooLarge) => return Err(RequestReadError::HeadTooLarge),
            Err(Fault::Connection(error)) => return Err(error.into()),
        })
    }

    /// What the head says of the bytes of content; to be called before anything more is taken.
    pub fn set_content_length(&mut self, content_length: Option<u64>) {
        self.content_length = content_length;
    }

    /// The client ended the stream: the request is complete.
    ///
    /// # Errors
    ///
    /// It is not, or is cut off inside a frame, which is an error of the connection.
    pub fn end(&self) -> Result<(), RequestReadError> {
        if !self.frames.end()? {
            return Err(RequestReadError::Incomplete);
        }
        match self.content_length {
            Some(length) if length != self.content_bytes => Err(RequestReadError::ContentLength),
            _ => Ok(()),
        }
    }

    /// Bytes that are kept of a field section.
    pub fn kept_bytes(&self) -> usize {
        self.frames.kept_bytes()
    }

    /// Bytes taken so far, of all frames.
    pub fn wire_bytes(&self) -> u64 {
        self.wire_bytes
    }
}

/// Decodes a field section for [`KnownHead`].
fn decode(
    section: &[u8],
) -> impl FnOnce(&mut Vec<u8>, &mut ReplyFields) -> Result<Decoded, QpackError> {
    move |scratch, fields| {
        let add = |field: ReadField<'_>, bytes| fields.add(field, bytes);
        qpack::decode::<Meaning>(section, scratch, add)?;
        Ok(Decoded {
            is_stateless: true,
            needs_closed: false,
        })
    }
}
