//! What statistics are held against: values that R gives, and random numbers with known
//! distributions.

use rand_pcg::Pcg64Mcg;
use rand_pcg::rand_core::{RngCore as _, SeedableRng as _};
use serde::Deserialize;

use crate::Spread;
use crate::comparison::paired::{interval, permutation_p};
use crate::statistics::{Mean, mann_kendall_z, share_at_most, theil_sen_slope};

#[derive(Deserialize)]
struct Share {
    count: f64,
    of: f64,
    upper: f64,
}

#[derive(Deserialize)]
struct Pairs {
    differences: Vec<f64>,
    value: f64,
    low: f64,
    high: f64,
    p_value: f64,
}

#[derive(Deserialize)]
struct Rounds {
    values: Vec<f64>,
    median: f64,
    low: f64,
    high: f64,
}

#[derive(Deserialize)]
struct Interval {
    values: Vec<f64>,
    value: f64,
    error: f64,
    half_width: f64,
}

#[derive(Deserialize)]
struct Trend {
    values: Vec<f64>,
    z: f64,
    slope: f64,
}

#[derive(Deserialize)]
struct Reference {
    binomial: Vec<Share>,
    paired: Vec<Pairs>,
    spread: Vec<Rounds>,
    mean: Vec<Interval>,
    trend: Vec<Trend>,
}

fn reference() -> Reference {
    let text = include_str!("../../fixtures/statistics.json");
    serde_json::from_str(text).expect("it is made by the script")
}

/// Whether the two agree to this share of the larger, or are both that small.
fn assert_near(found: f64, expected: f64, share: f64) {
    let scale = expected.abs().max(1e-9);
    let words = format!("{found}, and {expected} by the other implementation");
    assert!((found - expected).abs() <= share * scale, "{words}");
}

#[test]
fn shares_have_the_interval_of_clopper_and_pearson() {
    for Share { count, of, upper } in reference().binomial {
        // Of many, the large logarithms that cancel leave five digits.
        assert_near(share_at_most(count, of), upper, 1e-5);
    }
}

#[test]
fn pairs_have_the_interval_of_the_signed_rank_test() {
    for pairs in reference().paired {
        let differences = &pairs.differences;
        let found = interval(differences, differences, 0.025).expect("pairs enough");
        assert_near(found.value, pairs.value, 1e-9);
        assert_near(found.low, pairs.low, 1e-9);
        assert_near(found.high, pairs.high, 1e-9);
        assert_near(permutation_p(differences), pairs.p_value, 1e-6);
    }
}

#[test]
fn rounds_have_the_interval_of_order_statistics() {
    for rounds in reference().spread {
        let spread = Spread::of(rounds.values).expect("values");
        assert_near(spread.median, rounds.median, 1e-12);
        assert_near(spread.low.expect("rounds enough"), rounds.low, 1e-12);
        assert_near(spread.high.expect("rounds enough"), rounds.high, 1e-12);
    }
}

#[test]
fn means_have_the_interval_of_student() {
    for mean in reference().mean {
        let found = Mean::of(&mean.values).expect("values enough");
        assert_near(found.value, mean.value, 1e-9);
        assert_near(found.error, mean.error, 1e-9);
        // The table has three digits behind the point.
        assert_near(found.half_width, mean.half_width, 3e-4);
    }
}

#[test]
fn trends_are_those_of_mann_kendall_theil_and_sen() {
    for trend in reference().trend {
        assert_near(mann_kendall_z(&trend.values), trend.z, 1e-9);
        assert_near(theil_sen_slope(&trend.values), trend.slope, 1e-9);
    }
}

/// A source of random numbers: the same ones for the same seed, and others for every other one.
pub(crate) struct Noise {
    source: Pcg64Mcg,
    /// Normal deviates come in pairs.
    second: Option<f64>,
}

impl Noise {
    pub(crate) fn new(seed: u64) -> Self {
        Self {
            // The state must be odd: of seeds as they are, two in a row would be one.
            source: Pcg64Mcg::seed_from_u64(seed),
            second: None,
        }
    }

    /// Evenly between 0 and 1, and neither.
    pub(crate) fn even(&mut self) -> f64 {
        ((self.source.next_u64() >> 11) as f64 + 0.5) / (1_u64 << 53) as f64
    }

    /// Standard normal (Box and Muller).
    pub(crate) fn normal(&mut self) -> f64 {
        if let Some(second) = self.second.take() {
            return second;
        }
        let radius = (-2.0 * self.even().ln()).sqrt();
        let (sine, cosine) = (std::f64::consts::TAU * self.even()).sin_cos();
        self.second = Some(radius * sine);
        radius * cosine
    }

    /// Exponential, of mean 1.
    pub(crate) fn exponential(&mut self) -> f64 {
        -self.even().ln()
    }
}
