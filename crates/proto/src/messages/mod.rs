//! Messages over a stream of bytes, framed in one of several ways: what is sent, and where what
//! comes back ends.

mod escape;
mod framing;
mod pattern;
mod resp;
mod scanner;
mod template;
mod text_form;
mod text_pattern;

pub use escape::{EscapeError, escape, unescape};
pub use framing::{ByteOrder, Framing, FramingError, LengthField};
pub use pattern::Pattern;
pub use resp::{RespError, RespKind};
pub use scanner::{ScanError, Scanned, Scanner};
pub use template::{Place, Template, TemplateError, Values};
pub use text_pattern::{TextPattern, TextPatternError};
