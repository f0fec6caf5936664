//! Answers that break HTTP/1.1: one for each mistake that a client's parser must not make.

use std::sync::LazyLock;

use brunt_server::RawEnding::{self, Close, Endless, GoOn, Silence};

use super::{Kind, fixed, written};

const CHUNKED: &str = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
const OK: &str = "HTTP/1.1 200 OK\r\n";
const FILLER: &str = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";

/// Names, answers, and what follows these.
const TEXTS: &[(&str, &str, RawEnding)] = &[
    // Closes without a byte.
    ("empty", "", Close),
    // Bytes that are not HTTP.
    (
        "garbage",
        "\u{1}\u{2}\u{3} this is not HTTP \u{7f}\r\n\r\n",
        Close,
    ),
    // The connection preface of HTTP/2.
    ("http2-preface", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", Close),
    // A version that does not exist.
    (
        "bad-version",
        "HTTP/1.x 200 OK\r\nContent-Length: 0\r\n\r\n",
        Close,
    ),
    // A status line without blanks.
    (
        "bad-status-line",
        "HTTP/1.1200OK\r\nContent-Length: 0\r\n\r\n",
        Close,
    ),
    // A status that is not a number.
    (
        "bad-status",
        "HTTP/1.1 2x0 OK\r\nContent-Length: 0\r\n\r\n",
        Close,
    ),
    // A header line without a colon.
    (
        "bad-field",
        "HTTP/1.1 200 OK\r\nno colon here\r\nContent-Length: 0\r\n\r\n",
        Close,
    ),
    // A NUL byte in a header value.
    (
        "nul-in-field",
        "HTTP/1.1 200 OK\r\nX-Nul: a\0b\r\nContent-Length: 0\r\n\r\n",
        Close,
    ),
    // Closes in the middle of the head.
    ("half-head", "HTTP/1.1 200 OK\r\nContent-Le", Close),
    // A Content-Length that is not a number.
    (
        "bad-content-length",
        "HTTP/1.1 200 OK\r\nContent-Length: ten\r\n\r\n0123456789",
        Close,
    ),
    // A Content-Length below 0.
    (
        "negative-content-length",
        "HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n",
        Close,
    ),
    // A Content-Length beyond 64 bits.
    (
        "huge-content-length",
        "HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999\r\n\r\n0123456789",
        Close,
    ),
    // Two Content-Length fields that differ.
    (
        "two-lengths",
        "HTTP/1.1 200 OK\r\nContent-Length: 4\r\nContent-Length: 8\r\n\r\n01234567",
        Close,
    ),
    // Content-Length beside Transfer-Encoding.
    (
        "length-and-chunked",
        "HTTP/1.1 200 OK\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n\
         4\r\n0123\r\n0\r\n\r\n",
        Close,
    ),
    // A chunk size that is not a number.
    (
        "bad-chunk",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n0123\r\n0\r\n\r\n",
        Close,
    ),
    // A chunk size beyond 64 bits.
    (
        "huge-chunk",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n\
         fffffffffffffffff\r\n0123\r\n0\r\n\r\n",
        Close,
    ),
    // A chunk that is longer than its size.
    (
        "bad-chunk-end",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\n01234567\r\n0\r\n\r\n",
        Close,
    ),
    // Closes in the middle of a chunk.
    (
        "half-chunk",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n10\r\n01234567",
        Close,
    ),
    // Closes before the last chunk.
    (
        "no-last-chunk",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\n0123\r\n",
        Close,
    ),
    // A 204 with a body.
    (
        "body-in-204",
        "HTTP/1.1 204 No Content\r\nContent-Length: 4\r\n\r\n0123",
        Close,
    ),
    // A 101 that nobody asked for.
    (
        "unasked-upgrade",
        "HTTP/1.1 101 Switching Protocols\r\nUpgrade: unknown\r\nConnection: upgrade\r\n\r\n",
        Silence,
    ),
    // More bytes after a complete answer, connection kept.
    (
        "extra-bytes",
        "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\n0123456789",
        GoOn,
    ),
    // Less promised than sent, then closes.
    (
        "short-length",
        "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\n01234567",
        Close,
    ),
    // More promised than sent, then silence.
    (
        "short-body",
        "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n0123",
        Silence,
    ),
];

/// Names, and beginnings of answers with what follows them again and again.
const ENDLESS: &[(&str, &str, &str)] = &[
    // A header value without end.
    ("endless-head", "HTTP/1.1 200 OK\r\nX-Endless: ", FILLER),
    // Header fields without end.
    ("endless-headers", OK, "X-Field: value\r\n"),
    // Interim replies without end.
    ("endless-interim", "", "HTTP/1.1 100 Continue\r\n\r\n"),
    // A chunk extension without end.
    (
        "endless-chunk-extension",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4;x=",
        FILLER,
    ),
    // Trailer fields without end.
    (
        "endless-trailers",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n",
        "X-Field: value\r\n",
    ),
    // Chunks without end.
    ("endless-chunks", CHUNKED, "4\r\n0123\r\n"),
];

/// Names, and beginnings of answers, what follows these so many times, and their ends.
const LARGE: &[(&str, [&str; 3], usize)] = &[
    // 10,000 header fields.
    ("too-many-fields", [OK, "X-Field: value\r\n", END], 10_000),
    // A header value of 256 KiB.
    ("large-head", [LARGE_START, FILLER, LARGE_END], 4_096),
];
const LARGE_START: &str = "HTTP/1.1 200 OK\r\nX-Large: ";
const LARGE_END: &str = "\r\nContent-Length: 0\r\n\r\n";
const END: &str = "Content-Length: 0\r\n\r\n";

/// The kinds.
pub(super) static KINDS: LazyLock<Vec<Kind>> = LazyLock::new(|| {
    let text = |text: &'static str| fixed(text.as_bytes());
    let texts = TEXTS.iter();
    let texts = texts.map(|&(name, response, ending)| Kind::new(name, text(response), ending));
    let large = LARGE.iter().map(|&(name, [start, repeated, end], times)| {
        let text = [start, &repeated.repeat(times), end].concat();
        let bytes = written(move |out, _| out.extend_from_slice(text.as_bytes()));
        Kind::new(name, bytes, Close)
    });
    let endless = ENDLESS.iter();
    let endless =
        endless.map(|&(name, start, more)| Kind::new(name, text(start), Endless(text(more))));
    texts.chain(large).chain(endless).collect()
});
