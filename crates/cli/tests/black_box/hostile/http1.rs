//! Hostile servers of HTTP/1.1, beside those of the reference server's `/malformed`.

use std::io::{self, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::time::Duration;

use crate::support::hostile::Step::{
    Do, Drip, Flood, FloodAndRead, HalfClose, Read, Request, Say, Wait,
};
use crate::support::hostile::{Peer, Serve};

use super::{Behaviour, brief, check_all, patient};

const ANSWER: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

/// Answers every request.
pub(super) fn quiet() -> Serve {
    Arc::new(|peer| {
        loop {
            peer.read_request()?;
            peer.stream.write_all(ANSWER)?;
        }
    })
}

fn say(bytes: &[u8]) -> crate::support::hostile::Step {
    Say(bytes.to_vec())
}

/// Answers each time that something more came, which it does not read. Once the client can send no
/// more, the last answer is to a request that is not all there.
fn answer_unread(peer: &mut Peer) -> io::Result<()> {
    const PAUSE: Duration = Duration::from_micros(200);
    let mut seen = 0;
    loop {
        let waited = (0..500).find(|_| {
            std::thread::sleep(PAUSE);
            unread_bytes(&peer.stream) > seen
        });
        seen = unread_bytes(&peer.stream);
        peer.stream.write_all(ANSWER)?;
        if waited.is_none() {
            return peer.follow(&[Wait]);
        }
    }
}

fn unread_bytes(stream: &TcpStream) -> u64 {
    rustix::io::ioctl_fionread(stream).unwrap_or(0)
}

/// Closes after one byte more each time.
fn cut(peer: &mut Peer) -> io::Result<()> {
    peer.read_request()?;
    let bytes = peer.number as usize % ANSWER.len();
    peer.stream.write_all(&ANSWER[..bytes])
}

/// Resets after one byte more each time.
fn break_off(peer: &mut Peer) -> io::Result<()> {
    let outcome = cut(peer);
    peer.reset();
    outcome
}

/// Reads a byte at a time, with pauses, and answers at the end.
fn read_slowly(peer: &mut Peer) -> io::Result<()> {
    use std::io::Read as _;
    let mut byte = [0];
    loop {
        peer.stream.read_exact(&mut byte)?;
        std::thread::sleep(Duration::from_millis(50));
    }
}

pub(super) fn behaviours() -> Vec<Behaviour> {
    const PAUSE: Duration = Duration::from_millis(20);
    let with = |text: &str| Say(format!("HTTP/1.1 200 OK\r\n{text}").into_bytes());
    let at_random = &["closed_before_reply", "truncated_head", "truncated_body"];
    vec![
        patient("silence", &["timed_out"], vec![Read]),
        brief(
            "an answer to nothing",
            &["unexpected_bytes"],
            // The first may meet a request; the second cannot.
            vec![Say(ANSWER.repeat(2)), Read],
        ),
        brief(
            "answers without end to a request",
            &["unexpected_bytes"],
            vec![Request, FloodAndRead(ANSWER.to_vec())],
        ),
        patient(
            "answers to what it does not read",
            &["unexpected_bytes", "timed_out"],
            vec![Do(answer_unread)],
        )
        .with(format!("--body {}", "x".repeat(12_000))),
        patient(
            "a head a byte at a time",
            &["timed_out"],
            vec![
                Request,
                Drip(
                    b"HTTP/1.1 200 OK\r\nX-Slow: 0123456789012345678901234567890123456789".into(),
                    PAUSE,
                ),
                Read,
            ],
        ),
        brief("a body that is cut everywhere", at_random, vec![Do(cut)]),
        brief(
            "a reset everywhere",
            &[
                "reset",
                "idle_reset",
                "closed_before_reply",
                "truncated_head",
                "truncated_body",
            ],
            vec![Do(break_off)],
        ),
        brief(
            "a half-close in a head",
            &["truncated_head"],
            vec![Request, say(b"HTTP/1.1 2"), HalfClose],
        ),
        brief(
            "an announced close that does not come",
            &[],
            vec![
                Request,
                say(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok"),
                Wait,
            ],
        ),
        brief(
            "bytes after an announced close",
            &["unexpected_bytes"],
            vec![
                Request,
                say(
                    b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok and more",
                ),
                Read,
            ],
        ),
        brief(
            "zeros without end",
            &["malformed_head"],
            vec![Request, Flood(vec![0])],
        ),
        brief(
            "line ends without end",
            &["head_too_large", "malformed_head"],
            vec![Request, Flood(b"\r\n".into())],
        ),
        patient(
            "a body almost without end",
            &["timed_out"],
            vec![
                Request,
                with("Content-Length: 9223372036854775807\r\n\r\n"),
                FloodAndRead(vec![b'x'; 4096]),
            ],
        ),
        patient(
            "a body without length or end",
            &["timed_out"],
            vec![Request, with("\r\n"), Flood(vec![b'x'; 4096])],
        ),
        brief(
            "a chunk size without end",
            &["bad_chunk"],
            vec![
                Request,
                with("Transfer-Encoding: chunked\r\n\r\n"),
                Flood(b"0".into()),
            ],
        ),
        patient(
            "interim answers a byte at a time",
            &["timed_out", "bad_interim"],
            vec![
                Request,
                Drip(b"HTTP/1.1 100 Continue\r\n\r\n".repeat(3), PAUSE),
                Read,
            ],
        ),
        patient(
            "requests read a byte at a time",
            &["timed_out"],
            vec![Do(read_slowly)],
        ),
    ]
}

#[test]
fn http1_on_uring() {
    check_all("uring", "http", "--http1", quiet, behaviours());
}

#[test]
fn http1_on_epoll() {
    check_all("epoll", "http", "--http1", quiet, behaviours());
}
