//! The amounts of a plan, which are divided among agents and added up by merging.

use std::num::NonZeroU32;
use std::ops::Range;

use serde::{Deserialize, Serialize};

use crate::{LoadModel, Plan, Schedule, Stage, share};

/// What rounding does to a sum of rates, as a share of it, at most.
const RATE_ROUNDING: f64 = 1e-9;

/// The rates of a stage of a schedule.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct StageRates {
    /// Arrivals per second at its start.
    pub from_per_s: f64,
    /// Arrivals per second at its end.
    pub to_per_s: f64,
}

/// The amounts of a plan, or an agent's share of them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Amounts {
    /// Connections held at once; with a schedule of connections, most at once.
    pub connections: u32,
    /// Connections that there can be in an open loop; null otherwise.
    pub connections_max: Option<u32>,
    /// Worker threads.
    pub workers: u32,
    /// Measured requests; null when only a duration was given.
    pub requests: Option<u64>,
    /// Connections that set-up opens per second; null for no limit.
    pub connect_per_s: Option<f64>,
    /// Arrivals per second throughout; null with stages or without a schedule.
    pub rate_per_s: Option<f64>,
    /// Arrivals per second at the start and the end of each stage; empty without stages.
    pub stages: Vec<StageRates>,
    /// Arrivals that can wait at once; null without a schedule.
    pub queue_max: Option<u32>,
}

impl Amounts {
    /// What these of the `workers` that there are have of them. `requests` are theirs already.
    pub(crate) fn part(&self, workers: Range<u32>, requests: Option<u64>) -> Self {
        let all = self.workers;
        let of = |total: u32, least: u32| {
            let shares = workers.clone();
            shares
                .map(|worker| share(total, all, worker).max(least))
                .sum()
        };
        let mut part = Self {
            connections: of(self.connections, 0),
            connections_max: self.connections_max.map(|most| of(most, 0)),
            workers: workers.len() as u32,
            requests,
            queue_max: self.queue_max.map(|most| of(most, 1)),
            ..self.clone()
        };
        for per_s in part.rates_mut() {
            *per_s = *per_s * workers.len() as f64 / f64::from(all);
        }
        part
    }

    /// All rates.
    fn rates_mut(&mut self) -> impl Iterator<Item = &mut f64> {
        let stages = self.stages.iter_mut();
        let stages = stages.flat_map(|stage| [&mut stage.from_per_s, &mut stage.to_per_s]);
        let others = [&mut self.connect_per_s, &mut self.rate_per_s];
        others.into_iter().flatten().chain(stages)
    }

    /// Adds those of another agent, which are of the same kind.
    pub fn add(&mut self, other: &Self) {
        fn both<T>(own: &mut Option<T>, other: Option<T>, sum: impl Fn(T, T) -> T) {
            *own = own.take().zip(other).map(|(own, other)| sum(own, other));
        }
        self.connections = self.connections.saturating_add(other.connections);
        both(
            &mut self.connections_max,
            other.connections_max,
            u32::saturating_add,
        );
        self.workers = self.workers.saturating_add(other.workers);
        both(&mut self.requests, other.requests, u64::saturating_add);
        both(&mut self.connect_per_s, other.connect_per_s, rate_sum);
        both(&mut self.rate_per_s, other.rate_per_s, rate_sum);
        for (own, other) in self.stages.iter_mut().zip(&other.stages) {
            own.from_per_s = rate_sum(own.from_per_s, other.from_per_s);
            own.to_per_s = rate_sum(own.to_per_s, other.to_per_s);
        }
        both(&mut self.queue_max, other.queue_max, u32::saturating_add);
    }

    /// Whether they are the same but for what rounding does to sums of rates.
    pub fn is_about(&self, other: &Self) -> bool {
        let mut same = other.clone();
        for (theirs, own) in same.rates_mut().zip(self.clone().rates_mut()) {
            if (*own - *theirs).abs() <= RATE_ROUNDING * own.abs().max(theirs.abs()) {
                *theirs = *own;
            }
        }
        *self == same
    }

    /// Connections that there can be at once.
    pub fn connections_most(&self) -> u32 {
        self.connections_max.unwrap_or(0).max(self.connections)
    }
}

impl Plan {
    /// Its amounts: what several agents share out among them.
    pub fn amounts(&self) -> Amounts {
        let schedule = self.model.schedule();
        let stages = schedule.map_or(&[][..], Schedule::stages).iter();
        Amounts {
            connections: self.connections.get(),
            connections_max: match self.model {
                LoadModel::Open {
                    connections_max, ..
                } => Some(connections_max.get()),
                _ => None,
            },
            workers: self.workers.get(),
            requests: self.stop.requests,
            connect_per_s: self.model.connect_per_s(),
            rate_per_s: schedule.and_then(Schedule::rate_per_s),
            stages: stages
                .map(|stage| StageRates {
                    from_per_s: stage.from_per_s,
                    to_per_s: stage.to_per_s,
                })
                .collect(),
            queue_max: self.model.queue_max().map(NonZeroU32::get),
        }
    }

    /// The same plan with these amounts, which are of the same kind. Absent where there is no such
    /// plan: without connections or workers, or at a rate that no schedule has.
    pub fn with_amounts(&self, amounts: &Amounts) -> Option<Self> {
        let mut plan = self.clone();
        plan.connections = NonZeroU32::new(amounts.connections)?;
        plan.workers = NonZeroU32::new(amounts.workers)?;
        plan.stop.requests = amounts.requests;
        match &mut plan.model {
            LoadModel::Closed { connect_per_s } | LoadModel::Held { connect_per_s } => {
                *connect_per_s = amounts.connect_per_s;
            }
            LoadModel::Open {
                schedule,
                connections_max,
                queue_max,
            } => {
                *schedule = with_rates(schedule, amounts)?;
                *connections_max = NonZeroU32::new(amounts.connections_max?)?;
                *queue_max = NonZeroU32::new(amounts.queue_max?)?;
            }
            LoadModel::Sessions {
                schedule,
                queue_max,
            } => {
                *schedule = with_rates(schedule, amounts)?;
                *queue_max = NonZeroU32::new(amounts.queue_max?)?;
            }
        }
        Some(plan)
    }
}

/// The schedule with other rates.
fn with_rates(schedule: &Schedule, amounts: &Amounts) -> Option<Schedule> {
    let (process, seed) = (schedule.process(), schedule.seed());
    let found = match amounts.rate_per_s {
        Some(rate_per_s) => Schedule::constant_rate(process, rate_per_s, seed),
        None => {
            let stages = schedule.stages().iter().zip(&amounts.stages);
            let stages = stages.map(|(stage, rates)| Stage {
                from_per_s: rates.from_per_s,
                to_per_s: rates.to_per_s,
                ..*stage
            });
            Schedule::staged(process, stages.collect(), seed)
        }
    };
    found.ok()
}

/// A sum that is a number, whatever a stored run says.
fn rate_sum(own: f64, other: f64) -> f64 {
    (own + other).clamp(f64::MIN, f64::MAX)
}
