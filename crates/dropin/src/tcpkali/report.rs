//! tcpkali's text of a run, and what is said when it begins.

use std::net::SocketAddr;

use brunt_judge::RunFigures;
use brunt_record::{Histogram, Run};

use super::options::TcpkaliOptions;
use crate::libraries::general;

/// What tcpkali takes for the payload of a packet, bytes.
const SEGMENT_BYTES: u64 = 1_460;

/// The line about an address of the server.
pub fn destination(address: &SocketAddr) -> String {
    format!("Destination: [{}]:{}\n", address.ip(), address.port())
}

/// The line that is printed when all connections are open.
pub fn ramped_up(connections: u32) -> String {
    format!("Ramped up to {connections} connections.\n")
}

/// The line that is printed where they could not be opened.
pub fn not_connected(options: &TcpkaliOptions) -> String {
    let count = options.connections;
    let plural = if count == 1 { "" } else { "s" };
    let seconds = general(options.duration_ns as f64 / 1e9);
    format!("Could not create {count} connection{plural} in allotted time ({seconds}s)\n")
}

/// What is printed when the run is over; `has_markers` says whether its messages were marked with
/// their instants.
pub fn report(options: &TcpkaliOptions, has_markers: bool, run: &Run) -> String {
    let window = run.summary().window;
    let seconds = (run.window_ns as f64 / 1e9).max(f64::MIN_POSITIVE);
    let (sent, received) = (window.bytes_sent, window.bytes_received);
    let (messages_up, messages_down) = (window.requests_sent, window.replies.total());
    let per_s = |count: u64| count as f64 / seconds;
    let channel = per_s(sent + received) / f64::from(options.connections);
    let (mps_down, mps_up) = (per_s(messages_down), per_s(messages_up));
    let marked = format!("Aggregate message rate: {mps_down:.3}↓, {mps_up:.3}↑ mps\n");
    let marked = if has_markers { &*marked } else { "" };
    let down = segments_per_message(messages_down, received);
    let up = segments_per_message(messages_up, sent);
    let mut text = format!(
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
        per_s(down * messages_down),
        per_s(up * messages_up)
    );
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
            let values = values.map(|typed| quantile_ms(times, typed));
            let values = values.collect::<Vec<_>>().join("/");
            text += &format!("{title} latency at percentiles: {values} ms ({typed}%)\n");
        }
    }
    text + &format!("Test duration: {} s.\n", general(seconds))
}

/// The time at a percentile as typed, milliseconds; 0 of none.
fn quantile_ms(times: &Histogram, typed: &str) -> String {
    let quantile = typed.parse::<f64>().unwrap_or(0.0) / 100.0;
    let ns = times.quantile_ns(quantile).unwrap_or(0);
    format!("{:.1}", ns as f64 / 1e6)
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

#[cfg(test)]
mod tests {
    use super::*;

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
}
