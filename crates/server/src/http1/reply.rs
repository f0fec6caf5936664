//! The bytes of replies of HTTP/1.1, also of those that take more than one send, or time.

use super::request::Request;
use crate::answer::{After, Says};
use crate::batch::Batch;
use crate::counters::WorkerCounters;
use crate::pattern;
use crate::raw::RawAnswer;
use crate::route::Route;

/// A body up to this size is sent together with its head, by one copy.
pub(crate) const INLINE_BODY_BYTES_MAX: u64 = 16 * 1024;

/// Appends a reply's head.
pub(crate) fn write_head(out: &mut Vec<u8>, request: &Request, status: u16, says: Says) {
    out.extend_from_slice(b"HTTP/1.1 ");
    write_decimal(out, u64::from(status));
    out.push(b' ');
    out.extend_from_slice(reason(status).as_bytes());
    match says {
        Says::Nothing => {}
        Says::Length(bytes) => {
            out.extend_from_slice(b"\r\nContent-Length: ");
            write_decimal(out, bytes);
        }
        Says::RetryLater => out.extend_from_slice(b"\r\nContent-Length: 0\r\nRetry-After: 1"),
        Says::Trailer => {
            out.extend_from_slice(b"\r\nTransfer-Encoding: chunked\r\nTrailer: Brunt-Length");
        }
        Says::Link => out.extend_from_slice(b"\r\nLink: </style.css>; rel=preload"),
    }
    // RFC 9112 section 9.3: keeping is the default of HTTP/1.1, closing of HTTP/1.0.
    if !request.keep_alive {
        out.extend_from_slice(b"\r\nConnection: close");
    } else if request.http10 {
        out.extend_from_slice(b"\r\nConnection: keep-alive");
    }
    out.extend_from_slice(b"\r\n\r\n");
}

/// Appends a whole reply without a body that asks for an upgrade to WebSocket (RFC 9110 section
/// 15.5.22).
pub(crate) fn write_upgrade_required(out: &mut Vec<u8>, request: &Request) {
    write_head(out, request, 426, Says::Length(0));
    // In front of the empty line that ends the head.
    out.truncate(out.len() - 2);
    out.extend_from_slice(b"Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\n\r\n");
}

/// Appends the reply that begins WebSocket (RFC 6455 section 4.2.2), for the first subprotocol that
/// was offered.
pub(crate) fn write_upgrade(out: &mut Vec<u8>, accept: &[u8], subprotocol: Option<&[u8]>) {
    out.extend_from_slice(
        b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
          Sec-WebSocket-Accept: ",
    );
    out.extend_from_slice(accept);
    if let Some(name) = subprotocol {
        out.extend_from_slice(b"\r\nSec-WebSocket-Protocol: ");
        out.extend_from_slice(name);
    }
    out.extend_from_slice(b"\r\n\r\n");
}

/// Appends a number in decimal; formatting machinery would cost as much as the rest of a head.
pub(crate) fn write_decimal(out: &mut Vec<u8>, number: u64) {
    out.extend_from_slice(itoa::Buffer::new().format(number).as_bytes());
}

/// The usual phrase of a status (RFC 9110 section 15), where routes beside `/status` answer with it
/// or everybody knows it; a client does without one.
fn reason(status: u16) -> &'static str {
    match status {
        100 => "Continue",
        103 => "Early Hints",
        200 => "OK",
        204 => "No Content",
        400 => "Bad Request",
        404 => "Not Found",
        426 => "Upgrade Required",
        429 => "Too Many Requests",
        500 => "Internal Server Error",
        503 => "Service Unavailable",
        _ => "",
    }
}

/// Bytes of data in one chunk of `/chunked`.
const CHUNK_BYTES: u64 = 16 * 1024;

/// What to do once what was written into a batch is sent.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Step {
    GoOn,
    /// Go on with a reply.
    Reply(PendingReply),
    /// Speak WebSocket from here on, where messages get this.
    WebSocket(Route),
    /// Go on: what was written is an answer that was to be sent at this instant.
    Answer {
        due_ns: u64,
    },
    /// Nothing was written: send this part of the pattern payload, then go on.
    Pattern {
        start: u32,
        end: u32,
    },
    /// Wait for more input.
    Input,
    /// Come back at this instant.
    Wait {
        until_ns: u64,
    },
    /// What was in hand is complete.
    End(After),
    /// The room for a message is used up.
    Overflow,
}

/// The rest of a reply.
#[derive(Clone, Copy, Debug)]
pub(crate) enum PendingReply {
    /// A null answer at an instant.
    NullAt { at_ns: u64, request: Request },
    /// Bytes of the pattern; in chunks, the last one of which has a trailer, or as they are.
    Pattern {
        position: u64,
        end: u64,
        is_chunked: bool,
        after: After,
    },
    /// The rest of a raw answer that has no end.
    Endless(&'static RawAnswer),
    /// Nothing, until the client leaves.
    Silence,
    /// Nothing more.
    End(After),
}

impl PendingReply {
    /// Goes on by one step, at `now_ns`; what is appended to `batch` is no more than it allows.
    pub(crate) fn step(
        &mut self,
        now_ns: u64,
        batch: &mut Batch,
        counters: &WorkerCounters,
    ) -> Step {
        let piece_bytes_max = batch.piece_bytes_max();
        match self {
            Self::NullAt { at_ns, .. } if now_ns < *at_ns => Step::Wait { until_ns: *at_ns },
            Self::NullAt { at_ns, request } => {
                let due_ns = *at_ns;
                let after = request.after();
                counters.reply(200);
                write_head(batch.bytes(), request, 200, Says::Length(0));
                *self = Self::End(after);
                Step::Answer { due_ns }
            }
            Self::Pattern {
                position,
                end,
                is_chunked: true,
                after,
            } => {
                let out = batch.bytes();
                *position = write_chunk(out, *position, *end, piece_bytes_max as u64);
                if position == end {
                    out.extend_from_slice(b"0\r\nBrunt-Length: ");
                    write_decimal(out, *end);
                    out.extend_from_slice(b"\r\n\r\n");
                    *self = Self::End(*after);
                }
                Step::GoOn
            }
            Self::Pattern {
                position,
                end,
                after,
                ..
            } => {
                let length = (*end - *position).min(batch.pattern_bytes_max());
                if length == 0 {
                    return Step::End(*after);
                }
                let start = pattern::pattern_start(*position);
                *position += length;
                Step::Pattern {
                    start,
                    end: start + length as u32,
                }
            }
            Self::Endless(answer) => {
                answer.write_more(batch.bytes(), 0, piece_bytes_max);
                Step::GoOn
            }
            Self::Silence => Step::Input,
            Self::End(after) => Step::End(*after),
        }
    }
}

/// Appends what follows `position` of a body up to `end`, of one chunk (RFC 9112 section 7.1) and
/// of a bounded number of bytes. Gives the position behind it.
fn write_chunk(out: &mut Vec<u8>, position: u64, end: u64, bytes_max: u64) -> u64 {
    if position == end {
        return end;
    }
    let chunk_end = (position - position % CHUNK_BYTES + CHUNK_BYTES).min(end);
    if position.is_multiple_of(CHUNK_BYTES) {
        out.extend_from_slice(format!("{:x}\r\n", chunk_end - position).as_bytes());
    }
    let piece_end = chunk_end.min(position + bytes_max);
    pattern::write_pattern(out, position, piece_end);
    if piece_end == chunk_end {
        out.extend_from_slice(b"\r\n");
    }
    piece_end
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs a stream in virtual time. Gives its bytes, the instant of its end, and what comes after
    /// it.
    fn run(stream: PendingReply) -> (Vec<u8>, u64, After) {
        run_within(stream, usize::MAX)
    }

    /// Runs a stream in virtual time, with room for `grant_bytes` of output at a time.
    fn run_within(mut stream: PendingReply, grant_bytes: usize) -> (Vec<u8>, u64, After) {
        let counters = WorkerCounters::default();
        let payload = pattern::pattern_payload();
        let (mut now_ns, mut out) = (0, Vec::new());
        let mut batch = Batch::new(true);
        loop {
            batch.fit_into(grant_bytes);
            let step = stream.step(now_ns, &mut batch, &counters);
            assert!(batch.length() <= grant_bytes, "{step:?}");
            out.extend(batch.take_bytes(Vec::new()));
            match step {
                Step::Pattern { start, end } => {
                    out.extend_from_slice(&payload[start as usize..end as usize]);
                }
                Step::GoOn | Step::Answer { .. } => {}
                Step::Wait { until_ns } => now_ns = until_ns,
                Step::Input => return (out, now_ns, After::Close),
                Step::End(after) => return (out, now_ns, after),
                step => panic!("{step:?}"),
            }
        }
    }

    #[test]
    fn long_bodies_are_the_pattern() {
        for end in [
            0,
            1,
            26,
            pattern::PIECE_BYTES_MAX,
            3 * pattern::PIECE_BYTES_MAX + 5,
        ] {
            let mut expected = Vec::new();
            pattern::write_pattern(&mut expected, 0, end);
            let pattern = |is_chunked, after| PendingReply::Pattern {
                position: 0,
                end,
                is_chunked,
                after,
            };
            let whole = run(pattern(false, After::KeepOpen));
            assert_eq!(whole, (expected.clone(), 0, After::KeepOpen));
            // Chunks, taken apart again.
            let stream = pattern(true, After::Close);
            let (chunks, _, after) = run(stream);
            for grant_bytes in [150, 10_000] {
                assert!(run_within(stream, grant_bytes).0 == chunks, "{grant_bytes}");
            }
            assert_eq!(after, After::Close);
            let (mut rest, mut body) = (&chunks[..], Vec::new());
            loop {
                let line = rest.iter().position(|byte| *byte == b'\r').unwrap();
                let size = std::str::from_utf8(&rest[..line]).unwrap();
                let size = usize::from_str_radix(size, 16).unwrap();
                rest = &rest[line + 2..];
                if size == 0 {
                    break;
                }
                body.extend_from_slice(&rest[..size]);
                assert_eq!(&rest[size..size + 2], b"\r\n");
                rest = &rest[size + 2..];
            }
            assert_eq!(rest, format!("Brunt-Length: {end}\r\n\r\n").as_bytes());
            assert_eq!(body, expected);
        }
    }
}
