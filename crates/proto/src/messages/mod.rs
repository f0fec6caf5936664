//! Messages over a stream of bytes, framed in one of several ways: what is sent, and where what
//! comes back ends.

mod escape;
mod framing;
mod pattern;
mod resp;
mod scanner;
mod template;

pub use escape::{EscapeError, escape, unescape};
pub use framing::{ByteOrder, Framing, FramingError, LengthField};
pub use pattern::{Pattern, TextPattern, TextPatternError};
pub use resp::{RespError, RespKind};
pub use scanner::{ScanError, Scanned, Scanner};
pub use template::{Place, Template, TemplateError, Values};

/// Stores a type as its text, and reads it from that.
macro_rules! stored_as_text {
    ($($type:ident),*) => {$(
        impl serde::Serialize for $type {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        impl<'de> serde::Deserialize<'de> for $type {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = String::deserialize(deserializer)?;
                text.parse().map_err(serde::de::Error::custom)
            }
        }
    )*};
}

stored_as_text!(Framing, Pattern, Template);
