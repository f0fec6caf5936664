//! What other numbers of connections do to the rate.

pub(crate) mod halving;

use serde::Serialize;

use crate::statistics::student_t::Mean;

/// What a change of setting did, with a two-sided 95 % confidence interval over the rounds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Effect {
    /// The mean over the rounds.
    pub value: f64,
    /// Lower end of its interval.
    pub low: f64,
    /// Upper end of its interval.
    pub high: f64,
}

impl Effect {
    /// The mean of what each round found, with its interval. Absent for fewer than two rounds.
    pub(crate) fn of(rounds: &[f64]) -> Option<Self> {
        let mean = Mean::of(rounds)?;
        Some(Self {
            value: mean.value,
            low: mean.value - mean.half_width,
            high: mean.value + mean.half_width,
        })
    }
}
