//! Durations, counts, rates, stages and speeds of links as people type them: `500ms`, `10s`, `2m`;
//! `10k`, `2m`; `50k`, `100/s`, `60/m`; `10s:1k..5k,30s:5k`; `2.5gbit`.

use thiserror::Error;

use crate::{Schedule, ScheduleError, Stage};

/// Why a duration, count, rate, stage or link speed is not understood.
#[derive(Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum UnitError {
    /// The text is not a duration.
    #[error(
        "`{0}` is not a duration; write a number and a unit, as in 500us, 10ms, 1.5s, 2m, 1h30m, \
         1d, up to ten years"
    )]
    Duration(String),
    /// The text is not a count.
    #[error("`{0}` is not a count; write a whole number, with k, m or g for thousands and so on")]
    Count(String),
    /// The text is not a rate.
    #[error(
        "`{0}` is not a rate; write arrivals per second, as in 50k, 100/s or 0.5, or per minute or \
         hour, as in 90/m or 20/h; above 0 and up to 1g a second"
    )]
    Rate(String),
    /// The text is not a stage.
    #[error(
        "`{0}` is not a stage; write a duration, a colon and a rate, as in 30s:5k, or two rates to \
         go from one to the other, as in 10s:1k..5k; a comma between stages"
    )]
    Stage(String),
    /// The text is not a speed of a link.
    #[error(
        "`{0}` is not a link speed; write bits per second, as in 100mbit, 2.5gbit or 10g; at least \
         1 and up to 1000t"
    )]
    LinkSpeed(String),
    /// Stages that make no schedule.
    #[error(transparent)]
    Schedule(#[from] ScheduleError),
}

/// Ten years: sums of several durations still fit into 64 bits of nanoseconds.
const DURATION_NS_MAX: f64 = Schedule::DURATION_MAX_NS as f64;

/// A thousand times what a single link carries today.
const LINK_BITS_PER_S_MAX: f64 = 1e15;

/// Reads a duration in nanoseconds. Units: ns, us (or µs), ms, s, m (minutes), h, d; a lone number
/// without one is seconds. Several follow each other, as in `1m30s`, and are added up. Fractions
/// are allowed, and blanks before a unit; the limit is ten years.
///
/// # Errors
///
/// No number, an unknown unit, a negative or too large value.
pub fn duration_ns(typed: &str) -> Result<u64, UnitError> {
    let error = || UnitError::Duration(typed.to_owned());
    let mut rest = typed.trim();
    let is_alone = number_length(rest) == rest.len();
    let mut ns = 0.0;
    loop {
        let (number, behind) = rest.split_at(number_length(rest));
        let behind = behind.trim_start();
        let unit_length = behind.find(|character: char| !character.is_alphabetic());
        let (unit, behind) = behind.split_at(unit_length.unwrap_or(behind.len()));
        let unit_ns = match unit {
            "ns" => 1.0,
            "us" | "µs" | "μs" => 1e3,
            "ms" => 1e6,
            "s" => 1e9,
            "" if is_alone => 1e9,
            "m" | "min" => 60e9,
            "h" => 3_600e9,
            "d" => 86_400e9,
            _ => return Err(error()),
        };
        ns += number.parse::<f64>().map_err(|_| error())? * unit_ns;
        rest = behind;
        if rest.is_empty() {
            break;
        }
    }
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
    let (number, factor) = number_and_factor(typed.trim()).ok_or_else(error)?;
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

/// Reads a rate in arrivals per second. A number with the suffixes of a count, fractions allowed,
/// then per what: `/s` (also without), `/m` or `/min`, `/h`.
///
/// # Errors
///
/// No number, an unknown suffix or unit of time; 0; more than [`Schedule::RATE_MAX_PER_S`].
pub fn rate(typed: &str) -> Result<f64, UnitError> {
    rate_or_zero(typed)
        .filter(|&per_s| per_s > 0.0)
        .ok_or_else(|| UnitError::Rate(typed.to_owned()))
}

/// Reads the stages of a schedule: each a duration, a colon, and a rate or `FROM..TO`, which may be
/// 0; commas between them. [`Schedule::staged`] takes what is accepted.
///
/// # Errors
///
/// The first stage that cannot be read, or what [`Schedule::check_stages`] says of all of them.
pub fn stages(typed: &str) -> Result<Vec<Stage>, UnitError> {
    let count = typed.split(',').count();
    if count > Schedule::STAGES_MAX {
        return Err(ScheduleError::TooMany(count).into());
    }
    let stages = typed
        .split(',')
        .map(|text| stage(text).ok_or_else(|| UnitError::Stage(text.to_owned())))
        .collect::<Result<Vec<_>, _>>()?;
    Schedule::check_stages(&stages)?;
    Ok(stages)
}

/// Reads the speed of a link in bits per second: a number, fractions allowed, with the suffix k, m,
/// g or t (either case) for powers of 1,000, and `bit` or `bit/s` behind it if wanted.
///
/// # Errors
///
/// No number, an unknown suffix, less than 1 bit per second or more than 10^15.
pub fn link_bits_per_s(typed: &str) -> Result<u64, UnitError> {
    let error = || UnitError::LinkSpeed(typed.to_owned());
    let text = typed.trim();
    let amount = ["bit", "bit/s"]
        .into_iter()
        .find_map(|unit| text.strip_suffix(unit))
        .unwrap_or(text);
    let (number, factor) = match amount.strip_suffix(['t', 'T']) {
        Some(number) => (number, 1_000_000_000_000),
        None => number_and_factor(amount).ok_or_else(error)?,
    };
    let bits_per_s = number.parse::<f64>().map_err(|_| error())? * factor as f64;
    if (1.0..=LINK_BITS_PER_S_MAX).contains(&bits_per_s) {
        Ok(bits_per_s.round() as u64)
    } else {
        Err(error())
    }
}

fn stage(text: &str) -> Option<Stage> {
    let (duration, rates) = text.split_once(':')?;
    let (from, to) = rates.split_once("..").unwrap_or((rates, rates));
    // `1...5` could mean two things.
    if to.starts_with('.') {
        return None;
    }
    Some(Stage {
        duration_ns: duration_ns(duration).ok()?,
        from_per_s: rate_or_zero(from)?,
        to_per_s: rate_or_zero(to)?,
    })
}

fn rate_or_zero(typed: &str) -> Option<f64> {
    let text = typed.trim();
    let (amount, seconds) = match text.split_once('/') {
        None => (text, 1.0),
        Some((amount, "s")) => (amount, 1.0),
        Some((amount, "m" | "min")) => (amount, 60.0),
        Some((amount, "h")) => (amount, 3_600.0),
        Some(_) => return None,
    };
    let (number, factor) = number_and_factor(amount)?;
    let number = number.parse::<f64>().ok()?;
    let per_s = number * factor as f64 / seconds;
    (per_s <= Schedule::RATE_MAX_PER_S && (per_s > 0.0 || number == 0.0)).then_some(per_s)
}

/// A number, and what the suffix of a count behind it stands for.
fn number_and_factor(text: &str) -> Option<(&str, u64)> {
    let (number, suffix) = text.split_at(number_length(text));
    let factor = match suffix {
        "" => 1,
        "k" | "K" => 1_000,
        "m" | "M" => 1_000_000,
        "g" | "G" => 1_000_000_000,
        _ => return None,
    };
    Some((number, factor))
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
            ("10.0 ms", 10_000_000),
            ("1m30s", 90_000_000_000),
            ("1h0m0.5s", 3_600_500_000_000),
            ("1.5m", 90_000_000_000),
            ("1d", 86_400_000_000_000),
            ("2s500ms", 2_500_000_000),
            ("7µs5ns", 7_005),
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
            "1m30",
            "1m-30s",
            "30 1m",
            "3000d3000d",
        ] {
            assert!(duration_ns(typed).is_err(), "{typed}");
        }
    }

    #[test]
    fn link_speeds() {
        for (typed, bits_per_s) in [
            ("1", 1),
            ("300", 300),
            ("100mbit", 100_000_000),
            ("1gbit", 1_000_000_000),
            ("2.5g", 2_500_000_000),
            ("10Gbit/s", 10_000_000_000),
            ("56kbit/s", 56_000),
            ("9600bit", 9_600),
            (" 1.5M ", 1_500_000),
            ("1t", 1_000_000_000_000),
            ("1000T", 1_000_000_000_000_000),
        ] {
            assert_eq!(link_bits_per_s(typed), Ok(bits_per_s), "{typed}");
        }
        for typed in [
            "", "g", "bit", "/s", "0", "0.4", "-1g", "1e3", "10/s", "1gbyte", "1gb", "1 gbit",
            "1g/m", "1..5g", "1001t", "nan", "inf",
        ] {
            let refused = UnitError::LinkSpeed(typed.to_owned());
            assert_eq!(link_bits_per_s(typed), Err(refused), "{typed}");
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

    #[test]
    fn rates() {
        for (typed, per_s) in [
            ("50k", 50_000.0),
            ("100/s", 100.0),
            ("0.5", 0.5),
            ("33.3", 33.3),
            ("2.5k/s", 2_500.0),
            ("60/m", 1.0),
            ("90/min", 1.5),
            ("3600/h", 1.0),
            ("1/h", 1.0 / 3_600.0),
            ("1m", 1e6),
            ("6M/m", 1e5),
            ("1g", 1e9),
            ("60g/m", 1e9),
            (" 10/s ", 10.0),
        ] {
            assert_eq!(rate(typed), Ok(per_s), "{typed}");
        }
        for typed in [
            "",
            "k",
            "/s",
            "0",
            "0/s",
            "-1",
            "+1",
            "1e3",
            "1..2",
            "10 /s",
            "10/",
            "10/ms",
            "10/s/s",
            "10/S",
            "10s",
            "10rps",
            "nan",
            "inf",
            "1.0000001g",
            "2g",
            "61g/m",
        ] {
            let error = rate(typed).unwrap_err();
            assert_eq!(error, UnitError::Rate(typed.to_owned()));
        }
        // Too small for a double, and not 0.
        assert!(rate(&format!("0.{}1", "0".repeat(400))).is_err());
    }

    #[test]
    fn lists_of_stages() {
        let stage = |seconds: u64, from_per_s, to_per_s| Stage {
            duration_ns: seconds * 1_000_000_000,
            from_per_s,
            to_per_s,
        };
        for (typed, list) in [
            (
                "10s:1k..5k,30s:5k,10s:5k..0",
                vec![
                    stage(10, 1e3, 5e3),
                    stage(30, 5e3, 5e3),
                    stage(10, 5e3, 0.0),
                ],
            ),
            ("1m:60/m..2/s", vec![stage(60, 1.0, 2.0)]),
            (
                " 10 : 0 , 1h : 0.5 .. 1.5 ",
                vec![stage(10, 0.0, 0.0), stage(3_600, 0.5, 1.5)],
            ),
        ] {
            assert_eq!(stages(typed), Ok(list), "{typed}");
        }
        for (typed, refused) in [
            ("", ""),
            ("10s", "10s"),
            ("5k", "5k"),
            ("10s:", "10s:"),
            (":5k", ":5k"),
            ("5k:10s", "5k:10s"),
            ("10s:1k,", ""),
            ("10s:1k,,10s:1k", ""),
            ("10s:1k;10s:2k", "10s:1k;10s:2k"),
            ("10s:1k..", "10s:1k.."),
            ("10s:..1k", "10s:..1k"),
            ("10s:1...5", "10s:1...5"),
            ("10s:1..2..3", "10s:1..2..3"),
            ("10s:1-2", "10s:1-2"),
            ("10s:1:2", "10s:1:2"),
            ("1s:1,10s:2g", "10s:2g"),
        ] {
            let error = stages(typed).unwrap_err();
            assert_eq!(error, UnitError::Stage(refused.to_owned()), "{typed}");
        }
        let many = vec!["1s:1"; 1_001].join(",");
        for (typed, error) in [
            ("10s:0", ScheduleError::Silent),
            ("1s:1,0s:1", ScheduleError::StageDuration { stage: 2 }),
            ("80000h:1,80000h:1", ScheduleError::TooLong),
            (&many, ScheduleError::TooMany(1_001)),
        ] {
            assert_eq!(stages(typed), Err(error.into()));
        }
        assert_eq!(stages(&many[..many.len() - 5]).unwrap().len(), 1_000);
    }

    #[test]
    fn errors_say_what_to_type() {
        for (error, hint) in [
            (rate("x").unwrap_err(), "100/s"),
            (stages("x").unwrap_err(), "10s:1k..5k"),
            (stages("1s:0").unwrap_err(), "a rate above 0"),
        ] {
            assert!(error.to_string().contains(hint), "{error}");
        }
    }
}
