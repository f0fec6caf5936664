//! Figures in the words of evidence: three digits at most, and nothing that is not a number.

pub(super) use brunt_record::{count, counted};

use crate::CleanFigures;

/// Longest reason from outside that is told.
const REASON_CHARS_MAX: usize = 160;
/// Longest name of a server that is told.
const NAME_CHARS_MAX: usize = 32;

/// What is told in place of figures beyond all that makes sense.
const MOST: f64 = 1e15;

fn told(value: f64) -> f64 {
    if value.is_nan() {
        0.0
    } else {
        value.clamp(-MOST, MOST)
    }
}

/// `value` with so many decimals. Zero has no sign.
fn fixed(value: f64, decimals: usize) -> String {
    let text = format!("{value:.decimals$}");
    match text.strip_prefix('-') {
        Some(digits) if digits.bytes().all(|digit| matches!(digit, b'0' | b'.')) => {
            digits.to_owned()
        }
        _ => text,
    }
}

/// The part of a window that was left undisturbed: `7.6 s of 10 s in which the hypervisor took
/// nothing`.
pub(crate) fn undisturbed_told(clean: &CleanFigures) -> String {
    let [clean, all] = [clean.clean_ns, clean.window_ns].map(|ns| duration(ns as f64));
    format!("{clean} of {all} in which the hypervisor took nothing")
}

/// A share of 1 in percent: `41 %`, `2.5 %`, `0.02 %`.
pub(super) fn percent(share: f64) -> String {
    let value = told(share * 100.0);
    let decimals = match value.abs() {
        size if size >= 9.95 || size == 0.0 => 0,
        size if size >= 0.095 => 1,
        size if size >= 0.0095 => 2,
        _ => 3,
    };
    format!("{} %", fixed(value, decimals))
}

/// A plain number: `155310`, `41`, `7.1`, `0.35`.
pub(super) fn number(value: f64) -> String {
    let value = told(value);
    let decimals = match value.abs() {
        size if size >= 99.5 || size == 0.0 => 0,
        size if size >= 0.95 => 1,
        _ => 2,
    };
    let text = fixed(value, decimals);
    match text.strip_suffix(".0") {
        Some(whole) => whole.to_owned(),
        None => text,
    }
}

/// A rate: `155,310`, `12.5`.
pub(super) fn rate(per_s: f64) -> String {
    let per_s = told(per_s).max(0.0);
    if per_s >= 99.5 {
        count(per_s.round() as u64)
    } else {
        number(per_s)
    }
}

/// A length of time: `612 µs`, `1.2 ms`.
pub(super) fn duration(ns: f64) -> String {
    let ns = told(ns);
    let (value, unit) = match ns.abs() {
        size if size >= 1e9 => (ns / 1e9, "s"),
        size if size >= 1e6 => (ns / 1e6, "ms"),
        size if size >= 1e3 => (ns / 1e3, "µs"),
        _ => return format!("{} ns", fixed(ns, 0)),
    };
    format!("{} {unit}", number(value))
}

/// Bytes: `17 B`, `1.2 MB`.
pub(super) fn bytes(bytes: f64) -> String {
    let bytes = told(bytes);
    let (value, unit) = match bytes.abs() {
        size if size >= 1e9 => (bytes / 1e9, "GB"),
        size if size >= 1e6 => (bytes / 1e6, "MB"),
        size if size >= 1e3 => (bytes / 1e3, "kB"),
        _ => return format!("{} B", fixed(bytes, 0)),
    };
    format!("{} {unit}", number(value))
}

/// CPUs: `1 CPU`, `0.35 CPUs`.
pub(super) fn cpus(cpus: f64) -> String {
    let text = number(cpus);
    let unit = if text == "1" { "CPU" } else { "CPUs" };
    format!("{text} {unit}")
}

/// A reason that came from outside, no longer than it may be.
pub(super) fn truncated(reason: &str) -> String {
    reason.chars().take(REASON_CHARS_MAX).collect()
}

/// A name that came from outside, no longer than it may be. Reports make it printable.
pub(super) fn name(name: &str) -> String {
    let shown: String = name.chars().take(NAME_CHARS_MAX).collect();
    match shown.as_str() {
        "" => "server".to_owned(),
        _ if shown.contains("server") => shown,
        _ => format!("server {shown}"),
    }
}

/// The name of another program, no longer than it may be.
pub(super) fn program(name: &str) -> String {
    name.chars().take(NAME_CHARS_MAX).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_short() {
        for (share, text) in [
            (0.0, "0 %"),
            (0.41, "41 %"),
            (0.0994, "9.9 %"),
            (0.0996, "10 %"),
            (0.025, "2.5 %"),
            (0.0002, "0.02 %"),
            (0.00002, "0.002 %"),
            (-0.081, "-8.1 %"),
            (f64::NAN, "0 %"),
        ] {
            assert_eq!(percent(share), text);
        }
        for (value, text) in [
            (0.0, "0"),
            (0.351, "0.35"),
            (1.0, "1"),
            (7.12, "7.1"),
            (41.0, "41"),
            (155_310.4, "155310"),
            (f64::INFINITY, "1000000000000000"),
        ] {
            assert_eq!(number(value), text);
        }
        for (per_s, text) in [(155_310.4, "155,310"), (12.54, "12.5"), (-1.0, "0")] {
            assert_eq!(rate(per_s), text);
        }
        for (ns, text) in [
            (7.0, "7 ns"),
            (50_000.0, "50 µs"),
            (1.24e6, "1.2 ms"),
            (3e9, "3 s"),
        ] {
            assert_eq!(duration(ns), text);
        }
        assert_eq!(counted(1, "connection", "connections"), "1 connection");
        assert_eq!(counted(1_234_567, "reply", "replies"), "1,234,567 replies");
        assert_eq!(
            (cpus(1.0), cpus(0.35)),
            ("1 CPU".to_owned(), "0.35 CPUs".to_owned())
        );
    }

    #[test]
    fn nothing_is_printed_that_is_no_number() {
        let mut values = vec![0.0, f64::MIN_POSITIVE, f64::MAX, f64::INFINITY, f64::NAN];
        values.extend((-40..40).map(|power| 4.9 * 10_f64.powi(power)));
        for value in values.into_iter().flat_map(|value| [value, -value]) {
            for text in [
                percent(value),
                number(value),
                rate(value),
                duration(value),
                bytes(value),
                cpus(value),
            ] {
                let has_value = text.bytes().any(|byte| matches!(byte, b'1'..=b'9'));
                assert!(has_value || !text.contains('-'), "{value:e}: {text}");
                assert!(!text.contains("NaN") && !text.contains("inf"), "{text}");
            }
        }
    }

    #[test]
    fn names_and_reasons_are_bounded() {
        assert_eq!(name("nginx"), "server nginx");
        assert_eq!(name("reference server"), "reference server");
        assert_eq!(name(""), "server");
        assert_eq!(truncated("at most 8 streams"), "at most 8 streams");
        let long = "é".repeat(999);
        assert_eq!(truncated(&long).chars().count(), REASON_CHARS_MAX);
        assert_eq!(
            name(&"x".repeat(99)).len(),
            "server ".len() + NAME_CHARS_MAX
        );
    }
}
