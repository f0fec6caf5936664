//! Loads a server and prints its rate, its p99 and what limited the run: the program of `docs/library.md`.

use brunt_judge::{Judged, ResponseQuantiles};
use brunt_load::Plan;
use std::{error::Error, time::Duration};

/// Loads the server at `url` for two seconds.
pub fn load(url: &str) -> Result<(), Box<dyn Error>> {
    let plan = Plan::to(url).rate(1_000.0).duration(Duration::from_secs(2));
    let run = brunt_engine::run(plan.build()?, &Default::default())?;
    let judged = Judged::of(&run);
    let (rate, p99) = (judged.successes_per_s(), judged.response_quantile(0.99));
    println!(
        "{rate:.0} req/s, p99 {p99}, {}",
        judged.judgement.verdict.name()
    );
    Ok(())
}

/// Loads a server of this machine.
pub fn main() -> Result<(), Box<dyn Error>> {
    load("http://127.0.0.1:8080/")
}
