//! How often comparisons claim what is not so, and find what is: of rounds whose rates and response
//! times vary from one to the next in ways that are known, in the order in which they are measured.

use brunt_engine::{Phase, Progress, Rounds, prepare_simulated};
use brunt_experiment::shuffled;
use brunt_judge::{Bound, Claim, Compared, ComparedRounds, Course, Judged, RoundRecord, Verdict};
use brunt_load::{Plan, RequestSet, RequestSpec, Target};
use brunt_record::Environment;
use brunt_testkit::{SimMachine, SimSettings};
use rand_pcg::Pcg64Mcg;
use rand_pcg::rand_core::{RngCore as _, SeedableRng as _};

/// Pairs of a comparison by default.
const PAIRS: usize = 10;
const REPETITIONS: u64 = 1_000;

/// What rounds vary by, from one to the next: shares of the rate.
#[derive(Clone, Copy, Debug)]
enum Varies {
    /// Each by itself, normally.
    Alone(f64),
    /// Normally, and each is nine tenths of the one before it.
    WithTheLast(f64),
    /// A sum of all that came before: a machine that warms up and throttles.
    Walking(f64),
    /// Up or down by as much each time, and each by itself.
    Trending(f64),
    /// Up and down over some rounds: another program that works now and then.
    InPeriods(f64),
    /// By a tenth at one moment, and each by itself.
    AtOnce(f64),
    /// Each by itself, and one in ten by ten times as much.
    WithOutliers(f64),
}

const ALL: [Varies; 8] = [
    Varies::Alone(0.02),
    Varies::Alone(0.10),
    Varies::WithTheLast(0.05),
    Varies::Walking(0.02),
    Varies::Trending(0.01),
    Varies::InPeriods(0.05),
    Varies::AtOnce(0.01),
    Varies::WithOutliers(0.01),
];

struct Noise {
    source: Pcg64Mcg,
}

impl Noise {
    /// Evenly between 0 and 1.
    fn even(&mut self) -> f64 {
        (self.source.next_u64() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// Standard normal (Box and Muller).
    fn normal(&mut self) -> f64 {
        let radius = (-2.0 * (1.0 - self.even()).ln()).sqrt();
        radius * (std::f64::consts::TAU * self.even()).cos()
    }
}

/// The logarithms by which a machine is off, round by round.
struct Machine {
    varies: Varies,
    noise: Noise,
    last: f64,
    /// A direction, a length and a moment of its own.
    slope: f64,
    period: f64,
    moment: f64,
    round: f64,
}

impl Machine {
    fn new(varies: Varies, seed: u64) -> Self {
        let source = Pcg64Mcg::seed_from_u64(seed);
        let mut noise = Noise { source };
        Self {
            varies,
            last: noise.normal(),
            slope: noise.normal(),
            period: 3.0 + 9.0 * noise.even(),
            moment: 2.0 * PAIRS as f64 * noise.even(),
            round: 0.0,
            noise,
        }
    }

    fn next(&mut self) -> f64 {
        self.round += 1.0;
        let own = self.noise.normal();
        match self.varies {
            Varies::Alone(by) => by * own,
            Varies::WithTheLast(by) => {
                self.last = 0.9 * self.last + (1.0_f64 - 0.81).sqrt() * own;
                by * self.last + 0.01 * self.noise.normal()
            }
            Varies::Walking(by) => {
                self.last += own;
                by * self.last + 0.01 * self.noise.normal()
            }
            Varies::Trending(by) => by * (self.slope * self.round + own),
            Varies::InPeriods(by) => {
                let turns = (self.round + self.moment) / self.period;
                by * (std::f64::consts::TAU * turns).sin() + 0.01 * own
            }
            Varies::AtOnce(by) => by * own + if self.round > self.moment { 0.1 } else { 0.0 },
            Varies::WithOutliers(by) => {
                if self.noise.even() < 0.1 {
                    10.0 * by * own
                } else {
                    by * own
                }
            }
        }
    }
}

/// A round that counts, of which the figures are replaced.
fn round() -> RoundRecord {
    let target = Target::parse("http://simulated/", None).expect("a URL");
    let requests = RequestSet::one(RequestSpec::get(&target.path));
    let mut plan = Plan::new(target, requests);
    plan.load.stop.duration_ns = Some(100_000_000);
    plan.load.warmup_ns = 0;
    let mut machine = SimMachine::new(SimSettings::new(1));
    let prepared = prepare_simulated(plan.clone(), &mut machine).expect("a plan that fits");
    let control = prepared.control();
    let ignore = &mut |_: Phase, _: &Progress| {};
    let mut session = prepared.open_in(&mut machine, &control);
    let run = session.round(&plan.load, ignore).expect("a run");
    let mut record = RoundRecord::of(&Judged::of(&run));
    record.verdict = Verdict::ServerLimited;
    record.missing.clear();
    record
}

/// What is planted.
#[derive(Clone, Copy, Debug)]
struct Planted {
    /// How many times as fast each side is.
    ratios: &'static [f64],
    compared: &'static [Compared],
    /// The share of rounds that are disturbed, and worthless.
    disturbed: f64,
}

const THROUGHPUT: &[Compared] = &[Compared::SuccessesPerS];
const LATENCIES: &[Compared] = &[
    Compared::ResponseQuantile(0.5),
    Compared::ResponseQuantile(0.99),
];

/// A comparison as `brunt compare` makes it.
fn comparison(like: &RoundRecord, planted: Planted, machine: &mut Machine) -> ComparedRounds {
    let sides = planted.ratios.len();
    let side = |place| (None, format!("http://simulated/{place}"));
    let mut found = brunt_experiment::comparison(
        planted.compared.to_vec(),
        Vec::new(),
        (0..sides).map(side),
        Environment::default(),
    );
    let mut order = shuffled(sides, machine.noise.source.next_u64());
    while let Course::Until(_) = found.course(PAIRS) {
        for side in order.next().expect("it has no end") {
            let off = machine.next();
            let faster = planted.ratios[side] * off.exp();
            // The tail varies by more than the median, and with it.
            let tail = 2.0 * off + 0.03 * machine.noise.normal();
            let ns = |ns: f64| Some(ns as u64);
            let mut record = like.clone();
            record.successes_per_s = Some(50_000.0 * faster);
            record.response.p50_ns = ns(1e6 / faster);
            record.response.p99_ns = ns(5e6 / (planted.ratios[side] * tail.exp()));
            if machine.noise.even() < planted.disturbed {
                record.verdict = Verdict::Invalid;
                record.successes_per_s = None;
            }
            found.sides[side].rounds.push(record);
        }
    }
    found
}

/// The share of the comparisons in which any claim is made.
fn claims(planted: Planted, varies: Varies) -> f64 {
    let like = round();
    let claims = (0..REPETITIONS).filter(|seed| {
        let found = comparison(&like, planted, &mut Machine::new(varies, *seed));
        let pairs = found.comparisons();
        pairs.iter().any(|pair| pair.claim == Claim::Differs)
    });
    claims.count() as f64 / REPETITIONS as f64
}

#[test]
fn a_server_against_itself_differs_in_at_most_one_of_forty() {
    for (ratios, compared, disturbed) in [
        (&[1.0; 2][..], THROUGHPUT, 0.0),
        (&[1.0; 2], THROUGHPUT, 0.1),
        (&[1.0; 2], LATENCIES, 0.0),
        (&[1.0; 4], LATENCIES, 0.05),
    ] {
        for varies in ALL {
            let planted = Planted {
                ratios,
                compared,
                disturbed,
            };
            let share = claims(planted, varies);
            assert!(share <= 1.0 / 40.0, "{share} of {planted:?}, {varies:?}");
        }
    }
}

#[test]
fn planted_differences_are_found() {
    // Of noise that is small enough: 20 % are not found where each round is off by 10 %.
    for (varies, ratio, least) in [
        (Varies::Alone(0.02), 1.05, 0.95),
        (Varies::Alone(0.005), 1.02, 0.95),
        (Varies::Alone(0.10), 1.20, 0.70),
        (Varies::WithTheLast(0.05), 1.05, 0.95),
        (Varies::Walking(0.02), 1.05, 0.95),
        (Varies::Trending(0.01), 1.05, 0.95),
        (Varies::AtOnce(0.01), 1.20, 0.95),
        (Varies::InPeriods(0.05), 1.20, 0.95),
        (Varies::WithOutliers(0.01), 1.20, 0.95),
    ] {
        for ratios in [&[1.0, ratio], &[ratio, 1.0]] {
            let ratios: &'static [f64] = Vec::leak(ratios.to_vec());
            let planted = Planted {
                ratios,
                compared: THROUGHPUT,
                disturbed: 0.05,
            };
            let share = claims(planted, varies);
            assert!(share >= least, "{share} of {ratio}, {varies:?}");
        }
    }
}

#[test]
fn intervals_hold_the_truth_together() {
    let like = round();
    let planted = Planted {
        ratios: &[1.0, 1.05, 0.9],
        compared: LATENCIES,
        disturbed: 0.0,
    };
    let all_hold = (0..REPETITIONS).filter(|seed| {
        let machine = &mut Machine::new(Varies::Alone(0.02), *seed);
        let pairs = comparison(&like, planted, machine).comparisons();
        pairs.iter().all(|pair| {
            let change = pair.change.expect("pairs enough");
            let truth = 1.0 / planted.ratios[pair.place] - 1.0;
            (change.low..=change.high).contains(&truth)
        })
    });
    let share = all_hold.count() as f64 / REPETITIONS as f64;
    assert!(share >= 0.97, "{share}");
}

#[test]
fn bounds_claim_no_more_than_values() {
    let like = round();
    let planted = Planted {
        ratios: &[1.0; 2],
        compared: THROUGHPUT,
        disturbed: 0.0,
    };
    // Brunt is the limit of the second side in so many rounds, and hides up to 5 % of its rate.
    for limited in [0.3, 0.7, 1.0] {
        let claimed = (0..REPETITIONS).filter(|seed| {
            let machine = &mut Machine::new(Varies::Alone(0.02), *seed);
            let mut found = comparison(&like, planted, machine);
            for record in &mut found.sides[1].rounds {
                if machine.noise.even() < limited {
                    record.verdict = Verdict::ClientLimited;
                    let hidden = 1.0 - 0.05 * machine.noise.even();
                    record.successes_per_s = record.successes_per_s.map(|per_s| per_s * hidden);
                }
            }
            let pairs = found.comparisons();
            let comparison = &pairs[0];
            assert_ne!(comparison.bound, Some(Bound::AtMost));
            comparison.claim == Claim::Differs
        });
        let share = claimed.count() as f64 / REPETITIONS as f64;
        assert!(share <= 1.0 / 40.0, "{share} of {limited}");
    }
}

#[test]
fn pairs_that_do_not_count_are_made_up_for() {
    let like = round();
    let with = |verdicts: &[[Verdict; 2]]| {
        let planted = Planted {
            ratios: &[1.0; 2],
            compared: THROUGHPUT,
            disturbed: 0.0,
        };
        let mut found = comparison(&like, planted, &mut Machine::new(Varies::Alone(0.02), 1));
        for (place, side) in found.sides.iter_mut().enumerate() {
            let record = |verdicts: &[Verdict; 2]| RoundRecord {
                verdict: verdicts[place],
                ..like.clone()
            };
            side.rounds = verdicts.iter().map(record).collect();
        }
        found
    };
    let (good, limited) = (Verdict::ServerLimited, Verdict::ClientLimited);
    let bad = Verdict::Invalid;
    for (verdicts, course) in [
        (vec![], Course::Until(10)),
        (vec![[good; 2]; 9], Course::Until(10)),
        (vec![[good; 2]; 10], Course::Done),
        // One in which brunt was the limit of one side counts as a bound.
        (vec![[good, limited]; 10], Course::Done),
        (vec![[good, bad]; 3], Course::Until(13)),
        (vec![[bad, good]; 10], Course::Until(15)),
        (vec![[bad, limited]; 15], Course::Done),
        (vec![[limited; 2]; 2], Course::Until(12)),
        (vec![[limited; 2]; 3], Course::ClientLimited),
        (
            vec![[limited; 2], [good; 2], [limited; 2]],
            Course::Until(12),
        ),
        (
            [vec![[good; 2]; 3], vec![[limited; 2]; 3]].concat(),
            Course::Until(13),
        ),
    ] {
        assert_eq!(with(&verdicts).course(PAIRS), course, "{verdicts:?}");
    }
}
