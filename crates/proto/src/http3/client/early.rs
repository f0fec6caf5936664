//! Requests that are sent before the handshake is complete (0-RTT, RFC 9001 section 4.6), and again
//! where the server does not take them.

use bytes::Bytes;
use quinn_proto::Dir;

use super::{Client, STREAMS_MAX};

/// What became of early data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum EarlyData {
    /// None can be sent: no session that allows it is resumed, or nobody asked for it.
    #[default]
    None,
    /// Requests can be sent before the handshake is complete.
    Offered,
    /// The server took them.
    Accepted,
    /// The server took none. Requests in flight were sent again, as far as it allows streams; the
    /// others are given out as not processed.
    Rejected,
}

impl Client {
    /// What became of early data so far.
    pub fn early_data(&self) -> EarlyData {
        self.early_data
    }

    /// Opens what can be used before the handshake is complete.
    pub(super) fn begin_early(&mut self) {
        if self.quic.has_early_data() && self.open_control() {
            self.early_data = EarlyData::Offered;
            self.open_streams();
        }
    }

    /// The handshake is complete: gives whether the server took early data.
    pub(super) fn early_data_taken(&mut self) -> bool {
        let is_taken = self.early_data == EarlyData::Offered && self.quic.took_early_data();
        if is_taken {
            self.early_data = EarlyData::Accepted;
            self.early_requests = Vec::new();
        }
        is_taken
    }

    /// Sends again what the server did not take. There are no streams any more, and those that it
    /// allows now may be fewer than when the session was made.
    pub(super) fn repeat_early(&mut self) {
        if self.early_data != EarlyData::Offered {
            return;
        }
        self.early_data = EarlyData::Rejected;
        (self.next_stream, self.opened_streams) = (0, 0);
        for (place, template) in std::mem::take(&mut self.early_requests) {
            if self.quic.inner().streams().open(Dir::Bi).is_some() {
                self.places.retake(place, self.next_stream, &template);
                self.next_stream += 1;
                self.opened_streams += 1;
                self.write(place);
            } else {
                // No stream has that number.
                let without_stream = self.places.get_mut(place);
                without_stream.stream = STREAMS_MAX + u64::from(place);
                (without_stream.unsent, without_stream.is_sent) = (Bytes::new(), true);
                self.refuses = true;
            }
        }
    }
}
