//! The generators of a session's workers: handed out for each round, and taken back.

use std::sync::Arc;

use brunt_load::{GeneratorError, Interrupt, RequestGenerator};
use brunt_measure::Protocol;
use thiserror::Error;

use crate::generated::Generated;
use crate::run::Ended;

/// After the last instant at which a worker should be done, a call of its generator is interrupted.
const PATIENCE_NS: u64 = 1_000_000_000;
/// A worker that is not done this long after that is left behind.
const LEFT_BEHIND_NS: u64 = 2_000_000_000;

/// Why a session cannot have its requests made by generators.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum GeneratorsError {
    /// There is not one for each worker.
    #[error("{given} generators of requests for {workers} workers: each worker needs one")]
    Count {
        /// How many workers there are.
        workers: u32,
        /// How many generators were given.
        given: usize,
    },
    /// What they make are texts of HTTP/1, and something else is spoken.
    #[error(
        "the requests of a script are texts of HTTP/1.1, and HTTP/2 is what is spoken here; use \
         --http1"
    )]
    Http2,
}

/// A generator for each worker; none where requests are those of the plan.
#[derive(Debug, Default)]
pub(crate) struct Generators {
    /// By the workers, from the first of this process on; a worker has its own while it works.
    of_workers: Vec<Option<Box<Generated>>>,
    interrupts: Vec<Option<Arc<dyn Interrupt>>>,
    error: Option<GeneratorError>,
    were_interrupted: bool,
}

/// What is to be done about workers that are not done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Patience {
    /// Nothing yet.
    Waits,
    /// They are left behind.
    IsOver,
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
        if protocol == Protocol::Http2 {
            return Err(GeneratorsError::Http2);
        }
        Ok(Self {
            interrupts: generators.iter().map(|it| it.interrupt()).collect(),
            of_workers: generators
                .into_iter()
                .map(|generator| Some(Box::new(Generated::new(generator))))
                .collect(),
            error: None,
            were_interrupted: false,
        })
    }

    /// That of a worker, by its place among those of this process.
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

    /// Workers, of which `is_done` tells, should have been done by `limit_ns`: generators that hold
    /// them are interrupted.
    pub(crate) fn look(
        &mut self,
        now_ns: u64,
        limit_ns: u64,
        is_done: impl Fn(usize) -> bool,
    ) -> Patience {
        let late_ns = now_ns.saturating_sub(limit_ns);
        if self.of_workers.is_empty() || late_ns < PATIENCE_NS {
            return Patience::Waits;
        }
        if !self.were_interrupted {
            self.were_interrupted = true;
            for (place, interrupt) in self.interrupts.iter().enumerate() {
                if let Some(interrupt) = interrupt
                    && !is_done(place)
                {
                    interrupt.interrupt();
                }
            }
        }
        if late_ns < PATIENCE_NS + LEFT_BEHIND_NS {
            Patience::Waits
        } else {
            Patience::IsOver
        }
    }
}
