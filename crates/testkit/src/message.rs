//! What brunt's side sends, as the simulated server finds it: in any protocol.

use std::rc::Rc;

use super::http2::frames::{Carried, FrameScanner as Http2Scanner};
use super::message_scanner::MessageScanner;
use super::piece::Completes;
use super::request::{self, Request};
use super::served_protocol::ServedProtocol;
use super::settings::SimServer;

/// Bytes of HTTP/2 that reach the server together, at most.
const PART_BYTES: usize = 16 * 1024;

/// Something on its way to the server.
#[derive(Clone, Debug)]
pub(super) enum Message {
    /// A whole request of HTTP/1.1.
    Request(Request),
    /// Bytes of HTTP/2, for the reference server.
    Http2(Rc<[u8]>, Carried),
    /// What opens a connection on which messages are exchanged.
    Opening(Rc<[u8]>),
    /// A message that is to be answered.
    Exchange(Rc<[u8]>),
    /// A part of a TLS handshake, with the server's answer to it.
    Handshake {
        answer: Rc<[u8]>,
        is_first: bool,
        completes: Completes,
    },
    /// TLS ended in an error; the answer carries the alert.
    TlsFailed { answer: Rc<[u8]> },
}

impl Message {
    /// How many requests begin with it.
    pub(super) fn requests(&self) -> u64 {
        match self {
            Self::Request(_) | Self::Exchange(_) => 1,
            Self::Http2(_, carried) => carried.requests,
            _ => 0,
        }
    }
}

/// Finds messages in the bytes of one connection, however they are cut.
#[derive(Debug)]
pub(super) enum Scanner {
    Http1(request::Scanner),
    Http2(Http2Scanner),
    Messages(Box<MessageScanner>),
}

impl Default for Scanner {
    fn default() -> Self {
        Self::Http1(request::Scanner::default())
    }
}

impl Scanner {
    /// A scanner of what is spoken with `server`.
    pub(super) fn of(served_protocol: ServedProtocol, server: &SimServer) -> Self {
        match served_protocol {
            // Nobody looks for messages in a stream, nor in what the reference server reads.
            ServedProtocol::Http1 | ServedProtocol::Streams | ServedProtocol::WebSocket => {
                Self::default()
            }
            ServedProtocol::Http2 => Self::Http2(Http2Scanner::default()),
            ServedProtocol::Messages => {
                let settings = server.messages.clone().unwrap_or_default();
                Self::Messages(Box::new(MessageScanner::new(&settings)))
            }
        }
    }

    /// Takes `bytes`; `found` gets each message with the bytes up to its end.
    pub(super) fn scan(&mut self, bytes: &[u8], mut found: impl FnMut(usize, Message)) {
        match self {
            Self::Http1(scanner) => {
                scanner.scan(bytes, |end, request| found(end, Message::Request(request)));
            }
            Self::Http2(scanner) => {
                let mut end = 0;
                for part in bytes.chunks(PART_BYTES) {
                    end += part.len();
                    found(end, Message::Http2(part.into(), scanner.scan(part)));
                }
            }
            Self::Messages(scanner) => scanner.scan(bytes, |end, is_opening, bytes| {
                let message = if is_opening {
                    Message::Opening(bytes)
                } else {
                    Message::Exchange(bytes)
                };
                found(end, message);
            }),
        }
    }
}
