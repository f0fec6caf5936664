//! Situations whose limit is known, because it was simulated, and what the verdict makes of them.
//!
//! The server has one place and takes 100 µs on average (exponential), unless a case says
//! otherwise: it can do 10,000 requests per second. Brunt could do about 200,000.

use brunt_judge::{Judgement, RunFigures, Verdict};
use brunt_load::{ArrivalProcess, LoadModel, Plan};
use brunt_record::Run;
use brunt_testkit::{LateWakeUps, Limiter, ServiceTime, SimHost, SimSettings, Taken};

use super::rate;
use crate::common::{
    MS, S, US, expect_valid, many, many_long, requests_by_plan, serving, simulate,
};

/// Runs of each situation, with different random numbers.
const SEEDS: u64 = 4;

/// A situation before something in it is changed.
struct Situation {
    plan: Plan,
    settings: SimSettings,
}

impl Situation {
    /// A closed loop of so many connections.
    fn closed(connections: u32) -> Self {
        let mut plan = super::closed(connections, 1);
        plan.load.warmup_ns = 200 * MS;
        plan.load.stop.duration_ns = Some(3 * S);
        let mut settings = serving(|server| {
            server.service = ServiceTime::Exponential { mean_ns: 100 * US };
            server.concurrency = Some(many(1));
        });
        settings.host = Some(SimHost::default());
        Self { plan, settings }
    }

    /// An open loop of Poisson arrivals, so many per second.
    fn open(rate_per_s: f64) -> Self {
        let mut situation = Self::closed(64);
        let schedule = rate(ArrivalProcess::Poisson, rate_per_s, 1);
        requests_by_plan(&mut situation.plan, schedule, 1_000_000);
        situation
    }

    fn with(mut self, change: impl FnOnce(&mut Plan, &mut SimSettings)) -> Self {
        change(&mut self.plan, &mut self.settings);
        self
    }

    /// Who else is on brunt's machine.
    fn beside(self, steal: Option<Taken>, contention: Option<Taken>) -> Self {
        self.with(|_, settings| {
            settings.host = Some(SimHost {
                steal,
                contention,
                bursts: None,
            })
        })
    }

    fn judged(&self, seed: u64) -> (Run, Judgement) {
        let mut plan = self.plan.clone();
        if let LoadModel::Open { schedule, .. } = &mut plan.load.model {
            let rate_per_s = schedule.rate_max();
            *schedule = rate(ArrivalProcess::Poisson, rate_per_s, seed);
        }
        let settings = SimSettings {
            seed,
            ..self.settings.clone()
        };
        let (run, _) = simulate(plan, &settings).expect("a run");
        expect_valid(&run, &format!("seed {seed}"));
        let judgement = run.judge();
        (run, judgement)
    }

    /// Each run has this verdict, and the words, if any, are among its reasons.
    fn expect(&self, verdict: Verdict, reason: &str) {
        for seed in 1..=SEEDS {
            let (_, judgement) = self.judged(seed);
            let names = judgement
                .decisive
                .iter()
                .any(|id| id.to_string().contains(reason));
            assert!(
                judgement.verdict == verdict
                    && (names || judgement.because.to_lowercase().contains(reason)),
                "seed {seed}, expected {verdict:?} ({reason}): {judgement:#?}"
            );
        }
    }

    /// No run says that its figures describe the server.
    fn never_server_limited(&self, what: &str) {
        for seed in 1..=SEEDS {
            let (_, judgement) = self.judged(seed);
            assert_ne!(
                judgement.verdict,
                Verdict::ServerLimited,
                "{what}, seed {seed}: {judgement:#?}"
            );
        }
    }
}

/// A host on which others have the CPU for `share` of every 10 ms.
fn taken(share: f64) -> Option<Taken> {
    Some(Taken {
        part_ns: (share * 1e7) as u64,
        period_ns: many_long(10 * MS),
    })
}

/// Brunt does about so many requests per second at most, each of which is two events.
fn client_of(settings: &mut SimSettings, requests_per_s: u64) {
    settings.costs.event_ns = S / requests_per_s / 2;
}

#[test]
fn a_server_at_its_limit() {
    Situation::closed(64).expect(Verdict::ServerLimited, "server");
    for places in [2, 4] {
        let with_places = Situation::closed(64).with(|_, settings| {
            settings.server.concurrency = Some(many(places));
        });
        with_places.expect(Verdict::ServerLimited, "server");
    }
    let of_workers = Situation::closed(64).with(|plan, _| plan.workers.count = many(2));
    of_workers.expect(Verdict::ServerLimited, "server");
}

#[test]
fn a_client_at_its_limit() {
    let slow = Situation::closed(64).with(|_, settings| client_of(settings, 5_000));
    slow.expect(Verdict::ClientLimited, "idle");
}

#[test]
fn a_client_nearer_to_its_limit_than_the_server_is_never_taken_for_the_server() {
    for requests_per_s in [1_000, 3_000, 6_000, 8_000, 9_000] {
        let slow = Situation::closed(64).with(|_, settings| client_of(settings, requests_per_s));
        slow.never_server_limited(&format!("{requests_per_s} per second"));
    }
    // And the other way round.
    for requests_per_s in [40_000, 100_000] {
        let fast = Situation::closed(64).with(|_, settings| client_of(settings, requests_per_s));
        fast.expect(Verdict::ServerLimited, "server");
    }
}

#[test]
fn a_hypervisor_takes_a_tenth() {
    for connections in [1, 64] {
        let stolen = Situation::closed(connections).beside(taken(0.1), None);
        stolen.expect(Verdict::Disturbed, "steal");
    }
    // What was met was met.
    let open = Situation::open(5_000.0).beside(taken(0.1), None);
    open.expect(Verdict::RateLimited, "steal");
}

#[test]
fn another_process_takes_a_third() {
    let fast_server = |_: &mut Plan, settings: &mut SimSettings| {
        settings.server.concurrency = Some(many(8));
        client_of(settings, 30_000);
    };
    let contended = Situation::closed(64).with(fast_server);
    contended
        .beside(None, taken(0.3))
        .expect(Verdict::Disturbed, "another");
    // In the pauses of so many connections the server works off its queue; of so few, it rests.
    let queued = Situation::closed(64).beside(None, taken(0.3));
    queued.expect(Verdict::ServerLimited, "server");
    let idle = Situation::closed(8).beside(None, taken(0.3));
    idle.never_server_limited("a server that rests");
}

#[test]
fn a_little_of_either_changes_nothing() {
    let barely = Some(Taken {
        part_ns: 10 * US,
        period_ns: many_long(10 * MS),
    });
    for (steal, contention) in [(barely, None), (None, barely), (barely, barely)] {
        let situation = Situation::closed(64).beside(steal, contention);
        situation.expect(Verdict::ServerLimited, "server");
    }
}

#[test]
fn too_few_connections() {
    let one = Situation::closed(1).with(|_, settings| settings.network_ns = 200 * US);
    one.expect(Verdict::ConcurrencyLimited, "round trip");
    let few = Situation::closed(4).with(|_, settings| {
        settings.server.concurrency = Some(many(16));
    });
    // Service times that differ by themselves look like a queue.
    few.expect(Verdict::Inconclusive, "");
    let few = Situation::closed(4).with(|_, settings| {
        settings.server.service = ServiceTime::Constant(100 * US);
        settings.server.concurrency = Some(many(16));
    });
    few.expect(Verdict::ConcurrencyLimited, "");
    let delay = Situation::closed(64).with(|_, settings| {
        settings.server.service = ServiceTime::Exponential { mean_ns: 20 * US };
        settings.server.delay_ns = 50 * MS;
    });
    delay.expect(Verdict::ConcurrencyLimited, "");
}

#[test]
fn the_rate_that_was_asked_for() {
    for rate_per_s in [200.0, 5_000.0] {
        Situation::open(rate_per_s).expect(Verdict::RateLimited, "");
    }
}

#[test]
fn a_rate_that_is_met_by_a_brunt_that_is_late() {
    // One of three arrivals is sent 400 us late, of 200 us that the server takes.
    let late = Situation::open(1_000.0).with(|_, settings| {
        settings.late_wake_ups = Some(LateWakeUps {
            probability: 0.3,
            delay_ns: 400 * US,
        });
    });
    late.expect(Verdict::ClientLimited, "brunt's own");
}

#[test]
fn connections_that_pause_by_plan() {
    let paused = Situation::closed(8).with(|plan, _| plan.traffic.think_time_ns = 10 * MS);
    paused.expect(Verdict::ThinkTime, "paused by plan");
    // So many of them that the server is at its end all the same.
    let many_paused = Situation::closed(400).with(|plan, _| plan.traffic.think_time_ns = 10 * MS);
    many_paused.expect(Verdict::ServerLimited, "server");
}

#[test]
fn a_limiter_of_the_server() {
    let limited = |_: &mut Plan, settings: &mut SimSettings| {
        settings.server.limiter = Some(Limiter {
            every_ns: many_long(500 * US),
            burst: many(20),
            refusal_ns: 200 * US,
        });
    };
    for situation in [Situation::closed(16), Situation::open(4_000.0)] {
        situation.with(limited).expect(Verdict::RateLimited, "");
    }
}

#[test]
fn more_arrivals_than_the_server_can_serve() {
    for rate_per_s in [12_000.0, 20_000.0] {
        Situation::open(rate_per_s).expect(Verdict::ServerLimited, "");
    }
}

#[test]
fn a_server_that_drifts() {
    for drift_per_s in [0.05, 0.2] {
        let drifting = Situation::closed(64).with(|plan, settings| {
            plan.load.stop.duration_ns = Some(10 * S);
            settings.server.drift_per_s = drift_per_s;
        });
        // It is at its end all the while.
        drifting.expect(Verdict::ServerLimited, "the rate drifted");
    }
}

#[test]
fn a_brunt_that_is_stopped_now_and_then() {
    let stopped = |_: &mut Plan, settings: &mut SimSettings| {
        settings.host = None;
        settings.network_ns = MS;
        settings.late_wake_ups = Some(LateWakeUps {
            probability: 0.002,
            delay_ns: 500 * MS,
        });
    };
    let situation = Situation::closed(4).with(stopped);
    situation.expect(Verdict::ClientLimited, "did not run for");
}
