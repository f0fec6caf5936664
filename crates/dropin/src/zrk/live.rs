//! What zrk shows of a run while it lasts: a line of text per interval, and a row of JSON.

use brunt_engine::{Phase, Progress, Snapshot};
use brunt_record::SparseHistogram;

use super::figures::HIGHEST_US;
use super::json::{self, offered_per_s};
use super::report::{max_us, time};
use super::tally::{Row, Tally};
use super::{Figures, Options};
use crate::recorded::Recorded;
use crate::sizes::binary;

/// Snapshots of a worker come so often; what was counted at the end of an interval is known then.
const DELAY_NS: u64 = 150_000_000;
/// A shorter end of a run has no row.
const LEAST_S: f64 = 0.001;

/// A line of text and a row of JSON, each with its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shown {
    /// The line.
    pub line: String,
    /// The row.
    pub row: String,
}

/// What looks on while a run lasts.
#[derive(Clone, Debug)]
pub struct Live<'a> {
    options: &'a Options,
    /// When the window began; absent before.
    start_ns: Option<u64>,
    /// When the latest snapshot of each worker was taken.
    taken_ns: Vec<u64>,
    /// What was counted so far, and up to the last row.
    progress: Progress,
    shown: Tally,
    shown_s: f64,
    /// Response times of the interval, and of all before.
    times: SparseHistogram,
    all: SparseHistogram,
    lag_us: u64,
}

impl<'a> Live<'a> {
    /// Before the run.
    pub fn new(options: &'a Options) -> Self {
        let workers = options.threads.min(options.connections).get() as usize;
        Self {
            options,
            start_ns: None,
            taken_ns: vec![0; workers],
            progress: Progress::default(),
            shown: Tally::default(),
            shown_s: 0.0,
            times: SparseHistogram::default(),
            all: SparseHistogram::default(),
            lag_us: 0,
        }
    }

    /// Takes what a worker counted.
    pub fn take(&mut self, snapshot: &Snapshot) {
        let counts = &snapshot.counts;
        for (own, more) in [
            (&mut self.progress.successes, counts.successes),
            (&mut self.progress.errors, counts.errors),
            (&mut self.progress.failures, counts.failures),
            (&mut self.progress.connect_failures, counts.connect_failures),
            (&mut self.progress.timeouts, counts.timeouts),
            (&mut self.progress.bytes_received, counts.bytes_received),
        ] {
            *own += more;
        }
        self.times.merge(&snapshot.response);
        if let Some(taken_ns) = self.taken_ns.get_mut(snapshot.worker as usize) {
            *taken_ns = snapshot.to_ns;
        }
    }

    /// What is to be shown now: an interval that is over.
    pub fn look(&mut self, now_ns: u64, phase: Phase, progress: &Progress) -> Option<Shown> {
        if phase != Phase::Measure {
            return None;
        }
        let start_ns = *self.start_ns.get_or_insert(now_ns);
        let now_s = now_ns.saturating_sub(start_ns) as f64 / 1e9;
        let offered = offered_per_s(self.options, now_s);
        if !self.options.is_closed && offered > 0.0 {
            let behind_us = progress.waiting as f64 / offered * 1e6;
            self.lag_us = self.lag_us.max(behind_us as u64);
        }
        let interval_ns = self.options.interval_ns;
        let interval_s = interval_ns as f64 / 1e9;
        let shown_intervals = (self.shown_s / interval_s).round();
        let delay_s = DELAY_NS.min(interval_ns) as f64 / 1e9;
        if now_s < (shown_intervals + 1.0) * interval_s + delay_s {
            return None;
        }
        // What was counted was counted until then, on average.
        let stale_ns = now_ns.saturating_sub(2 * DELAY_NS);
        let known_ns = |&taken_ns: &u64| {
            if taken_ns < stale_ns {
                now_ns
            } else {
                taken_ns
            }
        };
        let sum_ns: u128 = self
            .taken_ns
            .iter()
            .map(|it| u128::from(known_ns(it)))
            .sum();
        let mean_ns = (sum_ns / self.taken_ns.len().max(1) as u128) as u64;
        let at_s = mean_ns.saturating_sub(start_ns) as f64 / 1e9;
        let tally = Tally::of(&self.progress, self.options.deadline_ns > 0);
        Some(self.show(at_s, tally))
    }

    /// What is to be shown of the rest, so that the rows add up to the run.
    pub fn end(&mut self, figures: &Figures) -> Option<Shown> {
        self.lag_us = self.lag_us.max(figures.lag_us);
        let at_s = figures.counts.duration_ns as f64 / 1e9;
        (at_s > self.shown_s + LEAST_S).then(|| self.show(at_s, Tally::of_run(figures)))
    }

    fn show(&mut self, at_s: f64, so_far: Tally) -> Shown {
        let tally = so_far.since(&self.shown);
        let of_interval = Recorded::of(&self.times.expand(), HIGHEST_US);
        self.all.merge(&self.times);
        let of_all = Recorded::of(&self.all.expand(), HIGHEST_US);
        let row = Row {
            from_s: self.shown_s,
            at_s,
            tally: &tally,
            recorded: &of_interval,
            lag_us: self.lag_us,
        };
        let length_s = at_s - self.shown_s;
        let percentile = |percent| time(of_all.percentile_us(percent));
        let line = format!(
            "[{at_s:6.1}s] {:8.0} req/s {}/s  p50={} p99={} p99.9={} max={}  errs={}\n",
            tally.requests as f64 / length_s,
            binary(tally.bytes as f64 / length_s, ""),
            percentile(50.0),
            percentile(99.0),
            percentile(99.9),
            time(max_us(&of_all)),
            so_far.errors(),
        );
        let row = json::row(self.options, &row);
        self.times = SparseHistogram::default();
        (self.shown, self.shown_s) = (so_far, at_s);
        Shown { line, row }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shell::words;

    const S: u64 = 1_000_000_000;

    fn snapshot(worker: u32, to_ns: u64, successes: u64, timeouts: u64) -> Snapshot {
        let mut response = SparseHistogram::default();
        (0..successes).for_each(|_| response.record(2_000_000));
        Snapshot {
            worker,
            from_ns: 0,
            to_ns,
            counts: Progress {
                successes,
                errors: 1,
                failures: timeouts + 2,
                connect_failures: 1,
                timeouts,
                bytes_received: 500,
                ..Progress::default()
            },
            streams: None,
            response,
            postponed: 0,
        }
    }

    #[test]
    fn an_interval_is_shown_once_it_is_known() {
        let options = Options::parse(&words("-R 100:300 -d 10s http://h/")).expect("good");
        let mut live = Live::new(&options);
        let waits = Progress {
            waiting: 12,
            ..Progress::default()
        };
        let none = Progress::default();
        assert_eq!(live.look(5 * S, Phase::SetUp, &none), None);
        assert_eq!(live.look(7 * S, Phase::Measure, &none), None);
        live.take(&snapshot(0, 8 * S, 60, 0));
        live.take(&snapshot(1, 8 * S + S / 50, 39, 3));
        assert_eq!(live.look(8 * S, Phase::Measure, &waits), None);
        let shown = live.look(8 * S + S / 5, Phase::Measure, &none);
        let shown = shown.expect("the interval is over");
        assert_eq!(
            shown.row,
            "{\"t\":1.010,\"target_rate\":110.1,\"achieved_rate\":100.0,\"requests\":101,\
             \"errors\":9,\"error_rate\":0.083333,\"errors_by_kind\":{\"connect\":2,\"read\":2,\
             \"write\":0,\"timeout\":3,\"deadline\":0,\"non_2xx_3xx\":2},\"bytes\":1000,\
             \"bytes_per_sec\":990.1,\"max_schedule_lag_us\":100000,\"latency_us\":{\"p50\":2000,\
             \"p90\":2000,\"p99\":2000,\"p99_9\":2000,\"max\":2000}}\n"
        );
        assert_eq!(
            shown.line,
            "[   1.0s]      100 req/s 990B/s  p50=2.00ms p99=2.00ms p99.9=2.00ms max=2.00ms  \
             errs=9\n"
        );
        assert_eq!(live.look(8 * S + S / 4, Phase::Measure, &none), None);
        assert_eq!(live.look(20 * S, Phase::Drain, &none), None);
    }
}
