//! The recorder of one worker: events with their time stamps in, counters and histograms out.

mod names;
mod requests;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use self::names::NameRecorder;
use crate::intervals::IntervalRecorder;
use crate::merged::Merge;
use crate::record::{Downtime, LiveConnections, Pause};
use crate::request_log::LogPart;
use crate::stages::StageRecorder;
use crate::{
    ArrivalCounts, CarriedIn, FailureKind, Histogram, Latencies, NameRecord, Series, SeriesPoint,
    StageRecord, Tally, Window, WorkerRecord,
};
use brunt_load::Work;

pub use requests::{Answer, LogPlace, Opening, RequestTiming};

/// What a worker hands over at its end.
#[derive(Clone, Debug, Default)]
pub struct Recording {
    /// Counters, edges and series.
    pub record: WorkerRecord,
    /// Histograms.
    pub latencies: Latencies,
    /// Figures by name, without the names; empty where no list of requests is sent.
    pub names: Vec<NameRecord>,
}

/// Records the events of one worker. An event belongs to the phase in which its time stamp falls;
/// a latency, and an arrival, to the window when it was due in the window.
#[derive(Clone, Debug, Default)]
pub struct Recorder {
    window: Window,
    recording: Recording,
    intervals: IntervalRecorder,
    live: u32,
    live_since_ns: u64,
    /// Attempts to connect that are in flight.
    opening: u32,
    opening_since_ns: u64,
    /// Requests are due at planned instants, so that service and response time differ.
    is_planned: bool,
    /// What connections are for.
    work: Work,
    /// The latest instant at which something counted was due.
    last_due_ns: u64,
    /// Requests that were in flight when the window began; how many is known at the end.
    carried_in: CarriedIn,
    /// Lower bounds of what will not have ended by the end of the window: they reach to it, and
    /// move with it.
    until_end: Histogram,
    /// The requests by the stage in which they were due.
    stages: StageRecorder,
    names: NameRecorder,
    /// When the worker stopped opening connections, and whether because its server was away.
    opens_until: Option<(u64, bool)>,
    /// The log of requests; absent where none is kept.
    log: Option<Box<LogPart>>,
    /// The point of the series that goes on: events come nearly in order.
    point: CurrentPoint,
}

/// Where one point of a series is, and which offsets from the start of the window it holds.
#[derive(Clone, Debug, Default)]
struct CurrentPoint {
    index: usize,
    from_ns: u64,
    until_ns: u64,
}

impl Recorder {
    /// A recorder for worker number `worker`, which is to hold `connections` connections and may
    /// open `most`. Until [`Recorder::set_window`] everything counts as before the window.
    pub fn new(worker: u32, connections: u32, most: u32) -> Self {
        let mut recording = Recording::default();
        recording.record.worker = worker;
        recording.record.live = LiveConnections {
            asked: connections,
            most,
            ..Default::default()
        };
        let window = Window {
            start_ns: u64::MAX,
            end_ns: u64::MAX,
        };
        Self {
            window,
            recording,
            ..Self::default()
        }
    }

    /// Says that requests are due at planned instants: service times are kept beside the response
    /// times.
    pub fn plan_requests(&mut self) {
        self.is_planned = true;
    }

    /// Says that attempts to connect are the requests.
    pub fn count_attempts(&mut self) {
        self.work = Work::Connects;
    }

    /// Says that the planned instants come in stages of these lengths, the first of which begins
    /// with the window: what becomes of the requests of each is recorded, up to
    /// [`crate::STAGES_RECORDED_MAX`] stages.
    pub fn plan_stages(&mut self, lengths_ns: &[u64]) {
        self.stages = StageRecorder::new(lengths_ns);
    }

    /// Says that there are so many names of requests, and which one each request has: figures are
    /// kept by name.
    pub fn plan_names(&mut self, name_of: Arc<[u32]>, names: usize) {
        self.names = NameRecorder::new(name_of, names);
    }

    /// Says that requests are made while the run goes on: the number of each is that of the name
    /// that it is given, or [`crate::NO_NAME`].
    pub fn generate_requests(&mut self) {
        self.names = NameRecorder::of_generator();
    }

    /// Gives the names of generated requests, by their numbers.
    pub fn name_requests(&mut self, names: Vec<String>) {
        self.names.set_names(names);
    }

    /// Fixes the window, before its start. The end of a run by count is not known beforehand and
    /// is `u64::MAX`.
    pub fn set_window(&mut self, window: Window) {
        self.window = window;
        let length_ns = match window.end_ns {
            u64::MAX => 0,
            _ => window.length_ns(),
        };
        self.intervals.set_window(length_ns);
        self.recording.record.series = Series::over(length_ns);
        self.point = CurrentPoint::default();
        self.recording.record.live.min = self.live;
        self.recording.record.live.max = self.live;
    }

    /// Brings the end forward, to an instant that is still to come, or to that of the last reply
    /// of a run by count. A window that would end before it starts is empty.
    ///
    /// What was already counted in the window stays in it, or the accounting of the window would
    /// not add up: a worker that learns too late of an early end keeps a later end of its
    /// own, and [`Recorder::window`] tells it.
    pub fn end_window_at(&mut self, end_ns: u64) {
        let Window {
            start_ns,
            end_ns: end_before_ns,
        } = self.window;
        let counted_to_ns = if self.window.contains(self.last_due_ns) {
            self.last_due_ns + 1
        } else {
            start_ns
        };
        self.window.end_ns = end_before_ns.min(end_ns.max(counted_to_ns));
        let earlier_ns = end_before_ns - self.window.end_ns;
        if earlier_ns > 0 && self.until_end.count() > 0 {
            self.until_end = self.until_end.lowered_by(earlier_ns);
        }
        if earlier_ns > 0 {
            self.stages.end_earlier(earlier_ns);
        }
    }

    /// The window as set.
    pub fn window(&self) -> Window {
        self.window
    }

    /// The edges and other fields that the worker fills in itself.
    pub fn record(&mut self) -> &mut WorkerRecord {
        &mut self.recording.record
    }

    /// The worker did not run from `from_ns` to `until_ns`, though it was to.
    pub fn paused(&mut self, from_ns: u64, until_ns: u64) {
        let pauses = &mut self.recording.record.pauses;
        if pauses.len() < Pause::KEPT_MAX {
            pauses.push(Pause {
                from_ns: from_ns.cast_signed(),
                until_ns: until_ns.cast_signed(),
            });
        }
    }

    /// The worker opens no connection from `at_ns` on, while others go on: it has nothing more to
    /// send, or, where it `gave_up`, its server was away for too long.
    pub fn opens_no_more(&mut self, at_ns: u64, gave_up: bool) {
        self.opens_until = Some((at_ns, gave_up));
    }

    /// Ends the recording; its instants are those of the clock of the process. `end_ns` is the
    /// window's end where it was not known before; it is ignored where an earlier end was set.
    pub fn finish(mut self, end_ns: u64) -> Recording {
        self.end_window_at(end_ns);
        self.live_changed(self.window.end_ns, self.live);
        self.opening(self.window.end_ns, self.opening);
        if let Some((until_ns, gave_up)) = self.opens_until {
            let rest_ns = self.window.overlap_ns(until_ns, self.window.end_ns);
            let live = &mut self.recording.record.live;
            let unopened = live.asked.saturating_sub(self.live);
            let missing = if gave_up {
                &mut live.missing.retrying_ns
            } else {
                &mut live.missing.unneeded_ns
            };
            missing.merge(&u64::from(unopened).saturating_mul(rest_ns));
        }
        self.recording.latencies.unfinished.merge(&self.until_end);
        let before = &self.recording.record.tallies.before;
        let ended = before.replies.total() + before.failures.of_requests(self.work);
        self.carried_in.in_flight = before.requests_sent.saturating_sub(ended);
        self.recording.record.carried_in = self.carried_in;
        self.recording.latencies.intervals = self.intervals.finish(self.window.length_ns());
        self.recording.latencies.stages = self.stages.finish();
        self.recording.names = self.names.finish();
        self.recording
    }

    fn unfinished(&mut self, due_ns: u64, at_ns: u64) {
        self.unfinished_many(due_ns, at_ns, at_ns.saturating_sub(due_ns), 1);
    }

    /// `count` requests, the first of which was due at `due_ns`, had no reply by `at_ns`: their
    /// response times are `bound_ns` at least.
    fn unfinished_many(&mut self, due_ns: u64, at_ns: u64, bound_ns: u64, count: u64) {
        let Some(offset_ns) = self.window.offset(due_ns) else {
            return;
        };
        if at_ns == self.window.end_ns {
            self.until_end.record_many(bound_ns, count);
            self.stages.unfinished_at_end(offset_ns, bound_ns, count);
        } else {
            let unfinished = &mut self.recording.latencies.unfinished;
            unfinished.record_many(bound_ns, count);
            if let Some(stage) = self.stages.at(offset_ns) {
                stage.unfinished.record_many(bound_ns, count);
            }
        }
    }

    /// The point of the series at this offset from the start of the window.
    #[inline]
    fn point(&mut self, offset_ns: u64) -> &mut SeriesPoint {
        let is_current = (self.point.from_ns..self.point.until_ns).contains(&offset_ns);
        if !is_current {
            self.move_to_point(offset_ns);
        }
        &mut self.recording.record.series.points[self.point.index]
    }

    #[cold]
    fn move_to_point(&mut self, offset_ns: u64) {
        let series = &mut self.recording.record.series;
        // It may make the intervals longer.
        series.at(offset_ns, self.live);
        let index = offset_ns / series.interval_ns;
        let from_ns = index * series.interval_ns;
        self.point = CurrentPoint {
            index: index as usize,
            from_ns,
            until_ns: from_ns.saturating_add(series.interval_ns),
        };
    }

    /// The counters of the phase in which this instant falls, for what is only counted.
    #[inline]
    pub fn tally(&mut self, at_ns: u64) -> &mut Tally {
        let phase = self.window.phase(at_ns);
        self.recording.record.tallies.get_mut(phase)
    }
}

/// Why an arrival was never sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Skip {
    /// The queue was full.
    Full,
    /// The arrival had waited too long for a reply within its time-out.
    Late,
    /// The arrival still waited when drain ended.
    Unsent,
}

impl Recorder {
    /// An arrival was planned for `due_ns`. Exactly one of [`Recorder::arrival_sent`] and
    /// [`Recorder::arrival_skipped`] follows.
    pub fn arrival_planned(&mut self, due_ns: u64) {
        self.last_due_ns = self.last_due_ns.max(due_ns);
        self.count_arrival(due_ns, |arrivals| arrivals.planned += 1);
    }

    /// Counts an arrival that was sent (or its connection attempted) at `at_ns`, after waiting for
    /// a free connection or not.
    pub fn arrival_sent(&mut self, due_ns: u64, at_ns: u64, waited: bool) {
        let is_by_end = at_ns < self.window.end_ns;
        self.count_arrival(due_ns, |arrivals| {
            arrivals.sent += 1;
            *arrivals.sent_by_end.get_or_insert(0) += u64::from(is_by_end);
            arrivals.waited += u64::from(waited);
        });
    }

    /// Counts an arrival that was given up and never sent: it has no reply by `at_ns`, which may be
    /// the end of the window, still to come.
    pub fn arrival_skipped(&mut self, due_ns: u64, at_ns: u64, why: Skip) {
        self.count_arrival(due_ns, |arrivals| match why {
            Skip::Full => arrivals.skipped_full += 1,
            Skip::Late => arrivals.skipped_late += 1,
            Skip::Unsent => arrivals.unsent += 1,
        });
        if self.is_planned {
            self.unfinished(due_ns, at_ns);
        }
    }

    /// The first instant after `due_ns` at which arrivals count differently, if they are skipped
    /// because the queue is full and have no reply by `at_ns`. Arrivals before it can be reported
    /// together, by [`Recorder::arrivals_skipped`].
    pub fn alike_until_ns(&self, due_ns: u64, at_ns: u64) -> u64 {
        if due_ns < self.window.start_ns {
            return self.window.start_ns;
        }
        let offset_ns = self.window.offset(due_ns).filter(|_| self.is_planned);
        let Some(offset_ns) = offset_ns else {
            return u64::MAX;
        };
        let stage_end_ns = self
            .window
            .start_ns
            .saturating_add(self.stages.end_ns(offset_ns));
        let bound_ns = at_ns.saturating_sub(due_ns);
        let least_ns = self.until_end.least_alike_ns(bound_ns);
        at_ns
            .saturating_sub(least_ns)
            .saturating_add(1)
            .min(stage_end_ns)
            .max(due_ns + 1)
    }

    /// `count` arrivals were planned, the first for `due_ns` and the last before `until_ns`, which
    /// is [`Recorder::alike_until_ns`] of the first or earlier, and were skipped because the queue
    /// was full: they have no reply by `at_ns`.
    pub fn arrivals_skipped(&mut self, due_ns: u64, until_ns: u64, at_ns: u64, count: u64) {
        let last_due_ns = until_ns.saturating_sub(1).max(due_ns);
        self.last_due_ns = self.last_due_ns.max(last_due_ns);
        self.count_arrival(due_ns, |arrivals| {
            arrivals.planned += count;
            arrivals.skipped_full += count;
        });
        if self.is_planned {
            self.unfinished_many(due_ns, at_ns, at_ns.saturating_sub(last_due_ns), count);
        }
    }

    /// `waiting` arrivals wait for a free connection.
    pub fn waiting(&mut self, at_ns: u64, waiting: u64) {
        if let Some(offset) = self.window.offset(at_ns) {
            let point = self.point(offset);
            point.waiting_max = point.waiting_max.max(waiting);
        }
    }

    /// What was due at `due_ns` was sent `lag_ns` after brunt could have sent it.
    pub fn lag(&mut self, due_ns: u64, lag_ns: u64) {
        if self.window.contains(due_ns) {
            self.recording.latencies.lag.record(lag_ns);
        }
    }

    fn count_arrival(&mut self, due_ns: u64, count: impl Fn(&mut ArrivalCounts)) {
        let record = &mut self.recording.record;
        count(&mut record.arrivals_all);
        if let Some(offset_ns) = self.window.offset(due_ns) {
            count(&mut record.arrivals);
            if let Some(StageRecord { arrivals, .. }) = self.stages.at(offset_ns) {
                count(arrivals);
            }
        }
    }
}

impl Recorder {
    /// Open connections now.
    pub fn live(&self) -> u32 {
        self.live
    }

    /// The window is over, and connections were only kept open.
    pub fn held_until_now(&mut self) {
        self.recording.record.live.at_end = Some(self.live);
    }

    /// Something failed that was no request: a connection attempt or an idle connection.
    pub fn failed(&mut self, at_ns: u64, kind: FailureKind, discarded_bytes: u64) {
        let tally = self.tally(at_ns);
        tally.failures.add(kind);
        tally.discarded_bytes += discarded_bytes;
        if let Some(offset) = self.window.offset(at_ns) {
            self.point(offset).failures += 1;
        }
        if self.live == 0 && kind.is_refusal() && self.work != Work::Connects {
            self.is_down(at_ns);
        }
    }

    /// Records that `opening` attempts to connect are in flight from now on.
    pub fn opening(&mut self, at_ns: u64, opening: u32) {
        let at_ns = at_ns.max(self.opening_since_ns);
        let open_ns = self.window.overlap_ns(self.opening_since_ns, at_ns);
        let opening_ns = u64::from(self.opening).saturating_mul(open_ns);
        let missing = &mut self.recording.record.live.missing;
        missing.opening_ns.merge(&opening_ns);
        (self.opening, self.opening_since_ns) = (opening, at_ns);
    }

    /// Adds what of `[from_ns, to_ns)` lies in the window to one of the times of connections, such
    /// as that in which one waited to be tried again.
    pub fn add_time(&mut self, from_ns: u64, to_ns: u64, of: fn(&mut LiveConnections) -> &mut u64) {
        let within_ns = self.window.overlap_ns(from_ns, to_ns);
        of(&mut self.recording.record.live).merge(&within_ns);
    }

    /// A connection is opened that was not needed until now. Where none was open, that was no
    /// failure of the server.
    pub fn needed(&mut self, at_ns: u64) {
        if self.live == 0 {
            self.live_changed(at_ns, 0);
        }
    }

    /// An attempt failed while no connection was open.
    fn is_down(&mut self, at_ns: u64) {
        let record = &mut self.recording.record;
        let is_known = record
            .downtimes
            .last()
            .is_some_and(|downtime| downtime.until_ns.is_none());
        if is_known || record.downtimes.len() == Downtime::KEPT_MAX {
            return;
        }
        // Connections that come by plan go by plan as well.
        let from_ns = match record.live.asked {
            0 => at_ns,
            _ => self.live_since_ns,
        };
        record.downtimes.push(Downtime {
            from_ns: from_ns.cast_signed(),
            until_ns: None,
        });
    }

    /// The TLS handshake of a connection that is open now, full or resumed, took `tls_ns`. Once
    /// for each [`Recorder::connected`] of a run over TLS.
    pub fn secured(&mut self, at_ns: u64, tls_ns: u64, is_resumed: bool) {
        let tally = self.tally(at_ns);
        if is_resumed {
            tally.handshakes_resumed += 1;
        } else {
            tally.handshakes_full += 1;
        }
        self.recording.latencies.tls.record(tls_ns);
    }

    /// The server's first HTTP/2 settings came `greeting_ns` after the connection, with its TLS,
    /// was there.
    pub fn greeted(&mut self, greeting_ns: u64) {
        self.recording.latencies.greeting.record(greeting_ns);
    }

    /// A connection is open for requests. Its TCP handshake took `connect_ns`.
    pub fn connected(&mut self, at_ns: u64, connect_ns: u64) {
        self.tally(at_ns).connections_opened += 1;
        self.recording.latencies.connect.record(connect_ns);
        if let Some(downtime) = self.recording.record.downtimes.last_mut() {
            downtime.until_ns.get_or_insert(at_ns.cast_signed());
        }
        self.live_changed(at_ns, self.live + 1);
    }

    /// A connection that was opened for an earlier round is open still.
    pub fn kept_open(&mut self, at_ns: u64) {
        self.recording.record.connections_kept += 1;
        self.live_changed(at_ns, self.live + 1);
    }

    /// An open connection is no more, whoever ended it.
    pub fn disconnected(&mut self, at_ns: u64) {
        self.live_changed(at_ns, self.live.saturating_sub(1));
    }

    pub(super) fn live_changed(&mut self, at_ns: u64, live: u32) {
        // Time stamps of one batch may be out of order: an interval is never counted twice.
        let at_ns = at_ns.max(self.live_since_ns);
        let open_ns = self.window.overlap_ns(self.live_since_ns, at_ns);
        let record = &mut self.recording.record;
        let connection_ns = u64::from(self.live).saturating_mul(open_ns);
        record.live.connection_ns.merge(&connection_ns);
        let Window { start_ns, end_ns } = self.window;
        if let Some(offset) = self.window.offset(at_ns) {
            let point = self.point(offset);
            point.live_min = point.live_min.min(live);
            point.live_max = point.live_max.max(live);
            let record = &mut self.recording.record;
            record.live.min = record.live.min.min(live);
            record.live.max = record.live.max.max(live);
        } else if at_ns < start_ns {
            record.live.min = live;
            record.live.max = live;
        }
        if start_ns < end_ns && self.live_since_ns < end_ns && at_ns >= end_ns {
            // The window is over: its last intervals saw the connections open until now.
            self.point(end_ns - 1 - start_ns);
        }
        self.live = live;
        self.live_since_ns = at_ns;
    }
}
