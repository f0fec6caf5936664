//! What is shown of a run while it lasts: the status line, and metrics for StatsD. Writing to a
//! string cannot fail.

use std::fmt::Write;

use brunt_record::Histogram;

/// Most bytes of a datagram of metrics.
const DATAGRAM_BYTES_MAX: usize = 512;

/// What was counted in a part of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Interval {
    /// Length of the interval, seconds.
    pub seconds: f64,
    /// Connections opened in it, as far as more are open than before.
    pub opened: u64,
    /// Open connections at its end.
    pub live: u64,
    /// Bytes received.
    pub bytes_received: u64,
    /// Bytes sent.
    pub bytes_sent: u64,
    /// Messages that are done: answered, or sent where no reply is looked at.
    pub messages: u64,
}

impl Interval {
    fn bits_per_s(&self, bytes: u64) -> f64 {
        match self.seconds > 0.0 {
            true => bytes as f64 * 8.0 / self.seconds,
            false => 0.0,
        }
    }
}

/// The status line, of `connections` that there are to be; `messages` are the response times.
pub fn status(interval: &Interval, connections: u32, messages: Option<&Histogram>) -> String {
    let mbps = |bytes| interval.bits_per_s(bytes) / 1e6;
    let mut line = format!(
        "Traffic {:.3}↓, {:.3}↑ Mbps (conns 0↓ {}↑ {}⇡)",
        mbps(interval.bytes_received),
        mbps(interval.bytes_sent),
        interval.live,
        u64::from(connections).saturating_sub(interval.live)
    );
    if let Some(ns) = messages.and_then(|times| times.quantile_ns(0.95)) {
        let _ = write!(line, " (m={:.1} ms⁹⁵ᵖ)", ns as f64 / 1e6);
    }
    line
}

/// Datagrams with the metrics of an interval, and response times by their kind (`connect`,
/// `firstbyte`, `message`), of which those are left out that there are none of.
pub fn datagrams(
    namespace: &str,
    interval: &Interval,
    latencies: &[(&str, &Histogram)],
    percentiles: &[String],
) -> Vec<String> {
    let mut metrics = Metrics {
        namespace,
        datagrams: vec![String::new()],
    };
    let Interval {
        opened,
        live,
        bytes_received,
        bytes_sent,
        messages,
        ..
    } = *interval;
    let (down, up) = (
        interval.bits_per_s(bytes_received) as u64,
        interval.bits_per_s(bytes_sent) as u64,
    );
    for (name, value, kind) in [
        ("connections.opened", opened, 'c'),
        ("connections.total", live, 'g'),
        ("connections.total.in", 0, 'g'),
        ("connections.total.out", live, 'g'),
        ("traffic.bitrate", down + up, 'g'),
        ("traffic.bitrate.in", down, 'g'),
        ("traffic.bitrate.out", up, 'g'),
        ("traffic.data", bytes_received + bytes_sent, 'c'),
        ("traffic.data.rcvd", bytes_received, 'c'),
        ("traffic.data.sent", bytes_sent, 'c'),
        ("traffic.msgs.rcvd", messages, 'c'),
        ("traffic.msgs.sent", messages, 'c'),
    ] {
        metrics.add(name, &value.to_string(), kind);
    }
    for (kind, times) in latencies {
        metrics.add_latency(kind, times, percentiles);
    }
    metrics.datagrams
}

struct Metrics<'a> {
    namespace: &'a str,
    datagrams: Vec<String>,
}

impl Metrics<'_> {
    fn add(&mut self, name: &str, value: &str, kind: char) {
        let line = format!("{}.{name}:{value}|{kind}\n", self.namespace);
        match self.datagrams.last_mut() {
            Some(last) if last.len() + line.len() <= DATAGRAM_BYTES_MAX => last.push_str(&line),
            _ => self.datagrams.push(line),
        }
    }

    fn add_latency(&mut self, kind: &str, times: &Histogram, percentiles: &[String]) {
        let (Some(min_ns), Some(mean_ns), Some(max_ns)) =
            (times.min_ns(), times.mean_ns(), times.max_ns())
        else {
            return;
        };
        let quantiles = percentiles.iter().map(|typed| {
            let quantile = typed.parse::<f64>().unwrap_or(0.0) / 100.0;
            (
                typed.as_str(),
                times.quantile_ns(quantile).unwrap_or(0) as f64,
            )
        });
        let rest = [
            ("min", min_ns as f64),
            ("mean", mean_ns),
            ("max", max_ns as f64),
        ];
        for (name, ns) in quantiles.chain(rest) {
            self.add(
                &format!("latency.{kind}.{name}"),
                &format!("{:.1}", ns / 1e6),
                'g',
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const INTERVAL: Interval = Interval {
        seconds: 0.5,
        opened: 2,
        live: 3,
        bytes_received: 1_000,
        bytes_sent: 500,
        messages: 7,
    };

    fn times() -> Histogram {
        let mut times = Histogram::default();
        for ms in [1, 2, 3] {
            times.record(ms * 1_000_000);
        }
        times
    }

    #[test]
    fn the_status_line_has_rates_connections_and_times() {
        assert_eq!(
            status(&INTERVAL, 5, None),
            "Traffic 0.016↓, 0.008↑ Mbps (conns 0↓ 3↑ 2⇡)"
        );
        assert!(status(&INTERVAL, 1, Some(&times())).ends_with("(conns 0↓ 3↑ 0⇡) (m=3.0 ms⁹⁵ᵖ)"));
        assert!(status(&INTERVAL, 5, Some(&Histogram::default())).ends_with("2⇡)"));
        assert!(status(&Interval::default(), 5, None).starts_with("Traffic 0.000↓, 0.000↑"));
    }

    #[test]
    fn metrics_have_tcpkalis_names() {
        let percentiles = ["95", "99.5"].map(str::to_owned);
        let datagrams = datagrams(
            "load",
            &INTERVAL,
            &[("connect", &Histogram::default()), ("message", &times())],
            &percentiles,
        );
        assert!(datagrams.iter().all(|datagram| datagram.len() <= 512));
        assert_eq!(
            datagrams.concat(),
            "load.connections.opened:2|c\nload.connections.total:3|g\n\
             load.connections.total.in:0|g\nload.connections.total.out:3|g\n\
             load.traffic.bitrate:24000|g\nload.traffic.bitrate.in:16000|g\n\
             load.traffic.bitrate.out:8000|g\nload.traffic.data:1500|c\n\
             load.traffic.data.rcvd:1000|c\nload.traffic.data.sent:500|c\n\
             load.traffic.msgs.rcvd:7|c\nload.traffic.msgs.sent:7|c\n\
             load.latency.message.95:3.0|g\nload.latency.message.99.5:3.0|g\n\
             load.latency.message.min:1.0|g\nload.latency.message.mean:2.0|g\n\
             load.latency.message.max:3.0|g\n"
        );
    }
}
