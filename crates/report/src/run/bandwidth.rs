//! The rows of one-way streams: bytes per second, what held them up, and who used the CPU for them.

use brunt_judge::{Bandwidth, BandwidthInterval, CountBeside, Figure, Judged, RunFigures, Verdict};
use brunt_load::Streams;
use brunt_record::Run;

use super::verdict;
use crate::page::{Page, Tone};
use crate::units::{self, counted};

/// Rows over time; more intervals are joined.
const ROWS_MAX: usize = 20;

/// All rows of streams; none in a run of requests. On a page that is not full each has one line.
pub(super) fn rows(judged: &Judged<'_>, page: &mut Page) {
    let run = judged.run;
    let Some(one_way) = run.plan.one_way() else {
        return;
    };
    if verdict::withheld("bandwidth", judged, page) {
        return;
    }
    let bandwidth = Bandwidth::of(run, &judged.summary);
    // What an echo sends back is printed as well. The end of a stream may be counted as a byte.
    let ends = judged.summary.lifetime.connections_opened;
    let has_down = one_way.receives || bandwidth.window.bytes_received > ends;
    let is_least = judged.judgement.verdict == Verdict::ClientLimited;
    let least = if is_least { "at least " } else { "" };
    let mut items = Vec::new();
    for (way, is_shown, figure) in [
        ("up", one_way.sends, &bandwidth.up_bytes_per_s),
        ("down", has_down, &bandwidth.down_bytes_per_s),
    ] {
        items.extend(is_shown.then(|| match figure {
            Figure::Known(bytes_per_s) => {
                let bits = units::bits_per_s(*bytes_per_s * 8.0);
                format!("{way} {least}{bits} ({})", units::bytes_per_s(*bytes_per_s))
            }
            Figure::Absent(reason) => format!("{way} not known: {reason}"),
        }));
    }
    page.row("bandwidth", &items, Tone::Strong);
    streams(&bandwidth, page);
    if one_way.sends {
        path(&bandwidth, page);
        limits(&bandwidth, page);
    }
    cpu(&bandwidth, page);
    other_side(one_way, &bandwidth, page);
    if page.is_full() {
        over_time(run, one_way, page);
    }
}

/// How evenly they got on.
fn streams(bandwidth: &Bandwidth, page: &mut Page) {
    let streams = counted(bandwidth.streams, "stream", "streams");
    let mut items = vec![format!("{streams} open at the end")];
    if let Some((least, most)) = bandwidth.extremes {
        let [least, most] = [least, most].map(units::bytes);
        items.push(if least == most {
            format!("{least} each")
        } else {
            format!("{least} to {most} each")
        });
    }
    page.row("streams", &items, Tone::Plain);
}

/// What the way did to them.
fn path(bandwidth: &Bandwidth, page: &mut Page) {
    let window = &bandwidth.window;
    let again = window.segments_retransmitted;
    let sent = counted(window.segments_sent, "segment", "segments");
    let mut items = vec![format!("{} of {sent} retransmitted", units::count(again))];
    let rtt_ns = bandwidth.smoothed_rtt_ns;
    items.extend(rtt_ns.map(|ns| format!("round trip {}", units::duration(ns))));
    page.row("path", &items, Tone::Warning.when(again > 0));
}

/// A smaller share of the time in which streams were held up is not worth a row.
const HELD_UP_LEAST: f64 = 0.01;

/// What sending waited for, where it did.
fn limits(bandwidth: &Bandwidth, page: &mut Page) {
    let window = &bandwidth.window;
    let mut items = Vec::new();
    for (limited_ns, what) in [
        (
            window.receive_window_limited_ns,
            "for the server's receive window",
        ),
        (window.send_buffer_limited_ns, "for brunt's send buffers"),
    ] {
        let share = limited_ns as f64 / window.busy_ns as f64;
        if page.is_full() && window.busy_ns > 0 || share >= HELD_UP_LEAST {
            let share = units::percent(share);
            items.push(format!("waited {share} of the time {what}"));
        }
    }
    page.row("sending", &items, Tone::Plain);
}

/// The CPU that the bytes cost.
fn cpu(bandwidth: &Bandwidth, page: &mut Page) {
    let per_gb = |figure: &Figure| {
        let ns = figure.known()?;
        Some(format!("{} per GB", units::duration(ns.round() as u64)))
    };
    let mut items = Vec::new();
    items.extend(per_gb(&bandwidth.cpu_ns_per_gb).map(|cpu| format!("client {cpu}")));
    items.extend(per_gb(&bandwidth.server_cpu_ns_per_gb).map(|cpu| format!("server {cpu}")));
    page.row("CPU", &items, Tone::Plain);
}

/// What the server itself counted, where it was read: as the receiver of what brunt sends, and as
/// the sender of what brunt receives.
fn other_side(one_way: &Streams, bandwidth: &Bandwidth, page: &mut Page) {
    for (label, rate, verb, counts, own_words) in [
        (
            "receiver",
            one_way.sends.then_some(&bandwidth.server_read_bytes_per_s),
            "read",
            bandwidth.up_counts,
            "sent",
        ),
        (
            "sender",
            one_way
                .receives
                .then_some(&bandwidth.server_sent_bytes_per_s),
            "sent",
            bandwidth.down_counts,
            "received",
        ),
    ] {
        let rate = rate.and_then(Figure::known);
        let rate =
            rate.map(|rate| format!("{} by the server's count", units::bits_per_s(rate * 8.0)));
        let mut items: Vec<String> = rate.into_iter().collect();
        items.extend(counts.map(|counts| {
            let CountBeside { own, server } = counts;
            if own == server && !page.is_full() {
                return format!("{verb} all of the {} {own_words}", units::bytes(own));
            }
            let off = counts.difference().map(units::percent_change);
            let off = off.map_or_else(String::new, |off| format!(" ({off})"));
            let [server, own] = [server, own].map(units::count);
            format!("{verb} {server} bytes over the whole run of {own} {own_words}{off}")
        }));
        page.row(label, &items, Tone::Plain);
    }
}

/// The rates over time.
fn over_time(run: &Run, one_way: &Streams, page: &mut Page) {
    for interval in joined(&run.bandwidth_intervals(), ROWS_MAX) {
        let [from, to] = [interval.from_ns, interval.to_ns].map(units::duration);
        let items = interval_items(&interval, one_way);
        page.row(&format!("  {from} to {to}"), &items, Tone::Plain);
    }
}

/// What streams did in an interval.
pub(crate) fn interval_items(interval: &BandwidthInterval, one_way: &Streams) -> Vec<String> {
    let [up, down] = [interval.up_bytes_per_s, interval.down_bytes_per_s]
        .map(|bytes_per_s| units::bits_per_s(bytes_per_s * 8.0));
    let mut items = Vec::new();
    if one_way.sends {
        items.push(format!("up {up}"));
    }
    if one_way.receives || interval.down_bytes_per_s > 0.0 {
        items.push(format!("down {down}"));
    }
    if one_way.sends {
        let again = units::count(interval.segments_retransmitted);
        items.push(format!("{again} retransmitted"));
    }
    items
}

/// `intervals` joined until there are no more than `most`.
pub(crate) fn joined(intervals: &[BandwidthInterval], most: usize) -> Vec<BandwidthInterval> {
    let together = intervals.len().div_ceil(most.max(1)).max(1);
    let joined = intervals.chunks(together).filter_map(|part| {
        let (first, last) = (part.first()?, part.last()?);
        let length_ns = (last.to_ns - first.from_ns) as f64;
        let mean = |of: fn(&BandwidthInterval) -> f64| {
            let bytes = part
                .iter()
                .map(|interval| of(interval) * (interval.to_ns - interval.from_ns) as f64);
            bytes.sum::<f64>() / length_ns
        };
        Some(BandwidthInterval {
            from_ns: first.from_ns,
            to_ns: last.to_ns,
            up_bytes_per_s: mean(|interval| interval.up_bytes_per_s),
            down_bytes_per_s: mean(|interval| interval.down_bytes_per_s),
            segments_retransmitted: part.iter().map(|one| one.segments_retransmitted).sum(),
        })
    });
    joined.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn joined_intervals_have_the_mean_rate() {
        let interval = |from_ns, to_ns, rate| BandwidthInterval {
            from_ns,
            to_ns,
            up_bytes_per_s: rate,
            down_bytes_per_s: 2.0 * rate,
            segments_retransmitted: 1,
        };
        let intervals = [
            interval(0, 100, 3.0),
            interval(100, 400, 7.0),
            interval(400, 500, 1.0),
        ];
        assert_eq!(joined(&intervals, 3), intervals);
        let joined = joined(&intervals, 2);
        assert_eq!(joined.len(), 2);
        assert_eq!((joined[0].from_ns, joined[0].to_ns), (0, 400));
        assert_eq!(
            (joined[0].up_bytes_per_s, joined[0].down_bytes_per_s),
            (6.0, 12.0)
        );
        assert_eq!(joined[0].segments_retransmitted, 2);
        assert_eq!(joined[1], intervals[2]);
    }
}
