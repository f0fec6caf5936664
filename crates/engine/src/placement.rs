//! How many workers there are and on which CPUs: chosen before a run, by where the server is.

use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::num::NonZeroU32;

use brunt_io::backend::Peer;
use brunt_io::cpu::{Cpus, allowed_cpus};
use brunt_load::{Placement as Choice, Plan, Schedule};
use brunt_probe::server::{ServerMachine, machine_of};
use brunt_record::Placement;

/// Arrivals per second that a worker plans at most: far above what any server answers, and what a
/// worker can tell of those that it skips.
pub(crate) const ARRIVALS_PER_WORKER_MAX: f64 = 10_000_000.0;

/// Workers and their CPUs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Placed {
    pub(crate) workers: NonZeroU32,
    /// Of each worker, by its number; empty where the scheduler chooses.
    pub(crate) cpus: Vec<u32>,
    /// How this was found; absent in simulation.
    pub(crate) record: Option<Placement>,
}

impl Placed {
    /// As many workers as the plan says, wherever the scheduler puts them.
    pub(crate) fn unbound(plan: &Plan, reason: Option<Placement>) -> Self {
        Self {
            workers: plan.workers.count,
            cpus: Vec::new(),
            record: reason,
        }
    }

    /// For a plan on this machine whose target is at `peer`.
    pub(crate) fn choose(plan: &Plan, peer: &Peer) -> Self {
        let server = match plan.workers.placement {
            Choice::Auto => machine_of(&plan.observation.watch, peer),
            Choice::Scheduler | Choice::Given | Choice::Bound(_) => ServerMachine::Other,
        };
        let allowed = allowed_cpus().unwrap_or_default();
        Self::among(plan, &allowed, Cpus::of_process(), &server)
    }

    /// Where brunt may run on the CPUs that are `allowed`, lowest first.
    fn among(plan: &Plan, allowed: &[u32], cpus: Cpus, server: &ServerMachine) -> Self {
        let unbound = |reason| Self::unbound(plan, Some(reason));
        let affinities = match (&plan.workers.placement, server) {
            (Choice::Scheduler, _) => return unbound(Placement::Off),
            (Choice::Given, _) => return unbound(Placement::Given),
            (Choice::Bound(cpus), _) => {
                return Self {
                    cpus: cpus.clone(),
                    ..unbound(Placement::OwnServer)
                };
            }
            (Choice::Auto, ServerMachine::Other) => return unbound(Placement::ServerElsewhere),
            (Choice::Auto, ServerMachine::Own(affinities)) => affinities,
        };
        if cpus.is_confined {
            return unbound(Placement::Confined);
        }
        if allowed.len() < 2 || cpus.usable < 2 {
            return unbound(Placement::OneCpu);
        }
        let may_use: BTreeSet<u32> = affinities.iter().flatten().copied().collect();
        let free = allowed.iter().filter(|cpu| !may_use.contains(cpu));
        let mut candidates: Vec<u32> = free.copied().collect();
        let is_bound = !candidates.is_empty() && !may_use.is_empty();
        if !is_bound {
            candidates = allowed.to_vec();
        }
        // Threads that cannot leave a CPU are worth avoiding; the first CPUs often see to devices.
        let bound_to = |cpu: u32| {
            let is_there = |set: &&BTreeSet<u32>| set.len() < allowed.len() && set.contains(&cpu);
            affinities.iter().filter(is_there).count()
        };
        candidates.sort_by_key(|&cpu| (bound_to(cpu), Reverse(cpu)));
        // The server has use for the other half. A plan may need more workers than that.
        let workers = (cpus.usable as usize / 2).max(least(plan));
        candidates.truncate(workers.min(plan.workers.count.get() as usize));
        Self {
            workers: NonZeroU32::new(candidates.len() as u32).unwrap_or(NonZeroU32::MIN),
            cpus: candidates,
            record: Some(if is_bound {
                Placement::ServerBound
            } else {
                Placement::ServerAnywhere
            }),
        }
    }
}

/// Workers that the plan needs at least: a schedule may have more arrivals than one can plan.
fn least(plan: &Plan) -> usize {
    let rate_per_s = plan.load.model.schedule().map_or(0.0, Schedule::rate_max);
    (rate_per_s / ARRIVALS_PER_WORKER_MAX).ceil().max(1.0) as usize
}

#[cfg(test)]
mod tests {
    use brunt_load::{ArrivalProcess, LoadModel, RequestSet, RequestSpec, Target};

    use super::*;

    fn plan(placement: Choice, workers: u32) -> Plan {
        let target = Target::parse("http://127.0.0.1/", None).expect("it is one");
        let requests = RequestSet::one(RequestSpec::get("/"));
        let mut plan = Plan::new(target, requests);
        plan.workers.placement = placement;
        plan.workers.count = NonZeroU32::new(workers).expect("not 0");
        plan
    }

    /// So many CPUs are to be used.
    fn usable(count: usize) -> Cpus {
        Cpus {
            usable: count as u32,
            is_confined: false,
        }
    }

    /// Threads that may use these CPUs each.
    fn here(affinities: &[&[u32]]) -> ServerMachine {
        let sets = affinities.iter().map(|cpus| cpus.iter().copied().collect());
        ServerMachine::Own(sets.collect())
    }

    #[test]
    fn workers_are_placed_by_where_the_server_is() {
        use Placement::{
            Confined, Given, Off, OneCpu, OwnServer, ServerAnywhere, ServerBound, ServerElsewhere,
        };
        const FOUR: &[u32] = &[0, 1, 2, 3];
        let anywhere = || here(&[FOUR, FOUR]);
        let bound = || here(&[&[0, 1], &[1]]);
        let elsewhere = ServerMachine::Other;
        // (workers at most, CPUs, server, reason, workers, their CPUs)
        let placed_alone: [(u32, &[u32], _, _, u32, &[u32]); 12] = [
            (4, FOUR, elsewhere, ServerElsewhere, 4, &[]),
            (1, &[5], anywhere(), OneCpu, 1, &[]),
            (2, &[0, 1], here(&[&[0, 1]]), ServerAnywhere, 1, &[1]),
            (3, &[0, 1, 2], anywhere(), ServerAnywhere, 1, &[2]),
            (4, FOUR, anywhere(), ServerAnywhere, 2, &[3, 2]),
            // Its threads are another user's.
            (4, FOUR, here(&[]), ServerAnywhere, 2, &[3, 2]),
            // A master that is free, and workers that are bound to one CPU each.
            (
                4,
                FOUR,
                here(&[FOUR, &[3], &[2]]),
                ServerAnywhere,
                2,
                &[1, 0],
            ),
            (4, FOUR, bound(), ServerBound, 2, &[3, 2]),
            // No more than there are connections.
            (1, FOUR, bound(), ServerBound, 1, &[3]),
            // The server leaves one CPU.
            (4, FOUR, here(&[&[0, 1, 3]]), ServerBound, 1, &[2]),
            // Bound to CPUs that brunt may not use.
            (2, &[0, 1], here(&[&[7]]), ServerBound, 1, &[1]),
            (2, &[4, 6], here(&[&[4, 5, 6]]), ServerAnywhere, 1, &[6]),
        ];
        let expect = |choice, workers, allowed, server, reason, expected: u32, cpus: &[u32]| {
            let plan = plan(choice, workers);
            let placed = Placed::among(&plan, allowed, usable(allowed.len()), &server);
            let context = format!("{:?}, {allowed:?}, {server:?}", plan.workers.placement);
            assert_eq!(placed.record, Some(reason), "{context}");
            assert_eq!(placed.workers.get(), expected, "{context}");
            assert_eq!(placed.cpus, cpus, "{context}");
        };
        expect(Choice::Scheduler, 4, FOUR, anywhere(), Off, 4, &[]);
        expect(Choice::Given, 3, FOUR, anywhere(), Given, 3, &[]);
        let bound_here = Choice::Bound(vec![2, 3]);
        expect(bound_here, 2, FOUR, anywhere(), OwnServer, 2, &[2, 3]);
        for (workers, allowed, server, reason, expected, cpus) in placed_alone {
            expect(
                Choice::Auto,
                workers,
                allowed,
                server,
                reason,
                expected,
                cpus,
            );
        }
        let confined = Cpus {
            is_confined: true,
            ..usable(4)
        };
        let placed = Placed::among(&plan(Choice::Auto, 4), FOUR, confined, &anywhere());
        assert_eq!((placed.workers.get(), placed.cpus), (4, Vec::new()));
        assert_eq!(placed.record, Some(Confined));
        // A quota of two CPUs.
        let placed = Placed::among(&plan(Choice::Auto, 2), FOUR, usable(2), &anywhere());
        assert_eq!((placed.workers.get(), placed.cpus), (1, vec![3]));
    }

    #[test]
    fn a_schedule_has_workers_enough_to_plan_it() {
        let mut plan = plan(Choice::Auto, 3);
        plan.load.model = LoadModel::Open {
            schedule: Schedule::constant_rate(ArrivalProcess::Constant, 25e6, 0).expect("a rate"),
            connections_max: plan.load.connections,
            queue_max: plan.load.connections,
        };
        let server = here(&[&[0, 1, 2, 3]]);
        let placed = Placed::among(&plan, &[0, 1, 2, 3], usable(4), &server);
        assert_eq!((placed.workers.get(), placed.cpus), (3, vec![3, 2, 1]));
    }
}
