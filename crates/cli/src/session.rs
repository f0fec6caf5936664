//! SIGINT, SIGTERM and SIGHUP: listening for them, and sessions that they end, the first one in
//! good order, the second at once. Either way what was measured is reported.

use std::process;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use anyhow::{Context, Result, bail};
use brunt_engine::{Control, Phase, Prepared, Progress, Rounds, RunError, RunObserver, Snapshot};
use brunt_io::{clock, heap, process_group, threads};
use brunt_load::{Load, Part, Plan, RequestGenerator};
use brunt_probe::memory;
use brunt_record::{RequestLog, Run};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGXFSZ};
use signal_hook::iterator::Signals;

use crate::args::PartArguments;
use crate::values::NumberedPart;
use crate::{exit, message};

/// What a second signal does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Second {
    /// The run ends at once, with its report. A third one ends the process: it may be stuck, with a
    /// report for a pipe that nobody reads, say.
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
        let last = match second {
            Second::Ends => 2,
            Second::Reports => 3,
        };
        let body = move || {
            for _ in signals.forever() {
                if heard.fetch_add(1, Ordering::Relaxed) + 1 >= last {
                    process_group::kill_all();
                    process::exit(exit::INTERRUPTED.into());
                }
            }
        };
        threads::spawn("brunt-signals", body).context("cannot listen for signals")?;
        Ok(Self { count })
    }

    /// How many signals came.
    pub(crate) fn count(&self) -> u32 {
        self.count.load(Ordering::Relaxed)
    }

    /// Whether a signal came.
    pub(crate) fn came(&self) -> bool {
        self.count() > 0
    }

    /// Whether a second one came.
    pub(crate) fn came_again(&self) -> bool {
        self.count() > 1
    }

    /// As if so many had come, and none could come but by [`Self::add`].
    #[cfg(test)]
    pub(crate) fn of(count: u32) -> Self {
        Self {
            count: Arc::new(AtomicU32::new(count)),
        }
    }

    #[cfg(test)]
    pub(crate) fn add(&self) {
        self.count.fetch_add(1, Ordering::Relaxed);
    }
}

/// Has the kernel refuse what would make a file larger than is allowed (RLIMIT_FSIZE), in place of
/// the signal that ends the process and leaves temporary files behind. It is handled and not
/// ignored, which commands that brunt runs would inherit.
pub(crate) fn outlive_file_limit() {
    // Without a handler the signal ends the process, as it does by default.
    let _ = signal_hook::flag::register(SIGXFSZ, Arc::new(AtomicBool::new(false)));
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

/// What brunt needs with one worker: stacks of its threads, certificates, buffers, histograms.
const NEEDED_BYTES: u64 = 56 << 20;

/// Makes the most of the address space, where it is limited.
///
/// # Errors
///
/// It is too small for any run.
pub(crate) fn fit_address_space() -> Result<()> {
    let Some(space) = memory::address_space() else {
        return Ok(());
    };
    heap::use_one_arena();
    if space.left_bytes() < NEEDED_BYTES {
        let needed = space.used_bytes + NEEDED_BYTES;
        bail!(
            "{} MB of address space are allowed (RLIMIT_AS), and brunt needs {} MB at least; raise \
             the limit with `ulimit -v {}`, or limit memory by a cgroup in its place",
            space.limit_bytes >> 20,
            needed.div_ceil(1 << 20),
            needed.div_ceil(1 << 10)
        );
    }
    Ok(())
}

/// An interrupted run that lasts on for longer than this says what it waits for.
const SILENCE_NS: u64 = 100_000_000;

/// A part of a plan, and when its load begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TakenPart {
    pub(crate) part: Part,
    /// On the run's clock, nanoseconds.
    pub(crate) start_ns: u64,
}

impl PartArguments {
    /// The part of `plan` that is made here; absent: all of it.
    pub(crate) fn of(&self, plan: &Plan) -> Result<Option<TakenPart>> {
        let Some(NumberedPart { number, of }) = self.part else {
            return Ok(None);
        };
        let Some(part) = Part::nth(number.get() - 1, of, plan.workers.count) else {
            bail!("each part needs a worker of its own; use -t {of} or more, the same for each");
        };
        let Some(unix_ns) = self.start_at else {
            bail!(
                "the parts are one load when they begin at once: add --start-at, the same for each"
            );
        };
        let start_ns = unix_ns.saturating_sub(clock::origin_unix_ns());
        Ok(Some(TakenPart { part, start_ns }))
    }
}

/// What a session has beside its plan.
#[derive(Default)]
pub(crate) struct SessionOptions {
    /// The target lives in this process.
    pub(crate) own_server: bool,
    /// What is made of the plan here; absent: all of it.
    pub(crate) part: Option<TakenPart>,
    /// What makes the requests, one for each worker of the plan; without any, they are those of
    /// the plan. Dropped with the session.
    pub(crate) generators: Vec<Box<dyn RequestGenerator>>,
    /// What was measured of a round that was interrupted is reported; else the round ends with
    /// [`RunError::Interrupted`].
    pub(crate) reports_part: bool,
}

impl Interrupts {
    /// Does `body` in a session of `plan`. A signal ends the round that is measured, with
    /// [`RunError::Interrupted`] where that leaves nothing to report; a second one, the wait for
    /// replies and for servers that close their connections.
    pub(crate) fn in_session<T>(
        &self,
        plan: Plan,
        mut options: SessionOptions,
        body: impl FnOnce(&mut dyn Rounds) -> Result<T>,
    ) -> Result<T> {
        let part = options.part.map(|taken| taken.part);
        if let Some(part) = part {
            options.generators = of_part(options.generators, part);
        }
        let prepared = self.prepare(plan, part)?;
        let control = prepared.control();
        if let Some(taken) = options.part {
            control.hold_start();
            control.start_at(taken.start_ns);
        }
        let mut session = prepared.open(&control, options.own_server);
        if !options.generators.is_empty() {
            session.set_generators(options.generators)?;
        }
        let outcome = body(&mut Interruptible {
            session: &mut session,
            interrupts: self,
            control: &control,
            reports_part: options.reports_part,
        });
        let had_come = self.came();
        session.leave(|| self.came_again() || self.came() && !had_come);
        outcome
    }

    /// Makes the one round that `plan` is, in a session of its own, while `observer` looks on.
    pub(crate) fn round(&self, plan: Plan, observer: &mut dyn RunObserver) -> Result<Run> {
        let load = plan.load.clone();
        self.in_session(plan, SessionOptions::default(), |session| {
            Ok(session.round(&load, observer)?)
        })
    }

    /// Prepares a run, which may take as long as a name takes to be resolved and a connection to be
    /// made.
    fn prepare(&self, plan: Plan, part: Option<Part>) -> Result<Prepared> {
        let prepare = move || brunt_engine::prepare_part(plan, part);
        Ok(self.unless_came("brunt-prepare", prepare)??)
    }

    /// Does what blocks, in a thread that nobody waits for after a signal.
    pub(crate) fn unless_came<T: Send + 'static>(
        &self,
        name: &str,
        body: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T> {
        if self.came() {
            return Err(RunError::Interrupted.into());
        }
        let done = threads::run_unless(name, body, || self.came());
        let done = done.context("cannot start a thread")?;
        done.ok_or_else(|| RunError::Interrupted.into())
    }
}

/// Those of the generators of all workers of a plan that make the requests of a part of them.
pub(crate) fn of_part(
    generators: Vec<Box<dyn RequestGenerator>>,
    part: Part,
) -> Vec<Box<dyn RequestGenerator>> {
    let workers = part.workers();
    let here = generators.into_iter().zip(0..);
    let here = here.filter(|(_, worker)| workers.contains(worker));
    here.map(|(generator, _)| generator).collect()
}

/// A session whose rounds are ended by signals.
struct Interruptible<'a> {
    session: &'a mut dyn Rounds,
    interrupts: &'a Interrupts,
    control: &'a Control,
    reports_part: bool,
}

impl Rounds for Interruptible<'_> {
    fn round(&mut self, load: &Load, observer: &mut dyn RunObserver) -> Result<Run, RunError> {
        let mut passing_on = PassingOn {
            interrupts: self.interrupts,
            control: self.control,
            reports_part: self.reports_part,
            drain_since_ns: None,
            is_announced: false,
            observer,
        };
        let run = self.session.round(load, &mut passing_on)?;
        if run.interrupted() && !self.reports_part {
            return Err(RunError::Interrupted);
        }
        Ok(run)
    }
}

/// Passes on signals to a run, and what the run shows to `observer`.
struct PassingOn<'a> {
    interrupts: &'a Interrupts,
    control: &'a Control,
    reports_part: bool,
    drain_since_ns: Option<u64>,
    /// It was said what is waited for.
    is_announced: bool,
    observer: &'a mut dyn RunObserver,
}

impl RunObserver for PassingOn<'_> {
    fn progress(&mut self, phase: Phase, progress: &Progress) {
        let wants_no_drain = !self.reports_part && self.interrupts.came();
        if self.interrupts.came_again() || wants_no_drain {
            self.control.hurry();
        } else if self.interrupts.came() {
            self.control.interrupt();
            if phase == Phase::Drain && !self.is_announced {
                let now_ns = clock::now_ns();
                let since_ns = *self.drain_since_ns.get_or_insert(now_ns);
                if now_ns - since_ns >= SILENCE_NS {
                    self.is_announced = true;
                    say_that_it_ends();
                }
            }
        }
        self.observer.progress(phase, progress);
    }

    fn snapshot(&mut self, snapshot: &Snapshot) {
        self.observer.snapshot(snapshot);
    }

    fn request_log(&mut self, log: RequestLog) {
        self.observer.request_log(log);
    }
}

fn say_that_it_ends() {
    if message::is_live() {
        message::erase();
    }
    message::print(
        &"interrupted: replies are waited for, 1 s at most; a second signal ends that at once",
    );
}

/// Whether the error is that a signal came before there was anything to report.
pub(crate) fn is_interrupt(error: &anyhow::Error) -> bool {
    matches!(error.downcast_ref(), Some(RunError::Interrupted))
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
