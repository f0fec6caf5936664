//! The unidirectional streams of the peer: its control stream, and those of QPACK (RFC 9114
//! section 6.2, RFC 9204 section 4.2).

use quinn_proto::{Dir, ReadError, Side as QuicSide, StreamId, VarInt};

use super::error::{ConnectionError, ErrorCode};
use super::frame::{self, Kind, Pieces, Setting, Side, StreamKind};
use super::qpack::{DecoderInstructions, check_encoder_instructions};

/// Something of the peer that a caller must know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PeerEvent {
    /// Its SETTINGS are in. Once per connection.
    Settings,
    /// It ends the connection (RFC 9114 section 5.2). May come again, with a lower `id`.
    GoAway {
        /// A server: the first request stream that it does not process. A client: the first push
        /// that it does not take.
        id: u64,
    },
    /// The stream is of a kind that nobody knows: all of it is passed over. The caller may tell the
    /// peer to stop sending (H3_STREAM_CREATION_ERROR). Once per stream.
    Unknown,
}

/// One unidirectional stream of the peer, by its type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PeerStream {
    /// Its type did not come yet as a whole.
    Untold(Pieces),
    /// Frames about the connection as a whole.
    Control,
    /// Instructions of QPACK's encoder.
    Encoder,
    /// Instructions of QPACK's decoder.
    Decoder,
    /// All of it is passed over.
    Unknown,
}

impl Default for PeerStream {
    fn default() -> Self {
        Self::Untold(Pieces::default())
    }
}

/// What the next byte of the control stream belongs to. Bytes to come are those of the frame.
#[derive(Clone, Copy, Debug)]
enum ControlStage {
    Kind,
    Length(Kind),
    /// The identifier of a setting.
    SettingId {
        left_bytes: u64,
    },
    SettingValue {
        id: u64,
        left_bytes: u64,
    },
    /// The one number of another frame.
    Number {
        kind: Kind,
        left_bytes: u64,
    },
    PassedOver {
        left_bytes: u64,
    },
}

/// What the peer says on its unidirectional streams, of which it may have any number.
///
/// The events depend on the bytes of each stream, not on how they are cut. Nothing is kept of them
/// but numbers.
#[derive(Debug)]
pub(super) struct Peer {
    /// Who reads.
    side: Side,
    has_control: bool,
    has_encoder: bool,
    has_decoder: bool,

    // The control stream.
    stage: ControlStage,
    number: Pieces,
    /// Of each setting that may come once, a bit by its number.
    settings_seen: u8,
    has_settings: bool,
    go_away_id: Option<u64>,
    push_id_max: Option<u64>,

    instructions: DecoderInstructions,
}

impl Peer {
    /// The peer of `side`, which has opened no stream.
    pub(super) fn new(side: Side) -> Self {
        Self {
            side,
            has_control: false,
            has_encoder: false,
            has_decoder: false,
            stage: ControlStage::Kind,
            number: Pieces::default(),
            settings_seen: 0,
            has_settings: false,
            go_away_id: None,
            push_id_max: None,
            instructions: DecoderInstructions::default(),
        }
    }

    /// Takes bytes of a stream off `rest`, in their order, up to the next event. `None`: all of
    /// `rest` was taken.
    ///
    /// # Errors
    ///
    /// The connection cannot be used any more.
    pub(super) fn receive(
        &mut self,
        stream: &mut PeerStream,
        rest: &mut &[u8],
    ) -> Result<Option<PeerEvent>, ConnectionError> {
        if let PeerStream::Untold(number) = stream {
            let Some(number) = number.take(rest) else {
                return Ok(None);
            };
            *stream = self.open(StreamKind::of(number))?;
            if *stream == PeerStream::Unknown {
                *rest = &[];
                return Ok(Some(PeerEvent::Unknown));
            }
        }
        match stream {
            PeerStream::Control => return self.control(rest),
            PeerStream::Encoder => {
                check_encoder_instructions(rest).map_err(|_| ConnectionError::EncoderStream)?;
            }
            PeerStream::Decoder => {
                let taken = self.instructions.take(rest);
                taken.map_err(|_| ConnectionError::DecoderStream)?;
            }
            PeerStream::Untold(_) | PeerStream::Unknown => {}
        }
        *rest = &[];
        Ok(None)
    }

    /// The peer ended or reset a stream.
    ///
    /// # Errors
    ///
    /// The connection needs the stream.
    pub(super) fn end(&self, stream: &PeerStream) -> Result<(), ConnectionError> {
        match stream {
            // Also before its type came (RFC 9114 section 6.2).
            PeerStream::Untold(_) | PeerStream::Unknown => Ok(()),
            _ => Err(ConnectionError::ClosedCriticalStream),
        }
    }

    /// Whether its SETTINGS are in.
    pub(super) fn has_settings(&self) -> bool {
        self.has_settings
    }

    /// A stream has this type.
    fn open(&mut self, kind: StreamKind) -> Result<PeerStream, ConnectionError> {
        let (is_there, role) = match kind {
            StreamKind::Control => (&mut self.has_control, PeerStream::Control),
            StreamKind::QpackEncoder => (&mut self.has_encoder, PeerStream::Encoder),
            StreamKind::QpackDecoder => (&mut self.has_decoder, PeerStream::Decoder),
            StreamKind::Push => {
                return Err(match self.side {
                    Side::Client => ConnectionError::Push,
                    Side::Server => ConnectionError::StreamCreation,
                });
            }
            StreamKind::Other(_) => return Ok(PeerStream::Unknown),
        };
        if std::mem::replace(is_there, true) {
            return Err(ConnectionError::StreamCreation);
        }
        Ok(role)
    }

    /// Takes bytes of the control stream up to the next event.
    fn control(&mut self, rest: &mut &[u8]) -> Result<Option<PeerEvent>, ConnectionError> {
        loop {
            match self.stage {
                ControlStage::Kind => {
                    let Some(number) = self.number.take(rest) else {
                        return Ok(None);
                    };
                    let kind = Kind::of(number);
                    self.check(kind)?;
                    self.stage = ControlStage::Length(kind);
                }
                ControlStage::Length(kind) => {
                    let Some(left_bytes) = self.number.take(rest) else {
                        return Ok(None);
                    };
                    self.stage = match kind {
                        Kind::Settings => ControlStage::SettingId { left_bytes },
                        Kind::Other(_) => ControlStage::PassedOver { left_bytes },
                        _ => ControlStage::Number { kind, left_bytes },
                    };
                }
                ControlStage::SettingId { left_bytes: 0 } => {
                    self.stage = ControlStage::Kind;
                    self.has_settings = true;
                    return Ok(Some(PeerEvent::Settings));
                }
                ControlStage::SettingId { mut left_bytes } => {
                    let id = self.take_number(rest, &mut left_bytes)?;
                    self.stage = match id {
                        Some(id) => ControlStage::SettingValue { id, left_bytes },
                        None => ControlStage::SettingId { left_bytes },
                    };
                    if id.is_none() {
                        return Ok(None);
                    }
                }
                ControlStage::SettingValue { id, mut left_bytes } => {
                    // Without a dynamic table or large heads, none of the values matters here.
                    if self.take_number(rest, &mut left_bytes)?.is_none() {
                        self.stage = ControlStage::SettingValue { id, left_bytes };
                        return Ok(None);
                    }
                    self.take_setting(Setting::of(id))?;
                    self.stage = ControlStage::SettingId { left_bytes };
                }
                ControlStage::Number {
                    kind,
                    mut left_bytes,
                } => {
                    let number = self.take_number(rest, &mut left_bytes)?;
                    let Some(number) = number else {
                        self.stage = ControlStage::Number { kind, left_bytes };
                        return Ok(None);
                    };
                    if left_bytes > 0 {
                        return Err(ConnectionError::FrameSize);
                    }
                    self.stage = ControlStage::Kind;
                    if let event @ Some(_) = self.frame(kind, number)? {
                        return Ok(event);
                    }
                }
                ControlStage::PassedOver { left_bytes: 0 } => self.stage = ControlStage::Kind,
                ControlStage::PassedOver { left_bytes } => {
                    if rest.is_empty() {
                        return Ok(None);
                    }
                    let taken = left_bytes.min(rest.len() as u64);
                    *rest = &rest[taken as usize..];
                    let left_bytes = left_bytes - taken;
                    self.stage = ControlStage::PassedOver { left_bytes };
                }
            }
        }
    }

    /// Takes a setting, which may come once where it is known.
    fn take_setting(&mut self, setting: Setting) -> Result<(), ConnectionError> {
        let seen = match setting {
            Setting::Other(_) if setting.is_of_http2() => return Err(ConnectionError::Setting),
            Setting::Other(_) => return Ok(()),
            known => 1 << known.number(),
        };
        if self.settings_seen & seen != 0 {
            return Err(ConnectionError::Setting);
        }
        self.settings_seen |= seen;
        Ok(())
    }

    /// Takes a number within a frame, which must hold it whole. `None`: more is to come.
    fn take_number(
        &mut self,
        rest: &mut &[u8],
        left_bytes: &mut u64,
    ) -> Result<Option<u64>, ConnectionError> {
        let within = rest
            .len()
            .min(usize::try_from(*left_bytes).unwrap_or(usize::MAX));
        let (mut payload, _) = rest.split_at(within);
        let number = self.number.take(&mut payload);
        let taken = within - payload.len();
        *rest = &rest[taken..];
        *left_bytes -= taken as u64;
        if number.is_none() && *left_bytes == 0 {
            return Err(ConnectionError::FrameSize);
        }
        Ok(number)
    }

    /// Whether a frame may come now on the control stream (RFC 9114 section 7.2).
    fn check(&self, kind: Kind) -> Result<(), ConnectionError> {
        let is_settings = kind == Kind::Settings;
        match (kind, self.side) {
            _ if !self.has_settings && !is_settings => Err(ConnectionError::MissingSettings),
            _ if self.has_settings && is_settings => Err(ConnectionError::FrameUnexpected),
            (Kind::Data | Kind::Headers | Kind::PushPromise, _)
            | (Kind::MaxPushId, Side::Client) => Err(ConnectionError::FrameUnexpected),
            _ if kind.is_of_http2() => Err(ConnectionError::FrameUnexpected),
            // We allowed no push (section 7.2.3).
            (Kind::CancelPush, Side::Client) => Err(ConnectionError::Push),
            _ => Ok(()),
        }
    }

    /// A frame with one number is whole.
    fn frame(&mut self, kind: Kind, number: u64) -> Result<Option<PeerEvent>, ConnectionError> {
        match kind {
            Kind::GoAway => {
                // A server names a request: a bidirectional stream of the client.
                let is_wrong = self.side == Side::Client && !number.is_multiple_of(4);
                let earlier = self.go_away_id.replace(number);
                if is_wrong || earlier.is_some_and(|earlier| number > earlier) {
                    return Err(ConnectionError::GoAway);
                }
                Ok(Some(PeerEvent::GoAway { id: number }))
            }
            Kind::MaxPushId => {
                let earlier = self.push_id_max.replace(number);
                if earlier.is_some_and(|earlier| number < earlier) {
                    return Err(ConnectionError::PushId);
                }
                Ok(None)
            }
            // We promised no push (section 7.2.3).
            _ => Err(ConnectionError::PushId),
        }
    }
}

/// The unidirectional streams of the peer.
#[derive(Debug)]
pub(super) struct PeerStreams {
    peer: Peer,
    streams: Vec<(StreamId, PeerStream)>,
    /// Of a server: the first request that GOAWAY names as not processed, by its number among the
    /// streams of the client.
    go_away_stream: Option<u64>,
}

impl PeerStreams {
    /// Those of the peer of `side`, which has opened none.
    pub(super) fn new(side: Side) -> Self {
        Self {
            peer: Peer::new(side),
            streams: Vec::new(),
            go_away_stream: None,
        }
    }

    pub(super) fn has_settings(&self) -> bool {
        self.peer.has_settings()
    }

    #[inline]
    pub(super) fn go_away_stream(&self) -> Option<u64> {
        self.go_away_stream
    }

    /// The peer opened a stream.
    pub(super) fn opened(&mut self, id: StreamId) {
        self.streams.push((id, PeerStream::default()));
    }

    /// Reads what came on a stream. Gives whether the peer ends the connection (GOAWAY).
    pub(super) fn read(
        &mut self,
        quic: &mut quinn_proto::Connection,
        id: StreamId,
    ) -> Result<bool, ConnectionError> {
        let Some(at) = self.streams.iter().position(|(other, _)| *other == id) else {
            return Ok(false);
        };
        let state = &mut self.streams[at].1;
        let mut goes_away = false;
        let mut is_over = false;
        let mut stream = quic.recv_stream(id);
        if let Ok(mut chunks) = stream.read(true) {
            loop {
                match chunks.next(usize::MAX) {
                    Ok(Some(chunk)) => {
                        let mut rest = &chunk.bytes[..];
                        while let Some(event) = self.peer.receive(state, &mut rest)? {
                            match event {
                                PeerEvent::Settings => {}
                                PeerEvent::GoAway { id } => {
                                    // The low two bits say whose streams are meant.
                                    self.go_away_stream = Some(id / 4);
                                    goes_away = true;
                                }
                                PeerEvent::Unknown => is_over = true,
                            }
                        }
                    }
                    Ok(None) | Err(ReadError::Reset(_)) => {
                        self.peer.end(state)?;
                        is_over = true;
                        break;
                    }
                    Err(ReadError::Blocked) => break,
                }
            }
            let _ = chunks.finalize();
        }
        if is_over {
            // One that has ended cannot be stopped.
            let _ = stream.stop(code_of(ErrorCode::StreamCreationError.number()));
            self.streams.swap_remove(at);
        }
        Ok(goes_away)
    }
}

/// Opens the control stream of this side (RFC 9114 section 6.2.1); absent where the peer allows
/// none.
pub(super) fn open_control(
    quic: &mut quinn_proto::Connection,
    settings: &[(Setting, u64)],
) -> Option<StreamId> {
    let control = quic.streams().open(Dir::Uni)?;
    let mut opening = Vec::new();
    frame::write_control_opening(&mut opening, settings);
    // A few bytes find room in any window that a peer may give (RFC 9114 section 6.2).
    let _ = quic.send_stream(control).write(&opening);
    Some(control)
}

/// A stream that carries a request, by its number among them.
#[inline]
pub(super) fn request_stream(number: u64) -> StreamId {
    StreamId::new(QuicSide::Client, Dir::Bi, number)
}

/// A code as quinn-proto has it.
pub(super) fn code_of(number: u64) -> VarInt {
    VarInt::from_u64(number).unwrap_or(VarInt::MAX)
}
