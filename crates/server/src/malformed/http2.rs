//! Answers that break HTTP/2: one for each mistake that a client's parser must not make.

use brunt_proto::http2::frame::{self, ErrorCode, FrameHeader, Kind, Setting, flags};

use crate::http2::reply::write_literal;

/// What follows a malformed answer.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Ending {
    /// The connection is closed.
    Close,
    /// The server goes on as if the stream had ended.
    GoOn,
    /// The stream stays open and silent until the client gives it up.
    Silence,
    /// The repeated part, without end.
    Endless(fn(&mut Vec<u8>, u32)),
}

/// A kind of malformed answer.
#[derive(Debug)]
pub(crate) struct Malformation {
    /// The name in the path.
    pub(crate) name: &'static str,
    /// What the answer does, in a few words.
    pub(crate) meaning: &'static str,
    /// Appends the answer on this stream; for an endless one, its beginning.
    write: fn(&mut Vec<u8>, u32),
    /// What follows the bytes that `write` gives.
    pub(crate) ending: Ending,
}

impl Malformation {
    const fn new(
        name: &'static str,
        meaning: &'static str,
        write: fn(&mut Vec<u8>, u32),
        ending: Ending,
    ) -> Self {
        Self {
            name,
            meaning,
            write,
            ending,
        }
    }

    /// Appends the answer on a stream; for an endless one, its beginning.
    pub(crate) fn write(&self, out: &mut Vec<u8>, stream: u32) {
        (self.write)(out, stream);
    }

    /// Appends the next piece of an endless answer.
    pub(crate) fn write_more(&self, out: &mut Vec<u8>, stream: u32) {
        if let Ending::Endless(more) = self.ending {
            let end = out.len() + ENDLESS_PIECE_BYTES;
            while out.len() < end {
                more(out, stream);
            }
        }
    }
}

/// Bytes of an endless part that are sent at once, about.
const ENDLESS_PIECE_BYTES: usize = 16 * 1024;

/// The malformations, in the order of the documentation.
pub(crate) static KINDS: &[Malformation] = &[
    Malformation::new("empty", "closes without a byte", |_, _| {}, Ending::Close),
    Malformation::new(
        "garbage",
        "bytes that are no frames",
        |out, _| out.extend_from_slice(b"HTTP/1.1 this is not HTTP/2 \x7f\r\n\r\n"),
        Ending::Close,
    ),
    Malformation::new(
        "bad-status",
        "a status that is not a number",
        |out, stream| head(out, stream, &[(":status", "2x0")], true),
        Ending::GoOn,
    ),
    Malformation::new(
        "bad-field",
        "a name with upper case",
        |out, stream| head(out, stream, &[OK, ("X-Field", "value")], true),
        Ending::GoOn,
    ),
    Malformation::new(
        "nul-in-field",
        "a NUL byte in a value",
        |out, stream| head(out, stream, &[OK, ("x-nul", "a\0b")], true),
        Ending::GoOn,
    ),
    Malformation::new(
        "half-head",
        "closes in the middle of a field block",
        |out, stream| {
            header(out, 100, Kind::Headers, flags::END_HEADERS, stream);
            out.push(0x88);
        },
        Ending::Close,
    ),
    Malformation::new(
        "bad-content-length",
        "a Content-Length that is not a number",
        |out, stream| reply(out, stream, &["ten"], b"0123456789"),
        Ending::GoOn,
    ),
    Malformation::new(
        "negative-content-length",
        "a Content-Length below 0",
        |out, stream| reply(out, stream, &["-1"], b""),
        Ending::GoOn,
    ),
    Malformation::new(
        "huge-content-length",
        "a Content-Length beyond 64 bits",
        |out, stream| reply(out, stream, &["99999999999999999999"], b"0123456789"),
        Ending::GoOn,
    ),
    Malformation::new(
        "two-lengths",
        "two Content-Length fields that differ",
        |out, stream| reply(out, stream, &["4", "8"], b"0123"),
        Ending::GoOn,
    ),
    Malformation::new(
        "body-in-204",
        "a 204 with a body",
        |out, stream| {
            head(out, stream, &[(":status", "204")], false);
            data(out, stream, b"0123", true);
        },
        Ending::GoOn,
    ),
    Malformation::new(
        "unasked-upgrade",
        "a 101, which HTTP/2 does not have, then silence",
        |out, stream| head(out, stream, &[(":status", "101")], false),
        Ending::Silence,
    ),
    Malformation::new(
        "extra-bytes",
        "DATA after the end of the stream",
        |out, stream| {
            reply(out, stream, &["4"], b"0123");
            data(out, stream, b"456789", false);
        },
        Ending::GoOn,
    ),
    Malformation::new(
        "short-length",
        "less promised than sent",
        |out, stream| reply(out, stream, &["4"], b"01234567"),
        Ending::GoOn,
    ),
    Malformation::new(
        "short-body",
        "more promised than sent",
        |out, stream| reply(out, stream, &["10"], b"0123"),
        Ending::GoOn,
    ),
    Malformation::new(
        "too-many-fields",
        "10,000 header fields",
        |out, stream| {
            let mut block = vec![0x88];
            for _ in 0..10_000 {
                write_literal(&mut block, b"x-field", b"value");
            }
            frame::write_head(out, stream, &block, true, frame::PAYLOAD_BYTES);
        },
        Ending::GoOn,
    ),
    Malformation::new(
        "large-head",
        "header values of 1 MiB together",
        |out, stream| {
            let mut block = vec![0x88];
            for _ in 0..16 * 1024 {
                write_literal(&mut block, b"x-large", FILLER);
            }
            frame::write_head(out, stream, &block, true, frame::PAYLOAD_BYTES);
        },
        Ending::GoOn,
    ),
    Malformation::new(
        "endless-head",
        "CONTINUATION without end",
        |out, stream| {
            header(out, 1, Kind::Headers, flags::END_STREAM, stream);
            out.push(0x88);
        },
        Ending::Endless(|out, stream| {
            let mut field = Vec::new();
            write_literal(&mut field, b"x-endless", FILLER);
            header(out, field.len() as u32, Kind::Continuation, 0, stream);
            out.extend_from_slice(&field);
        }),
    ),
    Malformation::new(
        "endless-interim",
        "interim replies without end",
        |_, _| {},
        Ending::Endless(|out, stream| head(out, stream, &[(":status", "103")], false)),
    ),
    Malformation::new(
        "bad-hpack",
        "a field block that refers to no entry of the tables",
        |out, stream| block(out, stream, &[0xff, 0xff, 0x7f], true),
        Ending::GoOn,
    ),
    Malformation::new(
        "bad-huffman",
        "a value that is no Huffman code",
        |out, stream| block(out, stream, &[0x08, 0x84, 0xff, 0xff, 0xff, 0xff], true),
        Ending::GoOn,
    ),
    Malformation::new(
        "no-status",
        "a head without a status",
        |out, stream| head(out, stream, &[("x-field", "value")], true),
        Ending::GoOn,
    ),
    Malformation::new(
        "two-statuses",
        "a head with two statuses",
        |out, stream| head(out, stream, &[OK, (":status", "404")], true),
        Ending::GoOn,
    ),
    Malformation::new(
        "late-status",
        "a status behind another field",
        |out, stream| head(out, stream, &[("x-field", "value"), OK], true),
        Ending::GoOn,
    ),
    Malformation::new(
        "connection-field",
        "a field of HTTP/1.1 that HTTP/2 forbids",
        |out, stream| head(out, stream, &[OK, ("transfer-encoding", "chunked")], true),
        Ending::GoOn,
    ),
    Malformation::new(
        "ending-interim",
        "an interim reply that ends the stream",
        |out, stream| head(out, stream, &[(":status", "103")], true),
        Ending::GoOn,
    ),
    Malformation::new(
        "data-first",
        "DATA before the head",
        |out, stream| data(out, stream, b"0123", true),
        Ending::GoOn,
    ),
    Malformation::new(
        "idle-stream",
        "DATA on a stream that was never opened",
        |out, _| data(out, frame::STREAM_MAX, b"0123", true),
        Ending::Silence,
    ),
    Malformation::new(
        "even-stream",
        "a head on a stream that only the server could have opened",
        |out, _| block(out, 2, &[0x88], true),
        Ending::Silence,
    ),
    Malformation::new(
        "stream-zero",
        "DATA on the connection as a whole",
        |out, _| data(out, 0, b"0123", false),
        Ending::Silence,
    ),
    Malformation::new(
        "large-frame",
        "a frame of 1 MiB",
        |out, stream| {
            head(out, stream, &[OK], false);
            data(out, stream, &vec![b'x'; 1 << 20], true);
        },
        Ending::GoOn,
    ),
    Malformation::new(
        "bad-padding",
        "more padding than the frame has bytes",
        |out, stream| {
            head(out, stream, &[OK], false);
            let flags = flags::PADDED | flags::END_STREAM;
            header(out, 5, Kind::Data, flags, stream);
            out.extend_from_slice(b"\xff0123");
        },
        Ending::GoOn,
    ),
    Malformation::new(
        "push",
        "PUSH_PROMISE, which nobody takes",
        |out, stream| {
            header(out, 5, Kind::PushPromise, flags::END_HEADERS, stream);
            out.extend_from_slice(&[0, 0, 0, 2, 0x82]);
        },
        Ending::Silence,
    ),
    Malformation::new(
        "lone-continuation",
        "CONTINUATION without HEADERS",
        |out, stream| {
            header(out, 1, Kind::Continuation, flags::END_HEADERS, stream);
            out.push(0x88);
        },
        Ending::Silence,
    ),
    Malformation::new(
        "cut-head",
        "PING between HEADERS and CONTINUATION",
        |out, stream| {
            header(out, 1, Kind::Headers, flags::END_STREAM, stream);
            out.push(0x88);
            frame::write_ping(out, [0; 8], false);
            header(out, 0, Kind::Continuation, flags::END_HEADERS, stream);
        },
        Ending::GoOn,
    ),
    Malformation::new(
        "bad-settings",
        "SETTINGS of a size that no settings have",
        |out, _| {
            header(out, 5, Kind::Settings, 0, 0);
            out.extend_from_slice(&[0; 5]);
        },
        Ending::Silence,
    ),
    Malformation::new(
        "huge-window",
        "SETTINGS_INITIAL_WINDOW_SIZE beyond its range",
        |out, _| frame::write_settings(out, &[Setting::InitialWindowSize(u32::MAX)]),
        Ending::Silence,
    ),
    Malformation::new(
        "zero-increment",
        "WINDOW_UPDATE by 0",
        |out, stream| frame::write_window_update(out, stream, 0),
        Ending::Silence,
    ),
    Malformation::new(
        "window-overflow",
        "WINDOW_UPDATE beyond the largest window",
        |out, _| {
            for _ in 0..2 {
                frame::write_window_update(out, 0, frame::WINDOW_BYTES_MAX);
            }
        },
        Ending::Silence,
    ),
    Malformation::new(
        "growing-goaway",
        "GOAWAY, then a second one that takes in more streams",
        |out, stream| {
            frame::write_go_away(out, stream, ErrorCode::NoError);
            frame::write_go_away(out, stream.saturating_add(2), ErrorCode::NoError);
        },
        Ending::Silence,
    ),
    Malformation::new(
        "endless-settings",
        "SETTINGS without end",
        |_, _| {},
        Ending::Endless(|out, _| frame::write_settings(out, &[])),
    ),
    Malformation::new(
        "endless-pings",
        "PING without end",
        |_, _| {},
        Ending::Endless(|out, _| frame::write_ping(out, [0; 8], false)),
    ),
    Malformation::new(
        "endless-empty-data",
        "DATA without a byte, without end",
        |out, stream| head(out, stream, &[OK], false),
        Ending::Endless(|out, stream| data(out, stream, b"", false)),
    ),
];

const OK: (&str, &str) = (":status", "200");
const FILLER: &[u8] = b"0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";

fn header(out: &mut Vec<u8>, length: u32, kind: Kind, flags: u8, stream: u32) {
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
    header(out, bytes.len() as u32, Kind::Data, flags, stream);
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_sends_something_or_closes() {
        for kind in KINDS {
            let mut bytes = Vec::new();
            kind.write(&mut bytes, 1);
            if let Ending::Endless(_) = kind.ending {
                kind.write_more(&mut bytes, 1);
                assert!(bytes.len() >= ENDLESS_PIECE_BYTES, "{}", kind.name);
            }
            assert!(
                !bytes.is_empty() || matches!(kind.ending, Ending::Close),
                "{}",
                kind.name
            );
        }
    }
}
