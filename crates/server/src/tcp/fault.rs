//! What goes wrong on a connection of raw TCP.

use std::fmt;

/// What goes wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TcpFaultKind {
    /// The connection is closed behind the last answer.
    Close,
    /// The connection is closed instead of the next answer.
    Refuse,
    /// The connection is reset instead of the next answer.
    Reset,
    /// Half of the next answer is sent, then the connection is closed.
    Cut,
    /// What follows is read and not answered; a source sends no more.
    Silent,
    /// Nothing more is read.
    Unread,
}

impl TcpFaultKind {
    /// Each with its name.
    pub(super) const ALL: [(Self, &'static str); 6] = [
        (Self::Close, "close"),
        (Self::Refuse, "refuse"),
        (Self::Reset, "reset"),
        (Self::Cut, "cut"),
        (Self::Silent, "silent"),
        (Self::Unread, "unread"),
    ];
}

impl fmt::Display for TcpFaultKind {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = Self::ALL.iter().filter(|(kind, _)| kind == self);
        names
            .map(|(_, name)| name)
            .try_for_each(|name| name.fmt(formatter))
    }
}
