//! Messages in the place of answers that break WebSocket (RFC 6455), and such as no route gives.

use brunt_server::RawEnding::{GoOn, Silence};

use super::Kind;

/// Those that break it, in the order in which tests name them.
pub(super) static KINDS: &[Kind] = &[
    // A bit of an extension is set.
    Kind::made("reserved-bit", |out, _| put(out, b"\xc1\x01a"), GoOn),
    Kind::made("bad-opcode", |out, _| put(out, b"\x83\x01a"), GoOn),
    Kind::made(
        "masked",
        |out, _| put(out, b"\x81\x81\x01\x02\x03\x04a"),
        GoOn,
    ),
    // A ping of 126 bytes.
    Kind::made(
        "long-ping",
        |out, _| {
            put(out, b"\x89\x7e\0\x7e");
            put(out, &[b'a'; 126]);
        },
        GoOn,
    ),
    // A ping that is not the last frame of its message.
    Kind::made("split-ping", |out, _| put(out, b"\x09\x01a"), GoOn),
    // A continuation of nothing.
    Kind::made("lone-continuation", |out, _| put(out, b"\x80\x01a"), GoOn),
    // A message inside of another one.
    Kind::made(
        "nested-message",
        |out, _| put(out, b"\x01\x01a\x81\x01b"),
        GoOn,
    ),
    // A Close with a code that stands for a connection without one.
    Kind::made("bad-close", |out, _| put(out, b"\x88\x02\x03\xed"), GoOn),
    // A Close with half a code.
    Kind::made("half-close", |out, _| put(out, b"\x88\x01\x03"), GoOn),
    // A length with the highest of its 64 bits set.
    Kind::made(
        "huge-length",
        |out, _| put(out, b"\x82\x7f\xff\xff\xff\xff\xff\xff\xff\xff"),
        GoOn,
    ),
];

/// Those that keep to it.
pub(super) static ODD: &[Kind] = &[
    Kind::made("close-without-code", |out, _| put(out, b"\x88\0"), GoOn),
    // A ping before the answer.
    Kind::made("ping", |out, _| put(out, b"\x89\x01p\x81\x01a"), GoOn),
    // An answer, and nothing more, to a Close neither.
    Kind::made("last", |out, _| put(out, b"\x81\x01a"), Silence),
];

fn put(out: &mut Vec<u8>, bytes: &[u8]) {
    out.extend_from_slice(bytes);
}
