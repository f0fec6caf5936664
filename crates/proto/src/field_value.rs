//! What all versions of HTTP read in header fields: tokens, numbers and lists.

/// Whether `byte` may stand in a token (RFC 9110 section 5.6.2).
#[inline]
pub(crate) const fn is_token_byte(byte: u8) -> bool {
    TOKEN_BYTES[byte as usize]
}

static TOKEN_BYTES: [bool; 256] = {
    let mut is_one = [false; 256];
    let mut byte = 0;
    while byte < 128_u8 {
        is_one[byte as usize] = byte.is_ascii_alphanumeric();
        byte += 1;
    }
    let others = b"!#$%&'*+-.^_`|~";
    let mut place = 0;
    while place < others.len() {
        is_one[others[place] as usize] = true;
        place += 1;
    }
    is_one
};

/// How many of the first bytes of `text` are neither below `least`, which is 128 at most, nor
/// DEL; those of 128 and above are none of these.
#[inline]
pub(crate) fn printable_prefix(text: &[u8], least: u8) -> usize {
    const ONES: u64 = u64::MAX / 255;
    let mut words = text.chunks_exact(8);
    let mut before = 0;
    for word in &mut words {
        let mut bytes = [0; 8];
        bytes.copy_from_slice(word);
        let word = u64::from_le_bytes(bytes);
        // The highest bit of each byte that is below, and of each that is DEL: a borrow spoils what
        // is behind the first one alone.
        let below = word.wrapping_sub(ONES * u64::from(least)) & !word;
        let other = word ^ (ONES * 0x7f);
        let is_del = other.wrapping_sub(ONES) & !other;
        let found = (below | is_del) & (ONES * 0x80);
        if found != 0 {
            return before + found.trailing_zeros() as usize / 8;
        }
        before += 8;
    }
    let rest = words.remainder().iter();
    let is_printable = |byte: &&u8| **byte >= least && **byte != 0x7f;
    before + rest.take_while(is_printable).count()
}

/// A number of decimal digits only; `None` also where it is over `u64::MAX`.
pub(crate) fn decimal(digits: &[u8]) -> Option<u64> {
    if digits.is_empty() {
        return None;
    }
    digits.iter().try_fold(0_u64, |number, &byte| {
        let digit = byte.is_ascii_digit().then(|| u64::from(byte - b'0'))?;
        number.checked_mul(10)?.checked_add(digit)
    })
}

/// What the fields `Content-Length` of a head say.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum ContentLength {
    #[default]
    Absent,
    Bytes(u64),
    /// Malformed, or it contradicts itself.
    Bad,
}

impl ContentLength {
    /// Takes a further value; absent where it is no number. A repeated one is allowed, a different
    /// one is not (RFC 9110 section 8.6).
    pub(crate) fn add(&mut self, value: Option<u64>) {
        *self = match (*self, value) {
            (Self::Absent, Some(bytes)) => Self::Bytes(bytes),
            (Self::Bytes(known), Some(bytes)) if known == bytes => *self,
            _ => Self::Bad,
        };
    }
}

/// The members of a comma-separated list (RFC 9110 section 5.6.1), empty ones included.
pub(crate) fn list(value: &[u8]) -> impl Iterator<Item = &[u8]> {
    value.split(|&byte| byte == b',').map(without_spaces)
}

/// A value without the spaces around it (RFC 9110 section 5.6.3).
fn without_spaces(value: &[u8]) -> &[u8] {
    let is_text = |byte: &u8| !matches!(byte, b' ' | b'\t');
    let start = value.iter().position(is_text).unwrap_or(value.len());
    let end = value
        .iter()
        .rposition(is_text)
        .map_or(start, |last| last + 1);
    &value[start..end]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_have_these_bytes() {
        for byte in 0..=255_u8 {
            let is_one = byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
            assert_eq!(is_token_byte(byte), is_one, "{byte}");
        }
    }

    #[test]
    fn the_first_byte_that_is_not_printable_ends_a_prefix() {
        let mut text = [0_u8; 40];
        for least in [b' ', b'!'] {
            for byte in 0..=255_u8 {
                let is_printable = byte >= least && byte != 0x7f;
                for filler in [b'a', least, 0x7e, 0x80, 0xff] {
                    for place in 0..20 {
                        text.fill(filler);
                        text[place] = byte;
                        // What is behind it has no effect.
                        text[place + 1] = 0;
                        let expected = place + usize::from(is_printable);
                        assert_eq!(printable_prefix(&text, least), expected);
                        let cut = &text[..place + 1];
                        assert_eq!(printable_prefix(cut, least), expected);
                    }
                }
            }
        }
    }
}
