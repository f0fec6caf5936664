//! Comparisons of simulated servers, whose difference is known.

use std::num::NonZeroU32;

use brunt_engine::{Phase, Progress, Rounds, RunError, RunObserver, prepare_simulated};
use brunt_experiment::{ComparisonCourse, compared, comparison, make_rounds};
use brunt_judge::{Claim, ComparedRounds, Judged, RoundRecord, SingleRun};
use brunt_load::{Load, Plan, RequestSet, RequestSpec, Target};
use brunt_record::{Environment, Run};
use brunt_testkit::{ServiceTime, SimMachine, SimServer, SimSettings};

const MS: u64 = 1_000_000;
const REPETITIONS: u64 = 40;
const PAIRS: usize = 10;

/// A server whose rounds differ: each is a simulation with a seed of its own.
struct Server {
    plan: Plan,
    mean_ns: u64,
    seed: u64,
}

impl Rounds for Server {
    fn round(&mut self, load: &Load, observer: &mut dyn RunObserver) -> Result<Run, RunError> {
        self.seed += 1;
        let mut machine = SimMachine::new(SimSettings {
            server: SimServer {
                service: ServiceTime::Exponential {
                    mean_ns: self.mean_ns,
                },
                concurrency: NonZeroU32::new(1),
                ..SimServer::default()
            },
            ..SimSettings::new(self.seed)
        });
        let prepared =
            prepare_simulated(self.plan.clone(), &mut machine).expect("a plan that fits");
        let control = prepared.control();
        prepared
            .open_in(&mut machine, &control)
            .round(load, observer)
    }
}

fn plan() -> Plan {
    let target = Target::parse("http://simulated/", None).expect("a URL");
    let requests = RequestSet::one(RequestSpec::get(&target.path));
    let mut plan = Plan::new(target, requests);
    plan.load.connections = NonZeroU32::new(4).expect("some");
    plan.load.stop.duration_ns = Some(1_000 * MS);
    plan.load.warmup_ns = 20 * MS;
    plan.load.halves_warmup = false;
    plan
}

/// A comparison of the throughput of so many sides, of which nothing is measured yet.
fn comparison_of(sides: usize) -> ComparedRounds {
    let side = |place| (None, format!("http://simulated/{place}"));
    let sides = (0..sides).map(side);
    comparison(
        compared(false, &[]),
        Vec::new(),
        sides,
        Environment::default(),
    )
}

/// 40 comparisons of one run of a server with one run of a server that takes `slower` times as
/// long, each with its own interval: how many claim a difference, and in how many the interval
/// holds the true difference.
fn repeated_single(slower: f64) -> (u64, u64) {
    let mean_ns = 500_000;
    let (mut claims, mut holds) = (0, 0);
    for repetition in 0..REPETITIONS {
        let measured = |place: u64, mean_ns| {
            let mut server = Server {
                plan: plan(),
                mean_ns,
                seed: 5_000_000 + 2 * repetition + place,
            };
            let ignore = &mut |_: Phase, _: &Progress| {};
            let run = server.round(&plan().load, ignore).expect("a run");
            let judged = Judged::of(&run);
            (
                RoundRecord::of(&judged),
                SingleRun::of(&judged, String::new()),
            )
        };
        let mut found = comparison_of(2);
        let slower_ns = (mean_ns as f64 * slower) as u64;
        for (place, ns) in [(0, mean_ns), (1, slower_ns)] {
            let (round, single) = measured(place, ns);
            let side = &mut found.sides[place as usize];
            side.rounds.push(round);
            side.single_run = Some(single);
        }
        let comparison = found.comparisons().remove(0);
        let change = comparison.change.expect("an interval of both");
        claims += u64::from(comparison.claim == Claim::Differs);
        holds += u64::from((change.low..=change.high).contains(&(1.0 / slower - 1.0)));
    }
    (claims, holds)
}

#[test]
fn runs_that_vary_as_their_parts_do_are_compared_as_surely() {
    let (claims, holds) = repeated_single(1.0);
    assert!(claims <= REPETITIONS / 20, "{claims}");
    assert!(holds >= REPETITIONS * 9 / 10, "{holds}");
    let (_, holds) = repeated_single(1.05);
    assert!(holds >= REPETITIONS * 9 / 10, "{holds}");
}

#[test]
fn what_was_complete_when_it_ended_is_kept() {
    let mut server = Server {
        plan: plan(),
        mean_ns: 500_000,
        seed: 1,
    };
    let ignore = &mut |_: Phase, _: &Progress| {};
    let found = comparison_of(3);
    let mut course = ComparisonCourse::new(found, vec![plan(); 3], PAIRS, 1, None);
    let mut made = 0;
    let ended = make_rounds(&mut course, &|| 0, &mut |next| {
        made += 1;
        match made {
            12 => Err(RunError::Interrupted),
            _ => server.round(&next.plan.load, ignore),
        }
    });
    let found = course.finish();
    assert!(matches!(ended, Err(RunError::Interrupted)), "{ended:?}");
    assert_eq!(found.pairs(), 3);
    for side in &found.sides {
        assert_eq!(side.rounds.len(), 3, "the part of the fourth is left out");
    }
}
