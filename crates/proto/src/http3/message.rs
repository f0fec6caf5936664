//! The frames of one request stream, in either direction, at any split of the input (RFC 9114
//! sections 4.1 and 7).

use super::error::ConnectionError;
use super::frame::{Kind, Side};
use super::varint::Pieces;

/// What comes on a request stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part<'a> {
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
pub(super) enum Fault {
    /// A field section is longer than allowed; nothing of it was kept.
    HeadTooLarge,
    Connection(ConnectionError),
}

/// What the next byte belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// The type of a frame.
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

/// Which of the frames of a message may come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// HEADERS: a head.
    Head,
    /// DATA, and HEADERS: trailers.
    Content,
    /// Neither.
    End,
}

/// Reads the frames of one direction of a request stream.
#[derive(Debug)]
pub(super) struct MessageReader {
    stage: Stage,
    phase: Phase,
    number: Pieces,
    /// Bytes of the current frame that were taken and are in no part.
    pending_bytes: u64,
    /// A field section that came in several pieces; freed when it is used.
    gathered: Vec<u8>,
}

impl MessageReader {
    /// A stream of which nothing came.
    pub(super) const fn new() -> Self {
        Self {
            stage: Stage::Kind,
            phase: Phase::Head,
            number: Pieces::EMPTY,
            pending_bytes: 0,
            gathered: Vec::new(),
        }
    }

    /// Bytes taken that are in no part.
    #[inline]
    pub(super) fn pending_bytes(&self) -> u64 {
        self.pending_bytes
    }

    /// Bytes that are kept of a field section.
    pub(super) fn kept_bytes(&self) -> usize {
        self.gathered.capacity()
    }

    /// Whether the next byte begins a frame.
    #[inline]
    pub(super) fn is_between_frames(&self) -> bool {
        self.stage == Stage::Kind && self.number.is_empty()
    }

    /// The head that came last is an interim one: another follows.
    #[inline]
    pub(super) fn expect_head(&mut self) {
        self.phase = Phase::Head;
    }

    /// Takes bytes off `rest` up to the next part. `side`: who reads. `section_bytes_max`: bytes of
    /// a field section as it comes. `None`: all of `rest` was taken.
    #[inline]
    pub(super) fn receive<'s, 'b: 's>(
        &'s mut self,
        rest: &mut &'b [u8],
        side: Side,
        section_bytes_max: u32,
    ) -> Result<Option<Part<'s>>, Fault> {
        if !self.gathered.is_empty() && !matches!(self.stage, Stage::Fields(_)) {
            self.gathered = Vec::new();
        }
        while !rest.is_empty() {
            match self.stage {
                Stage::Kind => {
                    let Some(number) = self.take_number(rest) else {
                        return Ok(None);
                    };
                    let kind = Kind::of(number);
                    self.check(kind, side).map_err(Fault::Connection)?;
                    self.stage = Stage::Length(kind);
                }
                Stage::Length(kind) => {
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
                            self.stage = Stage::Fields(length);
                        }
                        Kind::Data => {
                            self.stage = match length {
                                0 => Stage::Kind,
                                _ => Stage::Data(length),
                            };
                            return Ok(Some(Part::DataHeader {
                                payload_bytes: length,
                                wire_bytes: std::mem::take(&mut self.pending_bytes),
                            }));
                        }
                        _ => {
                            self.stage = match length {
                                0 => Stage::Kind,
                                _ => Stage::PassedOver(length),
                            };
                            let bytes = std::mem::take(&mut self.pending_bytes);
                            return Ok(Some(Part::PassedOver(bytes)));
                        }
                    }
                }
                Stage::Fields(left) => {
                    let (piece, tail) = rest.split_at(rest.len().min(left));
                    *rest = tail;
                    self.gathered.extend_from_slice(piece);
                    self.pending_bytes += piece.len() as u64;
                    if piece.len() < left {
                        self.stage = Stage::Fields(left - piece.len());
                        return Ok(None);
                    }
                    let (is_trailers, wire_bytes) = self.end_fields();
                    return Ok(Some(Part::Fields {
                        section: &self.gathered,
                        is_trailers,
                        wire_bytes,
                    }));
                }
                Stage::Data(left) => {
                    let (piece, left) = take_piece(rest, left);
                    self.stage = match left {
                        0 => Stage::Kind,
                        _ => Stage::Data(left),
                    };
                    return Ok(Some(Part::Data(piece)));
                }
                Stage::PassedOver(left) => {
                    let (piece, left) = take_piece(rest, left);
                    self.stage = match left {
                        0 => Stage::Kind,
                        _ => Stage::PassedOver(left),
                    };
                    return Ok(Some(Part::PassedOver(piece.len() as u64)));
                }
            }
        }
        Ok(None)
    }

    /// The stream ended. True where a head came and no other is to follow; a frame that is cut off
    /// is an error (RFC 9114 section 7.1).
    pub(super) fn end(&self) -> Result<bool, ConnectionError> {
        if self.is_between_frames() {
            Ok(self.phase != Phase::Head)
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
        let is_trailers = self.phase == Phase::Content;
        self.stage = Stage::Kind;
        self.phase = if is_trailers {
            Phase::End
        } else {
            Phase::Content
        };
        (is_trailers, std::mem::take(&mut self.pending_bytes))
    }

    /// Whether a frame may come now.
    #[inline]
    fn check(&self, kind: Kind, side: Side) -> Result<(), ConnectionError> {
        match (kind, self.phase) {
            (Kind::Headers, Phase::Head | Phase::Content) | (Kind::Data, Phase::Content) => Ok(()),
            (Kind::Other(_), _) => Ok(()),
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
