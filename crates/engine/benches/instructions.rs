//! Loads a simulated server, so that `bench/instructions` can count what a worker executes. Without
//! arguments it prints the names of its cases; with one of them and a number of seconds, the number
//! of requests that were answered.

use std::env;
use std::error::Error;
use std::num::NonZeroU32;

use brunt_engine::prepare_simulated;
use brunt_judge::{InvariantStatus, check};
use brunt_load::{ArrivalProcess, HttpChoice, Placement, Plan, RequestSet, RequestSpec, Schedule};
use brunt_testkit::{SimMachine, SimSettings};

/// A load of one worker.
struct Case {
    name: &'static str,
    plan: Plan,
}

fn case(name: &'static str, connections: u32) -> Result<Case, Box<dyn Error>> {
    let is_secure = name.contains("TLS") || name.contains("HTTP/3");
    let scheme = if is_secure { "https" } else { "http" };
    let plan = Plan::to(&format!("{scheme}://sim.test/"))?;
    let mut plan = plan.with_connections(connections.try_into()?);
    (plan.workers.count, plan.workers.placement) = (NonZeroU32::MIN, Placement::Given);
    plan.connection.tls.insecure = true;
    Ok(Case { name, plan })
}

impl Case {
    fn speaking(mut self, version: HttpChoice) -> Self {
        self.plan.connection.protocol = version.into();
        self
    }

    fn streams(mut self, streams: NonZeroU32) -> Self {
        self.plan.traffic.streams = streams;
        self
    }

    fn open(mut self, per_s: f64) -> Result<Self, Box<dyn Error>> {
        let schedule = Schedule::constant_rate(ArrivalProcess::Constant, per_s, 1)?;
        self.plan = self.plan.with_schedule(schedule);
        self.plan.traffic.think_seed = 1;
        Ok(self)
    }

    fn numbered(mut self, path: &str, number: &str) -> Result<Self, Box<dyn Error>> {
        let mut request = RequestSpec::get(path);
        request.headers = vec![("X-Number".to_owned(), number.to_owned())];
        request.fill_in()?;
        self.plan.traffic.requests = RequestSet::one(request);
        Ok(self)
    }
}

fn cases() -> Result<Vec<Case>, Box<dyn Error>> {
    let (four, ten) = (4.try_into()?, 10.try_into()?);
    let spoken = |name, connections, http| -> Result<Case, Box<dyn Error>> {
        Ok(case(name, connections)?.speaking(http))
    };
    let http2 = |name| spoken(name, 4, HttpChoice::HTTP2).map(|case| case.streams(ten));
    let http3 = |name, connections| spoken(name, connections, HttpChoice::HTTP3);
    [
        case("HTTP/1.1 closed", 16),
        case("HTTP/1.1 closed, 1,000 connections", 1_000),
        case("HTTP/1.1 open", 16)?.open(5e3),
        // The same bytes, but for the numbers.
        case("HTTP/1.1 closed, two numbers", 16)?.numbered("/?id=12345", "000000000001"),
        case("HTTP/1.1 closed, two numbers filled in", 16)?
            .numbered("/?id={{rand 1 50000}}", "{{seq}}"),
        spoken("HTTP/1.1 over TLS closed", 16, HttpChoice::HTTP1),
        http2("HTTP/2 closed"),
        http2("HTTP/2 open")?.open(5e3),
        Ok(case("HTTP/2 over TLS closed", 4)?.streams(ten)),
        // As in all cases, the simulated server is in the count: with QUIC it is half of it.
        Ok(http3("HTTP/3 closed", 2)?.streams(four)),
        http3("HTTP/3 open", 100)?.open(50e3),
    ]
    .into_iter()
    .collect()
}

/// Makes the run of a case: how many requests were answered in its window.
fn answered(name: &str, seconds: u64) -> Result<u64, Box<dyn Error>> {
    let found = cases()?.into_iter().find(|case| case.name == name);
    let mut plan = found.ok_or("no such case")?.plan;
    plan.load.stop.duration_ns = Some(seconds * 1_000_000_000);
    let mut machine = SimMachine::new(SimSettings::new(1));
    let prepared = prepare_simulated(plan, &mut machine)?;
    let control = prepared.control();
    let run = prepared.run_in(&mut machine, &control)?;
    // The instructions of a run that broke an invariant would be counted for nothing.
    let is_broken = |status| status == InvariantStatus::Broken;
    if check(&run).iter().any(|finding| is_broken(finding.status)) {
        return Err("the run broke an invariant".into());
    }
    Ok(run.latencies.response.count())
}

/// Prints what was asked for.
pub fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    match &arguments[..] {
        [] => {
            for case in cases()? {
                println!("{}", case.name);
            }
        }
        [name, seconds] => println!("{}", answered(name, seconds.parse()?)?),
        _ => return Err("give a case and a number of seconds, or nothing".into()),
    }
    Ok(())
}
