//! Lines of streams, one per interval, while a run lasts: what was moved, and what held it up.

use std::collections::BTreeMap;

use brunt_engine::{Snapshot, StreamsSoFar};
use brunt_record::StreamAccount;
use brunt_report::StreamInterval;

/// What is printed of streams while they run.
#[derive(Debug)]
pub(crate) struct IntervalLines {
    every_ns: u64,
    /// When the first worker began to count; absent before.
    start_ns: Option<u64>,
    /// The latest report of each worker, by worker, and its report at the end of the interval
    /// before.
    latest: BTreeMap<u32, StreamsSoFar>,
    shown: BTreeMap<u32, StreamsSoFar>,
    /// The end of the interval before, nanoseconds from the start.
    shown_ns: u64,
}

impl IntervalLines {
    pub(crate) fn new(every_ns: u64) -> Self {
        Self {
            every_ns,
            start_ns: None,
            latest: BTreeMap::new(),
            shown: BTreeMap::new(),
            shown_ns: 0,
        }
    }

    /// Takes what a worker says. Gives the interval that is complete with it, if one is: that is so
    /// when each worker has counted beyond its end.
    pub(crate) fn take(&mut self, snapshot: &Snapshot) -> Option<StreamInterval> {
        let so_far = snapshot.streams?;
        let start_ns = *self.start_ns.get_or_insert(so_far.at_ns);
        self.latest.insert(snapshot.worker, so_far);
        self.shown.entry(snapshot.worker).or_insert(so_far);
        let slowest_ns = self.latest.values().map(|it| it.at_ns).min()?;
        let reached_ns = slowest_ns.saturating_sub(start_ns);
        // What is late does not delay the intervals behind it.
        let due_ns = (self.shown_ns / self.every_ns + 1).saturating_mul(self.every_ns);
        if reached_ns < due_ns {
            return None;
        }
        let mut interval = StreamInterval {
            from_ns: self.shown_ns,
            to_ns: reached_ns,
            ..StreamInterval::default()
        };
        let mut rtts_ns = Vec::new();
        for (worker, now) in &self.latest {
            let before = &self.shown[worker];
            let since = now.account.since(&before.account);
            let per_s = |bytes: u64| {
                let ns = now.at_ns.saturating_sub(before.at_ns).max(1);
                bytes as f64 * 1e9 / ns as f64
            };
            interval.up_bytes_per_s += per_s(since.bytes_acked);
            interval.down_bytes_per_s += per_s(since.bytes_received);
            let StreamAccount {
                segments_sent,
                segments_retransmitted,
                busy_ns,
                receive_window_limited_ns,
                send_buffer_limited_ns,
                ..
            } = since;
            interval.segments_sent += segments_sent;
            interval.segments_retransmitted += segments_retransmitted;
            interval.busy_ns += busy_ns;
            interval.receive_window_limited_ns += receive_window_limited_ns;
            interval.send_buffer_limited_ns += send_buffer_limited_ns;
            rtts_ns.extend(now.smoothed_rtt_ns);
        }
        interval.smoothed_rtt_ns = rtts_ns
            .iter()
            .sum::<u64>()
            .checked_div(rtts_ns.len() as u64);
        self.shown.clone_from(&self.latest);
        self.shown_ns = reached_ns;
        Some(interval)
    }
}

#[cfg(test)]
mod tests {
    use brunt_engine::Progress;
    use brunt_record::SparseHistogram;

    use super::*;

    const S: u64 = 1_000_000_000;

    fn snapshot(worker: u32, at_ns: u64, acked: u64, again: u64) -> Snapshot {
        Snapshot {
            worker,
            from_ns: 0,
            to_ns: at_ns + 5,
            counts: Progress::default(),
            response: SparseHistogram::default(),
            postponed: 0,
            streams: Some(StreamsSoFar {
                at_ns,
                account: StreamAccount {
                    bytes_acked: acked,
                    segments_sent: acked / 1_000,
                    segments_retransmitted: again,
                    busy_ns: at_ns,
                    ..StreamAccount::default()
                },
                smoothed_rtt_ns: Some(at_ns / 1_000),
            }),
        }
    }

    #[test]
    fn an_interval_ends_when_all_workers_have_counted_it() {
        let mut lines = IntervalLines::new(S);
        let begin = 10 * S;
        assert_eq!(lines.take(&snapshot(0, begin, 0, 0)), None);
        assert_eq!(lines.take(&snapshot(1, begin + 10, 0, 0)), None);
        assert_eq!(lines.take(&snapshot(0, begin + S / 2, 500, 0)), None);
        assert_eq!(lines.take(&snapshot(0, begin + S, 1_000_000, 0)), None);
        let first = lines.take(&snapshot(1, begin + 10 + S, 2_000_000, 3));
        let first = first.expect("both have counted a second");
        assert_eq!((first.from_ns, first.to_ns), (0, S));
        assert_eq!(first.up_bytes_per_s, 3_000_000.0);
        assert_eq!(
            (first.segments_sent, first.segments_retransmitted),
            (3_000, 3)
        );
        assert_eq!(first.smoothed_rtt_ns, Some((begin + S) / 1_000));
        // The next one counts from there.
        assert_eq!(lines.take(&snapshot(0, begin + 3 * S, 1_000_000, 0)), None);
        let second = lines.take(&snapshot(1, begin + 10 + 3 * S, 2_000_000, 3));
        let second = second.expect("both are beyond");
        assert_eq!((second.from_ns, second.to_ns), (S, 3 * S));
        assert_eq!(second.up_bytes_per_s, 0.0);
        assert_eq!(second.segments_retransmitted, 0);
    }

    #[test]
    fn runs_of_requests_have_no_lines() {
        let mut lines = IntervalLines::new(S);
        let mut none = snapshot(0, S, 0, 0);
        none.streams = None;
        assert_eq!(lines.take(&none), None);
    }
}
