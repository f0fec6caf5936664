//! tcpkali's text of a run, and what is shown while it lasts: the status line, and metrics for
//! StatsD.

use std::net::SocketAddr;

use brunt_judge::RunFigures;
use brunt_record::{Histogram, Run};

use super::options::Options;
use crate::libraries::general;

/// What tcpkali takes for the payload of a packet, bytes.
const SEGMENT_BYTES: u64 = 1_460;
/// Most bytes of one read of what is listened for.
const READ_BYTES_MAX: u64 = 65_536;

/// The line about an address of the server.
pub fn destination(address: &SocketAddr) -> String {
    format!("Destination: [{}]:{}\n", address.ip(), address.port())
}

/// The line that is printed when all connections are open.
pub fn ramped_up(connections: u32) -> String {
    format!("Ramped up to {connections} connections.\n")
}

/// The line that is printed where they could not be opened.
pub fn not_connected(options: &Options) -> String {
    let count = options.connections;
    let plural = if count == 1 { "" } else { "s" };
    let seconds = general(options.duration_ns as f64 / 1e9);
    format!("Could not create {count} connection{plural} in allotted time ({seconds}s)\n")
}

/// The lines about what is listened on.
pub fn listening(addresses: &[SocketAddr]) -> String {
    let lines = addresses
        .iter()
        .map(|address| format!("Listen on: [{}]:{}\n", address.ip(), address.port()));
    lines.collect()
}

/// What was taken from connections that were listened for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Taken {
    /// Connections that were open at the end.
    pub connections: u64,
    /// Bytes received.
    pub bytes: u64,
}

/// What is printed when nothing but listening is over, after so many seconds.
pub fn report_of_listening(taken: Taken, seconds: f64) -> String {
    let volume = Volume {
        connections: taken.connections,
        received: taken.bytes,
        // Reads are not counted: as few as there may be.
        reads: taken.bytes.div_ceil(READ_BYTES_MAX),
        ..Volume::default()
    };
    volume.text(seconds, false) + &duration(seconds)
}

fn duration(seconds: f64) -> String {
    format!("Test duration: {} s.\n", general(seconds))
}

/// What went over the connections.
#[derive(Clone, Copy, Debug, Default)]
struct Volume {
    connections: u64,
    sent: u64,
    received: u64,
    /// Messages sent, and received.
    writes: u64,
    reads: u64,
}

impl Volume {
    fn text(&self, seconds: f64, has_markers: bool) -> String {
        let Self {
            connections,
            sent,
            received,
            writes,
            reads,
        } = *self;
        let per_s = |count: u64| count as f64 / seconds;
        let channel = per_s(sent + received) / connections.max(1) as f64;
        let (mps_down, mps_up) = (per_s(reads), per_s(writes));
        let marked = format!("Aggregate message rate: {mps_down:.3}↓, {mps_up:.3}↑ mps\n");
        let marked = if has_markers { &*marked } else { "" };
        let down = segments_per_message(reads, received);
        let up = segments_per_message(writes, sent);
        format!(
            "Total data sent:     {} ({sent} bytes)\n\
             Total data received: {} ({received} bytes)\n\
             Bandwidth per channel: {:.3}⇅ Mbps ({:.1} kBps)\n\
             Aggregate bandwidth: {:.3}↓, {:.3}↑ Mbps\n\
             {marked}Packet rate estimate: {:.1}↓, {:.1}↑ ({down}↓, {up}↑ TCP MSS/op)\n",
            in_units(sent),
            in_units(received),
            8.0 * channel / 1e6,
            channel / 1e3,
            8.0 * per_s(received) / 1e6,
            8.0 * per_s(sent) / 1e6,
            per_s(down * reads),
            per_s(up * writes)
        )
    }
}

/// What is printed when the run is over; `has_markers` says whether its messages were marked with
/// their instants, and `taken` what was listened for beside it.
pub fn report(options: &Options, has_markers: bool, run: &Run, taken: Taken) -> String {
    let window = run.summary().window;
    let seconds = (run.window_ns as f64 / 1e9).max(f64::MIN_POSITIVE);
    let volume = Volume {
        connections: u64::from(options.connections) + taken.connections,
        sent: window.bytes_sent,
        received: window.bytes_received + taken.bytes,
        writes: window.requests_sent,
        reads: window.replies.total() + taken.bytes.div_ceil(READ_BYTES_MAX),
    };
    let mut text = volume.text(seconds, has_markers);
    let latencies = &run.latencies;
    let has_replies = options.marker.is_some() || has_markers;
    let first_byte = options.latency_first_byte;
    for (title, is_asked, times) in [
        ("TCP connect", options.latency_connect, &latencies.connect),
        ("First byte", first_byte, &latencies.first_byte),
        ("Message", has_replies, &latencies.response),
    ] {
        if is_asked {
            let typed = options.percentiles.join("/");
            let values = options.percentiles.iter();
            let values = values.map(|typed| ms(quantile_ns(times, typed)));
            let values = values.collect::<Vec<_>>().join("/");
            text += &format!("{title} latency at percentiles: {values} ms ({typed}%)\n");
        }
    }
    text + &duration(seconds)
}

/// The time at a percentile as typed; 0 of none.
fn quantile_ns(times: &Histogram, typed: &str) -> f64 {
    let quantile = typed.parse::<f64>().unwrap_or(0.0) / 100.0;
    times.quantile_ns(quantile).unwrap_or(0) as f64
}

/// Milliseconds as tcpkali prints them.
fn ms(ns: f64) -> String {
    format!("{:.1}", ns / 1e6)
}

fn in_units(bytes: u64) -> String {
    match bytes {
        0..2_048 => format!("{bytes} bytes"),
        2_048..524_288 => format!("{:.1} KiB", bytes as f64 / 1_024.0),
        _ => format!("{:.1} MiB", bytes as f64 / 1_048_576.0),
    }
}

/// Packets of a message at least.
fn segments_per_message(messages: u64, bytes: u64) -> u64 {
    let each = bytes.checked_div(messages);
    each.map_or(0, |each| each.div_ceil(SEGMENT_BYTES))
}

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
        let bits = bytes as f64 * 8.0;
        if self.seconds > 0.0 {
            bits / self.seconds
        } else {
            0.0
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
        line += &format!(" (m={} ms⁹⁵ᵖ)", ms(ns as f64));
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
    let Interval {
        opened,
        live,
        bytes_received,
        bytes_sent,
        messages,
        ..
    } = *interval;
    let down = interval.bits_per_s(bytes_received) as u64;
    let up = interval.bits_per_s(bytes_sent) as u64;
    let counted = [
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
    ];
    let counted = counted.map(|(name, value, kind)| format!("{namespace}.{name}:{value}|{kind}\n"));
    let mut lines = counted.to_vec();
    for (kind, times) in latencies {
        let (Some(min_ns), Some(mean_ns), Some(max_ns)) =
            (times.min_ns(), times.mean_ns(), times.max_ns())
        else {
            continue;
        };
        let quantiles = percentiles.iter();
        let quantiles = quantiles.map(|typed| (typed.as_str(), quantile_ns(times, typed)));
        let rest = [
            ("min", min_ns as f64),
            ("mean", mean_ns),
            ("max", max_ns as f64),
        ];
        let all = quantiles.chain(rest);
        lines.extend(all.map(|(name, ns)| {
            let ms = ms(ns);
            format!("{namespace}.latency.{kind}.{name}:{ms}|g\n")
        }));
    }
    let mut datagrams = vec![String::new()];
    for line in lines {
        match datagrams.last_mut() {
            Some(last) if last.len() + line.len() <= DATAGRAM_BYTES_MAX => last.push_str(&line),
            _ => datagrams.push(line),
        }
    }
    datagrams
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_listened_for_is_reported() {
        let taken = Taken {
            connections: 2,
            bytes: 100_000,
        };
        assert_eq!(
            report_of_listening(taken, 2.0),
            "Total data sent:     0 bytes (0 bytes)\n\
             Total data received: 97.7 KiB (100000 bytes)\n\
             Bandwidth per channel: 0.200⇅ Mbps (25.0 kBps)\n\
             Aggregate bandwidth: 0.400↓, 0.000↑ Mbps\n\
             Packet rate estimate: 35.0↓, 0.0↑ (35↓, 0↑ TCP MSS/op)\n\
             Test duration: 2 s.\n"
        );
        let address = "[::]:80".parse().expect("an address");
        assert_eq!(listening(&[address]), "Listen on: [::]:80\n");
    }

    #[test]
    fn amounts_are_written_as_in_tcpkali() {
        for (bytes, text) in [
            (2_047, "2047 bytes"),
            (2_048, "2.0 KiB"),
            (524_287, "512.0 KiB"),
            (491_905_710, "469.1 MiB"),
        ] {
            assert_eq!(in_units(bytes), text);
        }
        assert_eq!(
            [(0, 5), (5, 5), (2, 5_000)]
                .map(|(count, bytes)| { segments_per_message(count, bytes) }),
            [0, 1, 2]
        );
    }

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
