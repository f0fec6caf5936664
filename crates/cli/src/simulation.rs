//! `--backend sim`: sessions in virtual time, in a simulation with its default settings.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Context, Result};
use brunt_engine::{Control, Faults, Rounds, RunError, RunObserver, prepare_simulated_part};
use brunt_io::{clock, threads};
use brunt_load::{Part, Plan, RequestGenerator, Round};
use brunt_record::Run;
use brunt_sim::{SimMachine, SimSettings};

use crate::signals::Interrupts;

/// How often it is looked whether a signal came.
const LOOK_NS: u64 = 10_000_000;

/// Does `body` in a simulated session of `plan`, or of a part of it. A signal ends the simulated
/// round without a result.
pub(crate) fn in_session<T>(
    (plan, part): (Plan, Option<Part>),
    faults: Faults,
    generators: Vec<Box<dyn RequestGenerator>>,
    interrupts: &Interrupts,
    body: impl FnOnce(&mut dyn Rounds) -> Result<T>,
) -> Result<T> {
    let mut machine = SimMachine::new(SimSettings::answering(&plan)?);
    let prepared = prepare_simulated_part(plan, part, &mut machine)?.with_faults(faults);
    let control = prepared.control();
    let aborting = Aborting::start(interrupts.clone(), &control)?;
    let mut session = prepared.open(&mut machine, &control);
    if !generators.is_empty() {
        session.set_generators(generators)?;
    }
    let outcome = body(&mut Dated {
        session: &mut session,
    });
    drop(aborting);
    outcome
}

/// A session whose runs say when they were made.
struct Dated<'a> {
    session: &'a mut dyn Rounds,
}

impl Rounds for Dated<'_> {
    fn round(&mut self, round: &Round, observer: &mut dyn RunObserver) -> Result<Run, RunError> {
        let started_unix_ms = clock::unix_ms();
        let mut run = self.session.round(round, observer)?;
        for agent in &mut run.agents {
            let from_start_ms = agent.clock.process_start_ns.unsigned_abs() / 1_000_000;
            agent.clock.window_start_unix_ms = started_unix_ms + from_start_ms;
        }
        Ok(run)
    }
}

/// A thread that aborts a simulation when a signal comes, until this is dropped.
struct Aborting(Arc<AtomicBool>);

impl Aborting {
    fn start(interrupts: Interrupts, control: &Arc<Control>) -> Result<Self> {
        let is_over = Arc::new(AtomicBool::new(false));
        let (control, seen) = (Arc::clone(control), Arc::clone(&is_over));
        let body = move || {
            while !seen.load(Ordering::Relaxed) {
                if interrupts.came() {
                    control.abort();
                }
                threads::sleep(LOOK_NS);
            }
        };
        threads::spawn("brunt-abort", body).context("cannot start a thread")?;
        Ok(Self(is_over))
    }
}

impl Drop for Aborting {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}
