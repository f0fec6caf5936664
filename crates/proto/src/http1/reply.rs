//! The parser of replies: bytes of one connection in, complete replies out; and chunked framing
//! (RFC 9112 section 7.1), where the chunks and the trailers of a body end.

use super::head::{self, Framing, Gathered, Head, KnownHead, ReplyError};
use super::request_text::RequestKind;
use crate::limits::Bodies;
use crate::{Body, Limits};

/// A complete final reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reply {
    /// Status code, 200 to 999.
    pub status: u16,
    /// Bytes of its head and of the interim replies before it.
    pub head_bytes: u64,
    /// Bytes of its body on the wire, chunk framing and trailers included.
    pub body_bytes: u64,
    /// Interim (1xx) replies before it.
    pub interim: u16,
    /// The connection may be used for another request (RFC 9112 section 9.3).
    pub keep_alive: bool,
    /// Whether the status is 400 or above and the head says when to ask again (`Retry-After`, RFC
    /// 9110 section 10.2.3), with any value. A trailer does not count.
    pub retry_after: bool,
}

/// What [`ReplyParser::receive`] did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub struct ReplyProgress {
    /// Bytes taken. Without a reply: all of them.
    pub consumed: usize,
    /// The reply that the last of these bytes completed.
    pub reply: Option<Reply>,
}

/// The state of the reply that is being received on one connection.
///
/// Small, and without memory of its own unless a head or a trailer line is split over reads; that
/// memory is bounded by [`Limits::head_bytes`] and freed when the head or line is complete.
///
/// The answers depend on the bytes alone, not on how they are cut: a fault in a line of a head or
/// of trailers is reported when the line is complete (one in the version or in the status code
/// already at its byte), a fault in chunked framing at its byte.
///
/// A bare line feed ends a line of a head or of trailers, as RFC 9112 section 2.2 allows; a bare
/// carriage return, folded lines, and empty lines before a head do not pass, and lines of chunks
/// must end with CRLF.
///
/// Every byte is accounted for: the bytes that were taken are those of the replies given out
/// (`head_bytes + body_bytes`) and [`pending_bytes`](Self::pending_bytes), at any time.
#[derive(Debug, Default)]
pub struct ReplyParser {
    stage: ReplyStage,
    /// A head or trailer line that is not complete.
    gathered: Option<Box<Gathered>>,
    head_bytes: u64,
    body_bytes: u64,
    status: u16,
    interim: u16,
    keep_alive: bool,
    retry_after: bool,
    bodies: Bodies,
}

/// The stream of a connection that has but one.
const STREAM: u32 = 0;

/// What the next byte belongs to.
#[derive(Clone, Copy, Debug, Default)]
enum ReplyStage {
    #[default]
    Head,
    /// A body of which this many bytes are to come.
    Length(u64),
    Chunked(Chunked),
    UntilClose,
    Failed(ReplyError),
}

impl ReplyParser {
    /// Takes bytes up to the end of at most one final reply; the caller calls again with the rest,
    /// which is the next (pipelined) reply. `kind`: what the reply being received answers; the
    /// same for all calls of one reply. `known` is the head that came last,
    /// on whatever connection.
    ///
    /// # Errors
    ///
    /// The reply is refused. All of `bytes` then count as taken: they are in
    /// [`pending_bytes`](Self::pending_bytes), so a caller that counts these as discarded must
    /// count nothing else of this buffer. Until [`reset`](Self::reset), calls with further bytes
    /// give the same error and count these too.
    #[inline]
    pub fn receive(
        &mut self,
        bytes: &[u8],
        limits: &Limits,
        kind: RequestKind,
        known: &mut KnownHead,
    ) -> Result<ReplyProgress, ReplyError> {
        let mut consumed = 0;
        if self.is_idle()
            && let Some(head) = known.find(bytes, kind)
        {
            if let Framing::Length(body_bytes) = head.framing
                && !limits.bodies.holds(head.status)
                && body_bytes <= (bytes.len() - head.len) as u64
            {
                return Ok(ReplyProgress {
                    consumed: head.len + body_bytes as usize,
                    reply: Some(Reply {
                        status: head.status,
                        head_bytes: head.len as u64,
                        body_bytes,
                        interim: 0,
                        keep_alive: head.keep_alive,
                        retry_after: head.retry_after,
                    }),
                });
            }
            // The body does not end here, or is kept: it is framed like any other.
            consumed = head.len;
            self.keep(head.status, &bytes[..head.len], limits);
            self.head_bytes = consumed as u64;
            self.start_final_body(head);
            if head.framing == Framing::Length(0) {
                return Ok(ReplyProgress {
                    consumed,
                    reply: Some(self.complete()),
                });
            }
        }
        self.receive_parsed(bytes, consumed, limits, kind, known)
    }

    /// Takes bytes as [`Self::receive`] does, without comparing them with the head that came last.
    /// `consumed` bytes of a head are taken already.
    fn receive_parsed(
        &mut self,
        bytes: &[u8],
        consumed: usize,
        limits: &Limits,
        kind: RequestKind,
        known: &mut KnownHead,
    ) -> Result<ReplyProgress, ReplyError> {
        let earlier = self.pending_bytes();
        let received = self.receive_stages(bytes, consumed, limits, kind, known);
        if let Err(error) = received {
            self.reset();
            self.stage = ReplyStage::Failed(error);
            self.head_bytes = earlier + (bytes.len() - consumed) as u64;
        }
        received
    }

    fn receive_stages(
        &mut self,
        bytes: &[u8],
        mut consumed: usize,
        limits: &Limits,
        kind: RequestKind,
        known: &mut KnownHead,
    ) -> Result<ReplyProgress, ReplyError> {
        loop {
            let rest = &bytes[consumed..];
            if rest.is_empty() {
                return Ok(ReplyProgress {
                    consumed,
                    reply: None,
                });
            }
            let is_complete = match &mut self.stage {
                ReplyStage::Head => {
                    let (taken, head) = self.receive_head(rest, limits, kind, known)?;
                    consumed += taken;
                    self.head_bytes += taken as u64;
                    match head {
                        Some(head) => self.start_body(head, limits)?,
                        None => false,
                    }
                }
                ReplyStage::Length(left) => {
                    let taken = usize::try_from(*left).map_or(rest.len(), |n| n.min(rest.len()));
                    self.bodies.add(STREAM, &rest[..taken]);
                    consumed += taken;
                    self.body_bytes += taken as u64;
                    *left -= taken as u64;
                    *left == 0
                }
                ReplyStage::Chunked(chunked) => {
                    let end = chunked.receive(rest, limits, &mut self.gathered, |content| {
                        self.bodies.add(STREAM, content);
                    })?;
                    let taken = end.unwrap_or(rest.len());
                    consumed += taken;
                    self.body_bytes += taken as u64;
                    end.is_some()
                }
                ReplyStage::UntilClose => {
                    self.bodies.add(STREAM, rest);
                    consumed += rest.len();
                    self.body_bytes += rest.len() as u64;
                    false
                }
                ReplyStage::Failed(error) => return Err(*error),
            };
            if is_complete {
                return Ok(ReplyProgress {
                    consumed,
                    reply: Some(self.complete()),
                });
            }
        }
    }

    /// Takes bytes of a head: how many, and the head when they complete it.
    #[inline]
    fn receive_head(
        &mut self,
        bytes: &[u8],
        limits: &Limits,
        kind: RequestKind,
        known: &mut KnownHead,
    ) -> Result<(usize, Option<Head>), ReplyError> {
        if self.gathered.is_none() {
            let window = &bytes[..bytes.len().min(limits.head_bytes as usize)];
            if let Some(head) = head::parse(window, limits, kind)? {
                if head.status >= 200 {
                    known.keep(bytes, head, kind);
                    self.keep(head.status, &bytes[..head.len], limits);
                }
                return Ok((head.len, Some(head)));
            }
        }
        let gathered = self.gathered.get_or_insert_default();
        let Some(taken) = gathered.add_head(bytes, limits)? else {
            return Ok((bytes.len(), None));
        };
        // Each line was found well formed, so the whole is.
        let head = head::parse(&gathered.bytes, limits, kind)?.ok_or(ReplyError::MalformedHead)?;
        if head.status >= 200
            && let Some(gathered) = self.gathered.take()
        {
            self.keep(head.status, &gathered.bytes, limits);
        }
        self.gathered = None;
        Ok((taken, Some(head)))
    }

    /// The final head is complete: what is wanted of the reply is kept.
    #[inline]
    fn keep(&mut self, status: u16, head: &[u8], limits: &Limits) {
        self.bodies.begin(STREAM, status, limits.bodies, head);
    }

    /// Notes what a complete head says. True when the reply ends with it.
    #[inline]
    fn start_body(&mut self, head: Head, limits: &Limits) -> Result<bool, ReplyError> {
        if head.status < 200 {
            if head.status == 101 || self.interim >= limits.interim_replies {
                return Err(ReplyError::BadInterim);
            }
            self.interim += 1;
            return Ok(false);
        }
        self.start_final_body(head);
        Ok(head.framing == Framing::Length(0))
    }

    /// Notes what the head of a final reply says. The reply ends with its head only where the body
    /// has no bytes.
    #[inline]
    fn start_final_body(&mut self, head: Head) {
        self.status = head.status;
        self.keep_alive = head.keep_alive;
        self.retry_after = head.retry_after;
        self.stage = match head.framing {
            Framing::Length(left) => ReplyStage::Length(left),
            Framing::Chunked => ReplyStage::Chunked(Chunked::default()),
            Framing::UntilClose => ReplyStage::UntilClose,
        };
    }

    /// Gives out the reply and starts afresh.
    #[inline]
    fn complete(&mut self) -> Reply {
        let reply = Reply {
            status: self.status,
            head_bytes: self.head_bytes,
            body_bytes: self.body_bytes,
            interim: self.interim,
            keep_alive: self.keep_alive,
            retry_after: self.retry_after,
        };
        let mut bodies = std::mem::take(&mut self.bodies);
        bodies.complete(STREAM);
        self.reset();
        self.bodies = bodies;
        reply
    }

    /// Takes the body of the reply that was given out last, where [`Limits::bodies`] has it kept.
    pub fn take_body(&mut self) -> Option<Body> {
        self.bodies.take()
    }

    /// How many of the bytes that come next nobody reads: those of a body of known length that is
    /// not kept, but for its last one, which completes the reply.
    pub fn unread_bytes(&self) -> u64 {
        match self.stage {
            ReplyStage::Length(left) if self.bodies.keeps_none() => left.saturating_sub(1),
            _ => 0,
        }
    }

    /// Tells the parser that so many bytes came and were thrown away: at most
    /// [`unread_bytes`](Self::unread_bytes).
    pub fn discarded(&mut self, bytes: u64) {
        if let ReplyStage::Length(left) = &mut self.stage {
            debug_assert!(bytes < *left, "the last byte completes the reply");
            *left -= bytes;
            self.body_bytes += bytes;
        }
    }

    /// The peer closed its side. A reply: its body was delimited by this. `None`: nothing of a
    /// reply had come.
    ///
    /// # Errors
    ///
    /// The reply was truncated ([`ReplyError::TruncatedHead`], [`ReplyError::TruncatedBody`]), or
    /// refused before. [`pending_bytes`](Self::pending_bytes) stays as it was until
    /// [`reset`](Self::reset).
    pub fn end(&mut self) -> Result<Option<Reply>, ReplyError> {
        let error = match self.stage {
            ReplyStage::Head if self.is_idle() => return Ok(None),
            ReplyStage::UntilClose => return Ok(Some(self.complete())),
            ReplyStage::Head => ReplyError::TruncatedHead,
            ReplyStage::Length(_) | ReplyStage::Chunked(_) => ReplyError::TruncatedBody,
            ReplyStage::Failed(error) => error,
        };
        self.gathered = None;
        self.stage = ReplyStage::Failed(error);
        Err(error)
    }

    /// Bytes taken that belong to no complete reply: those of the reply in flight or, after an
    /// error, of the refused reply, all bytes of the failing call included. 0 again after
    /// [`reset`](Self::reset), so read it before.
    #[inline]
    pub fn pending_bytes(&self) -> u64 {
        self.head_bytes + self.body_bytes
    }

    /// No byte of a next reply has come, and nothing failed.
    #[inline]
    pub fn is_idle(&self) -> bool {
        matches!(self.stage, ReplyStage::Head) && self.head_bytes == 0
    }

    /// Forgets the current reply: the connection is replaced.
    #[inline]
    pub fn reset(&mut self) {
        *self = Self::default();
    }
}

/// The longest line that states a chunk's size, extensions and line end included.
pub(super) const MAX_SIZE_LINE_BYTES: u32 = 4096;

/// Digits of the largest size, `u64::MAX`.
const MAX_SIZE_DIGITS: u32 = 16;

/// Reads a chunked body that nobody keeps: that of a request.
#[derive(Debug, Default)]
pub struct ChunkedReader {
    chunked: Chunked,
    /// A trailer line that is not complete.
    gathered: Option<Box<Gathered>>,
}

impl ChunkedReader {
    /// Takes `bytes` up to the end of the body: `Some(n)` when it ends after `n` of them, `None`
    /// when all belong to it.
    ///
    /// # Errors
    ///
    /// The framing or the trailers are malformed, or the trailers are beyond `limits`.
    pub fn receive(&mut self, bytes: &[u8], limits: &Limits) -> Result<Option<usize>, ReplyError> {
        let gathered = &mut self.gathered;
        self.chunked.receive(bytes, limits, gathered, |_| {})
    }
}

/// The framing of one body that is being received.
///
/// Extensions are skipped; white space is allowed between the size and its line end or extension.
/// Lines of chunks end with CRLF; a bare line feed there is a fault, in trailers it ends the line.
#[derive(Clone, Copy, Debug, Default)]
struct Chunked {
    phase: ChunkPhase,
    /// Complete trailer fields.
    fields: u16,
    /// Bytes so far of the size line, or of all trailers.
    line_bytes: u32,
    /// The size being read, or what is left of the chunk's data.
    size: u64,
}

/// What the next byte belongs to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum ChunkPhase {
    #[default]
    SizeStart,
    Size,
    SizePadding,
    Extension,
    SizeLineFeed,
    Data,
    DataCarriageReturn,
    DataLineFeed,
    Trailers,
}

impl Chunked {
    /// Takes `bytes` up to the end of the body: `Some(n)` when it ends after `n` of them, `None`
    /// when all belong to it. `gathered` keeps a trailer line that is not complete; `content` is
    /// shown what the chunks hold.
    fn receive(
        &mut self,
        bytes: &[u8],
        limits: &Limits,
        gathered: &mut Option<Box<Gathered>>,
        mut content: impl FnMut(&[u8]),
    ) -> Result<Option<usize>, ReplyError> {
        let mut taken = 0;
        while taken < bytes.len() {
            match self.phase {
                ChunkPhase::Data => {
                    let left = bytes.len() - taken;
                    let skipped = usize::try_from(self.size).map_or(left, |size| size.min(left));
                    content(&bytes[taken..taken + skipped]);
                    self.size -= skipped as u64;
                    taken += skipped;
                    if self.size == 0 {
                        self.phase = ChunkPhase::DataCarriageReturn;
                    }
                }
                ChunkPhase::Trailers => {
                    let ended = self.receive_trailers(&bytes[taken..], limits, gathered)?;
                    return Ok(ended.map(|end| taken + end));
                }
                _ => {
                    self.receive_framing(bytes[taken])?;
                    taken += 1;
                }
            }
        }
        Ok(None)
    }

    /// Takes one byte outside data and trailers.
    fn receive_framing(&mut self, byte: u8) -> Result<(), ReplyError> {
        self.phase = match (self.phase, byte) {
            (ChunkPhase::SizeStart | ChunkPhase::Size, b'0'..=b'9' | b'a'..=b'f' | b'A'..=b'F') => {
                if self.line_bytes >= MAX_SIZE_DIGITS {
                    return Err(ReplyError::BadChunk);
                }
                let digit = match byte {
                    b'0'..=b'9' => byte - b'0',
                    _ => (byte | 0x20) - b'a' + 10,
                };
                self.size = (self.size << 4) | u64::from(digit);
                ChunkPhase::Size
            }
            (ChunkPhase::Size | ChunkPhase::SizePadding, b' ' | b'\t') => ChunkPhase::SizePadding,
            (ChunkPhase::Size | ChunkPhase::SizePadding, b';') => ChunkPhase::Extension,
            (ChunkPhase::Size | ChunkPhase::SizePadding | ChunkPhase::Extension, b'\r') => {
                ChunkPhase::SizeLineFeed
            }
            (ChunkPhase::Extension, b'\t' | b' '..=b'~' | 0x80..) => ChunkPhase::Extension,
            (ChunkPhase::SizeLineFeed, b'\n') => {
                self.line_bytes = 0;
                self.phase = if self.size == 0 {
                    ChunkPhase::Trailers
                } else {
                    ChunkPhase::Data
                };
                return Ok(());
            }
            (ChunkPhase::DataCarriageReturn, b'\r') => {
                self.phase = ChunkPhase::DataLineFeed;
                return Ok(());
            }
            (ChunkPhase::DataLineFeed, b'\n') => {
                self.phase = ChunkPhase::SizeStart;
                return Ok(());
            }
            _ => return Err(ReplyError::BadChunk),
        };
        self.line_bytes += 1;
        // The line feed is still to come.
        if self.line_bytes >= MAX_SIZE_LINE_BYTES {
            Err(ReplyError::BadChunk)
        } else {
            Ok(())
        }
    }

    /// Takes trailers, line by line, up to the empty one (RFC 9112 section 7.1.2).
    fn receive_trailers(
        &mut self,
        bytes: &[u8],
        limits: &Limits,
        gathered: &mut Option<Box<Gathered>>,
    ) -> Result<Option<usize>, ReplyError> {
        let room = limits.head_bytes.saturating_sub(self.line_bytes) as usize;
        let window = &bytes[..bytes.len().min(room)];
        let mut start = 0;
        while let Some(offset) = window[start..].iter().position(|&byte| byte == b'\n') {
            let end = start + offset + 1;
            let earlier = gathered.take();
            let joined = earlier.map(|mut line| {
                line.bytes.extend_from_slice(&window[start..end]);
                line.bytes
            });
            let line = joined.as_deref().unwrap_or(&window[start..end]);
            if head::is_empty_line(line) {
                return Ok(Some(end));
            }
            if head::is_full(self.fields, limits) {
                return Err(ReplyError::TooManyHeaders);
            }
            if !head::is_field_line(line) {
                return Err(ReplyError::BadChunk);
            }
            self.fields += 1;
            start = end;
        }
        if bytes.len() >= room {
            return Err(ReplyError::TrailersTooLarge);
        }
        // Less than `room`, which a `u32` holds.
        self.line_bytes += window.len() as u32;
        if start < window.len() {
            let kept = gathered.get_or_insert_default();
            kept.bytes.extend_from_slice(&window[start..]);
        }
        Ok(None)
    }
}
