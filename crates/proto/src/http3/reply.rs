//! Replies: one request stream as its client sees it, and the latest head in QPACK.

use super::error::{ConnectionError, ReplyError, StreamFailure};
use super::frame::Side;
use super::message::{Fault, MessageReader, Part};
use super::qpack::{self, QpackError};
use crate::fields::reply::{MalformedReply, Reply, ReplyState};
use crate::fields::reply_head::{Head, Meaning, ReplyFields};
use crate::limits::Bodies;
use crate::{Body, Limits};

/// The number under which bodies are kept: a reader has one.
const STREAM: u32 = 0;

/// Reads the reply on one request stream (RFC 9114 section 4.1).
///
/// What it gives depends on the bytes alone, not on how they are cut. It keeps a field section that
/// is split over reads, which [`Limits::head_bytes`] bounds before anything is kept, and otherwise
/// counts. Every byte is accounted for: the bytes received are those of the reply
/// (`head_bytes + body_bytes`), or those pending, and the overhead.
#[derive(Debug)]
pub struct ReplyReader {
    frames: MessageReader,
    state: ReplyState,
    bodies: Bodies,
    overhead_bytes: u64,
}

impl ReplyReader {
    /// A stream of which nothing came. `is_head`: the request's method is `HEAD`.
    pub fn new(is_head: bool) -> Self {
        Self {
            frames: MessageReader::new(),
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
    pub fn receive(
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
                    let head = known
                        .head(section, limits)
                        .map_err(ConnectionError::from)??;
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
                    let read = known.trailers(section, limits);
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
    pub fn end(&mut self) -> Result<Reply, ReplyError> {
        if !self.frames.end()? {
            return Err(StreamFailure::Incomplete.into());
        }
        let reply = self.state.end()?;
        self.bodies.complete(STREAM);
        Ok(reply)
    }

    /// Takes the body of the reply that [`end`](Self::end) gave, where [`Limits::bodies`] has it
    /// kept.
    pub fn take_body(&mut self) -> Option<Body> {
        self.bodies.take()
    }

    /// Bytes received of the reply, which are its own once it is given out, and of a frame that is
    /// not complete; after an error, with those that were not looked at.
    #[inline]
    pub fn pending_bytes(&self) -> u64 {
        self.state.bytes() + self.frames.pending_bytes()
    }

    /// Bytes received since this was last asked that belong to no reply: frames that are passed
    /// over (RFC 9114 section 7.2.8).
    #[inline]
    pub fn take_overhead(&mut self) -> u64 {
        std::mem::take(&mut self.overhead_bytes)
    }
}

/// The latest head and what it meant; one per worker, with one value of [`Limits`]. Servers send
/// the same head over and over, and without a dynamic table equal bytes mean an equal head.
#[derive(Clone, Debug, Default)]
pub struct KnownHead {
    section: Vec<u8>,
    /// What `section` means; `None` before there is one.
    head: Option<Head>,
    /// Where strings are decoded.
    scratch: Vec<u8>,
    /// Of the first call of gRPC that failed with one.
    call_message: Option<String>,
}

impl KnownHead {
    /// Reads the field section of a head.
    #[inline]
    pub(super) fn head(
        &mut self,
        section: &[u8],
        limits: &Limits,
    ) -> Result<Result<Head, MalformedReply>, QpackError> {
        match self.head {
            Some(head) if self.section == section => Ok(Ok(head)),
            _ => self.new_head(section, limits),
        }
    }

    fn new_head(
        &mut self,
        section: &[u8],
        limits: &Limits,
    ) -> Result<Result<Head, MalformedReply>, QpackError> {
        let head = self.fields(section)?.head(limits);
        if let Ok(head) = head {
            self.section.clear();
            self.section.extend_from_slice(section);
            self.head = Some(head);
        }
        Ok(head)
    }

    /// Reads the field section of trailers: the code in `grpc-status`.
    pub(super) fn trailers(
        &mut self,
        section: &[u8],
        limits: &Limits,
    ) -> Result<Result<Option<u8>, MalformedReply>, QpackError> {
        Ok(self.fields(section)?.trailers(limits))
    }

    fn fields(&mut self, section: &[u8]) -> Result<ReplyFields, QpackError> {
        let mut fields = ReplyFields::default();
        qpack::decode::<Meaning>(section, &mut self.scratch, |field, bytes| {
            fields.add(field, bytes);
        })?;
        if let Some(message) = fields.take_call_message() {
            self.call_message.get_or_insert(message.into());
        }
        Ok(fields)
    }

    /// What the server said of the first call of gRPC that failed (`grpc-message`); once.
    pub fn take_call_message(&mut self) -> Option<String> {
        self.call_message.take()
    }
}
