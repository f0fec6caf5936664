//! Messages over a stream of bytes, framed in one of several ways: what is sent, and where what
//! comes back ends.

mod framing;
mod pattern;
mod resp;
mod scanner;
mod template;

pub use framing::{ByteOrder, EscapeError, Framing, FramingError, LengthField, escape, unescape};
pub use pattern::{Pattern, TextPattern, TextPatternError};
pub use resp::{RespError, RespKind};
pub use scanner::{ScanError, Scanned, Scanner};
pub use template::{Place, Template, TemplateError, Values};
