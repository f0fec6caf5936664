//! Arrival processes: the planned instants of an open loop, computed from a rate and a seed.
//!
//! The rate, summed up from the start of load, gives a *position*: how many arrivals are due on
//! average by an instant. A process chooses positions, and a [`Schedule`] tells when each of them
//! is reached. The position of an arrival is counted, or kept with 64 binary places, so errors do
//! not add up over a long run.

mod random;
mod schedule;
mod stretch;

use std::fmt;
use std::iter::FusedIterator;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

pub use schedule::{Schedule, ScheduleError, Stage};

pub(crate) use random::draw;

use random::Exponential;
use stretch::Stretch;

/// How arrivals are spread around the rate. Arrivals are counted from 0 over all workers; Λ(t) is
/// the rate integrated from 0 to t, and Λ⁻¹ its inverse.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ArrivalProcess {
    /// Evenly: arrival k is due at Λ⁻¹(k).
    #[default]
    Constant,
    /// Random, as independent users come: a Poisson process, of which each worker has a share of
    /// its own that is again one. Where the rate changes, it is the inhomogeneous Poisson process
    /// of that rate.
    Poisson,
    /// With even counts and random places: arrival k is due at Λ⁻¹(k + U), where U is uniform in
    /// \[0, 1) and follows from the seed and k alone.
    Uniform,
}

impl ArrivalProcess {
    /// Every process.
    pub const ALL: &'static [Self] = &[Self::Constant, Self::Poisson, Self::Uniform];

    /// The name, as typed and stored.
    pub fn name(self) -> &'static str {
        match self {
            Self::Constant => "constant",
            Self::Poisson => "poisson",
            Self::Uniform => "uniform",
        }
    }
}

impl fmt::Display for ArrivalProcess {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(self.name())
    }
}

/// The arrivals of one worker: offsets from the start of load in nanoseconds, never decreasing.
/// Ends with the last stage; without stages it goes on for as long as 64 bits of nanoseconds do.
#[derive(Clone, Debug)]
pub struct Arrivals {
    positions: Positions,
    /// The stretches in order, without gaps.
    stretches: Arc<[Stretch]>,
    /// The stretch of the last arrival.
    current: usize,
    /// Offsets stay below it.
    end_ns: u64,
}

/// Random steps that [`Arrivals::skip_before`] takes at once, at most.
const STEPS_AT_ONCE: u64 = 4_096;

impl Arrivals {
    /// Passes over the arrivals whose offsets are below `before_ns`, but over `most` of them at
    /// most, and over no more at once than takes some microseconds; gives how many. It is 0 only
    /// where there is none to pass over.
    ///
    /// Where arrivals are numbered this is arithmetic, however many there are.
    pub fn skip_before(&mut self, before_ns: u64, most: u64) -> u64 {
        let is_before = |offset_ns: Option<u64>| offset_ns.is_some_and(|at_ns| at_ns < before_ns);
        if let Positions::Poisson { .. } = self.positions {
            let mut skipped = 0;
            while skipped < most.min(STEPS_AT_ONCE) {
                let (positions, current) = (self.positions.clone(), self.current);
                if !is_before(self.next()) {
                    (self.positions, self.current) = (positions, current);
                    break;
                }
                skipped += 1;
            }
            return skipped;
        }
        // Offsets never decrease: how many are below is found by halving.
        let is_below = |ahead: u64| {
            let mut there = self.clone();
            there.positions.pass_over(ahead) && is_before(there.next())
        };
        let (mut below, mut step) = (0_u64, 1_u64);
        while below + step <= most && is_below(below + step - 1) {
            below += step;
            step = step.saturating_mul(2).min(u64::MAX / 4);
        }
        while step > 0 {
            if below + step <= most && is_below(below + step - 1) {
                below += step;
            }
            step /= 2;
        }
        self.positions.pass_over(below);
        below
    }
}

impl Iterator for Arrivals {
    type Item = u64;

    #[inline]
    fn next(&mut self) -> Option<u64> {
        let position = self.positions.next()?;
        let stretch = loop {
            let stretch = self.stretches.get(self.current)?;
            if position < stretch.end {
                break stretch;
            }
            self.current += 1;
        };
        // Rounding may reach the end of load, which is no longer part of it.
        stretch
            .offset_ns(position)
            .filter(|&offset_ns| offset_ns < self.end_ns)
    }
}

impl FusedIterator for Arrivals {}

/// The positions of a worker's arrivals, increasing, with 64 binary places.
#[derive(Clone, Debug)]
enum Positions {
    Constant(Numbers),
    /// Uniform positions, with their seed.
    Uniform(Numbers, u64),
    Poisson {
        last: u128,
        steps: Exponential,
        /// The mean step: a share of 1 in `mean`.
        mean: u32,
    },
}

impl Positions {
    /// Passes over `count` numbers; false where there are not so many.
    fn pass_over(&mut self, count: u64) -> bool {
        match self {
            Self::Constant(numbers) | Self::Uniform(numbers, _) => {
                let passed = count.checked_mul(numbers.step);
                numbers.next = numbers
                    .next
                    .zip(passed)
                    .and_then(|(next, passed)| next.checked_add(passed));
                numbers.next.is_some()
            }
            Self::Poisson { .. } => count == 0,
        }
    }

    #[inline]
    fn next(&mut self) -> Option<u128> {
        match self {
            Self::Constant(numbers) => Some(u128::from(numbers.next()?) << 64),
            Self::Uniform(numbers, seed) => {
                let number = numbers.next()?;
                Some(u128::from(number) << 64 | u128::from(draw(*seed, number)))
            }
            Self::Poisson { last, steps, mean } => {
                *last = last.checked_add(steps.next_step(*mean))?;
                Some(*last)
            }
        }
    }
}

/// Every n-th arrival, from the first of a worker.
#[derive(Clone, Debug)]
struct Numbers {
    next: Option<u64>,
    step: u64,
}

impl Numbers {
    #[inline]
    fn next(&mut self) -> Option<u64> {
        let number = self.next?;
        self.next = number.checked_add(self.step);
        Some(number)
    }
}
