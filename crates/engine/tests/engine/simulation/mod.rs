//! Simulated runs: figures that are known beforehand, and properties of random plans.

mod accounting;
mod carried_in;
mod closed_loop;
mod counterfactual;
mod filled;
mod http2;
mod idle;
mod intervals;
mod machine;
mod merged;
mod messages;
mod outages;
mod own_share;
mod queueing;
mod random_generators;
mod random_plans;
mod rates;
mod reconcile;
mod reference;
mod request_log;
mod seeds;
mod sent_again;
mod sessions;
mod stages;
mod stall;
mod stolen;
mod stored_plans;
mod streams;
mod throttled;
mod verdict;
mod websocket;
mod with_connect;

use std::num::NonZeroU64;

use brunt_engine::RunObserver;
use brunt_load::{
    ArrivalProcess, BackendChoice, MessageSpec, Plan, RequestOrder, RequestSet, Schedule, Stamps,
};
use brunt_proto::messages::Template;
use brunt_record::{RequestLog, Run};
use brunt_testkit::{Costs, ServiceTime, SimCounts, SimServer, SimSettings, Stall};

use crate::common::{MS, S, US, expect_valid, many, rate, requests_by_plan, serving, simulate};

fn plan() -> Plan {
    crate::common::plan("http://simulated/", BackendChoice::Auto)
}

/// A closed loop for a second.
fn closed(connections: u32, depth: u32) -> Plan {
    let mut plan = plan();
    plan.load.connections = many(connections);
    plan.traffic.pipeline = many(depth);
    plan.load.stop.duration_ns = Some(S);
    plan
}

/// These texts as messages, in turns.
fn messages_of(texts: &[&str]) -> RequestSet {
    let messages = texts.iter().map(|text| MessageSpec {
        name: (*text).to_owned(),
        template: Template::parse(text).expect("a message"),
    });
    let set = RequestSet::messages_in(RequestOrder::Turns, messages.collect());
    set.expect("messages")
}

/// A run without warm-up in which requests are due as `schedule` says, with room for all of them
/// to wait, and kernel stamps on every connection.
fn open_loop(schedule: Schedule, connections: u32, duration_ns: u64) -> Plan {
    let mut plan = plan();
    plan.load.connections = many(connections);
    requests_by_plan(&mut plan, schedule, 10_000_000);
    plan.observation.stamps = Stamps::Full;
    plan.load.warmup_ns = 0;
    plan.load.stop.duration_ns = Some(duration_ns);
    plan.limits.timeout_ns = 100 * S;
    plan.limits.connect_timeout_ns = 100 * S;
    plan.load.drain_limit_ns = 100 * S;
    plan
}

fn even_rate(rate_per_s: f64) -> Schedule {
    rate(ArrivalProcess::Constant, rate_per_s, 0)
}

fn run(plan: Plan, settings: &SimSettings) -> (Run, SimCounts) {
    simulate(plan, settings).expect("a run")
}

/// Runs, and expects a valid run whose counts are consistent and equal the server's.
fn faithful(plan: &Plan, settings: &SimSettings, what: &str) -> (Run, SimCounts) {
    let (run, counts) = run(plan.clone(), settings);
    expect_valid(&run, what);
    let wrong = reconcile::mismatches(plan, &run, &counts);
    assert!(wrong.is_empty(), "{what}: {wrong:?}\n{counts:?}");
    (run, counts)
}

/// A server with a constant service time, 100 µs away, loaded by a client whose work takes no
/// time.
fn textbook(service_ns: u64) -> SimSettings {
    let mut settings = at_the_door(|server| server.service = ServiceTime::Constant(service_ns));
    settings.network_ns = 100 * US;
    settings
}

/// A server without a network before it, loaded by a client whose work takes no time.
fn at_the_door(change: impl FnOnce(&mut SimServer)) -> SimSettings {
    SimSettings {
        network_ns: 0,
        costs: Costs::NONE,
        ..serving(change)
    }
}

/// Keeps the log of single requests.
struct KeepLog(Option<RequestLog>);

impl RunObserver for KeepLog {
    fn request_log(&mut self, log: RequestLog) {
        self.0 = Some(log);
    }
}

/// A silence of 100 ms in each second.
const SILENCES: Stall = Stall {
    silence_ns: 100 * MS,
    period_ns: NonZeroU64::new(S).expect("not 0"),
};

/// Refuses a run of an even rate, or one like it, that does not show [`SILENCES`]: the q-quantile
/// is 100 ms - (1 - q) s.
fn expect_silences(run: &Run, tolerance_ns: u64, what: &str) {
    for (q, truth_ns) in [(0.95, 50 * MS), (0.99, 90 * MS), (0.999, 99 * MS)] {
        let quantile_ns = run.latencies.response.quantile_ns(q).expect("latencies");
        assert!(
            quantile_ns.abs_diff(truth_ns) <= tolerance_ns,
            "{what}: the {q}-quantile is {quantile_ns}, not {truth_ns}"
        );
    }
}
