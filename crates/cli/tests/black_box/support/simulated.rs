//! Runs in virtual time, stored as the binary stores its own: for reports of runs that would take
//! long, or have to be the same each time.

use std::fs::File;
use std::path::Path;

use brunt_engine::prepare_simulated_part;
use brunt_judge::Judged;
use brunt_load::{Part, Plan};
use brunt_report::{Format, Style};
use brunt_testkit::{SimMachine, SimSettings};

/// Makes a run of a part of `plan`, or of all of it, in a simulation with its default settings, and
/// stores it in `file`.
pub(crate) fn simulate(plan: Plan, part: Option<Part>, file: &Path) {
    let mut machine = SimMachine::new(SimSettings::new(1));
    let prepared = prepare_simulated_part(plan, part, &mut machine).expect("a plan that fits");
    let control = prepared.control();
    let run = prepared.run(&mut machine, &control).expect("a run");
    let mut out = File::create(file).expect("the directory is ours");
    brunt_report::write(&Judged::of(&run), Format::Json, &Style::default(), &mut out)
        .expect("the directory is ours");
}
