//! What quinn-proto has of the streams of a connection: read into replies, and into what the server
//! says of the connection itself.

use quinn_proto::{ReadError, StreamId, VarInt};

use crate::fields::reply::Reply;
use crate::http3::code::ErrorCode;
use crate::http3::error::{ConnectionError, ReplyError, StreamFailure};
use crate::http3::frame::Side;
use crate::http3::peer::{Peer, PeerEvent, PeerStream};
use crate::http3::reply::ReplyReader;

/// What was read of a reply.
pub(super) struct Read {
    /// Bytes of its stream.
    pub(super) bytes: u64,
    /// How it ended; absent where more is to come.
    pub(super) end: Option<Result<Reply, ReplyError>>,
}

/// Reads what came of a reply, and hands each piece to `take`.
#[inline]
pub(super) fn read_reply(
    quic: &mut quinn_proto::Connection,
    id: StreamId,
    reader: &mut ReplyReader,
    mut take: impl FnMut(&mut ReplyReader, &[u8]) -> Result<(), ReplyError>,
) -> Read {
    let mut bytes = 0;
    let mut stream = quic.recv_stream(id);
    // One that was stopped is not read any more.
    let Ok(mut chunks) = stream.read(true) else {
        return Read { bytes, end: None };
    };
    let end = loop {
        match chunks.next(usize::MAX) {
            Ok(Some(chunk)) => {
                bytes += chunk.bytes.len() as u64;
                if let Err(error) = take(reader, &chunk.bytes) {
                    break Some(Err(error));
                }
            }
            Ok(None) => break Some(reader.end()),
            Err(ReadError::Blocked) => break None,
            Err(ReadError::Reset(code)) => {
                break Some(Err(StreamFailure::of_reset(code.into_inner()).into()));
            }
        }
    };
    // What is to be sent is asked for in any case.
    let _ = chunks.finalize();
    Read { bytes, end }
}

/// The unidirectional streams of the server.
#[derive(Debug)]
pub(super) struct PeerStreams {
    peer: Peer,
    streams: Vec<(StreamId, PeerStream)>,
    /// The first request that GOAWAY names as not processed, by its number among the streams of the
    /// client.
    go_away_stream: Option<u64>,
}

impl Default for PeerStreams {
    fn default() -> Self {
        Self {
            peer: Peer::new(Side::Client),
            streams: Vec::new(),
            go_away_stream: None,
        }
    }
}

impl PeerStreams {
    pub(super) fn has_settings(&self) -> bool {
        self.peer.settings().is_some()
    }

    #[inline]
    pub(super) fn go_away_stream(&self) -> Option<u64> {
        self.go_away_stream
    }

    /// The server opened a stream.
    pub(super) fn opened(&mut self, id: StreamId) {
        self.streams.push((id, PeerStream::default()));
    }

    /// Reads what came on a stream. Gives whether the server takes no further requests.
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
