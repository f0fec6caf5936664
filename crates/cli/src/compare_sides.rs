//! The rounds of compared servers: in a session of each that lasts, or in one for each round where
//! the server is started for it.

use anyhow::{Context, Result};
use brunt_engine::{Rounds, RunError, RunObserver};
use brunt_load::{Plan, Round};
use brunt_measure::Run;
use brunt_report::side_name;

use crate::plan::faults;
use crate::session::Wanted;
use crate::side_server::SideCommands;
use crate::signals::Interrupts;

/// The servers that are compared.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sides<'a> {
    pub(crate) plans: &'a [Plan],
    pub(crate) commands: &'a [SideCommands],
    pub(crate) interrupts: &'a Interrupts,
}

/// The same with the sessions that are open: none of sides whose server is started for each round.
pub(crate) struct OpenSides<'a, 's> {
    sides: Sides<'a>,
    sessions: Vec<Option<&'s mut dyn Rounds>>,
}

impl<'a> Sides<'a> {
    /// Does `body` while each server that runs has its session.
    pub(crate) fn open<T>(
        self,
        body: &mut dyn FnMut(&mut OpenSides<'a, '_>) -> Result<T>,
    ) -> Result<T> {
        self.open_behind(Vec::new(), body)
    }

    /// The same, with the sessions of the first sides.
    fn open_behind<T>(
        self,
        mut sessions: Vec<Option<&mut dyn Rounds>>,
        body: &mut dyn FnMut(&mut OpenSides<'a, '_>) -> Result<T>,
    ) -> Result<T> {
        let side = sessions.len();
        let Some((plan, commands)) = self.plans.get(side).zip(self.commands.get(side)) else {
            let sides = self;
            return body(&mut OpenSides { sides, sessions });
        };
        if commands.has_start() {
            sessions.push(None);
            return self.open_behind(sessions, body);
        }
        let interrupts = self.interrupts;
        interrupts.in_session(plan.clone(), faults(&[]), false, Wanted::Whole, |session| {
            let mut with: Vec<Option<&mut dyn Rounds>> = Vec::with_capacity(sessions.len() + 1);
            for opened in &mut sessions {
                with.push(match opened {
                    Some(opened) => Some(&mut **opened),
                    None => None,
                });
            }
            with.push(Some(session));
            self.open_behind(with, body)
        })
    }
}

impl OpenSides<'_, '_> {
    /// Measures a round of a side.
    pub(crate) fn round(
        &mut self,
        side: usize,
        round: &Round,
        observer: &mut dyn RunObserver,
    ) -> Result<Run> {
        let Sides {
            plans,
            commands,
            interrupts,
        } = self.sides;
        let (plan, commands) = (&plans[side], &commands[side]);
        let server = commands.start(plan, interrupts)?;
        let run = commands
            .warm_up(interrupts)
            .and_then(|()| match &mut self.sessions[side] {
                Some(session) => Ok(session.round(round, observer)?),
                None => {
                    let (plan, none) = (plan.clone(), faults(&[]));
                    interrupts.in_session(plan, none, false, Wanted::Whole, |session| {
                        Ok(session.round(round, observer)?)
                    })
                }
            });
        let stopped = match server {
            Some(server) => {
                server.report_its_end();
                server.stop()
            }
            None => Ok(()),
        };
        let run = run.with_context(|| format!("a round of {} failed", self.name(side)))?;
        stopped?;
        if run.interrupted() {
            return Err(RunError::Interrupted.into());
        }
        Ok(run)
    }

    fn name(&self, side: usize) -> String {
        format!(
            "{} ({})",
            side_name(side),
            self.sides.plans[side].target.url
        )
    }
}
