//! Numbers with units, as tcpkali reads them.

use crate::Ending;

/// What tcpkali exits with when the command line is wrong.
pub(super) const EX_USAGE: u8 = 64;

/// Units by their factors.
pub(super) type Units = &'static [(&'static str, f64)];

pub(super) const COUNTS: Units = &[("k", 1e3), ("m", 1e6)];
pub(super) const SIZES: Units = &[("k", 1_024.0), ("m", 1_048_576.0)];
/// Bytes per second.
pub(super) const SPEEDS: Units = &[
    ("bps", 0.125),
    ("kbps", 125.0),
    ("Kbps", 125.0),
    ("mbps", 125e3),
    ("Mbps", 125e3),
    ("gbps", 125e6),
    ("Gbps", 125e6),
    ("Bps", 1.0),
    ("kBps", 1e3),
    ("KBps", 1e3),
    ("mBps", 1e6),
    ("MBps", 1e6),
    ("gBps", 1e9),
    ("GBps", 1e9),
];
pub(super) const SECONDS: Units = &[
    ("ms", 0.001),
    ("millisecond", 0.001),
    ("milliseconds", 0.001),
    ("s", 1.0),
    ("second", 1.0),
    ("seconds", 1.0),
    ("m", 60.0),
    ("min", 60.0),
    ("minute", 60.0),
    ("minutes", 60.0),
    ("h", 3_600.0),
    ("hr", 3_600.0),
    ("hour", 3_600.0),
    ("hours", 3_600.0),
    ("d", 86_400.0),
    ("day", 86_400.0),
    ("days", 86_400.0),
    ("y", 31_536_000.0),
    ("year", 31_536_000.0),
    ("years", 31_536_000.0),
];

/// A line about what is wrong with the command line.
pub(super) fn error(line: &str) -> Ending {
    Ending::error(line, EX_USAGE)
}

/// A number, perhaps with a unit behind it. Absent where it is none that is finite and above 0.
///
/// # Errors
///
/// The unit is unknown, with tcpkali's line.
pub(super) fn positive(typed: &str, units: Units) -> Result<Option<f64>, Ending> {
    let is_part = |letter: char| letter.is_ascii_digit() || ".+-".contains(letter);
    let end = typed.find(|letter| !is_part(letter)).unwrap_or(typed.len());
    let (number, unit) = typed.split_at(end);
    let Ok(number) = number.parse::<f64>() else {
        return Ok(None);
    };
    let factor = match unit {
        "" => 1.0,
        unit => match units.iter().find(|(name, _)| *name == unit) {
            Some((_, factor)) => *factor,
            None => return Err(error(&format!("Unknown prefix \"{unit}\" in {typed}"))),
        },
    };
    let value = number * factor;
    Ok(Some(value).filter(|value| value.is_finite() && *value > 0.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_units() {
        for (typed, units, value) in [
            ("5", COUNTS, Some(5.0)),
            ("5k", COUNTS, Some(5_000.0)),
            ("0.25m", COUNTS, Some(250_000.0)),
            ("2ms", SECONDS, Some(0.002)),
            ("1.5m", SECONDS, Some(90.0)),
            ("2days", SECONDS, Some(172_800.0)),
            ("64k", SIZES, Some(65_536.0)),
            ("10kbps", SPEEDS, Some(1_250.0)),
            ("1MBps", SPEEDS, Some(1e6)),
            ("x", COUNTS, None),
            ("", COUNTS, None),
            ("0", COUNTS, None),
            ("-1", COUNTS, None),
        ] {
            assert_eq!(positive(typed, units), Ok(value), "{typed}");
        }
        let wrong = positive("5q", COUNTS).expect_err("no unit");
        assert_eq!(
            (wrong.stderr.as_str(), wrong.code),
            ("Unknown prefix \"q\" in 5q\n", 64)
        );
    }
}
