//! Patterns: random text that a small pattern describes, and a short string of bytes that is looked
//! for in a stream, however the stream is cut.

use std::fmt;
use std::str::FromStr;

use thiserror::Error;

use super::escape::{escape, unescape};

/// What `*` and `+` repeat at most.
const REPEAT_MOST: u32 = 16;
/// Groups inside one another, at most.
const DEPTH_MAX: u32 = 32;
/// Parts of all kinds, at most.
const PARTS_MAX: u32 = 10_000;

/// Random text: bytes that stand for themselves, `[a-z0-9_]` for one of these bytes, `(a|b)` for
/// one of several, and behind each of them `?`, `*` and `+` (16 times at most), `{3}` or `{1,5}`.
/// Of what is possible, each is as likely as the others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TextPattern {
    /// The pattern as it was typed.
    text: String,
    part: TextPart,
    bytes_max: usize,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum TextPart {
    Bytes(Vec<u8>),
    /// One of these bytes.
    Class(Vec<u8>),
    All(Vec<Self>),
    OneOf(Vec<Self>),
    Repeated {
        part: Box<Self>,
        least: u32,
        most: u32,
    },
}

/// Why a text is not a pattern.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum TextPatternError {
    /// The pattern is empty.
    #[error("a pattern of random text is empty; write one such as [a-z]{{8}}")]
    Empty,
    /// What was opened is not closed.
    #[error("a pattern of random text lacks the end of a [class], a (group) or a {{count}}")]
    Open,
    /// Something else stands where bytes, a class or a group should.
    #[error("a pattern of random text has nothing before ? * + or {{count}}, or in a [class]")]
    Misplaced,
    /// A count is no number, or too large.
    #[error("a count of a pattern is {{N}} or {{N,M}}")]
    Count,
    /// The texts may be too long, or the pattern is too complicated.
    #[error("a pattern of random text has at most 65536 bytes, in 10000 parts and 32 groups")]
    TooLarge,
    /// Something in it is not printed.
    #[error("a pattern of random text consists of printable ASCII without backslashes")]
    Unprintable,
}

impl TextPattern {
    /// Most bytes of a text.
    pub const BYTES_MAX: usize = 65_536;

    /// The pattern that `text` begins with, up to a `}` that closes nothing in it, or its end; and
    /// how many bytes of `text` it takes.
    ///
    /// # Errors
    ///
    /// It is not a pattern.
    pub fn parse_prefix(text: &[u8]) -> Result<(Self, usize), TextPatternError> {
        let mut parser = Parser {
            text,
            at: 0,
            parts: 0,
        };
        let part = parser.one_of(0)?;
        let taken = parser.at;
        if !matches!(text.get(taken), None | Some(b'}')) {
            return Err(TextPatternError::Misplaced);
        }
        let typed = &text[..taken];
        let is_printable = |byte: &u8| (b' '..=b'~').contains(byte) && *byte != b'\\';
        if !typed.iter().all(is_printable) {
            return Err(TextPatternError::Unprintable);
        }
        let bytes_max = part.bytes_max();
        if bytes_max == 0 {
            return Err(TextPatternError::Empty);
        }
        if bytes_max > Self::BYTES_MAX {
            return Err(TextPatternError::TooLarge);
        }
        let pattern = Self {
            text: String::from_utf8_lossy(typed).into_owned(),
            part,
            bytes_max,
        };
        Ok((pattern, taken))
    }

    /// Most bytes of a text.
    pub fn bytes_max(&self) -> usize {
        self.bytes_max
    }

    /// Fewest bytes of a text.
    pub fn bytes_min(&self) -> usize {
        self.part.bytes_min()
    }

    /// Appends a text to `out`; `random` gives the next random number.
    pub fn render(&self, random: &mut impl FnMut() -> u64, out: &mut Vec<u8>) {
        self.part.render(random, out);
    }
}

impl fmt::Display for TextPattern {
    /// Writes the pattern as it was typed.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.text)
    }
}

impl TextPart {
    fn bytes_max(&self) -> usize {
        match self {
            Self::Bytes(bytes) => bytes.len(),
            Self::Class(_) => 1,
            Self::All(parts) => parts.iter().map(Self::bytes_max).fold(0, add),
            Self::OneOf(parts) => parts.iter().map(Self::bytes_max).max().unwrap_or(0),
            Self::Repeated { part, most, .. } => part.bytes_max().saturating_mul(*most as usize),
        }
    }

    fn bytes_min(&self) -> usize {
        match self {
            Self::Bytes(bytes) => bytes.len(),
            Self::Class(_) => 1,
            Self::All(parts) => parts.iter().map(Self::bytes_min).fold(0, add),
            Self::OneOf(parts) => parts.iter().map(Self::bytes_min).min().unwrap_or(0),
            Self::Repeated { part, least, .. } => part.bytes_min().saturating_mul(*least as usize),
        }
    }

    fn render(&self, random: &mut impl FnMut() -> u64, out: &mut Vec<u8>) {
        match self {
            Self::Bytes(bytes) => out.extend_from_slice(bytes),
            Self::Class(bytes) => out.push(bytes[below(random, bytes.len())]),
            Self::All(parts) => {
                for part in parts {
                    part.render(random, out);
                }
            }
            Self::OneOf(parts) => parts[below(random, parts.len())].render(random, out),
            Self::Repeated { part, least, most } => {
                let times = *least as usize + below(random, (most - least) as usize + 1);
                for _ in 0..times {
                    part.render(random, out);
                }
            }
        }
    }
}

fn add(one: usize, other: usize) -> usize {
    one.saturating_add(other)
}

/// A number below `count`, which is not 0.
fn below(random: &mut impl FnMut() -> u64, count: usize) -> usize {
    ((u128::from(random()) * count as u128) >> 64) as usize
}

struct Parser<'a> {
    text: &'a [u8],
    at: usize,
    parts: u32,
}

impl Parser<'_> {
    fn peek(&self) -> Option<u8> {
        self.text.get(self.at).copied()
    }

    fn takes(&mut self, byte: u8) -> bool {
        let is_next = self.peek() == Some(byte);
        self.at += usize::from(is_next);
        is_next
    }

    fn one_of(&mut self, depth: u32) -> Result<TextPart, TextPatternError> {
        if depth > DEPTH_MAX {
            return Err(TextPatternError::TooLarge);
        }
        let mut choices = vec![self.all(depth)?];
        while self.takes(b'|') {
            choices.push(self.all(depth)?);
        }
        match choices.len() {
            1 => Ok(choices.remove(0)),
            _ => Ok(TextPart::OneOf(choices)),
        }
    }

    fn all(&mut self, depth: u32) -> Result<TextPart, TextPatternError> {
        let mut parts: Vec<TextPart> = Vec::new();
        while let Some(byte) = self.peek() {
            let part = match byte {
                b'|' | b')' | b'}' => break,
                b' ' if parts.is_empty() => {
                    self.at += 1;
                    continue;
                }
                b'(' => {
                    self.at += 1;
                    let group = self.one_of(depth + 1)?;
                    if !self.takes(b')') {
                        return Err(TextPatternError::Open);
                    }
                    group
                }
                b'[' => self.class()?,
                b']' | b'?' | b'*' | b'+' | b'{' => return Err(TextPatternError::Misplaced),
                byte => {
                    self.at += 1;
                    TextPart::Bytes(vec![byte])
                }
            };
            self.parts += 1;
            if self.parts > PARTS_MAX {
                return Err(TextPatternError::TooLarge);
            }
            match (self.repeated()?, part, parts.last_mut()) {
                (None, TextPart::Bytes(more), Some(TextPart::Bytes(bytes))) => bytes.extend(more),
                (None, part, _) => parts.push(part),
                // Nothing would be repeated at length.
                (Some(_), part, _) if part.bytes_max() == 0 => return Err(TextPatternError::Empty),
                (Some((least, most)), part, _) => parts.push(TextPart::Repeated {
                    part: Box::new(part),
                    least,
                    most,
                }),
            }
        }
        match parts.len() {
            0 => Err(TextPatternError::Empty),
            1 => Ok(parts.remove(0)),
            _ => Ok(TextPart::All(parts)),
        }
    }

    /// How often what stands before is repeated, at least and at most; absent: once.
    fn repeated(&mut self) -> Result<Option<(u32, u32)>, TextPatternError> {
        let times = match self.peek() {
            Some(b'?') => (0, 1),
            Some(b'*') => (0, REPEAT_MOST),
            Some(b'+') => (1, REPEAT_MOST),
            Some(b'{') => {
                let rest = &self.text[self.at + 1..];
                let end = rest.iter().position(|&byte| byte == b'}');
                let end = end.ok_or(TextPatternError::Open)?;
                let counts = std::str::from_utf8(&rest[..end]);
                let counts = counts.map_err(|_| TextPatternError::Count)?;
                let (one, other) = counts.split_once(',').unwrap_or((counts, counts));
                let count = |text: &str| match text.trim().parse::<u32>() {
                    Ok(count) if count as usize <= TextPattern::BYTES_MAX => Ok(count),
                    _ => Err(TextPatternError::Count),
                };
                let (one, other) = (count(one)?, count(other)?);
                self.at += end + 2;
                return Ok(Some((one.min(other), one.max(other))));
            }
            _ => return Ok(None),
        };
        self.at += 1;
        Ok(Some(times))
    }

    fn class(&mut self) -> Result<TextPart, TextPatternError> {
        self.at += 1;
        let mut bytes: Vec<u8> = Vec::new();
        loop {
            let first = self.peek().ok_or(TextPatternError::Open)?;
            self.at += 1;
            if first == b']' {
                break;
            }
            let last = match self.text.get(self.at..self.at + 2) {
                Some(&[b'-', last]) if last != b']' && first != b'-' => {
                    self.at += 2;
                    last
                }
                _ => first,
            };
            if last < first {
                return Err(TextPatternError::Misplaced);
            }
            bytes.extend(
                (first..=last)
                    .filter(|byte| !bytes.contains(byte))
                    .collect::<Vec<_>>(),
            );
        }
        match bytes.len() {
            0 => Err(TextPatternError::Misplaced),
            _ => Ok(TextPart::Class(bytes)),
        }
    }
}

/// The bytes, and how much of them their ends repeat (Knuth, Morris and Pratt).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pattern {
    bytes: Box<[u8]>,
    /// Per beginning of the pattern: how long the longest shorter beginning is that it ends with.
    borders: Box<[u16]>,
}

impl Pattern {
    /// Most bytes of a pattern.
    pub const BYTES_MAX: usize = 1024;

    /// A pattern of these bytes. Absent without bytes, or with more than [`Pattern::BYTES_MAX`].
    pub fn new(bytes: &[u8]) -> Option<Self> {
        if bytes.is_empty() || bytes.len() > Self::BYTES_MAX {
            return None;
        }
        let mut borders = vec![0_u16; bytes.len()];
        let mut matched = 0;
        for at in 1..bytes.len() {
            matched = extended(bytes, &borders, matched, bytes[at]);
            borders[at] = matched;
        }
        Some(Self {
            bytes: bytes.into(),
            borders: borders.into(),
        })
    }

    /// The bytes of the pattern.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Looks for it where `matched` of its first bytes stand just before `bytes`; keeps `matched`
    /// true. Gives how many of `bytes` lead to the end of the first one, behind which the search
    /// begins anew; absent where none ends in them.
    #[inline]
    pub fn find_end(&self, matched: &mut u16, bytes: &[u8]) -> Option<usize> {
        let mut at = 0;
        loop {
            if *matched == 0 {
                at += memchr::memchr(self.bytes[0], &bytes[at..])?;
            }
            let &byte = bytes.get(at)?;
            *matched = extended(&self.bytes, &self.borders, *matched, byte);
            at += 1;
            if usize::from(*matched) == self.bytes.len() {
                *matched = 0;
                return Some(at);
            }
        }
    }
}

impl fmt::Display for Pattern {
    /// Writes the pattern as it is typed, with escapes.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&escape(&self.bytes))
    }
}

impl FromStr for Pattern {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let bytes = unescape(text).map_err(|error| error.to_string())?;
        Self::new(&bytes).ok_or_else(|| format!("`{text}` has no bytes, or more than 1024"))
    }
}

/// How many of the first bytes of `pattern` stand at the end of what ended with `matched` of them
/// (not all), and then `byte`.
#[inline]
fn extended(pattern: &[u8], borders: &[u16], matched: u16, byte: u8) -> u16 {
    let mut matched = usize::from(matched);
    while matched > 0 && pattern[matched] != byte {
        matched = borders[matched - 1].into();
    }
    (matched + usize::from(pattern[matched] == byte)) as u16
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_support::at_every_cut;

    fn texts(pattern: &str) -> Vec<String> {
        let (parsed, taken) = TextPattern::parse_prefix(pattern.as_bytes()).expect(pattern);
        assert_eq!(taken, pattern.len(), "{pattern}");
        assert_eq!(parsed.to_string(), pattern);
        let mut state = 7_u64;
        let mut random = || {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            state
        };
        let rendered = |_| {
            let mut out = Vec::new();
            parsed.render(&mut random, &mut out);
            assert!(out.len() <= parsed.bytes_max(), "{pattern}");
            assert!(out.len() >= parsed.bytes_min(), "{pattern}");
            String::from_utf8(out).expect("ASCII")
        };
        let mut texts: Vec<String> = (0..2_000).map(rendered).collect();
        texts.sort();
        texts.dedup();
        texts
    }

    #[test]
    fn a_pattern_gives_all_that_it_describes() {
        for (pattern, expected) in [
            ("abc", "abc"),
            ("[a-c]", "a b c"),
            ("[ab-]x", "-x ax bx"),
            ("a|b|cd", "a b cd"),
            ("(a|b)c?", "a ac b bc"),
            ("x[01]{2}", "x00 x01 x10 x11"),
            ("ab{1,3}", "ab abb abbb"),
            ("ab{3,1}", "ab abb abbb"),
            ("[aab][a-b]", "aa ab ba bb"),
            (" a.b", "a.b"),
        ] {
            assert_eq!(texts(pattern).join(" "), expected, "{pattern}");
        }
        let lengths = |pattern: &str| {
            let texts = texts(pattern);
            let lengths = texts.iter().map(String::len);
            (lengths.clone().min(), lengths.max())
        };
        assert_eq!(lengths("[a-z]+"), (Some(1), Some(16)));
        assert_eq!(lengths("[a-z]*"), (Some(0), Some(16)));
    }

    #[test]
    fn a_pattern_ends_at_a_brace_that_closes_nothing() {
        let (pattern, taken) = TextPattern::parse_prefix(b"[a-z]{3}}{4}").expect("a pattern");
        assert_eq!((pattern.to_string().as_str(), taken), ("[a-z]{3}", 8));
    }

    #[test]
    fn what_is_no_pattern_is_refused() {
        let nested = "(".repeat(40);
        for (text, error) in [
            ("", TextPatternError::Empty),
            ("()", TextPatternError::Empty),
            ("a{0}", TextPatternError::Empty),
            ("b((a{0}){9}){9}", TextPatternError::Empty),
            ("(a", TextPatternError::Open),
            ("[a", TextPatternError::Open),
            ("a{3", TextPatternError::Open),
            ("?", TextPatternError::Misplaced),
            ("a**", TextPatternError::Misplaced),
            ("[]", TextPatternError::Misplaced),
            ("[z-a]", TextPatternError::Misplaced),
            ("a)", TextPatternError::Misplaced),
            ("a{x}", TextPatternError::Count),
            ("a{1,2,3}", TextPatternError::Count),
            ("a{65536}b", TextPatternError::TooLarge),
            (&nested, TextPatternError::TooLarge),
            ("a\\n", TextPatternError::Unprintable),
        ] {
            let found = TextPattern::parse_prefix(text.as_bytes());
            assert_eq!(found, Err(error), "{text}");
        }
    }

    fn ends(pattern: &[u8], pieces: &[&[u8]]) -> Vec<usize> {
        let pattern = Pattern::new(pattern).expect("a pattern");
        let (mut matched, mut before, mut ends) = (0, 0, Vec::new());
        for piece in pieces {
            let mut rest = *piece;
            while let Some(end) = pattern.find_end(&mut matched, rest) {
                before += end;
                ends.push(before);
                rest = &rest[end..];
            }
            before += rest.len();
        }
        ends
    }

    #[test]
    fn patterns_are_found_wherever_the_stream_is_cut() {
        for (pattern, text, expected) in [
            (&b"\n"[..], &b"a\n\nb\n"[..], &[2, 3, 5][..]),
            (b"\r\n", b"a\r\r\nb\r\n\n", &[4, 7]),
            // What overlaps counts once.
            (b"aa", b"aaaaa", &[2, 4]),
            (b"aab", b"aaab aab", &[4, 8]),
            (b"abab", b"ababababa", &[4, 8]),
            (b"abcabd", b"abcabcabd", &[9]),
            (b"xyz", b"xyxyxy", &[]),
        ] {
            let found = at_every_cut(text, |pieces| ends(pattern, pieces));
            assert_eq!(found, expected, "{text:?}");
        }
    }

    #[test]
    fn a_pattern_has_some_bytes_and_not_too_many() {
        assert_eq!(Pattern::new(b""), None);
        assert!(Pattern::new(&[0; Pattern::BYTES_MAX]).is_some());
        assert_eq!(Pattern::new(&[0; Pattern::BYTES_MAX + 1]), None);
    }
}
