//! A stretch of a schedule over which the rate changes linearly: from a position to its instant.
//!
//! Positions are `u128` with 64 binary places. Every step from a position to its instant keeps the
//! order, also where it rounds, so offsets never decrease.

use super::Stage;

const NS_PER_S: u64 = 1_000_000_000;

/// A stage, placed: where it begins in time and on the scale of positions.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Stretch {
    start_ns: u64,
    /// The length of the stretch, nanoseconds; any value where it has no end.
    duration_ns: u64,
    start: u128,
    pub(super) end: u128,
    shape: Shape,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Shape {
    /// Nothing arrives.
    Silent,
    /// The time per arrival, nanoseconds with 64 binary places.
    Steady { gap_ns: u128 },
    /// Rates at both ends, per nanosecond, and the change of the rate per nanosecond. Also a
    /// constant rate, with the precision of doubles, that is too low for `Steady`.
    Ramp { from: f64, to: f64, slope: f64 },
}

impl Stretch {
    /// A constant rate from the start of load on, without end. `rate_per_s` is above 0.
    pub(super) fn endless(rate_per_s: f64) -> Self {
        Self {
            start_ns: 0,
            duration_ns: u64::MAX,
            start: 0,
            end: u128::MAX,
            shape: Shape::steady(rate_per_s),
        }
    }

    /// The stage, after `previous` if there is one.
    pub(super) fn after(previous: Option<&Self>, stage: &Stage) -> Self {
        let start_ns = previous.map_or(0, |stretch| stretch.start_ns + stretch.duration_ns);
        let start = previous.map_or(0, |stretch| stretch.end);
        let expected = stage.expected();
        let Stage {
            duration_ns,
            from_per_s,
            to_per_s,
        } = *stage;
        Self {
            start_ns,
            duration_ns,
            start,
            end: start.saturating_add((expected * 2f64.powi(64)) as u128),
            shape: if from_per_s != to_per_s {
                let (from, to) = (from_per_s / NS_PER_S as f64, to_per_s / NS_PER_S as f64);
                let slope = (to - from) / duration_ns as f64;
                Shape::Ramp { from, to, slope }
            } else if from_per_s == 0.0 {
                Shape::Silent
            } else {
                Shape::steady(from_per_s)
            },
        }
    }

    /// When a position of the stretch is reached: nanoseconds from the start of load, rounded.
    /// `None` beyond 64 bits.
    #[inline]
    pub(super) fn offset_ns(&self, position: u128) -> Option<u64> {
        let done = position - self.start;
        let within_ns = match self.shape {
            Shape::Silent => 0,
            Shape::Steady { gap_ns } => times(done, gap_ns)?,
            Shape::Ramp { from, to, slope } => {
                let done = arrivals(done);
                let left = arrivals(self.end - position);
                // The root of from·t + slope·t²/2 = done, without differences of rounded values:
                // the rate at t is the root of a sum, found from the end where the rate is lower.
                let duration_ns = self.duration_ns as f64;
                let exact_ns = if slope > 0.0 {
                    let rate = (from * from + 2.0 * slope * done).sqrt();
                    duration_ns - 2.0 * left / (rate + to)
                } else {
                    let rate = (to * to - 2.0 * slope * left).sqrt();
                    2.0 * done / (from + rate)
                };
                // The conversion takes what is below 0 as 0.
                (exact_ns + 0.5) as u64
            }
        };
        self.start_ns.checked_add(within_ns.min(self.duration_ns))
    }
}

impl Shape {
    fn steady(rate_per_s: f64) -> Self {
        let rate = rate_per_s / NS_PER_S as f64;
        gap_ns(rate_per_s).map_or(
            Self::Ramp {
                from: rate,
                to: rate,
                slope: 0.0,
            },
            |gap_ns| Self::Steady { gap_ns },
        )
    }
}

/// A position or a difference of two as a number, keeping the order: the places that a double can
/// hold beside a whole part of usual size. Faster than the conversion of 128 bits.
#[inline]
fn arrivals(position: u128) -> f64 {
    // One arrival per nanosecond at most: the whole part fits into an i64.
    let whole = (position >> 64) as i64;
    let part = (position as u64 >> 11) as i64;
    whole as f64 + part as f64 * 2f64.powi(-53)
}

/// The time per arrival, nanoseconds with 64 binary places, rounded down; `None` beyond 64 bits
/// of nanoseconds. `rate_per_s` is above 0.
fn gap_ns(rate_per_s: f64) -> Option<u128> {
    // The rate is a whole number times a power of 2: a long division gives every place.
    let (mantissa, exponent) = parts(rate_per_s);
    let dividend = u128::from(NS_PER_S) << 64;
    let (mut quotient, mut remainder) = (dividend / mantissa, dividend % mantissa);
    for _ in exponent..0 {
        remainder *= 2;
        quotient = quotient.checked_mul(2)? + remainder / mantissa;
        remainder %= mantissa;
    }
    Some(quotient >> exponent.max(0))
}

/// A positive number as a whole number of at most 53 bits times a power of 2.
fn parts(value: f64) -> (u128, i32) {
    let bits = value.to_bits();
    let fraction = u128::from(bits & ((1 << 52) - 1));
    // 11 bits.
    let biased = (bits >> 52) as i32;
    if biased == 0 {
        (fraction, -1_074)
    } else {
        (fraction | 1 << 52, biased - 1_075)
    }
}

/// The product of two numbers with 64 binary places, rounded to a whole number. `None` beyond 64
/// bits.
#[inline]
fn times(left: u128, right: u128) -> Option<u64> {
    let (left_whole, left_part) = (left >> 64, left & u128::from(u64::MAX));
    let (right_whole, right_part) = (right >> 64, right & u128::from(u64::MAX));
    let whole = u64::try_from(left_whole * right_whole).ok()?;
    let sum = (u128::from(whole) << 64)
        .checked_add(left_whole * right_part)?
        .checked_add(left_part * right_whole)?
        .checked_add((left_part * right_part) >> 64)?
        .checked_add(1 << 63)?;
    Some((sum >> 64) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gaps_have_every_place() {
        const ONE_NS: u128 = 1 << 64;
        for (rate_per_s, gap) in [
            (1e9, Some(ONE_NS)),
            (1e6, Some(1_000 * ONE_NS)),
            (1.0, Some(1_000_000_000 * ONE_NS)),
            (0.5, Some(2_000_000_000 * ONE_NS)),
            (3e8, Some(10 * ONE_NS / 3)),
            (7.0, Some(1_000_000_000 * ONE_NS / 7)),
            (2f64.powi(-30), Some((1_000_000_000 << 30) * ONE_NS)),
            // 2^64 ns are 584 years.
            (1e-11, None),
            (f64::MIN_POSITIVE, None),
            (5e-324, None),
        ] {
            assert_eq!(gap_ns(rate_per_s), gap, "{rate_per_s}");
        }
    }

    #[test]
    fn products_are_rounded_and_bounded() {
        const ONE: u128 = 1 << 64;
        for (left, right, product) in [
            (0, u128::MAX, Some(0)),
            (ONE, ONE, Some(1)),
            (ONE, ONE / 2, Some(1)),
            (ONE, ONE / 2 - 1, Some(0)),
            (ONE * 5 / 2, ONE * 7 / 2, Some(9)),
            (ONE * ((1 << 63) - 1), ONE * 2, Some(u64::MAX - 1)),
            (ONE << 32, ONE << 32, None),
            (u128::MAX, ONE, None),
            (u128::MAX, u128::MAX, None),
        ] {
            assert_eq!(times(left, right), product, "{left} {right}");
            assert_eq!(times(right, left), product, "{right} {left}");
        }
    }

    #[test]
    fn positions_keep_their_order_as_doubles() {
        const PART: u128 = (1 << 64) - 1;
        for whole in [0u128, 1, 7, (1 << 53) - 1, 1 << 53, (1 << 53) + 3, 1 << 62] {
            let last = whole << 64 | PART;
            let values = [whole << 64, whole << 64 | 1, last - 1, last, last + 1].map(arrivals);
            assert!(values.is_sorted(), "{values:?}");
            assert_eq!(values[0], whole as f64);
        }
        assert_eq!(arrivals(5 << 62), 1.25);
    }
}
