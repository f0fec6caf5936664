//! Bytes as people type and read them: text with backslash escapes.

use std::fmt::Write;

use thiserror::Error;

/// Why a text with escapes means no bytes.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum EscapeError {
    /// A backslash stands before a character with which it forms no escape.
    #[error(r"`\{0}` is not an escape: write \r, \n, \t, \0, \xHH, or \\ for a backslash")]
    Unknown(char),
    /// The text ends with the backslash.
    #[error(r"a backslash at the end begins no escape; write \\ for a backslash")]
    Unfinished,
    /// `\x` is not followed by two hexadecimal digits.
    #[error(r"`\x` needs two hexadecimal digits behind it, such as \x0a")]
    NotHexadecimal,
}

/// The bytes that `text` means.
///
/// # Errors
///
/// A backslash in it begins no escape.
pub fn unescape(text: &str) -> Result<Vec<u8>, EscapeError> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('\\') {
        bytes.extend_from_slice(&rest.as_bytes()[..at]);
        let (byte, taken) = escaped(&rest[at + 1..])?;
        bytes.push(byte);
        rest = &rest[at + 1 + taken..];
    }
    bytes.extend_from_slice(rest.as_bytes());
    Ok(bytes)
}

/// What the escape whose backslash `text` follows means, and how many bytes of `text` it takes.
pub(super) fn escaped(text: &str) -> Result<(u8, usize), EscapeError> {
    let byte = match text.chars().next().ok_or(EscapeError::Unfinished)? {
        'r' => b'\r',
        'n' => b'\n',
        't' => b'\t',
        '0' => 0,
        '\\' => b'\\',
        'x' => {
            let digits = text.get(1..3).ok_or(EscapeError::NotHexadecimal)?;
            if !digits.bytes().all(|digit| digit.is_ascii_hexdigit()) {
                return Err(EscapeError::NotHexadecimal);
            }
            let byte = u8::from_str_radix(digits, 16).map_err(|_| EscapeError::NotHexadecimal)?;
            return Ok((byte, 3));
        }
        other => return Err(EscapeError::Unknown(other)),
    };
    Ok((byte, 1))
}

/// `bytes` as a text that [`unescape`] reads back: printable ASCII alone.
pub fn escape(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    for &byte in bytes {
        match byte {
            b'\r' => text.push_str("\\r"),
            b'\n' => text.push_str("\\n"),
            b'\t' => text.push_str("\\t"),
            0 => text.push_str("\\0"),
            b'\\' => text.push_str("\\\\"),
            b' '..=b'~' => text.push(byte.into()),
            _ => {
                // Writing to a string cannot fail.
                let _ = write!(text, "\\x{byte:02x}");
            }
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_mean_bytes() {
        for (text, bytes) in [
            ("", &b""[..]),
            ("PING\\r\\n", b"PING\r\n"),
            ("\\t\\0\\\\n", b"\t\0\\n"),
            ("\\x0a\\xFf\\x41", b"\n\xffA"),
            ("é\\n", b"\xc3\xa9\n"),
        ] {
            assert_eq!(unescape(text), Ok(bytes.to_vec()), "{text:?}");
        }
    }

    #[test]
    fn what_is_no_escape_is_refused() {
        for (text, error) in [
            ("a\\", EscapeError::Unfinished),
            ("\\q", EscapeError::Unknown('q')),
            ("\\é", EscapeError::Unknown('é')),
            ("\\x", EscapeError::NotHexadecimal),
            ("\\x1", EscapeError::NotHexadecimal),
            ("\\x1g", EscapeError::NotHexadecimal),
            ("\\x+1", EscapeError::NotHexadecimal),
            ("\\xé", EscapeError::NotHexadecimal),
        ] {
            assert_eq!(unescape(text), Err(error), "{text:?}");
        }
    }

    #[test]
    fn every_byte_reads_back() {
        let bytes: Vec<u8> = (0..=255).collect();
        let text = escape(&bytes);
        assert!(text.bytes().all(|byte| (b' '..=b'~').contains(&byte)));
        assert_eq!(unescape(&text), Ok(bytes));
    }
}
