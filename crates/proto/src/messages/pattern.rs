//! A short string of bytes that is looked for in a stream, however the stream is cut.

use std::fmt;
use std::str::FromStr;

use super::escape::{escape, unescape};

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
            assert_eq!(ends(pattern, &[text]), expected, "{text:?}");
            for cut in 0..=text.len() {
                let (before, after) = text.split_at(cut);
                assert_eq!(
                    ends(pattern, &[before, after]),
                    expected,
                    "{text:?} at {cut}"
                );
            }
            let bytes: Vec<&[u8]> = text.chunks(1).collect();
            assert_eq!(ends(pattern, &bytes), expected, "{text:?} byte by byte");
        }
    }

    #[test]
    fn a_pattern_has_some_bytes_and_not_too_many() {
        assert_eq!(Pattern::new(b""), None);
        assert!(Pattern::new(&[0; Pattern::BYTES_MAX]).is_some());
        assert_eq!(Pattern::new(&[0; Pattern::BYTES_MAX + 1]), None);
    }
}
