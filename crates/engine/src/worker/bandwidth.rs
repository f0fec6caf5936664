//! One-way streams of a worker: what they send, and the kernel's accounts of them over the window.

use std::io;

use brunt_io::backend::{ClientBackend, Outgoing, Slot};
use brunt_io::tcp_info::TcpInfo;
use brunt_record::{StreamAccount, StreamReading, StreamRecord, Window};

use super::{Mode, Worker};
use crate::connection::State;
use crate::observer::StreamsSoFar;
use crate::protocol::ClientProtocol;

/// From one reading of the accounts to the next, at least.
const INTERVAL_NS: u64 = 100_000_000;
/// The same for each stream: a reading takes some 2 µs, and no more than 1 % of the time.
const INTERVAL_PER_STREAM_NS: u64 = 200_000;

/// From one look at how far drain has come to the next.
const LOOK_NS: u64 = 10_000_000;
/// Drain waits for peers as long as they acknowledge something, and so long beyond the last time.
const PATIENCE_NS: u64 = 1_000_000_000;

/// How far a stream is on its way to an end that both sides agree on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Farewell {
    #[default]
    None,
    /// The end of our side was sent.
    Said,
    /// The peer has ended its side since.
    Answered,
}

/// The accounts of a worker's streams. Without streams it never reads any.
#[derive(Debug)]
pub(super) struct StreamAccounts {
    record: StreamRecord,
    /// By slot: its account when counting began, on the connection that is there.
    begins: Vec<StreamAccount>,
    /// By slot: how far the stream is on its way to an end that both sides agree on.
    farewells: Vec<Farewell>,
    /// Over the window, of connections that ended in it.
    ended: StreamAccount,
    /// The latest reading.
    so_far: Option<StreamsSoFar>,
    /// Absent until it is known, and without streams.
    window: Option<Window>,
    /// When the next reading is due; [`u64::MAX`] for never.
    next_ns: u64,
    interval_ns: u64,
}

impl StreamAccounts {
    pub(super) fn new(slots: u32) -> Self {
        Self {
            record: StreamRecord::default(),
            begins: vec![StreamAccount::default(); slots as usize],
            farewells: vec![Farewell::None; slots as usize],
            ended: StreamAccount::default(),
            so_far: None,
            window: None,
            next_ns: u64::MAX,
            interval_ns: INTERVAL_NS.max(u64::from(slots) * INTERVAL_PER_STREAM_NS),
        }
    }

    /// The latest reading; absent before the first one, and without streams.
    pub(super) fn so_far(&self) -> Option<StreamsSoFar> {
        self.so_far
    }

    /// When the next reading is due.
    pub(super) fn next_ns(&self) -> u64 {
        self.next_ns
    }
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

impl<B: ClientBackend, P: ClientProtocol> Worker<B, P> {
    /// Sends the next part of the stream on a connection that takes it.
    pub(super) fn send_stream(&mut self, slot: Slot, now_ns: u64) {
        self.connections[slot].is_used = true;
        let Some(part) = self.protocol.stream() else {
            return;
        };
        let bytes = u64::from(part.end - part.start);
        self.accounting.recorder.handed_over(now_ns, bytes);
        self.accounting.progress.bytes_sent += bytes;
        self.connections[slot].sending = true;
        let outgoing = Outgoing::Shared {
            payload: part.payload,
            start: part.start,
            end: part.end,
        };
        self.backend.send(slot, outgoing);
    }

    /// Says when the window of the streams is.
    pub(super) fn schedule_readings(&mut self, window: Window) {
        if P::IS_STREAM {
            self.streams.window = Some(window);
            self.streams.next_ns = window.start_ns;
        }
    }

    /// Reads the accounts of all streams, where that is due or the window `is_over`.
    pub(super) fn read_streams(&mut self, now_ns: u64, is_over: bool) {
        let Some(window) = self.streams.window else {
            return;
        };
        let is_first = self.streams.record.readings.is_empty();
        if is_over && is_first && now_ns < window.start_ns {
            // Cut short before there was anything to read.
            self.streams.next_ns = u64::MAX;
            return;
        }
        let mut sum = self.streams.ended;
        let mut ends = StreamRecord::default();
        for slot in self.connections.slots() {
            if self.connections[slot].state != State::Open {
                continue;
            }
            let Some(info) = self.backend.moving_tcp_info(slot) else {
                continue;
            };
            let account = account_of(&info);
            let begin = &mut self.streams.begins[slot.0 as usize];
            if is_first {
                *begin = account;
            }
            let since = account.since(begin);
            sum.merge(&since);
            ends.streams += 1;
            ends.smoothed_rtt_ns_sum += info.smoothed_rtt_ns;
            ends.delivery_bytes_per_s += info.delivery_bytes_per_s;
            ends.min_rtt_ns = ends.min_rtt_ns.into_iter().chain(info.min_rtt_ns).min();
            ends.bytes_of_streams
                .push(since.bytes_acked + since.bytes_received);
        }
        // As near to the readings as can be: they take a while.
        let read_ns = now_ns.midpoint(self.backend.now_ns());
        let streams = u64::from(ends.streams);
        self.streams.so_far = Some(StreamsSoFar {
            at_ns: read_ns,
            account: sum,
            smoothed_rtt_ns: ends.smoothed_rtt_ns_sum.checked_div(streams),
        });
        let StreamAccounts {
            record,
            next_ns,
            interval_ns,
            ..
        } = &mut self.streams;
        record.window = sum;
        record.read(StreamReading {
            at_ns: read_ns.cast_signed(),
            bytes_acked: sum.bytes_acked,
            bytes_received: sum.bytes_received,
            segments_retransmitted: sum.segments_retransmitted,
        });
        // Those that were slept through are not made up for.
        let due_ns = (now_ns - window.start_ns) / *interval_ns * *interval_ns
            + window.start_ns
            + *interval_ns;
        // The one at the end of the window is that of a window that is over.
        *next_ns = match is_over || due_ns >= window.end_ns {
            true => u64::MAX,
            false => due_ns,
        };
        if ends.bytes_of_streams.len() > StreamRecord::STREAMS_KEPT_MAX {
            ends.bytes_of_streams.clear();
        }
        record.streams = ends.streams;
        record.smoothed_rtt_ns_sum = ends.smoothed_rtt_ns_sum;
        record.delivery_bytes_per_s = ends.delivery_bytes_per_s;
        record.bytes_of_streams = ends.bytes_of_streams;
        record.min_rtt_ns = record.min_rtt_ns.into_iter().chain(ends.min_rtt_ns).min();
    }

    /// A connection is about to be closed: what its account says is kept.
    pub(super) fn end_stream(&mut self, slot: Slot) {
        if !P::IS_STREAM {
            return;
        }
        let begin = std::mem::take(&mut self.streams.begins[slot.0 as usize]);
        let farewell = std::mem::take(&mut self.streams.farewells[slot.0 as usize]);
        let Some(info) = self.backend.moving_tcp_info(slot) else {
            self.streams.record.unread_accounts += 1;
            return;
        };
        let account = account_of(&info);
        self.streams.record.lifetime.merge(&account);
        let is_counting = !self.streams.record.readings.is_empty();
        if is_counting && self.timeline.mode != Mode::Drain {
            self.streams.ended.merge(&account.since(&begin));
        }
        self.streams.record.unread_bytes += info.bytes_unread;
        self.streams.record.unacknowledged_bytes += info.bytes_unacknowledged;
        if farewell == Farewell::Answered && info.bytes_unacknowledged + info.bytes_unread == 0 {
            self.streams.record.ended_in_order += 1;
        }
    }

    /// The peer ended its side of a connection. Gives whether ours was ended before, so that this
    /// is the answer.
    pub(super) fn stream_answered(&mut self, slot: Slot) -> bool {
        let farewell = self.streams.farewells.get_mut(slot.0 as usize);
        let said = farewell.filter(|farewell| **farewell == Farewell::Said);
        said.map(|farewell| *farewell = Farewell::Answered)
            .is_some()
    }

    /// Ends our side of each stream behind its last byte, and waits until all peers have ended
    /// theirs, which they do when they have read it all: until `limit_ns`, and only as long as
    /// something is acknowledged.
    pub(super) fn finish_streams(&mut self, limit_ns: u64) -> io::Result<()> {
        if !P::IS_STREAM {
            return Ok(());
        }
        let look_ns = LOOK_NS.max(self.streams.interval_ns / 10);
        let (mut acked, mut give_up_ns, mut next_look_ns) = (0, u64::MAX, 0);
        loop {
            let now_ns = self.backend.now_ns();
            let control = &self.task.control;
            let is_cut_short = control.is_aborted() || control.is_hurried();
            let limit_ns = limit_ns.min(control.drain_end_ns());
            let are_there = self.say_farewell();
            if now_ns >= next_look_ns {
                next_look_ns = now_ns + look_ns;
                let before = std::mem::replace(&mut acked, self.bytes_acked());
                if acked != before || give_up_ns == u64::MAX {
                    give_up_ns = now_ns + PATIENCE_NS;
                }
            }
            if !are_there || is_cut_short || now_ns >= limit_ns.min(give_up_ns) {
                return Ok(());
            }
            self.turn(limit_ns.min(next_look_ns))?;
        }
    }

    /// Ends our side of the streams on which nothing is being sent. Gives whether there are
    /// streams.
    fn say_farewell(&mut self) -> bool {
        let mut are_there = false;
        for slot in self.connections.slots() {
            let connection = &self.connections[slot];
            if connection.state != State::Open {
                continue;
            }
            are_there = true;
            let farewell = &mut self.streams.farewells[slot.0 as usize];
            if !connection.sending && *farewell == Farewell::None {
                *farewell = Farewell::Said;
                self.backend.finish(slot);
            }
        }
        are_there
    }

    /// Bytes that the peers acknowledged on all streams, those that ended included.
    fn bytes_acked(&self) -> u64 {
        let ended = self.streams.record.lifetime.bytes_acked;
        self.connections.slots().fold(ended, |sum, slot| {
            if self.connections[slot].state != State::Open {
                return sum;
            }
            let info = self.backend.moving_tcp_info(slot);
            info.map_or(sum, |info| sum.saturating_add(info.bytes_acked))
        })
    }

    /// The round is over: its streams end, and what the kernel counted of them is recorded.
    pub(super) fn end_streams(&mut self) {
        if !P::IS_STREAM {
            return;
        }
        for slot in self.connections.slots() {
            if self.connections[slot].state == State::Open {
                self.end_stream(slot);
                // Nobody waits for what is still in flight on it.
                self.backend.reset(slot);
                self.connections[slot].state = State::Down { retry_ns: u64::MAX };
            }
        }
        let record = std::mem::take(&mut self.streams.record);
        self.streams.next_ns = u64::MAX;
        self.accounting.recorder.record().streams = Some(record);
    }
}
