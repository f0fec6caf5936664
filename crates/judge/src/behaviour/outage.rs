//! Times in which the server was gone or silent, and what it did before and after: derived from
//! when the workers had no connection because attempts failed, and from when replies came.

use brunt_record::{FailureCounts, FailureKind, Run, after_ns};

use crate::behaviour::overlap::common;
use crate::behaviour::silence::{Outage, silences};
use crate::behaviour::steadiness::whole_points;
use crate::{Summary, samples_needed};

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
    /// Median of the response times of the replies that were complete in it, nanoseconds; absent
    /// without any.
    pub response_ns_p50: Option<u64>,
    /// 99th percentile of the response times of the replies that were complete in it, nanoseconds;
    /// absent with too few.
    pub response_ns_p99: Option<u64>,
}

/// What a server did that failed while it was loaded, or did not take all connections.
#[derive(Clone, Debug, PartialEq)]
pub struct ServerFailure {
    /// When no connection could be had, oldest first; empty where some always could.
    pub outages: Vec<Outage>,
    /// When no reply came, though requests were in flight, oldest first. Where there were outages,
    /// silences are not listed beside them.
    pub silences: Vec<Outage>,
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
    /// Connections opened in the window.
    pub connections_opened: u64,
    /// Up to the first outage or silence; absent where that is less than an interval of the series.
    pub before: Option<Stretch>,
    /// What followed the last outage or silence; absent where that is less than an interval of the
    /// series, and where the outage or silence did not end.
    pub after: Option<Stretch>,
}

impl ServerFailure {
    /// When the server did nothing: its outages, or its silences where there were none.
    pub fn down(&self) -> &[Outage] {
        if self.outages.is_empty() {
            &self.silences
        } else {
            &self.outages
        }
    }

    /// Length of all outages or silences, nanoseconds.
    pub fn down_ns(&self, window_ns: u64) -> u64 {
        length_ns(self.down(), window_ns)
    }

    /// Whether the server was gone, or silent, at the end of the window.
    pub fn is_down_at_end(&self) -> bool {
        lasts_to_end(self.down())
    }
}

/// Length of all `outages`, nanoseconds.
fn length_ns(outages: &[Outage], window_ns: u64) -> u64 {
    outages.iter().fold(0, |sum, outage| {
        let until_ns = outage.until_ns.unwrap_or(window_ns);
        sum.saturating_add(until_ns.saturating_sub(outage.from_ns))
    })
}

fn lasts_to_end(outages: &[Outage]) -> bool {
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
    let is_silent = lasts_to_end(&silences)
        || length_ns(&silences, window_ns) as f64 > window_ns as f64 * SILENT_LEAST;
    let retrying_ns = summary.live.missing.retrying_ns;
    let missing_mean = retrying_ns as f64 / window_ns.max(1) as f64;
    let (attempts_failed, kind) = refusals(&summary.window.failures);
    let is_missing = f64::from(summary.live.asked) * MISSING_LEAST <= missing_mean;
    let is_partial = is_missing && attempts_failed > 0 && summary.live.asked > 0;
    if outages.is_empty() && !is_partial && !is_silent {
        return None;
    }
    let down = if is_silent { &silences } else { &outages };
    let first_ns = down.first().map(|outage| outage.from_ns);
    let last_ns = down.last().and_then(|outage| outage.until_ns);
    Some(ServerFailure {
        answered_throughout: down.is_empty() && is_unbroken(&whole_points(run, &summary.series)),
        missing_mean,
        attempts_failed,
        kind,
        // What connections are all there is to are attempts already.
        requests_failed: if run.plan.connects_only() {
            0
        } else {
            summary.population.failed
        },
        connections_opened: summary.window.connections_opened,
        before: first_ns.and_then(|end_ns| stretch(run, summary, 0, end_ns)),
        after: last_ns.and_then(|from_ns| stretch(run, summary, from_ns, window_ns)),
        outages,
        silences: if is_silent { silences } else { Vec::new() },
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
        downtimes.map(|it| (it.from_ns, it.until_ns.unwrap_or(i64::MAX)))
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
fn stretch(run: &Run, summary: &Summary, from_ns: u64, to_ns: u64) -> Option<Stretch> {
    let series = &summary.series;
    let (first, end) = within(from_ns, to_ns, series.interval_ns)?;
    let length_ns = (end - first) as u64 * series.interval_ns;
    // The series ends with its last event: what is beyond it is nothing.
    let points = series.points.iter().take(end).skip(first);
    let successes = points.fold(0_u64, |sum, point| sum.saturating_add(point.successes));
    let intervals = &run.latencies.intervals;
    let (first, end) = within(from_ns, to_ns, intervals.interval_ns()).unwrap_or_default();
    let completed = intervals.iter().take(end).skip(first);
    let responses = completed.map(|interval| interval.response);
    let response = responses.reduce(|mut sum, next| {
        // All intervals have the same range.
        let _ = sum.add(next);
        sum
    });
    let quantile_ns = |q: f64| {
        let response = response.as_ref()?;
        (response.len() >= samples_needed(q)).then(|| response.value_at_quantile(q))
    };
    Some(Stretch {
        length_ns,
        successes_per_s: successes as f64 * 1e9 / length_ns as f64,
        response_ns_p50: quantile_ns(0.5),
        response_ns_p99: quantile_ns(0.99),
    })
}

/// The intervals of this length that lie wholly between the two instants: the number of the first
/// one, and that behind the last one.
fn within(from_ns: u64, to_ns: u64, interval_ns: u64) -> Option<(usize, usize)> {
    let first = from_ns.div_ceil(interval_ns.max(1));
    let end = to_ns / interval_ns.max(1);
    let bounds = (usize::try_from(first).ok()?, usize::try_from(end).ok()?);
    (bounds.0 < bounds.1).then_some(bounds)
}

#[cfg(test)]
mod tests {
    use super::*;

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
}
