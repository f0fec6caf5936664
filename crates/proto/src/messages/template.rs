//! A message with places that are filled in each time it is sent.

use std::fmt;
use std::io::Write as _;
use std::num::{NonZeroU16, NonZeroU32};
use std::str::FromStr;

use thiserror::Error;

use super::escape::{EscapeError, escape, escaped};
use super::pattern::{TextPattern, TextPatternError};
use crate::holes::next_random;

/// Most digits of one random number.
const RANDOM_DIGITS_MAX: u16 = 4096;
/// Most digits of a number of 64 bits.
const NUMBER_DIGITS_MAX: usize = 20;
/// Digits of an instant in hexadecimal.
const INSTANT_DIGITS: usize = 16;
/// What keeps random text of a connection apart from that of its messages.
const CONNECTION_TEXT: u64 = 0x5851_f42d_4c95_7f2d;

/// A message: bytes, and what is filled in between them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Template {
    pieces: Vec<Piece>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Piece {
    Bytes(Vec<u8>),
    Filled(Place),
}

/// A place that is filled in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// `{conn}`: the number of the connection.
    Connection {
        /// `{conn+1}`: numbers are from 1.
        from_one: bool,
        /// `{conn%N}`: the rest of its division by this.
        modulo: Option<NonZeroU32>,
    },
    /// `{seq}`: the number of the message on its connection.
    Sequence,
    /// `{rand:N}`: so many random hexadecimal digits.
    Random(NonZeroU16),
    /// `{text:PATTERN}`: random text, another in each message.
    Text(TextPattern),
    /// `{conntext:PATTERN}`: random text, the same in all messages of a connection.
    ConnectionText(TextPattern),
    /// `{now}`: nanoseconds since 1970.
    Now,
    /// `{nowhex}`: microseconds since 1970, in 16 hexadecimal digits.
    NowHexadecimal,
}

/// What is filled in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Values {
    /// `{conn}`: the number of the connection in the run, from 0.
    pub connection: u64,
    /// `{seq}`: the number of the message on its connection, from 0.
    pub sequence: u64,
    /// `{now}`: nanoseconds since 1970.
    pub now_ns: u64,
    /// What `{rand:N}` and `{text:PATTERN}` follow from.
    pub seed: u64,
    /// What `{conntext:PATTERN}` follows from: the same for all messages of a connection.
    pub connection_seed: u64,
}

/// Why a text is not a message.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum TemplateError {
    /// A backslash begins no escape.
    #[error(transparent)]
    Escape(#[from] EscapeError),
    /// Braces hold what is not filled in.
    #[error(
        "`{{{0}}}` is not filled in: write {{conn}}, {{seq}}, {{rand:N}} with up to 4096 digits, \
         {{text:PATTERN}} or {{now}}; or \\{{ for a brace"
    )]
    Unknown(String),
    /// What stands behind `{text:` or `{conntext:` is not a pattern.
    #[error(transparent)]
    Pattern(#[from] TextPatternError),
}

impl Template {
    /// A message of these bytes, just as they are.
    pub fn constant(bytes: Vec<u8>) -> Self {
        Self {
            pieces: vec![Piece::Bytes(bytes)],
        }
    }

    /// The message that was typed: text with escapes and places to be filled in. A brace that
    /// begins neither a lower-case word nor one with a number in braces stands for itself.
    ///
    /// # Errors
    ///
    /// A backslash begins no escape, or a word in braces names nothing that is filled in.
    pub fn parse(text: &str) -> Result<Self, TemplateError> {
        let mut template = Self::default();
        let mut bytes = Vec::new();
        let mut rest = text;
        while let Some(at) = rest.find(['\\', '{']) {
            bytes.extend_from_slice(&rest.as_bytes()[..at]);
            rest = &rest[at..];
            if let Some(behind) = rest.strip_prefix("\\{") {
                bytes.push(b'{');
                rest = behind;
            } else if let Some(behind) = rest.strip_prefix('\\') {
                let (byte, taken) = escaped(behind)?;
                bytes.push(byte);
                rest = &behind[taken..];
            } else if let Some((place, behind)) = place(rest)? {
                template.add_bytes(&std::mem::take(&mut bytes));
                template.add_place(place);
                rest = behind;
            } else {
                bytes.push(b'{');
                rest = &rest[1..];
            }
        }
        bytes.extend_from_slice(rest.as_bytes());
        template.add_bytes(&bytes);
        Ok(template)
    }

    /// Appends bytes, just as they are.
    pub fn add_bytes(&mut self, bytes: &[u8]) {
        match self.pieces.last_mut() {
            _ if bytes.is_empty() => {}
            Some(Piece::Bytes(before)) => before.extend_from_slice(bytes),
            _ => self.pieces.push(Piece::Bytes(bytes.to_vec())),
        }
    }

    /// Appends a place that is filled in.
    pub fn add_place(&mut self, place: Place) {
        self.pieces.push(Piece::Filled(place));
    }

    /// Appends another message.
    pub fn append(&mut self, other: &Self) {
        for piece in &other.pieces {
            match piece {
                Piece::Bytes(bytes) => self.add_bytes(bytes),
                Piece::Filled(place) => self.add_place(place.clone()),
            }
        }
    }

    /// The bytes of the template, where nothing is filled in.
    pub fn as_constant(&self) -> Option<&[u8]> {
        match &self.pieces[..] {
            [] => Some(&[]),
            [Piece::Bytes(bytes)] => Some(bytes),
            _ => None,
        }
    }

    /// Most bytes that it has when it is filled in.
    pub fn bytes_max(&self) -> usize {
        self.bytes_with(Place::bytes_max)
    }

    /// Fewest bytes that it has when it is filled in.
    pub fn bytes_min(&self) -> usize {
        self.bytes_with(Place::bytes_min)
    }

    fn bytes_with(&self, of_place: impl Fn(&Place) -> usize) -> usize {
        let bytes = self.pieces.iter().map(|piece| match piece {
            Piece::Bytes(bytes) => bytes.len(),
            Piece::Filled(place) => of_place(place),
        });
        bytes.sum()
    }

    /// Bytes that are held of it.
    pub fn held_bytes(&self) -> usize {
        let bytes = self.pieces.iter().map(|piece| match piece {
            Piece::Bytes(bytes) => bytes.capacity(),
            Piece::Filled(_) => 0,
        });
        bytes.sum::<usize>() + self.pieces.capacity() * size_of::<Piece>()
    }

    /// Appends the message to `out`. The same values give the same bytes.
    #[inline]
    pub fn render(&self, values: &Values, out: &mut Vec<u8>) {
        let mut state = values.seed;
        let mut connection_state = values.connection_seed ^ CONNECTION_TEXT;
        for piece in &self.pieces {
            let place = match piece {
                Piece::Bytes(bytes) => {
                    out.extend_from_slice(bytes);
                    continue;
                }
                Piece::Filled(place) => place,
            };
            // Writing to a vector cannot fail.
            let _ = match place {
                Place::Connection { from_one, modulo } => {
                    let number = values.connection.saturating_add(u64::from(*from_one));
                    write!(
                        out,
                        "{}",
                        modulo.map_or(number, |by| number % u64::from(by.get()))
                    )
                }
                Place::Sequence => write!(out, "{}", values.sequence),
                Place::Now => write!(out, "{}", values.now_ns),
                Place::NowHexadecimal => write!(out, "{:016x}", values.now_ns / 1_000),
                Place::Random(digits) => {
                    add_random(&mut state, digits.get(), out);
                    continue;
                }
                Place::Text(pattern) => {
                    pattern.render(&mut || next_random(&mut state), out);
                    continue;
                }
                Place::ConnectionText(pattern) => {
                    pattern.render(&mut || next_random(&mut connection_state), out);
                    continue;
                }
            };
        }
    }
}

impl Place {
    fn bytes_max(&self) -> usize {
        match self {
            Self::Connection { .. } | Self::Sequence | Self::Now => NUMBER_DIGITS_MAX,
            Self::NowHexadecimal => INSTANT_DIGITS,
            Self::Random(digits) => digits.get().into(),
            Self::Text(pattern) | Self::ConnectionText(pattern) => pattern.bytes_max(),
        }
    }

    fn bytes_min(&self) -> usize {
        match self {
            Self::Connection { .. } | Self::Sequence | Self::Now => 1,
            Self::NowHexadecimal => INSTANT_DIGITS,
            Self::Random(digits) => digits.get().into(),
            Self::Text(pattern) | Self::ConnectionText(pattern) => pattern.bytes_min(),
        }
    }
}

impl fmt::Display for Place {
    /// Writes the place as it may be typed.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Connection { from_one, modulo } => {
                formatter.write_str(if *from_one { "{conn+1" } else { "{conn" })?;
                if let Some(by) = modulo {
                    write!(formatter, "%{by}")?;
                }
                formatter.write_str("}")
            }
            Self::Sequence => formatter.write_str("{seq}"),
            Self::Random(digits) => write!(formatter, "{{rand:{digits}}}"),
            Self::Text(pattern) => write!(formatter, "{{text:{pattern}}}"),
            Self::ConnectionText(pattern) => write!(formatter, "{{conntext:{pattern}}}"),
            Self::Now => formatter.write_str("{now}"),
            Self::NowHexadecimal => formatter.write_str("{nowhex}"),
        }
    }
}

/// What is filled in where `text` begins with a brace, and what is behind it; absent where the
/// brace stands for itself.
fn place(text: &str) -> Result<Option<(Place, &str)>, TemplateError> {
    type New = fn(TextPattern) -> Place;
    for (start, new) in [
        ("{text:", Place::Text as New),
        ("{conntext:", Place::ConnectionText as New),
    ] {
        let Some(rest) = text.strip_prefix(start) else {
            continue;
        };
        let (pattern, taken) = TextPattern::parse_prefix(rest.as_bytes())?;
        // What a pattern is made of is ASCII.
        let behind = rest[taken..].strip_prefix('}');
        return match behind {
            Some(behind) => Ok(Some((new(pattern), behind))),
            None => Err(TextPatternError::Open.into()),
        };
    }
    if let Some((place, behind)) = numbered_connection(text) {
        return Ok(Some((place, behind)));
    }
    let Some((word, behind)) = placeholder(text) else {
        return Ok(None);
    };
    match named(word) {
        Some(place) => Ok(Some((place, behind))),
        None => Err(TemplateError::Unknown(word.to_owned())),
    }
}

/// `{conn}`, `{conn+1}`, `{conn%N}` or `{conn+1%N}`, and what is behind it.
fn numbered_connection(text: &str) -> Option<(Place, &str)> {
    let rest = text.strip_prefix("{conn")?;
    let (from_one, rest) = match rest.strip_prefix("+1") {
        Some(rest) => (true, rest),
        None => (false, rest),
    };
    let (modulo, behind) = match rest.strip_prefix('%') {
        Some(rest) => {
            let (by, behind) = rest.split_once('}')?;
            (Some(by.parse().ok()?), behind)
        }
        None => (None, rest.strip_prefix('}')?),
    };
    Some((Place::Connection { from_one, modulo }, behind))
}

/// What stands in the braces that `text` begins with, and what is behind them; absent where they
/// hold no word such as `seq` or `rand:8`.
fn placeholder(text: &str) -> Option<(&str, &str)> {
    let (word, behind) = text.strip_prefix('{')?.split_once('}')?;
    let (name, number) = word.split_once(':').unwrap_or((word, "0"));
    let is_name = !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_lowercase());
    let is_number = number.bytes().all(|byte| byte.is_ascii_digit());
    (is_name && is_number).then_some((word, behind))
}

fn named(word: &str) -> Option<Place> {
    Some(match word {
        "seq" => Place::Sequence,
        "now" => Place::Now,
        "nowhex" => Place::NowHexadecimal,
        _ => {
            let digits: NonZeroU16 = word.strip_prefix("rand:")?.parse().ok()?;
            Place::Random(Some(digits).filter(|digits| digits.get() <= RANDOM_DIGITS_MAX)?)
        }
    })
}

/// Appends hexadecimal digits.
fn add_random(state: &mut u64, digits: u16, out: &mut Vec<u8>) {
    let mut left = usize::from(digits);
    while left > 0 {
        let mut word = next_random(state);
        for _ in 0..left.min(16) {
            out.push(b"0123456789abcdef"[(word & 15) as usize]);
            word >>= 4;
        }
        left = left.saturating_sub(16);
    }
}

impl FromStr for Template {
    type Err = TemplateError;

    fn from_str(text: &str) -> Result<Self, TemplateError> {
        Self::parse(text)
    }
}

impl fmt::Display for Template {
    /// Writes the template as it may be typed.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for piece in &self.pieces {
            match piece {
                // Every brace, since one may begin a word that is filled in.
                Piece::Bytes(bytes) => {
                    formatter.write_str(&escape(bytes).replace('{', "\\{"))?;
                }
                Piece::Filled(place) => write!(formatter, "{place}")?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const VALUES: Values = Values {
        connection: 7,
        sequence: 41,
        now_ns: 1_700_000_000_123_456_789,
        seed: 5,
        connection_seed: 3,
    };

    fn rendered(text: &str) -> String {
        let template = Template::parse(text).expect(text);
        let mut out = Vec::new();
        template.render(&VALUES, &mut out);
        assert!(out.len() <= template.bytes_max(), "{text}");
        assert_eq!(Template::parse(&template.to_string()), Ok(template));
        String::from_utf8(out).expect("text")
    }

    #[test]
    fn what_stands_in_braces_is_filled_in() {
        for (text, expected) in [
            ("", ""),
            ("PING\\r\\n", "PING\r\n"),
            ("SET k{conn} {seq}\\n", "SET k7 41\n"),
            ("{now}", "1700000000123456789"),
            ("{\"a\": {seq}}", "{\"a\": 41}"),
            ("{}{ seq}{Seq}{seq", "{}{ seq}{Seq}{seq"),
            ("\\{seq}", "{seq}"),
            ("{{seq}}", "{41}"),
            ("{conn+1} {conn%4} {conn+1%4}", "8 3 0"),
            ("{conn+2}{conn%x}", "{conn+2}{conn%x}"),
            ("{nowhex}", "00060a2418202240"),
            ("{text:a{3}}{conntext:(b|b)}", "aaab"),
        ] {
            assert_eq!(rendered(text), expected, "{text}");
        }
    }

    #[test]
    fn random_digits_follow_from_the_seed() {
        let digits = rendered("{rand:33}");
        assert_eq!(digits.len(), 33);
        let is_digit = |byte| b"0123456789abcdef".contains(&byte);
        assert!(digits.bytes().all(is_digit));
        assert_eq!(digits, rendered("{rand:33}"));
        let twice = rendered("{rand:16}{rand:16}");
        assert_ne!(twice[..16], twice[16..], "each place has its own");
        let template = Template::parse("{rand:16}").expect("a message");
        let mut other = Vec::new();
        template.render(&Values { seed: 6, ..VALUES }, &mut other);
        assert_ne!(other, digits.as_bytes()[..16]);
    }

    #[test]
    fn random_text_is_new_in_each_message_or_on_each_connection() {
        let template = Template::parse("{text:[a-z]{16}}{conntext:[a-z]{16}}").expect("a message");
        assert_eq!((template.bytes_min(), template.bytes_max()), (32, 32));
        let of = |seed, connection_seed| {
            let values = Values {
                seed,
                connection_seed,
                ..VALUES
            };
            let mut out = Vec::new();
            template.render(&values, &mut out);
            let text = String::from_utf8(out).expect("letters");
            (text[..16].to_owned(), text[16..].to_owned())
        };
        let (first, second, elsewhere) = (of(1, 9), of(2, 9), of(1, 8));
        assert_ne!(first.0, second.0);
        assert_eq!(first.1, second.1);
        assert_eq!(first.0, elsewhere.0);
        assert_ne!(first.1, elsewhere.1);
        assert_ne!(first.0, first.1);
    }

    #[test]
    fn messages_are_put_one_behind_the_other() {
        let mut whole = Template::default();
        for text in ["a{seq}", "b", "c\n"] {
            whole.append(&Template::parse(text).expect(text));
        }
        assert_eq!(whole, Template::parse("a{seq}bc\n").expect("a message"));
    }

    #[test]
    fn words_that_name_nothing_are_refused() {
        for (text, word) in [
            ("{sequence}", "sequence"),
            ("{rand}", "rand"),
            ("{rand:0}", "rand:0"),
            ("{rand:4097}", "rand:4097"),
            ("{rand:}", "rand:"),
            ("{seq:1}", "seq:1"),
        ] {
            let error = TemplateError::Unknown(word.to_owned());
            assert_eq!(Template::parse(text), Err(error), "{text}");
        }
        let error = Template::parse("{seqno}").expect_err("no such word");
        assert_eq!(
            error.to_string(),
            "`{seqno}` is not filled in: write {conn}, {seq}, {rand:N} with up to 4096 digits, \
             {text:PATTERN} or {now}; or \\{ for a brace"
        );
        assert!(Template::parse("\\q").is_err());
        assert!(Template::parse("{text:}").is_err());
        assert!(Template::parse("{text:a").is_err());
    }

    #[test]
    fn a_message_without_words_is_constant() {
        let constant = |text: &str| {
            let template = Template::parse(text).expect(text);
            template.as_constant().map(<[u8]>::to_vec)
        };
        assert_eq!(constant("a\\n"), Some(b"a\n".to_vec()));
        assert_eq!(constant(""), Some(Vec::new()));
        assert_eq!(constant("a{seq}"), None);
        let raw = Template::constant(b"{seq}\\n".to_vec());
        assert_eq!(raw.as_constant(), Some(&b"{seq}\\n"[..]));
        assert_eq!(raw.to_string(), "\\{seq}\\\\n");
    }
}
