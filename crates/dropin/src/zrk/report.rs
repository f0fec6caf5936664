//! zrk's text of a run, and its percentile distribution. Writing to a string cannot fail.

use std::fmt::Write;

use super::{Figures, Options};
use crate::recorded::Recorded;
use crate::sizes::binary;

const PERCENTILES: [f64; 9] = [0.0, 50.0, 75.0, 90.0, 99.0, 99.9, 99.99, 99.999, 100.0];

/// The text at the end.
pub fn report(options: &Options, figures: &Figures) -> String {
    let counts = &figures.counts;
    let recorded = &figures.recorded;
    let mut text = format!(
        "\n  {} requests in {:.2}s, {} read  ·  {:.0} req/s  ·  {}/s\n",
        counts.requests,
        counts.duration_ns as f64 / 1e9,
        binary(counts.bytes as f64, ""),
        figures.mean_per_s,
        binary(figures.mean_bytes_per_s, ""),
    );
    if let Some(end) = options.rate_end_per_s {
        let _ = writeln!(
            text,
            "  ramp {} → {end} req/s  ·  {:.0} req/s over the final {:.1}s",
            options.rate_per_s, figures.end.per_s, figures.end.length_s
        );
    }
    text.push_str(match options.is_closed {
        true => "  latency (closed-loop round-trip)\n",
        false => "  latency (coordinated-omission corrected)\n",
    });
    for (name, percent) in [
        ("p50", 50.0),
        ("p75", 75.0),
        ("p90", 90.0),
        ("p99", 99.0),
        ("p99.9", 99.9),
    ] {
        let _ = writeln!(
            text,
            "    {name:<7}{}",
            time(recorded.percentile_us(percent))
        );
    }
    let _ = writeln!(text, "    {:<7}{}", "max", time(max_us(recorded)));
    if options.latency {
        text.push_str("\n  Detailed Percentile spectrum:\n");
        for percent in PERCENTILES {
            let us = time(recorded.percentile_us(percent));
            let _ = writeln!(text, "    {percent:9.4}%  {us}");
        }
    }
    if counts.status > 0 {
        let _ = writeln!(text, "  non-2xx/3xx: {}", counts.status);
    }
    if figures.classes[3] > 0 {
        let redirects = figures.classes[3];
        let _ = writeln!(
            text,
            "  3xx (redirect): {redirects} — redirects are not followed"
        );
    }
    if counts.has_socket_error() {
        let (connect, read, timeout) = (counts.connect, counts.read, counts.timeout);
        let _ = writeln!(
            text,
            "  socket errors: connect {connect}, read {read}, write 0, timeout {timeout}"
        );
    }
    if figures.deadline > 0 {
        let misses = figures.deadline;
        let _ = writeln!(
            text,
            "  deadline misses: {misses} (CO latency exceeded --deadline)"
        );
    }
    if figures.lag_us >= 1_000 {
        let _ = writeln!(text, "  peak schedule lag: {}", time(figures.lag_us));
    }
    text
}

/// The longest time that is counted with the longest, microseconds; 0 for none.
pub(super) fn max_us(recorded: &Recorded) -> u64 {
    recorded.percentile_us(100.0)
}

/// Microseconds, with a unit.
pub(super) fn time(us: u64) -> String {
    match us {
        0..1_000 => format!("{us}us"),
        1_000..1_000_000 => format!("{:.2}ms", us as f64 / 1e3),
        _ => format!("{:.2}s", us as f64 / 1e6),
    }
}

/// The percentile distribution (`.hgrm`), milliseconds.
pub fn hgrm(figures: &Figures) -> String {
    let mut text = "       Value     Percentile TotalCount 1/(1-Percentile)\n\n".to_owned();
    for step in figures.recorded.steps() {
        let ms = step.us as f64 / 1e3;
        let _ = write!(text, "{ms:15.3} {:14.6} {:10} ", step.quantile, step.count);
        let _ = match step.quantile < 1.0 {
            true => writeln!(text, "{:14.2}", 1.0 / (1.0 - step.quantile)),
            false => writeln!(text, "{:>14}", "inf"),
        };
    }
    text.push_str(&figures.recorded.summary(max_us(&figures.recorded)));
    text
}

/// Which limits the run exceeded; whole lines, or empty.
pub fn breach(options: &Options, figures: &Figures) -> String {
    let mut text = String::new();
    let p99_us = figures.p99_us();
    if let Some(limit_ns) = options.p99_max_ns
        && p99_us.saturating_mul(1_000) > limit_ns
    {
        let limit_us = limit_ns / 1_000;
        let _ = writeln!(
            text,
            "zrk: SLO breach: p99 {p99_us}us exceeds limit {limit_us}us"
        );
    }
    let rate = figures.error_rate();
    if let Some(limit) = options.error_rate_max
        && rate > limit
    {
        let _ = writeln!(
            text,
            "zrk: SLO breach: error rate {rate:.4} exceeds limit {limit:.4}"
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_are_zrks() {
        for (us, expected) in [
            (0, "0us"),
            (999, "999us"),
            (1_000, "1.00ms"),
            (13_991, "13.99ms"),
            (2_500_000, "2.50s"),
        ] {
            assert_eq!(time(us), expected);
        }
    }
}
