//! The bytes of replies of HTTP/2: frames with their field blocks.

use brunt_proto::http2::frame::{self, FrameHeader, Kind, flags};

use crate::answer::Says;
use crate::http1::reply::write_decimal;

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
        match status {
            // RFC 7541 appendix A.
            200 => out.push(0x88),
            204 => out.push(0x89),
            404 => out.push(0x8d),
            _ => {
                out.extend_from_slice(&[0x08, 3]);
                write_decimal(out, u64::from(status));
            }
        }
        match says {
            Says::Nothing => {}
            Says::Length(bytes) => write_content_length(out, bytes),
            Says::RetryLater => {
                write_content_length(out, 0);
                out.extend_from_slice(&[0x0f, 0x26, 1, b'1']);
            }
            Says::Trailer => write_literal(out, b"trailer", b"brunt-length"),
            Says::Link => write_literal(out, b"link", b"</style.css>; rel=preload"),
        }
    });
}

/// Appends the trailers of `/chunked`, which end the stream.
pub(super) fn write_trailers(out: &mut Vec<u8>, stream: u32, bytes: u64) {
    let length = bytes.to_string();
    write_block(out, stream, true, |out| {
        write_literal(out, b"brunt-length", length.as_bytes());
    });
}

/// Appends a literal without indexing. Names and values are shorter than 127 bytes.
pub(crate) fn write_literal(out: &mut Vec<u8>, name: &[u8], value: &[u8]) {
    out.push(0);
    for text in [name, value] {
        out.push(text.len() as u8);
        out.extend_from_slice(text);
    }
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

fn write_content_length(out: &mut Vec<u8>, bytes: u64) {
    out.extend_from_slice(&[0x0f, 0x0d, 0]);
    let at = out.len();
    write_decimal(out, bytes);
    out[at - 1] = (out.len() - at) as u8;
}
