//! Sessions that signals end: the first one in good order, the second at once. Either way what was
//! measured is reported.

use anyhow::{Context, Result, bail};
use brunt_engine::{Control, Phase, Prepared, Progress, Rounds, RunError, RunObserver};
use brunt_io::{clock, threads};
use brunt_load::{Part, Plan, RequestGenerator, Round};
use brunt_record::Run;

use crate::args::PartArguments;
use crate::message;
use crate::signals::Interrupts;
use crate::values::NumberedPart;

/// An interrupted run that lasts on for longer than this says what it waits for.
const SILENCE_NS: u64 = 100_000_000;

/// What a round that was interrupted is good for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Wanted {
    /// Nothing: it ends with [`RunError::Interrupted`].
    #[default]
    Whole,
    /// What was measured until then is reported.
    Part,
}

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
        let Some(part) = Part::nth(number.get() - 1, of, plan.workers) else {
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
    pub(crate) wanted: Wanted,
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
            wanted: options.wanted,
        });
        let had_come = self.came();
        session.leave(|| self.came_again() || self.came() && !had_come);
        outcome
    }

    /// Makes the one round that `plan` is, in a session of its own, while `observer` looks on.
    pub(crate) fn round(&self, plan: Plan, observer: &mut dyn RunObserver) -> Result<Run> {
        let round = Round::of(&plan);
        self.in_session(plan, SessionOptions::default(), |session| {
            Ok(session.round(&round, observer)?)
        })
    }

    /// Prepares a run, which may take as long as a name takes to be resolved and a connection to be
    /// made; a signal ends that.
    fn prepare(&self, plan: Plan, part: Option<Part>) -> Result<Prepared> {
        let body = move || brunt_engine::prepare_part(plan, part);
        let prepared = threads::run_unless("brunt-prepare", body, || self.came())
            .context("cannot start a thread")?;
        Ok(prepared.ok_or(RunError::Interrupted)??)
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
    wanted: Wanted,
}

impl Rounds for Interruptible<'_> {
    fn round(&mut self, round: &Round, observer: &mut dyn RunObserver) -> Result<Run, RunError> {
        let mut passing_on = PassingOn {
            interrupts: self.interrupts,
            control: self.control,
            wanted: self.wanted,
            drain_since_ns: None,
            is_said: false,
            observer,
        };
        let run = self.session.round(round, &mut passing_on)?;
        match self.wanted {
            Wanted::Whole if run.interrupted() => Err(RunError::Interrupted),
            Wanted::Whole | Wanted::Part => Ok(run),
        }
    }
}

/// Passes on signals to a run, and what the run shows to `observer`.
struct PassingOn<'a> {
    interrupts: &'a Interrupts,
    control: &'a Control,
    wanted: Wanted,
    drain_since_ns: Option<u64>,
    /// It was said what is waited for.
    is_said: bool,
    observer: &'a mut dyn RunObserver,
}

impl RunObserver for PassingOn<'_> {
    fn inner(&mut self) -> Option<&mut dyn RunObserver> {
        Some(&mut *self.observer)
    }

    fn progress(&mut self, phase: Phase, progress: &Progress) {
        let wants_no_drain = self.wanted == Wanted::Whole && self.interrupts.came();
        if self.interrupts.came_again() || wants_no_drain {
            self.control.hurry();
        } else if self.interrupts.came() {
            self.control.interrupt();
            if phase == Phase::Drain && !self.is_said {
                let now_ns = clock::now_ns();
                let since_ns = *self.drain_since_ns.get_or_insert(now_ns);
                if now_ns - since_ns >= SILENCE_NS {
                    self.is_said = true;
                    say_that_it_ends();
                }
            }
        }
        self.observer.progress(phase, progress);
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
