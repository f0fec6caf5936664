//! SIGINT, SIGTERM and SIGHUP: the first ends the run in good order, the second at once. Either way
//! what was measured is reported.

use std::io::{self, IsTerminal, Write};
use std::process;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use anyhow::{Context, Result};
use brunt_engine::{Prepared, Progress, RunError, clock, threads};
use brunt_load::Plan;
use brunt_measure::Run;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use crate::EXIT_INTERRUPTED;

/// A signal that comes this long after the second one finds a process that does not end by itself:
/// its report is being written to a pipe that nobody reads, say.
const STUCK_NS: u64 = 1_000_000_000;

/// An interrupted run that lasts on for longer than this says what it waits for.
const SILENCE_NS: u64 = 100_000_000;

/// What a second signal does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Second {
    /// The run ends at once, with its report.
    Reports,
    /// The process ends at once: there is nothing to be reported.
    Ends,
}

/// The signals that came.
#[derive(Clone, Debug)]
pub(crate) struct Interrupts {
    count: Arc<AtomicU32>,
}

impl Interrupts {
    /// Listens from now on. SIGHUP is left alone where it is ignored, as nohup has it.
    pub(crate) fn listen(second: Second) -> Result<Self> {
        let count = Arc::new(AtomicU32::new(0));
        let heard = Arc::clone(&count);
        let mut numbers = vec![SIGINT, SIGTERM];
        if !is_ignored(SIGHUP) {
            numbers.push(SIGHUP);
        }
        let mut signals = Signals::new(numbers).context("cannot listen for signals")?;
        let body = move || {
            let mut second_ns = None;
            for _ in signals.forever() {
                let before = heard.fetch_add(1, Ordering::Relaxed);
                let now_ns = clock::now_ns();
                let is_last = match (before, second, second_ns) {
                    (0, _, _) => false,
                    (_, Second::Ends, _) => true,
                    (_, Second::Reports, None) => {
                        second_ns = Some(now_ns);
                        false
                    }
                    (_, Second::Reports, Some(second_ns)) => now_ns > second_ns + STUCK_NS,
                };
                if is_last {
                    process::exit(EXIT_INTERRUPTED.into());
                }
            }
        };
        threads::spawn("brunt-signals", body).context("cannot listen for signals")?;
        Ok(Self { count })
    }

    /// Whether a signal came.
    pub(crate) fn came(&self) -> bool {
        self.count.load(Ordering::Relaxed) > 0
    }

    /// Whether a second one came.
    fn came_again(&self) -> bool {
        self.count.load(Ordering::Relaxed) > 1
    }

    /// Prepares a run, which may take as long as a name takes to be resolved and a connection to be
    /// made; a signal ends that.
    pub(crate) fn prepare(&self, plan: Plan) -> Result<Prepared> {
        let body = move || brunt_engine::prepare(plan);
        let prepared = threads::run_unless("brunt-prepare", body, || self.came())
            .context("cannot start a thread")?;
        Ok(prepared.ok_or(RunError::Interrupted)??)
    }

    /// Runs until a signal comes. `show` is called now and then with the phase and how far the run
    /// has come.
    pub(crate) fn run(
        &self,
        prepared: Prepared,
        own_server: bool,
        wanted: Wanted,
        show: &mut dyn FnMut(&str, Progress),
    ) -> Result<Run, RunError> {
        let control = prepared.control();
        let (mut drain_since_ns, mut is_said) = (None, false);
        prepared.run(&control, own_server, &mut |phase, progress| {
            let wants_no_drain = wanted == Wanted::Whole && self.came();
            if self.came_again() || wants_no_drain {
                control.hurry();
            } else if self.came() {
                control.interrupt();
                if phase == "drain" && !is_said {
                    let now_ns = clock::now_ns();
                    let since_ns = *drain_since_ns.get_or_insert(now_ns);
                    if now_ns - since_ns >= SILENCE_NS {
                        is_said = true;
                        say_that_it_ends();
                    }
                }
            }
            show(phase, progress);
        })
    }
}

/// What a run that was interrupted is good for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wanted {
    /// What was measured until then is reported.
    Part,
    /// Nothing.
    Whole,
}

fn say_that_it_ends() {
    let mut stderr = io::stderr();
    let line_start = if stderr.is_terminal() { "\r\x1b[K" } else { "" };
    // The terminal may be gone, which is why SIGHUP comes.
    let _ = writeln!(
        stderr,
        "{line_start}brunt: interrupted: replies are waited for, 1 s at most; a second signal ends \
         that at once"
    );
}

/// Whether the process was started with this signal ignored.
fn is_ignored(signal: i32) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    ignored_in(&status).is_some_and(|mask| mask >> (signal - 1) & 1 == 1)
}

/// The mask of ignored signals in a `/proc/PID/status`.
fn ignored_in(status: &str) -> Option<u64> {
    let mask = status
        .lines()
        .find_map(|line| line.strip_prefix("SigIgn:"))?;
    u64::from_str_radix(mask.trim(), 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mask_of_ignored_signals_is_read() {
        let status = "Name:\tbrunt\nSigBlk:\t0000000000000004\nSigIgn:\t0000000000001001\n";
        assert_eq!(ignored_in(status), Some(0x1001));
        assert_eq!(ignored_in("Name:\tbrunt\n"), None);
        assert!(ignored_in(&std::fs::read_to_string("/proc/self/status").unwrap()).is_some());
    }
}
