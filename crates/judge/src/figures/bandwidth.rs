//! What the streams of a run make together: bytes per second up and down, and what held them up.

use brunt_record::{Run, ServerCount, ServerWindow, StreamAccount, StreamReading, StreamRecord};

use crate::{Figure, Summary};

/// The figures of one-way streams.
#[derive(Clone, Debug, PartialEq)]
pub struct Bandwidth {
    /// Streams that were open at the end of the window.
    pub streams: u64,
    /// Bytes per second that the peers' kernels acknowledged. Those of each worker are counted over
    /// the time between its two readings.
    pub up_bytes_per_s: Figure,
    /// Bytes per second that came in, by the kernel's count. Those of each worker are counted over
    /// the time between its two readings.
    pub down_bytes_per_s: Figure,
    /// What the kernel counted over the window.
    pub window: StreamAccount,
    /// What the kernel counted over the lives of the streams.
    pub lifetime: StreamAccount,
    /// Over the whole run, bytes that were acknowledged beside those that the server counted as
    /// read; absent where its count was not read.
    pub up_counts: Option<CountBeside>,
    /// Over the whole run, bytes that brunt received beside those that the server counted as sent;
    /// absent where its count was not read.
    pub down_counts: Option<CountBeside>,
    /// Bytes per second that the reference server read in the window, by its own count and clock.
    pub server_read_bytes_per_s: Figure,
    /// Bytes per second that the reference server gave to its kernel in the window, by its own
    /// count and clock.
    pub server_sent_bytes_per_s: Figure,
    /// Smallest round trip, nanoseconds.
    pub min_rtt_ns: Option<u64>,
    /// Mean of the smoothed round trips at the end of the window, nanoseconds.
    pub smoothed_rtt_ns: Option<u64>,
    /// Bytes per second that the paths delivered lately, all streams together.
    pub delivery_bytes_per_s: u64,
    /// Bytes of the stream with the fewest bytes and of the one with the most. Absent for one
    /// stream, and where there were too many streams to keep theirs.
    pub extremes: Option<(u64, u64)>,
    /// CPU of brunt's process per 10^9 bytes, both ways together, nanoseconds.
    pub cpu_ns_per_gb: Figure,
    /// CPU of the server per 10^9 bytes, both ways together, nanoseconds; absent where it was not
    /// watched.
    pub server_cpu_ns_per_gb: Figure,
}

/// One quantity, counted on both sides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CountBeside {
    /// What brunt, or its kernel, counted.
    pub own: u64,
    /// What the server counted.
    pub server: u64,
}

impl CountBeside {
    /// How far the server's count is above ours, as a share of ours; below 0 where it is lower.
    /// Absent where we counted nothing.
    pub fn difference(&self) -> Option<f64> {
        let off = (i128::from(self.server) - i128::from(self.own)) as f64;
        (self.own > 0).then(|| off / self.own as f64)
    }
}

/// What streams did in one interval of the window.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize)]
pub struct BandwidthInterval {
    /// Start of the interval, from the start of the window, nanoseconds.
    pub from_ns: u64,
    /// End of the interval, from the start of the window, nanoseconds.
    pub to_ns: u64,
    /// Bytes per second acknowledged.
    pub up_bytes_per_s: f64,
    /// Bytes per second that came in, by the kernel's count.
    pub down_bytes_per_s: f64,
    /// Segments sent again.
    pub segments_retransmitted: u64,
}

/// Readings whose intervals are shorter than this part of the usual one are none of their own: in
/// a few microseconds nothing is acknowledged, or all that was held back.
const SLIVER_PART: i64 = 4;

/// Bytes of the streams of a run, acknowledged and received, in each of the first `intervals` of
/// this length.
pub(crate) fn stream_bytes_over(run: &Run, interval_ns: u64, intervals: usize) -> Vec<f64> {
    let moved_by = |at_ns: u64| -> f64 {
        let at_ns = at_ns.cast_signed();
        let of = |reading: &StreamReading| reading.bytes_acked + reading.bytes_received;
        run.stream_records()
            .map(|record| count_at(record, at_ns, of))
            .sum()
    };
    let edges = (0..=intervals as u64).map(|edge| edge.saturating_mul(interval_ns));
    let moved: Vec<f64> = edges.map(moved_by).collect();
    moved.windows(2).map(|pair| pair[1] - pair[0]).collect()
}

/// What the streams of a run did interval by interval.
pub(crate) fn bandwidth_intervals(run: &Run) -> Vec<BandwidthInterval> {
    let records = || run.stream_records();
    let readings = records().map(|record| &record.readings);
    let fewest = readings.min_by_key(|readings| readings.len());
    let at_ns = fewest.into_iter().flatten().map(|reading| reading.at_ns);
    let edges = edges_of(&at_ns.collect::<Vec<_>>());
    let interval = |pair: &[i64]| {
        let (from_ns, to_ns) = (pair[0], pair[1]);
        let length_s = (to_ns - from_ns) as f64 / 1e9;
        let change = |of: fn(&StreamReading) -> u64| -> f64 {
            let changes =
                records().map(|record| count_at(record, to_ns, of) - count_at(record, from_ns, of));
            changes.sum()
        };
        BandwidthInterval {
            from_ns: from_ns.max(0) as u64,
            to_ns: to_ns.max(0) as u64,
            up_bytes_per_s: change(|reading| reading.bytes_acked) / length_s,
            down_bytes_per_s: change(|reading| reading.bytes_received) / length_s,
            segments_retransmitted: change(|reading| reading.segments_retransmitted).round() as u64,
        }
    };
    edges.windows(2).map(interval).collect()
}

/// The instants of readings, those left out that would begin or end a sliver; the first and the
/// last one stay.
fn edges_of(at_ns: &[i64]) -> Vec<i64> {
    let mut lengths: Vec<i64> = at_ns.windows(2).map(|pair| pair[1] - pair[0]).collect();
    lengths.sort_unstable();
    let usual_ns = lengths.get(lengths.len() / 2).copied().unwrap_or(0);
    let least_ns = (usual_ns / SLIVER_PART).max(1);
    let mut edges: Vec<i64> = Vec::with_capacity(at_ns.len());
    for &at_ns in at_ns.iter().rev() {
        if edges.last().is_none_or(|edge| edge - at_ns >= least_ns) {
            edges.push(at_ns);
        }
    }
    if let (Some(edge), Some(first_ns)) = (edges.last_mut(), at_ns.first()) {
        *edge = *first_ns;
    }
    edges.reverse();
    edges
}

/// A count at `at_ns`, between two readings as if it had grown evenly.
fn count_at(record: &StreamRecord, at_ns: i64, of: fn(&StreamReading) -> u64) -> f64 {
    let readings = &record.readings;
    let after = readings.partition_point(|reading| reading.at_ns < at_ns);
    let Some(later) = readings.get(after) else {
        return readings.last().map_or(0.0, |last| of(last) as f64);
    };
    let Some(earlier) = after.checked_sub(1).and_then(|before| readings.get(before)) else {
        return of(later) as f64;
    };
    let part = (at_ns - earlier.at_ns) as f64 / (later.at_ns - earlier.at_ns).max(1) as f64;
    let (from, to) = (of(earlier) as f64, of(later) as f64);
    from + part * (to - from)
}

impl Bandwidth {
    /// The figures of a run of streams and its summary.
    pub fn of(run: &Run, summary: &Summary) -> Self {
        const NOT_COUNTED: &str =
            "no `brunt serve` was asked for its count at both edges of the window (--verify-url)";
        const NOT_READ: &str = "the kernel's accounts were not read at both edges of the window";
        let (mut window, mut lifetime) = (StreamAccount::default(), StreamAccount::default());
        let (mut streams, mut rtt_ns_sum, mut delivery_bytes_per_s) = (0_u64, 0_u64, 0_u64);
        let (mut up_bytes_per_s, mut down_bytes_per_s) = (0.0, 0.0);
        let mut is_read = true;
        let mut of_each = Some(Vec::new());
        for record in run.stream_records() {
            window.merge(&record.window);
            lifetime.merge(&record.lifetime);
            streams = streams.saturating_add(record.streams.into());
            rtt_ns_sum = rtt_ns_sum.saturating_add(record.smoothed_rtt_ns_sum);
            delivery_bytes_per_s = delivery_bytes_per_s.saturating_add(record.delivery_bytes_per_s);
            let interval_ns = record.interval_ns();
            is_read &= interval_ns > 0;
            let per_s = |bytes: u64| bytes as f64 * 1e9 / interval_ns.max(1) as f64;
            up_bytes_per_s += per_s(record.window.bytes_acked);
            down_bytes_per_s += per_s(record.window.bytes_received);
            match &mut of_each {
                Some(all) if record.bytes_of_streams.len() == record.streams as usize => {
                    all.extend(record.bytes_of_streams.iter().copied());
                }
                _ => of_each = None,
            }
        }
        is_read &= run.workers().all(|worker| worker.streams.is_some());
        let of_each = of_each.filter(|each| each.len() > 1).unwrap_or_default();
        let extremes = of_each.iter().min().zip(of_each.iter().max());
        let rate = |bytes_per_s| match (run.not_one_load(), is_read) {
            (Some(reason), _) => Figure::Absent(reason),
            (None, false) => Figure::Absent(NOT_READ.to_owned()),
            (None, true) => Figure::Known(bytes_per_s),
        };
        let beside = |own, count: Result<Option<ServerCount>, String>| {
            let server = count.ok().flatten()?.counted()?;
            Some(CountBeside { own, server })
        };
        let round_trips = run.stream_records();
        let min_rtt_ns = round_trips.filter_map(|record| record.min_rtt_ns).min();
        let one_way = run.plan.one_way();
        let up = one_way.filter(|plan| plan.sends);
        let up_counts = up.and_then(|_| beside(lifetime.bytes_acked, run.server_count()));
        let down = one_way.filter(|plan| plan.receives);
        let received = summary.lifetime.bytes_received;
        let down_counts = down.and_then(|_| beside(received, run.server_sent()));
        let by_server = |bytes: fn(&ServerWindow) -> u64| match run.server_window() {
            Some(counted) => Figure::ratio(
                bytes(counted) as f64 * 1e9,
                counted.interval_ns as f64,
                "the server's count was read once",
            ),
            None => Figure::Absent(NOT_COUNTED.to_owned()),
        };
        let server = run.evidence_of_server().server.as_ref();
        let server_cpu = server.and_then(|server| server.cpu_use());
        let bytes = window.bytes_acked as f64 + window.bytes_received as f64;
        let per_gb = |cpu_ns: f64| Figure::ratio(cpu_ns * 1e9, bytes, "no byte was moved");
        Self {
            streams,
            up_bytes_per_s: rate(up_bytes_per_s),
            down_bytes_per_s: rate(down_bytes_per_s),
            window,
            lifetime,
            up_counts,
            down_counts,
            server_read_bytes_per_s: by_server(|window| window.bytes_received),
            server_sent_bytes_per_s: by_server(|window| window.bytes_sent),
            min_rtt_ns,
            smoothed_rtt_ns: rtt_ns_sum.checked_div(streams).filter(|&ns| ns > 0),
            delivery_bytes_per_s,
            extremes: extremes.map(|(least, most)| (*least, *most)),
            cpu_ns_per_gb: match run.client_cpu() {
                Ok(cpu) => per_gb(cpu.cpus() * run.window_ns as f64),
                Err(reason) => Figure::Absent(reason.to_owned()),
            },
            server_cpu_ns_per_gb: match server_cpu {
                Some(cpu) => per_gb(cpu.cpus() * run.window_ns as f64),
                None => Figure::Absent("the server was not watched".to_owned()),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slivers_are_joined_with_what_is_beside_them() {
        for (readings, edges) in [
            (vec![], vec![]),
            (vec![5], vec![5]),
            (vec![0, 100, 200, 300], vec![0, 100, 200, 300]),
            // A late reading, and the one at the end of the window right behind it.
            (vec![0, 100, 200, 301, 302], vec![0, 100, 200, 302]),
            (vec![0, 100, 200, 299, 300, 302], vec![0, 100, 200, 302]),
            (vec![0, 100, 195, 200, 300], vec![0, 100, 200, 300]),
            (vec![0, 100, 100, 200], vec![0, 100, 200]),
            (vec![0, 170, 200, 300], vec![0, 170, 200, 300]),
            (vec![7, 7, 7], vec![7]),
        ] {
            assert_eq!(edges_of(&readings), edges, "{readings:?}");
        }
    }
}
