//! The amounts of a plan, which are divided among agents and added up by merging.

use std::num::NonZeroU32;
use std::ops::Range;

use serde::{Deserialize, Serialize};

use crate::{LoadModel, Plan, Schedule, Stage};

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
        let schedule = self.load.model.schedule();
        let stages = schedule.map_or(&[][..], Schedule::stages).iter();
        Amounts {
            connections: self.load.connections.get(),
            connections_max: match self.load.model {
                LoadModel::Open {
                    connections_max, ..
                } => Some(connections_max.get()),
                _ => None,
            },
            workers: self.workers.count.get(),
            requests: self.load.stop.requests,
            connect_per_s: self.load.model.connect_per_s(),
            rate_per_s: schedule.and_then(Schedule::rate_per_s),
            stages: stages
                .map(|stage| StageRates {
                    from_per_s: stage.from_per_s,
                    to_per_s: stage.to_per_s,
                })
                .collect(),
            queue_max: self.load.model.queue_max().map(NonZeroU32::get),
        }
    }

    /// This plan with these amounts, which are of the same kind. Absent where there is no such
    /// plan: without connections or workers, or at a rate that no schedule has.
    pub fn with_amounts(&self, amounts: &Amounts) -> Option<Self> {
        let mut plan = self.clone();
        plan.load.connections = NonZeroU32::new(amounts.connections)?;
        plan.workers.count = NonZeroU32::new(amounts.workers)?;
        plan.load.stop.requests = amounts.requests;
        match &mut plan.load.model {
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

/// The share of part `index` (from 0) when `total` is split over `parts`: shares add up to the
/// total and differ by one at most.
pub fn share(total: u32, parts: u32, index: u32) -> u32 {
    total / parts + u32::from(index < total % parts)
}

/// The share of part `index` (from 0) when a large `total` is split over `parts`: shares add up to
/// the total and differ by one at most.
pub fn share_u64(total: u64, parts: u32, index: u32) -> u64 {
    let parts = u64::from(parts);
    total / parts + u64::from(u64::from(index) < total % parts)
}

/// The workers of a plan that one of several agents has, by their numbers. Each worker does what it
/// would do if one process had all of them, so that the merged runs of all agents are a run of the
/// plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Part {
    first: u32,
    workers: NonZeroU32,
}

impl Part {
    /// So many workers from number `first` on.
    pub fn new(first: u32, workers: NonZeroU32) -> Self {
        Self { first, workers }
    }

    /// Part `index` (from 0) of `parts`, which divide `workers` among them, in order and as evenly
    /// as possible. Absent where there is no such part, and with fewer workers than parts.
    pub fn nth(index: u32, parts: NonZeroU32, workers: NonZeroU32) -> Option<Self> {
        let (workers, parts) = (workers.get(), parts.get());
        if index >= parts || parts > workers {
            return None;
        }
        let first = index * (workers / parts) + index.min(workers % parts);
        let workers = NonZeroU32::new(share(workers, parts, index))?;
        Some(Self::new(first, workers))
    }

    /// Their numbers.
    pub fn workers(self) -> Range<u32> {
        self.first..self.first.saturating_add(self.workers.get())
    }
}

impl Plan {
    /// What these of its workers do, as a plan of their own: the same with their share of the
    /// amounts. Absent where that is no plan.
    pub fn part(&self, workers: Range<u32>) -> Option<Self> {
        if workers == (0..self.workers.count.get()) {
            return Some(self.clone());
        }
        let requests = self.requests_of(workers.clone());
        self.with_amounts(&self.amounts().part(workers, requests))
    }

    /// Requests of a run by count that these of its workers have among them, where they share none
    /// with the others: in a closed loop by their connections, else as the arrivals are dealt.
    pub fn requests_of(&self, workers: Range<u32>) -> Option<u64> {
        let requests = self.load.stop.requests?;
        let all = self.workers.count.get();
        Some(match self.load.model {
            LoadModel::Closed { .. } | LoadModel::Held { .. } if !self.traffic.has_equal_parts => {
                let connections = self.load.connections.get();
                let of = |worker| share(connections, all, worker);
                let before = |worker: u32| (0..worker).map(of).sum();
                let dealt = |worker| dealt_to(requests, before(worker), connections);
                dealt(workers.end) - dealt(workers.start)
            }
            _ => workers.map(|worker| share_u64(requests, all, worker)).sum(),
        })
    }
}

/// How many of `requests` the first `connections` of `all` have among them.
fn dealt_to(requests: u64, connections: u32, all: u32) -> u64 {
    let dealt = u128::from(requests) * u128::from(connections) / u128::from(all.max(1));
    u64::try_from(dealt).unwrap_or(requests)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ArrivalProcess, RequestSet, RequestSpec, Schedule, Target};

    fn many(count: u32) -> NonZeroU32 {
        NonZeroU32::new(count).expect("not 0")
    }

    #[test]
    fn parts_have_every_worker_once() {
        for workers in 1..40 {
            for parts in 1..=workers {
                let mut next = 0;
                for index in 0..parts {
                    let part = Part::nth(index, many(parts), many(workers));
                    let numbers = part.expect("there are workers for it").workers();
                    assert_eq!(numbers.start, next, "{index} of {parts}, {workers}");
                    assert_eq!(numbers.len() as u32, share(workers, parts, index));
                    next = numbers.end;
                }
                assert_eq!(next, workers);
                assert_eq!(Part::nth(parts, many(parts), many(workers)), None);
            }
            for index in 0..=workers {
                assert_eq!(Part::nth(index, many(workers + 1), many(workers)), None);
            }
        }
    }

    #[test]
    fn requests_are_dealt_by_connections_and_none_is_lost() {
        for requests in [0, 1, 7, 1_000, u64::MAX] {
            for all in 1..20 {
                assert_eq!(dealt_to(requests, all, all), requests);
                let dealt: Vec<u64> = (0..=all)
                    .map(|count| dealt_to(requests, count, all))
                    .collect();
                assert!(dealt.is_sorted());
            }
        }
    }

    #[test]
    fn parts_add_up_to_the_plan() {
        let target = Target::parse("http://127.0.0.1:1/", None).expect("a URL");
        let closed = Plan::new(target, RequestSet::one(RequestSpec::get("/")));
        let mut open = closed.clone();
        open.load.model = LoadModel::Open {
            schedule: Schedule::constant_rate(ArrivalProcess::Poisson, 1_000.0, 7).expect("one"),
            connections_max: many(101),
            queue_max: many(1_003),
        };
        for mut plan in [closed, open] {
            plan.load.connections = many(67);
            plan.load.stop.requests = Some(10_007);
            for (workers, parts) in [(1, 1), (3, 2), (3, 3), (7, 3), (60, 11)] {
                plan.workers.count = many(workers);
                let own = (0..parts).map(|index| {
                    let part = Part::nth(index, many(parts), plan.workers.count).expect("a part");
                    plan.part(part.workers()).expect("a plan").amounts()
                });
                let sum = own.reduce(|mut sum, own| {
                    sum.add(&own);
                    sum
                });
                assert!(plan.amounts().is_about(&sum.expect("one at least")));
            }
        }
    }

    #[test]
    fn shares_add_up_and_differ_by_one_at_most() {
        for total in 0..200 {
            for parts in 1..20 {
                let shares: Vec<u32> = (0..parts).map(|index| share(total, parts, index)).collect();
                assert_eq!(shares.iter().sum::<u32>(), total);
                let large: Vec<u64> = (0..parts)
                    .map(|index| share_u64(total.into(), parts, index))
                    .collect();
                assert!(
                    large.iter().eq(shares
                        .iter()
                        .map(|&number| u64::from(number))
                        .collect::<Vec<_>>()
                        .iter())
                );
                assert!(shares.iter().max().unwrap() - shares.iter().min().unwrap() <= 1);
            }
        }
    }
}
