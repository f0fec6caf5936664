//! Loads a server and prints its rate, its p99 and what limited the run: the program of
//! `docs/library.md`.

use brunt_judge::{Judged, ResponseQuantiles};
use brunt_load::{ArrivalProcess, Plan, Schedule};
use std::error::Error;

/// Loads the server at `url` for two seconds.
pub fn load(url: &str) -> Result<(), Box<dyn Error>> {
    let schedule = Schedule::constant_rate(ArrivalProcess::Constant, 1_000.0, 0)?;
    let mut plan = Plan::to(url)?.with_schedule(schedule);
    plan.load.stop.duration_ns = Some(2_000_000_000);
    let run = brunt_engine::run(plan, &Default::default())?;
    let judged = Judged::of(&run);
    let (rate, p99) = (judged.successes_per_s(), judged.response_quantile(0.99));
    println!("{rate:.0}/s, p99 {p99}: {:?}", judged.judgement.verdict);
    Ok(())
}

/// Loads a server of this machine.
pub fn main() -> Result<(), Box<dyn Error>> {
    load("http://127.0.0.1:8080/")
}
