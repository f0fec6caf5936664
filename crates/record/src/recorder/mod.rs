//! The recorder of one worker: events with their time stamps in, counters and histograms out.

mod arrivals;
mod connections;
mod logging;
mod names;
mod requests;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use crate::intervals::IntervalRecorder;
use crate::record::{LiveConnections, Pause};
use crate::request_log::LogPart;
use crate::stages::StageRecorder;
use crate::{
    CarriedIn, Histogram, Latencies, NameRecord, Series, SeriesPoint, Tally, Window, WorkerRecord,
};

use self::names::NameRecorder;

pub use arrivals::Skip;
pub use logging::LogPlace;
pub use requests::{Answer, Opening, RequestTiming};

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
    /// Attempts to connect are the requests.
    are_attempts: bool,
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
        self.are_attempts = true;
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

    /// Ends the recording; its instants are those of the clock of the process. `end_ns` is the
    /// window's end where it was not known before; it is ignored where an earlier end was set.
    pub fn finish(mut self, end_ns: u64) -> Recording {
        self.end_window_at(end_ns);
        self.live_changed(self.window.end_ns, self.live);
        self.opening(self.window.end_ns, self.opening);
        self.recording.latencies.unfinished.merge(&self.until_end);
        let before = &self.recording.record.tallies.before;
        let ended = before.replies.total() + before.failures.of_requests(self.are_attempts);
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

    #[inline]
    fn tally(&mut self, at_ns: u64) -> &mut Tally {
        let phase = self.window.phase(at_ns);
        self.recording.record.tallies.get_mut(phase)
    }
}
