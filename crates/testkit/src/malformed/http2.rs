//! Answers that break HTTP/2: one for each mistake that a client's parser must not make.

use brunt_proto::http2::frame::{self, ErrorCode, FrameHeader, Kind as FrameKind, Setting, flags};
use brunt_server::RawBytes::Made;
use brunt_server::RawEnding::{Close, Endless, GoOn, Silence};

use super::Kind;

/// The kinds, in the order in which tests name them.
pub(super) static KINDS: &[Kind] = &[
    // Closes without a byte.
    Kind::made("empty", |_, _| {}, Close),
    // Bytes that are no frames.
    Kind::made(
        "garbage",
        |out, _| out.extend_from_slice(b"HTTP/1.1 this is not HTTP/2 \x7f\r\n\r\n"),
        Close,
    ),
    // A status that is not a number.
    Kind::made(
        "bad-status",
        |out, stream| head(out, stream, &[(":status", "2x0")], true),
        GoOn,
    ),
    // A name with upper case.
    Kind::made(
        "bad-field",
        |out, stream| head(out, stream, &[OK, ("X-Field", "value")], true),
        GoOn,
    ),
    // A NUL byte in a value.
    Kind::made(
        "nul-in-field",
        |out, stream| head(out, stream, &[OK, ("x-nul", "a\0b")], true),
        GoOn,
    ),
    // Closes in the middle of a field block.
    Kind::made(
        "half-head",
        |out, stream| {
            header(out, 100, FrameKind::Headers, flags::END_HEADERS, stream);
            out.push(0x88);
        },
        Close,
    ),
    // A Content-Length that is not a number.
    Kind::made(
        "bad-content-length",
        |out, stream| reply(out, stream, &["ten"], b"0123456789"),
        GoOn,
    ),
    // A Content-Length below 0.
    Kind::made(
        "negative-content-length",
        |out, stream| reply(out, stream, &["-1"], b""),
        GoOn,
    ),
    // A Content-Length beyond 64 bits.
    Kind::made(
        "huge-content-length",
        |out, stream| reply(out, stream, &["99999999999999999999"], b"0123456789"),
        GoOn,
    ),
    // Two Content-Length fields that differ.
    Kind::made(
        "two-lengths",
        |out, stream| reply(out, stream, &["4", "8"], b"0123"),
        GoOn,
    ),
    // A 204 with a body.
    Kind::made(
        "body-in-204",
        |out, stream| {
            head(out, stream, &[(":status", "204")], false);
            data(out, stream, b"0123", true);
        },
        GoOn,
    ),
    // A 101, which HTTP/2 does not have, then silence.
    Kind::made(
        "unasked-upgrade",
        |out, stream| head(out, stream, &[(":status", "101")], false),
        Silence,
    ),
    // DATA after the end of the stream.
    Kind::made(
        "extra-bytes",
        |out, stream| {
            reply(out, stream, &["4"], b"0123");
            data(out, stream, b"456789", false);
        },
        GoOn,
    ),
    // Less promised than sent.
    Kind::made(
        "short-length",
        |out, stream| reply(out, stream, &["4"], b"01234567"),
        GoOn,
    ),
    // More promised than sent.
    Kind::made(
        "short-body",
        |out, stream| reply(out, stream, &["10"], b"0123"),
        GoOn,
    ),
    // 10,000 header fields.
    Kind::made(
        "too-many-fields",
        |out, stream| {
            let mut block = vec![0x88];
            for _ in 0..10_000 {
                write_literal(&mut block, b"x-field", b"value");
            }
            frame::write_head(out, stream, &block, true, frame::PAYLOAD_BYTES);
        },
        GoOn,
    ),
    // Header values of 1 MiB together.
    Kind::made(
        "large-head",
        |out, stream| {
            let mut block = vec![0x88];
            for _ in 0..16 * 1024 {
                write_literal(&mut block, b"x-large", FILLER);
            }
            frame::write_head(out, stream, &block, true, frame::PAYLOAD_BYTES);
        },
        GoOn,
    ),
    // CONTINUATION without end.
    Kind::made(
        "endless-head",
        |out, stream| {
            header(out, 1, FrameKind::Headers, flags::END_STREAM, stream);
            out.push(0x88);
        },
        Endless(Made(|out, stream| {
            let mut field = Vec::new();
            write_literal(&mut field, b"x-endless", FILLER);
            header(out, field.len() as u32, FrameKind::Continuation, 0, stream);
            out.extend_from_slice(&field);
        })),
    ),
    // Interim replies without end.
    Kind::made(
        "endless-interim",
        |_, _| {},
        Endless(Made(|out, stream| {
            head(out, stream, &[(":status", "103")], false)
        })),
    ),
    // A field block that refers to no entry of the tables.
    Kind::made(
        "bad-hpack",
        |out, stream| block(out, stream, &[0xff, 0xff, 0x7f], true),
        GoOn,
    ),
    // A value that is no Huffman code.
    Kind::made(
        "bad-huffman",
        |out, stream| block(out, stream, &[0x08, 0x84, 0xff, 0xff, 0xff, 0xff], true),
        GoOn,
    ),
    // A head without a status.
    Kind::made(
        "no-status",
        |out, stream| head(out, stream, &[("x-field", "value")], true),
        GoOn,
    ),
    // A head with two statuses.
    Kind::made(
        "two-statuses",
        |out, stream| head(out, stream, &[OK, (":status", "404")], true),
        GoOn,
    ),
    // A status behind another field.
    Kind::made(
        "late-status",
        |out, stream| head(out, stream, &[("x-field", "value"), OK], true),
        GoOn,
    ),
    // A field of HTTP/1.1 that HTTP/2 forbids.
    Kind::made(
        "connection-field",
        |out, stream| head(out, stream, &[OK, ("transfer-encoding", "chunked")], true),
        GoOn,
    ),
    // An interim reply that ends the stream.
    Kind::made(
        "ending-interim",
        |out, stream| head(out, stream, &[(":status", "103")], true),
        GoOn,
    ),
    // DATA before the head.
    Kind::made(
        "data-first",
        |out, stream| data(out, stream, b"0123", true),
        GoOn,
    ),
    // DATA on a stream that was never opened.
    Kind::made(
        "idle-stream",
        |out, _| data(out, frame::STREAM_MAX, b"0123", true),
        Silence,
    ),
    // A head on a stream that only the server could have opened.
    Kind::made(
        "even-stream",
        |out, _| block(out, 2, &[0x88], true),
        Silence,
    ),
    // DATA on the connection as a whole.
    Kind::made(
        "stream-zero",
        |out, _| data(out, 0, b"0123", false),
        Silence,
    ),
    // A frame of 1 MiB.
    Kind::made(
        "large-frame",
        |out, stream| {
            head(out, stream, &[OK], false);
            data(out, stream, &vec![b'x'; 1 << 20], true);
        },
        GoOn,
    ),
    // More padding than the frame has bytes.
    Kind::made(
        "bad-padding",
        |out, stream| {
            head(out, stream, &[OK], false);
            let flags = flags::PADDED | flags::END_STREAM;
            header(out, 5, FrameKind::Data, flags, stream);
            out.extend_from_slice(b"\xff0123");
        },
        GoOn,
    ),
    // PUSH_PROMISE, which nobody takes.
    Kind::made(
        "push",
        |out, stream| {
            header(out, 5, FrameKind::PushPromise, flags::END_HEADERS, stream);
            out.extend_from_slice(&[0, 0, 0, 2, 0x82]);
        },
        Silence,
    ),
    // CONTINUATION without HEADERS.
    Kind::made(
        "lone-continuation",
        |out, stream| {
            header(out, 1, FrameKind::Continuation, flags::END_HEADERS, stream);
            out.push(0x88);
        },
        Silence,
    ),
    // PING between HEADERS and CONTINUATION.
    Kind::made(
        "cut-head",
        |out, stream| {
            header(out, 1, FrameKind::Headers, flags::END_STREAM, stream);
            out.push(0x88);
            frame::write_ping(out, [0; 8], false);
            header(out, 0, FrameKind::Continuation, flags::END_HEADERS, stream);
        },
        GoOn,
    ),
    // SETTINGS of a size that no settings have.
    Kind::made(
        "bad-settings",
        |out, _| {
            header(out, 5, FrameKind::Settings, 0, 0);
            out.extend_from_slice(&[0; 5]);
        },
        Silence,
    ),
    // SETTINGS_INITIAL_WINDOW_SIZE beyond its range.
    Kind::made(
        "huge-window",
        |out, _| frame::write_settings(out, &[Setting::InitialWindowSize(u32::MAX)]),
        Silence,
    ),
    // WINDOW_UPDATE by 0.
    Kind::made(
        "zero-increment",
        |out, stream| frame::write_window_update(out, stream, 0),
        Silence,
    ),
    // WINDOW_UPDATE beyond the largest window.
    Kind::made(
        "window-overflow",
        |out, _| {
            for _ in 0..2 {
                frame::write_window_update(out, 0, frame::WINDOW_BYTES_MAX);
            }
        },
        Silence,
    ),
    // GOAWAY, then a second one that takes in more streams.
    Kind::made(
        "growing-goaway",
        |out, stream| {
            frame::write_go_away(out, stream, ErrorCode::NoError);
            frame::write_go_away(out, stream.saturating_add(2), ErrorCode::NoError);
        },
        Silence,
    ),
    // SETTINGS without end.
    Kind::made(
        "endless-settings",
        |_, _| {},
        Endless(Made(|out, _| frame::write_settings(out, &[]))),
    ),
    // PING without end.
    Kind::made(
        "endless-pings",
        |_, _| {},
        Endless(Made(|out, _| frame::write_ping(out, [0; 8], false))),
    ),
    // DATA without a byte, without end.
    Kind::made(
        "endless-empty-data",
        |out, stream| head(out, stream, &[OK], false),
        Endless(Made(|out, stream| data(out, stream, b"", false))),
    ),
];

const OK: (&str, &str) = (":status", "200");
const FILLER: &[u8] = b"0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";

fn header(out: &mut Vec<u8>, length: u32, kind: FrameKind, flags: u8, stream: u32) {
    let header = FrameHeader {
        length,
        kind,
        flags,
        stream,
    };
    header.write(out);
}

fn block(out: &mut Vec<u8>, stream: u32, block: &[u8], is_end: bool) {
    frame::write_head(out, stream, block, is_end, frame::PAYLOAD_BYTES);
}

/// A head of these fields, all of them literals.
fn head(out: &mut Vec<u8>, stream: u32, fields: &[(&str, &str)], is_end: bool) {
    let mut written = Vec::new();
    for (name, value) in fields {
        write_literal(&mut written, name.as_bytes(), value.as_bytes());
    }
    block(out, stream, &written, is_end);
}

fn data(out: &mut Vec<u8>, stream: u32, bytes: &[u8], is_end: bool) {
    let flags = if is_end { flags::END_STREAM } else { 0 };
    header(out, bytes.len() as u32, FrameKind::Data, flags, stream);
    out.extend_from_slice(bytes);
}

/// A whole reply with these lengths and this body.
fn reply(out: &mut Vec<u8>, stream: u32, lengths: &[&str], body: &[u8]) {
    let mut fields = vec![OK];
    fields.extend(lengths.iter().map(|length| ("content-length", *length)));
    head(out, stream, &fields, body.is_empty());
    if !body.is_empty() {
        data(out, stream, body, true);
    }
}

/// Appends a field as a literal that no table takes in (RFC 7541 section 6.2.2).
fn write_literal(out: &mut Vec<u8>, name: &[u8], value: &[u8]) {
    out.push(0);
    for text in [name, value] {
        // All of them are shorter than what a prefix of seven bits holds.
        out.push(text.len() as u8);
        out.extend_from_slice(text);
    }
}
