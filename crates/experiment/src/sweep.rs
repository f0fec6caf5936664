//! A sweep: rounds at several values of one setting, each round of all values in an order of its
//! own, so that whatever changes on the machine meanwhile falls on all alike.

use std::num::{NonZeroU32, NonZeroU64};

use brunt_judge::{ExperimentKind, Judged, RoundRecord, Sweep, SweepAxis, SweepPlan, SweepRound};
use brunt_load::{LoadModel, Plan, RequestRef, RequestSet, RequestSpec, Schedule, Stop};
use brunt_record::{Environment, Run};

use crate::course::{ExperimentCourse, NextRound};
use crate::turns::shuffled;

/// Length of a round's window by plan where requests end it, and of the window of the warm-up.
const WINDOW_NS: u64 = 1_000_000_000;
const WARMUP_WINDOW_NS: u64 = 200_000_000;

/// The warm-up of a sweep, then its rounds.
pub struct SweepCourse {
    /// The load at the largest value.
    plan: Plan,
    /// Round and place of the value of each measurement.
    order: Vec<(u32, usize)>,
    sweep: Sweep,
}

impl SweepCourse {
    /// The sweep that is `wanted` of the load of `plan`, which is that at the largest value.
    pub fn new(plan: Plan, wanted: SweepPlan, environment: Environment) -> Self {
        Self {
            plan,
            order: places(wanted.values.len(), wanted.rounds, wanted.seed),
            sweep: Sweep {
                kind: ExperimentKind::Sweep,
                format: Sweep::FORMAT,
                brunt_version: env!("CARGO_PKG_VERSION").to_owned(),
                plan: wanted,
                load: None,
                environment,
                broke_off: None,
                rounds: Vec::new(),
            },
        }
    }

    /// What was measured.
    pub fn finish(self) -> Sweep {
        self.sweep
    }
}

impl ExperimentCourse for SweepCourse {
    fn next(&mut self, elapsed_ns: u64) -> Option<NextRound> {
        let Sweep {
            plan: sweep,
            load,
            rounds,
            ..
        } = &self.sweep;
        let done = rounds.len();
        let &(_, place) = self.order.get(done)?;
        let value = load.is_some().then(|| sweep.values[place]);
        let plan = match value {
            Some(value) => plan_at(&self.plan, sweep, value),
            None => {
                let mut warm = self.plan.clone();
                warm.load.stop = Stop {
                    duration_ns: Some(WARMUP_WINDOW_NS),
                    requests: None,
                };
                warm
            }
        };
        // As long as the rounds so far, or by plan before there are any.
        let planned_ns = sweep.round_warmup_ns + sweep.window_ns.unwrap_or(WINDOW_NS);
        let each_ns = elapsed_ns.checked_div(done as u64).unwrap_or(planned_ns);
        Some(NextRound {
            side: 0,
            plan,
            value: value.map(|value| (sweep.varied, value)),
            left_ns: each_ns.saturating_mul((self.order.len() - done) as u64),
        })
    }

    fn take(&mut self, _side: usize, mut run: Run) {
        let Sweep {
            plan: sweep,
            load,
            environment,
            rounds,
            ..
        } = &mut self.sweep;
        if load.is_none() {
            environment.add(&run);
            run.plan.load.stop = self.plan.load.stop;
            *load = Some(run.plan);
        } else if let Some(&(round, place)) = self.order.get(rounds.len()) {
            rounds.push(SweepRound {
                value: sweep.values[place],
                round,
                record: RoundRecord::of(&Judged::of(&run)),
            });
        }
    }
}

/// Round and place of the value of all measurements of a sweep, in their order: the same for the
/// same seed. Without a seed each round has the values as they are.
fn places(values: usize, rounds: u32, seed: Option<u64>) -> Vec<(u32, usize)> {
    let mut shuffled = seed.map(|seed| shuffled(values, seed));
    let mut order = Vec::with_capacity(values.saturating_mul(rounds as usize));
    for round in 0..rounds {
        let places = shuffled.as_mut().and_then(Iterator::next);
        let places = places.unwrap_or_else(|| (0..values).collect());
        order.extend(places.into_iter().map(|place| (round, place)));
    }
    order
}

/// Whether the values of what is varied are levels of one session. Else each takes a session of its
/// own.
pub fn is_within_session(axis: SweepAxis) -> bool {
    match axis {
        SweepAxis::Connections | SweepAxis::Rate | SweepAxis::Requests => true,
        SweepAxis::Workers | SweepAxis::Streams | SweepAxis::BodyBytes => false,
    }
}

/// The plan of a round at one value, where `plan` is that at the largest.
pub fn plan_at(plan: &Plan, sweep: &SweepPlan, value: f64) -> Plan {
    let mut plan = plan.clone();
    plan.load.warmup_ns = sweep.round_warmup_ns;
    let count = || NonZeroU32::new(value as u32).unwrap_or(NonZeroU32::MIN);
    match sweep.varied {
        SweepAxis::Connections => {
            plan.load.connections = count();
            // Each has one at least.
            plan.workers.count = plan.workers.count.min(count());
            if let LoadModel::Open {
                connections_max, ..
            } = &mut plan.load.model
            {
                *connections_max = count();
            }
        }
        SweepAxis::Rate => set_rate(&mut plan, value),
        SweepAxis::Workers => plan.workers.count = count(),
        SweepAxis::Streams => plan.traffic.streams = count(),
        SweepAxis::BodyBytes => {
            let request = first_with_body(&plan.traffic.requests, value as usize);
            plan.traffic.requests = RequestSet::one(request);
        }
        SweepAxis::Requests => {
            let requests = NonZeroU64::new(value as u64).unwrap_or(NonZeroU64::MIN);
            plan.load.stop.requests = Some(requests.get());
        }
    }
    plan
}

/// Sets a constant rate in the plan's schedule. A plan without a schedule stays as it is.
pub(crate) fn set_rate(plan: &mut Plan, per_s: f64) {
    if let LoadModel::Open { schedule, .. } | LoadModel::Sessions { schedule, .. } =
        &mut plan.load.model
        && let Ok(other) = Schedule::constant_rate(schedule.process(), per_s, schedule.seed())
    {
        *schedule = other;
    }
}

/// The first request with a body of so many bytes.
pub fn first_with_body(requests: &RequestSet, bytes: usize) -> RequestSpec {
    let first = requests.first().map(RequestRef::to_spec);
    RequestSpec {
        body: vec![b'x'; bytes],
        ..first.unwrap_or_else(|| RequestSpec::get("/"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_order_is_shuffled_and_the_same_for_the_same_seed() {
        let order = places(20, 3, Some(7));
        assert_eq!(order, places(20, 3, Some(7)));
        assert_ne!(order, places(20, 3, Some(8)));
        for round in 0..3_u32 {
            let of_round = order.iter().filter(|(number, _)| *number == round);
            let places: Vec<usize> = of_round.map(|(_, place)| *place).collect();
            let ascending: Vec<usize> = (0..20).collect();
            assert_ne!(places, ascending);
            let mut sorted = places.clone();
            sorted.sort_unstable();
            assert_eq!(sorted, ascending);
        }
        assert_eq!(places(2, 2, None), [(0, 0), (0, 1), (1, 0), (1, 1)]);
        assert!(places(0, 3, Some(1)).is_empty());
    }

    #[test]
    fn every_place_is_as_likely_in_each_position() {
        let mut first = [0; 4];
        for seed in 0..4_000 {
            first[places(4, 1, Some(seed))[0].1] += 1;
        }
        assert!(
            first.iter().all(|&count| (850..1_150).contains(&count)),
            "{first:?}"
        );
    }
}
