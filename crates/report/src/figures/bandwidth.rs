//! Figures of one-way streams.

use brunt_judge::{Bandwidth, BandwidthInterval, Figure, Judged, RunFigures};
use serde::Serialize;

/// What streams moved over the window, and what held them up, by the kernel's accounts of all of
/// them.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct BandwidthFigures {
    /// Bytes per second that the server's kernel acknowledged; null where brunt sends none.
    pub up_bytes_per_s: Figure,
    /// Bytes per second that came in, by the kernel's count.
    pub down_bytes_per_s: Figure,
    /// Bytes acknowledged.
    pub up_bytes: u64,
    /// Bytes that came in, by the kernel's count.
    pub down_bytes: u64,
    /// Streams that were open at the end of the window.
    pub streams: u64,
    /// Bytes that the stream with the fewest bytes moved; null for one stream.
    pub stream_bytes_min: Figure<u64>,
    /// Bytes that the stream with the most bytes moved; null for one stream.
    pub stream_bytes_max: Figure<u64>,
    /// Jain's index of the bytes of the streams: 1 where all moved as many; null for one stream.
    pub fairness: Figure,
    /// Segments with payload sent, with those sent again.
    pub segments_sent: u64,
    /// Segments sent again.
    pub segments_retransmitted: u64,
    /// Payload bytes sent again.
    pub bytes_retransmitted: u64,
    /// Smallest round trip, nanoseconds.
    pub min_rtt_ns: Figure<u64>,
    /// Mean of the smoothed round trips at the end of the window, nanoseconds.
    pub smoothed_rtt_ns: Figure<u64>,
    /// Bytes per second that the paths delivered lately, all streams together.
    pub delivery_bytes_per_s: u64,
    /// Time in which streams had something to send, summed over them, nanoseconds.
    pub busy_ns: u64,
    /// Share of `busy_ns` in which the server's receive window held streams up; null where nothing
    /// was sent.
    pub receive_window_limited_share: Figure,
    /// Share of `busy_ns` in which our send buffers held streams up; null where nothing was sent.
    pub send_buffer_limited_share: Figure,
    /// Bytes acknowledged over the whole run, warm-up and drain included.
    pub up_bytes_whole_run: u64,
    /// Bytes that the server counted as read over the whole run; null where its count was not read
    /// (`--verify-url`).
    pub server_read_bytes: Figure<u64>,
    /// Bytes taken from the sockets over the whole run.
    pub down_bytes_whole_run: u64,
    /// Bytes that the server counted as sent over the whole run; null as `server_read_bytes`.
    pub server_sent_bytes: Figure<u64>,
    /// Bytes per second that the server read in the window, by its own count and clock; null
    /// unless it is `brunt serve` and was asked at both edges of the window (`--verify-url`).
    pub server_read_bytes_per_s: Figure,
    /// Bytes per second that the server sent in the window, by its own count and clock; null unless
    /// it is `brunt serve` and was asked at both edges of the window (`--verify-url`).
    pub server_sent_bytes_per_s: Figure,
    /// CPU of brunt per 10^9 bytes, both ways together, seconds.
    pub client_cpu_s_per_gb: Figure,
    /// CPU of the server per 10^9 bytes, both ways together, seconds; null where it was not
    /// watched.
    pub server_cpu_s_per_gb: Figure,
    /// Over time: the intervals between readings of the accounts.
    pub intervals: Vec<BandwidthInterval>,
}

impl BandwidthFigures {
    /// The figures of a run of streams. Absent in a run of requests.
    pub(super) fn of(judged: &Judged<'_>) -> Option<Self> {
        const NOT_KEPT: &str = "one stream, or too many to keep each";
        const NOT_COUNTED: &str = "the server's own count was not read";
        const NO_RTT: &str = "the kernel gave none";
        let run = judged.run;
        let one_way = run.plan.one_way()?;
        let found = Bandwidth::of(run, &judged.summary);
        let window = &found.window;
        let up_bytes_per_s = match one_way.sends {
            true => found.up_bytes_per_s.clone(),
            false => Figure::Absent("brunt did not send".to_owned()),
        };
        let rate = |figure: &Figure| judged.rate(figure.clone());
        let share = |ns: u64| Figure::ratio(ns as f64, window.busy_ns as f64, "nothing was sent");
        let (least, most) = found.extremes.unzip();
        let [up, down] = [found.up_counts, found.down_counts].map(|it| it.map(|it| it.server));
        Some(Self {
            up_bytes_per_s: judged.rate(up_bytes_per_s),
            down_bytes_per_s: rate(&found.down_bytes_per_s),
            up_bytes: window.bytes_acked,
            down_bytes: found.down_bytes,
            streams: found.streams,
            stream_bytes_min: Figure::of(least, NOT_KEPT),
            stream_bytes_max: Figure::of(most, NOT_KEPT),
            segments_sent: window.segments_sent,
            segments_retransmitted: window.segments_retransmitted,
            bytes_retransmitted: window.bytes_retransmitted,
            min_rtt_ns: Figure::of(found.min_rtt_ns, NO_RTT),
            smoothed_rtt_ns: Figure::of(found.smoothed_rtt_ns, NO_RTT),
            up_bytes_whole_run: found.lifetime.bytes_acked,
            server_read_bytes: Figure::of(up, NOT_COUNTED),
            down_bytes_whole_run: judged.summary.lifetime.bytes_received,
            server_sent_bytes: Figure::of(down, NOT_COUNTED),
            fairness: Figure::of(found.fairness, NOT_KEPT),
            server_read_bytes_per_s: rate(&found.server_read_bytes_per_s),
            server_sent_bytes_per_s: rate(&found.server_sent_bytes_per_s),
            delivery_bytes_per_s: found.delivery_bytes_per_s,
            busy_ns: window.busy_ns,
            receive_window_limited_share: share(window.receive_window_limited_ns),
            send_buffer_limited_share: share(window.send_buffer_limited_ns),
            client_cpu_s_per_gb: rate(&found.cpu_ns_per_gb).map(|ns| ns / 1e9),
            server_cpu_s_per_gb: rate(&found.server_cpu_ns_per_gb).map(|ns| ns / 1e9),
            intervals: match judged.withheld() {
                Some(_) => Vec::new(),
                None => run.bandwidth_intervals(),
            },
        })
    }
}
