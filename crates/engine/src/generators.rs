//! The generators of a session's workers: handed out for each round, and taken back.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use brunt_load::{GeneratorError, Interrupt, Plan, RequestGenerator};
use brunt_record::Protocol;
use thiserror::Error;

use crate::error::RunError;
use crate::generated::Generated;
use crate::run::Ended;

/// When the load is over, a call of a generator is interrupted if it lasts this long. A worker that
/// is in no call looks around twenty times a second.
const PATIENCE_NS: u64 = 1_000_000_000;
/// A worker that is still in a call this long after the interrupt is left behind: functions of the
/// system, which no interrupt reaches, may take as long.
const LEFT_BEHIND_NS: u64 = 5_000_000_000;

/// Why a session cannot have its requests made by generators.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum GeneratorsError {
    /// The number of generators is not the number of workers.
    #[error("{given} generators of requests for {workers} workers: each worker needs one")]
    Count {
        /// How many workers there are.
        workers: u32,
        /// How many generators were given.
        given: usize,
    },
    /// Generators make texts of HTTP/1, and the run uses another protocol.
    #[error(
        "the requests of a script are texts of HTTP/1.1, and {0} is what is spoken here; use \
         --http1"
    )]
    NotHttp1(&'static str),
}

/// A generator for each worker; none where requests are those of the plan.
#[derive(Debug, Default)]
pub(crate) struct Generators {
    /// The generators by worker, from the first worker of this process on; absent while the worker
    /// has its own.
    of_workers: Vec<Option<Box<Generated>>>,
    calls: Vec<Calls>,
    error: Option<GeneratorError>,
}

/// How the session sees that a worker is in a call of its generator, and ends that.
#[derive(Debug)]
struct Calls {
    interrupt: Option<Arc<dyn Interrupt>>,
    was_interrupted: bool,
    /// Turns of the worker so far.
    turns: Arc<AtomicU64>,
    /// The turns as last seen, and since when they have not changed.
    seen: (u64, u64),
}

impl Generators {
    pub(crate) fn new(
        generators: Vec<Box<dyn RequestGenerator>>,
        workers: u32,
        protocol: Protocol,
    ) -> Result<Self, GeneratorsError> {
        if generators.len() != workers as usize {
            return Err(GeneratorsError::Count {
                workers,
                given: generators.len(),
            });
        }
        if !protocol.takes_texts {
            return Err(GeneratorsError::NotHttp1(protocol.name));
        }
        let mut sent = Self::default();
        for generator in generators {
            let interrupt = generator.interrupt();
            let generated = Box::new(Generated::new(generator));
            sent.calls.push(Calls {
                interrupt,
                was_interrupted: false,
                turns: generated.turns(),
                seen: (0, 0),
            });
            sent.of_workers.push(Some(generated));
        }
        Ok(sent)
    }

    /// Whether there is what the plan needs.
    ///
    /// # Errors
    ///
    /// A generator made its requests, and there is none.
    pub(crate) fn check(&self, plan: &Plan) -> Result<(), RunError> {
        if plan.is_generated && self.of_workers.is_empty() {
            Err(RunError::NoGenerator)
        } else {
            Ok(())
        }
    }

    /// Takes the generator of a worker, by its place among the workers of this process.
    pub(crate) fn take(&mut self, place: usize) -> Option<Box<Generated>> {
        self.of_workers.get_mut(place)?.take()
    }

    /// The round is over for the worker in this place.
    pub(crate) fn put_back(&mut self, place: usize, ended: &mut Ended) {
        let Some(generated) = ended.finished.generated.take() else {
            return;
        };
        if let Some(error) = generated.error() {
            self.error.get_or_insert_with(|| error.clone());
        }
        if let Some(of_worker) = self.of_workers.get_mut(place) {
            *of_worker = Some(generated);
        }
    }

    /// Why one of them ended the run, if one did.
    pub(crate) fn error(&self) -> Option<&GeneratorError> {
        self.error.as_ref()
    }

    /// The load was over at `over_ns`, if that has come: calls that hold up workers, of which
    /// `is_done` tells, are interrupted. Gives the place of one that is to be left behind.
    pub(crate) fn look(
        &mut self,
        now_ns: u64,
        over_ns: u64,
        is_done: impl Fn(usize) -> bool,
    ) -> Option<usize> {
        let mut left_behind = None;
        for (place, calls) in self.calls.iter_mut().enumerate() {
            let turns = calls.turns.load(Ordering::Relaxed);
            if turns != calls.seen.0 || is_done(place) || now_ns < over_ns {
                calls.seen = (turns, now_ns);
                continue;
            }
            let held_ns = now_ns.saturating_sub(calls.seen.1);
            if held_ns >= PATIENCE_NS && !calls.was_interrupted {
                calls.was_interrupted = true;
                if let Some(interrupt) = &calls.interrupt {
                    interrupt.interrupt();
                }
            }
            if held_ns >= PATIENCE_NS + LEFT_BEHIND_NS {
                left_behind = Some(place);
            }
        }
        left_behind
    }
}
