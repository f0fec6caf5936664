//! A schedule: an arrival process, the course of its rate, and a seed.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::random::Exponential;
use super::stretch::Stretch;
use super::{ArrivalProcess, Arrivals, Numbers, Positions};

/// Why there is no such schedule.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum ScheduleError {
    /// A constant rate that is not above 0, not finite or too high.
    #[error("a rate must be above 0 and at most 1g a second")]
    Rate,
    /// A rate of a stage that is negative, not finite or too high.
    #[error("stage {stage}: a rate must be 0 or more and at most 1g a second")]
    StageRate {
        /// The number of the stage, from 1.
        stage: usize,
    },
    /// A stage that lasts no time.
    #[error("stage {stage}: it must last longer than 0 s")]
    StageDuration {
        /// The number of the stage, from 1.
        stage: usize,
    },
    /// No stage, or a rate of 0 throughout.
    #[error("nothing ever arrives; at least one stage must have a rate above 0")]
    Silent,
    /// More stages than [`Schedule::STAGES_MAX`].
    #[error("{0} stages are too many; at most 1000 are possible")]
    TooMany(usize),
    /// Longer than [`Schedule::DURATION_MAX_NS`] together.
    #[error("the stages last longer than ten years together")]
    TooLong,
}

/// When arrivals are planned: a pure function of the process, the course of the rate and the seed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "StoredSchedule", into = "StoredSchedule")]
pub struct Schedule {
    process: ArrivalProcess,
    seed: u64,
    /// The rate of a schedule without stages, arrivals per second; else 0.
    endless_per_s: f64,
    /// Empty in an endless schedule.
    stages: Vec<Stage>,
    /// The stages, placed; or the one endless stretch.
    stretches: Arc<[Stretch]>,
}

/// A schedule as it is stored.
#[derive(Serialize, Deserialize)]
struct StoredSchedule {
    /// How arrivals are spread around the rate.
    process: ArrivalProcess,
    /// Arrivals per second throughout; null with stages.
    rate_per_s: Option<f64>,
    /// The stages; empty for one rate throughout.
    stages: Vec<Stage>,
    /// Where the random numbers begin.
    seed: u64,
}

impl TryFrom<StoredSchedule> for Schedule {
    type Error = ScheduleError;

    fn try_from(stored: StoredSchedule) -> Result<Self, ScheduleError> {
        let StoredSchedule {
            process,
            rate_per_s,
            stages,
            seed,
        } = stored;
        match rate_per_s {
            Some(rate_per_s) if stages.is_empty() => Self::constant_rate(process, rate_per_s, seed),
            _ => Self::staged(process, stages, seed),
        }
    }
}

impl From<Schedule> for StoredSchedule {
    fn from(schedule: Schedule) -> Self {
        Self {
            process: schedule.process,
            rate_per_s: schedule.rate_per_s(),
            stages: schedule.stages,
            seed: schedule.seed,
        }
    }
}

impl Schedule {
    /// The highest rate, arrivals per second: one per nanosecond.
    pub const RATE_MAX_PER_S: f64 = 1e9;
    /// The most stages.
    pub const STAGES_MAX: usize = 1_000;
    /// The longest time that stages may last together, nanoseconds: ten years.
    pub const DURATION_MAX_NS: u64 = 10 * 365 * 86_400 * 1_000_000_000;

    /// A constant rate without end, arrivals per second. With the constant process arrival k is
    /// due at k / `rate_per_s`, rounded to the nearest nanosecond.
    ///
    /// # Errors
    ///
    /// A rate that is not above 0, not finite or above [`Self::RATE_MAX_PER_S`].
    pub fn constant_rate(
        process: ArrivalProcess,
        rate_per_s: f64,
        seed: u64,
    ) -> Result<Self, ScheduleError> {
        if !is_rate(rate_per_s) || rate_per_s == 0.0 {
            return Err(ScheduleError::Rate);
        }
        Ok(Self {
            process,
            seed,
            endless_per_s: rate_per_s,
            stages: Vec::new(),
            stretches: Arc::new([Stretch::endless(rate_per_s)]),
        })
    }

    /// One stage after another; load ends with the last one.
    ///
    /// # Errors
    ///
    /// What [`Self::check_stages`] refuses.
    pub fn staged(
        process: ArrivalProcess,
        stages: Vec<Stage>,
        seed: u64,
    ) -> Result<Self, ScheduleError> {
        Self::check_stages(&stages)?;
        Ok(Self::place(process, stages, seed))
    }

    /// Whether a schedule can be made of these stages.
    ///
    /// # Errors
    ///
    /// A rate that is negative, not finite or above [`Self::RATE_MAX_PER_S`]; no rate above 0; a
    /// duration of 0; more than [`Self::STAGES_MAX`] stages; more than [`Self::DURATION_MAX_NS`].
    pub fn check_stages(stages: &[Stage]) -> Result<(), ScheduleError> {
        if stages.len() > Self::STAGES_MAX {
            return Err(ScheduleError::TooMany(stages.len()));
        }
        let mut total_ns = 0u64;
        for (stage, number) in stages.iter().zip(1..) {
            if !is_rate(stage.from_per_s) || !is_rate(stage.to_per_s) {
                return Err(ScheduleError::StageRate { stage: number });
            }
            if stage.duration_ns == 0 {
                return Err(ScheduleError::StageDuration { stage: number });
            }
            total_ns = total_ns.saturating_add(stage.duration_ns);
        }
        if total_ns > Self::DURATION_MAX_NS {
            return Err(ScheduleError::TooLong);
        }
        if stages
            .iter()
            .all(|stage| stage.from_per_s + stage.to_per_s == 0.0)
        {
            return Err(ScheduleError::Silent);
        }
        Ok(())
    }

    /// The stages are valid, apart from their number.
    fn place(process: ArrivalProcess, stages: Vec<Stage>, seed: u64) -> Self {
        let mut stretches: Vec<Stretch> = Vec::with_capacity(stages.len());
        for stage in &stages {
            stretches.push(Stretch::after(stretches.last(), stage));
        }
        Self {
            process,
            seed,
            endless_per_s: 0.0,
            stages,
            stretches: stretches.into(),
        }
    }

    /// This schedule after a lead (a warm-up) of this many nanoseconds at its first rate. The lead
    /// is silent where the schedule starts at 0. It is cut where both together would last longer
    /// than twice [`Self::DURATION_MAX_NS`]. An endless schedule is at its rate already and stays
    /// as it is.
    #[must_use]
    pub fn after(self, lead_ns: u64) -> Self {
        let (Some(&Stage { from_per_s, .. }), Some(stages_ns)) =
            (self.stages.first(), self.duration_ns())
        else {
            return self;
        };
        let duration_ns = lead_ns.min(2 * Self::DURATION_MAX_NS - stages_ns);
        if duration_ns == 0 {
            return self;
        }
        let lead = Stage {
            duration_ns,
            from_per_s,
            to_per_s: from_per_s,
        };
        let mut stages = self.stages;
        stages.insert(0, lead);
        Self::place(self.process, stages, self.seed)
    }

    /// How arrivals are spread around the rate.
    pub fn process(&self) -> ArrivalProcess {
        self.process
    }

    /// Where the random numbers begin.
    pub fn seed(&self) -> u64 {
        self.seed
    }

    /// This schedule with `seed` for its random numbers.
    #[must_use]
    pub(crate) fn with_seed(mut self, seed: u64) -> Self {
        self.seed = seed;
        self
    }

    /// The stages, with a lead as the first; empty in an endless schedule.
    pub fn stages(&self) -> &[Stage] {
        &self.stages
    }

    /// The rate of a schedule without stages, arrivals per second.
    pub fn rate_per_s(&self) -> Option<f64> {
        self.stages.is_empty().then_some(self.endless_per_s)
    }

    /// Whether the rate is planned to change.
    pub fn varies(&self) -> bool {
        let stages = self.stages.iter();
        let mut rates = stages.flat_map(|stage| [stage.from_per_s, stage.to_per_s]);
        let first = rates.next();
        rates.any(|rate| Some(rate) != first)
    }

    /// How long the stages last together, nanoseconds; `None` without end.
    pub fn duration_ns(&self) -> Option<u64> {
        (!self.stages.is_empty()).then(|| self.stages.iter().map(|stage| stage.duration_ns).sum())
    }

    /// The rate at an offset from the start of load, arrivals per second. At a step it is the new
    /// rate; after the last stage 0.
    pub fn rate_at(&self, offset_ns: u64) -> f64 {
        let mut offset_ns = offset_ns;
        for stage in &self.stages {
            if offset_ns < stage.duration_ns {
                return stage.rate_at(offset_ns);
            }
            offset_ns -= stage.duration_ns;
        }
        self.endless_per_s
    }

    /// The highest rate, arrivals per second.
    pub fn rate_max(&self) -> f64 {
        self.stages
            .iter()
            .map(|stage| stage.from_per_s.max(stage.to_per_s))
            .fold(self.endless_per_s, f64::max)
    }

    /// Expected number of arrivals, over all workers, in `from_ns <= offset < to_ns`: the integral
    /// of the rate.
    pub fn expected(&self, from_ns: u64, to_ns: u64) -> f64 {
        if self.stages.is_empty() {
            return expected(to_ns.saturating_sub(from_ns), self.endless_per_s);
        }
        let mut sum = 0.0;
        let mut start_ns = 0;
        for stage in &self.stages {
            let end_ns = start_ns + stage.duration_ns;
            let (first_ns, last_ns) = (from_ns.max(start_ns), to_ns.min(end_ns));
            if first_ns < last_ns {
                let part = Stage {
                    duration_ns: last_ns - first_ns,
                    from_per_s: stage.rate_at(first_ns - start_ns),
                    to_per_s: stage.rate_at(last_ns - start_ns),
                };
                sum += part.expected();
            }
            start_ns = end_ns;
        }
        sum
    }

    /// The arrivals of one worker, numbered from 0, out of several (at least 1). The arrivals of
    /// all workers are those of the schedule. The constant and the uniform process have the same
    /// arrivals however many workers share them: arrival k falls to worker k modulo `workers`. The
    /// Poisson process has other arrivals for each number of workers.
    pub fn arrivals(&self, worker: u32, workers: u32) -> Arrivals {
        debug_assert!(worker < workers, "worker {worker} of {workers}");
        let numbers = Numbers {
            next: Some(worker.into()),
            step: workers.into(),
        };
        Arrivals {
            positions: match self.process {
                ArrivalProcess::Constant => Positions::Constant(numbers),
                ArrivalProcess::Uniform => Positions::Uniform(numbers, self.seed),
                ArrivalProcess::Poisson => Positions::Poisson {
                    last: 0,
                    steps: Exponential::new(self.seed, worker),
                    mean: workers,
                },
            },
            stretches: Arc::clone(&self.stretches),
            current: 0,
            end_ns: self.duration_ns().unwrap_or(u64::MAX),
        }
    }
}

/// Whether a rate is possible, or 0.
fn is_rate(rate_per_s: f64) -> bool {
    (0.0..=Schedule::RATE_MAX_PER_S).contains(&rate_per_s)
}

/// A rate that changes linearly over a time; equal rates at both ends hold it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Stage {
    /// How long it lasts, nanoseconds; above 0.
    pub duration_ns: u64,
    /// The rate at its start, arrivals per second; 0 to [`super::Schedule::RATE_MAX_PER_S`].
    pub from_per_s: f64,
    /// The rate at its end, arrivals per second; 0 to [`super::Schedule::RATE_MAX_PER_S`].
    pub to_per_s: f64,
}

impl Stage {
    /// The rate at an offset from its start.
    pub(super) fn rate_at(&self, offset_ns: u64) -> f64 {
        let part = offset_ns as f64 / self.duration_ns as f64;
        self.from_per_s + (self.to_per_s - self.from_per_s) * part
    }

    /// Expected number of arrivals.
    pub(super) fn expected(&self) -> f64 {
        expected(self.duration_ns, (self.from_per_s + self.to_per_s) / 2.0)
    }
}

/// Expected number of arrivals at a rate.
pub(super) fn expected(duration_ns: u64, rate_per_s: f64) -> f64 {
    // Divided last: exact for whole rates and times of usual size.
    duration_ns as f64 * rate_per_s / 1e9
}
