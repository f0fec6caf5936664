//! wrk's units: numbers as it reads them, and as it prints them.

use crate::numbers::digits;

/// A row of units, each so many times the one before.
#[derive(Debug)]
pub(super) struct Units {
    scale: u32,
    base: &'static str,
    /// The last one is read, and never printed.
    names: &'static [&'static str],
}

const TIME_US: Units = Units {
    scale: 1_000,
    base: "us",
    names: &["ms", "s"],
};
/// Times in seconds, such as `2m`.
pub(super) const TIME_S: Units = Units {
    scale: 60,
    base: "s",
    names: &["m", "h"],
};
/// Bytes without the `B` behind them, such as `17.76G`.
pub(super) const BINARY: Units = Units {
    scale: 1_024,
    base: "",
    names: &["K", "M", "G", "T", "P"],
};
/// Numbers, such as `56.20k`.
pub(super) const METRIC: Units = Units {
    scale: 1_000,
    base: "",
    names: &["k", "M", "G", "T", "P"],
};

/// The share of a unit from which on a number is printed in it.
const STEP: f64 = 0.85;

impl Units {
    /// `number` in the unit that fits it; 0 for what is no number.
    pub(super) fn print(&self, number: f64, decimals: usize) -> String {
        let mut amount = if number.is_finite() { number } else { 0.0 };
        let scale = f64::from(self.scale);
        let mut unit = self.base;
        let printed = &self.names[..self.names.len() - 1];
        for name in printed {
            if amount < scale * STEP {
                break;
            }
            amount /= scale;
            unit = name;
        }
        format!("{amount:.decimals$}{unit}")
    }

    /// A whole number with one of the units, in any case, or none. Absent where it is none.
    pub(super) fn read(&self, typed: &str) -> Option<u64> {
        let typed = typed.trim_start_matches(is_blank);
        let (is_negative, typed) = match typed.strip_prefix(['+', '-']) {
            Some(rest) => (typed.starts_with('-'), rest),
            None => (false, typed),
        };
        // As `sscanf` reads it.
        let (base, unit) = digits(typed);
        let base = base?;
        let base = if is_negative && base != u64::MAX {
            base.wrapping_neg()
        } else {
            base
        };
        let unit = unit.trim_start_matches(is_blank);
        let end = unit.find(is_blank).unwrap_or(unit.len());
        let unit: String = unit[..end].chars().take(2).collect();
        if unit.is_empty() || unit.eq_ignore_ascii_case(self.base) {
            return Some(base);
        }
        let place = self
            .names
            .iter()
            .position(|name| name.eq_ignore_ascii_case(&unit))?;
        let scale = u64::from(self.scale).pow(place as u32 + 1);
        Some(base.saturating_mul(scale))
    }
}

fn is_blank(character: char) -> bool {
    matches!(character, ' ' | '\t' | '\n' | '\r' | '\x0b' | '\x0c')
}

/// Microseconds, such as `635.91us`.
pub(super) fn time_us(us: f64) -> String {
    if us >= 1_000_000.0 {
        TIME_S.print(us / 1_000_000.0, 2)
    } else {
        TIME_US.print(us, 2)
    }
}

/// `text` in a column of `width`, its digits under those of numbers with another unit: each of its
/// last two characters that is no letter leaves a blank behind it.
pub(super) fn column(text: &str, width: usize) -> String {
    let letters = text.chars().rev().take(2);
    let blanks = 2 - letters.filter(char::is_ascii_alphabetic).count();
    let width = width - blanks;
    format!("{text:>width$.width$}{:blanks$}", "")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_unit_begins_at_85_of_100_of_it() {
        for (us, printed) in [
            (0.0, "0.00us"),
            (635.91, "635.91us"),
            (849.994, "849.99us"),
            (849.999, "850.00us"),
            (850.0, "0.85ms"),
            (890.0, "0.89ms"),
            (12_920.0, "12.92ms"),
            (849_999.0, "850.00ms"),
            // There is no further unit until a whole second.
            (850_000.0, "850.00ms"),
            (999_999.0, "1000.00ms"),
            (1_000_000.0, "1.00s"),
            (1_030_000.0, "1.03s"),
            (50_990_000.0, "50.99s"),
            (51_000_000.0, "0.85m"),
            (60_000_000.0, "1.00m"),
            (3_600_000_000.0, "60.00m"),
            (36_000_000_000.0, "600.00m"),
        ] {
            assert_eq!(time_us(us), printed, "{us}");
        }
        for (seconds, printed) in [
            (1.0, "1s"),
            (30.0, "30s"),
            (50.0, "50s"),
            (51.0, "1m"),
            (60.0, "1m"),
            (89.0, "1m"),
            // To the even one.
            (90.0, "2m"),
            (100.0, "2m"),
            (150.0, "2m"),
            (3_600.0, "60m"),
        ] {
            assert_eq!(TIME_S.print(seconds, 0), printed, "{seconds}");
        }
        for (number, printed) in [
            (0.0, "0.00"),
            (98.7, "98.70"),
            (849.99, "849.99"),
            (850.0, "0.85k"),
            (56_200.0, "56.20k"),
            (849_990.0, "849.99k"),
            (850_000.0, "0.85M"),
            (850e6, "0.85G"),
            (850e9, "0.85T"),
            (850e12, "850.00T"),
        ] {
            assert_eq!(METRIC.print(number, 2), printed, "{number}");
        }
        for (bytes, printed) in [
            (294.0, "294.00"),
            (870.0, "870.00"),
            (870.4, "0.85K"),
            (871.0, "0.85K"),
            (14_500.0, "14.16K"),
            (891_289.0, "870.40K"),
            (891_290.0, "0.85M"),
            (19_069_654_466.0, "17.76G"),
            (1e18, "909494.70T"),
        ] {
            assert_eq!(BINARY.print(bytes, 2), printed, "{bytes}");
        }
    }

    #[test]
    fn what_is_no_number_is_0() {
        for number in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
            assert_eq!(
                time_us(number),
                if number > 0.0 { "0.00s" } else { "0.00us" }
            );
            assert_eq!(METRIC.print(number, 2), "0.00");
        }
    }

    #[test]
    fn columns_are_padded_as_letters_ask() {
        for (text, width, column_text) in [
            ("635.91us", 8, "635.91us"),
            ("20.37ms", 8, " 20.37ms"),
            ("1.03s", 8, "  1.03s "),
            ("98.70", 8, " 98.70  "),
            ("56.20k", 8, " 56.20k "),
            ("185.60us", 10, "  185.60us"),
            ("6.58", 10, "    6.58  "),
            ("101.00", 9, " 101.00  "),
            // Too wide: truncated, as in C.
            ("1000.00ms", 8, "1000.00m"),
        ] {
            assert_eq!(column(text, width), column_text, "{text}");
        }
    }

    #[test]
    fn numbers_are_read_as_wrk_reads_them() {
        for (typed, number, time_s) in [
            ("12", Some(12), Some(12)),
            (" +12", Some(12), Some(12)),
            ("1k", Some(1_000), None),
            ("1K", Some(1_000), None),
            ("2M", Some(2_000_000), Some(120)),
            ("2m", Some(2_000_000), Some(120)),
            ("1g", Some(1_000_000_000), None),
            ("1P", Some(1_000_000_000_000_000), None),
            ("3s", None, Some(3)),
            ("3S", None, Some(3)),
            ("2h", None, Some(7_200)),
            ("2 h", None, Some(7_200)),
            ("2h more", None, Some(7_200)),
            ("500ms", None, None),
            ("1.5s", None, None),
            ("1.5", None, None),
            ("10x", None, None),
            ("", None, None),
            ("k", None, None),
            ("-", None, None),
            ("99999999999999999999", Some(u64::MAX), Some(u64::MAX)),
        ] {
            assert_eq!(METRIC.read(typed), number, "{typed}");
            assert_eq!(TIME_S.read(typed), time_s, "{typed}");
        }
        assert_eq!(METRIC.read("-1"), Some(u64::MAX));
    }
}
