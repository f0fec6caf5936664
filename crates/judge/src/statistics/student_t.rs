//! Student's t: intervals of means of few values.

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_are_those_of_the_tables() {
        // (values, mean, half width)
        let cases: &[(&[f64], f64, f64)] = &[
            (&[1.0, 3.0], 2.0, 12.706),
            (&[4.0; 5], 4.0, 0.0),
            (&[1.0, 2.0, 3.0], 2.0, 4.303 / 3.0_f64.sqrt()),
        ];
        for &(values, value, half_width) in cases {
            let mean = Mean::of(values).expect("values enough");
            assert!((mean.value - value).abs() < 1e-9, "{mean:?}");
            assert!((mean.half_width - half_width).abs() < 1e-9, "{mean:?}");
        }
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
}
