//! Think times: pauses of users between a reply and their next request.

use serde::{Deserialize, Serialize};

use crate::arrivals::draw;

/// How think times are spread around their mean.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ThinkSpread {
    /// All are the same.
    #[default]
    Fixed,
    /// Exponentially, as of users that go on at any time.
    #[serde(rename = "exp")]
    Exponential,
    /// Evenly, from 0 to twice the mean.
    Uniform,
}

impl ThinkSpread {
    /// The name of the distribution, as typed, stored and printed.
    pub fn name(self) -> &'static str {
        match self {
            Self::Fixed => "fixed",
            Self::Exponential => "exp",
            Self::Uniform => "uniform",
        }
    }
}

/// The think times of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ThinkTime {
    /// The mean think time, nanoseconds; 0 for none.
    pub mean_ns: u64,
    /// How think times are spread around their mean.
    pub spread: ThinkSpread,
    /// Seed of their random numbers.
    pub seed: u64,
}

/// The think times of one worker. The same seed gives the same ones everywhere.
#[derive(Clone, Debug)]
pub struct ThinkTimes {
    of: ThinkTime,
    seed: u64,
    index: u64,
}

impl ThinkTime {
    /// The think times of the worker with this number.
    pub fn times(self, worker: u32) -> ThinkTimes {
        // Far from the numbers that arrivals take from the same seed.
        const FAR: u64 = 1 << 40;
        ThinkTimes {
            of: self,
            seed: draw(self.seed, FAR + u64::from(worker)),
            index: 0,
        }
    }
}

impl ThinkTimes {
    /// The next one, nanoseconds.
    pub fn next_ns(&mut self) -> u64 {
        let mean_ns = self.of.mean_ns as f64;
        match self.of.spread {
            _ if self.of.mean_ns == 0 => 0,
            ThinkSpread::Fixed => self.of.mean_ns,
            ThinkSpread::Exponential => (-libm::log(self.uniform()) * mean_ns) as u64,
            ThinkSpread::Uniform => (self.uniform() * 2.0 * mean_ns) as u64,
        }
    }

    /// What is left of a think time that began at some instant before the load, nanoseconds: users
    /// who are there already do not all begin at once.
    pub fn rest_ns(&mut self) -> u64 {
        let mean_ns = self.of.mean_ns as f64;
        match self.of.spread {
            _ if self.of.mean_ns == 0 => 0,
            ThinkSpread::Fixed => (self.uniform() * mean_ns) as u64,
            // What is left of it is as long as a whole one.
            ThinkSpread::Exponential => self.next_ns(),
            // An instant falls rather into a long one: this is the inverse of x/m - x²/4m².
            ThinkSpread::Uniform => ((1.0 - self.uniform().sqrt()) * 2.0 * mean_ns) as u64,
        }
    }

    /// A number in (0, 1].
    fn uniform(&mut self) -> f64 {
        let drawn = draw(self.seed, self.index);
        self.index = self.index.wrapping_add(1);
        ((drawn >> 11) + 1) as f64 * 2f64.powi(-53)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MEAN_NS: u64 = 1_000_000;
    const COUNT: u64 = 100_000;

    /// Mean and largest of many, in means.
    fn moments(next_ns: impl Fn(&mut ThinkTimes) -> u64, spread: ThinkSpread) -> (f64, f64) {
        let think_time = ThinkTime {
            mean_ns: MEAN_NS,
            spread,
            seed: 7,
        };
        let mut times = think_time.times(3);
        let all: Vec<_> = (0..COUNT).map(|_| next_ns(&mut times)).collect();
        let sum: u64 = all.iter().sum();
        let max = all.iter().max().copied().unwrap_or(0);
        let mean_ns = MEAN_NS as f64;
        (sum as f64 / COUNT as f64 / mean_ns, max as f64 / mean_ns)
    }

    #[test]
    fn times_have_their_mean_and_what_is_left_of_them_that_of_renewal_theory() {
        use ThinkSpread::{Exponential, Fixed, Uniform};
        for (spread, mean, max, rest_mean, rest_max) in [
            (Fixed, 1.0, 1.0, 0.5, 1.0),
            (Exponential, 1.0, 37.0, 1.0, 37.0),
            // The mean of what is left is half of E[x²]/E[x].
            (Uniform, 1.0, 2.0, 2.0 / 3.0, 2.0),
        ] {
            for (found, mean, max) in [
                (moments(ThinkTimes::next_ns, spread), mean, max),
                (moments(ThinkTimes::rest_ns, spread), rest_mean, rest_max),
            ] {
                assert!((found.0 - mean).abs() < 0.02, "{spread:?}: {found:?}");
                assert!(found.1 <= max, "{spread:?}: {found:?}");
                assert!(
                    spread == Exponential || found.1 > 0.97 * max,
                    "{spread:?}: {found:?}"
                );
            }
        }
    }

    #[test]
    fn a_seed_gives_each_worker_its_own_times() {
        let times = |seed, worker| {
            let think_time = ThinkTime {
                mean_ns: MEAN_NS,
                spread: ThinkSpread::Uniform,
                seed,
            };
            let mut times = think_time.times(worker);
            [times.next_ns(), times.next_ns(), times.rest_ns()]
        };
        assert_eq!(times(1, 0), times(1, 0));
        assert_ne!(times(1, 0), times(1, 1));
        assert_ne!(times(1, 0), times(2, 0));
    }

    #[test]
    fn none_is_none() {
        let mut times = ThinkTime::default().times(0);
        assert_eq!((times.next_ns(), times.rest_ns()), (0, 0));
    }
}
