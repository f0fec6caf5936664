//! How the simulated server reads HTTP/2: every frame is found, every head decoded, and what
//! breaks the rules of framing is reported.

use brunt_proto::http2::frame::{self, FrameHeader, HEADER_BYTES, Kind, PREFACE, Setting, flags};
use brunt_proto::http2::hpack::{Bytes, Decoder};

/// What brunt sent. Nothing follows `Broken`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) enum Frame {
    /// The preface (RFC 9113 section 3.4), with which a connection begins.
    Preface,
    /// One of the settings of a SETTINGS frame.
    Setting(Setting),
    /// The end of a SETTINGS frame, which is to be acknowledged.
    Settings,
    /// SETTINGS are acknowledged.
    SettingsAcknowledged,
    /// A request's head; the request ends with it, or has a body.
    Head {
        stream: u32,
        /// The request's method is HEAD.
        is_head: bool,
        ends: bool,
    },
    /// A part of a body, in bytes that count for flow control.
    Data { stream: u32, bytes: u32, ends: bool },
    /// RST_STREAM.
    Reset { stream: u32 },
    /// WINDOW_UPDATE.
    WindowUpdate { stream: u32, bytes: u32 },
    /// PING, to be acknowledged.
    Ping([u8; 8]),
    /// The acknowledgement of a PING.
    PingAcknowledged([u8; 8]),
    /// GOAWAY, or a frame without a meaning for a server.
    Ignored,
    /// A rule was broken.
    Broken(&'static str),
}

/// Name and value of each field of a head.
type Fields = Vec<(Vec<u8>, Vec<u8>)>;

/// Reads the frames of one connection, however they are cut.
#[derive(Debug)]
pub(in super::super) struct Reader {
    /// The beginning of a frame that is not complete.
    gathered: Vec<u8>,
    has_preface: bool,
    has_settings: bool,
    is_broken: bool,
    decoder: Decoder<Bytes>,
    scratch: Vec<u8>,
    /// A head that is not complete: its stream, whether the request ends with it, and its field
    /// block so far.
    head: Option<(u32, bool, Vec<u8>)>,
    /// What the first head said. All later ones must say the same, for a run has one request.
    first: Option<Fields>,
}

impl Reader {
    /// A reader of heads whose dynamic table has `table_bytes` at most.
    pub(in super::super) fn new(table_bytes: u32) -> Self {
        Self {
            gathered: Vec::new(),
            has_preface: false,
            has_settings: false,
            is_broken: false,
            decoder: Decoder::new(table_bytes),
            scratch: Vec::new(),
            head: None,
            first: None,
        }
    }

    /// Takes `bytes`; `found` gets each frame with the bytes up to its end.
    pub(in super::super) fn scan(&mut self, bytes: &[u8], mut found: impl FnMut(usize, Frame)) {
        let before = self.gathered.len();
        let mut gathered = std::mem::take(&mut self.gathered);
        gathered.extend_from_slice(bytes);
        let mut taken = 0;
        while !self.is_broken {
            let Some(length) = self.next_length(&gathered[taken..]) else {
                break;
            };
            let unit = &gathered[taken..taken + length];
            taken += length;
            let end = taken - before.min(taken);
            if let Err(rule) = self.take(unit, |frame| found(end, frame)) {
                self.is_broken = true;
                found(end, Frame::Broken(rule));
            }
        }
        if self.is_broken {
            gathered.clear();
        } else {
            gathered.drain(..taken);
        }
        self.gathered = gathered;
    }

    /// Length of the preface or frame at the start of `bytes`, if all of it is there.
    fn next_length(&self, bytes: &[u8]) -> Option<usize> {
        let length = if self.has_preface {
            let header = FrameHeader::read(bytes.first_chunk()?);
            // What is too long is refused by its header.
            if header.length > frame::PAYLOAD_BYTES {
                HEADER_BYTES
            } else {
                HEADER_BYTES + header.length as usize
            }
        } else {
            PREFACE.len()
        };
        (bytes.len() >= length).then_some(length)
    }

    fn take(&mut self, unit: &[u8], mut found: impl FnMut(Frame)) -> Result<(), &'static str> {
        if !self.has_preface {
            self.has_preface = true;
            if unit != PREFACE {
                return Err("the connection begins without the preface");
            }
            found(Frame::Preface);
            return Ok(());
        }
        let (header, payload) = unit.split_first_chunk().ok_or("a frame is cut")?;
        let header = FrameHeader::read(header);
        if header.length > frame::PAYLOAD_BYTES {
            return Err("a frame is too long");
        }
        if !self.has_settings && (header.kind != Kind::Settings || header.has(flags::ACK)) {
            return Err("SETTINGS are not the first frame");
        }
        if self.head.is_some() && header.kind != Kind::Continuation {
            return Err("a head is interrupted");
        }
        let on_stream = matches!(
            header.kind,
            Kind::Data | Kind::Headers | Kind::Priority | Kind::RstStream | Kind::Continuation
        );
        let on_any = matches!(header.kind, Kind::WindowUpdate | Kind::Other(_));
        if !on_any && on_stream != (header.stream != 0) {
            return Err("a frame is on the wrong stream");
        }
        let wrong_size = |_| "a frame has a wrong size";
        match header.kind {
            Kind::Settings if header.has(flags::ACK) => found(Frame::SettingsAcknowledged),
            Kind::Settings => {
                self.has_settings = true;
                for setting in frame::settings(payload).map_err(wrong_size)? {
                    setting.check().map_err(|_| "a setting is out of range")?;
                    found(Frame::Setting(setting));
                }
                found(Frame::Settings);
            }
            Kind::Headers | Kind::Continuation => self.take_head(header, payload, found)?,
            Kind::Data => {
                header.content(payload).map_err(wrong_size)?;
                found(Frame::Data {
                    stream: header.stream,
                    bytes: header.length,
                    ends: header.has(flags::END_STREAM),
                });
            }
            Kind::RstStream => {
                frame::rst_stream(payload).map_err(wrong_size)?;
                let stream = header.stream;
                found(Frame::Reset { stream });
            }
            Kind::WindowUpdate => {
                let bytes = frame::window_update(payload).map_err(wrong_size)?;
                let stream = header.stream;
                found(Frame::WindowUpdate { stream, bytes });
            }
            Kind::Ping => {
                let payload = frame::ping(payload).map_err(wrong_size)?;
                found(if header.has(flags::ACK) {
                    Frame::PingAcknowledged(payload)
                } else {
                    Frame::Ping(payload)
                });
            }
            Kind::GoAway => {
                frame::go_away(payload).map_err(wrong_size)?;
                found(Frame::Ignored);
            }
            Kind::PushPromise => return Err("a client pushes"),
            Kind::Priority | Kind::Other(_) => found(Frame::Ignored),
        }
        Ok(())
    }

    /// Takes a HEADERS or CONTINUATION frame.
    fn take_head(
        &mut self,
        header: FrameHeader,
        payload: &[u8],
        mut found: impl FnMut(Frame),
    ) -> Result<(), &'static str> {
        let (stream, ends, block) = match (self.head.take(), header.kind) {
            (None, Kind::Headers) => {
                let content = header
                    .content(payload)
                    .map_err(|_| "a frame has a wrong size")?;
                let ends = header.has(flags::END_STREAM);
                (header.stream, ends, content.to_vec())
            }
            (Some((stream, ends, mut block)), _) if stream == header.stream => {
                block.extend_from_slice(payload);
                (stream, ends, block)
            }
            _ => return Err("a head is continued in the wrong place"),
        };
        if !header.has(flags::END_HEADERS) {
            self.head = Some((stream, ends, block));
            return Ok(());
        }
        let mut fields = Fields::new();
        self.decoder
            .decode(&block, &mut self.scratch, |(name, value), _| {
                fields.push((name.to_vec(), value.to_vec()));
            })
            .map_err(|_| "a head cannot be decoded")?;
        let value_of = |name: &[u8]| {
            let field = fields.iter().find(|(field, _)| field == name);
            field.map(|(_, value)| value.as_slice())
        };
        let pseudo = [b":method".as_slice(), b":scheme", b":path", b":authority"];
        if pseudo.iter().any(|name| value_of(name).is_none()) {
            return Err("a head lacks a pseudo-header");
        }
        let is_head = value_of(b":method") == Some(b"HEAD");
        if *self.first.get_or_insert_with(|| fields.clone()) != fields {
            return Err("a head differs from the first one");
        }
        found(Frame::Head {
            stream,
            is_head,
            ends,
        });
        Ok(())
    }
}
