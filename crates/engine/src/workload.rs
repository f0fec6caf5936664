//! What the connections of a run are for: requests and their replies, one-way streams, or nothing
//! but being opened. Chosen once when a worker is made, beside the protocol.

use std::fmt::Debug;
use std::sync::Arc;

use brunt_io::backend::{ClientBackend, Slot};
use brunt_io::tcp_info::TcpInfo;
use brunt_load::Streams as StreamOptions;
use brunt_proto::holes::next_random;
use brunt_record::{FailureKind, StreamAccount, StreamReading, StreamRecord, Window};

use crate::protocol::PayloadPart;

/// A connection that lives as long was worth opening, even if it carried nothing.
const LIFE_NS_LEAST: u64 = 100_000_000;

/// What a connection that can send is to carry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Carried {
    /// Requests, as many as it has room for.
    Requests,
    /// Nothing: the next request is to open a connection in its place.
    Attempt,
    /// Bytes without end, these next; absent where they come from the server alone.
    Bytes(Option<PayloadPart>),
}

/// A workload of one worker.
pub(crate) trait Workload: Clone + Debug + Send + Sync + 'static {
    /// What a connection that can send is to carry now.
    fn carried(&self) -> Carried;

    /// The streams that the connections are; absent where they are for something else.
    #[inline]
    fn streams(&mut self) -> Option<&mut Streams> {
        None
    }

    /// How a connection with nothing in flight breaks.
    fn broken_idle(&self) -> FailureKind {
        match self.carried() {
            Carried::Bytes(_) => FailureKind::StreamReset,
            Carried::Requests | Carried::Attempt => FailureKind::IdleReset,
        }
    }

    /// Whether a connection was opened in vain that lasted for `life_ns`, and carried something if
    /// it `is_used`.
    fn is_doomed(&self, is_used: bool, life_ns: u64) -> bool {
        match self.carried() {
            Carried::Bytes(_) => life_ns < STREAM_LIFE_NS_LEAST,
            Carried::Requests | Carried::Attempt => !is_used && life_ns < LIFE_NS_LEAST,
        }
    }
}

/// Requests and their replies.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Requests;

impl Workload for Requests {
    #[inline]
    fn carried(&self) -> Carried {
        Carried::Requests
    }
}

/// Attempts of one worker, one at a time in each slot.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Attempts;

impl Workload for Attempts {
    #[inline]
    fn carried(&self) -> Carried {
        Carried::Attempt
    }
}

/// Bytes that are sent at a time: enough that a system call is a small part of what copying them
/// takes, and few enough to stay in the cache of a CPU.
const PAYLOAD_BYTES: usize = 256 * 1024;

/// What each connection of a run that sends streams sends over and over: it is empty where brunt
/// sends nothing.
pub(crate) fn stream_payload(streams: StreamOptions) -> Arc<[u8]> {
    // No device on the way is to find a pattern.
    let mut state = 1;
    let bytes = std::iter::repeat_with(|| next_random(&mut state) as u8);
    let length = if streams.sends { PAYLOAD_BYTES } else { 0 };
    bytes.take(length).collect()
}

/// Shortest time between two readings of the accounts.
const INTERVAL_NS: u64 = 100_000_000;
/// Shortest time between two readings of the accounts, for each stream. A reading takes some 2 µs,
/// so that readings take at most 1 % of the time.
const INTERVAL_PER_STREAM_NS: u64 = 200_000;
/// Time between two looks at how much the peers have acknowledged, when the load is over.
const LOOK_NS: u64 = 10_000_000;
/// Brunt waits for peers as long as they acknowledge something, and for so long after the last
/// time.
const PATIENCE_NS: u64 = 1_000_000_000;
/// A stream is to last as long as the run. One that ends sooner was opened in vain.
const STREAM_LIFE_NS_LEAST: u64 = 1_000_000_000;

/// How far a stream is on its way to an end that both sides agree on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Farewell {
    #[default]
    None,
    /// The end of our side was sent.
    Sent,
    /// The peer has ended its side since.
    Answered,
}

/// How long the peers are waited for.
#[derive(Clone, Copy, Debug, Default)]
struct Patience {
    bytes_acked: u64,
    /// Absent before the first look.
    give_up_ns: Option<u64>,
    next_look_ns: u64,
}

/// The streams of one worker, with the kernel's accounts of them.
#[derive(Clone, Debug)]
pub(crate) struct Streams {
    source: Arc<[u8]>,
    /// The bytes that are sent; absent where nothing is.
    chunk: Option<PayloadPart>,
    record: StreamRecord,
    /// The accounts of the connections that were open when counting began, by slot.
    begins: Vec<StreamAccount>,
    /// How far each stream is on its way to an end that both sides agree on, by slot.
    farewells: Vec<Farewell>,
    /// What connections that ended in the window did in it.
    ended: StreamAccount,
    /// The window; absent until it is known.
    window: Option<Window>,
    /// When the connections are to be read next; [`u64::MAX`] for never.
    pub(crate) next_ns: u64,
    interval_ns: u64,
    patience: Patience,
}

fn account_of(info: &TcpInfo) -> StreamAccount {
    StreamAccount {
        bytes_acked: info.bytes_acked,
        bytes_received: info
            .bytes_received
            .saturating_sub(info.is_ended_by_peer.into()),
        bytes_retransmitted: info.bytes_retransmitted,
        segments_sent: info.segments_sent,
        segments_retransmitted: info.segments_retransmitted,
        segments_received: info.segments_received,
        segments_out_of_order: info.segments_out_of_order,
        busy_ns: info.busy_ns,
        receive_window_limited_ns: info.receive_window_limited_ns,
        send_buffer_limited_ns: info.send_buffer_limited_ns,
    }
}

impl Streams {
    pub(crate) fn new(source: Arc<[u8]>) -> Self {
        Self {
            source,
            chunk: None,
            record: StreamRecord::default(),
            begins: Vec::new(),
            farewells: Vec::new(),
            ended: StreamAccount::default(),
            window: None,
            next_ns: u64::MAX,
            interval_ns: INTERVAL_NS,
            patience: Patience::default(),
        }
    }

    /// When the reading behind that of `now_ns` is due; [`u64::MAX`] where that is not within the
    /// window. Readings that were slept through are not made up for. The last reading is made when
    /// the window is over.
    fn reading_after(&self, now_ns: u64, window: Window) -> u64 {
        let passed = (now_ns - window.start_ns) / self.interval_ns;
        let due_ns = window.start_ns + (passed + 1) * self.interval_ns;
        if due_ns >= window.end_ns {
            u64::MAX
        } else {
            due_ns
        }
    }

    /// Called once by each worker, before all else.
    pub(crate) fn start(&mut self, backend: &mut impl ClientBackend) {
        let bytes = &self.source;
        self.chunk = (!bytes.is_empty()).then(|| {
            let payload = backend.add_payload(Arc::clone(bytes));
            PayloadPart::of(payload, 0..bytes.len() as u32)
        });
        backend.keep_accounts();
    }

    /// A round begins that has as many slots; nothing is left of the one before.
    pub(crate) fn begin_round(&mut self, slots: u32) {
        *self = Self {
            chunk: self.chunk,
            begins: vec![StreamAccount::default(); slots as usize],
            farewells: vec![Farewell::None; slots as usize],
            interval_ns: INTERVAL_NS.max(u64::from(slots) * INTERVAL_PER_STREAM_NS),
            ..Self::new(Arc::clone(&self.source))
        };
    }

    /// The server closed its side of a connection. Gives whether that answers the end of ours.
    pub(crate) fn closed_by_server(&mut self, slot: Slot) -> bool {
        let farewell = &mut self.farewells[slot.0 as usize];
        let answers = *farewell == Farewell::Sent;
        if answers {
            *farewell = Farewell::Answered;
        }
        answers
    }

    /// An open connection is about to be closed; in the drain, if it `is_drained`. Keeps what the
    /// account of the stream says.
    pub(crate) fn closing(&mut self, slot: Slot, is_drained: bool, backend: &impl ClientBackend) {
        let begin = std::mem::take(&mut self.begins[slot.0 as usize]);
        let farewell = std::mem::take(&mut self.farewells[slot.0 as usize]);
        let Some(info) = backend.moving_tcp_info(slot) else {
            self.record.unread_accounts += 1;
            return;
        };
        let account = account_of(&info);
        self.record.lifetime.merge(&account);
        let is_counting = !self.record.readings.is_empty();
        if is_counting && !is_drained {
            self.ended.merge(&account.since(&begin));
        }
        self.record.unread_bytes += info.bytes_unread;
        self.record.unacknowledged_bytes += info.bytes_unacknowledged;
        if farewell == Farewell::Answered && info.bytes_unacknowledged + info.bytes_unread == 0 {
            self.record.ended_in_order += 1;
        }
    }

    pub(crate) fn set_window(&mut self, window: Window) {
        self.window = Some(window);
        self.next_ns = window.start_ns;
    }

    /// Reads the `open` connections, since that is due, or the window `is_over`.
    pub(crate) fn read(
        &mut self,
        now_ns: u64,
        is_over: bool,
        open: impl Iterator<Item = Slot>,
        backend: &impl ClientBackend,
    ) {
        let Some(window) = self.window else {
            return;
        };
        let is_first = self.record.readings.is_empty();
        if is_over && is_first && now_ns < window.start_ns {
            // Cut short before there was anything to read.
            self.next_ns = u64::MAX;
            return;
        }
        let mut sum = self.ended;
        let record = &mut self.record;
        (record.streams, record.smoothed_rtt_ns_sum) = (0, 0);
        record.delivery_bytes_per_s = 0;
        record.bytes_of_streams.clear();
        for slot in open {
            let Some(info) = backend.moving_tcp_info(slot) else {
                continue;
            };
            let account = account_of(&info);
            let begin = &mut self.begins[slot.0 as usize];
            if is_first {
                *begin = account;
            }
            let since = account.since(begin);
            sum.merge(&since);
            record.streams += 1;
            record.smoothed_rtt_ns_sum += info.smoothed_rtt_ns;
            record.delivery_bytes_per_s += info.delivery_bytes_per_s;
            record.min_rtt_ns = record.min_rtt_ns.into_iter().chain(info.min_rtt_ns).min();
            let bytes = since.bytes_acked + since.bytes_received;
            record.bytes_of_streams.push(bytes);
        }
        if record.bytes_of_streams.len() > StreamRecord::STREAMS_KEPT_MAX {
            record.bytes_of_streams.clear();
        }
        // As near to the readings as can be: they take a while.
        let read_ns = now_ns.midpoint(backend.now_ns());
        record.window = sum;
        record.read(StreamReading {
            at_ns: read_ns.cast_signed(),
            bytes_acked: sum.bytes_acked,
            bytes_received: sum.bytes_received,
            segments_retransmitted: sum.segments_retransmitted,
        });
        self.next_ns = if is_over {
            u64::MAX
        } else {
            self.reading_after(now_ns, window)
        };
    }

    /// The load is over. Ends our side of each `open` stream behind its last byte, unless something
    /// is still being sent there. The peers end their sides when they have read it all. Brunt waits
    /// for them as long as they acknowledge something. Gives until when it is to be waited at most
    /// before this is called again; absent when there is nothing to wait for.
    pub(crate) fn wind_up(
        &mut self,
        now_ns: u64,
        open: impl Iterator<Item = (Slot, bool)>,
        backend: &mut impl ClientBackend,
    ) -> Option<u64> {
        let is_looking = now_ns >= self.patience.next_look_ns;
        let mut acked = self.record.lifetime.bytes_acked;
        let mut are_there = false;
        for (slot, is_sending) in open {
            are_there = true;
            let farewell = &mut self.farewells[slot.0 as usize];
            if !is_sending && *farewell == Farewell::None {
                *farewell = Farewell::Sent;
                backend.finish(slot);
            }
            if is_looking && let Some(info) = backend.moving_tcp_info(slot) {
                acked = acked.saturating_add(info.bytes_acked);
            }
        }
        let patience = &mut self.patience;
        if is_looking {
            patience.next_look_ns = now_ns + LOOK_NS.max(self.interval_ns / 10);
            let before = std::mem::replace(&mut patience.bytes_acked, acked);
            if acked != before || patience.give_up_ns.is_none() {
                patience.give_up_ns = Some(now_ns + PATIENCE_NS);
            }
        }
        let is_over = patience.give_up_ns.is_some_and(|at_ns| now_ns >= at_ns);
        let waits = are_there && !is_over;
        waits.then_some(patience.next_look_ns)
    }

    /// Ends the round; gives the record of its streams.
    pub(crate) fn end_round(&mut self) -> StreamRecord {
        self.next_ns = u64::MAX;
        std::mem::take(&mut self.record)
    }
}

impl Workload for Streams {
    #[inline]
    fn carried(&self) -> Carried {
        Carried::Bytes(self.chunk)
    }

    #[inline]
    fn streams(&mut self) -> Option<&mut Self> {
        Some(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn streams(sends: bool) -> Streams {
        Streams::new(stream_payload(StreamOptions {
            sends,
            receives: !sends,
            paced_bits_per_s: None,
            is_arranged: false,
        }))
    }

    #[test]
    fn readings_that_were_slept_through_are_not_made_up_for() {
        let streams = streams(false);
        let window = Window {
            start_ns: 50,
            end_ns: 50 + 10 * INTERVAL_NS,
        };
        let after = |passed_ns| match streams.reading_after(50 + passed_ns, window) {
            u64::MAX => None,
            due_ns => Some((due_ns - 50) / INTERVAL_NS),
        };
        assert_eq!(after(0), Some(1));
        assert_eq!(after(7), Some(1));
        assert_eq!(after(4 * INTERVAL_NS + 1), Some(5));
        assert_eq!(after(9 * INTERVAL_NS), None);
    }

    #[test]
    fn a_peer_may_end_its_side_when_ours_is_ended_and_not_before() {
        let mut streams = streams(true);
        streams.begin_round(2);
        assert!(!streams.closed_by_server(Slot(0)));
        streams.farewells[1] = Farewell::Sent;
        assert!(streams.closed_by_server(Slot(1)) && !streams.closed_by_server(Slot(1)));
    }
}
