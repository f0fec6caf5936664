//! Requests byte by byte.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use brunt_engine::{RequestTextError, verbatim_requests};
use brunt_load::RequestSpec;
use thiserror::Error;

/// Why a text is not one request.
#[derive(Debug, Error)]
pub(crate) enum NoRequest {
    #[error(transparent)]
    Text(#[from] RequestTextError),
    #[error("a header field holds another request")]
    Several,
}

/// The request that stands in `text`.
pub(crate) fn only_request(text: &[u8]) -> Result<RequestSpec, NoRequest> {
    let mut requests = verbatim_requests(text)?.into_iter();
    match (requests.next(), requests.next()) {
        (Some(request), None) => Ok(request),
        _ => Err(NoRequest::Several),
    }
}

/// The request of HTTP/1.1 with these header fields, in this order and as they are, and this body.
pub(crate) fn request(
    method: &str,
    path: &str,
    fields: &[(String, String)],
    body: &[u8],
) -> Result<RequestSpec, NoRequest> {
    let mut text = format!("{method} {path} HTTP/1.1\r\n");
    for (name, value) in fields {
        text.push_str(&format!("{name}: {value}\r\n"));
    }
    text.push_str("\r\n");
    only_request(&[text.as_bytes(), body].concat())
}

/// A host as a URL has it: an address of IPv6 stands in brackets.
pub(crate) fn bracketed(host: &str) -> String {
    if host.contains(':') {
        format!("[{host}]")
    } else {
        host.to_owned()
    }
}

/// The value of a field that says who asks: a user and a password with a colon between them.
pub(crate) fn basic(user: &str) -> String {
    format!("Basic {}", BASE64_STANDARD.encode(user))
}
