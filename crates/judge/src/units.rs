//! Numbers in words for people: durations, counts, bytes, rates and shares.
//!
//! Pure functions. Three significant digits where a value is measured, thousands separators where
//! it is counted. Prefixes are decimal (1 MB = 1,000,000 bytes). Invariants print one digit more
//! ([`exact`]), and the evidence of a verdict has two or three ([`short`]).

pub use brunt_record::{count, counted};
use time::{OffsetDateTime, PrimitiveDateTime};

/// Digits of a measured value.
const DIGITS: usize = 3;
/// What stands in place of a value that is not finite.
const UNDEFINED: &str = "undefined";

/// The first unit, and those that are each 1,000 of the one before.
type Units = &'static [&'static str];
const DURATIONS: Units = &["ns", "µs", "ms", "s"];
const BYTES: Units = &["B", "kB", "MB", "GB", "TB"];
const BYTES_PER_S: Units = &["B/s", "kB/s", "MB/s", "GB/s", "TB/s"];
const BITS_PER_S: Units = &["bit/s", "kbit/s", "Mbit/s", "Gbit/s", "Tbit/s"];

/// A count and its noun, the plural of which ends in s: `1 connection`, `64 connections`.
pub(crate) fn plural(number: impl TryInto<u64>, noun: &str) -> String {
    let number = number.try_into().unwrap_or(u64::MAX);
    counted(number, noun, &format!("{noun}s"))
}

/// A duration with three significant digits in its natural unit: `612 µs`, `1.24 ms`, `1,240 s`.
pub fn duration(ns: u64) -> String {
    whole_or_scaled(ns, DIGITS, DURATIONS)
}

/// A duration in seconds with a fixed number of decimals: `10.000 s`.
pub fn seconds(ns: u64, decimals: usize) -> String {
    format!("{} s", fixed(ns as f64 / 1e9, decimals))
}

/// An amount of memory or data: `12.1 MB`.
pub fn bytes(bytes: u64) -> String {
    whole_or_scaled(bytes, DIGITS, BYTES)
}

/// A data rate: `50.1 MB/s`.
pub fn bytes_per_s(rate: f64) -> String {
    scaled(rate, DIGITS, BYTES_PER_S)
}

/// A data rate in bits, as networks count: `38.2 Gbit/s`.
pub fn bits_per_s(rate: f64) -> String {
    scaled(rate, DIGITS, BITS_PER_S)
}

/// Events per second without a unit: whole from 100 up (`155,310`), three significant digits below
/// (`12.5`).
pub fn rate(per_s: f64) -> String {
    significant(per_s, DIGITS)
}

/// A share of 1 in percent: whole from 10 % up (`61 %`), one decimal below (`2.5 %`).
pub fn percent(share: f64) -> String {
    let value = share * 100.0;
    if !value.is_finite() {
        return UNDEFINED.to_owned();
    }
    let decimals = usize::from(value.abs() < 9.95);
    format!("{} %", fixed(value, decimals))
}

/// A change as a share of 1 in percent, with its sign: `+1.2 %`, `-12 %`.
pub fn percent_change(share: f64) -> String {
    let text = percent(share);
    if text.starts_with('-') || !share.is_finite() {
        text
    } else {
        format!("+{text}")
    }
}

/// A difference of two durations, with its sign: `+12.0 µs`, `-310 ns`.
pub fn difference(ns: i64) -> String {
    let sign = if ns < 0 { '-' } else { '+' };
    format!("{sign}{}", duration(ns.unsigned_abs()))
}

/// CPUs used, on average: `1.93`.
pub fn cpus(cpus: f64) -> String {
    if cpus.is_finite() {
        fixed(cpus, 2)
    } else {
        UNDEFINED.to_owned()
    }
}

/// CPUs used, on average, of those that could be: `1.93 of 2 CPUs`, `0.99 of 1 CPU`, `0.35 CPUs`.
pub fn cpus_used(used: f64, limit: Option<f64>) -> String {
    let used = cpus(used);
    match limit {
        Some(limit) => format!("{used} of {}", cpu_limit(limit)),
        None => format!("{used} CPUs"),
    }
}

/// A number of CPUs, which a quota need not make whole: `1 CPU`, `2 CPUs`, `1.5 CPUs`.
pub fn cpu_limit(limit: f64) -> String {
    let mut text = cpus(limit);
    if text.contains('.') {
        text.truncate(text.trim_end_matches('0').trim_end_matches('.').len());
    }
    let noun = if text == "1" { "CPU" } else { "CPUs" };
    format!("{text} {noun}")
}

/// An instant as date and time to the minute: `2026-01-01 00:00 UTC`.
pub fn date_time(unix_ms: u64) -> String {
    let unix_s = i64::try_from(unix_ms / 1_000).unwrap_or(i64::MAX);
    let instant = OffsetDateTime::from_unix_timestamp(unix_s);
    let instant = instant.unwrap_or_else(|_| PrimitiveDateTime::MAX.assume_utc());
    let (date, hour, minute) = (instant.date(), instant.hour(), instant.minute());
    format!("{date} {hour:02}:{minute:02} UTC")
}

/// A whole number of the first unit has no decimals.
fn whole_or_scaled(value: u64, digits: usize, units: Units) -> String {
    if value < 1_000 {
        format!("{value} {}", units[0])
    } else {
        scaled(value as f64, digits, units)
    }
}

/// `value` in the first unit in which it prints below 1,000, or in the last.
fn scaled(value: f64, digits: usize, units: Units) -> String {
    let mut text = UNDEFINED.to_owned();
    for (power, unit) in (0..).zip(units) {
        let number = significant(value / 1_000_f64.powi(power), digits);
        text = format!("{number} {unit}");
        // The comma tells values that reach 1,000 by rounding as well.
        if !number.contains(',') {
            break;
        }
    }
    text
}

/// So many significant digits, more where the whole part has more.
fn significant(value: f64, most: usize) -> String {
    if !value.is_finite() {
        return UNDEFINED.to_owned();
    }
    if value == 0.0 {
        return "0".to_owned();
    }
    let leading_zeros = (-value.abs().log10()).floor().clamp(-1.0, 9.0);
    let mut decimals = (most as f64 + leading_zeros) as usize;
    loop {
        let text = format!("{value:.decimals$}");
        let digits = text.chars().filter(char::is_ascii_digit);
        if decimals == 0 || digits.skip_while(|&digit| digit == '0').count() <= most {
            return fixed(value, decimals);
        }
        decimals -= 1;
    }
}

/// `value` with so many decimals and commas between thousands.
fn fixed(value: f64, decimals: usize) -> String {
    grouped(&unsigned_zero(value, decimals))
}

/// `value` with so many decimals. Zero has no sign.
fn unsigned_zero(value: f64, decimals: usize) -> String {
    let text = format!("{value:.decimals$}");
    let is_zero = !text.bytes().any(|byte| matches!(byte, b'1'..=b'9'));
    let digits = text.strip_prefix('-').filter(|_| is_zero);
    digits.unwrap_or(&text).to_owned()
}

/// `number` with commas between the thousands of its whole part.
fn grouped(number: &str) -> String {
    let whole_end = number.find('.').unwrap_or(number.len());
    let (whole, decimals) = number.split_at(whole_end);
    let mut text = String::with_capacity(number.len() + whole.len() / 3);
    for (index, digit) in whole.chars().enumerate() {
        let after = whole.len() - index;
        if index > 0 && after % 3 == 0 && text != "-" {
            text.push(',');
        }
        text.push(digit);
    }
    text + decimals
}

/// As invariants tell numbers: four significant digits.
pub(crate) mod exact {
    use super::{BYTES_PER_S, DURATIONS, scaled, whole_or_scaled};

    const DIGITS: usize = 4;

    /// A length of time: `12.35 ms`.
    pub(crate) fn time(ns: u64) -> String {
        whole_or_scaled(ns, DIGITS, DURATIONS)
    }

    /// A share: `99.95 %`.
    pub(crate) fn percent(share: f64) -> String {
        format!("{:.2} %", share * 100.0)
    }

    /// A data rate: `122.5 MB/s`.
    pub(crate) fn bytes_per_s(rate: f64) -> String {
        scaled(rate, DIGITS, BYTES_PER_S)
    }
}

/// Numbers as the evidence of a verdict has them: two or three digits, and never NaN or infinity.
pub(crate) mod short {
    use super::{BYTES, DURATIONS, Units, count, unsigned_zero};

    /// Largest value that is printed.
    const MOST: f64 = 1e15;

    fn bounded(value: f64) -> f64 {
        if value.is_nan() {
            0.0
        } else {
            value.clamp(-MOST, MOST)
        }
    }

    /// A share of 1 in percent: `41 %`, `2.5 %`, `0.02 %`.
    pub(crate) fn percent(share: f64) -> String {
        let value = bounded(share * 100.0);
        let decimals = match value.abs() {
            size if size >= 9.95 || size == 0.0 => 0,
            size if size >= 0.095 => 1,
            size if size >= 0.0095 => 2,
            _ => 3,
        };
        format!("{} %", unsigned_zero(value, decimals))
    }

    /// A plain number: `155310`, `41`, `7.1`, `0.35`.
    pub(crate) fn number(value: f64) -> String {
        let value = bounded(value);
        let decimals = match value.abs() {
            size if size >= 99.5 || size == 0.0 => 0,
            size if size >= 0.95 => 1,
            _ => 2,
        };
        let text = unsigned_zero(value, decimals);
        text.strip_suffix(".0").unwrap_or(&text).to_owned()
    }

    /// A rate: `155,310`, `12.5`.
    pub(crate) fn rate(per_s: f64) -> String {
        let per_s = bounded(per_s).max(0.0);
        if per_s >= 99.5 {
            count(per_s.round() as u64)
        } else {
            number(per_s)
        }
    }

    /// A length of time: `612 µs`, `1.2 ms`.
    pub(crate) fn duration(ns: f64) -> String {
        in_unit(ns, DURATIONS)
    }

    /// Bytes: `17 B`, `1.2 MB`.
    pub(crate) fn bytes(bytes: f64) -> String {
        in_unit(bytes, &BYTES[..4])
    }

    /// `value` in the largest unit of which it holds one.
    fn in_unit(value: f64, units: Units) -> String {
        let value = bounded(value);
        let scale = |power: usize| 1_000_f64.powi(power as i32);
        let mut powers = (1..units.len()).rev();
        match powers.find(|&power| value.abs() >= scale(power)) {
            Some(power) => format!("{} {}", number(value / scale(power)), units[power]),
            None => format!("{} {}", unsigned_zero(value, 0), units[0]),
        }
    }

    /// CPUs: `1 CPU`, `0.35 CPUs`.
    pub(crate) fn cpus(cpus: f64) -> String {
        let text = number(cpus);
        let unit = if text == "1" { "CPU" } else { "CPUs" };
        format!("{text} {unit}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_have_three_digits_in_their_unit() {
        for (ns, text) in [
            (0, "0 ns"),
            (1, "1 ns"),
            (999, "999 ns"),
            (1_000, "1.00 µs"),
            (5_930, "5.93 µs"),
            (9_994, "9.99 µs"),
            (9_996, "10.0 µs"),
            (31_400, "31.4 µs"),
            (612_000, "612 µs"),
            (999_499, "999 µs"),
            (999_500, "1.00 ms"),
            (1_240_000, "1.24 ms"),
            (123_456_789, "123 ms"),
            (999_999_999, "1.00 s"),
            (10_000_000_000, "10.0 s"),
            (999_400_000_000, "999 s"),
            (1_240_000_000_000, "1,240 s"),
            (u64::MAX, "18,446,744,074 s"),
        ] {
            assert_eq!(duration(ns), text, "{ns} ns");
        }
    }

    #[test]
    fn seconds_keep_their_decimals() {
        for (ns, decimals, text) in [
            (10_000_000_000, 3, "10.000 s"),
            (20_400_000, 2, "0.02 s"),
            (999_999_999, 3, "1.000 s"),
            (3_600_000_000_000, 3, "3,600.000 s"),
            (0, 0, "0 s"),
        ] {
            assert_eq!(seconds(ns, decimals), text);
        }
    }

    #[test]
    fn data_has_decimal_prefixes() {
        for (value, text) in [
            (0, "0 B"),
            (999, "999 B"),
            (1_000, "1.00 kB"),
            (12_100_000, "12.1 MB"),
            (999_999_999, "1.00 GB"),
            (u64::MAX, "18,446,744 TB"),
        ] {
            assert_eq!(bytes(value), text);
        }
        for (value, text) in [
            (0.0, "0 B/s"),
            (0.5, "0.500 B/s"),
            (512.0, "512 B/s"),
            (999.7, "1.00 kB/s"),
            (50_100_000.0, "50.1 MB/s"),
            (f64::NAN, "undefined B/s"),
        ] {
            assert_eq!(bytes_per_s(value), text);
        }
    }

    #[test]
    fn rates_and_shares() {
        for (value, text) in [
            (0.0, "0"),
            (0.004_17, "0.00417"),
            (0.9999, "1.00"),
            (1.0, "1.00"),
            (12.46, "12.5"),
            (99.96, "100"),
            (155_310.1, "155,310"),
            (1e12, "1,000,000,000,000"),
            (-1_234.0, "-1,234"),
            (-123.0, "-123"),
            (f64::INFINITY, "undefined"),
        ] {
            assert_eq!(rate(value), text, "{value}");
        }
        for (value, text) in [
            (0.0, "0.0 %"),
            (0.025, "2.5 %"),
            (0.0994, "9.9 %"),
            (0.0996, "10 %"),
            (0.61, "61 %"),
            (1.98, "198 %"),
            (f64::NAN, "undefined"),
        ] {
            assert_eq!(percent(value), text, "{value}");
        }
    }

    #[test]
    fn changes_have_a_sign() {
        for (share, text) in [(0.0, "+0.0 %"), (0.012, "+1.2 %"), (-0.12, "-12 %")] {
            assert_eq!(percent_change(share), text);
        }
        for (ns, text) in [
            (0, "+0 ns"),
            (12_000, "+12.0 µs"),
            (-310, "-310 ns"),
            (i64::MIN, "-9,223,372,037 s"),
        ] {
            assert_eq!(difference(ns), text);
        }
    }

    #[test]
    fn nothing_is_printed_that_is_no_number() {
        let mut values = vec![0.0, f64::MIN_POSITIVE, f64::MAX, f64::INFINITY, f64::NAN];
        values.extend((-40..40).map(|power| 4.9 * 10_f64.powi(power)));
        for value in values.into_iter().flat_map(|value| [value, -value]) {
            for text in [
                rate(value),
                bytes_per_s(value),
                percent(value),
                percent_change(value),
                cpus(value),
                cpus_used(value, Some(value)),
                cpus_used(value, None),
                cpu_limit(value),
                short::percent(value),
                short::number(value),
                short::rate(value),
                short::duration(value),
                short::bytes(value),
                short::cpus(value),
            ] {
                let has_value = text.bytes().any(|byte| matches!(byte, b'1'..=b'9'));
                assert!(has_value || !text.contains('-'), "{value:e}: {text}");
                assert!(!text.contains("NaN") && !text.contains("inf"), "{text}");
            }
        }
    }

    #[test]
    fn cpus_have_two_decimals_and_limits_as_many_as_they_need() {
        for (value, used, limit) in [
            (0.0, "0.00", "0 CPUs"),
            (0.004, "0.00", "0 CPUs"),
            (1.0, "1.00", "1 CPU"),
            (1.934, "1.93", "1.93 CPUs"),
            (1.5, "1.50", "1.5 CPUs"),
            (20.0, "20.00", "20 CPUs"),
            (1_024.0, "1,024.00", "1,024 CPUs"),
            (f64::NAN, "undefined", "undefined CPUs"),
        ] {
            assert_eq!(cpus(value), used);
            assert_eq!(cpu_limit(value), limit);
        }
    }

    #[test]
    fn dates_follow_the_calendar() {
        for (unix_s, text) in [
            (0, "1970-01-01 00:00 UTC"),
            (951_782_399, "2000-02-28 23:59 UTC"),
            (951_782_400, "2000-02-29 00:00 UTC"),
            (951_868_800, "2000-03-01 00:00 UTC"),
            (1_767_225_600, "2026-01-01 00:00 UTC"),
            (1_798_761_599, "2026-12-31 23:59 UTC"),
            (4_107_542_400, "2100-03-01 00:00 UTC"),
        ] {
            assert_eq!(date_time(unix_s * 1_000), text);
        }
        assert!(date_time(u64::MAX).ends_with(" UTC"));
    }

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
            assert_eq!(short::percent(share), text);
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
            assert_eq!(short::number(value), text);
        }
        for (per_s, text) in [(155_310.4, "155,310"), (12.54, "12.5"), (-1.0, "0")] {
            assert_eq!(short::rate(per_s), text);
        }
        for (ns, text) in [
            (7.0, "7 ns"),
            (50_000.0, "50 µs"),
            (1.24e6, "1.2 ms"),
            (3e9, "3 s"),
        ] {
            assert_eq!(short::duration(ns), text);
        }
        for (cpus, text) in [(1.0, "1 CPU"), (0.35, "0.35 CPUs")] {
            assert_eq!(short::cpus(cpus), text);
        }
        for (number, text) in [(1, "1 reader"), (1_234_567, "1,234,567 readers")] {
            assert_eq!(plural(number, "reader"), text);
        }
    }

    #[test]
    fn invariants_tell_four_digits() {
        for (ns, text) in [
            (0, "0 ns"),
            (999, "999 ns"),
            (1_500, "1.500 µs"),
            (12_345_678, "12.35 ms"),
            (999_999_999, "1.000 s"),
            (123_456_000_000, "123.5 s"),
            (7_200_000_000_000, "7,200 s"),
        ] {
            assert_eq!(exact::time(ns), text);
        }
    }
}
