//! The bytes of replies of HTTP/1.1.

use crate::decimal::write_decimal;
use crate::http1::request::Request;
use crate::route::Method;

/// The whole answer to a plain request for `/`.
pub(crate) const NULL_ANSWER: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";
/// A body up to this size is sent together with its head, by one copy.
pub(crate) const INLINE_BODY_BYTES_MAX: u64 = 16 * 1024;

/// How a reply's body ends, as its head states.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Length {
    Bytes(u64),
    Chunked,
    /// Nothing about it: the body ends with the connection.
    UntilClose,
    /// Nothing about it: this status has no body.
    NoBody,
}

/// Appends a reply's head. `keep_alive` is whether the connection stays open.
pub(crate) fn write_head(
    out: &mut Vec<u8>,
    request: &Request,
    status: u16,
    length: Length,
    keep_alive: bool,
) {
    out.extend_from_slice(b"HTTP/1.1 ");
    write_decimal(out, u64::from(status));
    out.push(b' ');
    out.extend_from_slice(reason(status).as_bytes());
    match length {
        Length::Bytes(bytes) => {
            out.extend_from_slice(b"\r\nContent-Length: ");
            write_decimal(out, bytes);
        }
        Length::Chunked => {
            out.extend_from_slice(b"\r\nTransfer-Encoding: chunked\r\nTrailer: Brunt-Length");
        }
        Length::UntilClose | Length::NoBody => {}
    }
    // RFC 9112 section 9.3: keeping is the default of HTTP/1.1, closing of HTTP/1.0.
    if !keep_alive {
        out.extend_from_slice(b"\r\nConnection: close");
    } else if request.http10 {
        out.extend_from_slice(b"\r\nConnection: keep-alive");
    }
    out.extend_from_slice(b"\r\n\r\n");
}

/// Appends a whole reply without a body that asks for another attempt in a second (RFC 9110
/// section 10.2.3).
pub(crate) fn write_retry_later(out: &mut Vec<u8>, request: &Request, status: u16) {
    write_head(out, request, status, Length::Bytes(0), request.keep_alive);
    // In front of the empty line that ends the head.
    out.truncate(out.len() - 2);
    out.extend_from_slice(b"Retry-After: 1\r\n\r\n");
}

/// Appends a whole reply without a body that asks for an upgrade to WebSocket (RFC 9110 section
/// 15.5.22).
pub(crate) fn write_upgrade_required(out: &mut Vec<u8>, request: &Request) {
    write_head(out, request, 426, Length::Bytes(0), request.keep_alive);
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

/// Appends a whole reply with a short text as its body.
pub(crate) fn write_text(out: &mut Vec<u8>, request: &Request, status: u16, text: &str) {
    write_head(
        out,
        request,
        status,
        Length::Bytes(text.len() as u64),
        request.keep_alive,
    );
    if request.method != Method::Head {
        out.extend_from_slice(text.as_bytes());
    }
}

/// The usual phrase of a status (RFC 9110 section 15); none for the unusual.
fn reason(status: u16) -> &'static str {
    match status {
        101 => "Switching Protocols",
        200 => "OK",
        201 => "Created",
        202 => "Accepted",
        204 => "No Content",
        206 => "Partial Content",
        301 => "Moved Permanently",
        302 => "Found",
        303 => "See Other",
        304 => "Not Modified",
        307 => "Temporary Redirect",
        308 => "Permanent Redirect",
        400 => "Bad Request",
        401 => "Unauthorized",
        403 => "Forbidden",
        404 => "Not Found",
        405 => "Method Not Allowed",
        408 => "Request Timeout",
        413 => "Content Too Large",
        426 => "Upgrade Required",
        429 => "Too Many Requests",
        500 => "Internal Server Error",
        501 => "Not Implemented",
        502 => "Bad Gateway",
        503 => "Service Unavailable",
        504 => "Gateway Timeout",
        _ => "",
    }
}
