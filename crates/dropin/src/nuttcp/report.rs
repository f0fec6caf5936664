//! nuttcp's text of a run: what its client prints.

use std::fmt::Write;

use brunt_judge::{Bandwidth, BandwidthInterval, RunFigures};
use brunt_record::Run;

use super::control::ServerReport;
use super::options::Options;
use super::usage::VERSION;

const MEGABYTE: f64 = 1_048_576.0;

/// Bytes over some time.
#[derive(Clone, Copy, Debug, Default)]
struct Moved {
    megabytes: f64,
    seconds: f64,
    mbps: f64,
}

impl Moved {
    fn of(bytes: f64, seconds: f64) -> Self {
        Self {
            megabytes: bytes / MEGABYTE,
            seconds,
            mbps: bytes * 8.0 / 1e6 / seconds.max(f64::MIN_POSITIVE),
        }
    }
}

/// What brunt itself measured.
struct Own {
    moved: Moved,
    user_s: f64,
    system_s: f64,
    retransmits: u64,
    rtt_ms: Option<f64>,
}

impl Own {
    fn of(options: &Options, run: &Run, found: &Bandwidth) -> Self {
        let seconds = run.window_ns as f64 / 1e9;
        let rate = match options.transmits {
            true => &found.up_bytes_per_s,
            false => &found.down_bytes_per_s,
        };
        let (mut user_ns, mut system_ns) = (0, 0);
        for agent in &run.agents {
            user_ns += agent.host.cpu_user_ns;
            system_ns += agent.host.cpu_system_ns;
        }
        let connect = &run.latencies.connect;
        Self {
            moved: Moved::of(rate.known().unwrap_or(0.0) * seconds, seconds),
            user_s: user_ns as f64 / 1e9,
            system_s: system_ns as f64 / 1e9,
            retransmits: found.lifetime.segments_retransmitted,
            rtt_ms: connect.min_ns().map(|ns| ns as f64 / 1e6),
        }
    }

    fn cpu_percent(&self) -> u32 {
        let share = (self.user_s + self.system_s) / self.moved.seconds.max(f64::MIN_POSITIVE);
        (share * 100.0).round() as u32
    }
}

/// The text of the run, behind the lines over time: brief, or of both sides.
pub fn report(options: &Options, run: &Run, server: &ServerReport) -> String {
    let Some(found) = run.bandwidth() else {
        return String::new();
    };
    let own = Own::of(options, run, &found);
    match options.is_verbose {
        true => format!("{}\n{}", verbose(options, &own), server.text),
        false => brief(options, &own, server),
    }
}

fn brief(options: &Options, own: &Own, server: &ServerReport) -> String {
    // The receiver's figures are those that count.
    let received = match (server.megabytes, server.seconds, server.mbps) {
        (Some(megabytes), Some(seconds), Some(mbps)) if options.transmits => Moved {
            megabytes,
            seconds,
            mbps,
        },
        _ => own.moved,
    };
    let theirs = server.cpu_percent.unwrap_or(0);
    let (tx, rx, retransmits, rtt_ms) = match options.transmits {
        true => (own.cpu_percent(), theirs, Some(own.retransmits), own.rtt_ms),
        false => (theirs, own.cpu_percent(), server.retransmits, own.rtt_ms),
    };
    let is_shown = options.has_retransmits && options.streams.get() == 1;
    let retransmits = retransmits.filter(|_| is_shown);
    // Of what it receives nuttcp has none among its keys.
    let is_rtt_shown = options.has_rtt && (options.transmits || !options.is_parsable);
    let rtt_ms = rtt_ms.filter(|_| is_rtt_shown);
    let Moved {
        megabytes,
        seconds,
        mbps,
    } = received;
    let mut line = prefix(options);
    line += &match options.is_parsable {
        true => format!(
            "megabytes={megabytes:.4} real_seconds={seconds:.2} rate_Mbps={mbps:.4} tx_cpu={tx} \
             rx_cpu={rx}"
        ),
        false => {
            format!(" {megabytes:9.4} MB / {seconds:6.2} sec = {mbps:9.4} Mbps {tx} %TX {rx} %RX")
        }
    };
    // Writing to a text never fails.
    let _ = match (retransmits, options.is_parsable) {
        (Some(count), true) => write!(line, " retrans={count}"),
        (Some(count), false) => write!(line, " {count} retrans"),
        (None, _) => Ok(()),
    };
    let _ = match (rtt_ms, options.is_parsable) {
        (Some(ms), true) => write!(line, " rtt_ms={ms:.2}"),
        (Some(ms), false) => write!(line, " {ms:.2} msRTT"),
        (None, _) => Ok(()),
    };
    line.push('\n');
    line
}

/// What each line begins with where there is an identifier.
pub fn prefix(options: &Options) -> String {
    match options.identifier.strip_prefix('-') {
        Some(name) => format!("{name}: "),
        None => String::new(),
    }
}

/// The client's own lines, of which brunt knows these.
fn verbose(options: &Options, own: &Own) -> String {
    let side = if options.transmits { 't' } else { 'r' };
    let head = format!("nuttcp-{side}{}: ", options.identifier);
    let Options {
        buffer_bytes,
        streams,
        port,
        host,
        timeout_s,
        ..
    } = options;
    let Moved {
        megabytes,
        seconds,
        mbps,
    } = own.moved;
    let kb = megabytes * 1_024.0;
    let per_s = kb / seconds.max(f64::MIN_POSITIVE);
    let cpu_s = own.user_s + own.system_s;
    let per_cpu = kb / cpu_s.max(f64::MIN_POSITIVE);
    let rtt = own.rtt_ms.unwrap_or(0.0);
    let percent = own.cpu_percent();
    let (user, system, whole) = (own.user_s, own.system_s, seconds as u64);
    let mut lines = vec![format!("v{VERSION}: socket")];
    if options.is_parsable {
        let to = if options.transmits {
            format!(" host={host}")
        } else {
            String::new()
        };
        lines.push(format!(
            "buflen={buffer_bytes} nstream={streams} port={port} mode=tcp{to}"
        ));
        if options.transmits {
            lines.push(format!("time_limit={timeout_s:.2}"));
        }
        lines.push(format!("connect={host} rtt_ms={rtt:.3}"));
        lines.push(format!(
            "megabytes={megabytes:.4} real_seconds={seconds:.2} rate_KBps={per_s:.2} \
             rate_Mbps={mbps:.4}"
        ));
        lines.push(format!(
            "megabytes={megabytes:.4} cpu_seconds={cpu_s:.2} KB_per_cpu_second={per_cpu:.2}"
        ));
        if options.transmits {
            lines.push(format!("retrans={}", own.retransmits));
        }
        lines.push(format!(
            "stats=cpu user={user:.1} system={system:.1} elapsed={}:{:02} cpu={percent}%",
            whole / 60,
            whole % 60
        ));
    } else {
        let to = if options.transmits {
            format!(" -> {host}")
        } else {
            String::new()
        };
        lines.push(format!(
            "buflen={buffer_bytes}, nstream={streams}, port={port} tcp{to}"
        ));
        if options.transmits {
            let plural = if *timeout_s == 1.0 { "" } else { "s" };
            lines.push(format!("time limit = {timeout_s:.2} second{plural}"));
        }
        lines.push(format!("connect to {host} with RTT={rtt:.3} ms"));
        lines.push(format!(
            "{megabytes:.4} MB in {seconds:.2} real seconds = {per_s:.2} KB/sec = {mbps:.4} Mbps"
        ));
        lines.push(format!(
            "{megabytes:.4} MB in {cpu_s:.2} CPU seconds = {per_cpu:.2} KB/cpu sec"
        ));
        if options.transmits {
            lines.push(format!("retrans = {}", own.retransmits));
        }
        lines.push(format!(
            "{user:.1}user {system:.1}sys {}:{:02}real {percent}%",
            whole / 60,
            whole % 60
        ));
    }
    lines.iter().map(|line| format!("{head}{line}\n")).collect()
}

/// The lines over time of a run that received; where brunt sends they are the server's.
pub fn intervals(options: &Options, run: &Run) -> String {
    let mut text = String::new();
    if options.transmits || options.interval_s <= 0.0 {
        return text;
    }
    let all = run.bandwidth_intervals();
    let (mut from_s, mut total_bytes) = (0.0, 0.0);
    let end_s = run.window_ns as f64 / 1e9;
    while from_s + options.interval_s < end_s {
        let to_s = from_s + options.interval_s;
        let bytes = received_in(&all, from_s, to_s);
        total_bytes += bytes;
        let Moved {
            megabytes, mbps, ..
        } = Moved::of(bytes, options.interval_s);
        let seconds = options.interval_s;
        text += &prefix(options);
        let _ = match options.is_parsable {
            true => write!(
                text,
                "megabytes={megabytes:.4} real_sec={seconds:.2} rate_Mbps={mbps:.4}"
            ),
            false => write!(
                text,
                " {megabytes:9.4} MB / {seconds:6.2} sec = {mbps:9.4} Mbps"
            ),
        };
        if options.has_running_total {
            let Moved {
                megabytes, mbps, ..
            } = Moved::of(total_bytes, to_s);
            let _ = match options.is_parsable {
                true => write!(
                    text,
                    " Tot_megabytes={megabytes:.4} Tot_real_sec={to_s:.2} Tot_rate_Mbps={mbps:.4}"
                ),
                false => write!(
                    text,
                    " Tot: {megabytes:9.4} MB / {to_s:6.2} sec = {mbps:9.4} Mbps"
                ),
            };
        }
        text.push('\n');
        from_s = to_s;
    }
    if !text.is_empty() {
        text.push('\n');
    }
    text
}

/// Bytes that came in a part of the window, each interval as if they had come evenly.
fn received_in(all: &[BandwidthInterval], from_s: f64, to_s: f64) -> f64 {
    let in_s = |ns: u64| ns as f64 / 1e9;
    let of = |it: &BandwidthInterval| {
        let common_s = to_s.min(in_s(it.to_ns)) - from_s.max(in_s(it.from_ns));
        common_s.max(0.0) * it.down_bytes_per_s
    };
    all.iter().map(of).sum()
}
