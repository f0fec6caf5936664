//! Answers that break HTTP/2: one for each mistake that a client's parser must not make.

use std::sync::LazyLock;

use brunt_proto::http2::frame::{
    self, ErrorCode, FrameHeader, Kind as FrameKind, STREAM_MAX, flags,
};
use brunt_server::RawBytes;
use brunt_server::RawEnding::{self, Close, Endless, GoOn, Silence};

use super::parts::{self, Field};
use super::{Case, fixed, written};

/// A frame: its type, its flags, its stream, and what it carries.
type Frame = (u8, u8, NamedStream, &'static [u8]);

/// Which stream a frame names.
#[derive(Clone, Copy, Debug)]
enum NamedStream {
    /// That of the request.
    Own,
    /// This one.
    Of(u32),
}

use NamedStream::{Of, Own};

const DATA: u8 = FrameKind::Data.number();
const HEADERS: u8 = FrameKind::Headers.number();
const SETTINGS: u8 = FrameKind::Settings.number();
const PUSH: u8 = FrameKind::PushPromise.number();
const PING: u8 = FrameKind::Ping.number();
const WINDOW: u8 = FrameKind::WindowUpdate.number();
const MORE: u8 = FrameKind::Continuation.number();
const END: u8 = flags::END_STREAM;
const WHOLE: u8 = flags::END_HEADERS;
/// A head of status 200, and nothing more.
const HEAD: Frame = (HEADERS, WHOLE, Own, b"\x88");

/// Names, frames, and what follows these.
static FRAMES: &[(&str, &[Frame], RawEnding)] = &[
    // DATA after the end of the stream.
    ("extra-bytes", &[LAST, (DATA, 0, Own, b"456789")], GoOn),
    // A field block that refers to no entry of the tables.
    ("bad-hpack", &[(HEADERS, BOTH, Own, b"\xff\xff\x7f")], GoOn),
    // A value that is no Huffman code.
    ("bad-huffman", &[(HEADERS, BOTH, Own, HUFFMAN)], GoOn),
    // DATA on a stream that was never opened.
    ("idle-stream", &[(DATA, END, Of(STREAM_MAX), b"0")], Silence),
    // A head on a stream that only the server could have opened.
    ("even-stream", &[(HEADERS, BOTH, Of(2), b"\x88")], Silence),
    // DATA on the connection as a whole.
    ("stream-zero", &[(DATA, 0, Of(0), b"0123")], Silence),
    // A frame of 1 MiB.
    ("large-frame", &[HEAD, (DATA, END, Own, &LARGE)], GoOn),
    // More padding than the frame has bytes.
    ("bad-padding", &[HEAD, (DATA, PADDED, Own, b"\xff01")], GoOn),
    // PUSH_PROMISE, which nobody takes.
    ("push", &[(PUSH, WHOLE, Own, b"\0\0\0\x02\x82")], Silence),
    // CONTINUATION without HEADERS.
    ("lone-continuation", &[(MORE, WHOLE, Own, b"\x88")], Silence),
    // PING between HEADERS and CONTINUATION.
    ("cut-head", &[BEGUN, PINGED, (MORE, WHOLE, Own, b"")], GoOn),
    // SETTINGS of a size that no settings have.
    ("bad-settings", &[(SETTINGS, 0, Of(0), &[0; 5])], Silence),
    // SETTINGS_INITIAL_WINDOW_SIZE beyond its range.
    ("huge-window", &[(SETTINGS, 0, Of(0), HUGE)], Silence),
    // WINDOW_UPDATE by 0.
    ("zero-increment", &[(WINDOW, 0, Own, &[0; 4])], Silence),
    // WINDOW_UPDATE beyond the largest window.
    ("window-overflow", &[LARGEST, LARGEST], Silence),
];

/// Names, and frames with what follows them again and again.
static ENDLESS: &[(&str, &[Frame], Frame)] = &[
    // CONTINUATION without end.
    ("endless-head", &[BEGUN], (MORE, 0, Own, ENDLESS_FIELD)),
    // SETTINGS without end.
    ("endless-settings", &[], (SETTINGS, 0, Of(0), b"")),
    // PING without end.
    ("endless-pings", &[], PINGED),
    // DATA without a byte, without end.
    ("endless-empty-data", &[HEAD], (DATA, 0, Own, b"")),
];

/// What is unusual and right: names, and frames behind which the server goes on.
static ODD_FRAMES: &[(&str, &[Frame])] = &[
    // From now on, no more streams.
    (
        "no-streams",
        &[(SETTINGS, 0, Of(0), &[0, 3, 0, 0, 0, 0]), LAST],
    ),
    // From now on, one stream at a time.
    (
        "one-stream",
        &[(SETTINGS, 0, Of(0), &[0, 3, 0, 0, 0, 1]), LAST],
    ),
    // A dynamic table without room.
    (
        "no-table",
        &[(SETTINGS, 0, Of(0), &[0, 1, 0, 0, 0, 0]), LAST],
    ),
    // PING before an answer.
    ("pinged", &[PINGED, LAST]),
];

const BOTH: u8 = WHOLE | END;
const PADDED: u8 = flags::PADDED | END;
const LAST: Frame = (HEADERS, BOTH, Own, b"\x88");
const BEGUN: Frame = (HEADERS, END, Own, b"\x88");
const PINGED: Frame = (PING, 0, Of(0), &[0; 8]);
const LARGEST: Frame = (WINDOW, 0, Of(0), b"\x7f\xff\xff\xff");
const HUFFMAN: &[u8] = b"\x08\x84\xff\xff\xff\xff";
const HUGE: &[u8] = b"\0\x04\xff\xff\xff\xff";
static LARGE: [u8; 1 << 20] = [b'x'; 1 << 20];
const ENDLESS_FIELD: &[u8] =
    b"\0\x09x-endless\x400123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";

pub(super) static KINDS: LazyLock<Vec<Case>> = LazyLock::new(|| {
    let frames = FRAMES.iter();
    let frames = frames.map(|&(name, frames, ending)| Case::new(name, bytes(frames), ending));
    let endless = ENDLESS.iter().map(|(name, frames, more)| {
        let more = Endless(bytes(std::slice::from_ref(more)));
        Case::new(name, bytes(frames), more)
    });
    let others = [
        // Closes without a byte.
        Case::new("empty", fixed(b""), Close),
        // Bytes that are no frames.
        Case::new("garbage", fixed(b"HTTP/1.1 is not HTTP/2 \x7f\r\n"), Close),
        // Closes in the middle of a field block.
        Case::new("half-head", written(half_head), Close),
        // GOAWAY, then a second one that takes in more streams.
        Case::new("growing-goaway", written(growing_goaway), Silence),
    ];
    let all = parts::kinds(head, data).chain(frames).chain(endless);
    all.chain(others).collect()
});

/// Kinds that are no mistakes.
pub(super) static ODD: LazyLock<Vec<Case>> = LazyLock::new(|| {
    let frames = ODD_FRAMES.iter();
    frames
        .map(|&(name, frames)| Case::new(name, bytes(frames), GoOn))
        .collect()
});

fn bytes(frames: &'static [Frame]) -> RawBytes {
    written(move |out, stream| {
        for &(kind, flags, of, payload) in frames {
            let stream = match of {
                Own => stream,
                Of(stream) => stream,
            };
            frame(out, FrameKind::of(kind), flags, stream, payload);
        }
    })
}

fn frame(out: &mut Vec<u8>, kind: FrameKind, flags: u8, stream: u32, payload: &[u8]) {
    let header = FrameHeader {
        length: payload.len() as u32,
        kind,
        flags,
        stream,
    };
    header.write(out);
    out.extend_from_slice(payload);
}

fn half_head(out: &mut Vec<u8>, stream: u32) {
    frame(out, FrameKind::Headers, WHOLE, stream, &[0x88; 100]);
    out.truncate(out.len() - 99);
}

fn growing_goaway(out: &mut Vec<u8>, stream: u32) {
    for last in [stream, stream.saturating_add(2)] {
        frame::write_go_away(out, last, ErrorCode::NoError);
    }
}

/// A head of these fields, all of them literals that no table takes in (RFC 7541 section 6.2.2).
fn head(out: &mut Vec<u8>, stream: u32, fields: &[Field], is_end: bool) {
    let mut block = Vec::new();
    for (name, value) in fields {
        block.push(0);
        for text in [name, value] {
            // All of them are shorter than what a prefix of seven bits holds.
            block.push(text.len() as u8);
            block.extend_from_slice(text.as_bytes());
        }
    }
    frame::write_head(out, stream, &block, is_end, frame::PAYLOAD_BYTES);
}

fn data(out: &mut Vec<u8>, stream: u32, body: &str) {
    frame(out, FrameKind::Data, END, stream, body.as_bytes());
}
