//! What brunt's side sends, as the simulated server finds it: in either protocol.

use std::rc::Rc;

use super::http2::reader::{Frame, Reader};
use super::piece::Completes;
use super::request::{self, Request};

/// Something on its way to the server.
#[derive(Clone, Debug)]
pub(super) enum Message {
    /// A whole request of HTTP/1.1.
    Request(Request),
    /// A frame of HTTP/2.
    Frame(Frame),
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
    /// Whether a request begins with it.
    pub(super) fn begins_request(&self) -> bool {
        matches!(self, Self::Request(_) | Self::Frame(Frame::Head { .. }))
    }
}

/// Finds messages in the bytes of one connection, however they are cut.
#[derive(Debug)]
pub(super) enum Scanner {
    Http1(request::Scanner),
    Http2(Box<Reader>),
}

impl Default for Scanner {
    fn default() -> Self {
        Self::Http1(request::Scanner::default())
    }
}

impl Scanner {
    /// A scanner of HTTP/2 or HTTP/1.1; in HTTP/2 brunt's dynamic table has `table_bytes` at most.
    pub(super) fn of(is_http2: bool, table_bytes: u32) -> Self {
        if is_http2 {
            Self::Http2(Box::new(Reader::new(table_bytes)))
        } else {
            Self::default()
        }
    }

    /// Takes `bytes`; `found` gets each message with the bytes up to its end.
    pub(super) fn scan(&mut self, bytes: &[u8], mut found: impl FnMut(usize, Message)) {
        match self {
            Self::Http1(scanner) => {
                scanner.scan(bytes, |end, request| found(end, Message::Request(request)));
            }
            Self::Http2(reader) => {
                reader.scan(bytes, |end, frame| found(end, Message::Frame(frame)));
            }
        }
    }
}
