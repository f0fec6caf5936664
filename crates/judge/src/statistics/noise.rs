//! Random numbers with known distributions, for tests of what is estimated from them.

use rand_pcg::Pcg64Mcg;
use rand_pcg::rand_core::{RngCore as _, SeedableRng as _};

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
