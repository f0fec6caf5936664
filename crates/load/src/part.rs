//! A part of a plan: what one of several agents does of it, all of which have the same plan.

use std::num::NonZeroU32;
use std::ops::Range;

use serde::{Deserialize, Serialize};

use crate::{LoadModel, Plan};

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
        if workers == (0..self.workers.get()) {
            return Some(self.clone());
        }
        self.with_amounts(
            &self
                .amounts()
                .part(workers.clone(), self.requests_of(workers)),
        )
    }

    /// Requests of a run by count that these of its workers have among them, where they share none
    /// with the others: in a closed loop by their connections, else as the arrivals are dealt.
    pub fn requests_of(&self, workers: Range<u32>) -> Option<u64> {
        let requests = self.stop.requests?;
        let all = self.workers.get();
        Some(match self.model {
            LoadModel::Closed { .. } | LoadModel::Held { .. } if !self.has_equal_parts => {
                let connections = self.connections.get();
                let before = |worker: u32| (0..worker).map(|it| share(connections, all, it)).sum();
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
        open.model = LoadModel::Open {
            schedule: Schedule::constant_rate(ArrivalProcess::Poisson, 1_000.0, 7).expect("one"),
            connections_max: many(101),
            queue_max: many(1_003),
        };
        for mut plan in [closed, open] {
            plan.connections = many(67);
            plan.stop.requests = Some(10_007);
            for (workers, parts) in [(1, 1), (3, 2), (3, 3), (7, 3), (60, 11)] {
                plan.workers = many(workers);
                let own = (0..parts).map(|index| {
                    let part = Part::nth(index, many(parts), plan.workers).expect("a part");
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
                        .map(|&it| u64::from(it))
                        .collect::<Vec<_>>()
                        .iter())
                );
                assert!(shares.iter().max().unwrap() - shares.iter().min().unwrap() <= 1);
            }
        }
    }
}
