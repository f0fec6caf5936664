//! The protocol of NATS, as far as a fleet speaks it: what a server sends, taken apart. Nothing is
//! kept beyond bounds.

use aws_lc_rs::digest::{SHA256, digest};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::messages::MESSAGE_BYTES_MAX;

/// Longest line of a server: it may name some hundreds of others in one.
const LINE_BYTES_MAX: usize = 64 << 10;

/// What a server sends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum FromServer {
    Info(Info),
    Ping,
    Pong,
    /// What it refuses, in its words.
    Refused(String),
    Message(Message),
}

/// What a server says of itself. Others that it names are none that we were told to trust.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub(crate) struct Info {
    #[serde(default)]
    pub(crate) tls_required: bool,
    pub(crate) max_payload: usize,
}

/// A message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Message {
    pub(crate) subject: String,
    pub(crate) payload: Vec<u8>,
}

/// Why a server is of no use.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub(crate) enum ProtocolError {
    #[error("it sends a line of more than {LINE_BYTES_MAX} bytes")]
    LongLine,
    #[error("it sends a message of {0} bytes, where {MESSAGE_BYTES_MAX} are the most")]
    LargeMessage(usize),
    #[error("it does not speak the protocol of NATS")]
    Malformed,
}

/// Bytes of a server that are not taken apart yet. More are received when there is nothing whole in
/// them: so they are one line or one message at most, and what one read takes.
#[derive(Debug, Default)]
pub(crate) struct Received {
    bytes: Vec<u8>,
    taken: usize,
}

impl Received {
    /// Where further bytes are appended.
    pub(crate) fn buffer(&mut self) -> &mut Vec<u8> {
        self.bytes.drain(..self.taken);
        self.taken = 0;
        &mut self.bytes
    }

    /// Whether all was taken apart.
    pub(crate) fn is_empty(&self) -> bool {
        self.taken == self.bytes.len()
    }

    /// What comes next; absent while it is not whole.
    pub(crate) fn next(&mut self) -> Result<Option<FromServer>, ProtocolError> {
        loop {
            let bytes = &self.bytes[self.taken..];
            let line_bytes = bytes.windows(2).position(|it| it == b"\r\n");
            if line_bytes.unwrap_or(bytes.len()) > LINE_BYTES_MAX {
                return Err(ProtocolError::LongLine);
            }
            let Some(line_bytes) = line_bytes else {
                return Ok(None);
            };
            let line = std::str::from_utf8(&bytes[..line_bytes]);
            let line = line.map_err(|_| ProtocolError::Malformed)?;
            let (word, rest) = line.split_once([' ', '\t']).unwrap_or((line, ""));
            let behind = &bytes[line_bytes + 2..];
            let mut used = line_bytes + 2;
            let said = match word {
                "INFO" => {
                    let info = serde_json::from_str(rest);
                    Some(FromServer::Info(
                        info.map_err(|_| ProtocolError::Malformed)?,
                    ))
                }
                "PING" => Some(FromServer::Ping),
                "PONG" => Some(FromServer::Pong),
                "+OK" => None,
                "-ERR" => Some(FromServer::Refused(rest.trim_matches('\'').to_owned())),
                "MSG" => {
                    let Some(message) = message(rest, behind)? else {
                        return Ok(None);
                    };
                    used += message.payload.len() + 2;
                    Some(FromServer::Message(message))
                }
                _ => return Err(ProtocolError::Malformed),
            };
            self.taken += used;
            if said.is_some() {
                return Ok(said);
            }
        }
    }
}

/// The message with this head; absent while `behind` it is not all of it.
fn message(head: &str, behind: &[u8]) -> Result<Option<Message>, ProtocolError> {
    let words: Vec<&str> = head.split_ascii_whitespace().collect();
    let ([subject, _, length] | [subject, _, _, length]) = words[..] else {
        return Err(ProtocolError::Malformed);
    };
    let length: usize = length.parse().map_err(|_| ProtocolError::Malformed)?;
    if length > MESSAGE_BYTES_MAX {
        return Err(ProtocolError::LargeMessage(length));
    }
    match behind.get(length..length + 2) {
        None => Ok(None),
        Some(b"\r\n") => Ok(Some(Message {
            subject: subject.to_owned(),
            payload: behind[..length].to_vec(),
        })),
        Some(_) => Err(ProtocolError::Malformed),
    }
}

/// Most bytes of a chunk: in a message they take a third more.
pub const CHUNK_BYTES_MAX: usize = 512 << 10;

/// A part of something longer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Chunk {
    /// From 0.
    pub number: u32,
    /// Chunks in all.
    pub of: u32,
    /// Bytes in all.
    pub total_bytes: u64,
    /// SHA-256 of the whole, in hexadecimal.
    pub digest: String,
    /// Its bytes, in Base64.
    pub data: String,
}

/// Why a chunk does not fit.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ChunkError {
    /// The whole is over the limit.
    #[error("{total_bytes} bytes in all are announced, where {limit_bytes} are the most")]
    TooLarge {
        /// As announced.
        total_bytes: u64,
        /// The most.
        limit_bytes: u64,
    },
    /// It is a part of something else, or has more bytes than it should.
    #[error("chunk {0} does not fit to those before it")]
    Misfit(u32),
    /// Its bytes cannot be read.
    #[error("the bytes of chunk {0} cannot be read")]
    Encoding(u32),
    /// The whole is not what it was.
    #[error("what came is not what was sent: its SHA-256 differs")]
    Digest,
}

/// Something that is sent in chunks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chunks {
    bytes: Vec<u8>,
    chunk_bytes: usize,
    digest: String,
}

impl Chunks {
    /// Cuts `bytes` into chunks of `chunk_bytes`, at most [`CHUNK_BYTES_MAX`].
    pub fn new(bytes: Vec<u8>, chunk_bytes: usize) -> Self {
        let digest = sha256(&bytes);
        Self {
            bytes,
            chunk_bytes: chunk_bytes.clamp(1, CHUNK_BYTES_MAX),
            digest,
        }
    }

    /// How many there are: one at least.
    pub fn count(&self) -> u32 {
        let count = self.bytes.len().div_ceil(self.chunk_bytes).max(1);
        u32::try_from(count).unwrap_or(u32::MAX)
    }

    /// One of them; absent where there is none of this number.
    pub fn chunk(&self, number: u32) -> Option<Chunk> {
        let from = (number as usize).checked_mul(self.chunk_bytes)?;
        let to = self.bytes.len().min(from.saturating_add(self.chunk_bytes));
        let is_there = number < self.count();
        is_there.then(|| Chunk {
            number,
            of: self.count(),
            total_bytes: self.bytes.len() as u64,
            digest: self.digest.clone(),
            data: STANDARD.encode(&self.bytes[from..to]),
        })
    }

    /// The whole.
    pub fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }
}

/// Something that comes in chunks, in order. Memory is taken for what came, not for what is
/// announced.
#[derive(Clone, Debug, Default)]
pub struct Assembly {
    bytes: Vec<u8>,
    next: u32,
    /// What the first chunk says of the whole.
    whole: Option<(u32, u64, String)>,
}

impl Assembly {
    /// The number of the chunk that comes next; all before it are here.
    pub fn next(&self) -> u32 {
        self.next
    }

    /// Takes a chunk. Gives the whole with the last one, once. A chunk that came before is ignored,
    /// and so is one that is ahead.
    ///
    /// # Errors
    ///
    /// It does not fit, or the whole is not what was sent.
    pub fn take(&mut self, chunk: &Chunk, limit_bytes: u64) -> Result<Option<Vec<u8>>, ChunkError> {
        if chunk.number != self.next {
            return Ok(None);
        }
        if chunk.total_bytes > limit_bytes {
            return Err(ChunkError::TooLarge {
                total_bytes: chunk.total_bytes,
                limit_bytes,
            });
        }
        let misfit = ChunkError::Misfit(chunk.number);
        let whole = (chunk.of, chunk.total_bytes, chunk.digest.clone());
        if *self.whole.get_or_insert_with(|| whole.clone()) != whole || chunk.number >= chunk.of {
            return Err(misfit);
        }
        let data = STANDARD.decode(&chunk.data);
        let data = data.map_err(|_| ChunkError::Encoding(chunk.number))?;
        let bytes = self.bytes.len() as u64 + data.len() as u64;
        let is_last = chunk.number + 1 == chunk.of;
        if data.len() > CHUNK_BYTES_MAX
            || bytes > chunk.total_bytes
            || is_last != (bytes == chunk.total_bytes)
        {
            return Err(misfit);
        }
        self.bytes.extend_from_slice(&data);
        self.next += 1;
        match is_last {
            false => Ok(None),
            true if sha256(&self.bytes) == chunk.digest => {
                Ok(Some(std::mem::take(&mut self.bytes)))
            }
            true => Err(ChunkError::Digest),
        }
    }
}

/// SHA-256 in hexadecimal.
fn sha256(bytes: &[u8]) -> String {
    let digest = digest(&SHA256, bytes);
    digest
        .as_ref()
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(subject: &str, payload: &[u8]) -> FromServer {
        FromServer::Message(Message {
            subject: subject.to_owned(),
            payload: payload.to_vec(),
        })
    }

    #[test]
    fn what_a_server_sends_is_read_wherever_it_is_cut() {
        let text = b"INFO {\"server_id\":\"a\",\"max_payload\":7,\"connect_urls\":[\"h:1\"]} \r\n\
                     +OK\r\nPING\r\nMSG a.b 1 4\r\n\r\n\r\n\r\nPONG\r\n-ERR 'no'\r\n\
                     MSG c 1 back 0\r\n\r\n";
        let expected = [
            FromServer::Info(Info {
                tls_required: false,
                max_payload: 7,
            }),
            FromServer::Ping,
            message("a.b", b"\r\n\r\n"),
            FromServer::Pong,
            FromServer::Refused("no".to_owned()),
            message("c", b""),
        ];
        for cut in 0..=text.len() {
            let (mut received, mut said) = (Received::default(), Vec::new());
            for part in [&text[..cut], &text[cut..]] {
                received.buffer().extend_from_slice(part);
                while let Some(next) = received.next().expect("it is sound") {
                    said.push(next);
                }
            }
            assert_eq!(said, expected, "{cut}");
            assert!(received.is_empty());
        }
    }

    #[test]
    fn nothing_is_kept_beyond_bounds() {
        let long = vec![b'x'; LINE_BYTES_MAX + 1];
        let named = format!(
            "INFO {{\"connect_urls\":[{}]}}\r\n",
            "\"h:1\",".repeat(100_000)
        );
        for (sent, error) in [
            (&long[..], ProtocolError::LongLine),
            (named.as_bytes(), ProtocolError::LongLine),
            (
                b"MSG a 1 400000000\r\n",
                ProtocolError::LargeMessage(400_000_000),
            ),
            (
                b"MSG a 1 99999999999999999999\r\n",
                ProtocolError::Malformed,
            ),
            (b"MSG a 1\r\n", ProtocolError::Malformed),
            (b"MSG a 1 1\r\nabc", ProtocolError::Malformed),
            (b"HMSG a 1 1 1\r\n", ProtocolError::Malformed),
            (b"INFO {}\r\n", ProtocolError::Malformed),
            (b"HTTP/1.1 200 OK\r\n", ProtocolError::Malformed),
            (b"\xff\r\n", ProtocolError::Malformed),
        ] {
            let mut received = Received::default();
            received.buffer().extend_from_slice(sent);
            assert_eq!(received.next(), Err(error));
        }
        let mut received = Received::default();
        received.buffer().extend_from_slice(b"-ERR\r\n");
        let refused = FromServer::Refused(String::new());
        assert_eq!(received.next(), Ok(Some(refused)));
    }

    const LIMIT: u64 = 1 << 20;

    fn bytes(count: usize) -> Vec<u8> {
        (0..count).map(|at| (at * 7 % 251) as u8).collect()
    }

    #[test]
    fn chunks_make_the_whole_again() {
        for count in [0, 1, 7, 8, 9, 1_000] {
            for size in [1, 8, 999, 1_000, 1_001] {
                let chunks = Chunks::new(bytes(count), size);
                let mut assembly = Assembly::default();
                let mut whole = None;
                for number in 0..chunks.count() {
                    assert_eq!(whole, None);
                    let chunk = chunks.chunk(number).expect("it is there");
                    whole = assembly.take(&chunk, LIMIT).expect("it fits");
                    // The same again changes nothing.
                    assert_eq!(assembly.take(&chunk, LIMIT), Ok(None));
                }
                assert_eq!(whole, Some(bytes(count)), "{count} by {size}");
                assert_eq!(chunks.chunk(chunks.count()), None);
            }
        }
    }

    #[test]
    fn order_is_kept_whatever_comes() {
        let chunks = Chunks::new(bytes(10), 4);
        let mut assembly = Assembly::default();
        let ahead = chunks.chunk(2).expect("the last");
        assert_eq!(assembly.take(&ahead, LIMIT), Ok(None));
        assert_eq!(assembly.next(), 0);
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        let chunks = Chunks::new(bytes(10), 4);
        let first = chunks.chunk(0).expect("the first");
        type Edit = fn(&mut Chunk);
        let cases: [(Edit, ChunkError); 5] = [
            (|it| it.total_bytes = 3, ChunkError::Misfit(0)),
            (|it| it.of = 1, ChunkError::Misfit(0)),
            (|it| it.of = 0, ChunkError::Misfit(0)),
            (|it| it.data.push('!'), ChunkError::Encoding(0)),
            (
                |it| it.total_bytes = LIMIT + 1,
                ChunkError::TooLarge {
                    total_bytes: LIMIT + 1,
                    limit_bytes: LIMIT,
                },
            ),
        ];
        for (edit, error) in cases {
            let mut chunk = first.clone();
            edit(&mut chunk);
            assert_eq!(Assembly::default().take(&chunk, LIMIT), Err(error));
        }
        let mut assembly = Assembly::default();
        assert_eq!(assembly.take(&first, LIMIT), Ok(None));
        let other = Chunks::new(bytes(11), 4).chunk(1).expect("the second");
        assert_eq!(assembly.take(&other, LIMIT), Err(ChunkError::Misfit(1)));
    }

    #[test]
    fn a_byte_that_changed_is_noticed() {
        let chunks = Chunks::new(bytes(10), 16);
        let mut chunk = chunks.chunk(0).expect("all of it");
        let mut changed = bytes(10);
        changed[3] ^= 1;
        chunk.data = STANDARD.encode(changed);
        assert_eq!(
            Assembly::default().take(&chunk, LIMIT),
            Err(ChunkError::Digest)
        );
    }
}
