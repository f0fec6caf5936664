//! Messages in the place of answers that break WebSocket (RFC 6455), and such as no route gives.

use std::sync::LazyLock;

use brunt_server::RawEnding::{self, GoOn, Silence};

use super::{Case, fixed};

/// Names and frames of those that break it.
const FRAMES: &[(&str, &[u8])] = &[
    // A bit of an extension is set.
    ("reserved-bit", b"\xc1\x01a"),
    ("bad-opcode", b"\x83\x01a"),
    ("masked", b"\x81\x81\x01\x02\x03\x04a"),
    // A ping of 126 bytes.
    ("long-ping", &LONG_PING),
    // A ping that is not the last frame of its message.
    ("split-ping", b"\x09\x01a"),
    // A continuation of nothing.
    ("lone-continuation", b"\x80\x01a"),
    // A message inside of another one.
    ("nested-message", b"\x01\x01a\x81\x01b"),
    // A Close with a code that stands for a connection without one.
    ("bad-close", b"\x88\x02\x03\xed"),
    // A Close with half a code.
    ("half-close", b"\x88\x01\x03"),
    // A length with the highest of its 64 bits set.
    ("huge-length", b"\x82\x7f\xff\xff\xff\xff\xff\xff\xff\xff"),
];

const LONG_PING: [u8; 130] = {
    let mut frame = [b'a'; 130];
    (frame[0], frame[1], frame[2], frame[3]) = (0x89, 0x7e, 0, 0x7e);
    frame
};

/// Those that keep to it.
const ODD_FRAMES: &[(&str, &[u8], RawEnding)] = &[
    ("close-without-code", b"\x88\0", GoOn),
    // A ping before the answer.
    ("ping", b"\x89\x01p\x81\x01a", GoOn),
    // An answer, and nothing more, to a Close neither.
    ("last", b"\x81\x01a", Silence),
];

/// Those that break it.
pub(super) static KINDS: LazyLock<Vec<Case>> = LazyLock::new(|| {
    let frames = FRAMES.iter();
    frames
        .map(|&(name, bytes)| Case::new(name, fixed(bytes), GoOn))
        .collect()
});

/// Those that keep to it.
pub(super) static ODD: LazyLock<Vec<Case>> = LazyLock::new(|| {
    let frames = ODD_FRAMES.iter();
    frames
        .map(|&(name, bytes, ending)| Case::new(name, fixed(bytes), ending))
        .collect()
});
