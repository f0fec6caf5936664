//! Field blocks of HTTP/2, read with the table of their connection.

use brunt_proto::http2::frame::ErrorCode;
use brunt_proto::http2::hpack::{Decoder, HpackError, TABLE_BYTES};

use crate::head::{Entry, Gathered, Head, Malformed};

/// Reads the field blocks of one connection's requests.
#[derive(Debug)]
pub(super) struct Reader {
    decoder: Decoder<Entry>,
}

impl Default for Reader {
    fn default() -> Self {
        Self {
            decoder: Decoder::new(TABLE_BYTES),
        }
    }
}

impl Reader {
    /// Reads a request's head. The outer error ends the connection, the inner one the request.
    pub(super) fn head(
        &mut self,
        block: &[u8],
        scratch: &mut Vec<u8>,
    ) -> Result<Result<Head, Malformed>, HpackError> {
        let mut gathered = Gathered::default();
        self.decoder
            .decode(block, scratch, |entry, _| gathered.add(entry))?;
        Ok(gathered.head())
    }

    /// Reads trailers, which say nothing here but must be such.
    pub(super) fn trailers(
        &mut self,
        block: &[u8],
        scratch: &mut Vec<u8>,
    ) -> Result<Result<(), Malformed>, HpackError> {
        let mut gathered = Gathered::default();
        self.decoder
            .decode(block, scratch, |entry, _| gathered.add(entry))?;
        Ok(gathered.trailers())
    }
}

/// Why a field block ends the connection.
pub(super) fn compression_error(_: HpackError) -> ErrorCode {
    ErrorCode::CompressionError
}
