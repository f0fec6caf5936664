//! Backslashes in tcpkali's messages, where `-e` says that they begin escapes.

/// What a text with escapes means: `\n`, `\r`, `\f`, `\b`, `\xHH` with one or two digits, and
/// octal digits behind `\0`. Two backslashes stay two, and one before anything else is left out,
/// so that `\t` is a t.
pub(super) fn unescaped(text: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((&byte, behind)) = rest.split_first() {
        rest = behind;
        let Some(&letter) = behind.first().filter(|_| byte == b'\\') else {
            bytes.push(byte);
            continue;
        };
        rest = &behind[1..];
        match letter {
            b'n' => bytes.push(b'\n'),
            b'r' => bytes.push(b'\r'),
            b'f' => bytes.push(12),
            b'b' => bytes.push(8),
            b'\\' => bytes.extend_from_slice(b"\\\\"),
            b'x' => match number(rest, 16, 2) {
                (_, 0) => bytes.extend_from_slice(b"\\x"),
                (value, digits) => {
                    bytes.push(value);
                    rest = &rest[digits..];
                }
            },
            b'0' => {
                let (value, digits) = number(rest, 8, 3);
                bytes.push(value);
                rest = &rest[digits..];
            }
            other => bytes.push(other),
        }
    }
    bytes
}

/// The number that `text` begins with, without what does not fit an octet, and how many digits it
/// has, of `digits_max`.
fn number(text: &[u8], radix: u32, digits_max: usize) -> (u8, usize) {
    let digits = text
        .iter()
        .take(digits_max)
        .map_while(|byte| char::from(*byte).to_digit(radix));
    digits.fold((0, 0), |(value, count), digit| {
        let value = u32::from(value) * radix + digit;
        (value as u8, count + 1)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_mean_what_tcpkali_sends() {
        for (text, bytes) in [
            ("PING\\r\\n", &b"PING\r\n"[..]),
            ("a\\tb\\\"c", b"atb\"c"),
            ("\\\\n", b"\\\\n"),
            ("\\101\\x41\\0z\\012\\07771", b"101A\0z\n\xff1"),
            ("\\x4\\xg\\x414", b"\x04\\xgA4"),
            ("end\\", b"end\\"),
        ] {
            assert_eq!(unescaped(text.as_bytes()), bytes, "{text}");
        }
    }
}
