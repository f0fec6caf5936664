//! The parts of a request, the rules for them, and the fields that they become.

use thiserror::Error;

use crate::http1;

/// The parts of a request.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    /// Method token, case-sensitive (RFC 9110 section 9.1). Not `CONNECT`.
    pub method: &'a str,
    /// `http` or `https`.
    pub scheme: &'a str,
    /// Host and, where it is not the scheme's default, port: `:authority` unless `headers` hold
    /// `Host`, which takes its place.
    pub authority: &'a str,
    /// Path and query, percent-encoded, without fragment; or `*` with the method `OPTIONS`.
    pub path: &'a str,
    /// The user's header fields, names and values, sent in this order, names in lower case, values
    /// without spaces around them.
    pub headers: &'a [(String, String)],
    /// The body, empty for none.
    pub body: &'a [u8],
}

/// Why a request cannot be sent.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum RequestError {
    /// It breaks a rule of every version of HTTP.
    #[error(transparent)]
    Malformed(#[from] http1::RequestError),
    /// The scheme is neither `http` nor `https`.
    #[error("scheme {0:?} is neither http nor https")]
    Scheme(String),
    /// A header belongs to HTTP/1.1 connections and must not be sent (RFC 9113 section 8.2.2,
    /// RFC 9114 section 4.2).
    #[error("header {0:?} is about HTTP/1.1 connections and exists there alone; leave it out")]
    ConnectionSpecific(String),
}

/// A field to be sent, its name in lower case.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Field {
    pub(crate) name: String,
    pub(crate) value: String,
}

impl Field {
    fn new(name: &str, value: &str) -> Self {
        Self {
            name: name.to_owned(),
            value: value.to_owned(),
        }
    }

    /// Not for any table: secrets that can be guessed from what compresses well (RFC 7541 section
    /// 7.1.3, RFC 9204 section 7.1.3).
    pub(crate) fn is_secret(&self) -> bool {
        match self.name.as_str() {
            "authorization" | "proxy-authorization" => true,
            "cookie" => self.value.len() < 20,
            _ => false,
        }
    }
}

/// The fields of a request, in the order in which they are sent (RFC 9113 section 8.3.1, RFC 9114
/// section 4.3.1).
pub(crate) fn fields(request: &Request<'_>) -> Result<Vec<Field>, RequestError> {
    if !matches!(request.scheme, "http" | "https") {
        return Err(RequestError::Scheme(request.scheme.to_owned()));
    }
    for (name, value) in request.headers {
        if is_connection_specific(name, value) {
            return Err(RequestError::ConnectionSpecific(name.clone()));
        }
    }
    // The rules for the parts are the same in all versions.
    let parts = http1::Request {
        method: request.method,
        path: request.path,
        host: request.authority,
        headers: request.headers,
        body: request.body,
        close: false,
    };
    parts.check()?;
    let host = parts.values("Host").next();
    let authority = host.map_or(request.authority, trimmed);
    let mut fields = vec![
        Field::new(":method", request.method),
        Field::new(":scheme", request.scheme),
        Field::new(":authority", authority),
        Field::new(":path", request.path),
    ];
    for (name, value) in request.headers {
        if !name.eq_ignore_ascii_case("host") {
            fields.push(Field::new(&name.to_ascii_lowercase(), trimmed(value)));
        }
    }
    if parts.wants_length() {
        let length = request.body.len().to_string();
        fields.push(Field::new("content-length", &length));
    }
    Ok(fields)
}

/// Whether it is a call of gRPC, by its `content-type`: its reply says in `grpc-status` whether it
/// succeeded. gRPC-Web has another type, and no trailers.
pub(crate) fn is_call(request: &Request<'_>) -> bool {
    const TYPE: &str = "application/grpc";
    let is_of_call = |value: &str| {
        let (found, rest) = value.split_at_checked(TYPE.len()).unwrap_or_default();
        found.eq_ignore_ascii_case(TYPE) && (rest.is_empty() || rest.starts_with(['+', ';', ' ']))
    };
    let mut headers = request.headers.iter();
    headers.any(|(name, value)| {
        name.eq_ignore_ascii_case("content-type") && is_of_call(trimmed(value))
    })
}

/// RFC 9113 section 8.2.2, RFC 9114 section 4.2.
fn is_connection_specific(name: &str, value: &str) -> bool {
    match name.to_ascii_lowercase().as_str() {
        "connection" | "keep-alive" | "proxy-connection" | "transfer-encoding" | "upgrade" => true,
        "te" => !trimmed(value).eq_ignore_ascii_case("trailers"),
        _ => false,
    }
}

/// A value without the spaces around it, which are no part of it (RFC 9110 section 5.5).
fn trimmed(value: &str) -> &str {
    value.trim_matches([' ', '\t'])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_support::{PLAIN, owned};

    #[test]
    fn calls_are_known_by_their_type() {
        for (name, value, expected) in [
            ("content-type", "application/grpc", true),
            ("Content-Type", " Application/GRPC+proto", true),
            ("content-type", "application/grpc;x=y", true),
            ("content-type", "application/grpc-web+proto", false),
            ("content-type", "application/json", false),
            ("content-type", "application/gr\u{f6}c", false),
            ("content-type", "", false),
            ("accept", "application/grpc", false),
        ] {
            let request = Request {
                headers: &owned(&[(name, value)]),
                ..PLAIN
            };
            assert_eq!(is_call(&request), expected, "{name}: {value}");
        }
    }
}
