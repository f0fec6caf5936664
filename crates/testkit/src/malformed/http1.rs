//! Answers that break HTTP/1.1: one for each mistake that a client's parser must not make.

use brunt_server::RawEnding::{Close, Endless, GoOn, Silence};

use super::Kind;

const CHUNKED: &str = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
const OK: &str = "HTTP/1.1 200 OK\r\n";
const FILLER: &str = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";

fn put(out: &mut Vec<u8>, text: &str) {
    out.extend_from_slice(text.as_bytes());
}

fn put_often(out: &mut Vec<u8>, [start, repeated, end]: [&str; 3], times: usize) {
    put(out, start);
    put(out, &repeated.repeat(times));
    put(out, end);
}

/// The kinds, in the order in which tests name them.
pub(super) static KINDS: &[Kind] = &[
    // Closes without a byte.
    Kind::new("empty", |_, _| {}, Close),
    // Bytes that are not HTTP.
    Kind::new(
        "garbage",
        |out, _| put(out, "\u{1}\u{2}\u{3} this is not HTTP \u{7f}\r\n\r\n"),
        Close,
    ),
    // The connection preface of HTTP/2.
    Kind::new(
        "http2-preface",
        |out, _| put(out, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"),
        Close,
    ),
    // A version that does not exist.
    Kind::new(
        "bad-version",
        |out, _| put(out, "HTTP/1.x 200 OK\r\nContent-Length: 0\r\n\r\n"),
        Close,
    ),
    // A status line without blanks.
    Kind::new(
        "bad-status-line",
        |out, _| put(out, "HTTP/1.1200OK\r\nContent-Length: 0\r\n\r\n"),
        Close,
    ),
    // A status that is not a number.
    Kind::new(
        "bad-status",
        |out, _| put(out, "HTTP/1.1 2x0 OK\r\nContent-Length: 0\r\n\r\n"),
        Close,
    ),
    // A header line without a colon.
    Kind::new(
        "bad-field",
        |out, _| {
            put(
                out,
                "HTTP/1.1 200 OK\r\nno colon here\r\nContent-Length: 0\r\n\r\n",
            )
        },
        Close,
    ),
    // A NUL byte in a header value.
    Kind::new(
        "nul-in-field",
        |out, _| {
            put(
                out,
                "HTTP/1.1 200 OK\r\nX-Nul: a\0b\r\nContent-Length: 0\r\n\r\n",
            )
        },
        Close,
    ),
    // Closes in the middle of the head.
    Kind::new(
        "half-head",
        |out, _| put(out, "HTTP/1.1 200 OK\r\nContent-Le"),
        Close,
    ),
    // A Content-Length that is not a number.
    Kind::new(
        "bad-content-length",
        |out, _| {
            put(
                out,
                "HTTP/1.1 200 OK\r\nContent-Length: ten\r\n\r\n0123456789",
            )
        },
        Close,
    ),
    // A Content-Length below 0.
    Kind::new(
        "negative-content-length",
        |out, _| put(out, "HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n"),
        Close,
    ),
    // A Content-Length beyond 64 bits.
    Kind::new(
        "huge-content-length",
        |out, _| {
            put(
                out,
                "HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999\r\n\r\n0123456789",
            )
        },
        Close,
    ),
    // Two Content-Length fields that differ.
    Kind::new(
        "two-lengths",
        |out, _| {
            put(
                out,
                "HTTP/1.1 200 OK\r\nContent-Length: 4\r\nContent-Length: 8\r\n\r\n01234567",
            )
        },
        Close,
    ),
    // Content-Length beside Transfer-Encoding.
    Kind::new(
        "length-and-chunked",
        |out, _| {
            put(
                out,
                "HTTP/1.1 200 OK\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n\
         4\r\n0123\r\n0\r\n\r\n",
            )
        },
        Close,
    ),
    // A chunk size that is not a number.
    Kind::new(
        "bad-chunk",
        |out, _| {
            put(
                out,
                "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n0123\r\n0\r\n\r\n",
            )
        },
        Close,
    ),
    // A chunk size beyond 64 bits.
    Kind::new(
        "huge-chunk",
        |out, _| {
            put(
                out,
                "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n\
         fffffffffffffffff\r\n0123\r\n0\r\n\r\n",
            )
        },
        Close,
    ),
    // A chunk that is longer than its size.
    Kind::new(
        "bad-chunk-end",
        |out, _| {
            put(
                out,
                "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\n01234567\r\n0\r\n\r\n",
            )
        },
        Close,
    ),
    // Closes in the middle of a chunk.
    Kind::new(
        "half-chunk",
        |out, _| {
            put(
                out,
                "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n10\r\n01234567",
            )
        },
        Close,
    ),
    // Closes before the last chunk.
    Kind::new(
        "no-last-chunk",
        |out, _| {
            put(
                out,
                "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\n0123\r\n",
            )
        },
        Close,
    ),
    // A 204 with a body.
    Kind::new(
        "body-in-204",
        |out, _| {
            put(
                out,
                "HTTP/1.1 204 No Content\r\nContent-Length: 4\r\n\r\n0123",
            )
        },
        Close,
    ),
    // A 101 that nobody asked for.
    Kind::new(
        "unasked-upgrade",
        |out, _| {
            put(
                out,
                "HTTP/1.1 101 Switching Protocols\r\nUpgrade: unknown\r\n\
                 Connection: upgrade\r\n\r\n",
            )
        },
        Silence,
    ),
    // More bytes after a complete answer, connection kept.
    Kind::new(
        "extra-bytes",
        |out, _| {
            put(
                out,
                "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\n0123456789",
            )
        },
        GoOn,
    ),
    // Less promised than sent, then closes.
    Kind::new(
        "short-length",
        |out, _| put(out, "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\n01234567"),
        Close,
    ),
    // More promised than sent, then silence.
    Kind::new(
        "short-body",
        |out, _| put(out, "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n0123"),
        Silence,
    ),
    // 10,000 header fields.
    Kind::new(
        "too-many-fields",
        |out, _| {
            put_often(
                out,
                [OK, "X-Field: value\r\n", "Content-Length: 0\r\n\r\n"],
                10_000,
            )
        },
        Close,
    ),
    // A header value of 256 KiB.
    Kind::new(
        "large-head",
        |out, _| {
            put_often(
                out,
                [
                    "HTTP/1.1 200 OK\r\nX-Large: ",
                    FILLER,
                    "\r\nContent-Length: 0\r\n\r\n",
                ],
                4 * 1024,
            )
        },
        Close,
    ),
    // A header value without end.
    Kind::new(
        "endless-head",
        |out, _| put(out, "HTTP/1.1 200 OK\r\nX-Endless: "),
        Endless(|out, _| put(out, FILLER)),
    ),
    // Header fields without end.
    Kind::new(
        "endless-headers",
        |out, _| put(out, OK),
        Endless(|out, _| put(out, "X-Field: value\r\n")),
    ),
    // Interim replies without end.
    Kind::new(
        "endless-interim",
        |_, _| {},
        Endless(|out, _| put(out, "HTTP/1.1 100 Continue\r\n\r\n")),
    ),
    // A chunk extension without end.
    Kind::new(
        "endless-chunk-extension",
        |out, _| {
            put(
                out,
                "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4;x=",
            )
        },
        Endless(|out, _| put(out, FILLER)),
    ),
    // Trailer fields without end.
    Kind::new(
        "endless-trailers",
        |out, _| {
            put(
                out,
                "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n",
            )
        },
        Endless(|out, _| put(out, "X-Field: value\r\n")),
    ),
    // Chunks without end.
    Kind::new(
        "endless-chunks",
        |out, _| put(out, CHUNKED),
        Endless(|out, _| put(out, "4\r\n0123\r\n")),
    ),
];
