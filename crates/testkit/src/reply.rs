//! The answers of the simulated server in HTTP/1.1: made once, sent again and again.

use std::collections::BTreeMap;
use std::rc::Rc;

use super::settings::{Framing, SimServer};

/// Most bytes of one chunk.
const CHUNK_BYTES: usize = 16 * 1024;

/// Which of the answers: with or without a body (HEAD), on a connection that is kept or not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct ReplyTemplate {
    pub(super) status: u16,
    pub(super) is_head: bool,
    pub(super) closes: bool,
}

/// All answers of one server that it gave.
#[derive(Debug, Default)]
pub(super) struct Replies(BTreeMap<ReplyTemplate, Rc<[u8]>>);

impl Replies {
    /// The bytes of an answer.
    pub(super) fn bytes(&mut self, server: &SimServer, template: ReplyTemplate) -> Rc<[u8]> {
        let made = || encode(server, template).into();
        Rc::clone(self.0.entry(template).or_insert_with(made))
    }
}

fn encode(server: &SimServer, template: ReplyTemplate) -> Vec<u8> {
    let mut bytes = b"HTTP/1.1 103 Early Hints\r\n\r\n".repeat(server.interim as usize);
    let version = match server.framing {
        Framing::Length | Framing::Chunked => "HTTP/1.1",
        Framing::UntilClose => "HTTP/1.0",
    };
    let line = match template.status {
        429 => "429 Too Many Requests\r\nRetry-After: 1",
        503 => "503 Service Unavailable",
        _ => "200 OK",
    };
    bytes.extend_from_slice(format!("{version} {line}\r\nServer: sim\r\n").as_bytes());
    if template.closes {
        bytes.extend_from_slice(b"Connection: close\r\n");
    }
    let body = vec![b'x'; server.body_bytes as usize];
    let (field, coded) = match server.framing {
        Framing::Length => (format!("Content-Length: {}\r\n", body.len()), body),
        Framing::Chunked => ("Transfer-Encoding: chunked\r\n".to_owned(), chunked(&body)),
        Framing::UntilClose => (String::new(), body),
    };
    bytes.extend_from_slice(field.as_bytes());
    bytes.extend_from_slice(b"\r\n");
    if !template.is_head {
        bytes.extend_from_slice(&coded);
    }
    bytes
}

fn chunked(body: &[u8]) -> Vec<u8> {
    let mut coded = Vec::new();
    for chunk in body.chunks(CHUNK_BYTES) {
        coded.extend_from_slice(format!("{:x}\r\n", chunk.len()).as_bytes());
        coded.extend_from_slice(chunk);
        coded.extend_from_slice(b"\r\n");
    }
    coded.extend_from_slice(b"0\r\nTrailer: yes\r\n\r\n");
    coded
}
