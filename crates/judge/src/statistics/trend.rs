//! Trends in a sequence of values: the Mann-Kendall test and the Theil-Sen slope.

/// The Mann-Kendall statistic, corrected for ties and for continuity: near a standard normal
/// deviate where there is no trend, so above 2.58 in magnitude once in a hundred times. Positive
/// where the values rise. 0 for fewer than three values, and where all are equal.
pub(crate) fn mann_kendall_z(values: &[f64]) -> f64 {
    let n = values.len();
    if n < 3 {
        return 0.0;
    }
    let mut rises = 0_i64;
    for (i, earlier) in values.iter().enumerate() {
        for later in &values[i + 1..] {
            rises += i64::from(later > earlier) - i64::from(later < earlier);
        }
    }
    let mut sorted = values.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    let pairs = |n: f64| n * (n - 1.0) * (2.0 * n + 5.0);
    let ties: f64 = sorted
        .chunk_by(|a, b| a == b)
        .map(|equal| pairs(equal.len() as f64))
        .sum();
    let variance = (pairs(n as f64) - ties) / 18.0;
    if variance <= 0.0 {
        return 0.0;
    }
    (rises - rises.signum()) as f64 / variance.sqrt()
}

/// The Theil-Sen slope, per step from one value to the next: the median over all pairs. 0 for
/// fewer than two values.
pub(crate) fn theil_sen_slope(values: &[f64]) -> f64 {
    let mut slopes = Vec::with_capacity(values.len() * values.len().saturating_sub(1) / 2);
    for (i, earlier) in values.iter().enumerate() {
        for (steps, later) in values[i + 1..].iter().enumerate() {
            slopes.push((later - earlier) / (steps + 1) as f64);
        }
    }
    if slopes.is_empty() {
        return 0.0;
    }
    let (middle, is_odd) = (slopes.len() / 2, slopes.len() % 2 == 1);
    let (below, &mut upper, _) = slopes.select_nth_unstable_by(middle, f64::total_cmp);
    match below.iter().copied().max_by(f64::total_cmp) {
        Some(lower) if !is_odd => f64::midpoint(lower, upper),
        _ => upper,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn known_values() {
        // (values, Z, slope). The first is the textbook's: S = 10, variance 5 * 4 * 15 / 18.
        let cases: &[(&[f64], f64, f64)] = &[
            (&[1.0, 2.0, 3.0, 4.0, 5.0], 9.0 / 16.666_667_f64.sqrt(), 1.0),
            (
                &[5.0, 4.0, 3.0, 2.0, 1.0],
                -9.0 / 16.666_667_f64.sqrt(),
                -1.0,
            ),
            // One pair of equal values: S = 5, variance (4 * 3 * 13 - 2 * 1 * 9) / 18.
            (&[1.0, 2.0, 2.0, 3.0], 4.0 / 7.666_667_f64.sqrt(), 0.583_333),
            (&[7.0; 9], 0.0, 0.0),
            (&[1.0, 9.0], 0.0, 8.0),
            (&[1.0], 0.0, 0.0),
            (&[], 0.0, 0.0),
            // One wild value does not move the slope.
            (
                &[0.0, 1.0, 2.0, 900.0, 4.0, 5.0, 6.0],
                14.0 / 44.333_333_f64.sqrt(),
                1.0,
            ),
        ];
        for (values, z, slope) in cases {
            assert!(
                (mann_kendall_z(values) - z).abs() < 1e-3,
                "{values:?}: {}",
                mann_kendall_z(values)
            );
            let given = theil_sen_slope(values);
            assert!((given - slope).abs() < 1e-3, "{values:?}: {given}");
        }
    }

    proptest! {
        #[test]
        fn a_trend_turns_with_its_values(values in prop::collection::vec(-1e6_f64..1e6, 0..40)) {
            let turned: Vec<_> = values.iter().map(|value| -value).collect();
            prop_assert_eq!(mann_kendall_z(&turned), -mann_kendall_z(&values));
            prop_assert!((theil_sen_slope(&turned) + theil_sen_slope(&values)).abs() < 1e-6);
        }

        #[test]
        fn a_straight_line_has_its_slope(n in 2_usize..60, slope in -100.0_f64..100.0) {
            let values: Vec<_> = (0..n).map(|i| slope * i as f64).collect();
            prop_assert!((theil_sen_slope(&values) - slope).abs() < 1e-6);
        }
    }
}
