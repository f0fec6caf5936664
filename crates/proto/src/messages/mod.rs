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
