//! Answers that break HTTP/1.1: one for each mistake that a client's parser must not make.

use std::sync::LazyLock;

use brunt_server::RawBytes;
use brunt_server::RawEnding::{self, Close, Endless, GoOn, Silence};

use super::{Case, written};

const OK: &str = "HTTP/1.1 200 OK\r\n";
const LENGTH: &str = "HTTP/1.1 200 OK\r\nContent-Length: ";
const CHUNKED: &str = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
const LAST_CHUNK: &str = "0\r\n\r\n";
const NO_BODY: &str = "Content-Length: 0\r\n\r\n";
const FILLER: &str = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";

/// Names, parts of answers, and what follows these.
const TEXTS: &[(&str, &[&str], RawEnding)] = &[
    // Closes without a byte.
    ("empty", &[], Close),
    // Bytes that are not HTTP.
    ("garbage", &["\u{1}\u{2} no HTTP \u{7f}\r\n\r\n"], Close),
    // The connection preface of HTTP/2.
    ("http2-preface", &[HTTP2_PREFACE], Close),
    // A version that does not exist.
    ("bad-version", &["HTTP/1.x 200 OK\r\n", NO_BODY], Close),
    // A status line without blanks.
    ("bad-status-line", &["HTTP/1.1200OK\r\n", NO_BODY], Close),
    // A status that is not a number.
    ("bad-status", &["HTTP/1.1 2x0 OK\r\n", NO_BODY], Close),
    // A header line without a colon.
    ("bad-field", &[OK, "no colon here\r\n", NO_BODY], Close),
    // A NUL byte in a header value.
    ("nul-in-field", &[OK, "X-Nul: a\0b\r\n", NO_BODY], Close),
    // Closes in the middle of the head.
    ("half-head", &[OK, "Content-Le"], Close),
    // A Content-Length that is not a number.
    ("bad-content-length", &[LENGTH, "ten\r\n\r\n012"], Close),
    // A Content-Length below 0.
    ("negative-content-length", &[LENGTH, "-1\r\n\r\n"], Close),
    // A Content-Length beyond 64 bits.
    (
        "huge-content-length",
        &[LENGTH, BEYOND, "\r\n\r\n01"],
        Close,
    ),
    // Two Content-Length fields that differ.
    ("two-lengths", &[LENGTH, TWO_LENGTHS, "01234567"], Close),
    // Content-Length beside Transfer-Encoding.
    ("length-and-chunked", &[LENGTH, CHUNKED_TOO], Close),
    // A chunk size that is not a number.
    (
        "bad-chunk",
        &[CHUNKED, "xyz\r\n0123\r\n", LAST_CHUNK],
        Close,
    ),
    // A chunk size beyond 64 bits.
    ("huge-chunk", &[CHUNKED, HUGE_CHUNK, LAST_CHUNK], Close),
    // A chunk that is longer than its size.
    ("bad-chunk-end", &[CHUNKED, LONG_CHUNK, LAST_CHUNK], Close),
    // Closes in the middle of a chunk.
    ("half-chunk", &[CHUNKED, "10\r\n01234567"], Close),
    // Closes before the last chunk.
    ("no-last-chunk", &[CHUNKED, "4\r\n0123\r\n"], Close),
    // A 204 with a body.
    ("body-in-204", &[NO_CONTENT, "0123"], Close),
    // A 101 that nobody asked for.
    ("unasked-upgrade", &[UPGRADED], Silence),
    // More bytes after a complete answer, connection kept.
    ("extra-bytes", &[LENGTH, "4\r\n\r\n0123456789"], GoOn),
    // Less promised than sent, then closes.
    ("short-length", &[LENGTH, "4\r\n\r\n01234567"], Close),
    // More promised than sent, then silence.
    ("short-body", &[LENGTH, "10\r\n\r\n0123"], Silence),
];
const HTTP2_PREFACE: &str = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
const BEYOND: &str = "99999999999999999999";
const TWO_LENGTHS: &str = "4\r\nContent-Length: 8\r\n\r\n";
const CHUNKED_TOO: &str = "4\r\nTransfer-Encoding: chunked\r\n\r\n4\r\n0123\r\n0\r\n\r\n";
const HUGE_CHUNK: &str = "fffffffffffffffff\r\n0123\r\n";
const LONG_CHUNK: &str = "4\r\n01234567\r\n";
const NO_CONTENT: &str = "HTTP/1.1 204 No Content\r\nContent-Length: 4\r\n\r\n";
const UPGRADED: &str = "HTTP/1.1 101 x\r\nUpgrade: unknown\r\nConnection: upgrade\r\n\r\n";

/// Names, and beginnings of answers with what follows them again and again.
const ENDLESS: &[(&str, &[&str], &str)] = &[
    // A header value without end.
    ("endless-head", &[OK, "X-Endless: "], FILLER),
    // Header fields without end.
    ("endless-headers", &[OK], "X-Field: value\r\n"),
    // Interim replies without end.
    ("endless-interim", &[], "HTTP/1.1 100 Continue\r\n\r\n"),
    // A chunk extension without end.
    ("endless-chunk-extension", &[CHUNKED, "4;x="], FILLER),
    // Trailer fields without end.
    ("endless-trailers", &[CHUNKED, "0\r\n"], "X-Field: x\r\n"),
    // Chunks without end.
    ("endless-chunks", &[CHUNKED], "4\r\n0123\r\n"),
];

/// Names, and beginnings of answers, what follows these so many times, and their ends.
const LARGE: &[(&str, [&str; 3], usize)] = &[
    // 10,000 header fields.
    ("too-many-fields", [OK, "X-Field: x\r\n", NO_BODY], 10_000),
    // A header value of 256 KiB.
    ("large-head", [LARGE_START, FILLER, LARGE_END], 4_096),
];
const LARGE_START: &str = "HTTP/1.1 200 OK\r\nX-Large: ";
const LARGE_END: &str = "\r\nContent-Length: 0\r\n\r\n";

pub(super) static KINDS: LazyLock<Vec<Case>> = LazyLock::new(|| {
    let texts = TEXTS.iter();
    let texts = texts.map(|&(name, parts, ending)| Case::new(name, text(parts), ending));
    let large = LARGE.iter().map(|&(name, [start, repeated, end], times)| {
        let repeated = repeated.repeat(times);
        Case::new(name, text(&[start, &repeated, end]), Close)
    });
    let endless = ENDLESS.iter();
    let endless =
        endless.map(|&(name, start, more)| Case::new(name, text(start), Endless(text(&[more]))));
    texts.chain(large).chain(endless).collect()
});

fn text(parts: &[&str]) -> RawBytes {
    let bytes = parts.concat().into_bytes();
    written(move |out, _| out.extend_from_slice(&bytes))
}
