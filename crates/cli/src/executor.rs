//! Who makes the rounds of an experiment: this process, or the agents of a fleet.

use std::num::NonZeroU32;

use anyhow::Result;
use brunt_engine::{Rounds, RunError};
use brunt_io::cpu::usable_cpus;
use brunt_load::{LoadModel, Plan, Round};
use brunt_record::Run;

use crate::progress::Line;
use crate::server_software::software_of;
use crate::session::SessionOptions;
use crate::signals::Interrupts;
use crate::time_wait;

/// Who an experiment has for its rounds.
pub(crate) trait Executor {
    /// Workers of a load of this model, where no number of them is typed.
    fn workers(&self, model: &LoadModel) -> NonZeroU32;

    /// Whether it can make a round of `plan`.
    ///
    /// # Errors
    ///
    /// It cannot.
    fn check(&self, plan: &Plan) -> Result<()>;

    /// What the server names as its software; absent where that is not known.
    ///
    /// # Errors
    ///
    /// There is no server.
    fn software(&mut self, plan: &Plan) -> Result<Option<String>>;

    /// Does `body` with who makes its rounds: all of them levels of `plan`, where they are one
    /// session.
    ///
    /// # Errors
    ///
    /// As those of `body`, or there is no session.
    fn in_session(
        &mut self,
        plan: &Plan,
        is_one: bool,
        body: &mut dyn FnMut(&mut dyn RoundSource) -> Result<()>,
    ) -> Result<()>;
}

/// Who makes rounds.
pub(crate) trait RoundSource {
    /// Makes the round that is all of `plan`.
    ///
    /// # Errors
    ///
    /// There is no whole round; [`RunError::Interrupted`] where that is for a signal.
    fn round(&mut self, plan: &Plan, line: &mut Line) -> Result<Run>;

    /// Waits until sockets of earlier rounds have given their ports back, of which there are so
    /// many.
    ///
    /// # Errors
    ///
    /// [`RunError::Interrupted`].
    fn settle(&self, ports: Option<u64>) -> Result<()>;
}

/// This process.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ThisProcess<'a>(pub(crate) &'a Interrupts);

impl Executor for ThisProcess<'_> {
    fn workers(&self, model: &LoadModel) -> NonZeroU32 {
        brunt_engine::default_workers(model, usable_cpus())
    }

    fn check(&self, _plan: &Plan) -> Result<()> {
        Ok(())
    }

    fn software(&mut self, plan: &Plan) -> Result<Option<String>> {
        software_of(self.0, plan)
    }

    fn in_session(
        &mut self,
        plan: &Plan,
        is_one: bool,
        body: &mut dyn FnMut(&mut dyn RoundSource) -> Result<()>,
    ) -> Result<()> {
        let interrupts = self.0;
        let mut source = RoundsHere {
            interrupts,
            session: None,
        };
        if !is_one {
            return body(&mut source);
        }
        interrupts.in_session(plan.clone(), SessionOptions::default(), |session| {
            body(&mut RoundsHere {
                interrupts,
                session: Some(session),
            })
        })
    }
}

/// Rounds in this process.
struct RoundsHere<'a, 's> {
    interrupts: &'a Interrupts,
    /// The session of all rounds; absent where each has one of its own.
    session: Option<&'s mut dyn Rounds>,
}

impl RoundSource for RoundsHere<'_, '_> {
    fn round(&mut self, plan: &Plan, line: &mut Line) -> Result<Run> {
        match &mut self.session {
            Some(session) => Ok(session.round(&Round::of(plan), line)?),
            None => {
                let options = SessionOptions::default();
                self.interrupts.round(plan.clone(), options, line)
            }
        }
    }

    /// Connections that brunt closes leave no such sockets: those that the server closes do.
    fn settle(&self, ports: Option<u64>) -> Result<()> {
        match time_wait::settle(ports, || self.interrupts.came()) {
            true => Ok(()),
            false => Err(RunError::Interrupted.into()),
        }
    }
}
