//! The end of each message in what comes on one connection, however it is cut.

use thiserror::Error;

use super::framing::{ByteOrder, Framing, LengthField};
use super::resp::{RespError, RespKind, RespReader};

/// What comes on one connection: how far it is in a message. The messages themselves are not kept.
///
/// Every byte is accounted for: those that were taken are in the messages given out and in
/// [`pending_bytes`](Self::pending_bytes), at any time.
#[derive(Clone, Copy, Debug, Default)]
pub struct Scanner {
    /// Bytes of the message that is being received.
    bytes: u64,
    /// Bytes of all of it, where its length field is complete; before, 0.
    bytes_in_all: u64,
    /// What the bytes of a length field that came say.
    value: u32,
    /// How many times the marker came.
    markers: u32,
    /// How many of the first bytes of a pattern came last.
    matched: u16,
    /// How far it is in a message of RESP.
    resp: RespReader,
    failed: Option<ScanError>,
}

/// What [`Scanner::receive`] did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub struct Scanned {
    /// Bytes taken; without a message all of them.
    pub consumed: usize,
    /// Bytes of the message that the last of these completed.
    pub message_bytes: Option<u64>,
    /// What this message is; of other framings than RESP always a reply.
    pub kind: RespKind,
}

/// What came is not framed as it should be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum ScanError {
    /// What came back is not what was sent.
    #[error("the reply is no echo of the message: byte {at} differs")]
    WrongEcho {
        /// The first byte that differs, counted from 0.
        at: u64,
    },
    /// The connection ended in the middle of a message.
    #[error("the connection ended in the middle of a message")]
    Truncated,
    /// The length that a message states is less than the bytes that state it.
    #[error("a length of {value} is less than the adjustment takes off")]
    Length {
        /// What the field says.
        value: u32,
    },
    /// The bytes are not RESP.
    #[error(transparent)]
    Resp(#[from] RespError),
}

impl Scanner {
    /// Takes bytes up to the end of at most one message; to be called again with the rest. `sent`
    /// is the message of which an echo is expected; of no meaning to other framings. `framing` and
    /// `sent` are the same for all calls of one message.
    ///
    /// # Errors
    ///
    /// What came is not framed so. All of `bytes` then count as taken, and are in
    /// [`pending_bytes`](Self::pending_bytes). Until [`reset`](Self::reset), calls with further
    /// bytes give the same error and count these too.
    #[inline]
    pub fn receive(
        &mut self,
        framing: &Framing,
        bytes: &[u8],
        sent: &[u8],
    ) -> Result<Scanned, ScanError> {
        let end = match self.failed {
            None => self.find_end(framing, bytes, sent),
            Some(error) => Err(error),
        };
        let consumed = match end {
            Ok(Some(end)) => end,
            Ok(None) | Err(_) => bytes.len(),
        };
        self.bytes += consumed as u64;
        Ok(match end {
            Ok(Some(_)) => Scanned {
                consumed,
                kind: self.resp.message(),
                message_bytes: Some(self.complete()),
            },
            Ok(None) => Scanned {
                consumed,
                message_bytes: None,
                kind: RespKind::Reply,
            },
            Err(error) => {
                self.failed = Some(error);
                return Err(error);
            }
        })
    }

    /// How many of `bytes` complete the message; absent where it goes on.
    #[inline]
    fn find_end(
        &mut self,
        framing: &Framing,
        bytes: &[u8],
        sent: &[u8],
    ) -> Result<Option<usize>, ScanError> {
        match framing {
            Framing::Line => Ok(memchr::memchr(b'\n', bytes).map(|at| at + 1)),
            Framing::Delimiter(pattern) => Ok(pattern.find_end(&mut self.matched, bytes)),
            Framing::Fixed(in_all) => Ok(self.end_of(in_all.get(), bytes)),
            Framing::Echo => self.find_end_of_echo(bytes, sent),
            Framing::Length(field) => self.find_end_by_length(*field, bytes),
            Framing::Marker { pattern, count } => {
                let mut taken = 0;
                while let Some(end) = pattern.find_end(&mut self.matched, &bytes[taken..]) {
                    taken += end;
                    self.markers += 1;
                    if self.markers == count.get() {
                        return Ok(Some(taken));
                    }
                }
                Ok(None)
            }
            Framing::Resp => Ok(self.resp.find_end(bytes)?),
            Framing::UntilClose | Framing::None => Ok(None),
        }
    }

    /// Where a message of `in_all` bytes ends, of which some are still to come.
    #[inline]
    fn end_of(&self, in_all: u64, bytes: &[u8]) -> Option<usize> {
        let left = in_all - self.bytes;
        usize::try_from(left)
            .ok()
            .filter(|&left| left <= bytes.len())
    }

    fn find_end_of_echo(&self, bytes: &[u8], sent: &[u8]) -> Result<Option<usize>, ScanError> {
        let left = usize::try_from(self.bytes).map_or(&[][..], |at| sent.get(at..).unwrap_or(&[]));
        let compared = left.len().min(bytes.len());
        if left[..compared] == bytes[..compared] && !left.is_empty() {
            return Ok((compared == left.len()).then_some(compared));
        }
        let pairs = left.iter().zip(bytes);
        let equal = pairs
            .take_while(|(expected, came)| expected == came)
            .count();
        Err(ScanError::WrongEcho {
            at: self.bytes + equal as u64,
        })
    }

    fn find_end_by_length(
        &mut self,
        field: LengthField,
        bytes: &[u8],
    ) -> Result<Option<usize>, ScanError> {
        if self.bytes_in_all == 0 {
            let from = self.bytes;
            let to = (from + bytes.len() as u64).min(field.head_bytes());
            for at in from.max(field.offset.into())..to {
                let byte = u32::from(bytes[(at - from) as usize]);
                let number = at - u64::from(field.offset);
                match field.order {
                    ByteOrder::Big => self.value = self.value << 8 | byte,
                    ByteOrder::Little => self.value |= byte << (8 * number),
                }
            }
            if to < field.head_bytes() {
                return Ok(None);
            }
            let in_all = field.message_bytes(self.value);
            self.bytes_in_all = in_all.ok_or(ScanError::Length { value: self.value })?;
        }
        Ok(self.end_of(self.bytes_in_all, bytes))
    }

    /// Gives the bytes of the message, and begins the next one.
    #[inline]
    fn complete(&mut self) -> u64 {
        let bytes = self.bytes;
        self.reset();
        bytes
    }

    /// The peer closed its side. Gives the bytes of the message that ends by it; absent where no
    /// message was begun.
    ///
    /// # Errors
    ///
    /// The message has another end, or was refused before. [`pending_bytes`](Self::pending_bytes)
    /// stays as it was until [`reset`](Self::reset).
    pub fn end(&mut self, framing: &Framing) -> Result<Option<u64>, ScanError> {
        match (self.failed, framing) {
            (Some(error), _) => Err(error),
            (None, _) if self.bytes == 0 => Ok(None),
            (None, Framing::UntilClose) => Ok(Some(self.complete())),
            (None, _) => Err(ScanError::Truncated),
        }
    }

    /// How many of the bytes that come next nobody needs to see: those of a message that has begun
    /// and whose length is known, but for its last one, which completes it; those of a string of
    /// RESP, likewise; all that come until the connection ends, where that is its end.
    pub fn unread_bytes(&self, framing: &Framing) -> u64 {
        if *framing == Framing::Resp && self.failed.is_none() {
            return self.resp.unread_bytes();
        }
        let in_all = match framing {
            _ if self.bytes == 0 || self.failed.is_some() => 0,
            Framing::Fixed(in_all) => in_all.get(),
            Framing::Length(_) => self.bytes_in_all,
            Framing::UntilClose => u64::MAX,
            _ => 0,
        };
        in_all.saturating_sub(self.bytes).saturating_sub(1)
    }

    /// Tells the scanner that so many bytes came and were thrown away: at most
    /// [`unread_bytes`](Self::unread_bytes).
    pub fn discarded(&mut self, bytes: u64) {
        self.bytes += bytes;
        self.resp.discarded(bytes);
    }

    /// Bytes taken that belong to no message given out.
    #[inline]
    pub fn pending_bytes(&self) -> u64 {
        self.bytes
    }

    /// Forgets the message that is being received.
    #[inline]
    pub fn reset(&mut self) {
        *self = Self::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_support::at_every_cut;

    /// The messages in `pieces`, and what is pending behind them or the error.
    fn scan(
        framing: &Framing,
        sent: &[u8],
        pieces: &[&[u8]],
    ) -> (Vec<u64>, Result<u64, ScanError>) {
        let (mut scanner, mut messages) = (Scanner::default(), Vec::new());
        for piece in pieces {
            let mut rest = *piece;
            while !rest.is_empty() {
                match scanner.receive(framing, rest, sent) {
                    Ok(scanned) => {
                        messages.extend(scanned.message_bytes);
                        rest = &rest[scanned.consumed..];
                    }
                    Err(error) => return (messages, Err(error)),
                }
            }
        }
        (messages, Ok(scanner.pending_bytes()))
    }

    #[test]
    fn messages_end_where_their_framing_says_wherever_they_are_cut() {
        type Case<'a> = (&'a str, &'a [u8], &'a [u64], Result<u64, ScanError>);
        let wrong = |at| Err(ScanError::WrongEcho { at });
        let not_resp = Err(ScanError::Resp(RespError::Type(b'P')));
        let short = Err(ScanError::Length { value: 3 });
        let cases: [Case<'_>; 27] = [
            ("line", b"+PONG\r\n\n+x", &[7, 1], Ok(2)),
            ("delim=\\r\\n", b"a\n\r\r\nb\r\n\r", &[5, 3], Ok(1)),
            ("delim=abab", b"abaababab", &[7], Ok(2)),
            ("fixed=1", b"abc", &[1, 1, 1], Ok(0)),
            ("fixed=4", b"abcdefghij", &[4, 4], Ok(2)),
            ("echo", b"hellohellohel", &[5, 5], Ok(3)),
            ("echo", b"helloHello", &[5], wrong(0)),
            ("echo", b"hellohel_o", &[5], wrong(3)),
            ("len8", b"\x02ab\x00\x01c\x05x", &[3, 1, 2], Ok(2)),
            ("len16be", b"\x00\x03abc\x01\x00d", &[5], Ok(3)),
            ("len16le", b"\x03\x00abc\x00\x01d", &[5], Ok(3)),
            ("len24be", b"\0\0\x01a\0\0\0", &[4, 3], Ok(0)),
            ("len24le+1", b"\x01\0\0\x07a\0\0\0\x08", &[5, 4], Ok(0)),
            ("len32be", b"\0\0\0\x02ab\0\0\0", &[6], Ok(3)),
            ("len32le", b"\x02\0\0\0ab\xff\xff\xff\xff", &[6], Ok(4)),
            ("len32be-4", b"\0\0\0\x05a\0\0\0\x04", &[5, 4], Ok(0)),
            ("len32be-4", b"\0\0\0\x05a\0\0\0\x03", &[5], short),
            ("len32be@1-4", b"R\0\0\0\x04Z\0\0\0\x05I", &[5, 6], Ok(0)),
            ("len8@2+1", b"..\x01ab..\x00c.", &[5, 4], Ok(1)),
            ("marker=OK", b"20 OK more 200 OKOK rest", &[5, 12, 2], Ok(5)),
            ("marker=OK*2", b"1 OK 2 OK 3 OK", &[9], Ok(5)),
            ("marker=aa*2", b"aaaaaaa", &[4], Ok(3)),
            ("until-close", b"anything\n", &[], Ok(9)),
            ("none", b"anything\n", &[], Ok(9)),
            ("line", b"", &[], Ok(0)),
            ("resp", b"+OK\r\n*1\r\n$2\r\n\r\n\r\n:1", &[5, 12], Ok(2)),
            ("resp", b":1\r\nPONG\r\n", &[4], not_resp),
        ];
        for (typed, text, messages, rest) in cases {
            let framing: Framing = typed.parse().expect("a framing");
            let found = at_every_cut(text, |pieces| scan(&framing, b"hello", pieces));
            assert_eq!(found, (messages.to_vec(), rest), "{typed}");
        }
    }

    #[test]
    fn a_refused_message_stays_refused_and_its_bytes_count() {
        let mut scanner = Scanner::default();
        let wrong = Err(ScanError::WrongEcho { at: 1 });
        assert_eq!(scanner.receive(&Framing::Echo, b"ax", b"abc"), wrong);
        assert_eq!(scanner.receive(&Framing::Echo, b"abc", b"abc"), wrong);
        assert_eq!(scanner.pending_bytes(), 5);
        assert_eq!(scanner.end(&Framing::Echo).map(|_| ()), wrong.map(|_| ()));
        scanner.reset();
        let received = scanner.receive(&Framing::Echo, b"abc", b"abc");
        assert_eq!(received.map(|scanned| scanned.message_bytes), Ok(Some(3)));
        // Nothing can echo nothing.
        let received = scanner.receive(&Framing::Echo, b"a", b"");
        assert_eq!(received, Err(ScanError::WrongEcho { at: 0 }));
    }

    #[test]
    fn the_end_of_a_connection_ends_some_messages_and_cuts_others() {
        for (typed, text, end) in [
            ("line", &b"a\n"[..], Ok(None)),
            ("line", b"a", Err(ScanError::Truncated)),
            ("none", b"a", Err(ScanError::Truncated)),
            ("fixed=2", b"abc", Err(ScanError::Truncated)),
            ("until-close", b"", Ok(None)),
            ("until-close", b"abc", Ok(Some(3))),
        ] {
            let framing: Framing = typed.parse().expect("a framing");
            let mut scanner = Scanner::default();
            let mut rest = text;
            while !rest.is_empty() {
                let scanned = scanner.receive(&framing, rest, b"").expect("framed");
                rest = &rest[scanned.consumed..];
            }
            assert_eq!(scanner.end(&framing), end, "{typed}");
        }
    }

    #[test]
    fn the_middle_of_a_message_of_known_length_need_not_be_seen() {
        for (typed, seen, unread) in [
            ("fixed=100", &b""[..], 0),
            ("fixed=100", b"a", 98),
            ("fixed=2", b"a", 0),
            ("len16be", b"\x00", 0),
            ("len16be", b"\x00\x64", 99),
            ("len16be", b"\x00\x64a", 98),
            ("line", b"a", 0),
            ("echo", b"a", 0),
            ("resp", b"$100\r\n", 99),
        ] {
            let framing: Framing = typed.parse().expect("a framing");
            let mut scanner = Scanner::default();
            let sent = [b'a'; 200];
            let _ = scanner.receive(&framing, seen, &sent).expect("framed");
            assert_eq!(scanner.unread_bytes(&framing), unread, "{typed} {seen:?}");
            if unread > 0 {
                let before = scanner.pending_bytes();
                scanner.discarded(unread);
                assert_eq!(scanner.unread_bytes(&framing), 0);
                let is_resp = framing == Framing::Resp;
                let rest = if is_resp { b"z\r" } else { b"za" };
                let scanned = scanner.receive(&framing, rest, &sent).expect("framed");
                if is_resp {
                    assert_eq!((scanned.consumed, scanned.message_bytes), (2, None));
                    continue;
                }
                let in_all = before + unread + 1;
                assert_eq!((scanned.consumed, scanned.message_bytes), (1, Some(in_all)));
            }
        }
    }
}
