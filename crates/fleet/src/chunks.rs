//! What is longer than a message, in pieces: cut up here, put together there.

use aws_lc_rs::digest::{SHA256, digest};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};
use thiserror::Error;

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
        if !is_last {
            Ok(None)
        } else if sha256(&self.bytes) == chunk.digest {
            Ok(Some(std::mem::take(&mut self.bytes)))
        } else {
            Err(ChunkError::Digest)
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
            (|chunk| chunk.total_bytes = 3, ChunkError::Misfit(0)),
            (|chunk| chunk.of = 1, ChunkError::Misfit(0)),
            (|chunk| chunk.of = 0, ChunkError::Misfit(0)),
            (|chunk| chunk.data.push('!'), ChunkError::Encoding(0)),
            (
                |chunk| chunk.total_bytes = LIMIT + 1,
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
