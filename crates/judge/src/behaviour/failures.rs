//! How a server failed in the window: it was gone or silent, requests failed, none succeeded, or
//! streams did not last.

use brunt_load::Work;
use brunt_record::{
    FailureCounts, FailureKind, FailureScope, ReplyOutcome, Run, Series, SeriesPoint, Tally,
    WorkerRecord, after_ns,
};

use crate::Summary;
use crate::behaviour::steadiness::{POINTS_MAX, whole_points};

/// A shorter outage says nothing about a server: a queue may have been full for a moment.
const OUTAGE_LEAST_NS: u64 = 50_000_000;
/// Share of the connections asked for whose lack, by attempts that failed, is a failure of the
/// server, though others were open.
const MISSING_LEAST: f64 = 0.01;
/// Parts of the window that are compared to tell whether a server answered throughout.
const PARTS: usize = 10;
/// Successful replies that a part must have on average, for the parts to be compared.
const PART_SUCCESSES_LEAST: f64 = 20.0;
/// Share of the average of the parts that every part has, where the rate is unbroken.
const UNBROKEN_LEAST: f64 = 0.5;

/// Share of the window for which a server answers nothing, from which on it has failed; any silence
/// that lasts to the end is a failure too.
const SILENT_LEAST: f64 = 0.1;

/// Successful replies over a part of the window.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Stretch {
    /// The length of the stretch, nanoseconds: whole intervals of the series.
    pub length_ns: u64,
    /// Successful replies per second.
    pub successes_per_s: f64,
}

/// What a server did that failed while it was loaded, or did not take all connections.
#[derive(Clone, Debug, PartialEq)]
pub struct ServerFailure {
    /// When no connection could be had or, where some always could, no reply came though requests
    /// were in flight, oldest first.
    pub outages: Vec<Outage>,
    /// Whether these are silences: some connection could always be had.
    pub is_silence: bool,
    /// Whether some connection could always be had, and successful replies came at an unbroken rate
    /// throughout the window: the server takes no more connections, and has not failed.
    pub answered_throughout: bool,
    /// Connections that were missing on average because attempts failed, all outages included.
    pub missing_mean: f64,
    /// Attempts to connect that failed on the server's side in the window.
    pub attempts_failed: u64,
    /// The kind of failure that most of these attempts had.
    pub kind: Option<FailureKind>,
    /// Requests issued in the window that were in flight when their connections were lost, or
    /// failed otherwise.
    pub requests_failed: u64,
    /// Up to the first outage or silence; absent where that is less than an interval of the series.
    pub before: Option<Stretch>,
    /// What followed the last outage or silence; absent where that is less than an interval of the
    /// series, and where the outage or silence did not end.
    pub after: Option<Stretch>,
}

/// Length of all `outages`, nanoseconds.
pub(crate) fn length_ns(outages: &[Outage], window_ns: u64) -> u64 {
    outages.iter().fold(0, |sum, outage| {
        let until_ns = outage.until_ns.unwrap_or(window_ns);
        sum.saturating_add(until_ns.saturating_sub(outage.from_ns))
    })
}

/// Whether the last of these did not end in the window.
pub(crate) fn lasts_to_end(outages: &[Outage]) -> bool {
    outages.last().is_some_and(|last| last.until_ns.is_none())
}

/// [`crate::RunFigures::server_failure`], from a summary that was already computed.
pub(crate) fn server_failure_of(run: &Run, summary: &Summary) -> Option<ServerFailure> {
    let window_ns = run.window_ns;
    let outages = outages(run);
    let silences = if outages.is_empty() {
        silences(run, summary)
    } else {
        Vec::new()
    };
    let is_silence = lasts_to_end(&silences)
        || length_ns(&silences, window_ns) as f64 > window_ns as f64 * SILENT_LEAST;
    let outages = if is_silence { silences } else { outages };
    let retrying_ns = summary.live.missing.retrying_ns;
    let missing_mean = retrying_ns as f64 / window_ns.max(1) as f64;
    let (attempts_failed, kind) = refusals(&summary.window.failures);
    let is_missing = f64::from(summary.live.asked) * MISSING_LEAST <= missing_mean;
    let is_partial = is_missing && attempts_failed > 0 && summary.live.asked > 0;
    if outages.is_empty() && !is_partial {
        return None;
    }
    let first_ns = outages.first().map(|outage| outage.from_ns);
    let last_ns = outages.last().and_then(|outage| outage.until_ns);
    Some(ServerFailure {
        answered_throughout: outages.is_empty() && is_unbroken(&whole_points(run, &summary.series)),
        missing_mean,
        attempts_failed,
        kind,
        // What connections are all there is to are attempts already.
        requests_failed: if run.work() == Work::Connects {
            0
        } else {
            summary.population.failed
        },
        before: first_ns.and_then(|end_ns| stretch(&summary.series, 0, end_ns)),
        after: last_ns.and_then(|from_ns| stretch(&summary.series, from_ns, window_ns)),
        outages,
        is_silence,
    })
}

/// Whether every part of the window has about as many successful replies as the others, of these
/// counts over time.
fn is_unbroken(counts: &[f64]) -> bool {
    let length = counts.len() / PARTS;
    if length == 0 {
        return false;
    }
    let parts = counts.chunks_exact(length);
    let parts: Vec<f64> = parts.map(|part| part.iter().sum()).collect();
    let mean = parts.iter().sum::<f64>() / parts.len() as f64;
    mean >= PART_SUCCESSES_LEAST && parts.iter().all(|&part| part >= UNBROKEN_LEAST * mean)
}

/// Attempts that failed on the server's side, and the kind that most of them had.
fn refusals(failures: &FailureCounts) -> (u64, Option<FailureKind>) {
    let of_server = || failures.iter().filter(|(kind, _)| kind.is_refusal());
    let count = of_server().fold(0_u64, |sum, (_, count)| sum.saturating_add(count));
    let most = of_server().max_by_key(|&(_, count)| count);
    (count, most.map(|(kind, _)| kind))
}

/// When no worker had a connection, within the window.
fn outages(run: &Run) -> Vec<Outage> {
    let end_ns = i64::try_from(run.window_ns).unwrap_or(i64::MAX);
    // A worker that may open none waits for none.
    let workers = run.workers().filter(|worker| worker.live.most > 0);
    common(workers.map(|worker| {
        let downtimes = worker.downtimes.iter();
        downtimes.map(|time| (time.from_ns, time.until_ns.unwrap_or(i64::MAX)))
    }))
    .into_iter()
    .map(|(from_ns, until_ns)| (from_ns.max(0), until_ns))
    .filter(|&(from_ns, until_ns)| after_ns(from_ns, until_ns.min(end_ns)) >= OUTAGE_LEAST_NS)
    .map(|(from_ns, until_ns)| Outage {
        from_ns: after_ns(0, from_ns),
        until_ns: (until_ns < end_ns).then(|| after_ns(0, until_ns)),
    })
    .collect()
}

/// What succeeded from `from_ns` to `to_ns` after the start of the window, by the intervals of the
/// series that lie wholly within; absent where there are none.
fn stretch(series: &Series, from_ns: u64, to_ns: u64) -> Option<Stretch> {
    let interval_ns = series.interval_ns.max(1);
    let first = usize::try_from(from_ns.div_ceil(interval_ns)).ok()?;
    let end = usize::try_from(to_ns / interval_ns).ok()?;
    let length_ns = end.checked_sub(first)? as u64 * interval_ns;
    // The series ends with its last event: what is beyond it is nothing.
    let points = series.points.iter().take(end).skip(first);
    let successes = points.fold(0_u64, |sum, point| sum.saturating_add(point.successes));
    (length_ns > 0).then(|| Stretch {
        length_ns,
        successes_per_s: successes as f64 * 1e9 / length_ns as f64,
    })
}

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
    if !run.work().has_units() || !run.plan.awaits_replies() {
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
    let mut slowest: Vec<u64> = intervals.filter_map(|interval| interval.max_ns()).collect();
    slowest.sort_unstable();
    slowest.get(slowest.len() / 2).copied().unwrap_or(0)
}

/// How many arrivals the plan has in this time, or how many think times fit into it; without
/// bounds in a closed loop that does not think.
fn planned(run: &Run, from_ns: u64, until_ns: u64) -> f64 {
    if let Some(schedule) = run.plan.load.model.schedule() {
        return schedule.expected(from_ns, until_ns);
    }
    match run.plan.traffic.think_time_ns {
        0 => f64::INFINITY,
        mean_ns => (until_ns - from_ns) as f64 / mean_ns as f64,
    }
}

/// First instants, and first instants after them.
type Interval = (i64, i64);

/// What lies in an interval of each of these, in order; nothing where there are none.
pub(crate) fn common<I>(all: impl Iterator<Item = I>) -> Vec<Interval>
where
    I: Iterator<Item = Interval>,
{
    // Where an interval begins, and where it ends, which comes first at one instant.
    let (mut edges, mut needed) = (Vec::new(), 0);
    for intervals in all {
        needed += 1;
        let filled = intervals.filter(|(from, until)| from < until);
        edges.extend(filled.flat_map(|(from, until)| [(from, 1), (until, -1)]));
    }
    edges.sort_unstable();
    let (mut open, mut from) = (0, 0);
    let common = edges.into_iter().filter_map(|(at, change)| {
        let were_all = open == needed;
        open += change;
        let found = were_all.then_some((from, at));
        from = at;
        found
    });
    common.filter(|(from, until)| from < until).collect()
}

/// Time from one instant to another in which none of the workers ran, though each was to,
/// nanoseconds.
pub(crate) fn paused_ns<'a>(
    workers: impl Iterator<Item = &'a WorkerRecord>,
    from_ns: i64,
    until_ns: i64,
) -> f64 {
    let pauses = common(workers.map(|worker| {
        let pauses = worker.pauses.iter();
        pauses.map(|pause| (pause.from_ns.max(from_ns), pause.until_ns.min(until_ns)))
    }));
    let lengths = pauses.iter().map(|(from_ns, until_ns)| until_ns - from_ns);
    lengths.sum::<i64>() as f64
}

/// Failures from within this share of the window's start, or to within it of its end, are taken for
/// failures from the start, or to the end.
const EDGE: f64 = 0.05;

/// The part of the window in which requests failed, nanoseconds from its start.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FailureTimes {
    /// When requests began to fail; 0 where they failed from the start.
    pub from_ns: u64,
    /// When requests ceased to fail; absent where they failed to the end.
    pub until_ns: Option<u64>,
    /// Share of what ended then that failed or had an error status, 0 to 1.
    pub share: f64,
}

impl FailureTimes {
    /// When requests failed or had error statuses; absent where none did. As exact as the intervals
    /// of `series` are long, which is that of the run.
    pub fn of(run: &Run, series: &Series) -> Option<Self> {
        let whole = run.window_ns.div_ceil(series.interval_ns.max(1));
        let whole = usize::try_from(whole).unwrap_or(usize::MAX);
        let points = &series.points[..series.points.len().min(whole)];
        let failed: Vec<u64> = points.iter().map(SeriesPoint::failed).collect();
        let first = failed.iter().position(|&count| count > 0)?;
        let last = failed.iter().rposition(|&count| count > 0)?;
        let failures: u64 = failed[first..=last].iter().sum();
        let successes: u64 = points[first..=last]
            .iter()
            .map(|point| point.successes)
            .sum();
        let edge_ns = run.window_ns as f64 * EDGE;
        let from_ns = first as u64 * series.interval_ns;
        let until_ns = (last as u64 + 1) * series.interval_ns;
        let left_ns = run.window_ns.saturating_sub(until_ns);
        Some(Self {
            from_ns: if from_ns as f64 <= edge_ns {
                0
            } else {
                from_ns
            },
            until_ns: (left_ns as f64 > edge_ns).then_some(until_ns),
            share: failures as f64 / (failures + successes) as f64,
        })
    }

    /// Whether requests failed from the start to the end.
    pub fn is_throughout(&self) -> bool {
        self.from_ns == 0 && self.until_ns.is_none()
    }
}

/// Why no request of a run succeeded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoSuccess {
    /// What most of them ended in.
    pub cause: NoSuccessCause,
    /// How many ended so.
    pub count: u64,
    /// How many requests ended since the window began, or were in flight when the run ended; where
    /// there are none, how many attempts to connect failed since then.
    pub total: u64,
}

/// What most requests of a run without a success ended in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoSuccessCause {
    /// Replies with this status.
    Status(u16),
    /// Replies that report an error in a protocol without statuses.
    Error,
    /// Failures of this kind: of requests or, where none could be sent, of attempts to connect.
    Failure(FailureKind),
    /// The requests were still in flight at the end: neither a reply nor a failure came.
    Unanswered,
    /// No request was due.
    NothingSent,
    /// Streams were open, and no byte moved on them.
    NothingMoved,
}

/// [`crate::RunFigures::no_success`], from a summary that was already computed.
pub(crate) fn no_success_of(run: &Run, summary: &Summary) -> Option<NoSuccess> {
    let window = &summary.window;
    let has_success = match run.work() {
        Work::Streams => {
            let mut streams = run.stream_records();
            window.bytes_received > 0 || streams.any(|streams| streams.window.bytes_acked > 0)
        }
        Work::Hold => summary.live.max > 0,
        Work::Requests | Work::Connects => {
            window.replies.successes() > 0 || run.latencies.response.count() > 0
        }
    };
    if has_success || run.window_ns == 0 || run.workers().next().is_none() {
        return None;
    }
    let mut ended = Tally::default();
    for worker in run.workers() {
        ended.merge(&worker.tallies.measure);
        ended.merge(&worker.tallies.after);
    }
    let failures = |scope| {
        let of_scope = ended.failures.iter().filter(move |(kind, _)| {
            // Where connections are the requests, so are attempts to make them.
            kind.scope() == scope || run.work() == Work::Connects
        });
        of_scope.map(|(kind, count)| (NoSuccessCause::Failure(kind), count))
    };
    let statuses = ended.replies.iter();
    let statuses = statuses.map(|(status, count)| (NoSuccessCause::Status(status), count));
    let errors = ended.replies.count(ReplyOutcome::ERROR);
    let replies: Vec<_> = statuses.chain([(NoSuccessCause::Error, errors)]).collect();
    let failed: Vec<_> = failures(FailureScope::Request).collect();
    let unanswered = vec![(NoSuccessCause::Unanswered, summary.in_flight_at_end)];
    let ended = [replies, failed, unanswered].concat();
    let attempts = failures(FailureScope::Connect).collect();
    let cause = if run.work() == Work::Streams && summary.live.max > 0 {
        NoSuccessCause::NothingMoved
    } else {
        NoSuccessCause::NothingSent
    };
    let nothing = NoSuccess {
        cause,
        count: 0,
        total: 0,
    };
    let found = most_of(ended).or_else(|| most_of(attempts));
    Some(found.unwrap_or(nothing))
}

/// The first of the causes that occurred most often; absent without any.
fn most_of(causes: Vec<(NoSuccessCause, u64)>) -> Option<NoSuccess> {
    let counts = causes.iter().map(|(_, count)| *count);
    let total = counts.fold(0, u64::saturating_add);
    let (cause, count) = causes.into_iter().rev().max_by_key(|(_, count)| *count)?;
    (count > 0).then_some(NoSuccess {
        cause,
        count,
        total,
    })
}

/// Streams that did not last, in the window.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct EndedStreams {
    /// Streams that the server ended or reset.
    pub ended: u64,
    /// Streams that were asked for.
    pub asked: u64,
    /// What one of them moved, both ways together, on average.
    pub bytes_mean: f64,
    /// How long it was open, on average, nanoseconds.
    pub life_ns_mean: f64,
}

impl EndedStreams {
    /// The streams that the server ended or reset in the window; absent where it ended none, and in
    /// a run of requests.
    pub fn of(run: &Run) -> Option<Self> {
        if run.work() != Work::Streams {
            return None;
        }
        let (mut ended, mut asked) = (0_u64, 0_u64);
        let (mut moved, mut connection_ns) = (0.0, 0.0);
        for worker in run.workers() {
            let failures = &worker.tallies.measure.failures;
            for kind in [FailureKind::StreamEnded, FailureKind::StreamReset] {
                ended = ended.saturating_add(failures.get(kind));
            }
            asked = asked.saturating_add(worker.live.asked.into());
            connection_ns += worker.live.connection_ns as f64;
            if let Some(streams) = &worker.streams {
                let window = &streams.window;
                moved += window.bytes_acked as f64 + window.bytes_received as f64;
            }
        }
        (ended > 0).then(|| Self {
            ended,
            asked,
            bytes_mean: moved / ended as f64,
            life_ns_mean: connection_ns / ended as f64,
        })
    }

    /// Whether most streams did last: then what was moved is theirs.
    pub fn do_last(&self) -> bool {
        self.ended.saturating_mul(2) < self.asked.max(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use brunt_load::{ArrivalProcess, Schedule};
    use brunt_record::{IntervalRecorder, Pause};

    use crate::RunFigures;
    use crate::invariants::sample::{MS, WINDOW, emptied, open_run, run, schedule_of};

    #[test]
    fn a_rate_is_unbroken_where_every_part_has_its_replies() {
        let with = |at: usize, count: f64| {
            let mut counts = vec![100.0; 20];
            counts[at] = count;
            counts
        };
        for (counts, expected) in [
            (vec![100.0; 20], true),
            (vec![100.0; 9], false),
            (vec![1.0; 20], false),
            (vec![], false),
            (with(3, 20.0), true),
            (with(3, 500.0), true),
            ([vec![100.0; 18], vec![0.0; 2]].concat(), false),
            ([vec![100.0; 10], vec![30.0; 10]].concat(), false),
        ] {
            assert_eq!(is_unbroken(&counts), expected, "{counts:?}");
        }
    }

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
        let in_ms = |outage: &Outage| (outage.from_ns / MS, outage.until_ns.map(|ns| ns / MS));
        silences.iter().map(in_ms).collect()
    }

    #[test]
    fn a_silence_is_found_where_it_was() {
        assert_eq!(WINDOW.length_ns(), 2_000 * MS);
        for run in [run(), open_run()] {
            assert_eq!(found(&run), []);
            for (from_ms, until_ms, expected) in [
                (500, 1_600, vec![(500, Some(1_600))]),
                (500, 2_000, vec![(500, None)]),
                (0, 1_500, vec![(0, Some(1_500))]),
                // Too short.
                (500, 700, vec![]),
            ] {
                let found = found(&silent(run.clone(), from_ms, until_ms));
                assert_eq!(found, expected);
            }
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
        thinks.plan.traffic.think_time_ns = 100 * MS;
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
    fn what_is_common_to_all_is_found() {
        type Case<'a> = (&'a [&'a [Interval]], &'a [Interval]);
        let cases: &[Case<'_>] = &[
            (&[], &[]),
            (&[&[(5, 9), (1, 3), (4, 4)]], &[(1, 3), (5, 9)]),
            (&[&[(1, 9)], &[]], &[]),
            (&[&[(1, 3)], &[(3, 9)]], &[]),
            (&[&[(1, 9)], &[(2, 3), (5, 6)]], &[(2, 3), (5, 6)]),
            (
                &[&[(1, 4), (6, 9)], &[(3, 7)], &[(0, i64::MAX)]],
                &[(3, 4), (6, 7)],
            ),
        ];
        for (all, expected) in cases {
            let found = common(all.iter().map(|intervals| intervals.iter().copied()));
            assert_eq!(&found, expected, "{all:?}");
        }
    }

    /// The failure times of a window of ten intervals of 100 ms, each with 90 successes.
    fn times(failures: [u64; 10]) -> Option<(u64, Option<u64>, f64)> {
        let mut run = run();
        run.window_ns = 1_000 * MS;
        let points = failures.map(|failures| SeriesPoint {
            successes: 90,
            errors: failures / 2,
            failures: failures - failures / 2,
            ..SeriesPoint::default()
        });
        let series = Series {
            interval_ns: 100 * MS,
            points: points.into(),
        };
        let found = FailureTimes::of(&run, &series)?;
        let until_ms = found.until_ns.map(|ns| ns / MS);
        Some((found.from_ns / MS, until_ms, found.share))
    }

    #[test]
    fn the_time_and_the_share_are_those_of_the_failures() {
        for (failures, expected) in [
            ([0; 10], None),
            ([10; 10], Some((0, None, 0.1))),
            ([0, 0, 0, 0, 10, 10, 10, 10, 10, 10], Some((400, None, 0.1))),
            (
                [0, 0, 90, 90, 0, 0, 0, 0, 0, 0],
                Some((200, Some(400), 0.5)),
            ),
            ([30, 0, 0, 0, 0, 0, 0, 0, 0, 0], Some((0, Some(100), 0.25))),
            ([0, 0, 0, 10, 0, 0, 0, 0, 0, 0], Some((300, Some(400), 0.1))),
        ] {
            assert_eq!(times(failures), expected, "{failures:?}");
        }
    }

    /// Replies by status, failures by kind.
    type Ended<'a> = (&'a [(u16, u64)], &'a [(FailureKind, u64)]);

    /// Why a run had no success whose second worker had these ends, of the window or after it.
    fn no_success(
        (statuses, failures): Ended<'_>,
        is_after: bool,
        change: impl FnOnce(&mut Run),
    ) -> Option<NoSuccess> {
        let mut run = emptied(run());
        let tallies = &mut run.agents[0].workers[1].tallies;
        let replies = if is_after {
            &mut tallies.after.replies
        } else {
            &mut tallies.measure.replies
        };
        for &(status, count) in statuses {
            (0..count).for_each(|_| replies.add(status));
        }
        for &(kind, count) in failures {
            (0..count).for_each(|_| tallies.measure.failures.add(kind));
        }
        change(&mut run);
        run.no_success()
    }

    #[test]
    fn the_most_frequent_cause_is_told() {
        use FailureKind::{ConnectRefused, ConnectTimedOut, Reset, TimedOut, UnexpectedBytes};
        use NoSuccessCause::{Failure, NothingSent, Status, Unanswered};
        let connects = [
            (UnexpectedBytes, 7),
            (ConnectTimedOut, 2),
            (ConnectRefused, 3),
        ];
        let cases: &[(Ended<'_>, u64, (NoSuccessCause, u64, u64))] = &[
            ((&[], &[]), 0, (NothingSent, 0, 0)),
            ((&[(404, 10)], &[]), 0, (Status(404), 10, 10)),
            (
                (&[(404, 10), (500, 11)], &[(Reset, 9)]),
                0,
                (Status(500), 11, 30),
            ),
            (
                (&[(404, 1)], &[(Reset, 9), (ConnectRefused, 99)]),
                0,
                (Failure(Reset), 9, 10),
            ),
            ((&[], &connects), 0, (Failure(ConnectRefused), 3, 5)),
            ((&[], &[(ConnectRefused, 99)]), 4, (Unanswered, 4, 4)),
            ((&[], &[(TimedOut, 3)]), 4, (Unanswered, 4, 7)),
        ];
        for &(ended, in_flight, (cause, count, total)) in cases {
            let expected = NoSuccess {
                cause,
                count,
                total,
            };
            let found = no_success(ended, true, |run| {
                run.agents[0].workers[1].in_flight_at_end = in_flight;
            });
            assert_eq!(found, Some(expected), "{ended:?}");
        }
    }

    #[test]
    fn errors_without_a_status_are_a_cause() {
        let found = no_success((&[(500, 1)], &[]), true, |run| {
            let replies = &mut run.agents[0].workers[0].tallies.after.replies;
            (0..3).for_each(|_| replies.add(ReplyOutcome::ERROR));
        });
        let found = found.expect("no success");
        let counts = (found.cause, found.count, found.total);
        assert_eq!(counts, (NoSuccessCause::Error, 3, 4));
    }

    #[test]
    fn one_success_is_enough() {
        assert_eq!(run().no_success(), None);
        assert_eq!(open_run().no_success(), None);
        // In the window, of a request from the warm-up.
        assert_eq!(no_success((&[(302, 1)], &[]), false, |_| ()), None);
        // In drain, of a request of the window.
        let late = no_success((&[], &[]), false, |run| run.latencies.response.record(5));
        assert_eq!(late, None);
        // Without a window nothing is said.
        let none = no_success((&[], &[]), false, |run| run.window_ns = 0);
        assert_eq!(none, None);
    }
}
