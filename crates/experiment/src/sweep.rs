//! A sweep: rounds at several values of one setting, each round of all values in an order of its
//! own, so that whatever changes on the machine meanwhile falls on all alike.

use std::num::{NonZeroU32, NonZeroU64};

use brunt_judge::{SweepAxis, SweepPlan};
use brunt_load::{LoadModel, Plan, RequestRef, RequestSet, RequestSpec, Schedule};

use crate::turns::shuffled;

/// Round and value of all measurements of a sweep, in their order. The same seed gives the same
/// order. Without a seed each round has the values as they are.
pub fn sweep_order(sweep: &SweepPlan) -> Vec<(u32, f64)> {
    let order = places(sweep.values.len(), sweep.rounds, sweep.seed).into_iter();
    order
        .map(|(round, place)| (round, sweep.values[place]))
        .collect()
}

/// Round and place of the value of all measurements.
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
            plan.traffic.requests = with_body(&plan.traffic.requests, value as usize)
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
fn with_body(requests: &RequestSet, bytes: usize) -> RequestSet {
    let first = requests.first().map(RequestRef::to_spec);
    RequestSet::one(RequestSpec {
        body: vec![b'x'; bytes],
        ..first.unwrap_or_else(|| RequestSpec::get("/"))
    })
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
