//! tcpkali's text of a run. Writing to a string cannot fail.

use std::fmt::Write;
use std::net::SocketAddr;
use std::num::NonZeroU32;

use brunt_judge::RunFigures;
use brunt_record::{Histogram, Run};

use super::options::Options;

/// What tcpkali takes for the payload of a packet, bytes.
const SEGMENT_BYTES: u64 = 1_460;
/// Most bytes of one read of what is listened for.
const READ_BYTES_MAX: u64 = 65_536;

/// The line about an address of the server.
pub fn destination(address: &SocketAddr) -> String {
    format!("Destination: [{}]:{}\n", address.ip(), address.port())
}

/// The line that is printed when all connections are open.
pub fn ramped_up(connections: NonZeroU32) -> String {
    format!("Ramped up to {connections} connections.\n")
}

/// The line that is printed where they could not be opened.
pub fn not_connected(options: &Options) -> String {
    let count = options.connections;
    let plural = if count.get() == 1 { "" } else { "s" };
    let seconds = significant(options.duration_ns as f64 / 1e9);
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
    let mut text = String::new();
    let volume = Volume {
        connections: taken.connections,
        received: taken.bytes,
        // Reads are not counted: as few as there may be.
        reads: taken.bytes.div_ceil(READ_BYTES_MAX),
        ..Volume::default()
    };
    volume.print(&mut text, seconds, false);
    let _ = writeln!(text, "Test duration: {} s.", significant(seconds));
    text
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
    fn print(&self, text: &mut String, seconds: f64, has_markers: bool) {
        let Self {
            connections,
            sent,
            received,
            writes,
            reads,
        } = *self;
        let connections = connections.max(1) as f64;
        let per_s = |count: u64| count as f64 / seconds;
        let channel = per_s(sent + received) / connections;
        let _ = writeln!(
            text,
            "Total data sent:     {} ({sent} bytes)",
            in_units(sent)
        );
        let _ = writeln!(
            text,
            "Total data received: {} ({received} bytes)",
            in_units(received)
        );
        let _ = writeln!(
            text,
            "Bandwidth per channel: {:.3}⇅ Mbps ({:.1} kBps)",
            8.0 * channel / 1e6,
            channel / 1e3
        );
        let _ = writeln!(
            text,
            "Aggregate bandwidth: {:.3}↓, {:.3}↑ Mbps",
            8.0 * per_s(received) / 1e6,
            8.0 * per_s(sent) / 1e6
        );
        if has_markers {
            let _ = writeln!(
                text,
                "Aggregate message rate: {:.3}↓, {:.3}↑ mps",
                per_s(reads),
                per_s(writes)
            );
        }
        let down = segments_per_message(reads, received);
        let up = segments_per_message(writes, sent);
        let _ = writeln!(
            text,
            "Packet rate estimate: {:.1}↓, {:.1}↑ ({down}↓, {up}↑ TCP MSS/op)",
            per_s(down * reads),
            per_s(up * writes)
        );
    }
}

/// What is printed when the run is over; `has_markers` says whether its messages were marked with
/// their instants, and `taken` what was listened for beside it.
pub fn report(options: &Options, has_markers: bool, run: &Run, taken: Taken) -> String {
    let window = run.summary().window;
    let seconds = (run.window_ns as f64 / 1e9).max(f64::MIN_POSITIVE);
    let mut text = String::new();
    let volume = Volume {
        connections: u64::from(options.connections.get()) + taken.connections,
        sent: window.bytes_sent,
        received: window.bytes_received + taken.bytes,
        writes: window.requests_sent,
        reads: window.replies.total() + taken.bytes.div_ceil(READ_BYTES_MAX),
    };
    volume.print(&mut text, seconds, has_markers);
    let latencies = &run.latencies;
    for (title, is_asked, histogram) in [
        ("TCP connect", options.latency_connect, &latencies.connect),
        (
            "First byte",
            options.latency_first_byte,
            &latencies.first_byte,
        ),
        (
            "Message",
            options.marker.is_some() || has_markers,
            &latencies.response,
        ),
    ] {
        if is_asked {
            let _ = writeln!(
                text,
                "{title} latency at percentiles: {}",
                quantiles(options, histogram)
            );
        }
    }
    let _ = writeln!(text, "Test duration: {} s.", significant(seconds));
    text
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
    bytes
        .checked_div(messages)
        .map_or(0, |each| each.div_ceil(SEGMENT_BYTES))
}

fn quantiles(options: &Options, histogram: &Histogram) -> String {
    let values: Vec<String> = options
        .percentiles
        .iter()
        .map(|typed| {
            let quantile = typed.parse::<f64>().unwrap_or(0.0) / 100.0;
            let ns = histogram.quantile_ns(quantile).unwrap_or(0);
            format!("{:.1}", ns as f64 / 1e6)
        })
        .collect();
    format!(
        "{} ms ({}%)",
        values.join("/"),
        options.percentiles.join("/")
    )
}

/// A number with 6 significant digits, without zeros at its end (`%g`), from 0.0001 to 999999.
fn significant(value: f64) -> String {
    let whole = value.abs().max(1e-4).log10().floor() as i32;
    let text = format!("{value:.*}", (5 - whole).clamp(0, 12) as usize);
    match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => text,
    }
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
    fn numbers_are_written_as_in_c() {
        for (value, text) in [
            (10.0, "10"),
            (1.002_4, "1.0024"),
            (1.004_230_6, "1.00423"),
            (0.2, "0.2"),
            (123_456.7, "123457"),
        ] {
            assert_eq!(significant(value), text);
        }
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
}
