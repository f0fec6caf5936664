//! A server that answers an upload before it has read it, and closes: the reply counts.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};

use brunt_load::HttpChoice;

use crate::common::{
    Kind, by_count, change_request, choice, expect_valid, failures, lifetime, many, plan, run,
    serve_each,
};

/// More than sockets hold.
const UPLOAD_BYTES: usize = 16 << 20;
/// What is read of it before the reply.
const READ_BYTES: u64 = 64 * 1024;
const REQUESTS: u64 = 12;

const HTTP1: &[u8] = b"HTTP/1.1 413 Too Large\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
/// SETTINGS and WINDOW_UPDATE: all windows are as large as can be.
const HTTP2_WINDOWS: &[u8] = b"\x00\x00\x06\x04\0\0\0\0\0\x00\x04\x7f\xff\xff\xff\
    \x00\x00\x04\x08\0\0\0\0\0\x7f\xff\x00\x00";
/// GOAWAY, HEADERS of stream 1 with the status 413 that end it, and RST_STREAM (NO_ERROR).
const HTTP2: &[u8] = b"\x00\x00\x08\x07\0\0\0\0\0\0\0\0\x01\0\0\0\0\
    \x00\x00\x05\x01\x05\0\0\0\x01\x08\x03413\
    \x00\x00\x04\x03\0\0\0\0\x01\0\0\0\0";

fn serve(greeting: &'static [u8], reply: &'static [u8]) -> SocketAddr {
    let answer = move |mut peer: TcpStream| {
        peer.write_all(greeting)?;
        let mut head = (&mut peer).take(READ_BYTES);
        let read = std::io::copy(&mut head, &mut std::io::sink())?;
        if read == READ_BYTES {
            peer.write_all(reply)?;
        }
        // Unread bytes make it a reset.
        Ok::<(), std::io::Error>(())
    };
    serve_each(move |_, peer| drop(answer(peer)))
}

fn check(kind: Kind, http: HttpChoice) {
    let address = if http == HttpChoice::HTTP2 {
        serve(HTTP2_WINDOWS, HTTP2)
    } else {
        serve(b"", HTTP1)
    };
    let mut plan = plan(&format!("http://{address}/"), choice(kind));
    plan.connection.protocol = http.into();
    plan.load.connections = many(2);
    by_count(&mut plan, REQUESTS);
    change_request(&mut plan, |request| {
        request.method = "POST".to_owned();
        request.body = vec![b'x'; UPLOAD_BYTES];
    });
    let run = run(plan);
    let what = format!("{kind:?}, {http:?}");
    assert_eq!(failures(&run), [], "{what}");
    let lifetime = lifetime(&run);
    assert_eq!(lifetime.replies.total(), REQUESTS, "{what}");
    // What the kernel took, and not what was queued.
    let queued_bytes = REQUESTS * UPLOAD_BYTES as u64;
    let expected_bytes = REQUESTS * READ_BYTES..queued_bytes;
    let sent_bytes = lifetime.bytes_sent;
    assert!(expected_bytes.contains(&sent_bytes), "{what}: {sent_bytes}");
    expect_valid(&run, &what);
}

fn they_are_seen(kind: Kind) {
    check(kind, HttpChoice::HTTP1);
    check(kind, HttpChoice::HTTP2);
}

crate::common::on_both_kernels![they_are_seen];
