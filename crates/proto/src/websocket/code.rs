//! The numbers of Close frames (RFC 6455 section 7.4).

/// Why a side closes a connection: a number that may stand in a Close frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CloseCode(u16);

impl CloseCode {
    /// The purpose is fulfilled.
    pub const NORMAL: Self = Self(1000);
    /// The sender leaves.
    pub const GOING_AWAY: Self = Self(1001);
    /// The peer broke the protocol.
    pub const PROTOCOL_ERROR: Self = Self(1002);
    /// A text of the peer is not UTF-8.
    pub const INVALID_TEXT: Self = Self(1007);

    /// The code of a number; absent where it may not stand in a frame (RFC 6455 section 7.4, and
    /// IANA's registry): under 1000, reserved, or not registered below 3000.
    pub fn of(number: u16) -> Option<Self> {
        matches!(number, 1000..=1003 | 1007..=1014 | 3000..=4999).then_some(Self(number))
    }

    /// The code as it is on the wire: 1000 to 4999.
    pub fn number(self) -> u16 {
        self.0
    }
}
