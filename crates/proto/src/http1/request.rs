//! A request, encoded once before the run.

use thiserror::Error;

use crate::field_value::is_token_byte;

/// The parts of a request.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    /// Method token, case-sensitive (RFC 9110 section 9.1). Not `CONNECT`.
    pub method: &'a str,
    /// Path and query in origin form (RFC 9112 section 3.2.1), percent-encoded, without fragment;
    /// or `*` with the method `OPTIONS`.
    pub path: &'a str,
    /// Host and, where it is not the scheme's default, port: the value of `Host` unless `headers`
    /// hold one.
    pub host: &'a str,
    /// The user's header fields, names and values, sent as given and in this order.
    pub headers: &'a [(String, String)],
    /// The body, empty for none. Sent as it is, also where `headers` hold `Transfer-Encoding`:
    /// then it must be encoded already.
    pub body: &'a [u8],
    /// Asks the server to close the connection after its reply: adds `Connection: close`.
    pub close: bool,
}

/// A part of a request that its sender has given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequestPart {
    /// The path.
    Path,
    /// The value of the header field of this number, from 0.
    Value(usize),
    /// The body.
    Body,
}

/// Why a request cannot be sent.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum RequestError {
    /// The method is not a token.
    #[error("method {0:?} is not a token (RFC 9110 section 9.1)")]
    Method(String),
    /// The method is `CONNECT`.
    #[error("CONNECT asks for a tunnel and not for a reply (RFC 9110 section 9.3.6)")]
    Connect,
    /// The path does not start with `/`, or holds a fragment or anything but visible ASCII.
    #[error("path {0:?} must start with / and hold visible ASCII characters only, without #")]
    Path(String),
    /// The host is empty, or holds what ends an authority or anything but visible ASCII.
    #[error("host {0:?} must hold visible ASCII characters only, without / ? # @")]
    Host(String),
    /// A header name is not a token.
    #[error("header name {0:?} is not a token (RFC 9110 section 5.1)")]
    HeaderName(String),
    /// The value of the named header holds a line end or another control character.
    #[error("the value of header {0:?} holds a control character")]
    HeaderValue(String),
    /// More than one `Host`.
    #[error("more than one Host header")]
    RepeatedHost,
    /// A given `Content-Length` is not the body's.
    #[error("Content-Length is given as {stated:?}, but the body has {actual} bytes")]
    ContentLength {
        /// The value given.
        stated: String,
        /// Bytes of the body.
        actual: usize,
    },
    /// Both `Content-Length` and `Transfer-Encoding` are given (RFC 9112 section 6.2).
    #[error("Content-Length and Transfer-Encoding exclude each other")]
    TwoFramings,
    /// `Transfer-Encoding` is given, and the body does not end as a last chunk does.
    #[error(
        "Transfer-Encoding is given, and the body is not in chunks with a last one; give it so, or \
         leave the field out"
    )]
    NoLastChunk,
}

impl Request<'_> {
    /// The bytes of the request on the wire (RFC 9112 sections 3 and 5).
    ///
    /// Only what HTTP/1.1 asks for is added, since each field is work for the server: `Host` where
    /// the user's headers hold none; and `Content-Length` where there is a body or the method is
    /// `POST`, `PUT` or `PATCH`, unless the user's headers hold it or `Transfer-Encoding`.
    ///
    /// # Errors
    ///
    /// A part that cannot be HTTP, or that would make the server see another request than this one
    /// (line ends in a value, a length that is not the body's).
    pub fn encode(&self) -> Result<Vec<u8>, RequestError> {
        self.encode_noting(|_, _| {})
    }

    /// As [`encode`](Self::encode). Calls `note` with each part of the request and the place in the
    /// encoded bytes where it begins.
    ///
    /// # Errors
    ///
    /// As for [`encode`](Self::encode).
    pub fn encode_noting(
        &self,
        mut note: impl FnMut(RequestPart, usize),
    ) -> Result<Vec<u8>, RequestError> {
        self.check()?;
        let mut wire = Vec::with_capacity(self.size_estimate());
        note(RequestPart::Path, self.method.len() + 1);
        for part in [self.method, " ", self.path, " HTTP/1.1\r\n"] {
            wire.extend_from_slice(part.as_bytes());
        }
        if !self.has("Host") {
            put_field(&mut wire, "Host", self.host);
        }
        for (index, (name, value)) in self.headers.iter().enumerate() {
            note(RequestPart::Value(index), wire.len() + name.len() + 2);
            put_field(&mut wire, name, value);
        }
        if self.wants_length() {
            put_field(&mut wire, "Content-Length", &self.body.len().to_string());
        }
        if self.close && !self.values("Connection").any(holds_close) {
            put_field(&mut wire, "Connection", "close");
        }
        wire.extend_from_slice(b"\r\n");
        note(RequestPart::Body, wire.len());
        wire.extend_from_slice(self.body);
        Ok(wire)
    }

    /// Whether a `Content-Length` is to be added.
    pub(crate) fn wants_length(&self) -> bool {
        let has_body = !self.body.is_empty() || matches!(self.method, "POST" | "PUT" | "PATCH");
        has_body && !self.has("Content-Length") && !self.has("Transfer-Encoding")
    }

    /// Whether all parts can be HTTP, of whatever version.
    pub(crate) fn check(&self) -> Result<(), RequestError> {
        if !is_token(self.method) {
            return Err(RequestError::Method(self.method.to_owned()));
        }
        if self.method == "CONNECT" {
            return Err(RequestError::Connect);
        }
        let is_origin_form = self.path.starts_with('/') && is_visible_without(self.path, b"#");
        if !is_origin_form && (self.method, self.path) != ("OPTIONS", "*") {
            return Err(RequestError::Path(self.path.to_owned()));
        }
        for (name, value) in self.headers {
            if !is_token(name) {
                return Err(RequestError::HeaderName(name.clone()));
            }
            if value
                .bytes()
                .any(|byte| byte.is_ascii_control() && byte != b'\t')
            {
                return Err(RequestError::HeaderValue(name.clone()));
            }
        }
        match self.values("Host").count() {
            0 if self.host.is_empty() || !is_visible_without(self.host, b"/?#@") => {
                return Err(RequestError::Host(self.host.to_owned()));
            }
            0 | 1 => {}
            _ => return Err(RequestError::RepeatedHost),
        }
        self.check_framing()
    }

    fn check_framing(&self) -> Result<(), RequestError> {
        if self.has("Content-Length") && self.has("Transfer-Encoding") {
            return Err(RequestError::TwoFramings);
        }
        // The last chunk and the trailers after it end with an empty line (RFC 9112 section 7.1).
        if self.has("Transfer-Encoding") && !self.body.ends_with(b"\r\n\r\n") {
            return Err(RequestError::NoLastChunk);
        }
        let actual = self.body.len();
        for stated in self.values("Content-Length") {
            let digits = stated.trim_matches([' ', '\t']);
            let is_number = digits.bytes().all(|byte| byte.is_ascii_digit());
            if !is_number || digits.parse() != Ok(actual) {
                return Err(RequestError::ContentLength {
                    stated: stated.to_owned(),
                    actual,
                });
            }
        }
        Ok(())
    }

    fn has(&self, name: &str) -> bool {
        self.values(name).next().is_some()
    }

    /// The values of the user's fields of this name.
    pub(crate) fn values(&self, name: &str) -> impl Iterator<Item = &str> {
        let same_name = move |field: &&(String, String)| field.0.eq_ignore_ascii_case(name);
        self.headers
            .iter()
            .filter(same_name)
            .map(|(_, value)| value.as_str())
    }

    fn size_estimate(&self) -> usize {
        /// Version, line ends and the fields that may be added, without the host.
        const FIXED: usize = 160;
        let fields: usize = self
            .headers
            .iter()
            .map(|(name, value)| name.len() + value.len() + 4)
            .sum();
        FIXED + self.method.len() + self.path.len() + self.host.len() + fields + self.body.len()
    }
}

fn put_field(wire: &mut Vec<u8>, name: &str, value: &str) {
    for part in [name, ": ", value, "\r\n"] {
        wire.extend_from_slice(part.as_bytes());
    }
}

fn holds_close(value: &str) -> bool {
    value
        .split(',')
        .any(|option| option.trim().eq_ignore_ascii_case("close"))
}

fn is_token(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(is_token_byte)
}

/// Whether `text` holds only visible ASCII characters, none of them in `excluded`.
fn is_visible_without(text: &str, excluded: &[u8]) -> bool {
    text.bytes()
        .all(|byte| byte.is_ascii_graphic() && !excluded.contains(&byte))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_support::owned as fields;

    const PLAIN: Request<'_> = Request {
        method: "GET",
        path: "/",
        host: "example.org",
        headers: &[],
        body: b"",
        close: false,
    };

    /// The lines of the head, and the body.
    fn encoded(request: &Request<'_>) -> String {
        let wire = String::from_utf8(request.encode().unwrap()).unwrap();
        wire.replace("\r\n", "|")
    }

    macro_rules! encoding_cases {
        ($($name:ident: { $($part:ident: $value:expr),* } $headers:expr => $wire:literal;)+) => {
            $(#[test]
            fn $name() {
                let headers = fields(&$headers);
                let request = Request { $($part: $value,)* headers: &headers, ..PLAIN };
                assert_eq!(encoded(&request), $wire);
            })+
        };
    }

    #[test]
    fn parts_are_where_they_are_said_to_be() {
        let headers = fields(&[("A", "value"), ("Content-Type", "text/plain")]);
        for headers in [&[][..], &headers[..1], &headers] {
            let request = Request {
                method: "POST",
                path: "/path",
                headers,
                body: b"body",
                ..PLAIN
            };
            let mut noted = Vec::new();
            let wire = request.encode_noting(|part, at| noted.push((part, at)));
            let wire = wire.expect("it is one");
            assert_eq!(noted.len(), 2 + headers.len());
            assert_eq!(wire, request.encode().unwrap());
            for (part, at) in noted {
                let text: &[u8] = match part {
                    RequestPart::Path => b"/path",
                    RequestPart::Value(index) => headers[index].1.as_bytes(),
                    RequestPart::Body => b"body",
                };
                assert!(wire[at..].starts_with(text), "{part:?}");
            }
        }
    }

    encoding_cases! {
        plain: {} [] => "GET / HTTP/1.1|Host: example.org||";
        path_and_query: { path: "/a%20b?c=d&e={}|" } []
            => "GET /a%20b?c=d&e={}| HTTP/1.1|Host: example.org||";
        options_of_the_server: { method: "OPTIONS", path: "*" } []
            => "OPTIONS * HTTP/1.1|Host: example.org||";
        users_fields_in_order: {} [("B", "1"), ("A", "2"), ("B", "3"), ("Empty", "")]
            => "GET / HTTP/1.1|Host: example.org|B: 1|A: 2|B: 3|Empty: ||";
        users_fields_replace: {} [("ACCEPT", "a"), ("host", "h"), ("user-agent", "u")]
            => "GET / HTTP/1.1|ACCEPT: a|host: h|user-agent: u||";
        own_host_field_needs_no_host: { host: "" } [("Host", "h")] => "GET / HTTP/1.1|Host: h||";
        body_with_length: { method: "POST", body: b"hello" } []
            => "POST / HTTP/1.1|Host: example.org|Content-Length: 5||hello";
        body_with_get: { body: b"hello" } []
            => "GET / HTTP/1.1|Host: example.org|Content-Length: 5||hello";
        put_without_body: { method: "PUT" } []
            => "PUT / HTTP/1.1|Host: example.org|Content-Length: 0||";
        methods_are_case_sensitive: { method: "post" } [] => "post / HTTP/1.1|Host: example.org||";
        own_length: { method: "PATCH", body: b"hi" } [("content-length", "2")]
            => "PATCH / HTTP/1.1|Host: example.org|content-length: 2||hi";
        own_coding: { method: "POST", body: b"0\r\n\r\n" } [("Transfer-Encoding", "chunked")]
            => "POST / HTTP/1.1|Host: example.org|Transfer-Encoding: chunked||0||";
        close: { close: true } [] => "GET / HTTP/1.1|Host: example.org|Connection: close||";
        close_already_there: { close: true } [("connection", "TE, Close")]
            => "GET / HTTP/1.1|Host: example.org|connection: TE, Close||";
        close_beside_keep_alive: { close: true } [("Connection", "keep-alive")]
            => "GET / HTTP/1.1|Host: example.org|Connection: keep-alive|Connection: close||";
        value_beyond_ascii: {} [("X", "a\tä")] => "GET / HTTP/1.1|Host: example.org|X: a\tä||";
    }

    macro_rules! refusal_cases {
        ($($name:ident: { $($part:ident: $value:expr),* } $headers:expr => $error:expr;)+) => {
            $(#[test]
            fn $name() {
                let headers = fields(&$headers);
                let request = Request { $($part: $value,)* headers: &headers, ..PLAIN };
                assert_eq!(request.encode(), Err($error));
            })+
        };
    }

    refusal_cases! {
        method_empty: { method: "" } [] => RequestError::Method("".into());
        method_with_space: { method: "GET /x" } [] => RequestError::Method("GET /x".into());
        method_with_line_end: { method: "GET\r\n" } [] => RequestError::Method("GET\r\n".into());
        method_connect: { method: "CONNECT" } [] => RequestError::Connect;
        path_empty: { path: "" } [] => RequestError::Path("".into());
        path_relative: { path: "a" } [] => RequestError::Path("a".into());
        path_absolute_form: { path: "http://h/" } [] => RequestError::Path("http://h/".into());
        path_asterisk: { path: "*" } [] => RequestError::Path("*".into());
        path_with_space: { path: "/ HTTP/1.1" } [] => RequestError::Path("/ HTTP/1.1".into());
        path_with_line_end: { path: "/\r\nX: y" } [] => RequestError::Path("/\r\nX: y".into());
        path_with_zero: { path: "/\0" } [] => RequestError::Path("/\0".into());
        path_with_fragment: { path: "/a#b" } [] => RequestError::Path("/a#b".into());
        path_beyond_ascii: { path: "/ä" } [] => RequestError::Path("/ä".into());
        host_empty: { host: "" } [] => RequestError::Host("".into());
        host_with_line_end: { host: "h\nX: y" } [] => RequestError::Host("h\nX: y".into());
        host_with_user: { host: "u@h" } [] => RequestError::Host("u@h".into());
        host_with_path: { host: "h/" } [] => RequestError::Host("h/".into());
        host_twice: {} [("Host", "a"), ("host", "a")] => RequestError::RepeatedHost;
        name_empty: {} [("", "x")] => RequestError::HeaderName("".into());
        name_with_colon: {} [("A:", "x")] => RequestError::HeaderName("A:".into());
        name_with_space: {} [("A ", "x")] => RequestError::HeaderName("A ".into());
        name_with_line_end: {} [("A\r\nB", "x")] => RequestError::HeaderName("A\r\nB".into());
        value_with_line_end: {} [("A", "x\r\nB: y")] => RequestError::HeaderValue("A".into());
        value_with_line_feed: {} [("A", "x\n")] => RequestError::HeaderValue("A".into());
        value_with_return: {} [("A", "x\r")] => RequestError::HeaderValue("A".into());
        value_with_zero: {} [("A", "x\0")] => RequestError::HeaderValue("A".into());
        value_with_delete: {} [("A", "x\x7f")] => RequestError::HeaderValue("A".into());
        length_too_large: { body: b"hi" } [("Content-Length", "3")]
            => RequestError::ContentLength { stated: "3".into(), actual: 2 };
        length_signed: { body: b"hi" } [("Content-Length", "+2")]
            => RequestError::ContentLength { stated: "+2".into(), actual: 2 };
        length_of_nothing: {} [("Content-Length", "")]
            => RequestError::ContentLength { stated: "".into(), actual: 0 };
        length_and_coding: {} [("Content-Length", "0"), ("Transfer-Encoding", "chunked")]
            => RequestError::TwoFramings;
        coding_without_a_body: {} [("Transfer-Encoding", "chunked")] => RequestError::NoLastChunk;
    }

    #[test]
    fn encoding_takes_one_allocation() {
        let headers = fields(&[("A", "b"), ("Content-Type", "text/plain")]);
        let request = Request {
            method: "POST",
            headers: &headers,
            body: &[b'x'; 1000],
            close: true,
            ..PLAIN
        };
        let wire = request.encode().unwrap();
        assert_eq!(wire.capacity(), request.size_estimate());
    }
}
