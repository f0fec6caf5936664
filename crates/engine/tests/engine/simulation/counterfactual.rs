//! Verdicts on random situations, tested: the change that a verdict predicts an effect of is
//! simulated.

use std::num::NonZeroU32;

use brunt_judge::{RunFigures, Verdict};
use brunt_load::{ArrivalProcess, Plan};
use brunt_record::Run;
use brunt_testkit::{Costs, ServiceTime, SimHost, SimSettings, Taken};
use rand::Rng;
use rand_pcg::Pcg64;

use super::seeds::part_of;
use super::{plan, rate, run};
use crate::common::{MS, S, broken, many, many_long, requests_by_plan};

/// Random situations, and the parts of them, of which each check makes one.
const SEEDS: u64 = 150;
const PARTS: u64 = 3;

/// One situation, with one worker and one server.
struct Situation {
    plan: Plan,
    settings: SimSettings,
    /// Requests per second that the server can do.
    capacity_per_s: f64,
    /// Requests per second that are planned, in an open loop.
    planned_per_s: Option<f64>,
}

/// Evenly spread over the orders of magnitude.
fn length(draw: &mut Pcg64, least: f64, most: f64) -> f64 {
    draw.random_range(least.ln()..most.ln()).exp()
}

fn taken(draw: &mut Pcg64) -> Option<Taken> {
    let period_ns = length(draw, 1e6, 2e7);
    Some(Taken {
        part_ns: (period_ns * draw.random_range(0.001..0.4)) as u64,
        period_ns: many_long(period_ns as u64),
    })
}

impl Situation {
    fn of(seed: u64) -> Self {
        let mut draw = Pcg64::new(seed.into(), 2_000);
        let mut settings = SimSettings::new(seed);
        let service_ns = length(&mut draw, 5e4, 1e6);
        let places: NonZeroU32 = many(draw.random_range(1..=4));
        settings.server.concurrency = Some(places);
        settings.server.service = ServiceTime::Exponential {
            mean_ns: service_ns as u64,
        };
        if draw.random_range(0..3) == 0 {
            settings.server.delay_ns = length(&mut draw, 1e5, 1e7) as u64;
        }
        settings.network_ns = length(&mut draw, 1e4, 5e5) as u64;
        settings.costs.event_ns = length(&mut draw, 5e2, 1e5) as u64;
        let mut host = SimHost::default();
        match draw.random_range(0..4) {
            0 => host.contention = taken(&mut draw),
            1 if draw.random_range(0..3) == 0 => host.steal = taken(&mut draw),
            _ => {}
        }
        settings.host = Some(host);
        let capacity_per_s = f64::from(places.get()) * 1e9 / service_ns;
        let mut plan = plan();
        plan.load.connections = many(length(&mut draw, 1.0, 128.0) as u32);
        plan.load.warmup_ns = 200 * MS;
        plan.load.stop.duration_ns = Some(3 * S);
        let planned_per_s =
            (draw.random_range(0..3) == 0).then(|| capacity_per_s * length(&mut draw, 0.2, 2.0));
        let mut situation = Self {
            plan,
            settings,
            capacity_per_s,
            planned_per_s,
        };
        situation.schedule();
        situation
    }

    /// Has the schedule, if there is one, go with the connections.
    fn schedule(&mut self) {
        if let Some(rate_per_s) = self.planned_per_s {
            let schedule = rate(ArrivalProcess::Poisson, rate_per_s, self.settings.seed);
            requests_by_plan(&mut self.plan, schedule, 1_000_000);
        }
    }

    fn run(&self) -> Run {
        let (run, _) = run(self.plan.clone(), &self.settings);
        let broken = broken(&run, &[]);
        assert!(broken.is_empty(), "{broken:#?}");
        run
    }

    /// Replies per second.
    fn rate_per_s(&self) -> f64 {
        rate_of(&self.run())
    }

    fn with_more_connections(mut self) -> Self {
        self.plan.load.connections = many(self.plan.load.connections.get() * 2);
        self.schedule();
        self
    }

    /// A client that takes no time and has its CPU to itself.
    fn with_an_ideal_client(mut self) -> Self {
        self.settings.costs = Costs {
            event_ns: 100,
            ..Costs::NONE
        };
        self.settings.host = None;
        self
    }
}

fn rate_of(run: &Run) -> f64 {
    run.summary().window.replies.successes() as f64 * 1e9 / run.window_ns as f64
}

/// What the verdict of a seed says that is not so.
fn untrue(seed: u64) -> (Verdict, Option<String>) {
    let situation = Situation::of(seed);
    let run = situation.run();
    let judgement = run.judge();
    let rate_per_s = rate_of(&run);
    let window_ns = run.window_ns as f64;
    let capacity_per_s = situation.capacity_per_s;
    let untrue = match judgement.verdict {
        // 3 % are chance.
        Verdict::ServerLimited => (rate_per_s < 0.92 * capacity_per_s)
            .then(|| format!("{rate_per_s:.0} of {capacity_per_s:.0} per second")),
        Verdict::ConcurrencyLimited => {
            let more_per_s = situation.with_more_connections().rate_per_s();
            (more_per_s < 1.1 * rate_per_s).then(|| {
                format!("{more_per_s:.0} per second with more connections, {rate_per_s:.0} before")
            })
        }
        Verdict::RateLimited => {
            let planned_per_s = run.summary().arrivals.planned as f64 * 1e9 / window_ns;
            (rate_per_s < 0.98 * planned_per_s)
                .then(|| format!("{rate_per_s:.0} of {planned_per_s:.0} planned per second"))
        }
        Verdict::ClientLimited => {
            let own_ns = run
                .latencies
                .split
                .mean()
                .map_or(0.0, |parts| parts.own_ns() / parts.response_ns());
            let more_per_s = situation.with_an_ideal_client().rate_per_s();
            (more_per_s < 1.02 * rate_per_s && own_ns < 0.02).then(|| {
                format!("{more_per_s:.0} per second with an ideal client, {rate_per_s:.0} before")
            })
        }
        _ => None,
    };
    let untrue = untrue.map(|why| format!("seed {seed}: {why}: {judgement:#?}"));
    (judgement.verdict, untrue)
}

#[test]
fn verdicts_are_true() {
    let seeds = (part_of(PARTS)..SEEDS).step_by(PARTS as usize);
    let judged: Vec<(Verdict, Option<String>)> = seeds.map(untrue).collect();
    let lies: Vec<&str> = judged
        .iter()
        .filter_map(|(_, untrue)| untrue.as_deref())
        .collect();
    assert!(
        lies.is_empty(),
        "{} of {}: {}",
        lies.len(),
        judged.len(),
        lies.join("\n")
    );
    let count = |wanted| {
        judged
            .iter()
            .filter(|(verdict, _)| *verdict == wanted)
            .count()
    };
    let counts = [
        Verdict::ServerLimited,
        Verdict::ClientLimited,
        Verdict::ConcurrencyLimited,
        Verdict::RateLimited,
        Verdict::Inconclusive,
    ]
    .map(|verdict| (verdict, count(verdict)));
    assert!(counts.iter().all(|&(_, count)| count >= 3), "{counts:?}");
}
