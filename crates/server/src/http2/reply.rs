//! The bytes of replies of HTTP/2: frames with their field blocks.

use brunt_proto::http2::frame::{self, FrameHeader, Kind, flags};
use brunt_proto::http2::hpack::{Indexing, encode_field};

use crate::answer::{Says, TRAILER};

/// The null answer but for the number of its stream: END_STREAM, END_HEADERS, `:status: 200`,
/// `content-length: 0`.
const NULL_BLOCK: [u8; 5] = [0x88, 0x0f, 0x0d, 1, b'0'];

pub(super) fn write_null(out: &mut Vec<u8>, stream: u32) {
    let header = FrameHeader {
        length: NULL_BLOCK.len() as u32,
        kind: Kind::Headers,
        flags: flags::END_STREAM | flags::END_HEADERS,
        stream,
    };
    header.write(out);
    out.extend_from_slice(&NULL_BLOCK);
}

/// Appends a reply's head. Its fields stay out of the client's dynamic table.
pub(super) fn write_head(out: &mut Vec<u8>, stream: u32, status: u16, says: Says, is_end: bool) {
    write_block(out, stream, is_end, |out| {
        says.fields(status, |name, value| write_field(out, name, value));
    });
}

/// Appends the trailers of `/chunked`, which end the stream.
pub(super) fn write_trailers(out: &mut Vec<u8>, stream: u32, bytes: u64) {
    let length = bytes.to_string();
    write_block(out, stream, true, |out| {
        write_field(out, TRAILER, length.as_bytes());
    });
}

fn write_field(out: &mut Vec<u8>, name: &[u8], value: &[u8]) {
    encode_field(out, name, value, Indexing::Without);
}

/// Appends a field block of fewer than 64 KiB that `write` gives, as one frame.
fn write_block(out: &mut Vec<u8>, stream: u32, is_end: bool, write: impl FnOnce(&mut Vec<u8>)) {
    let at = out.len();
    let mut header = FrameHeader {
        length: 0,
        kind: Kind::Headers,
        flags: flags::END_HEADERS | if is_end { flags::END_STREAM } else { 0 },
        stream,
    };
    header.write(out);
    write(out);
    header.length = (out.len() - at - frame::HEADER_BYTES) as u32;
    out[at..at + frame::HEADER_BYTES].copy_from_slice(&header.to_bytes());
}
