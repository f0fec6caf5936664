//! The unidirectional streams of the peer as quinn-proto has them, read into what it says of the
//! connection.

use quinn_proto::{ReadError, StreamId, VarInt};

use super::code::ErrorCode;
use super::error::ConnectionError;
use super::frame::Side;
use super::peer::{Peer, PeerEvent, PeerStream};

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
        self.peer.settings().is_some()
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
                                PeerEvent::Settings(_) => {}
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
            let code = ErrorCode::StreamCreationError.number();
            // One that has ended cannot be stopped.
            let _ = stream.stop(VarInt::from_u64(code).unwrap_or_default());
            self.streams.swap_remove(at);
        }
        Ok(goes_away)
    }
}
