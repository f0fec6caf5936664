//! Splitting received bytes into frames, and the frames about the connection as a whole.

use super::{Call, Client};
use crate::http2::frame::{
    self, ErrorCode, FrameHeader, HEADER_BYTES, Kind, PAYLOAD_BYTES, Setting, flags,
};
use crate::http2::reply::{ConnectionError, Event, Progress, StreamFailure, Violation};

/// What the next byte belongs to.
#[derive(Clone, Copy, Debug)]
pub(super) enum Stage {
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
pub(super) struct Data {
    pub(super) stream: u32,
    /// Bytes to come, padding included.
    pub(super) left_bytes: u32,
    pub(super) padding_bytes: u8,
    pub(super) ends_stream: bool,
}

/// What came in earlier reads, or earlier frames, and is not complete. Boxed, and freed when it
/// is: most connections have none most of the time.
#[derive(Debug, Default)]
pub(super) struct Gathered {
    /// The payload of a frame.
    pub(super) payload: Vec<u8>,
    /// A field block without its last frame.
    pub(super) block: Vec<u8>,
    /// Bytes of that block's frames.
    pub(super) block_wire_bytes: u64,
    /// The block's first frame ends its stream, but for CONTINUATION.
    pub(super) block_ends_stream: bool,
    /// When the first byte of the block's first frame came.
    pub(super) block_from_ns: u64,
}

impl Client {
    /// Takes `bytes` up to the next event.
    pub(super) fn receive_frames(
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
                Stage::Header => {
                    let (taken, header) = self.take_header(rest, call.now_ns);
                    self.pending_bytes += taken as u64;
                    consumed += taken;
                    match header {
                        Some(header) => self.begin(header, &rest[taken..], call)?,
                        None => (0, None),
                    }
                }
                Stage::Padding(header) => {
                    self.pending_bytes += 1;
                    (1, self.begin_data(header, Some(rest[0]), call)?)
                }
                Stage::Data(data) => self.more_data(data, rest, call)?,
                Stage::Payload(header) => self.more_payload(header, rest, call)?,
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
            self.stage = Stage::Padding(header);
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
        self.stage = Stage::Payload(header);
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
    pub(super) fn check_opened(&self, stream: u32) -> Result<(), Violation> {
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
        self.stage = Stage::Header;
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
    pub(super) fn use_window(
        &mut self,
        bytes: u32,
        out: &mut Vec<u8>,
    ) -> Result<(), ConnectionError> {
        let window = self.receive_window_bytes.checked_sub(bytes);
        self.receive_window_bytes = window.ok_or(ConnectionError::FlowControl)?;
        let whole_bytes = self.settings.connection_window_bytes;
        if self.receive_window_bytes <= whole_bytes / 2 && whole_bytes > 0 {
            frame::write_window_update(out, 0, whole_bytes - self.receive_window_bytes);
            self.receive_window_bytes = whole_bytes;
        }
        Ok(())
    }
}
