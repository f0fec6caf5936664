//! One stream, from both sides: what is where, and what sending waited for.

use std::rc::Rc;

use brunt_io::tcp_info::TcpInfo;

/// Bytes that the server reads, or sends, at once.
pub(super) const PIECE_BYTES: u64 = 16 * 1024;

/// What happens to a stream.
#[derive(Clone, Copy, Debug)]
pub enum Step {
    /// So many bytes reach the server.
    Arrives(u64),
    /// The end of brunt's side reaches it.
    Finishes,
    /// The server has read so many bytes.
    Reads(u64),
    /// The server tells brunt's side how many bytes it has, and up to where it takes more.
    Acknowledges { bytes: u64, edge: u64 },
    /// The server sends.
    Sends,
}

/// What sending waits for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Waits {
    /// The stream has nothing to send.
    #[default]
    Idle,
    Network,
    ReceiveWindow,
    SendBuffer,
}

/// One stream, from both sides.
#[derive(Debug, Default)]
pub(crate) struct Stream {
    /// Bytes of the send in hand for which the send buffer has no room.
    pub(super) pending: u64,
    /// Bytes in the send buffer, not yet sent.
    pub(super) queued: u64,
    pub(super) sent: u64,
    pub(super) acknowledged: u64,
    /// Up to where the server takes bytes, as far as brunt's side knows.
    pub(super) edge: u64,
    pub(super) segments: u64,
    pub(super) segments_again: u64,
    pub(super) bytes_again: u64,
    /// Brunt sends no more; whether the network knows.
    pub(super) is_finishing: bool,
    pub(super) is_finished: bool,
    /// When the latest bytes reach the server: they never overtake each other.
    pub(super) last_arrival_ns: u64,
    pub(super) waits: Waits,
    pub(super) since_ns: u64,
    pub(super) busy_ns: u64,
    pub(super) window_limited_ns: u64,
    pub(super) buffer_limited_ns: u64,
    /// Bytes in the server's receive buffer.
    pub(super) unread: u64,
    pub(super) read: u64,
    pub(super) is_reading: bool,
    /// Brunt's end has reached the server.
    pub(super) has_ended: bool,
}

impl Stream {
    /// Accounts for the time up to `at_ns`, and notes what is waited for from then on.
    pub(super) fn note(&mut self, at_ns: u64) {
        let ns = at_ns.saturating_sub(self.since_ns);
        self.since_ns = self.since_ns.max(at_ns);
        let limited_ns = match self.waits {
            Waits::Idle => None,
            Waits::Network => Some(&mut 0),
            Waits::ReceiveWindow => Some(&mut self.window_limited_ns),
            Waits::SendBuffer => Some(&mut self.buffer_limited_ns),
        };
        if let Some(limited_ns) = limited_ns {
            *limited_ns += ns;
            self.busy_ns += ns;
        }
        self.waits = if self.queued > 0 {
            Waits::ReceiveWindow
        } else if self.sent == self.acknowledged {
            Waits::Idle
        } else if self.pending > 0 {
            Waits::SendBuffer
        } else {
            Waits::Network
        };
    }

    /// What the kernel would say of it at `at_ns`, but for what comes in.
    pub(super) fn account(&self, at_ns: u64) -> TcpInfo {
        let ns = at_ns.saturating_sub(self.since_ns);
        let of = |waits: Waits| if self.waits == waits { ns } else { 0 };
        let busy_ns = if self.waits == Waits::Idle { 0 } else { ns };
        TcpInfo {
            bytes_acked: self.acknowledged,
            bytes_unacknowledged: self.queued + (self.sent - self.acknowledged),
            bytes_retransmitted: self.bytes_again,
            segments_sent: self.segments + self.segments_again,
            segments_retransmitted: self.segments_again,
            busy_ns: self.busy_ns + busy_ns,
            receive_window_limited_ns: self.window_limited_ns + of(Waits::ReceiveWindow),
            send_buffer_limited_ns: self.buffer_limited_ns + of(Waits::SendBuffer),
            ..TcpInfo::default()
        }
    }
}

/// What the server sends, again and again.
pub(crate) fn piece() -> Rc<[u8]> {
    vec![0; PIECE_BYTES as usize].into()
}
