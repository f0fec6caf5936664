//! Chunked framing (RFC 9112 section 7.1): where the chunks and the trailers of a body end.

use super::error::ReplyError;
use super::head::{self, Gathered};
use crate::Limits;

/// The longest line that states a chunk's size, extensions and line end included.
pub(super) const MAX_SIZE_LINE_BYTES: u32 = 4096;

/// Digits of the largest size, `u64::MAX`.
const MAX_SIZE_DIGITS: u32 = 16;

/// The framing of one body that is being received.
///
/// Extensions are skipped; white space is allowed between the size and its line end or extension.
/// Lines of chunks end with CRLF; a bare line feed there is a fault, in trailers it ends the line.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Chunked {
    phase: Phase,
    /// Complete trailer fields.
    fields: u16,
    /// Bytes so far of the size line, or of all trailers.
    line_bytes: u32,
    /// The size being read, or what is left of the chunk's data.
    size: u64,
}

/// What the next byte belongs to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Phase {
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
    pub(super) fn receive(
        &mut self,
        bytes: &[u8],
        limits: &Limits,
        gathered: &mut Option<Box<Gathered>>,
        mut content: impl FnMut(&[u8]),
    ) -> Result<Option<usize>, ReplyError> {
        let mut taken = 0;
        while taken < bytes.len() {
            match self.phase {
                Phase::Data => {
                    let left = bytes.len() - taken;
                    let skipped = usize::try_from(self.size).map_or(left, |size| size.min(left));
                    content(&bytes[taken..taken + skipped]);
                    self.size -= skipped as u64;
                    taken += skipped;
                    if self.size == 0 {
                        self.phase = Phase::DataCarriageReturn;
                    }
                }
                Phase::Trailers => {
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
            (Phase::SizeStart | Phase::Size, b'0'..=b'9' | b'a'..=b'f' | b'A'..=b'F') => {
                if self.line_bytes >= MAX_SIZE_DIGITS {
                    return Err(ReplyError::BadChunk);
                }
                let digit = match byte {
                    b'0'..=b'9' => byte - b'0',
                    _ => (byte | 0x20) - b'a' + 10,
                };
                self.size = (self.size << 4) | u64::from(digit);
                Phase::Size
            }
            (Phase::Size | Phase::SizePadding, b' ' | b'\t') => Phase::SizePadding,
            (Phase::Size | Phase::SizePadding, b';') => Phase::Extension,
            (Phase::Size | Phase::SizePadding | Phase::Extension, b'\r') => Phase::SizeLineFeed,
            (Phase::Extension, b'\t' | b' '..=b'~' | 0x80..) => Phase::Extension,
            (Phase::SizeLineFeed, b'\n') => {
                self.line_bytes = 0;
                self.phase = if self.size == 0 {
                    Phase::Trailers
                } else {
                    Phase::Data
                };
                return Ok(());
            }
            (Phase::DataCarriageReturn, b'\r') => {
                self.phase = Phase::DataLineFeed;
                return Ok(());
            }
            (Phase::DataLineFeed, b'\n') => {
                self.phase = Phase::SizeStart;
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
