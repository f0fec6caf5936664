//! Durations and counts as people type them: `500ms`, `10s`, `2m`; `10k`, `2m`.

use thiserror::Error;

/// Why a duration or count is not understood.
#[derive(Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum UnitError {
    /// Not a duration.
    #[error(
        "`{0}` is no duration; write a number and a unit, as in 500us, 10ms, 1.5s, 2m, 1h, up to \
         ten years"
    )]
    Duration(String),
    /// Not a count.
    #[error("`{0}` is no count; write a whole number, with k, m or g for thousands and so on")]
    Count(String),
}

/// Ten years: sums of several durations still fit into 64 bits of nanoseconds.
const DURATION_NS_MAX: f64 = 10.0 * 365.0 * 86_400.0 * 1e9;

/// Reads a duration in nanoseconds. Units: ns, us (or µs), ms, s, m (minutes), h; without one it
/// is seconds. Fractions are allowed; the limit is ten years.
///
/// # Errors
///
/// No number, an unknown unit, a negative or too large value.
pub fn duration_ns(typed: &str) -> Result<u64, UnitError> {
    let error = || UnitError::Duration(typed.to_owned());
    let text = typed.trim();
    let (number, unit) = text.split_at(number_length(text));
    let unit_ns = match unit {
        "ns" => 1.0,
        "us" | "µs" | "μs" => 1e3,
        "ms" => 1e6,
        "s" | "" => 1e9,
        "m" | "min" => 60e9,
        "h" => 3_600e9,
        _ => return Err(error()),
    };
    let ns = number.parse::<f64>().map_err(|_| error())? * unit_ns;
    if ns.is_finite() && ns <= DURATION_NS_MAX {
        Ok(ns.round() as u64)
    } else {
        Err(error())
    }
}

/// Reads a count. Suffixes k, m, g (either case) mean thousands, millions, thousands of millions;
/// fractions are allowed where the result is whole.
///
/// # Errors
///
/// No number, an unknown suffix, a negative, fractional or too large value.
pub fn count(typed: &str) -> Result<u64, UnitError> {
    let error = || UnitError::Count(typed.to_owned());
    let text = typed.trim();
    let (number, suffix) = text.split_at(number_length(text));
    let factor: u64 = match suffix {
        "" => 1,
        "k" | "K" => 1_000,
        "m" | "M" => 1_000_000,
        "g" | "G" => 1_000_000_000,
        _ => return Err(error()),
    };
    if let Ok(whole) = number.parse::<u64>() {
        return whole.checked_mul(factor).ok_or_else(error);
    }
    let value = number.parse::<f64>().map_err(|_| error())? * factor as f64;
    // Beyond 2^53 a fraction cannot be told from a rounding error.
    if value.fract() == 0.0 && value < 9e15 {
        Ok(value as u64)
    } else {
        Err(error())
    }
}

/// How much of `text` is digits and a point.
fn number_length(text: &str) -> usize {
    text.find(|character: char| !character.is_ascii_digit() && character != '.')
        .unwrap_or(text.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations() {
        for (typed, ns) in [
            ("10", 10_000_000_000),
            ("0", 0),
            ("500ms", 500_000_000),
            ("500us", 500_000),
            ("7µs", 7_000),
            ("3ns", 3),
            ("1.5s", 1_500_000_000),
            ("2m", 120_000_000_000),
            ("1h", 3_600_000_000_000),
            (" 1s ", 1_000_000_000),
        ] {
            assert_eq!(duration_ns(typed), Ok(ns), "{typed}");
        }
        for typed in [
            "",
            "s",
            "-1s",
            "1x",
            "1 0s",
            "1e9s",
            "1..5s",
            "nan",
            "inf",
            "99999999999h",
        ] {
            assert!(duration_ns(typed).is_err(), "{typed}");
        }
    }

    #[test]
    fn counts() {
        for (typed, value) in [
            ("0", 0),
            ("7", 7),
            ("10k", 10_000),
            ("2m", 2_000_000),
            ("1.5K", 1_500),
            ("1G", 1_000_000_000),
        ] {
            assert_eq!(count(typed), Ok(value), "{typed}");
        }
        for typed in [
            "",
            "k",
            "-1",
            "1.5",
            "1.0005k",
            "1t",
            "18446744073709551616",
            "1e3",
        ] {
            assert!(count(typed).is_err(), "{typed}");
        }
    }
}
