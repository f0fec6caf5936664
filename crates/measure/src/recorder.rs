//! The recorder of one worker: events with their time stamps in, counters and histograms out.

use crate::record::LiveConnections;
use crate::status::is_success;
use crate::{FailureKind, Histogram, Phase, Tally, Window, WorkerRecord};

/// What a worker hands over at its end.
#[derive(Clone, Debug, Default)]
pub struct Recording {
    /// Counters, edges and series.
    pub record: WorkerRecord,
    /// Response time of successful replies (status below 400) to requests sent in the window.
    pub response: Histogram,
    /// Response time of error replies (status 400 and above) to requests sent in the window.
    pub response_error: Histogram,
    /// Time from the connection attempt to the open connection, set-up included.
    pub connect: Histogram,
}

/// Records the events of one worker. An event belongs to the phase in which its time stamp falls,
/// a latency to the window when its request was sent in the window.
#[derive(Clone, Debug)]
pub struct Recorder {
    window: Window,
    recording: Recording,
    live: u32,
    live_since_ns: u64,
    last_send_ns: u64,
}

impl Recorder {
    /// A recorder for worker number `worker`, which is to hold `connections` connections. Until
    /// [`Recorder::set_window`] everything counts as before the window.
    pub fn new(worker: u32, connections: u32) -> Self {
        let mut recording = Recording::default();
        recording.record.worker = worker;
        recording.record.live = LiveConnections {
            asked: connections,
            ..Default::default()
        };
        let window = Window {
            start_ns: u64::MAX,
            end_ns: u64::MAX,
        };
        Self {
            window,
            recording,
            live: 0,
            live_since_ns: 0,
            last_send_ns: 0,
        }
    }

    /// Fixes the window, before its start. The end of a run by count is not known beforehand and
    /// is `u64::MAX`.
    pub fn set_window(&mut self, window: Window) {
        self.window = window;
        self.recording.record.live.min = self.live;
        self.recording.record.live.max = self.live;
    }

    /// Brings the end forward, to an instant that is still to come, or to that of the last reply
    /// of a run by count. A window that would end before it starts is empty.
    ///
    /// A send that was already counted in the window stays in it, or the accounting of the window
    /// would not add up: a worker that learns too late of an early end keeps a later end of its
    /// own, and [`Recorder::window`] tells it.
    pub fn end_window_at(&mut self, end_ns: u64) {
        let Window {
            start_ns,
            end_ns: end_before_ns,
        } = self.window;
        let counted_to_ns = if self.window.contains(self.last_send_ns) {
            self.last_send_ns + 1
        } else {
            start_ns
        };
        self.window.end_ns = end_before_ns.min(end_ns.max(counted_to_ns));
    }

    /// The window as set.
    pub fn window(&self) -> Window {
        self.window
    }

    /// The edges and other fields that the worker fills in itself.
    pub fn record(&mut self) -> &mut WorkerRecord {
        &mut self.recording.record
    }

    /// Open connections now.
    pub fn live(&self) -> u32 {
        self.live
    }

    /// `requests` requests of `bytes` bytes in all were handed to the kernel. `at_ns` is what
    /// later calls name as `sent_ns`.
    pub fn sent(&mut self, at_ns: u64, requests: u32, bytes: u64) {
        self.last_send_ns = self.last_send_ns.max(at_ns);
        let record = &mut self.recording.record;
        if record.first_send.get().is_none() {
            record.first_send.set(at_ns);
        }
        if self.window.contains(at_ns) {
            record.population.issued += u64::from(requests);
        }
        let tally = self.tally(at_ns);
        tally.requests_sent += u64::from(requests);
        tally.bytes_sent += bytes;
    }

    /// `bytes` bytes were read from a socket.
    pub fn received(&mut self, at_ns: u64, bytes: u64) {
        self.tally(at_ns).bytes_received += bytes;
        if let Some(offset) = self.window.offset(at_ns) {
            self.recording
                .record
                .series
                .at(offset, self.live)
                .bytes_received += bytes;
        }
    }

    /// A final reply is complete: `head_bytes` and `body_bytes` with their framing, after
    /// `interim` interim replies (whose bytes are part of `head_bytes`).
    pub fn reply(
        &mut self,
        sent_ns: u64,
        done_ns: u64,
        status: u16,
        interim: u32,
        head_bytes: u64,
        body_bytes: u64,
    ) {
        let tally = self.tally(done_ns);
        tally.replies.add(status);
        tally.interim_replies += u64::from(interim);
        tally.reply_head_bytes += head_bytes;
        tally.reply_body_bytes += body_bytes;
        let success = is_success(status);
        let record = &mut self.recording.record;
        let size = head_bytes + body_bytes;
        record.reply_bytes_min = Some(record.reply_bytes_min.map_or(size, |min| min.min(size)));
        if let Some(offset) = self.window.offset(done_ns) {
            let point = record.series.at(offset, self.live);
            if success {
                point.successes += 1;
            } else {
                point.errors += 1;
            }
        }
        record.under_way_ns += self.window.overlap_ns(sent_ns, done_ns);
        if self.window.contains(sent_ns) {
            record.population.recorded += 1;
            record.latencies_recorded += 1;
            let latency_ns = done_ns.saturating_sub(sent_ns);
            if success {
                self.recording.response.record(latency_ns);
            } else {
                self.recording.response_error.record(latency_ns);
            }
        }
    }

    /// A request failed, and `discarded_bytes` of its incomplete reply are lost with it.
    pub fn request_failed(
        &mut self,
        sent_ns: u64,
        at_ns: u64,
        kind: FailureKind,
        discarded_bytes: u64,
    ) {
        self.failed(at_ns, kind, discarded_bytes);
        self.recording.record.under_way_ns += self.window.overlap_ns(sent_ns, at_ns);
        if self.window.contains(sent_ns) {
            self.recording.record.population.failed += 1;
        }
    }

    /// Something failed that was no request: a connection attempt or an idle connection.
    pub fn failed(&mut self, at_ns: u64, kind: FailureKind, discarded_bytes: u64) {
        let tally = self.tally(at_ns);
        tally.failures.add(kind);
        tally.discarded_bytes += discarded_bytes;
        if let Some(offset) = self.window.offset(at_ns) {
            self.recording.record.series.at(offset, self.live).failures += 1;
        }
    }

    /// A request was still under way when drain ended.
    pub fn censored(&mut self, sent_ns: u64, at_ns: u64, discarded_bytes: u64) {
        self.recording.record.under_way_at_end += 1;
        self.recording.record.under_way_ns += self.window.overlap_ns(sent_ns, at_ns);
        self.tally(at_ns).discarded_bytes += discarded_bytes;
        if self.window.contains(sent_ns) {
            self.recording.record.population.censored += 1;
        }
    }

    /// A connection is open, `connect_ns` after the attempt began.
    pub fn connected(&mut self, at_ns: u64, connect_ns: u64) {
        self.tally(at_ns).connections_opened += 1;
        self.recording.connect.record(connect_ns);
        self.live_changed(at_ns, self.live + 1);
    }

    /// An open connection is no more, whoever ended it.
    pub fn disconnected(&mut self, at_ns: u64) {
        self.live_changed(at_ns, self.live.saturating_sub(1));
    }

    /// The server closed a connection that had no request under way.
    pub fn closed_idle(&mut self, at_ns: u64) {
        self.tally(at_ns).connections_closed_idle += 1;
    }

    /// Ends the recording. `end_ns` is the window's end where it was not known before; it is
    /// ignored where an earlier end was set.
    pub fn finish(mut self, end_ns: u64) -> Recording {
        self.end_window_at(end_ns);
        self.live_changed(self.window.end_ns, self.live);
        let (window, live) = (self.window, self.live);
        if window.start_ns < window.end_ns {
            self.recording
                .record
                .series
                .at(window.end_ns - 1 - window.start_ns, live);
        }
        self.recording
    }

    fn live_changed(&mut self, at_ns: u64, live: u32) {
        // Time stamps of one batch may be out of order: an interval is never counted twice.
        let at_ns = at_ns.max(self.live_since_ns);
        let open_ns = self.window.overlap_ns(self.live_since_ns, at_ns);
        let record = &mut self.recording.record;
        record.live.connection_ns = record
            .live
            .connection_ns
            .saturating_add(u64::from(self.live).saturating_mul(open_ns));
        if let Some(offset) = self.window.offset(at_ns) {
            let point = record.series.at(offset, self.live);
            point.live_min = point.live_min.min(live);
            point.live_max = point.live_max.max(live);
            record.live.min = record.live.min.min(live);
            record.live.max = record.live.max.max(live);
        } else if at_ns < self.window.start_ns {
            record.live.min = live;
            record.live.max = live;
        }
        self.live = live;
        self.live_since_ns = at_ns;
    }

    fn tally(&mut self, at_ns: u64) -> &mut Tally {
        let phase = self.window.phase(at_ns);
        self.recording.record.tallies.get_mut(phase)
    }
}

impl Window {
    fn contains(&self, at_ns: u64) -> bool {
        self.phase(at_ns) == Phase::Measure
    }

    fn offset(&self, at_ns: u64) -> Option<u64> {
        self.contains(at_ns).then(|| at_ns - self.start_ns)
    }

    /// How much of `[from_ns, to_ns)` lies in the window.
    fn overlap_ns(&self, from_ns: u64, to_ns: u64) -> u64 {
        to_ns
            .min(self.end_ns)
            .saturating_sub(from_ns.max(self.start_ns))
    }

    fn phase(&self, at_ns: u64) -> Phase {
        if at_ns < self.start_ns {
            Phase::Before
        } else if at_ns < self.end_ns {
            Phase::Measure
        } else {
            Phase::After
        }
    }
}
