//! Answers that break HTTP/3: one for each mistake that a client must not make much of.

use std::sync::LazyLock;

use brunt_proto::http3::frame::{self, Kind as FrameKind};
use brunt_proto::http3::qpack::encode_field;
use brunt_server::RawEnding::{self, Close, Endless, GoOn, Silence};
use brunt_server::RawPlace::{self, Control, ControlEnd, NewStream};

use super::parts::{self, Field};
use super::{Case, fixed};

/// Names, frames, and what follows these. Before what a frame carries stand its type and length.
const FRAMES: &[(&str, &[u8], RawEnding)] = &[
    // Closes without a byte.
    ("empty", b"", Close),
    // Bytes that are no frames.
    ("garbage", b"HTTP/1.1 is not HTTP/3 \x7f\r\n", GoOn),
    // Ends the stream in the middle of a field section.
    ("half-head", b"\x01\x20\0\0", GoOn),
    // DATA behind trailers.
    ("extra-bytes", b"\x01\x03\0\0\xd9\x01\x02\0\0\0\x010", GoOn),
    // A value that is no Huffman code.
    (
        "bad-huffman",
        b"\x01\x09\0\0\x5f\x09\x84\xff\xff\xff\xff",
        GoOn,
    ),
    // PUSH_PROMISE, which nobody takes.
    ("push", b"\x05\x04\0\0\0\xd9", Silence),
    // A field section that refers to no entry of the table.
    ("bad-qpack", b"\x01\x05\0\0\xff\x80\x7f", GoOn),
    // A field section that needs the dynamic table, which nobody allows.
    ("dynamic-table", b"\x01\x03\x02\0\x80", GoOn),
    // A frame of HTTP/2 that HTTP/3 does not have.
    ("http2-frame", b"\x08\x04\0\0\0\0", Silence),
    // SETTINGS on the stream of a request.
    ("stream-settings", b"\x04\0", Silence),
    // Ends the stream in the middle of DATA.
    ("half-data", b"\x01\x03\0\0\xd9\0\x200123", GoOn),
    // DATA of the greatest length, then silence.
    ("huge-data", HUGE_DATA, Silence),
];

/// Names, places beside the stream of the request, and bytes there.
const ELSEWHERE: &[(&str, RawPlace, &[u8])] = &[
    // SETTINGS for a second time.
    ("bad-settings", Control, b"\x04\0"),
    // GOAWAY, then a second one that takes in more streams.
    ("growing-goaway", Control, GROWING_GOAWAY),
    // DATA on the control stream.
    ("control-data", Control, b"\0\x040123"),
    // GOAWAY with what is no stream of a request.
    ("bad-goaway", Control, b"\x07\x01\x03"),
    // CANCEL_PUSH of a push that nobody allows.
    ("cancelled-push", Control, b"\x03\x01\0"),
    // MAX_PUSH_ID, which only clients send.
    ("large-push-id", Control, b"\x0d\x01\0"),
    // Ends the control stream.
    ("closed-control", ControlEnd, b""),
    // A second control stream.
    ("second-control", NewStream, b"\0\x04\0"),
    // A stream of a push that nobody allows.
    ("push-stream", NewStream, b"\x01\0"),
    // An entry for the dynamic table, which nobody allows.
    ("encoder-insert", NewStream, b"\x02\xd9\x03202"),
    // An acknowledgement of what was not sent.
    ("decoder-acknowledges", NewStream, b"\x03\x84"),
];

/// Names, and bytes with what follows them again and again.
const ENDLESS: &[(&str, &[u8], &[u8])] = &[
    // A field section without end.
    ("endless-head", ENDLESS_HEAD, b"\x23xen\x04-end"),
    // DATA without a byte, without end.
    ("endless-empty-data", b"\x01\x03\0\0\xd9", b"\0\0"),
    // Frames of an unknown kind, without end.
    ("endless-frames", b"", b"\x21\x080123abcd"),
];

/// The first stream that is not processed.
const GROWING_GOAWAY: &[u8] = b"\x07\x04\x80\x10\0\0\x07\x04\x80\x20\0\0";
/// Their length is the greatest that there is.
const HUGE_DATA: &[u8] = b"\x01\x03\0\0\xd9\0\xff\xff\xff\xff\xff\xff\xff\xff0123";
const ENDLESS_HEAD: &[u8] = b"\x01\xff\xff\xff\xff\xff\xff\xff\xff\0\0";

pub(super) static KINDS: LazyLock<Vec<Case>> = LazyLock::new(|| {
    let frames = FRAMES.iter();
    let frames = frames.map(|&(name, bytes, ending)| Case::new(name, fixed(bytes), ending));
    let endless = ENDLESS
        .iter()
        .map(|&(name, bytes, more)| Case::new(name, fixed(bytes), Endless(fixed(more))));
    let elsewhere = ELSEWHERE.iter().map(|&(name, place, bytes)| {
        let mut kind = Case::new(name, fixed(bytes), Silence);
        kind.answer.place = place;
        kind
    });
    let all = parts::kinds(head, data);
    all.chain(frames).chain(endless).chain(elsewhere).collect()
});

/// A head of these fields.
fn head(out: &mut Vec<u8>, _: u32, fields: &[Field], _: bool) {
    frame::write_head(out, |out| {
        for (name, value) in fields {
            encode_field(out, name.as_bytes(), value.as_bytes(), false);
        }
    });
}

fn data(out: &mut Vec<u8>, _: u32, body: &str) {
    frame::write_header(out, FrameKind::Data, body.len() as u64);
    out.extend_from_slice(body.as_bytes());
}
