//! What brunt's side sends, as the simulated server finds it: in any protocol.

use std::rc::Rc;

use super::message_scanner::MessageScanner;
use super::piece::Completes;
use super::request::{self, ReceivedRequest};
use super::served_protocol::ServedProtocol;
use super::settings::SimServer;

/// Something on its way to the server.
#[derive(Clone, Debug)]
pub(super) enum Message {
    /// A whole request of HTTP/1.1.
    Request(ReceivedRequest),
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
            _ => 0,
        }
    }
}

/// Finds messages in the bytes of one connection, however they are cut.
#[derive(Debug)]
pub(super) enum Scanner {
    Http1(request::Scanner),
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
            ServedProtocol::Http1
            | ServedProtocol::Http2
            | ServedProtocol::Streams
            | ServedProtocol::WebSocket => Self::default(),
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
