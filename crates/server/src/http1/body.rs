//! The body of a request: how its end is found, and skipping it without keeping any of it.

/// How the end of a request's body is found (RFC 9112 section 6).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Body {
    /// Content-Length, or 0.
    Length(u64),
    Chunked,
}

/// The most bytes of chunk extensions on one chunk, and of trailers after the last one.
const LINE_BYTES_MAX: u32 = 16 * 1024;

/// Why a chunked body cannot be read (RFC 9112 section 7.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum BodyError {
    #[error("bad chunk size")]
    ChunkSize,
    #[error("a chunk does not end where its size says")]
    ChunkEnd,
    #[error("chunk extensions or trailers beyond {LINE_BYTES_MAX} bytes")]
    TooLong,
}

/// Where in a body the next byte is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BodySkip {
    state: State,
    /// Bytes of this extension or of these trailers.
    line_bytes: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// So many bytes are still to come, then the body is complete.
    Length(u64),
    /// The size so far, and whether it has a digit.
    Size(u64, bool),
    /// Behind the size of a chunk, up to the line end.
    Extension(u64),
    /// So many bytes of data are still to come, then a line end.
    Data(u64),
    /// Behind the CR that follows the data of a chunk.
    DataLf,
    /// At the start of a trailer line, or in one.
    TrailerStart,
    TrailerCr,
    Trailer,
}

impl BodySkip {
    /// The start of a body.
    pub(crate) fn new(body: Body) -> Self {
        let state = match body {
            Body::Length(length) => State::Length(length),
            Body::Chunked => State::Size(0, false),
        };
        Self {
            state,
            line_bytes: 0,
        }
    }

    /// Whether the body is complete.
    pub(crate) fn is_done(&self) -> bool {
        self.state == State::Length(0)
    }

    /// Takes as much of `input` as belongs to the body, and returns how much that was.
    pub(crate) fn skip(&mut self, input: &[u8]) -> Result<usize, BodyError> {
        let mut at = 0;
        while at < input.len() && !self.is_done() {
            match &mut self.state {
                State::Length(left) | State::Data(left) if *left > 0 => {
                    let rest = input.len() - at;
                    let count = usize::try_from(*left).map_or(rest, |left| left.min(rest));
                    *left -= count as u64;
                    at += count;
                }
                _ => {
                    self.state = self.after(input[at])?;
                    at += 1;
                }
            }
        }
        Ok(at)
    }

    /// The state after one byte outside of data.
    fn after(&mut self, byte: u8) -> Result<State, BodyError> {
        Ok(match (self.state, byte) {
            (State::Size(size, _), b'0'..=b'9' | b'a'..=b'f' | b'A'..=b'F') => {
                let digit = char::from(byte).to_digit(16).map_or(0, u64::from);
                if size >> 60 != 0 {
                    return Err(BodyError::ChunkSize);
                }
                State::Size(size << 4 | digit, true)
            }
            (State::Size(size, true) | State::Extension(size), b'\n') => {
                self.line_bytes = 0;
                if size == 0 {
                    State::TrailerStart
                } else {
                    State::Data(size)
                }
            }
            (State::Size(size, true), b';' | b' ' | b'\t' | b'\r')
            | (State::Extension(size), _) => {
                self.count_line_byte()?;
                State::Extension(size)
            }
            (State::Size(..), _) => return Err(BodyError::ChunkSize),
            (State::Data(_), b'\r') => State::DataLf,
            (State::Data(_) | State::DataLf, b'\n') => State::Size(0, false),
            (State::Data(_) | State::DataLf, _) => return Err(BodyError::ChunkEnd),
            (State::TrailerStart | State::TrailerCr, b'\n') => State::Length(0),
            (State::TrailerStart, b'\r') => State::TrailerCr,
            (State::Trailer, b'\n') => State::TrailerStart,
            (State::TrailerStart | State::TrailerCr | State::Trailer, _) => {
                self.count_line_byte()?;
                State::Trailer
            }
            // Not reached: `skip` takes these bytes in one step.
            (State::Length(_), _) => self.state,
        })
    }

    fn count_line_byte(&mut self) -> Result<(), BodyError> {
        self.line_bytes += 1;
        if self.line_bytes > LINE_BYTES_MAX {
            Err(BodyError::TooLong)
        } else {
            Ok(())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn skip(body: Body, text: &str, step: usize) -> Result<(usize, bool), BodyError> {
        let mut skip = BodySkip::new(body);
        let mut taken = 0;
        for piece in text.as_bytes().chunks(step) {
            let count = skip.skip(piece)?;
            taken += count;
            if count < piece.len() {
                break;
            }
        }
        Ok((taken, skip.is_done()))
    }

    #[test]
    fn bodies_end_where_they_say() {
        let long = format!(
            "4;{}\r\n0123\r\n0\r\n\r\n",
            "x".repeat(LINE_BYTES_MAX as usize)
        );
        let trailers = format!("0\r\n{}\r\n", "a: b\r\n".repeat(LINE_BYTES_MAX as usize));
        let cases = [
            (Body::Length(0), "abc", Ok((0, true))),
            (Body::Length(2), "abc", Ok((2, true))),
            (Body::Length(4), "abc", Ok((3, false))),
            (Body::Chunked, "0\r\n\r\nabc", Ok((5, true))),
            (Body::Chunked, "3\r\nabc\r\n0\r\n\r\nx", Ok((13, true))),
            (Body::Chunked, "3\nabc\n0\n\nx", Ok((9, true))),
            (
                Body::Chunked,
                "0A;x=\"y\"\r\n0123456789\r\n00\r\nT: v\r\n\r\nx",
                Ok((34, true)),
            ),
            (Body::Chunked, "3\r\nab", Ok((5, false))),
            (Body::Chunked, "\r\n", Err(BodyError::ChunkSize)),
            (Body::Chunked, "-1\r\n", Err(BodyError::ChunkSize)),
            (
                Body::Chunked,
                "fffffffffffffffff\r\n",
                Err(BodyError::ChunkSize),
            ),
            (Body::Chunked, "3\r\nabcd\r\n", Err(BodyError::ChunkEnd)),
            (Body::Chunked, "3\r\nabc\rx", Err(BodyError::ChunkEnd)),
            (Body::Chunked, &long, Err(BodyError::TooLong)),
            (Body::Chunked, &trailers, Err(BodyError::TooLong)),
        ];
        for (body, text, outcome) in cases {
            for step in [1, 2, text.len()] {
                assert_eq!(skip(body, text, step), outcome, "{text:.40?} by {step}");
            }
        }
    }
}
