//! What the fields of a request's head mean.

use brunt_proto::http2::hpack::{Keep, is_text};

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

/// What a name means here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Name {
    Method,
    Scheme,
    Authority,
    Path,
    ContentLength,
    Expect,
    Te,
    Other,
    /// RFC 9113 section 8.2, RFC 9114 section 4.2: upper case, no token, of a connection of
    /// HTTP/1.1, an unknown pseudo-header.
    Forbidden,
}

/// What a field means here; also what the dynamic table of HTTP/2 keeps of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Field {
    Method(Method),
    Scheme,
    Authority,
    Path(Route),
    /// Content-Length; absent: its value is not a number.
    ContentLength(Option<u64>),
    ExpectContinue,
    Other,
    Forbidden,
}

/// An entry of the dynamic table.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Entry {
    name: Name,
    field: Field,
}

impl Keep for Entry {
    type Name<'a> = Name;
    type Field<'a> = Self;

    fn name(bytes: &[u8]) -> Name {
        match bytes {
            b":method" => Name::Method,
            b":scheme" => Name::Scheme,
            b":authority" => Name::Authority,
            b":path" => Name::Path,
            b"content-length" => Name::ContentLength,
            b"expect" => Name::Expect,
            b"te" => Name::Te,
            b"connection" | b"keep-alive" | b"proxy-connection" | b"transfer-encoding"
            | b"upgrade" => Name::Forbidden,
            _ if is_token(bytes) => Name::Other,
            _ => Name::Forbidden,
        }
    }

    fn field(name: Name, value: &[u8]) -> Self {
        let field = match name {
            _ if !is_text(value) => Field::Forbidden,
            Name::Method => match std::str::from_utf8(value) {
                Ok(name) if is_token(&value.to_ascii_lowercase()) => {
                    Field::Method(Method::of(name))
                }
                _ => Field::Forbidden,
            },
            Name::Scheme => Field::Scheme,
            Name::Authority => Field::Authority,
            Name::Path => match std::str::from_utf8(value) {
                Ok("") | Err(_) => Field::Forbidden,
                Ok(path) => Field::Path(Route::of(path)),
            },
            Name::ContentLength => Field::ContentLength(content_length(value)),
            Name::Expect if value.eq_ignore_ascii_case(b"100-continue") => Field::ExpectContinue,
            Name::Te if !value.eq_ignore_ascii_case(b"trailers") => Field::Forbidden,
            Name::Expect | Name::Te | Name::Other => Field::Other,
            Name::Forbidden => Field::Forbidden,
        };
        Self { name, field }
    }

    fn unread_field<'a>(name: Self::Name<'a>, is_text: bool) -> Option<Self::Field<'a>> {
        let field = match name {
            Name::Scheme => Field::Scheme,
            Name::Authority => Field::Authority,
            Name::Other => Field::Other,
            Name::Forbidden => Field::Forbidden,
            Name::Method | Name::Path | Name::ContentLength | Name::Expect | Name::Te => {
                return None;
            }
        };
        let field = if is_text { field } else { Field::Forbidden };
        Some(Self { name, field })
    }

    fn keep(entry: Self) -> Self {
        entry
    }

    fn kept_name(&self) -> Name {
        self.name
    }

    fn kept_field(&self) -> Self {
        *self
    }
}

/// RFC 9110 section 5.6.2, without upper case.
fn is_token(bytes: &[u8]) -> bool {
    !bytes.is_empty()
        && bytes.iter().all(|byte| {
            byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"!#$%&'*+-.^_`|~".contains(byte)
        })
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
    pub(crate) fn add(&mut self, entry: Entry) {
        let field = entry.field;
        let is_pseudo = matches!(
            field,
            Field::Method(_) | Field::Path(_) | Field::Scheme | Field::Authority
        );
        self.fields += usize::from(!is_pseudo);
        if let Err(malformed) = self.take(field) {
            self.malformed.get_or_insert(malformed);
        }
    }

    fn take(&mut self, field: Field) -> Result<(), Malformed> {
        let is_new = match field {
            Field::Method(method) => self.method.replace(method).is_none(),
            Field::Path(route) => self.route.replace(route).is_none(),
            Field::Scheme => !std::mem::replace(&mut self.has_scheme, true),
            Field::Authority => !std::mem::replace(&mut self.has_authority, true),
            Field::Forbidden => return Err(Malformed::Field),
            Field::ContentLength(length) => {
                let length = length.ok_or(Malformed::ContentLength)?;
                let earlier = self.body_bytes.replace(length);
                let is_same = earlier.is_none_or(|earlier| earlier == length);
                return is_same.then_some(()).ok_or(Malformed::ContentLength);
            }
            Field::ExpectContinue => {
                self.expects_continue = true;
                return Ok(());
            }
            Field::Other => return Ok(()),
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
