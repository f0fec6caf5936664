//! What a client needs of a reply's fields: the status, the length of the body, when to retry, and
//! whether they are well formed (RFC 9113 sections 8.2 and 8.3, RFC 9114 sections 4.2 and 4.3).

use std::marker::PhantomData;

use super::FIELD_OVERHEAD_BYTES;
use super::coding::is_text;
use super::keep::{Keep, StaticTable};
use super::reply::MalformedReply;
use crate::Limits;
use crate::field_value::{decimal, is_token_byte, list};

/// The code of gRPC for what says nothing else.
const UNKNOWN: u8 = 2;
/// Bytes that are kept of a `grpc-message`.
pub(crate) const CALL_MESSAGE_BYTES_MAX: usize = 512;

/// What a well-formed head says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Head {
    /// Status code, 100 to 999.
    pub(crate) status: u16,
    /// It reports an error, and says when to ask again (RFC 9110 section 10.2.3).
    pub(crate) retry_after: bool,
    pub(crate) content_length: ContentLength,
    /// How a call of gRPC ended, where nothing follows: the code in `grpc-status`.
    pub(crate) call_code: Option<u8>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum ContentLength {
    #[default]
    Absent,
    Bytes(u64),
    /// Malformed, or it contradicts itself.
    Bad,
}

/// What a name means to a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Name {
    Status,
    ContentLength,
    RetryAfter,
    GrpcStatus,
    GrpcMessage,
    Other,
    /// It must not be in a reply.
    Bad,
}

/// What a field means to a client; all that the dynamic table keeps of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Meaning {
    name: Name,
    /// The value is not well formed.
    is_bad: bool,
    /// The value, where it is a number of interest.
    number: u64,
}

/// A field as it is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ReadField<'a> {
    meaning: Meaning,
    /// The value of `grpc-message`; empty for another field, and for one from a table, which keeps
    /// no text.
    text: &'a [u8],
}

impl From<Meaning> for ReadField<'_> {
    #[inline]
    fn from(meaning: Meaning) -> Self {
        Self { meaning, text: &[] }
    }
}

impl Keep for Meaning {
    type Name<'a> = Name;
    type Field<'a> = ReadField<'a>;

    fn name(bytes: &[u8]) -> Name {
        name(bytes)
    }

    #[inline]
    fn static_name<'a, T: StaticTable>(place: usize) -> Self::Name<'a> {
        StaticNames::<T>::ALL[place]
    }

    #[inline]
    fn static_field<'a, T: StaticTable>(place: usize) -> Self::Field<'a> {
        let name = Self::static_name::<T>(place);
        match name {
            Name::Status | Name::ContentLength => Self::field(name, T::FIELDS[place].1),
            Name::RetryAfter | Name::GrpcStatus | Name::GrpcMessage | Name::Other | Name::Bad => {
                Self {
                    name,
                    is_bad: false,
                    number: 0,
                }
                .into()
            }
        }
    }

    fn field(name: Name, value: &[u8]) -> ReadField<'_> {
        let number = match name {
            Name::Status => status(value),
            Name::ContentLength => content_length(value),
            Name::GrpcStatus => {
                is_text(value).then(|| decimal(value.trim_ascii()).unwrap_or(UNKNOWN.into()))
            }
            // But for spaces around a value (RFC 9113 section 8.2.1): servers send them on as
            // applications set them, and clients accept them, as in HTTP/1.1.
            Name::RetryAfter | Name::GrpcMessage | Name::Other | Name::Bad => {
                is_text(value).then_some(0)
            }
        };
        let meaning = Self {
            name,
            is_bad: number.is_none(),
            number: number.unwrap_or(0),
        };
        let text = match name {
            Name::GrpcMessage => value,
            _ => &[],
        };
        ReadField { meaning, text }
    }

    #[inline]
    fn unread_field<'a>(name: Self::Name<'a>, is_text: bool) -> Option<Self::Field<'a>> {
        match name {
            Name::Status | Name::ContentLength | Name::GrpcStatus | Name::GrpcMessage => None,
            Name::RetryAfter | Name::Other | Name::Bad => Some(
                Self {
                    name,
                    is_bad: !is_text,
                    number: 0,
                }
                .into(),
            ),
        }
    }

    fn keep(field: ReadField<'_>) -> Self {
        field.meaning
    }

    fn kept_name(&self) -> Name {
        self.name
    }

    #[inline]
    fn kept_field(&self) -> ReadField<'_> {
        (*self).into()
    }
}

const fn name(bytes: &[u8]) -> Name {
    match bytes {
        b":status" => Name::Status,
        b"content-length" => Name::ContentLength,
        b"retry-after" => Name::RetryAfter,
        b"grpc-status" => Name::GrpcStatus,
        b"grpc-message" => Name::GrpcMessage,
        // RFC 9113 section 8.2.2, RFC 9114 section 4.2.
        b"" | b"connection" | b"keep-alive" | b"proxy-connection" | b"transfer-encoding"
        | b"upgrade" => Name::Bad,
        _ => {
            let mut place = 0;
            while place < bytes.len() {
                // Not in upper case (RFC 9113 section 8.2.1, RFC 9114 section 4.2).
                if !is_token_byte(bytes[place]) || bytes[place].is_ascii_uppercase() {
                    return Name::Bad;
                }
                place += 1;
            }
            Name::Other
        }
    }
}

/// What the names of a static table mean.
struct StaticNames<T>(PhantomData<T>);

impl<T: StaticTable> StaticNames<T> {
    /// That of each field; HPACK's table has 61, QPACK's 99.
    const ALL: &'static [Name; 99] = &{
        let mut names = [Name::Bad; 99];
        let mut place = 0;
        while place < T::FIELDS.len() {
            names[place] = name(T::FIELDS[place].0);
            place += 1;
        }
        names
    };
}

fn status(value: &[u8]) -> Option<u64> {
    (value.len() == 3)
        .then(|| decimal(value))
        .flatten()
        .filter(|status| *status >= 100)
}

/// RFC 9110 section 8.6: a repeated value is allowed, a different one is not.
fn content_length(value: &[u8]) -> Option<u64> {
    let mut items = list(value);
    let first = decimal(items.next()?)?;
    items
        .all(|item| decimal(item) == Some(first))
        .then_some(first)
}

/// What the fields of one block add up to.
#[derive(Debug, Default)]
pub(crate) struct ReplyFields {
    /// Regular fields, without pseudo-header fields.
    fields: u32,
    /// Bytes of the fields, as [`Limits::head_bytes`] counts them.
    bytes: u64,
    /// Whether a field came that is not well formed.
    is_bad: bool,
    has_pseudo: bool,
    has_regular: bool,
    status: Option<u16>,
    retry_after: bool,
    content_length: ContentLength,
    /// The code in `grpc-status`.
    call_code: Option<u8>,
    /// The beginning of `grpc-message`.
    call_message: Option<Box<str>>,
}

impl ReplyFields {
    #[inline]
    pub(crate) fn add(&mut self, field: ReadField<'_>, bytes: usize) {
        let ReadField {
            meaning: field,
            text,
        } = field;
        self.bytes += bytes as u64 + u64::from(FIELD_OVERHEAD_BYTES);
        match field.name {
            Name::Status => {
                // Before all regular fields, and once (RFC 9113 section 8.3).
                self.is_bad |= field.is_bad || self.has_pseudo || self.has_regular;
                self.has_pseudo = true;
                self.status = u16::try_from(field.number).ok();
                return;
            }
            Name::ContentLength => {
                self.content_length = match self.content_length {
                    _ if field.is_bad => ContentLength::Bad,
                    ContentLength::Absent => ContentLength::Bytes(field.number),
                    ContentLength::Bytes(bytes) if bytes == field.number => {
                        ContentLength::Bytes(bytes)
                    }
                    _ => ContentLength::Bad,
                };
            }
            Name::RetryAfter => {
                self.retry_after = true;
                self.is_bad |= field.is_bad;
            }
            Name::GrpcStatus => {
                let code = u8::try_from(field.number).unwrap_or(UNKNOWN);
                let is_other = self.call_code.is_some_and(|before| before != code);
                self.call_code = Some(if is_other { UNKNOWN } else { code });
                self.is_bad |= field.is_bad;
            }
            Name::GrpcMessage => {
                self.is_bad |= field.is_bad;
                self.note_call_message(text);
            }
            Name::Other => self.is_bad |= field.is_bad,
            Name::Bad => self.is_bad = true,
        }
        self.fields += 1;
        self.has_regular = true;
    }

    /// Copies the text of a `grpc-message`, its beginning.
    #[cold]
    fn note_call_message(&mut self, text: &[u8]) {
        let kept = &text[..text.len().min(CALL_MESSAGE_BYTES_MAX)];
        if !kept.is_empty() {
            self.call_message = Some(String::from_utf8_lossy(kept).into());
        }
    }

    fn check(&self, limits: &Limits) -> Result<(), MalformedReply> {
        if self.bytes > limits.head_bytes.into() {
            Err(MalformedReply::HeadTooLarge)
        } else if self.fields > limits.header_fields.into() {
            Err(MalformedReply::TooManyHeaders)
        } else if self.is_bad {
            Err(MalformedReply::Head)
        } else {
            Ok(())
        }
    }

    pub(crate) fn head(&self, limits: &Limits) -> Result<Head, MalformedReply> {
        self.check(limits)?;
        let status = self.status.ok_or(MalformedReply::Head)?;
        Ok(Head {
            status,
            retry_after: status >= 400 && self.retry_after,
            content_length: self.content_length,
            call_code: self.call_code,
        })
    }

    /// What the server said of a call of gRPC that failed.
    #[inline]
    pub(crate) fn take_call_message(&mut self) -> Option<Box<str>> {
        let message = self.call_message.take();
        message.filter(|_| self.call_code.is_some_and(|code| code != 0))
    }

    /// Gives how a call of gRPC ended: the code in `grpc-status`.
    pub(crate) fn trailers(&self, limits: &Limits) -> Result<Option<u8>, MalformedReply> {
        self.check(limits)?;
        if self.has_pseudo {
            return Err(MalformedReply::Head);
        }
        Ok(self.call_code)
    }
}
