//! Loads a server and prints what limited the run: the program of `docs/library.md`.

use brunt_judge::Judged;
use brunt_load::Plan;
use std::{error::Error, time::Duration};

/// Loads the server at `url` for two seconds.
pub fn load(url: &str) -> Result<(), Box<dyn Error>> {
    let plan = Plan::to(url).connections(64).rate(1_000.0);
    let plan = plan.duration(Duration::from_secs(2)).build()?;
    let run = brunt_engine::run(plan, &Default::default())?;
    let judgement = Judged::of(&run).judgement;
    println!("{}: {}", judgement.verdict.name(), judgement.because);
    Ok(())
}

/// Loads a server of this machine.
pub fn main() -> Result<(), Box<dyn Error>> {
    load("http://127.0.0.1:8080/")
}
