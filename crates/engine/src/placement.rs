//! How many workers there are and on which CPUs: chosen before a run by where the server is, and
//! again where the warm-up shows that there are too few.

use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::num::NonZeroU32;

use brunt_io::backend::Peer;
use brunt_io::cpu::{Cpus, allowed_cpus};
use brunt_load::{LoadModel, Placement as Wish, Plan, Schedule};
use brunt_probe::server::{ServerWatch, Whereabouts, whereabouts};
use brunt_record::{Placement, PlacementReason};

/// Share of the time for which a worker works or waits for a CPU, from which on brunt is the limit.
const BUSY_LEAST: f64 = 0.90;
/// Share of the time for which a CPU has nothing to do, from which on a worker more has use for it.
/// With less there is little to be won, and what there is, the server may need.
const ROOM_LEAST: f64 = 0.15;

/// Arrivals per second that a worker plans at most: far above what any server answers, and what a
/// worker can tell of those that it skips.
pub(crate) const ARRIVALS_PER_WORKER_MAX: f64 = 10_000_000.0;

/// What a choice depends on, beside the plan.
#[derive(Clone, Debug)]
struct Surroundings {
    /// CPUs that brunt may run on, lowest first.
    allowed: Vec<u32>,
    cpus: Cpus,
    server: Whereabouts,
}

/// Workers and their CPUs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Placed {
    pub(crate) workers: NonZeroU32,
    /// Of each worker, by its number; empty where the scheduler chooses.
    pub(crate) cpus: Vec<u32>,
    /// Where there may be more workers, the best first.
    pub(crate) spare: Vec<u32>,
    /// How this was found; absent in simulation.
    pub(crate) record: Option<Placement>,
}

/// What a part of the warm-up showed.
#[derive(Clone, Debug)]
pub(crate) struct PartOfWarmUp {
    /// Share of it for which the busiest worker worked or waited for a CPU.
    pub(crate) busiest: f64,
    /// Share of it for which each CPU had nothing to do.
    pub(crate) idle: Vec<(u32, f64)>,
}

impl PartOfWarmUp {
    /// What makes more of them needed: workers that are always busy, and CPUs that never are.
    pub(crate) fn of_nothing_left(placed: &Placed) -> Self {
        Self {
            busiest: 1.0,
            idle: placed.spare.iter().map(|&cpu| (cpu, 1.0)).collect(),
        }
    }
}

impl Placed {
    /// As many workers as the plan says, wherever the scheduler puts them.
    fn unbound(plan: &Plan, reason: PlacementReason) -> Self {
        Self {
            workers: plan.workers,
            cpus: Vec::new(),
            spare: Vec::new(),
            record: Some(Placement {
                reason,
                too_few: Vec::new(),
            }),
        }
    }

    /// The same, for their number was given.
    pub(crate) fn given(plan: &Plan) -> Self {
        Self::unbound(plan, PlacementReason::Given)
    }

    /// The same without a reason, as in simulation.
    pub(crate) fn simulated(plan: &Plan) -> Self {
        Self {
            record: None,
            ..Self::unbound(plan, PlacementReason::Off)
        }
    }

    /// For a plan on this machine whose target is at `peer`; with the server, where that was looked
    /// for and is to be watched. `has_trial`: its warm-up can show whether there are too few.
    pub(crate) fn choose(plan: &Plan, peer: &Peer, has_trial: bool) -> (Self, Option<ServerWatch>) {
        let (server, watch) = match plan.placement {
            Wish::Auto => whereabouts(&plan.watch, peer),
            Wish::Scheduler | Wish::Given | Wish::Bound(_) => (Whereabouts::Elsewhere, None),
        };
        let surroundings = Surroundings {
            allowed: allowed_cpus().unwrap_or_default(),
            cpus: Cpus::of_process(),
            server,
        };
        (Self::among(plan, &surroundings, has_trial), watch)
    }

    fn among(plan: &Plan, surroundings: &Surroundings, has_trial: bool) -> Self {
        let Surroundings {
            allowed,
            cpus,
            server,
        } = surroundings;
        let affinities = match (&plan.placement, server) {
            (Wish::Scheduler, _) => return Self::unbound(plan, PlacementReason::Off),
            (Wish::Given, _) => return Self::unbound(plan, PlacementReason::Given),
            (Wish::Bound(cpus), _) => {
                return Self {
                    cpus: cpus.clone(),
                    ..Self::unbound(plan, PlacementReason::OwnServer)
                };
            }
            (Wish::Auto, Whereabouts::Elsewhere) => {
                return Self::unbound(plan, PlacementReason::ServerElsewhere);
            }
            (Wish::Auto, Whereabouts::Here(affinities)) => affinities,
        };
        if cpus.is_confined {
            return Self::unbound(plan, PlacementReason::Confined);
        }
        if allowed.len() < 2 || cpus.usable < 2 {
            return Self::unbound(plan, PlacementReason::OneCpu);
        }
        let may_use: BTreeSet<u32> = affinities.iter().flatten().copied().collect();
        let free = allowed.iter().filter(|cpu| !may_use.contains(cpu));
        let mut candidates: Vec<u32> = free.copied().collect();
        let is_bound = !candidates.is_empty() && !may_use.is_empty();
        if !is_bound {
            candidates.clone_from(allowed);
        }
        // Threads that cannot leave a CPU are worth avoiding; the first CPUs often see to devices.
        let bound_to = |cpu: u32| {
            let is_there = |set: &&BTreeSet<u32>| set.len() < allowed.len() && set.contains(&cpu);
            affinities.iter().filter(is_there).count()
        };
        candidates.sort_by_key(|&cpu| (bound_to(cpu), Reverse(cpu)));
        let most = (plan.workers.get() as usize).min(candidates.len());
        let first = match is_bound && !has_trial {
            // Nobody else has use for them, as far as is known.
            true => most,
            false => least(plan).min(most),
        };
        let spare = candidates.split_off(first);
        Self {
            workers: NonZeroU32::new(first as u32).unwrap_or(NonZeroU32::MIN),
            cpus: candidates,
            spare: spare.into_iter().take(most - first).collect(),
            record: Some(Placement {
                reason: match is_bound {
                    true => PlacementReason::ServerBound,
                    false => PlacementReason::ServerAnywhere,
                },
                too_few: Vec::new(),
            }),
        }
    }

    /// Up to twice the workers, where a part of the warm-up showed that brunt is the limit and that
    /// CPUs have room for more of them.
    pub(crate) fn more(&self, part: &PartOfWarmUp) -> Option<Self> {
        if part.busiest < BUSY_LEAST {
            return None;
        }
        let idle = |cpu: u32| {
            let found = part.idle.iter().find(|&&(number, _)| number == cpu);
            found.map_or(0.0, |&(_, share)| share)
        };
        let mut spare = self.spare.clone();
        // Stable: of CPUs with as much room, the best come first.
        spare.sort_by(|&one, &other| idle(other).total_cmp(&idle(one)));
        let roomy = spare.iter().take_while(|&&cpu| idle(cpu) >= ROOM_LEAST);
        let added = roomy.count().min(self.cpus.len());
        if added == 0 {
            return None;
        }
        let mut next = self.clone();
        next.spare = spare.split_off(added);
        next.cpus.append(&mut spare);
        next.workers = self.workers.saturating_add(added as u32);
        if let Some(record) = &mut next.record {
            record.too_few.push(self.workers.get());
        }
        Some(next)
    }
}

/// How many workers there are on so many CPUs, where nobody says.
pub fn default_workers(model: &LoadModel, cpus: u32) -> NonZeroU32 {
    let workers = match model.schedule() {
        // To be on time, a planned arrival needs a CPU that is not busy with something else.
        Some(_) => cpus.saturating_sub(1),
        None => cpus,
    };
    NonZeroU32::new(workers).unwrap_or(NonZeroU32::MIN)
}

/// Workers that the plan needs at least: a schedule may have more arrivals than one can plan.
fn least(plan: &Plan) -> usize {
    let rate_per_s = plan.model.schedule().map_or(0.0, Schedule::rate_max);
    (rate_per_s / ARRIVALS_PER_WORKER_MAX).ceil().max(1.0) as usize
}

#[cfg(test)]
mod tests {
    use brunt_load::{ArrivalProcess, LoadModel, RequestSet, RequestSpec, Target};

    use super::*;

    fn plan(placement: Wish, workers: u32) -> Plan {
        let target = Target::parse("http://127.0.0.1/", None).expect("it is one");
        let requests = RequestSet::one(RequestSpec::get("/"));
        let mut plan = Plan::new(target, requests);
        plan.placement = placement;
        plan.workers = NonZeroU32::new(workers).expect("not 0");
        plan
    }

    fn surroundings(allowed: &[u32], server: Whereabouts) -> Surroundings {
        Surroundings {
            allowed: allowed.to_vec(),
            cpus: Cpus {
                usable: allowed.len() as u32,
                is_confined: false,
            },
            server,
        }
    }

    /// Threads that may use these CPUs each.
    fn here(affinities: &[&[u32]]) -> Whereabouts {
        let sets = affinities.iter().map(|cpus| cpus.iter().copied().collect());
        Whereabouts::Here(sets.collect())
    }

    #[test]
    fn workers_are_placed_by_where_the_server_is() {
        use PlacementReason::{
            Confined, Given, Off, OneCpu, OwnServer, ServerAnywhere, ServerBound, ServerElsewhere,
        };
        const FOUR: &[u32] = &[0, 1, 2, 3];
        let anywhere = || here(&[FOUR, FOUR]);
        let bound = || here(&[&[0, 1], &[1]]);
        // (wish, workers at most, CPUs, server, trial, reason, workers, their CPUs, spare ones)
        type Case<'a> = (
            Wish,
            u32,
            &'a [u32],
            Whereabouts,
            bool,
            PlacementReason,
            u32,
            &'a [u32],
            &'a [u32],
        );
        let cases: [Case<'_>; 17] = [
            (Wish::Scheduler, 4, FOUR, anywhere(), true, Off, 4, &[], &[]),
            (Wish::Given, 3, FOUR, anywhere(), true, Given, 3, &[], &[]),
            (
                Wish::Bound(vec![2, 3]),
                2,
                FOUR,
                anywhere(),
                true,
                OwnServer,
                2,
                &[2, 3],
                &[],
            ),
            (
                Wish::Auto,
                4,
                FOUR,
                Whereabouts::Elsewhere,
                true,
                ServerElsewhere,
                4,
                &[],
                &[],
            ),
            (Wish::Auto, 1, &[5], anywhere(), true, OneCpu, 1, &[], &[]),
            (
                Wish::Auto,
                2,
                &[0, 1],
                here(&[&[0, 1]]),
                true,
                ServerAnywhere,
                1,
                &[1],
                &[0],
            ),
            (
                Wish::Auto,
                4,
                FOUR,
                anywhere(),
                true,
                ServerAnywhere,
                1,
                &[3],
                &[2, 1, 0],
            ),
            // Nothing tells whether one is enough.
            (
                Wish::Auto,
                4,
                FOUR,
                anywhere(),
                false,
                ServerAnywhere,
                1,
                &[3],
                &[2, 1, 0],
            ),
            // Its threads are another user's.
            (
                Wish::Auto,
                4,
                FOUR,
                here(&[]),
                true,
                ServerAnywhere,
                1,
                &[3],
                &[2, 1, 0],
            ),
            // A master that is free, and workers that are bound to one CPU each.
            (
                Wish::Auto,
                4,
                FOUR,
                here(&[FOUR, &[3], &[2]]),
                true,
                ServerAnywhere,
                1,
                &[1],
                &[0, 3, 2],
            ),
            (
                Wish::Auto,
                4,
                FOUR,
                bound(),
                true,
                ServerBound,
                1,
                &[3],
                &[2],
            ),
            (
                Wish::Auto,
                4,
                FOUR,
                bound(),
                false,
                ServerBound,
                2,
                &[3, 2],
                &[],
            ),
            // No more than there are connections, or CPUs by the quota.
            (
                Wish::Auto,
                1,
                FOUR,
                bound(),
                false,
                ServerBound,
                1,
                &[3],
                &[],
            ),
            (
                Wish::Auto,
                2,
                FOUR,
                anywhere(),
                true,
                ServerAnywhere,
                1,
                &[3],
                &[2],
            ),
            // Bound to CPUs that brunt may not use.
            (
                Wish::Auto,
                2,
                &[0, 1],
                here(&[&[7]]),
                true,
                ServerBound,
                1,
                &[1],
                &[0],
            ),
            (
                Wish::Auto,
                2,
                &[0, 1],
                here(&[&[0]]),
                true,
                ServerBound,
                1,
                &[1],
                &[],
            ),
            (
                Wish::Auto,
                2,
                &[4, 6],
                here(&[&[4, 5, 6]]),
                true,
                ServerAnywhere,
                1,
                &[6],
                &[4],
            ),
        ];
        for (wish, workers, allowed, server, has_trial, reason, expected, cpus, spare) in cases {
            let plan = plan(wish, workers);
            let surroundings = surroundings(allowed, server);
            let placed = Placed::among(&plan, &surroundings, has_trial);
            let found = placed.record.map(|record| record.reason);
            let context = format!("{:?}, {surroundings:?}", plan.placement);
            assert_eq!(found, Some(reason), "{context}");
            assert_eq!(placed.workers.get(), expected, "{context}");
            assert_eq!(placed.cpus, cpus, "{context}");
            assert_eq!(placed.spare, spare, "{context}");
        }
        let mut confined = surroundings(FOUR, anywhere());
        confined.cpus.is_confined = true;
        let placed = Placed::among(&plan(Wish::Auto, 4), &confined, true);
        assert_eq!((placed.workers.get(), placed.cpus), (4, Vec::new()));
        assert_eq!(placed.record.map(|record| record.reason), Some(Confined));
    }

    #[test]
    fn a_schedule_has_workers_enough_to_plan_it() {
        let mut plan = plan(Wish::Auto, 3);
        plan.model = LoadModel::Open {
            schedule: Schedule::constant_rate(ArrivalProcess::Constant, 15e6, 0).expect("a rate"),
            connections_max: plan.connections,
            queue_max: plan.connections,
        };
        let surroundings = surroundings(&[0, 1, 2, 3], here(&[&[0, 1, 2, 3]]));
        let placed = Placed::among(&plan, &surroundings, true);
        assert_eq!((placed.workers.get(), placed.cpus), (2, vec![3, 2]));
    }

    #[test]
    fn workers_are_added_where_they_are_the_limit_and_have_room() {
        let placed = |cpus: &[u32], spare: &[u32]| Placed {
            workers: NonZeroU32::new(cpus.len() as u32).expect("not 0"),
            cpus: cpus.to_vec(),
            spare: spare.to_vec(),
            record: Some(Placement::default()),
        };
        // (CPUs, spare ones, the busiest worker, idle share of CPUs 0 to 3, CPUs after it)
        type Case<'a> = (&'a [u32], &'a [u32], f64, [f64; 4], Option<&'a [u32]>);
        let cases: [Case<'_>; 8] = [
            // The server is the limit.
            (&[3], &[2, 1, 0], 0.80, [0.0, 0.9, 0.9, 0.2], None),
            (&[3], &[2, 1, 0], 0.95, [0.0, 0.9, 0.9, 0.0], Some(&[3, 2])),
            (&[3], &[2, 1, 0], 0.95, [0.0, 0.9, 0.3, 0.0], Some(&[3, 1])),
            // The server has use for all of them.
            (&[3], &[2, 1, 0], 1.00, [0.1, 0.1, 0.1, 0.0], None),
            (
                &[3, 2],
                &[1, 0],
                1.00,
                [0.5, 0.6, 0.0, 0.0],
                Some(&[3, 2, 1, 0]),
            ),
            (
                &[3, 2],
                &[1, 0],
                1.00,
                [0.1, 0.6, 0.0, 0.0],
                Some(&[3, 2, 1]),
            ),
            (
                &[3, 2, 1],
                &[0],
                1.00,
                [0.9, 0.0, 0.0, 0.0],
                Some(&[3, 2, 1, 0]),
            ),
            // There are no more.
            (&[3, 2, 1, 0], &[], 1.00, [0.9, 0.9, 0.9, 0.9], None),
        ];
        for (cpus, spare, busiest, idle, expected) in cases {
            let before = placed(cpus, spare);
            let idle = (0..).zip(idle).collect();
            let found = before.more(&PartOfWarmUp { busiest, idle });
            let context = format!("{cpus:?}, {busiest}");
            assert_eq!(
                found.as_ref().map(|next| next.cpus.as_slice()),
                expected,
                "{context}"
            );
            let Some(next) = found else {
                continue;
            };
            assert_eq!(next.workers.get() as usize, next.cpus.len());
            assert_eq!(next.cpus.len() + next.spare.len(), cpus.len() + spare.len());
            let too_few = next.record.expect("of one that has").too_few;
            assert_eq!(too_few, [before.workers.get()], "{context}");
        }
        // CPUs that were not read have no room.
        let unread = PartOfWarmUp {
            busiest: 1.0,
            idle: Vec::new(),
        };
        assert_eq!(placed(&[1], &[0]).more(&unread), None);
    }
}
