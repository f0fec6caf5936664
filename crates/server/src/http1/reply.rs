//! The bytes of replies of HTTP/1.1.

use crate::answer::Says;
use crate::decimal::write_decimal;
use crate::http1::request::Request;

/// The whole answer to a plain request for `/`.
pub(crate) const NULL_ANSWER: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";
/// A body up to this size is sent together with its head, by one copy.
pub(crate) const INLINE_BODY_BYTES_MAX: u64 = 16 * 1024;

/// Appends a reply's head.
pub(crate) fn write_head(out: &mut Vec<u8>, request: &Request, status: u16, says: Says) {
    out.extend_from_slice(b"HTTP/1.1 ");
    write_decimal(out, u64::from(status));
    out.push(b' ');
    out.extend_from_slice(reason(status).as_bytes());
    match says {
        Says::Nothing => {}
        Says::Length(bytes) => {
            out.extend_from_slice(b"\r\nContent-Length: ");
            write_decimal(out, bytes);
        }
        Says::RetryLater => out.extend_from_slice(b"\r\nContent-Length: 0\r\nRetry-After: 1"),
        Says::Trailer => {
            out.extend_from_slice(b"\r\nTransfer-Encoding: chunked\r\nTrailer: Brunt-Length");
        }
        Says::Link => out.extend_from_slice(b"\r\nLink: </style.css>; rel=preload"),
    }
    // RFC 9112 section 9.3: keeping is the default of HTTP/1.1, closing of HTTP/1.0.
    if !request.keep_alive {
        out.extend_from_slice(b"\r\nConnection: close");
    } else if request.http10 {
        out.extend_from_slice(b"\r\nConnection: keep-alive");
    }
    out.extend_from_slice(b"\r\n\r\n");
}

/// Appends a whole reply without a body that asks for an upgrade to WebSocket (RFC 9110 section
/// 15.5.22).
pub(crate) fn write_upgrade_required(out: &mut Vec<u8>, request: &Request) {
    write_head(out, request, 426, Says::Length(0));
    // In front of the empty line that ends the head.
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

/// The usual phrase of a status (RFC 9110 section 15); none for the unusual.
fn reason(status: u16) -> &'static str {
    match status {
        100 => "Continue",
        101 => "Switching Protocols",
        103 => "Early Hints",
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
