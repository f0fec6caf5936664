//! Handshakes with early data go on, whatever is lost.
//!
//! quinn-proto 0.11 leaves things out while a handshake goes on and data is in flight before its
//! end:
//!
//! - It does what the pseudo-code of RFC 9002 (appendix A.8) says, and not what the text asks for
//!   (section 6.2.2.1). When all Initial packets are acknowledged and nothing of the handshake is
//!   in flight, no timer for a probe is set (`Connection::pto_time_and_space`): early data is in
//!   flight, and has no such timer before the handshake is complete. A server whose handshake was
//!   lost may send no more before it hears of the client again (RFC 9000 section 8.1). It waits for
//!   ever.
//! - When early data fills the congestion window, the end of the handshake has no room in it
//!   (`Connection::poll_transmit`). The server cannot read a probe of the data behind it. That
//!   holds until the handshake is confirmed.
//! - When a server's answers to early data fill its window, HANDSHAKE_DONE has no room in it. And
//!   no timer is set: when the handshake space is discarded, the handshake is not yet over
//!   (`Connection::process_decrypted_packet`), and nothing asks for one behind that.

use std::time::{Duration, Instant};

use quinn_proto::Connection;

/// Bytes of streams that a side may send before the handshake is confirmed. With all that goes with
/// them (frames, packets, two datagrams of the handshake) they leave room in the first congestion
/// window (12,000 bytes).
pub(crate) const EARLY_BYTES_MAX: usize = 4_096;
/// How long an answer may take beside four round trips, which is longer than quinn-proto waits.
const PATIENCE: Duration = Duration::from_millis(25);
/// A probe waits twice as long as the one before it, up to this often.
const DOUBLED_MAX: u32 = 6;

/// Probes of a handshake with early data, until it is confirmed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Probes {
    /// When something was sent or came last.
    since: Instant,
    /// Probes since something came last.
    sent: u32,
}

impl Probes {
    /// Those of a connection that begins at `now`; absent where it sends no early data.
    pub(super) fn of(connection: &Connection, now: Instant) -> Option<Self> {
        let begun = Self {
            since: now,
            sent: 0,
        };
        connection.has_0rtt().then_some(begun)
    }

    /// Something was sent at `now`.
    pub(super) fn sent(&mut self, now: Instant) {
        self.since = now;
    }

    /// Something came at `now`.
    pub(super) fn received(&mut self, now: Instant) {
        (self.since, self.sent) = (now, 0);
    }

    /// When the next one is due.
    pub(super) fn due(&self, connection: &Connection) -> Instant {
        let patience = 4 * connection.rtt() + PATIENCE;
        self.since + patience * (1 << self.sent.min(DOUBLED_MAX))
    }

    /// Has one sent if it is due at `now`.
    pub(super) fn expire(&mut self, connection: &mut Connection, now: Instant) {
        if !connection.is_closed() && self.due(connection) <= now {
            (self.since, self.sent) = (now, self.sent.saturating_add(1));
            make_room(connection, now);
            connection.ping();
        }
    }
}

/// Losses in the handshake may have made the window too small for what ends the handshake: then it
/// is again that of a connection that begins.
pub(super) fn make_room(connection: &mut Connection, now: Instant) {
    let congestion = connection.congestion_state();
    if congestion.window() < congestion.initial_window() {
        connection.path_changed(now);
    }
}
