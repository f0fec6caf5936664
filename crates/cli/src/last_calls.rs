//! A script's calls beyond the load: each ends in time, and with the next signal.

use std::process::ExitCode;
use std::sync::Arc;

use anyhow::Result;
use brunt_dropin::wrk::Scripted;
use brunt_io::{clock, threads};
use brunt_load::{Interrupt, RequestGenerator};
use brunt_record::Run;
use brunt_script::{ScriptError, flush_script_output};
use thiserror::Error;

use crate::signals::Interrupts;
use crate::{EXIT_INTERRUPTED, message};

/// A call lasts so long at most.
const LIMIT_NS: u64 = 30_000_000_000;
/// A call lasts so long at most where a signal has ended the load already.
const SIGNALLED_LIMIT_NS: u64 = 1_000_000_000;
/// A call that was interrupted, and does not return for so long, is in what Lua cannot end: a
/// finalizer, or a function of the system.
const GRACE_NS: u64 = 1_000_000_000;

/// Why a call beyond the load came to nothing.
#[derive(Debug, Error)]
pub(crate) enum CallError {
    #[error(transparent)]
    Script(#[from] ScriptError),
    #[error(
        "the script's {function} did not return within {} s and was ended",
        limit_ns / 1_000_000_000
    )]
    TooLong {
        function: &'static str,
        limit_ns: u64,
    },
    #[error("the script's {function} had not returned when a signal came, and was ended")]
    Signal { function: &'static str },
    #[error("cannot start a thread for the script's {function}")]
    Thread {
        function: &'static str,
        source: std::io::Error,
    },
}

/// What a command exits with after calls that ended so; `usual` where they returned.
///
/// # Errors
///
/// Why a call came to nothing, unless a signal ended it: that is a message.
pub(crate) fn exit_code(calls: Result<(), CallError>, usual: ExitCode) -> Result<ExitCode> {
    match calls {
        Ok(()) => Ok(usual),
        Err(error @ CallError::Signal { .. }) => {
            message::print(&error);
            Ok(ExitCode::from(EXIT_INTERRUPTED))
        }
        Err(error) => Err(error.into()),
    }
}

/// A script whose load is over, or is yet to come.
#[derive(Debug)]
pub(crate) struct LastCalls {
    /// The script; absent once a call did not return.
    script: Option<Scripted>,
    interrupts: Interrupts,
}

impl LastCalls {
    /// For a script that is ready.
    pub(crate) fn new(script: Scripted, interrupts: &Interrupts) -> Self {
        Self {
            script: Some(script),
            interrupts: interrupts.clone(),
        }
    }

    /// What makes the requests of each worker; none where they are those of the plan.
    pub(crate) fn generators(&mut self) -> Result<Vec<Box<dyn RequestGenerator>>, ScriptError> {
        let generators = self.script.as_mut().map(Scripted::generators);
        generators.unwrap_or_else(|| Ok(Vec::new()))
    }

    /// Calls what forks of wrk call in each thread when the load is over.
    pub(crate) fn tear_down(&mut self) -> Result<(), CallError> {
        self.call("teardown()", Scripted::tear_down)
    }

    /// Calls `done` with the outcome of `run`.
    pub(crate) fn done(&mut self, run: &Run) -> Result<(), CallError> {
        let outcome = brunt_dropin::wrk::outcome(run);
        self.call("done()", |script| script.done(outcome))
    }

    /// Writes out what the script has printed so far, unless a call of it may still be printing.
    pub(crate) fn flush(&self) {
        if self.script.is_some() {
            flush_script_output();
        }
    }

    /// Makes a call in a thread of its own, which is left behind where nothing ends it.
    fn call(
        &mut self,
        function: &'static str,
        body: impl FnOnce(&mut Scripted) -> Result<(), ScriptError> + Send + 'static,
    ) -> Result<(), CallError> {
        let Some(mut script) = self.script.take() else {
            return Ok(());
        };
        let mut watch = Watch::new(&self.interrupts, script.interrupter());
        let body = move || {
            let outcome = body(&mut script);
            (script, outcome)
        };
        let called = threads::run_unless("brunt-script", body, || watch.is_over())
            .map_err(|source| CallError::Thread { function, source })?;
        let outcome = called.map(|(script, outcome)| {
            self.script = Some(script);
            outcome
        });
        match (outcome, watch.ending(function)) {
            (Some(Ok(())), _) => Ok(()),
            (Some(Err(error)), None) => Err(error.into()),
            (_, Some(ending)) => Err(ending),
            // Not reached: nobody else ends the wait.
            (None, None) => Ok(()),
        }
    }
}

impl Drop for LastCalls {
    fn drop(&mut self) {
        let Some(script) = self.script.take() else {
            return;
        };
        // Its states run their finalizers.
        let function = "finalizer (__gc)";
        let mut watch = Watch::new(&self.interrupts, script.interrupter());
        let ended = threads::run_unless("brunt-script", || drop(script), || watch.is_over());
        if let (Ok(None), Some(ending)) = (ended, watch.ending(function)) {
            message::print(&ending);
        }
    }
}

/// Looks on while a call lasts, and ends it.
#[derive(Debug)]
struct Watch {
    interrupts: Interrupts,
    /// Signals that had come when it began.
    signals: u32,
    limit_ns: u64,
    until_ns: u64,
    interrupt: Arc<dyn Interrupt>,
    /// When it was ended, and whether a signal was why.
    ended: Option<(u64, bool)>,
}

impl Watch {
    fn new(interrupts: &Interrupts, interrupt: Arc<dyn Interrupt>) -> Self {
        let signals = interrupts.count();
        let limit_ns = match signals {
            0 => LIMIT_NS,
            _ => SIGNALLED_LIMIT_NS,
        };
        Self {
            interrupts: interrupts.clone(),
            signals,
            limit_ns,
            until_ns: clock::now_ns().saturating_add(limit_ns),
            interrupt,
            ended: None,
        }
    }

    /// Ends the call when its time is up; whether it is to be left behind.
    fn is_over(&mut self) -> bool {
        self.is_over_at(clock::now_ns())
    }

    fn is_over_at(&mut self, now_ns: u64) -> bool {
        let by_signal = self.interrupts.count() > self.signals;
        if by_signal || now_ns >= self.until_ns {
            self.ended.get_or_insert((now_ns, by_signal));
        }
        let Some((ended_ns, _)) = self.ended else {
            return false;
        };
        // Each time: a script with several states goes on with the next of them.
        self.interrupt.interrupt();
        now_ns >= ended_ns.saturating_add(GRACE_NS)
    }

    /// What ended the call, if it did not end by itself.
    fn ending(&self, function: &'static str) -> Option<CallError> {
        let limit_ns = self.limit_ns;
        self.ended.map(|(_, by_signal)| match by_signal {
            true => CallError::Signal { function },
            false => CallError::TooLong { function, limit_ns },
        })
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::*;

    #[derive(Debug, Default)]
    struct Counted(AtomicU32);

    impl Interrupt for Counted {
        fn interrupt(&self) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// A call that begins at 0, when so many signals have come: what ends it, and when it is
    /// interrupted and left behind, in milliseconds.
    fn watched(before: u32, signal_ms: Option<u64>) -> (String, u64, u64) {
        const MS: u64 = 1_000_000;
        let interrupts = Interrupts::of(before);
        let interrupt = Arc::new(Counted::default());
        let mut watch = Watch::new(&interrupts, interrupt.clone());
        watch.until_ns = watch.limit_ns;
        let mut interrupted_ms = None;
        for now_ms in (0..).step_by(10) {
            if signal_ms == Some(now_ms) {
                interrupts.add();
            }
            let is_over = watch.is_over_at(now_ms * MS);
            if interrupt.0.load(Ordering::Relaxed) > 0 {
                interrupted_ms.get_or_insert(now_ms);
            }
            if is_over {
                let ending = watch.ending("done()").expect("it has ended");
                let interrupted_ms = interrupted_ms.expect("it was interrupted");
                return (ending.to_string(), interrupted_ms, now_ms);
            }
        }
        unreachable!("it ends");
    }

    #[test]
    fn calls_end_in_time_and_with_the_next_signal() {
        let late = "the script's done() did not return within 30 s and was ended";
        let signalled = "the script's done() had not returned when a signal came, and was ended";
        assert_eq!(watched(0, None), (late.to_owned(), 30_000, 31_000));
        assert_eq!(watched(0, Some(70)), (signalled.to_owned(), 70, 1_070));
        assert_eq!(watched(1, Some(70)), (signalled.to_owned(), 70, 1_070));
        let late = late.replace("30 s", "1 s");
        assert_eq!(watched(1, None), (late, 1_000, 2_000));
    }
}
