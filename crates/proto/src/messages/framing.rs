//! Where a message ends: the ways of framing, and how they are typed.

use std::fmt;
use std::num::{NonZeroU32, NonZeroU64};
use std::str::FromStr;

use thiserror::Error;

use super::escape::{EscapeError, escape, unescape};
use super::pattern::Pattern;

/// The ways that may be typed.
const WAYS: &str = "line, delim=BYTES, fixed=N, echo, len8, len16be, len16le, len24be, len24le, \
                    len32be, len32le, marker=BYTES, resp, until-close or none";

/// Where a message ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Framing {
    /// Behind a line feed.
    Line,
    /// Behind these bytes.
    Delimiter(Pattern),
    /// Behind so many bytes.
    Fixed(NonZeroU64),
    /// Behind as many bytes as were sent, which must be the same.
    Echo,
    /// Where a length at its beginning says.
    Length(LengthField),
    /// Behind the `count`-th occurrence of the pattern. What follows belongs to the next message.
    Marker {
        /// What is looked for.
        pattern: Pattern,
        /// How often it stands in a message.
        count: NonZeroU32,
    },
    /// Where Redis' protocol (RESP2 or RESP3) says.
    Resp,
    /// Where the connection ends.
    UntilClose,
    /// Nowhere: nothing is expected.
    None,
}

/// A length in a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LengthField {
    /// Bytes of the message before it.
    pub offset: u16,
    /// Bytes of it: 1 to 4.
    pub bytes: u8,
    /// Order of the length's bytes; of no meaning with one byte.
    pub order: ByteOrder,
    /// Bytes of the message behind the field, beyond what the field says.
    pub adjust: i32,
}

impl LengthField {
    /// Bytes of a message up to the end of the field.
    pub fn head_bytes(self) -> u64 {
        u64::from(self.offset) + u64::from(self.bytes)
    }

    /// Bytes of a message whose field says `value`; absent where they are fewer than those up to
    /// the end of the field.
    pub fn message_bytes(self, value: u32) -> Option<u64> {
        let behind = i64::from(value) + i64::from(self.adjust);
        Some(self.head_bytes() + u64::try_from(behind).ok()?)
    }
}

/// The order of the bytes of a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ByteOrder {
    /// Most significant first.
    Big,
    /// Least significant first.
    Little,
}

/// Why a text names no framing.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum FramingError {
    /// The name is none of a framing.
    #[error("`{0}` is not a framing; write {WAYS}")]
    Unknown(String),
    /// A number is missing, not a number, 0 or too large.
    #[error("`{typed}` needs a number such as in {example}")]
    Number {
        /// The framing.
        typed: String,
        /// How the framing may be written.
        example: &'static str,
    },
    /// The bytes to look for are malformed.
    #[error("`{typed}`: {reason}")]
    Escape {
        /// The framing.
        typed: String,
        /// Why.
        reason: EscapeError,
    },
    /// The pattern has no bytes, or too many.
    #[error("`{0}` needs 1 to 1024 bytes behind the equals sign, such as in delim=\\r\\n")]
    Pattern(String),
}

impl FromStr for Framing {
    type Err = FramingError;

    fn from_str(typed: &str) -> Result<Self, FramingError> {
        Ok(match typed.split_once('=') {
            None => match typed {
                "line" => Self::Line,
                "echo" => Self::Echo,
                "resp" => Self::Resp,
                "until-close" => Self::UntilClose,
                "none" => Self::None,
                _ => Self::Length(length_field(typed)?),
            },
            Some(("delim", bytes)) => Self::Delimiter(pattern(typed, bytes)?),
            Some(("fixed", count)) => {
                let count = count.parse().ok();
                Self::Fixed(count.ok_or_else(|| number(typed, "fixed=64"))?)
            }
            Some(("marker", text)) => {
                let (bytes, count) = match text.rsplit_once('*') {
                    Some((bytes, count)) if is_number(count) => {
                        let count = count.parse().ok();
                        let count = count.ok_or_else(|| number(typed, "marker=OK*2"))?;
                        (bytes, count)
                    }
                    _ => (text, NonZeroU32::MIN),
                };
                Self::Marker {
                    pattern: pattern(typed, bytes)?,
                    count,
                }
            }
            Some(_) => return Err(FramingError::Unknown(typed.to_owned())),
        })
    }
}

fn number(typed: &str, example: &'static str) -> FramingError {
    FramingError::Number {
        typed: typed.to_owned(),
        example,
    }
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

fn pattern(typed: &str, bytes: &str) -> Result<Pattern, FramingError> {
    let bytes = unescape(bytes).map_err(|reason| FramingError::Escape {
        typed: typed.to_owned(),
        reason,
    })?;
    Pattern::new(&bytes).ok_or_else(|| FramingError::Pattern(typed.to_owned()))
}

/// Reads `lenBITS[be|le][@OFFSET][+ADJUST|-ADJUST]`.
fn length_field(typed: &str) -> Result<LengthField, FramingError> {
    const EXAMPLE: &str = "len32be, len32be-4 or len16be@2+8";
    const FIELDS: [(&str, u8, ByteOrder); 7] = [
        ("len8", 1, ByteOrder::Big),
        ("len16be", 2, ByteOrder::Big),
        ("len16le", 2, ByteOrder::Little),
        ("len24be", 3, ByteOrder::Big),
        ("len24le", 3, ByteOrder::Little),
        ("len32be", 4, ByteOrder::Big),
        ("len32le", 4, ByteOrder::Little),
    ];
    let name_end = typed.find(['@', '+', '-']).unwrap_or(typed.len());
    let (name, rest) = typed.split_at(name_end);
    let field = FIELDS.iter().find(|(known, ..)| *known == name);
    let &(_, bytes, order) = field.ok_or_else(|| FramingError::Unknown(typed.to_owned()))?;
    let adjust_at = rest.find(['+', '-']).unwrap_or(rest.len());
    let (offset, adjust) = rest.split_at(adjust_at);
    let offset = match offset.strip_prefix('@') {
        None => 0,
        Some(offset) if is_number(offset) => offset.parse().map_err(|_| number(typed, EXAMPLE))?,
        Some(_) => return Err(number(typed, EXAMPLE)),
    };
    let adjust = match adjust.get(1..) {
        None => 0,
        // The sign is read with the number.
        Some(digits) if is_number(digits) => adjust.parse().map_err(|_| number(typed, EXAMPLE))?,
        Some(_) => return Err(number(typed, EXAMPLE)),
    };
    Ok(LengthField {
        offset,
        bytes,
        order,
        adjust,
    })
}

impl fmt::Display for Framing {
    /// Writes the framing as it is typed.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Line => formatter.write_str("line"),
            Self::Delimiter(pattern) => write!(formatter, "delim={}", escape(pattern.bytes())),
            Self::Fixed(bytes) => write!(formatter, "fixed={bytes}"),
            Self::Echo => formatter.write_str("echo"),
            Self::Length(field) => field.fmt(formatter),
            Self::Marker { pattern, count } => {
                // A star in the bytes is not the one before the count.
                let bytes = escape(pattern.bytes()).replace('*', "\\x2a");
                write!(formatter, "marker={bytes}")?;
                match count.get() {
                    1 => Ok(()),
                    count => write!(formatter, "*{count}"),
                }
            }
            Self::Resp => formatter.write_str("resp"),
            Self::UntilClose => formatter.write_str("until-close"),
            Self::None => formatter.write_str("none"),
        }
    }
}

impl fmt::Display for LengthField {
    /// Writes the length field as it is typed.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "len{}", u32::from(self.bytes) * 8)?;
        match self.order {
            _ if self.bytes == 1 => {}
            ByteOrder::Big => formatter.write_str("be")?,
            ByteOrder::Little => formatter.write_str("le")?,
        }
        if self.offset != 0 {
            write!(formatter, "@{}", self.offset)?;
        }
        if self.adjust != 0 {
            write!(formatter, "{:+}", self.adjust)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn framings_are_typed_and_shown_alike() {
        let all = r"
            line delim=\r\n delim=END fixed=1 fixed=18446744073709551615 echo
            len8 len16be len16le+2 len24le+1 len32be-4 len32le@8 len32be@1-4
            marker=OK marker=a=b marker=\x2a5*5 resp until-close none";
        for typed in all.split_whitespace() {
            let framing: Framing = typed.parse().expect(typed);
            assert_eq!(framing.to_string(), typed);
        }
        for (typed, shown) in [
            ("marker=a*b", "marker=a\\x2ab"),
            ("marker=a*1", "marker=a"),
            ("len8@0+0", "len8"),
            ("delim=\\x0D", "delim=\\r"),
        ] {
            let framing: Framing = typed.parse().expect(typed);
            assert_eq!(framing.to_string(), shown);
            assert_eq!(shown.parse(), Ok(framing));
        }
    }

    #[test]
    fn what_is_no_framing_is_refused_with_what_to_write() {
        for (typed, part) in [
            ("", "is not a framing; write line, delim=BYTES"),
            ("lines", "is not a framing"),
            ("len12be", "is not a framing"),
            ("len16", "is not a framing"),
            ("delimiter=x", "is not a framing"),
            ("fixed", "is not a framing"),
            ("fixed=", "needs a number such as in fixed=64"),
            ("fixed=0", "needs a number"),
            ("fixed=-1", "needs a number"),
            ("delim=", "needs 1 to 1024 bytes"),
            ("delim=\\q", "is not an escape"),
            ("marker=*3", "needs 1 to 1024 bytes"),
            ("marker=x*0", "such as in marker=OK*2"),
            ("len8@", "such as in len32be,"),
            ("len8@x", "such as in len32be,"),
            ("len8@70000", "such as in len32be,"),
            ("len8+", "such as in len32be,"),
            ("len8+-1", "such as in len32be,"),
            ("len8+4294967296", "such as in len32be,"),
        ] {
            let error = typed.parse::<Framing>().expect_err(typed).to_string();
            assert!(error.contains(part), "{typed}: {error}");
        }
    }
}
