//! Hostile servers of HTTP/1.1, beside those of the reference server's `/malformed`.

use std::io::{self, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::time::Duration;

use crate::support::hostile::Step::{
    Do, Drip, Flood, FloodAndRead, HalfClose, Read, Request, Say, Wait,
};
use crate::support::hostile::{Peer, Serve};

use super::{Behaviour, Brief, Patient, behaviour, check_all};

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
        behaviour("silence", Patient, &["timed_out"], vec![Read]),
        behaviour(
            "an answer to nothing",
            Brief,
            &["unexpected_bytes"],
            // The first may meet a request; the second cannot.
            vec![Say(ANSWER.repeat(2)), Read],
        ),
        behaviour(
            "answers without end to a request",
            Brief,
            &["unexpected_bytes"],
            vec![Request, FloodAndRead(ANSWER.to_vec())],
        ),
        behaviour(
            "answers to what it does not read",
            Patient,
            &["unexpected_bytes", "timed_out"],
            vec![Do(answer_unread)],
        )
        .with(format!("--body {}", "x".repeat(12_000))),
        behaviour(
            "a head a byte at a time",
            Patient,
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
        behaviour(
            "a body that is cut everywhere",
            Brief,
            at_random,
            vec![Do(cut)],
        ),
        behaviour(
            "a reset everywhere",
            Brief,
            &[
                "reset",
                "idle_reset",
                "closed_before_reply",
                "truncated_head",
                "truncated_body",
            ],
            vec![Do(break_off)],
        ),
        behaviour(
            "a half-close in a head",
            Brief,
            &["truncated_head"],
            vec![Request, say(b"HTTP/1.1 2"), HalfClose],
        ),
        behaviour(
            "an announced close that does not come",
            Brief,
            &[],
            vec![
                Request,
                say(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok"),
                Wait,
            ],
        ),
        behaviour(
            "bytes after an announced close",
            Brief,
            &["unexpected_bytes"],
            vec![
                Request,
                say(
                    b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok and more",
                ),
                Read,
            ],
        ),
        behaviour(
            "zeros without end",
            Brief,
            &["malformed_head"],
            vec![Request, Flood(vec![0])],
        ),
        behaviour(
            "line ends without end",
            Brief,
            &["head_too_large", "malformed_head"],
            vec![Request, Flood(b"\r\n".into())],
        ),
        behaviour(
            "a field name without end",
            Brief,
            &["head_too_large"],
            vec![Request, with("X"), Flood(b"x".into())],
        ),
        behaviour(
            "fields of one byte without end",
            Brief,
            &["too_many_headers"],
            vec![Request, with(""), Flood(b"a:\n".into())],
        ),
        behaviour(
            "a body almost without end",
            Patient,
            &["timed_out"],
            vec![
                Request,
                with("Content-Length: 9223372036854775807\r\n\r\n"),
                FloodAndRead(vec![b'x'; 4096]),
            ],
        ),
        behaviour(
            "a body without length or end",
            Patient,
            &["timed_out"],
            vec![Request, with("\r\n"), Flood(vec![b'x'; 4096])],
        ),
        behaviour(
            "a chunk size without end",
            Brief,
            &["bad_chunk"],
            vec![
                Request,
                with("Transfer-Encoding: chunked\r\n\r\n"),
                Flood(b"0".into()),
            ],
        ),
        behaviour(
            "a trailer without end",
            Brief,
            &["trailers_too_large", "bad_chunk"],
            vec![
                Request,
                with("Transfer-Encoding: chunked\r\n\r\n0\r\nX: "),
                Flood(b"x".into()),
            ],
        ),
        behaviour(
            "interim answers a byte at a time",
            Patient,
            &["timed_out", "bad_interim"],
            vec![
                Request,
                Drip(b"HTTP/1.1 100 Continue\r\n\r\n".repeat(3), PAUSE),
                Read,
            ],
        ),
        behaviour(
            "requests read a byte at a time",
            Patient,
            &["timed_out"],
            vec![Do(read_slowly)],
        ),
    ]
}

#[test]
fn http1_on_uring() {
    check_all("uring", "http", "--http1", quiet, behaviours);
}

#[test]
fn http1_on_epoll() {
    check_all("epoll", "http", "--http1", quiet, behaviours);
}
