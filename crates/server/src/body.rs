//! Bodies on their way.

use crate::pattern;

/// What a body consists of.
#[derive(Debug)]
pub(crate) enum Source {
    Pattern { position: u64, end: u64 },
    Text { text: String, position: usize },
}

impl Source {
    /// So many bytes of the pattern.
    pub(crate) fn pattern(end: u64) -> Self {
        Self::Pattern { position: 0, end }
    }

    /// Bytes that are still to come.
    pub(crate) fn left(&self) -> u64 {
        match self {
            Self::Pattern { position, end } => end - position,
            Self::Text { text, position } => (text.len() - position) as u64,
        }
    }

    /// Appends the next `bytes` of them, no more than are left.
    pub(crate) fn write(&mut self, bytes: u64, out: &mut Vec<u8>) {
        match self {
            Self::Pattern { position, .. } => {
                pattern::write_pattern(out, *position, *position + bytes);
                *position += bytes;
            }
            Self::Text { text, position } => {
                let end = *position + bytes as usize;
                out.extend_from_slice(&text.as_bytes()[*position..end]);
                *position = end;
            }
        }
    }

    /// Bytes of memory of a text.
    pub(crate) fn text_bytes(&self) -> usize {
        match self {
            Self::Text { text, .. } => text.capacity(),
            Self::Pattern { .. } => 0,
        }
    }
}

/// What follows the last byte of a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Finish {
    /// The end of the stream.
    End,
    /// Trailers that state this length.
    Trailers(u64),
    /// A reset, as of a server with a fault.
    Reset,
}

/// A body on its way.
#[derive(Debug)]
pub(crate) struct Body {
    pub(crate) source: Source,
    pub(crate) finish: Finish,
    /// Whether its bytes are counted as sent.
    pub(crate) is_counted: bool,
}

impl Body {
    /// Whether the head of the reply is all of it.
    pub(crate) fn is_nothing(&self) -> bool {
        self.source.left() == 0 && self.finish == Finish::End
    }
}
