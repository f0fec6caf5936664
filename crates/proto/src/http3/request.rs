//! Requests: one request stream as its server sees it.

use super::error::RequestReadError;
use super::frame::Side;
use super::message::{Fault, MessageReader, Part};

/// What comes of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequestPart<'a> {
    /// The whole field section of the head, to be [decoded](super::qpack::decode).
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
#[derive(Debug)]
pub struct RequestReader {
    frames: MessageReader,
    /// Bytes that DATA frames must add up to.
    content_length: Option<u64>,
    /// Bytes in DATA frames.
    content_bytes: u64,
    wire_bytes: u64,
}

impl Default for RequestReader {
    fn default() -> Self {
        Self {
            frames: MessageReader::new(),
            content_length: None,
            content_bytes: 0,
            wire_bytes: 0,
        }
    }
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
