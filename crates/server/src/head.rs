//! What the fields of a request's head mean.

use brunt_proto::http2::hpack::is_text;

use crate::http1::request::{FIELDS_MAX, content_length};
use crate::route::{Method, Route};

/// All that matters of a request's head.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RequestHead {
    pub(crate) method: Method,
    pub(crate) route: Route,
    /// Length of the body as Content-Length promises.
    pub(crate) body_bytes: Option<u64>,
    /// The client waits for 100 before it sends the body (RFC 9110 section 10.1.1).
    pub(crate) expects_continue: bool,
}

/// Why a request's head or trailers cannot be accepted; the answer is 400.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Malformed {
    #[error("a field that HTTP/2 and HTTP/3 forbid, or one in a wrong place")]
    Field,
    #[error("a pseudo-header field is missing or given twice")]
    Pseudo,
    #[error("bad Content-Length, or two that differ, or another length of the body")]
    ContentLength,
    #[error("trailers that do not end the request")]
    Trailers,
    #[error("more than {FIELDS_MAX} fields")]
    TooManyFields,
}

/// RFC 9110 section 5.6.2, without upper case.
fn is_token(mut bytes: impl ExactSizeIterator<Item = u8>) -> bool {
    let is_of_token = |byte: u8| {
        byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"!#$%&'*+-.^_`|~".contains(&byte)
    };
    bytes.len() > 0 && bytes.all(is_of_token)
}

/// What the fields of one block say, or of one section.
#[derive(Debug, Default)]
pub(crate) struct GatheredFields {
    /// Fields so far, without pseudo-header fields.
    fields: usize,
    method: Option<Method>,
    route: Option<Route>,
    has_scheme: bool,
    has_authority: bool,
    body_bytes: Option<u64>,
    expects_continue: bool,
    malformed: Option<Malformed>,
}

impl GatheredFields {
    pub(crate) fn add(&mut self, name: &[u8], value: &[u8]) {
        self.fields += usize::from(!name.starts_with(b":"));
        if let Err(malformed) = self.take(name, value) {
            self.malformed.get_or_insert(malformed);
        }
    }

    fn take(&mut self, name: &[u8], value: &[u8]) -> Result<(), Malformed> {
        if !is_text(value) {
            return Err(Malformed::Field);
        }
        let text = |is_allowed: bool| {
            let text = std::str::from_utf8(value).ok();
            text.filter(|_| is_allowed).ok_or(Malformed::Field)
        };
        let is_new = match name {
            b":method" => {
                let is_method = is_token(value.iter().map(u8::to_ascii_lowercase));
                let method = Method::of(text(is_method)?);
                self.method.replace(method).is_none()
            }
            b":path" => {
                let route = Route::of(text(!value.is_empty())?);
                self.route.replace(route).is_none()
            }
            b":scheme" => !std::mem::replace(&mut self.has_scheme, true),
            b":authority" => !std::mem::replace(&mut self.has_authority, true),
            b"content-length" => {
                let length = content_length(value).ok_or(Malformed::ContentLength)?;
                let earlier = self.body_bytes.replace(length);
                let is_same = earlier.is_none_or(|earlier| earlier == length);
                return is_same.then_some(()).ok_or(Malformed::ContentLength);
            }
            b"expect" => {
                self.expects_continue |= value.eq_ignore_ascii_case(b"100-continue");
                return Ok(());
            }
            b"connection" | b"keep-alive" | b"proxy-connection" | b"transfer-encoding"
            | b"upgrade" => return Err(Malformed::Field),
            b"te" if !value.eq_ignore_ascii_case(b"trailers") => return Err(Malformed::Field),
            _ if is_token(name.iter().copied()) => return Ok(()),
            _ => return Err(Malformed::Field),
        };
        if self.fields > 0 {
            // RFC 9113 section 8.3, RFC 9114 section 4.3: all pseudo-header fields come first.
            return Err(Malformed::Field);
        }
        is_new.then_some(()).ok_or(Malformed::Pseudo)
    }

    pub(crate) fn head(self) -> Result<RequestHead, Malformed> {
        if let Some(malformed) = self.malformed {
            return Err(malformed);
        }
        if self.fields > FIELDS_MAX {
            return Err(Malformed::TooManyFields);
        }
        match (self.method, self.route) {
            (Some(method), Some(route)) if self.has_scheme => Ok(RequestHead {
                method,
                route,
                body_bytes: self.body_bytes,
                expects_continue: self.expects_continue,
            }),
            _ => Err(Malformed::Pseudo),
        }
    }

    pub(crate) fn trailers(self) -> Result<(), Malformed> {
        let has_pseudo =
            self.method.is_some() || self.route.is_some() || self.has_scheme || self.has_authority;
        match self.malformed {
            Some(malformed) => Err(malformed),
            None if has_pseudo => Err(Malformed::Field),
            None if self.fields > FIELDS_MAX => Err(Malformed::TooManyFields),
            None => Ok(()),
        }
    }
}
