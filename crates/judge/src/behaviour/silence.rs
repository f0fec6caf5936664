//! Times in which the server answered nothing, though requests were in flight: derived from when
//! replies came.

use brunt_record::Run;

use crate::Summary;
use crate::behaviour::overlap::paused_ns;

/// A silence shorter than this is not looked at in a long run, and in a short one than a tenth of
/// the window, but for what a retransmission takes.
const SILENCE_NS_LEAST_LONG: u64 = 1_000_000_000;
const SILENCE_WINDOW_SHARE: u64 = 10;
const SILENCE_NS_LEAST: u64 = 250_000_000;
/// A silence is longer than so many times what the slowest reply of a usual interval takes: with 64
/// threads on a CPU that is 45 ms, and 800 ms of 2 s are a silence there.
const USUAL_TIMES: u64 = 10;
/// Share of a silence for which some request was in flight. The series does not say when in an
/// interval the last reply before it came.
const IN_FLIGHT_LEAST: f64 = 0.8;
/// A gap in which the plan has fewer arrivals, or think times, may be one of the plan.
const PLANNED_LEAST: f64 = 12.0;
/// Share of a silence in which brunt did not run, from which on it says nothing about the server.
const PAUSED_MOST: f64 = 0.1;
/// Most points that a series can have.
const POINTS_MAX: u64 = 1_200;

/// A time in the window in which no worker had a connection, because attempts failed, or in which
/// no reply came though requests were in flight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outage {
    /// When the outage began, from the start of the window, nanoseconds; 0 where it began before.
    pub from_ns: u64,
    /// When the outage ended, from the start of the window, nanoseconds; absent where it lasted to
    /// the end of the window.
    pub until_ns: Option<u64>,
}

/// When no reply came, oldest first.
pub(crate) fn silences(run: &Run, summary: &Summary) -> Vec<Outage> {
    if !run.has_units() || !run.plan.awaits_replies() {
        return Vec::new();
    }
    let slowest_ns = slowest_ns(run);
    let of_window_ns = run.window_ns / SILENCE_WINDOW_SHARE;
    let least_ns = of_window_ns
        .clamp(SILENCE_NS_LEAST, SILENCE_NS_LEAST_LONG)
        .max(usual_ns(run).saturating_mul(USUAL_TIMES));
    let gaps = gaps(run, summary).into_iter();
    gaps.filter(|&(from_ns, until_ns)| {
        let length_ns = until_ns - from_ns;
        length_ns >= least_ns
            && slowest_ns as f64 >= length_ns as f64 * IN_FLIGHT_LEAST
            && planned(run, from_ns, until_ns) >= PLANNED_LEAST
            && paused_ns(run.workers(), from_ns as i64, until_ns as i64)
                < length_ns as f64 * PAUSED_MOST
    })
    .map(|(from_ns, until_ns)| Outage {
        from_ns,
        until_ns: (until_ns < run.window_ns).then_some(until_ns),
    })
    .collect()
}

/// Times without any reply, of whole intervals of the series.
fn gaps(run: &Run, summary: &Summary) -> Vec<(u64, u64)> {
    let interval_ns = summary.series.interval_ns.max(1);
    // The series ends with its last event: what is beyond it is nothing.
    let whole = (run.window_ns / interval_ns).min(POINTS_MAX);
    let points = summary.series.points.iter();
    let replies = points.map(|point| point.successes.saturating_add(point.errors));
    let replies = replies.chain(std::iter::repeat(0)).take(whole as usize);
    let mut gaps: Vec<(u64, u64)> = Vec::new();
    for (index, _) in replies.enumerate().filter(|&(_, count)| count == 0) {
        let from_ns = index as u64 * interval_ns;
        let until_ns = from_ns + interval_ns;
        match gaps.last_mut() {
            Some(last) if last.1 == from_ns => last.1 = until_ns,
            _ => gaps.push((from_ns, until_ns)),
        }
    }
    // A last interval that reaches beyond the window is not whole.
    if let Some(last) = gaps.last_mut()
        && last.1 == whole * interval_ns
        && summary.series.points.len() <= whole as usize
    {
        last.1 = run.window_ns;
    }
    gaps
}

/// The longest response time, or the longest time for which a request is known to have waited.
fn slowest_ns(run: &Run) -> u64 {
    let latencies = &run.latencies;
    let answered = latencies.response.max_ns();
    let answered = answered.max(latencies.response_error.max_ns());
    answered.max(latencies.unfinished.max_ns()).unwrap_or(0)
}

/// The median, over the intervals with replies, of the longest response time of each.
fn usual_ns(run: &Run) -> u64 {
    let intervals = run.latencies.intervals.histograms();
    let mut slowest: Vec<u64> = intervals.filter_map(|it| it.max_ns()).collect();
    slowest.sort_unstable();
    slowest.get(slowest.len() / 2).copied().unwrap_or(0)
}

/// How many arrivals the plan has in this time, or how many think times fit into it; without
/// bounds in a closed loop that does not think.
fn planned(run: &Run, from_ns: u64, until_ns: u64) -> f64 {
    if let Some(schedule) = run.plan.model.schedule() {
        return schedule.expected(from_ns, until_ns);
    }
    match run.plan.think_time_ns {
        0 => f64::INFINITY,
        mean_ns => (until_ns - from_ns) as f64 / mean_ns as f64,
    }
}

#[cfg(test)]
mod tests {
    use brunt_load::{ArrivalProcess, Schedule, Stage};
    use brunt_record::{IntervalRecorder, Pause};

    use super::*;
    use crate::RunFigures;
    use crate::invariants::sample::{MS, WINDOW, open_run, run, schedule_of, set_stages};

    /// `run` without any reply from `from_ms` to `until_ms`, for which a request waited.
    fn silent(mut run: Run, from_ms: u64, until_ms: u64) -> Run {
        let interval_ns = run.summary().series.interval_ns;
        for worker in &mut run.agents[0].workers {
            for (index, point) in worker.series.points.iter_mut().enumerate() {
                let at_ns = index as u64 * interval_ns;
                if (from_ms * MS..until_ms * MS).contains(&at_ns) {
                    (point.successes, point.errors) = (0, 0);
                }
            }
        }
        run.latencies.response.record((until_ms - from_ms) * MS);
        run
    }

    fn found(run: &Run) -> Vec<(u64, Option<u64>)> {
        let silences = silences(run, &run.summary());
        let in_ms = |it: &Outage| (it.from_ns / MS, it.until_ns.map(|ns| ns / MS));
        silences.iter().map(in_ms).collect()
    }

    #[test]
    fn a_silence_is_found_where_it_was() {
        assert_eq!(WINDOW.length_ns(), 2_000 * MS);
        for run in [run(), open_run()] {
            assert_eq!(found(&run), []);
            assert_eq!(
                found(&silent(run.clone(), 500, 1_600)),
                [(500, Some(1_600))]
            );
            assert_eq!(found(&silent(run.clone(), 500, 2_000)), [(500, None)]);
            assert_eq!(found(&silent(run.clone(), 0, 1_500)), [(0, Some(1_500))]);
            // Too short.
            assert_eq!(found(&silent(run, 500, 700)), []);
        }
    }

    #[test]
    fn a_gap_that_slow_replies_explain_is_no_silence() {
        for (usual_ms, expected) in [(70, vec![(500, Some(1_300))]), (90, vec![])] {
            let mut slow = silent(run(), 500, 1_300);
            let mut intervals = IntervalRecorder::default();
            intervals.set_window(slow.window_ns);
            for at_ms in (0..500).chain(1_300..2_000) {
                intervals.record(at_ms * MS, usual_ms * MS);
            }
            slow.latencies.intervals = intervals.finish(slow.window_ns);
            assert_eq!(found(&slow), expected, "{usual_ms}");
        }
    }

    #[test]
    fn nothing_in_flight_is_no_silence() {
        let mut idle = silent(run(), 500, 1_600);
        idle.latencies.response = run().latencies.response;
        assert_eq!(found(&idle), []);
        let mut thinks = silent(run(), 500, 1_600);
        thinks.plan.think_time_ns = 100 * MS;
        assert_eq!(found(&thinks), []);
        let mut rare = silent(open_run(), 500, 1_600);
        let seldom = Schedule::constant_rate(ArrivalProcess::Constant, 10.0, 7);
        *schedule_of(&mut rare) = seldom.expect("a rate");
        assert_eq!(found(&rare), []);
    }

    #[test]
    fn a_client_that_did_not_run_says_nothing_about_the_server() {
        let mut paused = silent(run(), 500, 1_600);
        let pause = Pause {
            from_ns: (600 * MS) as i64,
            until_ns: (1_500 * MS) as i64,
        };
        let count = paused.agents[0].workers.len();
        for worker in &mut paused.agents[0].workers[1..] {
            worker.pauses = vec![pause];
        }
        // One of them ran.
        assert_eq!(found(&paused).len(), usize::from(count > 1));
        paused.agents[0].workers[0].pauses = vec![pause];
        assert_eq!(found(&paused), []);
    }

    #[test]
    fn stages_are_integrated() {
        let stage = |from_per_s, to_per_s| Stage {
            duration_ns: 1_000 * MS,
            from_per_s,
            to_per_s,
        };
        let stages = vec![stage(0.0, 100.0), stage(50.0, 50.0)];
        let mut run = open_run();
        set_stages(&mut run, stages);
        for (from_ms, until_ms, expected) in [
            (0, 2_000, 100.0),
            (0, 500, 12.5),
            (500, 1_000, 37.5),
            (1_500, 9_000, 25.0),
            (3_000, 4_000, 0.0),
        ] {
            let found = planned(&run, from_ms * MS, until_ms * MS);
            assert!((found - expected).abs() < 1e-9, "{from_ms}: {found}");
        }
    }
}
