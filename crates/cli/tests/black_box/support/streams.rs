//! A server over TCP that keeps how each of its streams begins, of bytes or of WebSocket, and sends
//! back what comes, or nothing.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;

use brunt_proto::websocket::accept_of;

/// Of each stream, so many bytes are kept.
const KEPT_BYTES: usize = 4_096;

/// What came on a connection.
#[derive(Clone, Debug, Default)]
pub(crate) struct Stream {
    /// The lines of its upgrade to WebSocket; none of other streams.
    pub(crate) upgrade: Vec<String>,
    /// How it begins: bytes, or the payloads of messages, each behind its opcode.
    pub(crate) kept: Vec<u8>,
}

/// The server.
#[derive(Debug)]
pub(crate) struct StreamServer {
    pub(crate) address: SocketAddr,
    streams: Arc<Mutex<Vec<Stream>>>,
    open: Arc<AtomicUsize>,
}

impl StreamServer {
    pub(crate) fn start(echoes: bool) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let server = Self {
            address: listener.local_addr().expect("bound"),
            streams: Arc::default(),
            open: Arc::default(),
        };
        let (streams, open) = (Arc::clone(&server.streams), Arc::clone(&server.open));
        thread::spawn(move || {
            for connection in listener.incoming().flatten() {
                open.fetch_add(1, Ordering::SeqCst);
                let (streams, open) = (Arc::clone(&streams), Arc::clone(&open));
                thread::spawn(move || {
                    let stream = take(connection, echoes);
                    streams.lock().expect("no thread panics").push(stream);
                    open.fetch_sub(1, Ordering::SeqCst);
                });
            }
        });
        server
    }

    /// The streams of all connections that carried something, when all have ended.
    pub(crate) fn streams(&self) -> Vec<Stream> {
        super::wait_for("all connections end", || {
            (self.open.load(Ordering::SeqCst) == 0).then_some(())
        });
        let streams = self.streams.lock().expect("no thread panics");
        let filled = streams.iter().filter(|stream| !stream.kept.is_empty());
        filled.cloned().collect()
    }
}

/// What comes on a connection, up to its end.
fn take(mut connection: TcpStream, echoes: bool) -> Stream {
    let mut stream = Stream::default();
    let mut pending: Vec<u8> = Vec::new();
    let mut is_websocket = None;
    let mut buffer = [0; 65_536];
    while let Ok(length @ 1..) = connection.read(&mut buffer) {
        pending.extend_from_slice(&buffer[..length]);
        if is_websocket.is_none() {
            let end = pending.windows(4).position(|window| window == b"\r\n\r\n");
            if pending.starts_with(b"GET ") && end.is_none() {
                continue;
            }
            let head = String::from_utf8_lossy(&pending[..end.unwrap_or(0)]).into_owned();
            let key = head
                .lines()
                .find_map(|line| line.strip_prefix("Sec-WebSocket-Key: "));
            is_websocket = Some(key.is_some());
            if let Some(key) = key {
                stream.upgrade = head.lines().map(str::to_owned).collect();
                let accept = accept_of(key.as_bytes());
                let accept = std::str::from_utf8(&accept).expect("base64");
                let reply = format!(
                    "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: \
                     Upgrade\r\nSec-WebSocket-Accept: {accept}\r\n\r\n"
                );
                let _ = connection.write_all(reply.as_bytes());
                pending.drain(..end.map_or(0, |end| end + 4));
            }
        }
        let mut out = Vec::new();
        if is_websocket == Some(true) {
            while let Some((opcode, payload)) = frame(&mut pending) {
                if opcode == 8 {
                    continue;
                }
                keep(&mut stream, &[&[opcode][..], &payload].concat());
                // What is longer is not sent by these tests.
                out.extend([0x80 | opcode, payload.len().min(125) as u8]);
                out.extend(&payload[..payload.len().min(125)]);
            }
        } else {
            keep(&mut stream, &pending);
            out = std::mem::take(&mut pending);
        }
        if echoes && connection.write_all(&out).is_err() {
            break;
        }
    }
    stream
}

fn keep(stream: &mut Stream, bytes: &[u8]) {
    let room = KEPT_BYTES.saturating_sub(stream.kept.len());
    stream
        .kept
        .extend_from_slice(&bytes[..room.min(bytes.len())]);
}

/// The first frame of a client, removed, with its payload in clear; absent while it is not whole.
fn frame(pending: &mut Vec<u8>) -> Option<(u8, Vec<u8>)> {
    let (first, second) = (*pending.first()?, *pending.get(1)?);
    let (length, head) = match second & 0x7f {
        126 => (
            u16::from_be_bytes(pending.get(2..4)?.try_into().ok()?) as usize,
            4,
        ),
        127 => (
            u64::from_be_bytes(pending.get(2..10)?.try_into().ok()?) as usize,
            10,
        ),
        length => (length as usize, 2),
    };
    let key: [u8; 4] = pending.get(head..head + 4)?.try_into().ok()?;
    let masked = pending.get(head + 4..head + 4 + length)?;
    let payload = masked
        .iter()
        .zip(key.iter().cycle())
        .map(|(byte, key)| byte ^ key)
        .collect();
    pending.drain(..head + 4 + length);
    Some((first & 15, payload))
}
