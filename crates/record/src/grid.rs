//! The lengths of the intervals over which figures are kept: shorter ones in shorter runs, so that
//! there are enough of them to tell how much a figure varies.

use serde::de::{Deserialize, Deserializer, Error};

/// Length of an interval in a run of 16 s and more, until there are too many of them: 100 ms.
pub const USUAL_NS: u64 = 100_000_000;
/// The shortest: 0.39 ms.
pub const SHORTEST_NS: u64 = USUAL_NS >> 8;
/// The longest: with it, 600 intervals reach over every `u64`.
pub const LONGEST_NS: u64 = USUAL_NS << 29;
/// Number of intervals shorter than the usual one that suffices.
const SHORT_MOST: usize = 160;

/// How many intervals of this length there may be, where there may be `usual_most` of the usual
/// length and above.
pub fn most(interval_ns: u64, usual_most: usize) -> usize {
    if interval_ns < USUAL_NS {
        SHORT_MOST
    } else {
        usual_most
    }
}

/// The length with which a window of `length_ns` has as many intervals as there may be, and at
/// least half of it: the shortest, doubled as often as it takes.
pub fn over(length_ns: u64, usual_most: usize) -> u64 {
    let mut interval_ns = SHORTEST_NS;
    while length_ns.div_ceil(interval_ns) > most(interval_ns, usual_most) as u64 {
        interval_ns *= 2;
    }
    interval_ns
}

/// Reads such a length, for `deserialize_with`.
///
/// # Errors
///
/// It is none.
pub(crate) fn length<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
    let interval_ns = u64::deserialize(deserializer)?;
    let is_doubled =
        interval_ns.is_multiple_of(SHORTEST_NS) && (interval_ns / SHORTEST_NS).is_power_of_two();
    if is_doubled && interval_ns <= LONGEST_NS {
        return Ok(interval_ns);
    }
    let words = format!("no such interval of figures over time: {interval_ns} ns");
    Err(D::Error::custom(words))
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    #[test]
    fn short_windows_have_short_intervals() {
        // (window, interval)
        let cases = [
            (0, SHORTEST_NS),
            (62 * MS, SHORTEST_NS),
            (63 * MS, 2 * SHORTEST_NS),
            (1_000 * MS, 6_250_000),
            (1_001 * MS, 12_500_000),
            (2_000 * MS, 12_500_000),
            (2_001 * MS, 25 * MS),
            (10_000 * MS, 100 * MS),
            (16_000 * MS, 100 * MS),
            (60_000 * MS, 100 * MS),
            (60_001 * MS, 200 * MS),
            (u64::MAX, USUAL_NS << 29),
        ];
        for (length_ns, interval_ns) in cases {
            assert_eq!(over(length_ns, 600), interval_ns, "{length_ns}");
            let count = length_ns.div_ceil(interval_ns);
            assert!(count <= most(interval_ns, 600) as u64, "{length_ns}");
        }
        assert!(
            (50 * MS..20_000 * MS)
                .step_by(977)
                .take(2_000)
                .all(|length_ns| { length_ns.div_ceil(over(length_ns, 600)) >= 80 })
        );
    }

    #[test]
    fn lengths_are_the_shortest_doubled() {
        for (interval_ns, is_one) in [
            (SHORTEST_NS, true),
            (USUAL_NS, true),
            (4 * USUAL_NS, true),
            (LONGEST_NS, true),
            (2 * LONGEST_NS, false),
            (0, false),
            (1, false),
            (3 * USUAL_NS, false),
            (SHORTEST_NS / 5, false),
        ] {
            let read = length(serde_json::Value::from(interval_ns));
            assert_eq!(read.ok().is_some(), is_one, "{interval_ns}");
        }
    }
}
