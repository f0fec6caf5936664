//! What is counted of one connection of QUIC.

use brunt_io::transport::{OutgoingDatagrams, ReceivedDatagrams};
use brunt_proto::http3::Client;
use brunt_proto::quic::PathFigures;
use brunt_record::QuicCounts;

/// What is counted of one connection, since it was last asked.
#[derive(Debug, Default)]
pub(super) struct Counts {
    since: QuicCounts,
    /// What quinn-proto had counted then.
    path: PathFigures,
    /// Datagrams that the socket had no room for, so far.
    dropped: u32,
}

impl Counts {
    #[inline]
    pub(super) fn received(&mut self, datagrams: ReceivedDatagrams<'_>) {
        self.since.receives += 1;
        self.since.datagrams_received += datagrams.segments().len() as u64;
        let dropped = datagrams.dropped.saturating_sub(self.dropped);
        self.since.datagrams_dropped += u64::from(dropped);
        self.dropped += dropped;
    }

    #[inline]
    pub(super) fn sent(&mut self, datagrams: &OutgoingDatagrams) {
        let segment_bytes = usize::from(datagrams.segment_bytes.get());
        self.since.sends += 1;
        self.since.datagrams_sent += datagrams.bytes.len().div_ceil(segment_bytes) as u64;
    }

    /// The server refused the handshake of `client`, which another one takes the place of.
    pub(super) fn retried(&mut self, client: &Client) {
        self.read(client);
        self.since.handshakes_retried += 1;
        self.path = PathFigures::default();
    }

    fn read(&mut self, client: &Client) -> PathFigures {
        let path = client.path_figures();
        let before = std::mem::replace(&mut self.path, path);
        let since = &mut self.since;
        since.packets_sent += path.packets_sent - before.packets_sent;
        since.packets_lost += path.packets_lost - before.packets_lost;
        since.bytes_lost += path.bytes_lost - before.bytes_lost;
        path
    }

    /// What was counted since this was last asked, with the round trip where it is known.
    pub(super) fn take(&mut self, client: &Client) -> QuicCounts {
        let path = self.read(client);
        if client.is_ready() {
            self.since.round_trips += 1;
            self.since.round_trips_ns += path.round_trip_ns;
        }
        std::mem::take(&mut self.since)
    }
}
