//! Hostile servers of HTTP/2, beside those of the reference server's `/malformed`.

use std::io::{self, Read as _, Write};
use std::sync::Arc;
use std::time::Duration;

use crate::support::hostile::Step::{self, Do, Drip, FloodAndRead, HalfClose, Read, Reset, Say};
use crate::support::hostile::{Peer, Serve};

use super::{Behaviour, brief, check_all, patient};

const PREFACE_BYTES: usize = 24;

const DATA: u8 = 0;
const HEADERS: u8 = 1;
const RST_STREAM: u8 = 3;
const SETTINGS: u8 = 4;
const GOAWAY: u8 = 7;
const UNKNOWN: u8 = 0xbb;

const END_STREAM: u8 = 1;
const ACK: u8 = 1;
const END_HEADERS: u8 = 4;
const PADDED: u8 = 8;

/// The first stream of a connection, and the second.
const FIRST: u32 = 1;
const SECOND: u32 = 3;
/// `:status: 200` in HPACK's static table.
const OK: u8 = 0x88;

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let mut bytes = (payload.len() as u32).to_be_bytes()[1..].to_vec();
    bytes.extend_from_slice(&[kind, flags]);
    bytes.extend_from_slice(&stream.to_be_bytes());
    bytes.extend_from_slice(payload);
    bytes
}

fn setting(id: u16, value: u32) -> Vec<u8> {
    frame(
        SETTINGS,
        0,
        0,
        &[&id.to_be_bytes()[..], &value.to_be_bytes()].concat(),
    )
}

fn goaway(last: u32, code: u32, words: usize) -> Vec<u8> {
    let mut payload = [last.to_be_bytes(), code.to_be_bytes()].concat();
    payload.resize(8 + words, b'x');
    frame(GOAWAY, 0, 0, &payload)
}

fn reset_stream(stream: u32, code: u32) -> Vec<u8> {
    frame(RST_STREAM, 0, stream, &code.to_be_bytes())
}

fn head(flags: u8, block: &[u8]) -> Vec<u8> {
    frame(HEADERS, flags, FIRST, block)
}

/// A literal field that enters the dynamic table.
fn indexed_field(name: &[u8], value: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0x40, name.len() as u8];
    bytes.extend_from_slice(name);
    // Lengths of 127 to 254 take two bytes.
    bytes.extend_from_slice(&[0x7f, (value.len() - 127) as u8]);
    bytes.extend_from_slice(value);
    bytes
}

/// One frame's header and payload.
fn read_frame(peer: &mut Peer) -> io::Result<(u8, u8, u32)> {
    let mut header = [0; 9];
    peer.stream.read_exact(&mut header)?;
    let length = u32::from_be_bytes([0, header[0], header[1], header[2]]);
    let mut payload = vec![0; length as usize];
    peer.stream.read_exact(&mut payload)?;
    let stream = u32::from_be_bytes([header[5], header[6], header[7], header[8]]);
    Ok((header[3], header[4], stream))
}

fn read_preface(peer: &mut Peer) -> io::Result<()> {
    peer.stream.read_exact(&mut [0; PREFACE_BYTES])
}

/// Says the first words of a server, as it should.
fn greet(peer: &mut Peer) -> io::Result<()> {
    read_preface(peer)?;
    peer.stream.write_all(&frame(SETTINGS, 0, 0, &[]))?;
    peer.stream.write_all(&frame(SETTINGS, ACK, 0, &[]))
}

/// Reads frames up to the head of a request.
fn request(peer: &mut Peer) -> io::Result<()> {
    while read_frame(peer)?.0 != HEADERS {}
    Ok(())
}

/// Answers every request.
fn quiet() -> Serve {
    Arc::new(|peer| {
        greet(peer)?;
        loop {
            let (kind, flags, stream) = read_frame(peer)?;
            if matches!(kind, HEADERS | DATA) && flags & END_STREAM > 0 {
                let answer = frame(HEADERS, END_STREAM | END_HEADERS, stream, &[OK]);
                peer.stream.write_all(&answer)?;
            }
        }
    })
}

/// Resets every stream with another code.
fn reset_streams(peer: &mut Peer) -> io::Result<()> {
    loop {
        let (kind, _, stream) = read_frame(peer)?;
        if kind == HEADERS {
            let code = stream / 2 % 20;
            peer.stream.write_all(&reset_stream(stream, code))?;
        }
    }
}

/// Greets and answers, up to one byte more each time.
fn cut(peer: &mut Peer) -> io::Result<()> {
    let mut bytes = frame(SETTINGS, 0, 0, &[0, 3, 0, 0, 0, 100]);
    let greeting = bytes.len();
    bytes.extend(frame(HEADERS, END_HEADERS, FIRST, &[OK]));
    bytes.extend(frame(DATA, END_STREAM, FIRST, b"0123456789"));
    let end = peer.number as usize % bytes.len();
    read_preface(peer)?;
    peer.stream.write_all(&bytes[..end.min(greeting)])?;
    if end >= greeting {
        request(peer)?;
        peer.stream.write_all(&bytes[greeting..end])?;
    }
    Ok(())
}

/// Greets, takes a request, and does this.
fn after_request(steps: Vec<Step>) -> Vec<Step> {
    let mut all = vec![Do(greet), Do(request)];
    all.extend(steps);
    all
}

/// Instead of a greeting.
fn at_first(bytes: Vec<u8>) -> Vec<Step> {
    vec![Do(read_preface), Say(bytes), Read]
}

pub(super) fn behaviours() -> Vec<Behaviour> {
    const PAUSE: Duration = Duration::from_millis(60);
    const CODES: &[&str] = &[
        "stream_no_error",
        "stream_protocol_error",
        "stream_internal_error",
        "stream_flow_control_error",
        "stream_settings_timeout",
        "stream_closed",
        "stream_frame_size_error",
        "stream_refused",
        "stream_cancelled",
        "stream_compression_error",
        "stream_connect_error",
        "stream_enhance_your_calm",
        "stream_inadequate_security",
        "stream_http11_required",
        "stream_other_code",
    ];
    // A flood ends with the connection, by the limit of what waits or by that of the request.
    // The first is an error of the connection where no request is in flight.
    let flooded = &["unexpected_bytes", "http2_error", "timed_out", "unanswered"];
    let late = &["timed_out", "unanswered"];
    let toggles = |id, on, off| [setting(id, on), setting(id, off)].concat();
    let entry = indexed_field(b"bomb", &[b'x'; 200]);
    vec![
        patient(
            "h2: settings a byte at a time",
            &["handshake_timed_out"],
            vec![Do(read_preface), Drip(setting(3, 100), PAUSE), Read],
        ),
        brief(
            "h2: an answer of HTTP/1.1",
            &["other_protocol"],
            at_first(b"HTTP/1.1 400 Bad Request\r\n\r\n".into()),
        ),
        brief(
            "h2: settings of no whole length",
            &["other_protocol"],
            at_first(frame(SETTINGS, 0, 0, &[0; 5])),
        ),
        brief(
            "h2: a reset after the preface",
            &["handshake_cut"],
            vec![Do(read_preface), Reset],
        ),
        brief(
            "h2: cut everywhere",
            &["handshake_cut", "closed_before_reply", "truncated_body"],
            vec![Do(cut)],
        ),
        patient("h2: silence", late, after_request(vec![Read])),
        brief(
            "h2: a half-close",
            &["closed_before_reply"],
            after_request(vec![HalfClose]),
        ),
        patient(
            "h2: no streams and again some",
            flooded,
            vec![Do(greet), FloodAndRead(toggles(3, 0, 1))],
        ),
        patient(
            "h2: windows up and down",
            flooded,
            after_request(vec![FloodAndRead(toggles(4, 0, (1 << 31) - 1))]),
        ),
        patient(
            "h2: tables up and down",
            flooded,
            after_request(vec![FloodAndRead(toggles(1, 0, u32::MAX))]),
        ),
        patient(
            "h2: unknown frames without end",
            flooded,
            after_request(vec![FloodAndRead(frame(
                UNKNOWN,
                0xff,
                0x7fff_ffff,
                b"unknown",
            ))]),
        ),
        patient(
            "h2: no window at all",
            late,
            vec![Do(read_preface), Say(setting(4, 0)), Read],
        )
        .with("--body hello"),
        brief(
            "h2: no streams at all",
            &[],
            vec![Do(read_preface), Say(setting(3, 0)), Read],
        ),
        patient(
            "h2: padding without data",
            flooded,
            after_request(vec![
                Say(head(END_HEADERS, &[OK])),
                FloodAndRead(frame(DATA, PADDED, FIRST, &{
                    let mut padding = [0; 256];
                    padding[0] = 255;
                    padding
                })),
            ]),
        ),
        brief(
            "h2: a bomb of HPACK",
            &["http2_error", "head_too_large", "too_many_headers"],
            after_request(vec![
                Say(head(
                    END_HEADERS,
                    &[&[OK][..], &entry, &[0xbe; 16_000]].concat(),
                )),
                Read,
            ]),
        ),
        brief(
            "h2: an integer of HPACK without end",
            &["http2_error"],
            after_request(vec![Say(head(END_HEADERS, &[0xff; 1_000])), Read]),
        ),
        brief(
            "h2: streams reset with every code",
            CODES,
            vec![Do(greet), Do(reset_streams)],
        ),
        patient(
            "h2: one stream reset without end",
            &["stream_cancelled", "timed_out", "unanswered", "http2_error"],
            after_request(vec![FloodAndRead(reset_stream(FIRST, 8))]),
        ),
        patient(
            "h2: GOAWAY and no answer",
            &["not_processed", "timed_out", "unanswered"],
            after_request(vec![Say(goaway(SECOND, 0, 0)), Read]),
        ),
        patient(
            "h2: GOAWAY without end",
            &["not_processed", "timed_out", "http2_error", "unanswered"],
            after_request(vec![FloodAndRead(goaway(FIRST, 0, 16_000))]),
        ),
        patient(
            "h2: an answer twice",
            late,
            after_request(vec![
                Say(head(END_STREAM | END_HEADERS, &[OK]).repeat(2)),
                Read,
            ]),
        ),
    ]
}

#[test]
fn http2_on_uring() {
    check_all("uring", "http", "--http2 --streams 4", quiet, behaviours());
}

#[test]
fn http2_on_epoll() {
    check_all("epoll", "http", "--http2 --streams 4", quiet, behaviours());
}
