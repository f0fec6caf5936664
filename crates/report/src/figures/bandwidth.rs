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
    pub(super) fn new(
        judged: &Judged<'_>,
        withheld: Option<&str>,
        absent: &mut Absent,
    ) -> Option<Self> {
        let run = judged.run;
        let one_way = run.plan.one_way()?;
        let found = Bandwidth::of(run, &judged.summary);
        let mut rate = |path: &str, figure: &Figure| match withheld {
            Some(reason) => absent.note(path, reason),
            None => absent.figure(path, figure),
        };
        let up_bytes_per_s = match one_way.sends {
            true => rate("bandwidth.up_bytes_per_s", &found.up_bytes_per_s),
            false => {
                let none = Figure::Absent("brunt did not send".to_owned());
                rate("bandwidth.up_bytes_per_s", &none)
            }
        };
        let down_bytes_per_s = rate("bandwidth.down_bytes_per_s", &found.down_bytes_per_s);
        let cpu = |ns: &Figure| match ns {
            Figure::Known(ns) => Figure::Known(ns / 1e9),
            Figure::Absent(reason) => Figure::Absent(reason.clone()),
        };
        let client_cpu_s_per_gb = rate("bandwidth.client_cpu_s_per_gb", &cpu(&found.cpu_ns_per_gb));
        let server_cpu_s_per_gb = rate(
            "bandwidth.server_cpu_s_per_gb",
            &cpu(&found.server_cpu_ns_per_gb),
        );
        let server_read_bytes_per_s = rate(
            "bandwidth.server_read_bytes_per_s",
            &found.server_read_bytes_per_s,
        );
        let server_sent_bytes_per_s = rate(
            "bandwidth.server_sent_bytes_per_s",
            &found.server_sent_bytes_per_s,
        );
        let window = &found.window;
        let busy_ns = window.busy_ns as f64;
        let mut share = |path, ns: u64| {
            absent.figure(path, &Figure::ratio(ns as f64, busy_ns, "nothing was sent"))
        };
        let receive_window_limited_share = share(
            "bandwidth.receive_window_limited_share",
            window.receive_window_limited_ns,
        );
        let send_buffer_limited_share = share(
            "bandwidth.send_buffer_limited_share",
            window.send_buffer_limited_ns,
        );
        let mut known = |path, is_known: bool, reason| {
            if !is_known {
                absent.note::<()>(path, reason);
            }
        };
        const NOT_KEPT: &str = "one stream, or too many to keep each";
        for path in ["bandwidth.stream_bytes_min", "bandwidth.stream_bytes_max"] {
            known(path, found.extremes.is_some(), NOT_KEPT);
        }
        known("bandwidth.fairness", found.fairness.is_some(), NOT_KEPT);
        const NOT_COUNTED: &str = "the server's own count was not read";
        for (path, counts) in [
            ("bandwidth.server_read_bytes", &found.up_counts),
            ("bandwidth.server_sent_bytes", &found.down_counts),
        ] {
            known(path, counts.is_some(), NOT_COUNTED);
        }
        const NO_RTT: &str = "the kernel gave none";
        known("bandwidth.min_rtt_ns", found.min_rtt_ns.is_some(), NO_RTT);
        let has_rtt = found.smoothed_rtt_ns.is_some();
        known("bandwidth.smoothed_rtt_ns", has_rtt, NO_RTT);
        let intervals = match withheld {
            Some(_) => Vec::new(),
            None => run.bandwidth_intervals(),
        };
        Some(Self {
            up_bytes_per_s,
            down_bytes_per_s,
            up_bytes: window.bytes_acked,
            down_bytes: found.down_bytes,
            streams: found.streams,
            stream_bytes_min: found.extremes.map(|(least, _)| least),
            stream_bytes_max: found.extremes.map(|(_, most)| most),
            fairness: found.fairness,
            segments_sent: window.segments_sent,
            segments_retransmitted: window.segments_retransmitted,
            bytes_retransmitted: window.bytes_retransmitted,
            min_rtt_ns: found.min_rtt_ns,
            smoothed_rtt_ns: found.smoothed_rtt_ns,
            up_bytes_whole_run: found.lifetime.bytes_acked,
            server_read_bytes: found.up_counts.map(|it| it.server),
            down_bytes_whole_run: judged.summary.lifetime.bytes_received,
            server_sent_bytes: found.down_counts.map(|it| it.server),
            server_read_bytes_per_s,
            server_sent_bytes_per_s,
            delivery_bytes_per_s: found.delivery_bytes_per_s,
            busy_ns: window.busy_ns,
            receive_window_limited_share,
            send_buffer_limited_share,
            client_cpu_s_per_gb,
            server_cpu_s_per_gb,
            intervals,
        })
    }
}
