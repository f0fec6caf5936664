//! Requests byte by byte, and the plans that send one over and over.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use brunt_load::{
    HttpChoice, Plan, RequestSet, RequestSpec, RequestTextError, Scheme, Target, verbatim_requests,
};
use thiserror::Error;

use crate::libraries::SECOND_NS;

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

/// The text of a request of these lines, and of this body.
pub(crate) fn text(lines: &[String], body: &[u8]) -> Vec<u8> {
    [lines.join("\r\n").as_bytes(), b"\r\n\r\n", body].concat()
}

/// The first of the header lines of this name, which is in lower case with its colon.
pub(crate) fn line_of<'a>(lines: &'a [String], name: &str) -> Option<&'a str> {
    let mut lines = lines.iter().map(String::as_str);
    lines.find(|line| {
        let start = line.get(..name.len());
        start.is_some_and(|start| start.eq_ignore_ascii_case(name))
    })
}

/// The plan of a tool that speaks HTTP/1.1 and begins at once: connections that are not there by
/// then are tried for on.
pub(crate) fn plan(target: Target, request: RequestSpec) -> Plan {
    let mut plan = Plan::bare(target, RequestSet::one(request));
    plan.connection.protocol = HttpChoice::HTTP1.into();
    plan.limits.setup_timeout_ns = Some(10 * SECOND_NS);
    plan
}

/// The server that has this name for those who ask it.
pub(crate) fn target(scheme: Scheme, authority: &str, path: &str) -> Target {
    Target {
        url: format!("{}://{authority}{path}", scheme.name()),
        scheme,
        host: String::new(),
        port: 0,
        authority: authority.to_owned(),
        path: path.to_owned(),
        unix_socket: None,
    }
}

/// The request of HTTP/1.1 with these header fields, in this order and as they are, and this body.
pub(crate) fn request(
    method: &str,
    path: &str,
    fields: &[(String, String)],
    body: &[u8],
) -> Result<RequestSpec, NoRequest> {
    let mut lines = vec![format!("{method} {path} HTTP/1.1")];
    lines.extend(
        fields
            .iter()
            .map(|(name, value)| format!("{name}: {value}")),
    );
    only_request(&text(&lines, body))
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
