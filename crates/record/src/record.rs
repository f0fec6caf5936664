//! What one worker reports at its end.

use serde::{Deserialize, Serialize};

use crate::merged::{Merge, differences, merge_fields, merges};
use crate::{FailureCounts, FailureKind, GeneratorUse, PhaseTallies, Series};

/// The instants of one worker, each written once, nanoseconds from the start of the window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkerEdges {
    /// When the worker's thread began.
    pub started: Once,
    /// When the worker stood at the barrier, its connections open or given up for now.
    pub ready: Once,
    /// Start of the window as this worker lived it: the first turn of its loop at or after the
    /// common start.
    pub window_start: Once,
    /// End of the window as this worker lived it: the common end, or the instant it left early.
    pub window_end: Once,
    /// When the worker's last request was answered, failed or given up.
    pub drained: Once,
}

/// The outcome of the requests that were issued in the window: with a schedule of requests those
/// that were planned in it and sent, else those that were sent in it.
/// `issued = recorded + failed + censored`, exactly.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Population {
    /// Issued in the window.
    pub issued: u64,
    /// Issued requests that were answered (whatever the status) by the end of drain: they have a
    /// latency.
    pub recorded: u64,
    /// Issued requests that failed.
    pub failed: u64,
    /// Issued requests that had neither been answered nor failed when drain ended.
    pub censored: u64,
}

merges!(Population: issued recorded failed censored);

/// The outcome of planned arrivals: of requests in an open loop, of connections with a schedule of
/// connections. `planned = sent + skipped_full + skipped_late + unsent`, exactly.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ArrivalCounts {
    /// Planned instants.
    pub planned: u64,
    /// Planned arrivals that were sent (or, for connections, attempted).
    pub sent: u64,
    /// Sent arrivals that first waited, because no connection was free.
    pub waited: u64,
    /// Sent arrivals that were sent by the end of the window; the others were sent in drain. Absent
    /// where nothing was sent.
    pub sent_by_end: Option<u64>,
    /// Dropped because the queue was full.
    pub skipped_full: u64,
    /// Dropped because they had waited too long for a reply within their time-out.
    pub skipped_late: u64,
    /// Still waiting when drain ended.
    pub unsent: u64,
}

merges!(ArrivalCounts: planned sent waited sent_by_end skipped_full skipped_late unsent);

/// Open connections over the window. Summed over workers, the extremes are bounds: the workers
/// need not have reached theirs at the same instant.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LiveConnections {
    /// How many this worker was to hold.
    pub asked: u32,
    /// How many it was allowed to open.
    pub most: u32,
    /// Fewest at any instant of the window.
    pub min: u32,
    /// Most at any instant of the window.
    pub max: u32,
    /// Connections times nanoseconds: divided by the window's length it is the mean.
    pub connection_ns: u64,
    /// The part of `connection_ns` in which an open connection waited for its first request,
    /// because brunt was still sending the first requests of others: in a closed loop, when the
    /// load begins.
    pub not_begun_ns: u64,
    /// The part of `connection_ns` in which an open connection had nothing in flight and could take
    /// nothing, because its server had not taken what was sent before: it answers without reading,
    /// or sends what nobody asked for.
    pub blocked_ns: u64,
    /// Connections that were not open when the window began, without those that were being
    /// replaced after they had carried something. Absent where no window began.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unopened_at_start: Option<u32>,
    /// Missing connections while brunt did what it could.
    pub missing: MissingConnections,
    /// Open at the end of the window; absent where connections have something to carry.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at_end: Option<u32>,
}

merges!(LiveConnections:
    asked most min max connection_ns not_begun_ns blocked_ns unopened_at_start missing at_end
);

/// Connections that were not open over the window though brunt did what it could to have them,
/// times nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MissingConnections {
    /// Being opened.
    pub opening_ns: u64,
    /// Between an attempt that failed and the instant at which the next one was due.
    pub retrying_ns: u64,
    /// Not opened, because a user thought before opening the next one, in place of one that the
    /// server ended.
    pub thinking_ns: u64,
    /// Not opened in place of one that had ended: no request needed it. In an open loop others were
    /// free; in any run the worker may have sent all that it had to.
    #[serde(default, skip_serializing_if = "crate::merged::is_zero")]
    pub unneeded_ns: u64,
}

merges!(MissingConnections: opening_ns retrying_ns thinking_ns unneeded_ns);

/// A time in which a worker had no open connection, and attempts to open one failed on the
/// server's side. Nanoseconds from the start of the window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Downtime {
    /// When the worker lost its last connection; with a schedule of connections, when the first
    /// attempt failed.
    pub from_ns: i64,
    /// When a connection was open again; null when none was, to the end of the run.
    pub until_ns: Option<i64>,
}

impl Downtime {
    /// Most downtimes of one worker that are kept, the first ones.
    pub const KEPT_MAX: usize = 256;
}

/// What set-up came to: connections as they stood when it ended.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SetUp {
    /// How many were to be held.
    pub asked: u32,
    /// How many were open at its end.
    pub open: u32,
    /// How many had been opened by then; more than were open where some were lost again.
    pub opened: u64,
    /// What had failed by then.
    pub failures: FailureCounts,
    /// Whether it ended with connections that were still being opened or had never been tried: its
    /// limit was over, or none more had been opened for too long.
    pub timed_out: bool,
    /// How long no further connection had been opened when it ended, nanoseconds; absent where it
    /// ended for another reason.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waited_ns: Option<u64>,
}

impl SetUp {
    /// Adds that of another worker.
    pub fn merge(&mut self, other: &Self) {
        merge_fields!(self, other: asked open opened failures);
        self.timed_out |= other.timed_out;
        // Of the worker that came furthest last.
        self.waited_ns = match (self.waited_ns, other.waited_ns) {
            (Some(own), Some(others)) => Some(own.min(others)),
            (own, others) => own.or(others),
        };
    }

    /// The most frequent failure, and how often it occurred. Absent where nothing failed.
    pub fn main_failure(&self) -> Option<(FailureKind, u64)> {
        self.failures.iter().max_by_key(|&(_, count)| count)
    }
}

/// The kernel's own account of a sample of connections, to set beside ours.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct KernelSample {
    /// Connections in the sample.
    pub connections: u32,
    /// `tcpi_bytes_received` summed over them. The kernel counts a peer's FIN as one byte.
    pub kernel_bytes_received: u64,
    /// Bytes read from them, plus bytes still waiting in their receive queues.
    pub own_bytes_received: u64,
    /// Smallest `tcpi_min_rtt` seen, nanoseconds. Absent where the kernel gave none.
    pub min_rtt_ns: Option<u64>,
    /// Segments with payload sent, with those sent again (`tcpi_data_segs_out`).
    pub segments_sent: u64,
    /// Segments with payload that were sent again (`tcpi_total_retrans`).
    pub segments_retransmitted: u64,
    /// Segments with payload received (`tcpi_data_segs_in`).
    pub segments_received: u64,
    /// Segments received out of order (`tcpi_rcv_ooopack`).
    pub segments_out_of_order: u64,
    /// Time with something to send or unacknowledged (`tcpi_busy_time`), nanoseconds.
    pub busy_ns: u64,
    /// The part of `busy_ns` in which the peer's receive window held sending up
    /// (`tcpi_rwnd_limited`), nanoseconds.
    pub receive_window_limited_ns: u64,
    /// The part of `busy_ns` in which the size of the send buffer held sending up
    /// (`tcpi_sndbuf_limited`), nanoseconds.
    pub send_buffer_limited_ns: u64,
    /// Largest round trip as the receiver of bulk data sees it (`tcpi_rcv_rtt`), nanoseconds.
    /// Absent where the kernel gave none.
    pub receive_rtt_ns_max: Option<u64>,
}

/// The thread of a worker over the window as the kernel accounts for it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ThreadUse {
    /// Between the two readings, nanoseconds.
    pub interval_ns: u64,
    /// CPU in user space, nanoseconds.
    pub cpu_user_ns: u64,
    /// CPU in the kernel, nanoseconds.
    pub cpu_system_ns: u64,
    /// CPU time that was spent polling without result, nanoseconds.
    pub spun_ns: u64,
    /// Ready to run, and no CPU was free, nanoseconds; absent where the kernel does not say.
    pub run_queue_wait_ns: Option<u64>,
    /// Times that its CPU was given to another thread though it wanted to go on.
    pub involuntary_switches: u64,
}

impl ThreadUse {
    /// CPU time in user space and in the kernel, nanoseconds.
    pub fn cpu_ns(&self) -> u64 {
        self.cpu_user_ns.saturating_add(self.cpu_system_ns)
    }

    /// CPU time that was work: without polling in vain, nanoseconds.
    pub fn worked_ns(&self) -> u64 {
        self.cpu_ns().saturating_sub(self.spun_ns)
    }
}

impl KernelSample {
    /// What was counted of streams over the window, for those who look at samples.
    pub fn of_streams(streams: &StreamRecord) -> Self {
        let window = &streams.window;
        Self {
            connections: streams.streams,
            min_rtt_ns: streams.min_rtt_ns,
            segments_sent: window.segments_sent,
            segments_retransmitted: window.segments_retransmitted,
            segments_received: window.segments_received,
            segments_out_of_order: window.segments_out_of_order,
            busy_ns: window.busy_ns,
            receive_window_limited_ns: window.receive_window_limited_ns,
            send_buffer_limited_ns: window.send_buffer_limited_ns,
            ..Self::default()
        }
    }

    /// Adds the sample of `other`.
    pub fn merge(&mut self, other: &Self) {
        merge_fields!(self, other:
            connections kernel_bytes_received own_bytes_received segments_sent
            segments_retransmitted segments_received segments_out_of_order busy_ns
            receive_window_limited_ns send_buffer_limited_ns
        );
        self.min_rtt_ns = self.min_rtt_ns.into_iter().chain(other.min_rtt_ns).min();
        self.receive_rtt_ns_max = self.receive_rtt_ns_max.max(other.receive_rtt_ns_max);
    }
}

/// A time in which a worker did not run, though it was to: it was stopped, or had no CPU.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pause {
    /// When the worker ran last, or was to run next.
    pub from_ns: i64,
    /// When the worker ran again.
    pub until_ns: i64,
}

impl Pause {
    /// Most pauses of one worker that are kept, the first ones.
    pub const KEPT_MAX: usize = 256;
}

/// The requests of warm-up that were in flight when the window began. None of them is one of the
/// window's [`Population`], but the window shows how they fared:
/// `in_flight = answered + failed + unanswered`, exactly.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CarriedIn {
    /// Sent before the window, and neither answered nor failed when it began.
    pub in_flight: u64,
    /// Requests in flight at the window's beginning that were answered in the window, whatever the
    /// status.
    pub answered: u64,
    /// Requests in flight at the window's beginning that failed in the window.
    pub failed: u64,
    /// Requests in flight at the window's beginning that still were when it ended: each took longer
    /// than the window.
    pub unanswered: u64,
    /// The time in the window that they were in flight, summed over them, nanoseconds.
    pub in_flight_ns: u64,
}

merges!(CarriedIn: in_flight answered failed unanswered in_flight_ns);

/// The beginning of the body of one response with an error status.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ErrorBody {
    /// The status.
    pub status: u16,
    /// The first bytes of the body, with what is not UTF-8 replaced.
    pub text: String,
    /// Whether the body was longer.
    pub is_cut: bool,
}

impl ErrorBody {
    /// Statuses of which a worker keeps one, the first that it meets.
    pub const KEPT_MAX: usize = 4;
    /// Bytes that are kept of a body.
    pub const BYTES_MAX: u32 = 512;
}

/// What one worker did in the experiment within the warm-up of a closed loop: replies while half of
/// its connections paused. Its time is cut into slices. In the first ones all
/// connections are used, then half of them pause, then all are used for somewhat longer, then half
/// pause again, so that a steady drift falls on both levels alike; the last slices belong to the
/// window's start.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Halving {
    /// Connections that the worker holds.
    pub connections: u32,
    /// Connections that are used while the others pause.
    pub used_by_half: u32,
    /// Connections whose first requests were still unanswered at its end: the server serves others
    /// first, and half of the connections may be all that it serves.
    pub starved: u32,
    /// Length of a slice, nanoseconds.
    pub slice_ns: u64,
    /// Complete replies in each slice, whatever their status; in the first one with those of the
    /// warm-up before it.
    pub replies: Vec<u64>,
}

impl Halving {
    /// Slices of the experiment.
    pub const SLICES: usize = 50;
    /// The longest experiment, nanoseconds: in a longer warm-up it is the last part.
    pub const LENGTH_NS_MAX: u64 = 5_000_000_000;
    /// Most connections of a worker that takes part: with more, switching takes too long.
    pub const CONNECTIONS_MAX: u32 = 1_000;
    /// The shortest one, nanoseconds: in a shorter warm-up there is none.
    pub const LENGTH_NS_MIN: u64 = 250_000_000;

    /// Edges of the stretches: half of the connections pause from the first to the second, and from
    /// the third to the fourth.
    pub const EDGES: [usize; 4] = [3, 18, 30, 45];

    /// Whether half of the connections pause in this slice.
    pub fn pauses_half(slice: usize) -> bool {
        let [from, until, again_from, again_until] = Self::EDGES;
        (from..until).contains(&slice) || (again_from..again_until).contains(&slice)
    }
}

/// Everything that one worker reports, but for its histograms, which are merged at once.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkerRecord {
    /// Number of the worker, from 0.
    pub worker: u32,
    /// Instants of the worker.
    pub edges: WorkerEdges,
    /// First request of all phases handed to the kernel.
    pub first_send: Once,
    /// Counters by phase.
    pub tallies: PhaseTallies,
    /// The outcome of the requests issued in the window.
    pub population: Population,
    /// The outcome of the requests that were in flight when the window began.
    pub carried_in: CarriedIn,
    /// The outcome of the arrivals planned in the window; all 0 in a closed loop.
    pub arrivals: ArrivalCounts,
    /// The outcome of the arrivals planned in all phases; all 0 in a closed loop.
    pub arrivals_all: ArrivalCounts,
    /// Connections that an earlier round of the session had opened, and that this one went on with.
    pub connections_kept: u64,
    /// Kernel stamps that lay outside of what is possible and were moved: the wall clock was set,
    /// or what came was no answer.
    pub stamps_clamped: u64,
    /// Clamped stamps that lay before the request that they answer was sent: the server had sent
    /// bytes unasked, unless the wall clock was set.
    pub stamps_before_send: u64,
    /// Time spent polling without result, whole life, nanoseconds.
    pub spun_ns: u64,
    /// Requests of any phase still in flight when drain ended.
    pub in_flight_at_end: u64,
    /// Requests of `--requests` that were never sent, because no connection could be had.
    pub unsent: u64,
    /// What its set-up came to; absent where it did not say.
    pub set_up: Option<SetUp>,
    /// Open connections.
    pub live: LiveConnections,
    /// Times in which the worker had no connection because attempts failed, oldest first, of all
    /// phases: the first 256.
    pub downtimes: Vec<Downtime>,
    /// Times of 0.2 s and more in which the worker did not run under load, though it was to, oldest
    /// first: the first 256.
    pub pauses: Vec<Pause>,
    /// Requests in flight times nanoseconds, over the window: divided by the window's length it
    /// is the mean number of requests in flight.
    pub in_flight_ns: u64,
    /// Of that, the time in which requests waited to be sent again, and were on no connection.
    pub awaiting_again_ns: u64,
    /// Smallest complete reply, head and body, bytes. Absent without a reply.
    pub reply_bytes_min: Option<u64>,
    /// Smallest service time of the first reply on any connection, all phases, nanoseconds: the
    /// first of them find a server with nothing to do. Absent without a reply.
    pub first_service_ns_min: Option<u64>,
    /// The kernel's view of a sample of its connections.
    pub kernel: KernelSample,
    /// The kernel's accounts of all of its streams; absent where connections carry requests.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub streams: Option<StreamRecord>,
    /// What the server said in its first errors, each with another status; empty where that was not
    /// asked for.
    pub error_bodies: Vec<ErrorBody>,
    /// What the server first sent in place of an answer: the beginning of a message that answers
    /// none, where answers have to match, or the `grpc-message` of a call that failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unexpected: Option<String>,
    /// What its generator of requests did; absent where requests are those of the plan.
    pub generator: Option<GeneratorUse>,
    /// The experiment within its warm-up; absent where there was none.
    pub halving: Option<Halving>,
    /// Use of the worker's thread over the window; absent where the worker did not see both edges,
    /// and in simulation unless a machine was simulated.
    pub thread: Option<ThreadUse>,
    /// The CPU that its thread was bound to; null where the scheduler chose.
    pub bound_cpu: Option<u32>,
    /// CPU of its thread in user space, nanoseconds, whole life.
    pub cpu_user_ns: u64,
    /// CPU of its thread in the kernel, nanoseconds, whole life.
    pub cpu_system_ns: u64,
    /// Figures over time.
    pub series: Series,
}

impl WorkerRecord {
    /// Counts its instants, which are those of the clock of the process, from `origin_ns`: the
    /// start of the window.
    pub fn count_from(&mut self, origin_ns: u64) {
        let edges = &mut self.edges;
        for edge in [
            &mut edges.started,
            &mut edges.ready,
            &mut edges.window_start,
            &mut edges.window_end,
            &mut edges.drained,
            &mut self.first_send,
        ] {
            *edge = edge.since(origin_ns);
        }
        if let Some(streams) = &mut self.streams {
            streams.count_from(origin_ns);
        }
        for downtime in &mut self.downtimes {
            downtime.from_ns = since_ns(downtime.from_ns, origin_ns);
            downtime.until_ns = downtime.until_ns.map(|ns| since_ns(ns, origin_ns));
        }
        for pause in &mut self.pauses {
            pause.from_ns = since_ns(pause.from_ns, origin_ns);
            pause.until_ns = since_ns(pause.until_ns, origin_ns);
        }
    }
}

/// A write-once instant, nanoseconds. A second `set` changes nothing. While a run is recorded it is
/// one of the clock of the process; in a run it counts from the start of the window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Once {
    ns: Option<i64>,
}

impl Once {
    /// An edge that is already written.
    pub fn at(ns: i64) -> Self {
        Self { ns: Some(ns) }
    }

    /// Writes the instant, unless it was written before.
    pub fn set(&mut self, ns: u64) {
        self.ns.get_or_insert(i64::try_from(ns).unwrap_or(i64::MAX));
    }

    /// The instant; absent where it was never written.
    pub fn get(&self) -> Option<i64> {
        self.ns
    }

    /// This instant, counted from `origin_ns`.
    #[must_use]
    pub fn since(self, origin_ns: u64) -> Self {
        Self {
            ns: self.ns.map(|ns| since_ns(ns, origin_ns)),
        }
    }
}

/// An instant, counted from `origin_ns`.
pub(crate) fn since_ns(ns: i64, origin_ns: u64) -> i64 {
    ns.saturating_sub(i64::try_from(origin_ns).unwrap_or(i64::MAX))
}

/// What the kernel counted of some TCP connections over some time (TCP_INFO).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StreamAccount {
    /// Payload bytes that the peers' kernels acknowledged.
    pub bytes_acked: u64,
    /// Payload bytes that came in. Of a connection that was reset after the peer had ended its side
    /// the kernel counts that end as one.
    pub bytes_received: u64,
    /// Payload bytes sent again.
    pub bytes_retransmitted: u64,
    /// Segments with payload sent, with those sent again.
    pub segments_sent: u64,
    /// Segments sent again; connection requests are not among them.
    pub segments_retransmitted: u64,
    /// Segments with payload received.
    pub segments_received: u64,
    /// Segments received out of order.
    pub segments_out_of_order: u64,
    /// Time with something to send or unacknowledged, summed over connections, nanoseconds.
    pub busy_ns: u64,
    /// The part of `busy_ns` in which the peer's receive window held sending up, nanoseconds.
    pub receive_window_limited_ns: u64,
    /// The part of `busy_ns` in which the size of our send buffer held sending up, nanoseconds.
    pub send_buffer_limited_ns: u64,
}

merges!(StreamAccount:
    bytes_acked bytes_received bytes_retransmitted segments_sent segments_retransmitted
    segments_received segments_out_of_order busy_ns receive_window_limited_ns
    send_buffer_limited_ns
);

differences!(StreamAccount:
    bytes_acked bytes_received bytes_retransmitted segments_sent segments_retransmitted
    segments_received segments_out_of_order busy_ns receive_window_limited_ns
    send_buffer_limited_ns
);

/// How far the streams of a worker had come at one instant, counted from the first reading.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StreamReading {
    /// When the accounts were read, nanoseconds from the start of the window.
    pub at_ns: i64,
    /// Payload bytes acknowledged so far.
    pub bytes_acked: u64,
    /// Payload bytes that had come in so far, by the kernel's count.
    pub bytes_received: u64,
    /// Segments sent again so far.
    pub segments_retransmitted: u64,
}

impl StreamReading {
    /// Most readings of one worker that are kept: beyond, each other one is dropped.
    pub const KEPT_MAX: usize = 1_200;
}

/// The streams of one worker, by the kernel's accounts of all of them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StreamRecord {
    /// What was counted between the first and the last of `readings`, which are made at the
    /// window's edges. Streams that ended in between are included up to their end.
    pub window: StreamAccount,
    /// How far things had come, oldest first: at the start of the window, in between, and at its
    /// end.
    pub readings: Vec<StreamReading>,
    /// Bytes of the window, acknowledged and received, of each stream that was open at its end;
    /// empty where there were more than 4,096.
    pub bytes_of_streams: Vec<u64>,
    /// Streams that were open at the end of the window.
    pub streams: u32,
    /// Smallest round trip of any, nanoseconds; null where the kernel gave none.
    pub min_rtt_ns: Option<u64>,
    /// Smoothed round trips at the end of the window, summed over the streams open then.
    pub smoothed_rtt_ns_sum: u64,
    /// Bytes per second that their paths delivered lately, summed over them.
    pub delivery_bytes_per_s: u64,
    /// What was counted over the lives of all streams, up to the end of drain.
    pub lifetime: StreamAccount,
    /// Connections whose accounts could not be read when they ended.
    pub unread_accounts: u64,
    /// Bytes that were in our sockets and not yet acknowledged when their streams ended.
    pub unacknowledged_bytes: u64,
    /// Bytes that were in our sockets and not yet read when their streams ended.
    pub unread_bytes: u64,
    /// Streams that came to an end that both sides agreed on: ours was sent behind the last byte,
    /// all bytes were acknowledged, and the peer ended its side, with nothing left to read. A peer
    /// that closes a connection without having read it all resets it.
    pub ended_in_order: u64,
}

impl StreamRecord {
    /// The bytes of each stream are kept of so many.
    pub const STREAMS_KEPT_MAX: usize = 4_096;

    /// Adds a reading, which is later than those before.
    pub fn read(&mut self, reading: StreamReading) {
        if self.readings.len() == StreamReading::KEPT_MAX {
            // The first one is the begin of all counts.
            let mut number = 0_usize;
            self.readings.retain(|_| {
                number += 1;
                number % 2 == 1
            });
        }
        self.readings.push(reading);
    }

    /// Time between the first and the last reading, nanoseconds.
    pub fn interval_ns(&self) -> u64 {
        let (first, last) = (self.readings.first(), self.readings.last());
        let of = first
            .zip(last)
            .map(|(first, last)| last.at_ns.saturating_sub(first.at_ns));
        of.and_then(|ns| u64::try_from(ns).ok()).unwrap_or(0)
    }

    /// Counts its instants, which are those of the clock of the process, from `origin_ns`.
    pub(crate) fn count_from(&mut self, origin_ns: u64) {
        for reading in &mut self.readings {
            reading.at_ns = since_ns(reading.at_ns, origin_ns);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_first_write_counts() {
        let mut edge = Once::default();
        assert_eq!(edge.get(), None);
        edge.set(5);
        edge.set(7);
        assert_eq!(edge, Once::at(5));
    }

    #[test]
    fn readings_stay_bounded_and_keep_their_ends() {
        let mut record = StreamRecord::default();
        for at_ns in 0..10_000 {
            record.read(StreamReading {
                at_ns,
                bytes_acked: at_ns as u64,
                ..StreamReading::default()
            });
        }
        assert!(record.readings.len() <= StreamReading::KEPT_MAX);
        assert_eq!(record.interval_ns(), 9_999);
        assert!(record.readings.is_sorted_by_key(|reading| reading.at_ns));
    }

    #[test]
    fn accounts_are_differences() {
        let earlier = StreamAccount {
            bytes_acked: 10,
            busy_ns: 4,
            ..StreamAccount::default()
        };
        let mut later = StreamAccount {
            bytes_acked: 15,
            segments_sent: 3,
            busy_ns: 4,
            ..StreamAccount::default()
        };
        let since = later.since(&earlier);
        assert_eq!(
            (since.bytes_acked, since.segments_sent, since.busy_ns),
            (5, 3, 0)
        );
        later.merge(&since);
        assert_eq!((later.bytes_acked, later.segments_sent), (20, 6));
    }
}
