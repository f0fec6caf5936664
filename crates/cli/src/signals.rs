//! SIGINT and SIGTERM: the first ends the run in good order, the second quits at once.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Context, Result};
use brunt_engine::{Prepared, Progress, RunError};
use brunt_measure::Run;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag;

use crate::EXIT_INTERRUPTED;

/// A flag that the first signal sets. From then on a second one ends the process.
pub(crate) fn interrupt_flag() -> Result<Arc<AtomicBool>> {
    let interrupted = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        // In this order: the first signal finds the flag unset, passes here, and then sets it.
        flag::register_conditional_shutdown(
            signal,
            i32::from(EXIT_INTERRUPTED),
            Arc::clone(&interrupted),
        )
        .and_then(|_| flag::register(signal, Arc::clone(&interrupted)))
        .context("cannot listen for signals")?;
    }
    Ok(interrupted)
}

/// Runs, and ends the measure phase when `interrupted` is set. `show` is called now and then with
/// the phase and how far the run has come.
pub(crate) fn run_until_interrupted(
    prepared: Prepared,
    own_server: bool,
    interrupted: &AtomicBool,
    show: &mut dyn FnMut(&str, Progress),
) -> Result<Run, RunError> {
    let control = prepared.control();
    prepared.run(&control, own_server, &mut |phase, progress| {
        if interrupted.load(Ordering::Relaxed) {
            control.interrupt();
        }
        show(phase, progress);
    })
}
