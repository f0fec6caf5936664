//! nuttcp's text of a run: what its client prints.

use brunt_judge::{Bandwidth, BandwidthInterval, RunFigures};
use brunt_record::Run;

use super::control::ServerReport;
use super::options::{NuttcpOptions, VERSION};

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

    /// What stands in a line: with keys that begin like this, where keys are asked for.
    fn text(&self, options: &NuttcpOptions, begin: &str, seconds_key: &str) -> String {
        let Self {
            megabytes,
            seconds,
            mbps,
        } = self;
        if options.is_parsable {
            format!(
                "{begin}megabytes={megabytes:.4} {begin}{seconds_key}={seconds:.2} \
                 {begin}rate_Mbps={mbps:.4}"
            )
        } else {
            format!("{megabytes:9.4} MB / {seconds:6.2} sec = {mbps:9.4} Mbps")
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
    fn of(options: &NuttcpOptions, run: &Run, found: &Bandwidth) -> Self {
        let seconds = run.window_ns as f64 / 1e9;
        let rate = if options.transmits() {
            &found.up_bytes_per_s
        } else {
            &found.down_bytes_per_s
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
pub fn report(options: &NuttcpOptions, run: &Run, server: &ServerReport) -> String {
    let Some(found) = run.bandwidth() else {
        return String::new();
    };
    let own = Own::of(options, run, &found);
    if options.is_verbose {
        format!("{}\n{}", verbose(options, &own), server.text)
    } else {
        brief(options, &own, server)
    }
}

fn brief(options: &NuttcpOptions, own: &Own, server: &ServerReport) -> String {
    // The receiver's figures are those that count.
    let received = match (server.megabytes, server.seconds, server.mbps) {
        (Some(megabytes), Some(seconds), Some(mbps)) if options.transmits() => Moved {
            megabytes,
            seconds,
            mbps,
        },
        _ => own.moved,
    };
    let theirs = server.cpu_percent.unwrap_or(0);
    let ours = own.cpu_percent();
    let (tx, rx, retransmits) = if options.transmits() {
        (ours, theirs, Some(own.retransmits))
    } else {
        (theirs, ours, server.retransmits)
    };
    let is_shown = !options.no_retransmits && options.streams == 1;
    let retransmits = retransmits.filter(|_| is_shown);
    // Of what it receives nuttcp has none among its keys.
    let is_rtt_shown = !options.no_rtt && (options.transmits() || !options.is_parsable);
    let rtt_ms = own.rtt_ms.filter(|_| is_rtt_shown);
    let moved = received.text(options, "", "real_seconds");
    let mut line = prefix(options);
    if options.is_parsable {
        line += &format!("{moved} tx_cpu={tx} rx_cpu={rx}");
        line.extend(retransmits.map(|count| format!(" retrans={count}")));
        line.extend(rtt_ms.map(|ms| format!(" rtt_ms={ms:.2}")));
    } else {
        line += &format!(" {moved} {tx} %TX {rx} %RX");
        line.extend(retransmits.map(|count| format!(" {count} retrans")));
        line.extend(rtt_ms.map(|ms| format!(" {ms:.2} msRTT")));
    }
    line + "\n"
}

/// What each line begins with where there is an identifier.
pub fn prefix(options: &NuttcpOptions) -> String {
    let name = options.identifier.strip_prefix('-');
    name.map_or_else(String::new, |name| format!("{name}: "))
}

/// The client's own lines, of which brunt knows these.
fn verbose(options: &NuttcpOptions, own: &Own) -> String {
    let side = if options.transmits() { 't' } else { 'r' };
    let head = format!("nuttcp-{side}{}: ", options.identifier);
    let NuttcpOptions {
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
    let (minutes, whole) = (whole / 60, whole % 60);
    let retransmits = own.retransmits;
    let plural = if *timeout_s == 1.0 { "" } else { "s" };
    // What brunt knows only where it sends.
    let sent = |line: String| {
        if options.transmits() {
            line
        } else {
            String::new()
        }
    };
    let text = if options.is_parsable {
        let to = sent(format!(" host={host}"));
        let limit = sent(format!("time_limit={timeout_s:.2}\n"));
        let again = sent(format!("retrans={retransmits}\n"));
        format!(
            "buflen={buffer_bytes} nstream={streams} port={port} mode=tcp{to}\n\
             {limit}connect={host} rtt_ms={rtt:.3}\n\
             megabytes={megabytes:.4} real_seconds={seconds:.2} rate_KBps={per_s:.2} \
             rate_Mbps={mbps:.4}\n\
             megabytes={megabytes:.4} cpu_seconds={cpu_s:.2} KB_per_cpu_second={per_cpu:.2}\n\
             {again}stats=cpu user={user:.1} system={system:.1} elapsed={minutes}:{whole:02} \
             cpu={percent}%\n"
        )
    } else {
        let to = sent(format!(" -> {host}"));
        let limit = sent(format!("time limit = {timeout_s:.2} second{plural}\n"));
        let again = sent(format!("retrans = {retransmits}\n"));
        format!(
            "buflen={buffer_bytes}, nstream={streams}, port={port} tcp{to}\n\
             {limit}connect to {host} with RTT={rtt:.3} ms\n\
             {megabytes:.4} MB in {seconds:.2} real seconds = {per_s:.2} KB/sec = {mbps:.4} Mbps\n\
             {megabytes:.4} MB in {cpu_s:.2} CPU seconds = {per_cpu:.2} KB/cpu sec\n\
             {again}{user:.1}user {system:.1}sys {minutes}:{whole:02}real {percent}%\n"
        )
    };
    let lines = text.lines().map(|line| format!("{head}{line}\n"));
    format!("{head}v{VERSION}: socket\n{}", lines.collect::<String>())
}

/// The lines over time of a run that received; where brunt sends they are the server's.
pub fn intervals(options: &NuttcpOptions, run: &Run) -> String {
    let mut text = String::new();
    if options.transmits() || options.interval_s <= 0.0 {
        return text;
    }
    let is_parsable = options.is_parsable;
    let (blank, total) = if is_parsable {
        ("", " ")
    } else {
        (" ", " Tot: ")
    };
    let all = run.bandwidth_intervals();
    let (mut from_s, mut total_bytes) = (0.0, 0.0);
    let end_s = run.window_ns as f64 / 1e9;
    while from_s + options.interval_s < end_s {
        let to_s = from_s + options.interval_s;
        let bytes = received_in(&all, from_s, to_s);
        total_bytes += bytes;
        text += &prefix(options);
        text += blank;
        text += &Moved::of(bytes, options.interval_s).text(options, "", "real_sec");
        if options.has_running_total {
            text += total;
            text += &Moved::of(total_bytes, to_s).text(options, "Tot_", "real_sec");
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
    let of = |interval: &BandwidthInterval| {
        let common_s = to_s.min(in_s(interval.to_ns)) - from_s.max(in_s(interval.from_ns));
        common_s.max(0.0) * interval.down_bytes_per_s
    };
    all.iter().map(of).sum()
}
