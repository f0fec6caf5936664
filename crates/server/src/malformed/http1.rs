//! Answers that break HTTP/1.1: one for each mistake that a client's parser must not make.

/// What follows the bytes of a malformed answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ending {
    /// The connection is closed.
    Close,
    /// The next request is read.
    KeepOpen,
    /// Nothing: the server stays silent until the client leaves.
    Silence,
    /// The repeated part, without end.
    Endless,
}

/// A kind of malformed answer.
#[derive(Debug)]
pub(crate) struct Malformation {
    /// The name in the path.
    pub(crate) name: &'static str,
    /// What the answer does, in a few words.
    pub(crate) meaning: &'static str,
    start: &'static str,
    repeated: &'static str,
    times: u64,
    end: &'static str,
    /// What follows the bytes that `write` gives.
    pub(crate) ending: Ending,
}

impl Malformation {
    const fn new(
        name: &'static str,
        meaning: &'static str,
        start: &'static str,
        ending: Ending,
    ) -> Self {
        Self {
            name,
            meaning,
            start,
            repeated: "",
            times: 0,
            end: "",
            ending,
        }
    }

    const fn repeat(mut self, repeated: &'static str, times: u64, end: &'static str) -> Self {
        self.repeated = repeated;
        self.times = times;
        self.end = end;
        self
    }

    /// Appends the answer up to its repeated part, or all of it, where it has none. Gives how often
    /// that part is to follow; absent: not at all.
    pub(crate) fn write(&self, out: &mut Vec<u8>) -> Option<u64> {
        out.extend_from_slice(self.start.as_bytes());
        let times = match self.ending {
            Ending::Endless => u64::MAX,
            _ => self.times,
        };
        if times == 0 {
            out.extend_from_slice(self.end.as_bytes());
        }
        (times > 0).then_some(times)
    }

    /// Appends the repeated part, which is to follow `left` times, and what comes behind it; about
    /// `bytes_max` bytes at most. Gives how often it is still to follow.
    pub(crate) fn write_more(&self, left: u64, bytes_max: usize, out: &mut Vec<u8>) -> u64 {
        let repeated = self.repeated.as_bytes();
        let fitting = bytes_max.min(PIECE_BYTES) / repeated.len().max(1);
        let count = left.min(fitting.max(1) as u64);
        for _ in 0..count {
            out.extend_from_slice(repeated);
        }
        if count == left {
            out.extend_from_slice(self.end.as_bytes());
        }
        match self.ending {
            Ending::Endless => left,
            _ => left - count,
        }
    }
}

const CHUNKED: &str = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
const OK: &str = "HTTP/1.1 200 OK\r\n";
const FILLER: &str = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";

/// Bytes of a repeated part that are sent at once, about.
const PIECE_BYTES: usize = 16 * 1024;

/// The malformations in the order of the documentation.
pub(crate) static KINDS: &[Malformation] = &[
    Malformation::new("empty", "closes without a byte", "", Ending::Close),
    Malformation::new(
        "garbage",
        "bytes that are not HTTP",
        "\u{1}\u{2}\u{3} this is not HTTP \u{7f}\r\n\r\n",
        Ending::Close,
    ),
    Malformation::new(
        "http2-preface",
        "the connection preface of HTTP/2",
        "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        Ending::Close,
    ),
    Malformation::new(
        "bad-version",
        "a version that does not exist",
        "HTTP/1.x 200 OK\r\nContent-Length: 0\r\n\r\n",
        Ending::Close,
    ),
    Malformation::new(
        "bad-status-line",
        "a status line without blanks",
        "HTTP/1.1200OK\r\nContent-Length: 0\r\n\r\n",
        Ending::Close,
    ),
    Malformation::new(
        "bad-status",
        "a status that is not a number",
        "HTTP/1.1 2x0 OK\r\nContent-Length: 0\r\n\r\n",
        Ending::Close,
    ),
    Malformation::new(
        "bad-field",
        "a header line without a colon",
        "HTTP/1.1 200 OK\r\nno colon here\r\nContent-Length: 0\r\n\r\n",
        Ending::Close,
    ),
    Malformation::new(
        "nul-in-field",
        "a NUL byte in a header value",
        "HTTP/1.1 200 OK\r\nX-Nul: a\0b\r\nContent-Length: 0\r\n\r\n",
        Ending::Close,
    ),
    Malformation::new(
        "half-head",
        "closes in the middle of the head",
        "HTTP/1.1 200 OK\r\nContent-Le",
        Ending::Close,
    ),
    Malformation::new(
        "bad-content-length",
        "a Content-Length that is not a number",
        "HTTP/1.1 200 OK\r\nContent-Length: ten\r\n\r\n0123456789",
        Ending::Close,
    ),
    Malformation::new(
        "negative-content-length",
        "a Content-Length below 0",
        "HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n",
        Ending::Close,
    ),
    Malformation::new(
        "huge-content-length",
        "a Content-Length beyond 64 bits",
        "HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999\r\n\r\n0123456789",
        Ending::Close,
    ),
    Malformation::new(
        "two-lengths",
        "two Content-Length fields that differ",
        "HTTP/1.1 200 OK\r\nContent-Length: 4\r\nContent-Length: 8\r\n\r\n01234567",
        Ending::Close,
    ),
    Malformation::new(
        "length-and-chunked",
        "Content-Length beside Transfer-Encoding",
        "HTTP/1.1 200 OK\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n\
         4\r\n0123\r\n0\r\n\r\n",
        Ending::Close,
    ),
    Malformation::new(
        "bad-chunk",
        "a chunk size that is not a number",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n0123\r\n0\r\n\r\n",
        Ending::Close,
    ),
    Malformation::new(
        "huge-chunk",
        "a chunk size beyond 64 bits",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n\
         fffffffffffffffff\r\n0123\r\n0\r\n\r\n",
        Ending::Close,
    ),
    Malformation::new(
        "bad-chunk-end",
        "a chunk that is longer than its size",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\n01234567\r\n0\r\n\r\n",
        Ending::Close,
    ),
    Malformation::new(
        "half-chunk",
        "closes in the middle of a chunk",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n10\r\n01234567",
        Ending::Close,
    ),
    Malformation::new(
        "no-last-chunk",
        "closes before the last chunk",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\n0123\r\n",
        Ending::Close,
    ),
    Malformation::new(
        "body-in-204",
        "a 204 with a body",
        "HTTP/1.1 204 No Content\r\nContent-Length: 4\r\n\r\n0123",
        Ending::Close,
    ),
    Malformation::new(
        "unasked-upgrade",
        "a 101 that nobody asked for",
        "HTTP/1.1 101 Switching Protocols\r\nUpgrade: unknown\r\nConnection: upgrade\r\n\r\n",
        Ending::Silence,
    ),
    Malformation::new(
        "extra-bytes",
        "more bytes after a complete answer, connection kept",
        "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\n0123456789",
        Ending::KeepOpen,
    ),
    Malformation::new(
        "short-length",
        "less promised than sent, then closes",
        "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\n01234567",
        Ending::Close,
    ),
    Malformation::new(
        "short-body",
        "more promised than sent, then silence",
        "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n0123",
        Ending::Silence,
    ),
    Malformation::new("too-many-fields", "10,000 header fields", OK, Ending::Close).repeat(
        "X-Field: value\r\n",
        10_000,
        "Content-Length: 0\r\n\r\n",
    ),
    Malformation::new(
        "large-head",
        "a header value of 1 MiB",
        "HTTP/1.1 200 OK\r\nX-Large: ",
        Ending::Close,
    )
    .repeat(FILLER, 16 * 1024, "\r\nContent-Length: 0\r\n\r\n"),
    Malformation::new(
        "endless-head",
        "a header value without end",
        "HTTP/1.1 200 OK\r\nX-Endless: ",
        Ending::Endless,
    )
    .repeat(FILLER, 0, ""),
    Malformation::new(
        "endless-headers",
        "header fields without end",
        OK,
        Ending::Endless,
    )
    .repeat("X-Field: value\r\n", 0, ""),
    Malformation::new(
        "endless-interim",
        "interim replies without end",
        "",
        Ending::Endless,
    )
    .repeat("HTTP/1.1 100 Continue\r\n\r\n", 0, ""),
    Malformation::new(
        "endless-chunk-extension",
        "a chunk extension without end",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4;x=",
        Ending::Endless,
    )
    .repeat(FILLER, 0, ""),
    Malformation::new(
        "endless-trailers",
        "trailer fields without end",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n",
        Ending::Endless,
    )
    .repeat("X-Field: value\r\n", 0, ""),
    Malformation::new(
        "endless-chunks",
        "chunks without end",
        CHUNKED,
        Ending::Endless,
    )
    .repeat("4\r\n0123\r\n", 0, ""),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_sends_something_or_closes() {
        for kind in KINDS {
            let mut bytes = Vec::new();
            let mut left = kind.write(&mut bytes).unwrap_or(0);
            let mut pieces = 0;
            while left > 0 && pieces < 2_000 {
                let before = bytes.len();
                left = kind.write_more(left, 1_000, &mut bytes);
                let more = before + 1..=before + 1_000 + kind.end.len();
                assert!(more.contains(&bytes.len()), "{}", kind.name);
                pieces += 1;
            }
            assert!(bytes.ends_with(kind.end.as_bytes()), "{}", kind.name);
            let is_endless = kind.ending == Ending::Endless;
            assert_eq!(left > 0, is_endless, "{}", kind.name);
            assert!(
                !bytes.is_empty() || kind.ending == Ending::Close,
                "{}",
                kind.name
            );
        }
    }
}
