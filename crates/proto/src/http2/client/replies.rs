//! Frames that carry replies: HEADERS, CONTINUATION, DATA.

use super::frames::{Data, Stage};
use super::{Call, Client};
use crate::fields::reply::MalformedReply;
use crate::http2::frame::{self, ErrorCode, FrameHeader, HEADER_BYTES, flags};
use crate::http2::reply::{ConnectionError, Event, Violation};

/// A complete field block's frames.
struct BlockFrames {
    stream: u32,
    ends_stream: bool,
    wire_bytes: u64,
    /// When the first byte came.
    from_ns: u64,
}

impl Client {
    /// RFC 9113 section 6.2.
    #[inline]
    pub(super) fn headers(
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
    pub(super) fn continuation(
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
            call.known.skip(&mut self.decoder, block)?;
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

        let head = call.known.head(&mut self.decoder, block, call.limits)?;
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
        let trailers = call.known.trailers(&mut self.decoder, block, call.limits)?;
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
    pub(super) fn begin_data(
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
            0 => Stage::Header,
            _ => Stage::Data(Data {
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
    pub(super) fn more_data(
        &mut self,
        data: Data,
        bytes: &[u8],
        call: &mut Call<'_>,
    ) -> Result<(usize, Option<Event>), ConnectionError> {
        let taken = bytes.len().min(data.left_bytes as usize);
        let left_bytes = data.left_bytes - taken as u32;
        self.pending_bytes += taken as u64;
        self.stage = match left_bytes {
            0 => Stage::Header,
            _ => Stage::Data(Data { left_bytes, ..data }),
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
