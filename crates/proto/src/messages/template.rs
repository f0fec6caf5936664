//! A message with places that are filled in each time it is sent.

use std::fmt;
use std::io::Write as _;
use std::num::NonZeroU16;

use thiserror::Error;

use super::escape::{EscapeError, escape, escaped};

/// Most digits of one random number.
const RANDOM_DIGITS_MAX: u16 = 4096;
/// Most digits of a number of 64 bits.
const NUMBER_DIGITS_MAX: usize = 20;

/// A message: bytes, and what is filled in between them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Template {
    pieces: Vec<Piece>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Piece {
    Bytes(Vec<u8>),
    Connection,
    Sequence,
    Random(NonZeroU16),
    Now,
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
    /// What `{rand:N}` follows from.
    pub seed: u64,
}

/// Why a text is no message.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum TemplateError {
    /// A backslash begins no escape.
    #[error(transparent)]
    Escape(#[from] EscapeError),
    /// Braces hold what is not filled in.
    #[error(
        "`{{{0}}}` is not filled in: write {{conn}}, {{seq}}, {{rand:N}} with up to 4096 digits, \
         or {{now}}; or \\{{ for a brace"
    )]
    Unknown(String),
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
            } else if let Some((word, behind)) = placeholder(rest) {
                let piece = piece(word).ok_or_else(|| TemplateError::Unknown(word.to_owned()))?;
                template.add_bytes(std::mem::take(&mut bytes));
                template.pieces.push(piece);
                rest = behind;
            } else {
                bytes.push(b'{');
                rest = &rest[1..];
            }
        }
        bytes.extend_from_slice(rest.as_bytes());
        template.add_bytes(bytes);
        Ok(template)
    }

    fn add_bytes(&mut self, bytes: Vec<u8>) {
        if !bytes.is_empty() {
            self.pieces.push(Piece::Bytes(bytes));
        }
    }

    /// Its bytes, where nothing is filled in.
    pub fn as_constant(&self) -> Option<&[u8]> {
        match &self.pieces[..] {
            [] => Some(&[]),
            [Piece::Bytes(bytes)] => Some(bytes),
            _ => None,
        }
    }

    /// Whether the instant is filled in.
    pub fn has_now(&self) -> bool {
        self.pieces.contains(&Piece::Now)
    }

    /// Most bytes that it has when it is filled in.
    pub fn bytes_max(&self) -> usize {
        let bytes = self.pieces.iter().map(|piece| match piece {
            Piece::Bytes(bytes) => bytes.len(),
            Piece::Connection | Piece::Sequence | Piece::Now => NUMBER_DIGITS_MAX,
            Piece::Random(digits) => digits.get().into(),
        });
        bytes.sum()
    }

    /// Bytes that are held of it.
    pub fn held_bytes(&self) -> usize {
        let bytes = self.pieces.iter().map(|piece| match piece {
            Piece::Bytes(bytes) => bytes.capacity(),
            _ => 0,
        });
        bytes.sum::<usize>() + self.pieces.capacity() * size_of::<Piece>()
    }

    /// Appends the message to `out`. The same values give the same bytes.
    #[inline]
    pub fn render(&self, values: &Values, out: &mut Vec<u8>) {
        let mut state = values.seed;
        for piece in &self.pieces {
            let number = match piece {
                Piece::Bytes(bytes) => {
                    out.extend_from_slice(bytes);
                    continue;
                }
                Piece::Random(digits) => {
                    add_random(&mut state, digits.get(), out);
                    continue;
                }
                Piece::Connection => values.connection,
                Piece::Sequence => values.sequence,
                Piece::Now => values.now_ns,
            };
            // Writing to a vector cannot fail.
            let _ = write!(out, "{number}");
        }
    }
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

fn piece(word: &str) -> Option<Piece> {
    Some(match word {
        "conn" => Piece::Connection,
        "seq" => Piece::Sequence,
        "now" => Piece::Now,
        _ => {
            let digits: NonZeroU16 = word.strip_prefix("rand:")?.parse().ok()?;
            Piece::Random(Some(digits).filter(|digits| digits.get() <= RANDOM_DIGITS_MAX)?)
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

/// SplitMix64 (Steele, Lea and Flood).
fn next_random(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut word = *state;
    word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    word ^ (word >> 31)
}

impl fmt::Display for Template {
    /// As it may be typed.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for piece in &self.pieces {
            match piece {
                // Every brace, since one may begin a word that is filled in.
                Piece::Bytes(bytes) => {
                    formatter.write_str(&escape(bytes).replace('{', "\\{"))?;
                }
                Piece::Connection => formatter.write_str("{conn}")?,
                Piece::Sequence => formatter.write_str("{seq}")?,
                Piece::Random(digits) => write!(formatter, "{{rand:{digits}}}")?,
                Piece::Now => formatter.write_str("{now}")?,
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
        ] {
            assert_eq!(rendered(text), expected, "{text}");
        }
    }

    #[test]
    fn random_digits_follow_from_the_seed() {
        let digits = rendered("{rand:33}");
        assert_eq!(digits.len(), 33);
        assert!(
            digits
                .bytes()
                .all(|byte| b"0123456789abcdef".contains(&byte))
        );
        assert_eq!(digits, rendered("{rand:33}"));
        let twice = rendered("{rand:16}{rand:16}");
        assert_ne!(twice[..16], twice[16..], "each place has its own");
        let template = Template::parse("{rand:16}").expect("a message");
        let mut other = Vec::new();
        template.render(&Values { seed: 6, ..VALUES }, &mut other);
        assert_ne!(other, digits.as_bytes()[..16]);
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
            "`{seqno}` is not filled in: write {conn}, {seq}, {rand:N} with up to 4096 digits, or \
             {now}; or \\{ for a brace"
        );
        assert!(Template::parse("\\q").is_err());
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
        assert!(Template::parse("{now}").expect("a message").has_now());
        let raw = Template::constant(b"{seq}\\n".to_vec());
        assert_eq!(raw.as_constant(), Some(&b"{seq}\\n"[..]));
        assert_eq!(raw.to_string(), "\\{seq}\\\\n");
    }
}
