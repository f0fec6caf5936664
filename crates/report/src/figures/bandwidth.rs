//! Figures of one-way streams.

use brunt_judge::{Bandwidth, BandwidthInterval, Figure, Judged, RunFigures};
use serde::Serialize;

use super::absent::Absent;

/// What streams moved over the window, and what held them up, by the kernel's accounts of all of
/// them.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct BandwidthFigures {
    /// Bytes per second that the server's kernel acknowledged; null where brunt sends none.
    pub up_bytes_per_s: Option<f64>,
    /// Bytes per second that came in, by the kernel's count.
    pub down_bytes_per_s: Option<f64>,
    /// Bytes acknowledged.
    pub up_bytes: u64,
    /// Bytes that came in, by the kernel's count.
    pub down_bytes: u64,
    /// Streams that were open at the end of the window.
    pub streams: u64,
    /// Bytes that the stream with the fewest bytes moved; null for one stream.
    pub stream_bytes_min: Option<u64>,
    /// Bytes that the stream with the most bytes moved; null for one stream.
    pub stream_bytes_max: Option<u64>,
    /// Jain's index of the bytes of the streams: 1 where all moved as many; null for one stream.
    pub fairness: Option<f64>,
    /// Segments with payload sent, with those sent again.
    pub segments_sent: u64,
    /// Segments sent again.
    pub segments_retransmitted: u64,
    /// Payload bytes sent again.
    pub bytes_retransmitted: u64,
    /// Smallest round trip, nanoseconds.
    pub min_rtt_ns: Option<u64>,
    /// Mean of the smoothed round trips at the end of the window, nanoseconds.
    pub smoothed_rtt_ns: Option<u64>,
    /// Bytes per second that the paths delivered lately, all streams together.
    pub delivery_bytes_per_s: u64,
    /// Time in which streams had something to send, summed over them, nanoseconds.
    pub busy_ns: u64,
    /// Share of `busy_ns` in which the server's receive window held streams up; null where nothing
    /// was sent.
    pub receive_window_limited_share: Option<f64>,
    /// Share of `busy_ns` in which our send buffers held streams up; null where nothing was sent.
    pub send_buffer_limited_share: Option<f64>,
    /// Bytes acknowledged over the whole run, warm-up and drain included.
    pub up_bytes_whole_run: u64,
    /// Bytes that the server counted as read over the whole run; null where its count was not read
    /// (`--verify-url`).
    pub server_read_bytes: Option<u64>,
    /// Bytes taken from the sockets over the whole run.
    pub down_bytes_whole_run: u64,
    /// Bytes that the server counted as sent over the whole run; null as `server_read_bytes`.
    pub server_sent_bytes: Option<u64>,
    /// Bytes per second that the server read in the window, by its own count and clock; null
    /// unless it is `brunt serve` and was asked at both edges of the window (`--verify-url`).
    pub server_read_bytes_per_s: Option<f64>,
    /// Bytes per second that the server sent in the window, by its own count and clock; null unless
    /// it is `brunt serve` and was asked at both edges of the window (`--verify-url`).
    pub server_sent_bytes_per_s: Option<f64>,
    /// CPU of brunt per 10^9 bytes, both ways together, seconds.
    pub client_cpu_s_per_gb: Option<f64>,
    /// CPU of the server per 10^9 bytes, both ways together, seconds; null where it was not
    /// watched.
    pub server_cpu_s_per_gb: Option<f64>,
    /// Over time: the intervals between readings of the accounts.
    pub intervals: Vec<BandwidthInterval>,
}

impl BandwidthFigures {
    /// The figures of a run of streams. Absent in a run of requests.
    pub(super) fn new(judged: &Judged<'_>, absent: &mut Absent) -> Option<Self> {
        const NOT_KEPT: &str = "one stream, or too many to keep each";
        const NOT_COUNTED: &str = "the server's own count was not read";
        const NO_RTT: &str = "the kernel gave none";
        let run = judged.run;
        let one_way = run.plan.one_way()?;
        let found = Bandwidth::of(run, &judged.summary);
        let window = &found.window;
        let up_bytes_per_s = if one_way.sends {
            found.up_bytes_per_s.clone()
        } else {
            Figure::Absent("brunt did not send".to_owned())
        };
        let mut rate = |name, figure: &Figure| absent.rate(&path(name), figure);
        let seconds = |ns: &Figure| match ns {
            Figure::Known(ns) => Figure::Known(ns / 1e9),
            Figure::Absent(reason) => Figure::Absent(reason.clone()),
        };
        let up_bytes_per_s = rate("up_bytes_per_s", &up_bytes_per_s);
        let down_bytes_per_s = rate("down_bytes_per_s", &found.down_bytes_per_s);
        let server_read_bytes_per_s =
            rate("server_read_bytes_per_s", &found.server_read_bytes_per_s);
        let server_sent_bytes_per_s =
            rate("server_sent_bytes_per_s", &found.server_sent_bytes_per_s);
        let client_cpu_s_per_gb = rate("client_cpu_s_per_gb", &seconds(&found.cpu_ns_per_gb));
        let server_cpu_s_per_gb =
            rate("server_cpu_s_per_gb", &seconds(&found.server_cpu_ns_per_gb));
        let mut share = |name, ns: u64| {
            let share = Figure::ratio(ns as f64, window.busy_ns as f64, "nothing was sent");
            absent.figure(&path(name), &share)
        };
        let receive_window_limited_share = share(
            "receive_window_limited_share",
            window.receive_window_limited_ns,
        );
        let send_buffer_limited_share =
            share("send_buffer_limited_share", window.send_buffer_limited_ns);
        let mut count = |name, count: Option<u64>, reason| absent.known(&path(name), count, reason);
        let (least, most) = found.extremes.unzip();
        let [up, down] = [found.up_counts, found.down_counts].map(|it| it.map(|it| it.server));
        Some(Self {
            up_bytes_per_s,
            down_bytes_per_s,
            up_bytes: window.bytes_acked,
            down_bytes: found.down_bytes,
            streams: found.streams,
            stream_bytes_min: count("stream_bytes_min", least, NOT_KEPT),
            stream_bytes_max: count("stream_bytes_max", most, NOT_KEPT),
            segments_sent: window.segments_sent,
            segments_retransmitted: window.segments_retransmitted,
            bytes_retransmitted: window.bytes_retransmitted,
            min_rtt_ns: count("min_rtt_ns", found.min_rtt_ns, NO_RTT),
            smoothed_rtt_ns: count("smoothed_rtt_ns", found.smoothed_rtt_ns, NO_RTT),
            up_bytes_whole_run: found.lifetime.bytes_acked,
            server_read_bytes: count("server_read_bytes", up, NOT_COUNTED),
            down_bytes_whole_run: judged.summary.lifetime.bytes_received,
            server_sent_bytes: count("server_sent_bytes", down, NOT_COUNTED),
            fairness: absent.known(&path("fairness"), found.fairness, NOT_KEPT),
            server_read_bytes_per_s,
            server_sent_bytes_per_s,
            delivery_bytes_per_s: found.delivery_bytes_per_s,
            busy_ns: window.busy_ns,
            receive_window_limited_share,
            send_buffer_limited_share,
            client_cpu_s_per_gb,
            server_cpu_s_per_gb,
            intervals: if absent.is_withheld() {
                Vec::new()
            } else {
                run.bandwidth_intervals()
            },
        })
    }
}

/// The path of the figure of this name.
fn path(name: &str) -> String {
    format!("bandwidth.{name}")
}
