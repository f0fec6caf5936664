//! How large a share may be of which so many were counted: the exact interval of the binomial
//! distribution.

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
fn narrowed(most: f64, is_true: impl Fn(f64) -> bool) -> (f64, f64) {
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

#[cfg(test)]
mod tests {
    use super::*;

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
}
