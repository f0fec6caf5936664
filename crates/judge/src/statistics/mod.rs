//! Intervals and tests of statistics, of plain numbers.

#[cfg(test)]
pub(crate) mod reference;

/// The 0.975-quantiles with 1 to 30 degrees of freedom.
const T_975: [f64; 30] = [
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160,
    2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056,
    2.052, 2.048, 2.045, 2.042,
];

/// The 0.975-quantile with so many degrees of freedom, of at least 1; beyond 30 that of 30, which
/// is larger by 4 % at most.
pub(crate) fn quantile_975(freedom: usize) -> f64 {
    T_975[freedom.clamp(1, T_975.len()) - 1]
}

/// The mean of values, and what is known of it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Mean {
    /// The mean itself.
    pub(crate) value: f64,
    /// The standard error of the mean.
    pub(crate) error: f64,
    /// Half the width of its two-sided 95 % confidence interval.
    pub(crate) half_width: f64,
}

impl Mean {
    /// The mean of at least two values. With more than 31, the interval is the one of 31: it is
    /// wider by 2 % at most than it had to be. Absent where the interval is not finite.
    pub(crate) fn of(values: &[f64]) -> Option<Self> {
        let freedom = values.len().checked_sub(1).filter(|&freedom| freedom > 0)?;
        let t = quantile_975(freedom);
        let n = values.len() as f64;
        let value = values.iter().sum::<f64>() / n;
        let squares = values.iter().map(|each| (each - value).powi(2));
        let error = (squares.sum::<f64>() / (n - 1.0) / n).sqrt();
        let half_width = t * error;
        (value.is_finite() && half_width.is_finite()).then_some(Self {
            value,
            error,
            half_width,
        })
    }
}

/// The median of values in ascending order; absent without any.
pub(crate) fn median(ascending: &[f64]) -> Option<f64> {
    let last = ascending.len().checked_sub(1)?;
    let (low, high) = (ascending[last / 2], ascending[last.div_ceil(2)]);
    // Half of an infinite sum is none where both are the same.
    Some(if low == high {
        low
    } else {
        f64::midpoint(low, high)
    })
}

/// What a two-sided 95 % interval leaves out at each end.
const TAIL: f64 = 0.025;
/// Terms of the continued fraction: it takes some `sqrt(max(a, b))` of them.
const TERMS_MAX: u32 = 200_000;
/// A further term changes nothing.
const CONVERGED: f64 = 1e-13;
/// Halvings of the range that holds a share: as fine as a float is.
const HALVINGS: u32 = 60;
/// The number from which on Stirling's series is exact.
const STIRLING_LEAST: f64 = 10.0;

/// The upper end of the two-sided 95 % interval of a share, `count` of `of` that need not be whole
/// numbers (Clopper and Pearson 1934, Biometrika 26). With none of 368 it is just under 1 %.
pub(crate) fn share_at_most(count: f64, of: f64) -> f64 {
    narrowed(1.0, |share| is_share_below(count, of, share)).1
}

/// Whether that end is at most `limit`.
pub(crate) fn is_share_below(count: f64, of: f64, limit: f64) -> bool {
    let others = of - count;
    if others.is_nan() || others <= 0.0 || count < 0.0 {
        return limit >= 1.0;
    }
    // At this share, so few or fewer are counted with this probability: 1 less the function.
    incomplete_beta(limit, count + 1.0, others) >= 1.0 - TAIL
}

/// The largest count of `of`, neither a whole number, whose share is shown to lie below `limit`.
/// Absent where not even none is.
pub(crate) fn count_shown_below(of: f64, limit: f64) -> Option<f64> {
    if !is_share_below(0.0, of, limit) {
        return None;
    }
    let is_too_much = |count| !is_share_below(count, of, limit);
    Some(narrowed(of * limit, is_too_much).0)
}

/// The last number up to `most` of which something is not true, and the first of which it is.
pub(crate) fn narrowed(most: f64, is_true: impl Fn(f64) -> bool) -> (f64, f64) {
    let (mut low, mut high) = (0.0, most);
    for _ in 0..HALVINGS {
        let middle = f64::midpoint(low, high);
        if is_true(middle) {
            high = middle;
        } else {
            low = middle;
        }
    }
    (low, high)
}

/// The regularized incomplete beta function of `x` (0 to 1), `a` and `b` above 0: the share of a
/// beta distribution that lies up to `x`.
fn incomplete_beta(x: f64, a: f64, b: f64) -> f64 {
    if x <= 0.0 {
        return 0.0;
    }
    if x >= 1.0 {
        return 1.0;
    }
    // The fraction converges quickly on this side of the middle.
    if x > (a + 1.0) / (a + b + 2.0) {
        return 1.0 - incomplete_beta(1.0 - x, b, a);
    }
    let logarithm = a * x.ln() + b * (-x).ln_1p() + ln_gamma(a + b) - ln_gamma(a) - ln_gamma(b);
    (logarithm.exp() / a / fraction(x, a, b)).clamp(0.0, 1.0)
}

/// The continued fraction of the incomplete beta function (DLMF 8.17.22), from its first term on,
/// by Lentz's method.
fn fraction(x: f64, a: f64, b: f64) -> f64 {
    let not_zero = |value: f64| if value.abs() < 1e-300 { 1e-300 } else { value };
    let (mut numerators, mut denominators, mut value) = (1.0, 0.0, 1.0);
    for term in 1..=TERMS_MAX {
        let m = f64::from(term / 2);
        let coefficient = if term % 2 == 0 {
            m * (b - m) * x / ((a + 2.0 * m - 1.0) * (a + 2.0 * m))
        } else {
            -(a + m) * (a + b + m) * x / ((a + 2.0 * m) * (a + 2.0 * m + 1.0))
        };
        denominators = 1.0 / not_zero(1.0 + coefficient * denominators);
        numerators = not_zero(1.0 + coefficient / numerators);
        let change = numerators * denominators;
        value *= change;
        if (change - 1.0).abs() < CONVERGED {
            break;
        }
    }
    value
}

/// The logarithm of the gamma function of `x` above 0, by Stirling's series (DLMF 5.11.1).
fn ln_gamma(x: f64) -> f64 {
    let (mut x, mut product) = (x, 1.0);
    while x < STIRLING_LEAST {
        product *= x;
        x += 1.0;
    }
    let squared = x * x;
    let series = (1.0 / 12.0
        - (1.0 / 360.0 - (1.0 / 1_260.0 - 1.0 / (1_680.0 * squared)) / squared) / squared)
        / x;
    let half_log_two_pi = 0.5 * std::f64::consts::TAU.ln();
    (x - 0.5) * x.ln() - x + half_log_two_pi + series - product.ln()
}

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

/// Fewer parts of a window than this do not tell how much a figure varies.
pub(crate) const PARTS_LEAST: usize = 16;
/// How many of the lowest frequencies are averaged. More of them are surer of their mean, which
/// narrows the interval by 4 % with 12 and by 6 % with 16; but they miss variation that lasts for a
/// fiftieth of the window.
const FREQUENCIES: usize = 8;
/// How many are averaged where power falls from frequency to frequency: the values vary as slowly
/// as the window can show, perhaps in a step or a slope.
const FREQUENCIES_FALLING: usize = 4;
/// Power falls where the mean of those is so many times as high as the mean of the others that are
/// looked at. By chance one in 20 windows has it (the 0.95-quantile of Fisher's F with 4 and 28
/// degrees of freedom).
const FALLING: f64 = 2.71;
const FREQUENCIES_SEEN: usize = 32;

/// Half the width of the two-sided 95 % interval of the sum of `values`: how much it would vary
/// from one such window to the next. The values, one for each of a window's parts of equal
/// length, are deviations from what is expected of each, so that their sum is 0. Absent with
/// fewer than [`PARTS_LEAST`].
///
/// The variance of the sum is the power of the values at zero frequency. Nothing is seen there, so
/// it is estimated by the mean over the lowest frequencies, of cosines with 1, 2, ... half periods
/// in the window. With as many degrees of freedom as there are frequencies, the sum has Student's t
/// distribution.
pub(crate) fn half_width_of_sum(values: &[f64]) -> Option<f64> {
    if values.len() < PARTS_LEAST {
        return None;
    }
    let powers = lowest_powers(values);
    let (lowest, above) =
        powers[..FREQUENCIES_SEEN.min(values.len() - 1)].split_at(FREQUENCIES_FALLING);
    let count = if mean(lowest) > FALLING * mean(above) {
        FREQUENCIES_FALLING
    } else {
        FREQUENCIES
    };
    let half = quantile_975(count) * mean(&powers[..count]).sqrt();
    half.is_finite().then_some(half)
}

fn mean(powers: &[f64]) -> f64 {
    powers.iter().sum::<f64>() / powers.len() as f64
}

/// The power of `values` at each of the lowest frequencies: if it were the same everywhere, the
/// variance of their sum.
fn lowest_powers(values: &[f64]) -> [f64; FREQUENCIES_SEEN] {
    let mut amplitudes = [0.0; FREQUENCIES_SEEN];
    for (part, value) in values.iter().enumerate() {
        let cosine = (std::f64::consts::PI * (part as f64 + 0.5) / values.len() as f64).cos();
        // cos((k + 1) x) = 2 cos(x) cos(k x) - cos((k - 1) x)
        let (mut before, mut at) = (1.0, cosine);
        for amplitude in &mut amplitudes {
            *amplitude += value * at;
            (before, at) = (at, 2.0 * cosine * at - before);
        }
    }
    amplitudes.map(|amplitude| 2.0 * amplitude * amplitude)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    use crate::statistics::reference::Noise;

    #[test]
    fn equal_values_have_no_width_and_many_that_of_31() {
        let mean = Mean::of(&[4.0; 5]).expect("values enough");
        assert_eq!((mean.value, mean.half_width), (4.0, 0.0));
        let many: Vec<f64> = (0..1_000).map(|i| f64::from(i % 2)).collect();
        let mean = Mean::of(&many).expect("values enough");
        assert!((mean.half_width / mean.error - 2.042).abs() < 1e-9);
    }

    #[test]
    fn what_has_no_interval_is_absent() {
        for values in [&[][..], &[7.0], &[1.0, f64::INFINITY], &[f64::MAX; 4]] {
            assert_eq!(Mean::of(values), None, "{values:?}");
        }
    }

    #[test]
    fn none_of_few_may_be_many() {
        // The least of which none shows that a share is under the limit: as many as a quantile
        // needs.
        for (limit, needed) in [(0.5, 6.0), (0.1, 36.0), (0.01, 368.0), (0.001, 3_688.0)] {
            assert!(is_share_below(0.0, needed, limit), "{limit}");
            assert!(!is_share_below(0.0, needed - 1.0, limit), "{limit}");
        }
    }

    #[test]
    fn ends_without_a_range() {
        for (count, of) in [(0.0, 0.0), (5.0, 5.0), (6.0, 5.0), (f64::NAN, 5.0)] {
            assert!(!is_share_below(count, of, 0.999), "{count} of {of}");
            assert!(share_at_most(count, of) >= 1.0 - 1e-12, "{count} of {of}");
        }
        assert!(share_at_most(1e9, 1e12) < 0.001_001);
    }

    #[test]
    fn few_and_equal_values_have_no_trend() {
        // (values, slope)
        let cases: [(&[f64], f64); 4] = [
            (&[7.0; 9], 0.0),
            (&[1.0, 9.0], 8.0),
            (&[1.0], 0.0),
            (&[], 0.0),
        ];
        for (values, slope) in cases {
            assert_eq!(mann_kendall_z(values), 0.0, "{values:?}");
            assert_eq!(theil_sen_slope(values), slope, "{values:?}");
        }
    }

    proptest! {
        #[test]
        fn a_trend_turns_with_its_values(values in prop::collection::vec(-1e6_f64..1e6, 0..40)) {
            let turned: Vec<_> = values.iter().map(|value| -value).collect();
            prop_assert_eq!(mann_kendall_z(&turned), -mann_kendall_z(&values));
            prop_assert!((theil_sen_slope(&turned) + theil_sen_slope(&values)).abs() < 1e-6);
        }
    }

    /// Deviations of `values` from their mean.
    fn deviations(values: &[f64]) -> Vec<f64> {
        let mean = values.iter().sum::<f64>() / values.len() as f64;
        values.iter().map(|value| value - mean).collect()
    }

    #[test]
    fn the_interval_of_a_sum_holds_it() {
        const RUNS: usize = 1_000;
        // (correlation of neighbours, parts, least and most mean width against the true one)
        for (correlation, parts, least, most) in [
            (0.0, 20, 1.05, 1.25),
            (0.0, 100, 1.05, 1.25),
            (0.5, 100, 1.05, 1.25),
            (0.8, 100, 0.95, 1.25),
            (-0.5, 100, 1.05, 1.35),
        ] {
            let mut noise = Noise::new(7);
            let (mut held, mut widths) = (0, 0.0);
            for _ in 0..RUNS {
                let mut level = noise.normal();
                let innovation = f64::sqrt(1.0 - correlation * correlation);
                let values: Vec<f64> = (0..parts)
                    .map(|_| {
                        level = correlation * level + innovation * noise.normal();
                        level
                    })
                    .collect();
                let sum: f64 = values.iter().sum();
                let half = half_width_of_sum(&deviations(&values)).expect("parts enough");
                held += usize::from(sum.abs() <= half);
                widths += half / RUNS as f64;
            }
            let long_run = (1.0 + correlation) / (1.0 - correlation);
            let width = widths / (1.96 * (parts as f64 * long_run).sqrt());
            let share = held as f64 / RUNS as f64;
            assert!(share >= 0.93, "{correlation} {parts}: {share}");
            assert!(
                least < width && width < most,
                "{correlation} {parts}: {width}"
            );
        }
    }

    #[test]
    fn a_step_and_a_slope_are_seen_and_even_values_have_no_width() {
        let even = vec![0.0; 100];
        assert_eq!(half_width_of_sum(&even), Some(0.0));
        let step: Vec<f64> = (0..100)
            .map(|part| if part < 50 { -1.0 } else { 1.0 })
            .collect();
        let slope: Vec<f64> = (0..100).map(|part| f64::from(part) / 49.5 - 1.0).collect();
        for values in [step, slope] {
            let half = half_width_of_sum(&values).expect("100 parts");
            assert!(half > 100.0 / 2.0, "{half}");
        }
        // By turns: the sum of any stretch is 0 or 1.
        let turns: Vec<f64> = (0..100).map(|part| f64::from(part % 2) - 0.5).collect();
        assert!(half_width_of_sum(&turns).expect("100 parts") < 3.0);
    }

    #[test]
    fn few_parts_say_nothing() {
        assert_eq!(half_width_of_sum(&[1.0; PARTS_LEAST - 1]), None);
        assert!(half_width_of_sum(&[1.0; PARTS_LEAST]).is_some());
        for value in [f64::NAN, f64::INFINITY, f64::MAX] {
            let mut values = [1.0; PARTS_LEAST];
            values[3] = value;
            assert_eq!(half_width_of_sum(&values), None, "{value}");
        }
    }
}
