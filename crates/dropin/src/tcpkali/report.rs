//! tcpkali's text of a run. Writing to a string cannot fail.

use std::fmt::Write;
use std::net::SocketAddr;
use std::num::NonZeroU32;

use brunt_measure::{Histogram, Run};

use super::options::Options;

/// What tcpkali takes for the payload of a packet, bytes.
const SEGMENT_BYTES: u64 = 1_460;

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

/// What is printed when the run is over; `has_markers` says whether its messages were marked with
/// their instants.
pub fn report(options: &Options, has_markers: bool, run: &Run) -> String {
    let window = run.summary().window;
    let seconds = (run.window_ns as f64 / 1e9).max(f64::MIN_POSITIVE);
    let connections = f64::from(options.connections.get());
    let (sent, received) = (window.bytes_sent, window.bytes_received);
    let per_s = |bytes: u64| bytes as f64 / seconds;
    let channel = per_s(sent + received) / connections;
    let mut text = String::new();
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
    let replies = window.replies.total();
    if has_markers {
        let per_s = |count: u64| count as f64 / seconds;
        let _ = writeln!(
            text,
            "Aggregate message rate: {:.3}↓, {:.3}↑ mps",
            per_s(replies),
            per_s(window.requests_sent)
        );
    }
    let down = segments_per_message(replies, received);
    let up = segments_per_message(window.requests_sent, sent);
    let _ = writeln!(
        text,
        "Packet rate estimate: {:.1}↓, {:.1}↑ ({down}↓, {up}↑ TCP MSS/op)",
        per_s(down * replies),
        per_s(up * window.requests_sent)
    );
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
