//! What is said on the control connection: a line of parameters, and what the server reports.

use std::fmt::Write;

use super::options::{NuttcpOptions, VERSION};

/// The first line, of both sides.
pub const HELLO: &str = "HELO nuttcp v6.1.2\n";
/// Bits of the format that the server is to write in.
const RUNNING_TOTAL: u32 = 1 << 2;
const PARSABLE: u32 = 1 << 6;
const ROUND_TRIP: u32 = 1 << 11;
/// The value sent where buffers, or the rate, are not limited.
const BUFFERS_MAX: u32 = i32::MAX as u32;
const RATE_MAX: u64 = u32::MAX as u64;
/// How much longer than brunt's window the server goes on, so that no stream ends in the window.
const BEYOND_WINDOW_S: f64 = 0.5;

/// Whether the server greets as one of nuttcp does.
pub fn is_hello(line: &str) -> bool {
    line.starts_with("HELO nuttcp v")
}

/// Why the server does not do it, where its answer to the parameters is no consent.
pub fn refusal(line: &str) -> Option<String> {
    (!line.starts_with("OK")).then(|| match line.trim_end() {
        "KO" => "the server refuses the parameters".to_owned(),
        other => format!("the server says: {other}"),
    })
}

/// What the server is to do, in one line.
pub fn parameters(options: &NuttcpOptions) -> String {
    let NuttcpOptions {
        streams,
        port,
        bits_per_s,
        ..
    } = options;
    let transmits = options.transmits();
    let rate_kbps = bits_per_s.map_or(RATE_MAX, |bits| (bits.get() / 1_000).max(1));
    let timeout_s = options.timeout_s + BEYOND_WINDOW_S;
    let bit = |is_set: bool, bit: u32| if is_set { bit } else { 0 };
    let format = bit(!options.no_rtt, ROUND_TRIP)
        | bit(options.is_parsable, PARSABLE)
        | bit(options.has_running_total, RUNNING_TOTAL);
    // Lines over time come from the receiver.
    let interval_s = if transmits { options.interval_s } else { 0.0 };
    let window = options.server_window_bytes.map_or(0, |bytes| bytes.get());
    let segment = options.segment_bytes.map_or(0, |bytes| bytes.get());
    let mut line = String::new();
    // Writing to a text never fails.
    let _ = writeln!(
        line,
        "buflen = {}, nbuf = {BUFFERS_MAX}, win = {window}, nstream = {streams}, \
         rate = {rate_kbps}, port = {port}, trans = {}, braindead = {}, timeout = {timeout_s:.6}, \
         udp = 0, vers = {VERSION}, interval = {interval_s:.6}, reverse = {}, format = {format}, \
         traceroute = 0, irate = 0, thirdparty = _NULL_ , multicast = 0 , datamss = {segment} , \
         tos = 0 , nbuf_bytes = 0 , rate_pps = 0 , nodelay = {}",
        options.buffer_bytes,
        u8::from(transmits),
        u8::from(options.sets_both_windows),
        // A server that sends would connect to its client; so brunt does in any case.
        u8::from(!transmits),
        u8::from(options.is_nodelay),
    );
    line
}

/// What the server reports when the load is over.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ServerReport {
    /// Megabytes (of 2^20) that it moved.
    pub megabytes: Option<f64>,
    /// How long that took, seconds.
    pub seconds: Option<f64>,
    /// Megabits (of 10^6) per second.
    pub mbps: Option<f64>,
    /// Share of a CPU that it used, percent.
    pub cpu_percent: Option<u32>,
    /// Segments that it sent again.
    pub retransmits: Option<u64>,
    /// The lines, as they came.
    pub text: String,
}

impl ServerReport {
    /// Takes its text apart, which is what stands behind [`refusal`]'s line but for the lines over
    /// time.
    pub fn of(text: &str) -> Self {
        let mut report = Self {
            text: text.to_owned(),
            ..Self::default()
        };
        for line in text.lines() {
            let words: Vec<&str> = line.split_whitespace().collect();
            let before = |word: &str| {
                let at = words.iter().position(|other| *other == word)?;
                words.get(at.checked_sub(1)?)?.parse::<f64>().ok()
            };
            let keyed = |key: &str| {
                let mut values = words.iter().filter_map(|word| word.split_once('='));
                values.find_map(|(name, value)| (name == key).then_some(value))
            };
            let number = |key: &str| keyed(key)?.trim_end_matches('%').parse::<f64>().ok();
            if line.contains("real seconds") {
                report.megabytes = before("MB");
                report.seconds = before("real");
                report.mbps = before("Mbps");
            } else if line.contains("real_seconds") {
                report.megabytes = number("megabytes");
                report.seconds = number("real_seconds");
                report.mbps = number("rate_Mbps");
            }
            if let Some(at) = line.find("retrans = ") {
                report.retransmits = line[at + "retrans = ".len()..].trim().parse().ok();
            }
            let retransmits = number("retrans").map(|count| count as u64);
            report.retransmits = report.retransmits.or(retransmits);
            let percent = words.iter().filter_map(|word| word.strip_suffix('%'));
            let mut percent = percent.map(|word| word.trim_start_matches("cpu="));
            if line.contains("maxrss") {
                report.cpu_percent = percent.find_map(|word| word.parse().ok());
            }
        }
        report
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::getopt::tests::words;

    fn options(line: &str) -> NuttcpOptions {
        let words = words(line);
        NuttcpOptions::parse(&words).expect("good")
    }

    #[test]
    fn parameters_are_what_nuttcp_writes() {
        assert_eq!(
            parameters(&options("-t -T1 -p26716 h")),
            "buflen = 65536, nbuf = 2147483647, win = 0, nstream = 1, rate = 4294967295, port = \
             26716, trans = 1, braindead = 0, timeout = 1.500000, udp = 0, vers = 6.1.2, interval \
             = 0.000000, reverse = 0, format = 2048, traceroute = 0, irate = 0, thirdparty = \
             _NULL_ , multicast = 0 , datamss = 0 , tos = 0 , nbuf_bytes = 0 , rate_pps = 0 , \
             nodelay = 0\n"
        );
        let line = parameters(&options("-r -T2 -i1 -w256 -M1000 -R100m -fparse -N2 h"));
        for part in [
            "win = 262144",
            "nstream = 2",
            "rate = 100000",
            "trans = 0",
            "timeout = 2.500000",
            "interval = 0.000000",
            "reverse = 1",
            "format = 2112",
            "datamss = 1000",
        ] {
            assert!(line.contains(part), "{part}: {line}");
        }
    }

    #[test]
    fn reports_of_both_forms_are_read() {
        let plain = "nuttcp-t: v6.1.2: socket\n\
                     nuttcp-t: connect to 127.0.0.1 with mss=32741, RTT=0.116 ms\n\
                     nuttcp-t: 1046.8040 MB in 1.00 real seconds = 1070279.07 KB/sec = 8767.7262 \
                     Mbps\n\
                     nuttcp-t: 1046.8040 MB in 0.08 CPU seconds = 13098801.29 KB/cpu sec\n\
                     nuttcp-t: retrans = 3\n\
                     nuttcp-t: 0.0user 0.0sys 0:01real 8% 0i+0d 1054maxrss 0+0pf 565+167csw\n";
        let keyed = "nuttcp-t: connect=127.0.0.1 mss=32741 rtt_ms=0.116\n\
                     nuttcp-t: megabytes=1046.8040 real_seconds=1.00 rate_KBps=1.0 \
                     rate_Mbps=8767.7262\n\
                     nuttcp-t: retrans=3\n\
                     nuttcp-t: stats=cpu user=0.0 system=0.0 elapsed=0:01 cpu=8% \
                     memory=0i+0d-1054maxrss io=0+0pf swaps=0+0csw\n";
        for text in [plain, keyed] {
            let found = ServerReport::of(text);
            let expected = ServerReport {
                megabytes: Some(1_046.804),
                seconds: Some(1.0),
                mbps: Some(8767.7262),
                cpu_percent: Some(8),
                retransmits: Some(3),
                text: text.to_owned(),
            };
            assert_eq!(found, expected);
        }
        assert_eq!(ServerReport::of("").megabytes, None);
    }
}
