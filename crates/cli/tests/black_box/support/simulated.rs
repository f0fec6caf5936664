//! Runs in virtual time, stored as the binary stores its own: for reports of runs that would take
//! long, or have to be the same each time.

use std::fs::File;
use std::num::NonZeroU32;
use std::path::Path;

use brunt_engine::prepare_simulated_part;
use brunt_judge::Judged;
use brunt_load::{ArrivalProcess, Part, Placement, Plan, RequestSet, RequestSpec, Schedule};
use brunt_report::{Format, Style};
use brunt_testkit::{SimMachine, SimSettings};

/// A closed loop of so many connections and workers on a simulated server, with a warm-up and a
/// window of these lengths.
pub(crate) fn plan(
    url: &str,
    [connections, workers]: [u32; 2],
    [warmup_ms, window_ms]: [u64; 2],
) -> Plan {
    let many = |count| NonZeroU32::new(count).expect("at least one");
    let mut plan = Plan::to(url).expect("a URL");
    plan = plan.with_connections(many(connections));
    plan.workers.count = many(workers);
    plan.workers.placement = Placement::Given;
    plan.load.warmup_ns = warmup_ms * 1_000_000;
    plan.load.stop.duration_ns = Some(window_ms * 1_000_000);
    plan
}

/// The plan at this rate.
pub(crate) fn at_rate(plan: Plan, per_s: f64) -> Plan {
    let schedule = Schedule::constant_rate(ArrivalProcess::Constant, per_s, 0);
    plan.with_schedule(schedule.expect("a rate"))
}

/// The plan with another method than GET.
pub(crate) fn with_method(mut plan: Plan, method: &str) -> Plan {
    let mut request = RequestSpec::get(&plan.target.path);
    method.clone_into(&mut request.method);
    plan.traffic.requests = RequestSet::one(request);
    plan
}

/// Makes a run of a part of `plan`, or of all of it, in a simulation with its default settings, and
/// stores it in `file`.
pub(crate) fn simulate(plan: Plan, part: Option<Part>, file: &Path) {
    let mut machine = SimMachine::new(SimSettings::new(1));
    let prepared = prepare_simulated_part(plan, part, &mut machine).expect("a plan that fits");
    let control = prepared.control();
    let run = prepared.run_in(&mut machine, &control).expect("a run");
    let mut out = File::create(file).expect("the directory is ours");
    brunt_report::write(&Judged::of(&run), Format::Json, &Style::default(), &mut out)
        .expect("the directory is ours");
}
