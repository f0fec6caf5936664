//! Frames (RFC 9113 sections 4 and 6): their headers and payloads, read and written, for both
//! sides of a connection.

/// What a client sends before its first frame (RFC 9113 section 3.4).
pub const PREFACE: &[u8; 24] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// Bytes of a frame's header.
pub const HEADER_BYTES: usize = 9;

/// The largest payload that each endpoint accepts, unless its SETTINGS_MAX_FRAME_SIZE is higher.
pub const PAYLOAD_BYTES: u32 = 16_384;

/// The highest SETTINGS_MAX_FRAME_SIZE.
pub const PAYLOAD_BYTES_MAX: u32 = (1 << 24) - 1;

/// The highest stream identifier.
pub const STREAM_MAX: u32 = (1 << 31) - 1;

/// The largest flow-control window (RFC 9113 section 6.9.1).
pub const WINDOW_BYTES_MAX: u32 = (1 << 31) - 1;

/// Flow-control windows before any SETTINGS or WINDOW_UPDATE (RFC 9113 section 6.9.2).
pub const WINDOW_BYTES: u32 = 65_535;

/// The bits of [`FrameHeader::flags`]. A bit has a meaning for some kinds only, and must otherwise
/// be ignored.
pub mod flags {
    /// DATA, HEADERS: the sender's last frame of this stream, but for CONTINUATION.
    pub const END_STREAM: u8 = 0x01;
    /// SETTINGS, PING: an acknowledgement.
    pub const ACK: u8 = 0x01;
    /// HEADERS, PUSH_PROMISE, CONTINUATION: the field block ends here.
    pub const END_HEADERS: u8 = 0x04;
    /// DATA, HEADERS, PUSH_PROMISE: the payload begins with the length of a padding at its end.
    pub const PADDED: u8 = 0x08;
    /// HEADERS: five bytes about priority come before the field block.
    pub const PRIORITY: u8 = 0x20;
}

numbered! {
    /// Types of frames (RFC 9113 section 6).
    enum Kind(u8) {
        /// Bytes of a body.
        Data = 0,
        /// Begins a field block: a head or trailers.
        Headers = 1,
        /// Deprecated, and ignored.
        Priority = 2,
        /// Ends a stream at once.
        RstStream = 3,
        /// Settings of the sender, or the acknowledgement of the receiver's.
        Settings = 4,
        /// Announces a reply that was not asked for.
        PushPromise = 5,
        /// Must be answered by an acknowledgement.
        Ping = 6,
        /// The sender takes no more streams.
        GoAway = 7,
        /// The sender can take more bytes of DATA.
        WindowUpdate = 8,
        /// The next part of a field block.
        Continuation = 9,
        else "A type that RFC 9113 does not define; to be ignored.",
    }
}

/// The first nine bytes of a frame (RFC 9113 section 4.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrameHeader {
    /// Bytes of the payload, at most [`PAYLOAD_BYTES_MAX`].
    pub length: u32,
    /// What the frame is.
    pub kind: Kind,
    /// See [`flags`].
    pub flags: u8,
    /// The stream that it belongs to, 0 for the connection; at most [`STREAM_MAX`].
    pub stream: u32,
}

impl FrameHeader {
    /// Reads a header; the reserved bit is ignored.
    #[inline]
    pub const fn read(bytes: &[u8; HEADER_BYTES]) -> Self {
        Self {
            length: u32::from_be_bytes([0, bytes[0], bytes[1], bytes[2]]),
            kind: Kind::of(bytes[3]),
            flags: bytes[4],
            stream: u32::from_be_bytes([bytes[5], bytes[6], bytes[7], bytes[8]]) & STREAM_MAX,
        }
    }

    /// The header on the wire. Of `length` and `stream` the low 24 and 31 bits are written.
    #[inline]
    pub const fn to_bytes(self) -> [u8; HEADER_BYTES] {
        let [_, l0, l1, l2] = self.length.to_be_bytes();
        let [s0, s1, s2, s3] = (self.stream & STREAM_MAX).to_be_bytes();
        [l0, l1, l2, self.kind.number(), self.flags, s0, s1, s2, s3]
    }

    /// Appends the header to `out`.
    #[inline]
    pub fn write(self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.to_bytes());
    }

    /// Whether all bits of `flag` are set.
    #[inline]
    pub const fn has(self, flag: u8) -> bool {
        self.flags & flag == flag
    }

    /// The part of a DATA, HEADERS or PUSH_PROMISE payload without padding, and of HEADERS without
    /// priority.
    ///
    /// # Errors
    ///
    /// The payload has no room for what the flags promise: a connection error of this code
    /// (RFC 9113 sections 6.1 and 6.2).
    #[inline]
    pub fn content(self, payload: &[u8]) -> Result<&[u8], ErrorCode> {
        let (mut content, mut padding) = (payload, 0);
        if self.has(flags::PADDED) {
            let (&length, rest) = content.split_first().ok_or(ErrorCode::FrameSizeError)?;
            (content, padding) = (rest, usize::from(length));
        }
        if self.kind == Kind::Headers && self.has(flags::PRIORITY) {
            content = content.get(5..).ok_or(ErrorCode::FrameSizeError)?;
        }
        let end = content.len().checked_sub(padding);
        end.map(|end| &content[..end])
            .ok_or(ErrorCode::ProtocolError)
    }
}

numbered! {
    /// Why a stream or a connection ends (RFC 9113 section 7).
    enum ErrorCode(u32), "unknown code" {
        /// Nothing is wrong.
        NoError = 0 "NO_ERROR",
        /// The peer broke the protocol.
        ProtocolError = 1 "PROTOCOL_ERROR",
        /// The sender has a fault.
        InternalError = 2 "INTERNAL_ERROR",
        /// The peer sent more than the window.
        FlowControlError = 3 "FLOW_CONTROL_ERROR",
        /// Settings were not acknowledged in time.
        SettingsTimeout = 4 "SETTINGS_TIMEOUT",
        /// A frame came after the stream was half closed.
        StreamClosed = 5 "STREAM_CLOSED",
        /// A frame has a wrong size.
        FrameSizeError = 6 "FRAME_SIZE_ERROR",
        /// The stream was not processed at all.
        RefusedStream = 7 "REFUSED_STREAM",
        /// The stream is not wanted any more.
        Cancel = 8 "CANCEL",
        /// The state of header compression is lost.
        CompressionError = 9 "COMPRESSION_ERROR",
        /// The connection of a CONNECT request was lost.
        ConnectError = 10 "CONNECT_ERROR",
        /// The peer asks for too much.
        EnhanceYourCalm = 11 "ENHANCE_YOUR_CALM",
        /// TLS does not meet the requirements of RFC 9113 section 9.2.
        InadequateSecurity = 12 "INADEQUATE_SECURITY",
        /// HTTP/1.1 is to be used.
        Http11Required = 13 "HTTP_1_1_REQUIRED",
        else "A code that RFC 9113 does not define.",
    }
}

/// One setting (RFC 9113 section 6.5.2): what its sender accepts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Setting {
    /// Bytes of the dynamic table with which it decodes field blocks. Initially 4,096.
    HeaderTableSize(u32),
    /// Whether the sender takes pushed replies: 0 or 1. Initially 1; a server must not send 1.
    EnablePush(u32),
    /// Streams that its peer may have in flight. Initially without limit.
    MaxConcurrentStreams(u32),
    /// Window of each stream in bytes, at most [`WINDOW_BYTES_MAX`]. Initially [`WINDOW_BYTES`].
    InitialWindowSize(u32),
    /// Payload of a frame in bytes, [`PAYLOAD_BYTES`] (the initial value) to
    /// [`PAYLOAD_BYTES_MAX`].
    MaxFrameSize(u32),
    /// Bytes of a field block once decoded. Initially without limit. Advice only.
    MaxHeaderListSize(u32),
    /// A setting that RFC 9113 does not define; to be ignored.
    Other {
        /// The identifier of the setting.
        id: u16,
        /// The value of the setting.
        value: u32,
    },
}

impl Setting {
    /// Bytes of a setting on the wire.
    pub const BYTES: usize = 6;

    /// The setting with this identifier.
    pub const fn of(id: u16, value: u32) -> Self {
        match id {
            1 => Self::HeaderTableSize(value),
            2 => Self::EnablePush(value),
            3 => Self::MaxConcurrentStreams(value),
            4 => Self::InitialWindowSize(value),
            5 => Self::MaxFrameSize(value),
            6 => Self::MaxHeaderListSize(value),
            _ => Self::Other { id, value },
        }
    }

    /// The identifier and value of the setting.
    pub const fn parts(self) -> (u16, u32) {
        match self {
            Self::HeaderTableSize(value) => (1, value),
            Self::EnablePush(value) => (2, value),
            Self::MaxConcurrentStreams(value) => (3, value),
            Self::InitialWindowSize(value) => (4, value),
            Self::MaxFrameSize(value) => (5, value),
            Self::MaxHeaderListSize(value) => (6, value),
            Self::Other { id, value } => (id, value),
        }
    }

    /// Whether the value is in its range.
    ///
    /// # Errors
    ///
    /// It is not: a connection error of this code.
    pub const fn check(self) -> Result<(), ErrorCode> {
        match self {
            Self::EnablePush(2..) => Err(ErrorCode::ProtocolError),
            Self::InitialWindowSize(bytes) if bytes > WINDOW_BYTES_MAX => {
                Err(ErrorCode::FlowControlError)
            }
            Self::MaxFrameSize(bytes) if bytes < PAYLOAD_BYTES || bytes > PAYLOAD_BYTES_MAX => {
                Err(ErrorCode::ProtocolError)
            }
            _ => Ok(()),
        }
    }
}

/// The settings in the payload of a SETTINGS frame, in their order.
///
/// # Errors
///
/// The payload is not a whole number of settings: a connection error of this code.
pub fn settings(payload: &[u8]) -> Result<impl Iterator<Item = Setting> + '_, ErrorCode> {
    let (settings, []) = payload.as_chunks::<{ Setting::BYTES }>() else {
        return Err(ErrorCode::FrameSizeError);
    };
    Ok(settings.iter().map(|&[i0, i1, v0, v1, v2, v3]| {
        Setting::of(
            u16::from_be_bytes([i0, i1]),
            u32::from_be_bytes([v0, v1, v2, v3]),
        )
    }))
}

/// The four bytes of a RST_STREAM payload.
///
/// # Errors
///
/// The payload has another size: a connection error of this code.
pub fn rst_stream(payload: &[u8]) -> Result<ErrorCode, ErrorCode> {
    Ok(ErrorCode::of(u32::from_be_bytes(sized(payload)?)))
}

/// The eight bytes of a PING payload.
///
/// # Errors
///
/// The payload has another size: a connection error of this code.
pub fn ping(payload: &[u8]) -> Result<[u8; 8], ErrorCode> {
    sized(payload)
}

/// The increment of a WINDOW_UPDATE payload, the reserved bit ignored. 0 is an error that the
/// caller must handle: of the stream, or of the connection (RFC 9113 section 6.9).
///
/// # Errors
///
/// The payload has another size: a connection error of this code.
pub fn window_update(payload: &[u8]) -> Result<u32, ErrorCode> {
    Ok(u32::from_be_bytes(sized(payload)?) & WINDOW_BYTES_MAX)
}

/// The highest stream that was or might be processed, and the reason, of a GOAWAY payload.
///
/// # Errors
///
/// The payload is under 8 bytes: a connection error of this code.
pub fn go_away(payload: &[u8]) -> Result<(u32, ErrorCode), ErrorCode> {
    let [s0, s1, s2, s3, c0, c1, c2, c3, ..] = *payload else {
        return Err(ErrorCode::FrameSizeError);
    };
    let last_stream = u32::from_be_bytes([s0, s1, s2, s3]) & STREAM_MAX;
    let code = ErrorCode::of(u32::from_be_bytes([c0, c1, c2, c3]));
    Ok((last_stream, code))
}

fn sized<const N: usize>(payload: &[u8]) -> Result<[u8; N], ErrorCode> {
    payload.try_into().map_err(|_| ErrorCode::FrameSizeError)
}

/// Appends a SETTINGS frame.
pub fn write_settings(out: &mut Vec<u8>, settings: &[Setting]) {
    write_header(out, settings.len() * Setting::BYTES, Kind::Settings, 0, 0);
    for setting in settings {
        let (id, value) = setting.parts();
        out.extend_from_slice(&id.to_be_bytes());
        out.extend_from_slice(&value.to_be_bytes());
    }
}

/// Appends the acknowledgement of a SETTINGS frame.
pub fn write_settings_ack(out: &mut Vec<u8>) {
    write_header(out, 0, Kind::Settings, flags::ACK, 0);
}

/// Appends a PING frame, or the acknowledgement of one.
pub fn write_ping(out: &mut Vec<u8>, payload: [u8; 8], is_ack: bool) {
    let flags = if is_ack { flags::ACK } else { 0 };
    write_header(out, payload.len(), Kind::Ping, flags, 0);
    out.extend_from_slice(&payload);
}

/// Appends a RST_STREAM frame.
pub fn write_rst_stream(out: &mut Vec<u8>, stream: u32, code: ErrorCode) {
    write_header(out, 4, Kind::RstStream, 0, stream);
    out.extend_from_slice(&code.number().to_be_bytes());
}

/// Appends a WINDOW_UPDATE frame of a stream, or of the connection (0). `increment_bytes`: 1 to
/// [`WINDOW_BYTES_MAX`].
pub fn write_window_update(out: &mut Vec<u8>, stream: u32, increment_bytes: u32) {
    write_header(out, 4, Kind::WindowUpdate, 0, stream);
    out.extend_from_slice(&increment_bytes.to_be_bytes());
}

/// Appends a GOAWAY frame. `last_stream`: the highest stream of the peer that was or might be
/// processed.
pub fn write_go_away(out: &mut Vec<u8>, last_stream: u32, code: ErrorCode) {
    write_header(out, 8, Kind::GoAway, 0, 0);
    out.extend_from_slice(&last_stream.to_be_bytes());
    out.extend_from_slice(&code.number().to_be_bytes());
}

/// Appends a field block as a HEADERS frame and as many CONTINUATION frames as it takes at
/// `payload_bytes` per frame (at least 1).
pub fn write_head(
    out: &mut Vec<u8>,
    stream: u32,
    block: &[u8],
    end_stream: bool,
    payload_bytes: u32,
) {
    let size = payload_bytes.max(1) as usize;
    let mut rest = block;
    let mut kind = Kind::Headers;
    loop {
        let (piece, later) = rest.split_at(rest.len().min(size));
        rest = later;
        let mut flags = 0;
        if kind == Kind::Headers && end_stream {
            flags |= flags::END_STREAM;
        }
        if rest.is_empty() {
            flags |= flags::END_HEADERS;
        }
        write_header(out, piece.len(), kind, flags, stream);
        out.extend_from_slice(piece);
        if rest.is_empty() {
            return;
        }
        kind = Kind::Continuation;
    }
}

/// Appends the header of a DATA frame; its payload is to follow.
#[inline]
pub fn write_data_header(out: &mut Vec<u8>, stream: u32, payload_bytes: u32, end_stream: bool) {
    let flags = if end_stream { flags::END_STREAM } else { 0 };
    write_header(out, payload_bytes as usize, Kind::Data, flags, stream);
}

#[inline]
fn write_header(out: &mut Vec<u8>, length: usize, kind: Kind, flags: u8, stream: u32) {
    let header = FrameHeader {
        length: length as u32,
        kind,
        flags,
        stream,
    };
    header.write(out);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_support::written;

    #[test]
    fn numbers_come_back() {
        for number in 0..=255 {
            assert_eq!(Kind::of(number).number(), number);
        }
        for number in (0..20).chain([u32::MAX]) {
            assert_eq!(ErrorCode::of(number).number(), number);
        }
        for id in 0..10 {
            assert_eq!(Setting::of(id, 77).parts(), (id, 77));
        }
    }

    #[test]
    fn headers_are_read_without_the_reserved_bit() {
        let wire = [0x01, 0x02, 0x03, 0x06, 0x81, 0xff, 0x02, 0x03, 0x04];
        let header = FrameHeader::read(&wire);
        let expected = FrameHeader {
            length: 0x01_0203,
            kind: Kind::Ping,
            flags: 0x81,
            stream: 0x7f02_0304,
        };
        assert_eq!(header, expected);
        let mut out = Vec::new();
        header.write(&mut out);
        assert_eq!(out, [1, 2, 3, 6, 0x81, 0x7f, 2, 3, 4]);
        assert!(header.has(flags::ACK) && !header.has(flags::PADDED));
    }

    /// The header and the payload of the one frame in `out`.
    fn split(out: &[u8]) -> (FrameHeader, &[u8]) {
        let (header, payload) = out.split_first_chunk().unwrap();
        let header = FrameHeader::read(header);
        assert_eq!(header.length as usize, payload.len());
        (header, payload)
    }

    #[test]
    fn what_is_written_is_read() {
        let out = written(|out| write_rst_stream(out, 5, ErrorCode::Cancel));
        let (header, payload) = split(&out);
        assert_eq!((header.kind, header.stream), (Kind::RstStream, 5));
        assert_eq!(rst_stream(payload), Ok(ErrorCode::Cancel));

        let out = written(|out| write_window_update(out, 3, 99));
        let (header, payload) = split(&out);
        assert_eq!((header.kind, header.stream), (Kind::WindowUpdate, 3));
        assert_eq!(window_update(payload), Ok(99));
        assert_eq!(window_update(&[0x80, 0, 0, 1]), Ok(1));

        let out = written(|out| write_ping(out, *b"12345678", true));
        let (header, payload) = split(&out);
        let found = (header.kind, header.flags, header.stream);
        assert_eq!(found, (Kind::Ping, flags::ACK, 0));
        assert_eq!(ping(payload), Ok(*b"12345678"));

        let out = written(|out| write_go_away(out, 7, ErrorCode::Other(99)));
        let (header, payload) = split(&out);
        assert_eq!((header.kind, header.stream), (Kind::GoAway, 0));
        assert_eq!(go_away(payload), Ok((7, ErrorCode::Other(99))));
        let with_debug_data = [payload, b"why"].concat();
        assert_eq!(go_away(&with_debug_data), Ok((7, ErrorCode::Other(99))));

        let other = Setting::Other { id: 9, value: 1 };
        let sent = [Setting::MaxConcurrentStreams(5), other];
        let out = written(|out| write_settings(out, &sent));
        let (header, payload) = split(&out);
        let found = (header.kind, header.flags, header.stream);
        assert_eq!(found, (Kind::Settings, 0, 0));
        assert_eq!(settings(payload).unwrap().collect::<Vec<_>>(), sent);
        let out = written(write_settings_ack);
        assert_eq!(split(&out).0.flags, flags::ACK);

        let out = written(|out| {
            write_data_header(out, 9, 2, true);
            out.extend_from_slice(b"xy");
        });
        let (header, payload) = split(&out);
        assert_eq!((header.kind, header.flags), (Kind::Data, flags::END_STREAM));
        assert_eq!((header.stream, payload), (9, &b"xy"[..]));
    }

    #[test]
    fn settings_have_ranges() {
        use ErrorCode::{FlowControlError, ProtocolError};
        use Setting::{EnablePush, HeaderTableSize, InitialWindowSize, MaxFrameSize};
        for (setting, expected) in [
            (HeaderTableSize(u32::MAX), Ok(())),
            (EnablePush(1), Ok(())),
            (EnablePush(2), Err(ProtocolError)),
            (InitialWindowSize(WINDOW_BYTES_MAX), Ok(())),
            (InitialWindowSize(1 << 31), Err(FlowControlError)),
            (MaxFrameSize(16_383), Err(ProtocolError)),
            (MaxFrameSize(16_384), Ok(())),
            (MaxFrameSize(PAYLOAD_BYTES_MAX), Ok(())),
            (MaxFrameSize(1 << 24), Err(ProtocolError)),
        ] {
            assert_eq!(setting.check(), expected, "{setting:?}");
        }
    }

    #[test]
    fn heads_are_cut_into_frames() {
        use Kind::{Continuation, Headers};
        for (bytes, expected) in [
            (0, &[(Headers, 0x05, 0)][..]),
            (4, &[(Headers, 0x05, 4)]),
            (5, &[(Headers, 0x01, 4), (Continuation, 0x04, 1)]),
            (8, &[(Headers, 0x01, 4), (Continuation, 0x04, 4)]),
        ] {
            let mut out = Vec::new();
            write_head(&mut out, 1, &vec![b'x'; bytes], true, 4);
            let mut found = Vec::new();
            let mut rest = &out[..];
            while let Some((header, tail)) = rest.split_first_chunk() {
                let header = FrameHeader::read(header);
                found.push((header.kind, header.flags, header.length));
                rest = &tail[header.length as usize..];
            }
            assert_eq!(found, expected);
        }
    }
}
