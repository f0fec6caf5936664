//! What arrives at brunt's side of a connection, and what is complete with it.

use std::rc::Rc;

/// What is complete at brunt's side with the last byte of something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Completes {
    Nothing,
    /// An answer.
    Answer,
    /// The opening of a connection: brunt may send requests.
    Opening,
}

/// Something that arrives at brunt's side, in order.
#[derive(Clone, Debug)]
pub enum Piece {
    /// A part of what the server sent at once.
    Bytes {
        bytes: Rc<[u8]>,
        start: u32,
        end: u32,
        completes: Completes,
    },
    /// The server closed; this completes an answer that is delimited so.
    End { completes: Completes },
    /// The server reset the connection.
    Reset,
}

impl Piece {
    /// The server closed, and nothing is complete with it.
    pub(super) const END: Self = Self::End {
        completes: Completes::Nothing,
    };
}
