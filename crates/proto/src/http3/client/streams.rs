//! What quinn-proto has of the stream of a reply, read into it.

use quinn_proto::{ReadError, StreamId};

use crate::fields::reply::Reply;
use crate::http3::error::{ReplyError, StreamFailure};
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
