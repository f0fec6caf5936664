//! The end of each reply in Redis' protocol (RESP2 and RESP3), however it is cut.
//!
//! No value is kept and nothing recurses: how many values are still to come is a count, whatever
//! they are nested in. Only aggregates of unknown length need a place of their own each.

use thiserror::Error;

/// Bytes of a string, at most.
const STRING_BYTES_MAX: u64 = 1 << 32;
/// Bytes of a line, at most: a simple string, an error or a number.
const LINE_BYTES_MAX: u32 = 64 << 10;
/// Bytes of the line of a length, at most.
const LENGTH_BYTES_MAX: u32 = 24;
/// Values of one reply that are still to come, at most.
const VALUES_MAX: u64 = 1 << 31;
/// Aggregates of unknown length within each other, at most.
const STREAMED_MAX: usize = 4;

/// What a message of RESP is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RespKind {
    /// A reply.
    #[default]
    Reply,
    /// A reply that says that the command failed.
    Error,
    /// Sent by the server unasked.
    Push,
}

/// What came is not RESP.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum RespError {
    /// A value begins with a byte that no type has.
    #[error("byte {0:#04x} begins no value of RESP")]
    Type(u8),
    /// A line ends otherwise than in CR LF, or a string is longer than it says.
    #[error("byte {0:#04x} stands where CR LF is to end a part of RESP")]
    LineEnd(u8),
    /// A length is no number, or one that its type does not have.
    #[error("a length of RESP is malformed")]
    Length,
    /// A line, a string or a number of values is larger than anything that servers send.
    #[error("a length of RESP is over the limit")]
    TooLarge,
    /// A value stands where there may be none: a push within a reply, the end of an aggregate
    /// within a reply, or an aggregate of unknown length within too many others.
    #[error("a value of RESP stands where there may be none")]
    Place,
}

/// What comes next.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum RespStep {
    /// The byte that says of which type the next value is.
    #[default]
    Type,
    /// The rest of a line that nobody reads.
    Line,
    /// The digits of a length.
    Length,
    /// The line feed behind a length.
    LengthEnd,
    /// The bytes of a string.
    String,
    /// The line end behind a string, or behind the end of an aggregate.
    EndCr,
    EndLf,
    /// The semicolon before a part of a string of unknown length.
    Part,
}

/// How far what comes is in a message of RESP.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct RespReader {
    /// The length that is being read, or the bytes of a string that are still to come.
    number: u64,
    /// Values that are still to come within the innermost aggregate of unknown length, or within
    /// the message where there is none.
    values_left: u32,
    /// Values that are still to come behind each open aggregate of unknown length, within what
    /// encloses it, outermost first.
    outside: [u32; STREAMED_MAX],
    /// How many aggregates of unknown length are open.
    streamed: u8,
    /// Bytes of a line so far.
    line_bytes: u32,
    step: RespStep,
    /// The type of the value whose length is being read.
    kind: u8,
    /// How the length begins.
    sign: Sign,
    /// A byte of the message has come.
    is_begun: bool,
    /// The message itself has begun, and not only an attribute before it.
    is_inside: bool,
    /// The last byte of the line so far was CR.
    is_behind_cr: bool,
    /// A string of unknown length is being read.
    is_in_parts: bool,
    message: RespKind,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Sign {
    /// Nothing came yet.
    #[default]
    None,
    /// A minus: no value is there.
    Minus,
    Digit,
    /// A question mark: the length is unknown.
    Unknown,
}

impl RespReader {
    /// How many of `bytes` complete the message; absent where more are to come.
    pub(super) fn find_end(&mut self, bytes: &[u8]) -> Result<Option<usize>, RespError> {
        let mut at = 0;
        while let Some(&byte) = bytes.get(at) {
            at += 1;
            let is_complete = match self.step {
                RespStep::Type => self.begin(byte)?,
                RespStep::Line => {
                    let rest = &bytes[at - 1..];
                    let taken = self.take_line(rest)?;
                    at += taken - 1;
                    self.step == RespStep::Type && self.is_complete()
                }
                RespStep::Length => {
                    self.take_digit(byte)?;
                    false
                }
                RespStep::LengthEnd => {
                    expect(byte, b'\n')?;
                    self.length_is_known()?
                }
                RespStep::String => {
                    let left = bytes.len() - (at - 1);
                    let taken = usize::try_from(self.number).map_or(left, |all| all.min(left));
                    self.number -= taken as u64;
                    at += taken - 1;
                    if self.number == 0 {
                        self.step = RespStep::EndCr;
                    }
                    false
                }
                RespStep::EndCr => {
                    expect(byte, b'\r')?;
                    self.step = RespStep::EndLf;
                    false
                }
                RespStep::EndLf => {
                    expect(byte, b'\n')?;
                    self.step = if self.is_in_parts {
                        RespStep::Part
                    } else {
                        RespStep::Type
                    };
                    !self.is_in_parts && self.is_complete()
                }
                RespStep::Part => {
                    if byte != b';' {
                        return Err(RespError::Type(byte));
                    }
                    self.begin_length(byte);
                    false
                }
            };
            if is_complete {
                return Ok(Some(at));
            }
        }
        Ok(None)
    }

    /// What the message is, whose first byte has come.
    pub(super) fn message(&self) -> RespKind {
        self.message
    }

    /// How many of the bytes that come next nobody needs to see.
    pub(super) fn unread_bytes(&self) -> u64 {
        match self.step {
            RespStep::String => self.number.saturating_sub(1),
            _ => 0,
        }
    }

    /// Tells the reader that so many bytes came and were thrown away.
    pub(super) fn discarded(&mut self, bytes: u64) {
        self.number = self.number.saturating_sub(bytes);
    }

    /// A value of this type begins.
    fn begin(&mut self, kind: u8) -> Result<bool, RespError> {
        if !std::mem::replace(&mut self.is_begun, true) {
            self.values_left = 1;
        }
        // Not what is in an attribute before it: the message itself is still to come then.
        let is_message = !self.is_inside && self.values_left == 1 && self.streamed == 0;
        match kind {
            b'|' => {
                // It is beside the value that follows it, which is yet to come.
                self.begin_length(kind);
                return Ok(false);
            }
            b'.' => {
                let outside = self.streamed.checked_sub(1).ok_or(RespError::Place)?;
                if self.values_left > 0 {
                    return Err(RespError::Place);
                }
                self.streamed = outside;
                self.values_left = self.outside[usize::from(outside)];
                self.step = RespStep::EndCr;
                return Ok(false);
            }
            b'>' if !is_message => return Err(RespError::Place),
            b'>' => self.message = RespKind::Push,
            b'-' | b'!' if is_message => self.message = RespKind::Error,
            _ => {}
        }
        self.is_inside |= is_message;
        // Within an aggregate of unknown length there is no count.
        self.values_left = self.values_left.saturating_sub(1);
        match kind {
            b'+' | b'-' | b':' | b'_' | b',' | b'#' | b'(' => {
                self.line_bytes = 0;
                self.is_behind_cr = false;
                self.step = RespStep::Line;
            }
            b'$' | b'!' | b'=' | b'*' | b'%' | b'~' | b'>' => self.begin_length(kind),
            _ => return Err(RespError::Type(kind)),
        }
        Ok(false)
    }

    fn begin_length(&mut self, kind: u8) {
        self.kind = kind;
        self.number = 0;
        self.line_bytes = 0;
        self.sign = Sign::None;
        self.step = RespStep::Length;
    }

    fn is_complete(&self) -> bool {
        self.values_left == 0 && self.streamed == 0
    }

    /// Takes the bytes of a line up to its end; gives how many.
    fn take_line(&mut self, bytes: &[u8]) -> Result<usize, RespError> {
        let end = memchr::memchr(b'\n', bytes);
        let taken = end.map_or(bytes.len(), |at| at + 1);
        let line_bytes = u64::from(self.line_bytes) + taken as u64;
        if line_bytes > u64::from(LINE_BYTES_MAX) {
            return Err(RespError::TooLarge);
        }
        self.line_bytes = line_bytes as u32;
        match end {
            Some(0) if !self.is_behind_cr => return Err(RespError::LineEnd(b'\n')),
            Some(at) if at > 0 && bytes[at - 1] != b'\r' => {
                return Err(RespError::LineEnd(b'\n'));
            }
            Some(_) => self.step = RespStep::Type,
            None => self.is_behind_cr = bytes.last() == Some(&b'\r'),
        }
        Ok(taken)
    }

    /// Takes a byte of a length, up to CR.
    fn take_digit(&mut self, byte: u8) -> Result<(), RespError> {
        self.line_bytes += 1;
        if self.line_bytes > LENGTH_BYTES_MAX {
            return Err(RespError::TooLarge);
        }
        match (byte, self.sign) {
            (b'0'..=b'9', Sign::None | Sign::Digit | Sign::Minus) => {
                if self.sign == Sign::None {
                    self.sign = Sign::Digit;
                }
                self.number = self.number * 10 + u64::from(byte - b'0');
                if self.number > STRING_BYTES_MAX {
                    return Err(RespError::TooLarge);
                }
            }
            (b'-', Sign::None) => self.sign = Sign::Minus,
            (b'?', Sign::None) => self.sign = Sign::Unknown,
            (b'\r', Sign::Digit | Sign::Minus | Sign::Unknown) => self.step = RespStep::LengthEnd,
            _ => return Err(RespError::Length),
        }
        Ok(())
    }

    /// The line of a length is complete. Gives whether the message is.
    fn length_is_known(&mut self) -> Result<bool, RespError> {
        self.step = RespStep::Type;
        match (self.sign, self.kind) {
            // Null, of RESP2.
            (Sign::Minus, b'$' | b'*') if self.number == 1 => Ok(self.is_complete()),
            (Sign::Unknown, b'$') => {
                self.is_in_parts = true;
                self.step = RespStep::Part;
                Ok(false)
            }
            (Sign::Unknown, b'*' | b'~' | b'%') => {
                let place = self.outside.get_mut(usize::from(self.streamed));
                *place.ok_or(RespError::Place)? = self.values_left;
                self.streamed += 1;
                self.values_left = 0;
                Ok(false)
            }
            (Sign::Digit, b';') if self.number == 0 => {
                self.is_in_parts = false;
                Ok(self.is_complete())
            }
            (Sign::Digit, b'$' | b'!' | b'=' | b';') => {
                self.step = match self.number {
                    0 => RespStep::EndCr,
                    _ => RespStep::String,
                };
                Ok(false)
            }
            (Sign::Digit, b'*' | b'~' | b'>') => self.add_values(self.number),
            (Sign::Digit, b'%') => self.add_values(2 * self.number),
            (Sign::Digit, b'|') => {
                self.add_values(2 * self.number)?;
                // The value that it is beside is still to come.
                Ok(false)
            }
            _ => Err(RespError::Length),
        }
    }

    fn add_values(&mut self, count: u64) -> Result<bool, RespError> {
        let left = u64::from(self.values_left) + count;
        if left > VALUES_MAX {
            return Err(RespError::TooLarge);
        }
        self.values_left = left as u32;
        Ok(self.is_complete())
    }
}

/// Whether `byte`, of a line end, is the `expected` one.
fn expect(byte: u8, expected: u8) -> Result<(), RespError> {
    if byte == expected {
        Ok(())
    } else {
        Err(RespError::LineEnd(byte))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_support::at_every_cut;

    type Messages = Vec<(u64, RespKind)>;

    /// The messages in `pieces`, with the bytes of what is begun behind them, or the error.
    fn read(pieces: &[&[u8]]) -> (Messages, Result<u64, RespError>) {
        let (mut reader, mut messages, mut pending) = (RespReader::default(), Vec::new(), 0);
        for piece in pieces {
            let mut rest = *piece;
            while !rest.is_empty() {
                match reader.find_end(rest) {
                    Ok(Some(end)) => {
                        messages.push((pending + end as u64, reader.message()));
                        (reader, pending) = (RespReader::default(), 0);
                        rest = &rest[end..];
                    }
                    Ok(None) => {
                        pending += rest.len() as u64;
                        rest = &[];
                    }
                    Err(error) => return (messages, Err(error)),
                }
            }
        }
        (messages, Ok(pending))
    }

    #[test]
    fn each_type_is_one_message() {
        use RespKind::{Error, Push, Reply};
        let streamed = "*?\r\n:1\r\n*2\r\n:2\r\n:3\r\n$?\r\n;1\r\na\r\n;0\r\n.\r\n";
        let cases: &[(&str, RespKind)] = &[
            ("+OK\r\n", Reply),
            ("+\r\n", Reply),
            ("+a\rb\r\n", Reply),
            ("-ERR no such key\r\n", Error),
            (":-42\r\n", Reply),
            ("$5\r\nhello\r\n", Reply),
            ("$6\r\na\r\nb\r\n\r\n", Reply),
            ("$0\r\n\r\n", Reply),
            ("$-1\r\n", Reply),
            ("*-1\r\n", Reply),
            ("*0\r\n", Reply),
            ("*2\r\n$1\r\na\r\n$-1\r\n", Reply),
            ("*1\r\n-ERR in a transaction\r\n", Reply),
            ("*2\r\n*2\r\n:1\r\n*1\r\n+x\r\n*0\r\n", Reply),
            ("_\r\n", Reply),
            (",1.5e3\r\n", Reply),
            ("#t\r\n", Reply),
            ("(3492890328409238509324850943850943825024385\r\n", Reply),
            ("!5\r\nERR x\r\n", Error),
            ("=7\r\ntxt:abc\r\n", Reply),
            ("%2\r\n+a\r\n:1\r\n+b\r\n*1\r\n:2\r\n", Reply),
            ("~3\r\n:1\r\n:2\r\n#f\r\n", Reply),
            (">2\r\n+message\r\n$3\r\nabc\r\n", Push),
            (">0\r\n", Push),
            ("|1\r\n+ttl\r\n:3600\r\n$1\r\na\r\n", Reply),
            ("|1\r\n+a\r\n*1\r\n-x\r\n-ERR behind it\r\n", Error),
            ("*2\r\n:1\r\n|1\r\n+ttl\r\n:3\r\n:2\r\n", Reply),
            ("|1\r\n+a\r\n+b\r\n|0\r\n>1\r\n+c\r\n", Push),
            ("$?\r\n;4\r\nHell\r\n;1\r\no\r\n;0\r\n", Reply),
            ("$?\r\n;0\r\n", Reply),
            (streamed, Reply),
            ("%?\r\n+a\r\n~?\r\n:1\r\n.\r\n.\r\n", Reply),
            ("*2\r\n*?\r\n.\r\n:1\r\n", Reply),
            ("*?\r\n*?\r\n*?\r\n*?\r\n.\r\n.\r\n.\r\n.\r\n", Reply),
        ];
        for &(text, kind) in cases {
            let twice = text.repeat(2);
            let length = text.len() as u64;
            let expected = (vec![(length, kind), (length, kind)], Ok(0));
            assert_eq!(at_every_cut(twice.as_bytes(), read), expected, "{twice:?}");
            // Whatever is missing at its end, it is not complete.
            for end in 1..text.len() {
                let begun = &text.as_bytes()[..end];
                assert_eq!(read(&[begun]), (vec![], Ok(end as u64)), "{text:?} {end}");
            }
        }
        let all: String = cases.iter().map(|(text, _)| *text).collect();
        let expected = cases.iter().map(|(text, kind)| (text.len() as u64, *kind));
        let found = at_every_cut(all.as_bytes(), read);
        assert_eq!(found, (expected.collect(), Ok(0)));
    }

    #[test]
    fn what_is_not_resp_is_refused() {
        use RespError::{Length, LineEnd, Place, TooLarge, Type};
        for (text, error) in [
            ("HTTP/1.1 200 OK\r\n", Type(b'H')),
            ("\r\n", Type(b'\r')),
            ("+OK\n", LineEnd(b'\n')),
            ("+\n", LineEnd(b'\n')),
            ("$1\r\nab\r\n", LineEnd(b'b')),
            ("$1\r\na\rb", LineEnd(b'b')),
            ("$1\rx", LineEnd(b'x')),
            ("$\r\n", Length),
            ("$a\r\n", Length),
            ("$1\n", Length),
            ("$-2\r\n", Length),
            ("$-\r\n", Length),
            ("$--1\r\n", Length),
            ("$1?\r\n", Length),
            ("%-1\r\n", Length),
            ("!?\r\n", Length),
            (">?\r\n", Length),
            ("|?\r\n", Length),
            ("$4294967297\r\n", TooLarge),
            ("$0000000000000000000000000\r\n", TooLarge),
            ("*4294967296\r\n", TooLarge),
            ("%1500000000\r\n", TooLarge),
            ("*2000000000\r\n*2000000000\r\n", TooLarge),
            ("*1\r\n>1\r\n+a\r\n", Place),
            (".\r\n", Place),
            ("*1\r\n.\r\n", Place),
            ("*?\r\n*1\r\n.\r\n", Place),
            ("*?\r\n*?\r\n*?\r\n*?\r\n*?\r\n", Place),
            ("$?\r\n+a\r\n", Type(b'+')),
        ] {
            let found = at_every_cut(text.as_bytes(), read);
            assert_eq!(found, (vec![], Err(error)), "{text:?}");
        }
        let long = format!("+{}\r\n", "a".repeat(LINE_BYTES_MAX as usize));
        assert_eq!(read(&[long.as_bytes()]).1, Err(TooLarge));
    }

    #[test]
    fn nesting_takes_no_place() {
        let deep = format!("{}:1\r\n", "*1\r\n".repeat(100_000));
        let expected = (vec![(deep.len() as u64, RespKind::Reply)], Ok(0));
        assert_eq!(read(&[deep.as_bytes()]), expected);
        assert!(size_of::<RespReader>() <= 48, "{}", size_of::<RespReader>());
    }

    #[test]
    fn the_middle_of_a_string_need_not_be_seen() {
        let mut reader = RespReader::default();
        assert_eq!(reader.find_end(b"*2\r\n$100\r\nab"), Ok(None));
        assert_eq!(reader.unread_bytes(), 97);
        reader.discarded(97);
        assert_eq!(reader.unread_bytes(), 0);
        assert_eq!(reader.find_end(b"z\r\n:1\r\nrest"), Ok(Some(7)));
    }
}
