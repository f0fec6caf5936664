//! From HEADERS, CONTINUATION and DATA to whole requests.

use brunt_proto::http2::frame::{self, ErrorCode, FrameHeader, flags};

use super::{BLOCK_FRAME_BYTES_MIN, End, Frame, Gathering, Session, Turn, WINDOW_BYTES};
use crate::answer::Says;
use crate::head::{Gathered, Head, Malformed};
use crate::http1::request::HEAD_BYTES_MAX;
use crate::http2::reply;
use crate::http2::streams::{Incoming, State};
use crate::room::Hold;

impl Session {
    pub(super) fn take_data(
        &mut self,
        header: FrameHeader,
        payload: &[u8],
        turn: &mut Turn<'_>,
    ) -> Frame<()> {
        let stream = header.stream;
        if self.is_idle_stream(stream) {
            return Err(ErrorCode::ProtocolError);
        }
        let content = header.content(payload)?;
        // Padding counts, too (RFC 9113 section 6.9.1).
        self.window_bytes = self
            .window_bytes
            .checked_sub(header.length)
            .ok_or(ErrorCode::FlowControlError)?;
        if self.window_bytes < WINDOW_BYTES / 2 {
            frame::write_window_update(turn.batch.bytes(), 0, WINDOW_BYTES - self.window_bytes);
            self.window_bytes = WINDOW_BYTES;
        }
        let is_end = header.has(flags::END_STREAM);
        let stream_window_bytes = self.options.window_bytes;
        let Some(incoming) = self.streams.all.incoming(stream) else {
            if self.streams.all.contains(stream) {
                // The request was complete.
                self.reset(stream, ErrorCode::StreamClosed, turn);
            }
            return Ok(());
        };
        let Some(left) = incoming.window_bytes.checked_sub(header.length) else {
            self.reset(stream, ErrorCode::FlowControlError, turn);
            return Ok(());
        };
        incoming.window_bytes = left;
        incoming.received_bytes += content.len() as u64;
        incoming.frame_bytes += frame::HEADER_BYTES as u64 + u64::from(header.length);
        if !is_end && left < stream_window_bytes.div_ceil(2) {
            frame::write_window_update(turn.batch.bytes(), stream, stream_window_bytes - left);
            incoming.window_bytes = stream_window_bytes;
        }
        let request = *incoming;
        let is_wrong = match request.promised_bytes {
            Some(bytes) if is_end => request.received_bytes != bytes,
            Some(bytes) => request.received_bytes > bytes,
            None => false,
        };
        if is_wrong {
            self.refuse(stream, Malformed::ContentLength, is_end, turn);
        } else if is_end {
            self.answer(stream, &request, turn);
        }
        Ok(())
    }

    pub(super) fn take_headers(
        &mut self,
        header: FrameHeader,
        payload: &[u8],
        turn: &mut Turn<'_>,
    ) -> Frame<()> {
        let stream = header.stream;
        if stream == 0 || stream.is_multiple_of(2) {
            return Err(ErrorCode::ProtocolError);
        }
        let block = header.content(payload)?;
        let is_end = header.has(flags::END_STREAM);
        let frame_bytes = frame::HEADER_BYTES as u64 + u64::from(header.length);
        if header.has(flags::END_HEADERS) {
            return self.take_block(stream, block, is_end, frame_bytes, turn);
        }
        let mut gathering = Box::new(Gathering {
            stream,
            is_end,
            block: block.to_vec(),
            frame_bytes,
            cost: block.len().max(BLOCK_FRAME_BYTES_MIN),
            hold: Hold::default(),
        });
        self.hold(&mut gathering, turn)?;
        self.gathering = Some(gathering);
        Ok(())
    }

    /// Counts what is gathered as input that waits.
    fn hold(&self, gathering: &mut Gathering, turn: &mut Turn<'_>) -> Frame<()> {
        if gathering.hold.set(gathering.block.capacity(), &self.room) {
            return Ok(());
        }
        turn.context.counters.links.overflowed.add(1);
        Err(ErrorCode::EnhanceYourCalm)
    }

    pub(super) fn take_continuation(
        &mut self,
        header: FrameHeader,
        payload: &[u8],
        turn: &mut Turn<'_>,
    ) -> Frame<()> {
        let Some(mut gathering) = self.gathering.take() else {
            return Err(ErrorCode::ProtocolError);
        };
        if gathering.stream != header.stream {
            return Err(ErrorCode::ProtocolError);
        }
        gathering.block.extend_from_slice(payload);
        gathering.frame_bytes += frame::HEADER_BYTES as u64 + u64::from(header.length);
        gathering.cost += payload.len().max(BLOCK_FRAME_BYTES_MIN);
        if gathering.cost > HEAD_BYTES_MAX {
            return Err(ErrorCode::EnhanceYourCalm);
        }
        if !header.has(flags::END_HEADERS) {
            self.hold(&mut gathering, turn)?;
            self.gathering = Some(gathering);
            return Ok(());
        }
        let Gathering {
            stream,
            is_end,
            block,
            frame_bytes,
            ..
        } = *gathering;
        self.take_block(stream, &block, is_end, frame_bytes, turn)
    }

    /// Takes a whole field block: a request's head or trailers.
    pub(super) fn take_block(
        &mut self,
        stream: u32,
        block: &[u8],
        is_end: bool,
        frame_bytes: u64,
        turn: &mut Turn<'_>,
    ) -> Frame<()> {
        // The block changes the table of the connection, so it is read in any case.
        let mut gathered = Gathered::default();
        self.decoder
            .decode(block, turn.scratch, |entry, _| gathered.add(entry))
            .map_err(|_| ErrorCode::CompressionError)?;
        if stream <= self.last_stream {
            let outcome = gathered.trailers();
            let Some(incoming) = self.streams.all.incoming(stream) else {
                // What follows a reset by the server is to be ignored (RFC 9113 section 5.1).
                let may_follow = self.has_reset || self.last_processed.is_some();
                return if may_follow && !self.streams.all.contains(stream) {
                    Ok(())
                } else {
                    Err(ErrorCode::StreamClosed)
                };
            };
            incoming.frame_bytes += frame_bytes;
            let request = *incoming;
            let is_short = request
                .promised_bytes
                .is_some_and(|bytes| bytes != request.received_bytes);
            match outcome {
                Ok(()) if !is_end => {
                    self.refuse(stream, Malformed::Trailers, is_end, turn);
                }
                Ok(()) if is_short => {
                    self.refuse(stream, Malformed::ContentLength, is_end, turn);
                }
                Ok(()) => self.answer(stream, &request, turn),
                Err(malformed) => self.refuse(stream, malformed, is_end, turn),
            }
            return Ok(());
        }
        let outcome = gathered.head();
        self.last_stream = stream;
        if self.last_processed.is_some() {
            turn.context.counters.streams_ignored.add(1);
            return Ok(());
        }
        let in_flight = self.streams.all.len() as u64 + u64::from(self.unsent);
        if in_flight >= u64::from(self.options.streams_max.get()) {
            turn.context.counters.streams_refused.add(1);
            self.reset(stream, ErrorCode::RefusedStream, turn);
            return Ok(());
        }
        self.requests += 1;
        match outcome {
            Ok(Head { body_bytes, .. }) if is_end && body_bytes.is_some_and(|bytes| bytes > 0) => {
                self.refuse(stream, Malformed::ContentLength, is_end, turn);
            }
            Ok(head) => {
                let request = Incoming {
                    method: head.method,
                    route: head.route,
                    promised_bytes: head.body_bytes,
                    received_bytes: 0,
                    frame_bytes,
                    window_bytes: self.options.window_bytes,
                };
                if is_end {
                    self.answer(stream, &request, turn);
                } else {
                    self.streams.set(stream, State::Incoming(request));
                    if head.expects_continue {
                        turn.context.counters.replies_interim.add(1);
                        reply::write_head(turn.batch.bytes(), stream, 100, Says::Nothing, false);
                    }
                }
            }
            Err(malformed) => self.refuse(stream, malformed, is_end, turn),
        }
        let is_last = |most: u64| self.requests >= most;
        if self.end == End::Open
            && self.last_processed.is_none()
            && self
                .options
                .requests_max
                .is_some_and(|most| is_last(most.get()))
        {
            self.go_away(stream, ErrorCode::NoError, turn);
        }
        Ok(())
    }
}
