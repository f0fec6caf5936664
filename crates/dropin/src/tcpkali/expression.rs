//! Messages as they are typed for tcpkali: octets, and expressions in `\{...}`.

use thiserror::Error;

/// A part of a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Piece {
    /// These octets.
    Bytes(Vec<u8>),
    /// The number of the connection.
    Connection,
}

/// Why a text is no message here.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ExpressionError {
    /// An expression has no end.
    #[error("Parse error: the expression `{0}` has no closing brace")]
    Open(String),
    /// It is unknown to tcpkali, or to brunt.
    #[error(
        "brunt: the expression \\{{{0}}} is not among those that brunt has: \\{{connection.uid}} \
         and \\{{raw \"...\"}}; see docs/drop-ins.md"
    )]
    Unknown(String),
}

/// The parts of a message. With `unescapes`, backslashes begin escapes as in C: `\n`, `\r`, `\t`
/// and the like, up to three octal digits, `\xHH`; expressions are looked for in any case.
///
/// # Errors
///
/// An expression is unknown, or has no end.
pub fn pieces(text: &[u8], unescapes: bool) -> Result<Vec<Piece>, ExpressionError> {
    let mut pieces = Vec::new();
    let mut bytes = Vec::new();
    let mut rest = text;
    while let Some((&first, behind)) = rest.split_first() {
        rest = behind;
        match behind.first() {
            Some(b'{') if first == b'\\' => {
                let shown = || String::from_utf8_lossy(&behind[1..]).into_owned();
                let end = behind.iter().position(|&byte| byte == b'}');
                let end = end.ok_or_else(|| ExpressionError::Open(shown()))?;
                match expression(&behind[1..end])? {
                    Piece::Bytes(raw) => bytes.extend_from_slice(&raw),
                    piece => {
                        if !bytes.is_empty() {
                            pieces.push(Piece::Bytes(std::mem::take(&mut bytes)));
                        }
                        pieces.push(piece);
                    }
                }
                rest = &behind[end + 1..];
            }
            Some(_) if first == b'\\' && unescapes => {
                let (byte, taken) = escaped(behind);
                bytes.push(byte);
                rest = &behind[taken..];
            }
            _ => bytes.push(first),
        }
    }
    if !bytes.is_empty() {
        pieces.push(Piece::Bytes(bytes));
    }
    Ok(pieces)
}

/// What stands in the braces.
fn expression(text: &[u8]) -> Result<Piece, ExpressionError> {
    let unknown = || ExpressionError::Unknown(String::from_utf8_lossy(text).into_owned());
    let text = text.trim_ascii();
    if text == b"connection.uid" {
        return Ok(Piece::Connection);
    }
    let quoted = text.strip_prefix(b"raw").map(<[u8]>::trim_ascii);
    let quoted = quoted.and_then(|quoted| quoted.strip_prefix(b"\"")?.strip_suffix(b"\""));
    quoted
        .map(|raw| Piece::Bytes(raw.to_vec()))
        .ok_or_else(unknown)
}

/// The octet that an escape means, and how many octets behind the backslash it takes; `text` is
/// not empty. A backslash before anything else is left out.
fn escaped(text: &[u8]) -> (u8, usize) {
    let octal = text
        .iter()
        .take(3)
        .take_while(|byte| (b'0'..=b'7').contains(byte));
    let digits = octal.count();
    if digits > 0 {
        let value = text[..digits]
            .iter()
            .fold(0_u32, |value, byte| value * 8 + u32::from(byte - b'0'));
        return (value as u8, digits);
    }
    let byte = match text[0] {
        b'n' => b'\n',
        b'r' => b'\r',
        b't' => b'\t',
        b'a' => 7,
        b'b' => 8,
        b'f' => 12,
        b'v' => 11,
        b'x' => {
            let hex = text[1..]
                .iter()
                .take(2)
                .take_while(|byte| byte.is_ascii_hexdigit());
            let digits = hex.count();
            let value = text[1..1 + digits].iter().fold(0_u32, |value, byte| {
                value * 16 + char::from(*byte).to_digit(16).unwrap_or(0)
            });
            return match digits {
                0 => (b'x', 1),
                _ => (value as u8, 1 + digits),
            };
        }
        other => other,
    };
    (byte, 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(text: &str, unescapes: bool) -> Vec<u8> {
        match &pieces(text.as_bytes(), unescapes).expect(text)[..] {
            [] => Vec::new(),
            [Piece::Bytes(bytes)] => bytes.clone(),
            other => panic!("{text}: {other:?}"),
        }
    }

    #[test]
    fn escapes_are_read_where_that_is_asked_for() {
        assert_eq!(bytes("PING\\r\\n", true), b"PING\r\n");
        assert_eq!(bytes("PING\\r\\n", false), b"PING\\r\\n");
        assert_eq!(
            bytes("\\101\\0\\x41\\x4\\xg\\\\\\q\\", true),
            b"A\0A\x04xg\\q\\"
        );
    }

    #[test]
    fn expressions_are_read_in_any_case() {
        for unescapes in [true, false] {
            let found = pieces(b"a\\{connection.uid}b\\{ raw \"c\" }d", unescapes);
            assert_eq!(
                found,
                Ok(vec![
                    Piece::Bytes(b"a".to_vec()),
                    Piece::Connection,
                    Piece::Bytes(b"bcd".to_vec()),
                ])
            );
        }
        assert_eq!(
            pieces(b"\\{re [a-z]+}", true),
            Err(ExpressionError::Unknown("re [a-z]+".to_owned()))
        );
        assert_eq!(
            pieces(b"x\\{connection", true),
            Err(ExpressionError::Open("connection".to_owned()))
        );
    }
}
