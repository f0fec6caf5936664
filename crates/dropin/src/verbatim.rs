//! A request byte by byte, made of its parts.

use brunt_engine::{RequestTextError, verbatim_requests};
use brunt_load::RequestSpec;
use thiserror::Error;

/// Why parts make no request.
#[derive(Debug, Error)]
pub(crate) enum NoRequest {
    #[error(transparent)]
    Text(#[from] RequestTextError),
    #[error("a header field holds another request")]
    Several,
}

/// The request of HTTP/1.1 with these header fields, in this order and as they are, and this body.
///
/// # Errors
///
/// Why that is no request, or not one alone.
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
    let mut text = text.into_bytes();
    text.extend_from_slice(body);
    let mut requests = verbatim_requests(&text)?.into_iter();
    match (requests.next(), requests.next()) {
        (Some(request), None) => Ok(request),
        _ => Err(NoRequest::Several),
    }
}
