//! The rounds of compared servers, each in a session of its own. How connections fall on the
//! threads and processes of a server stays for as long as they are open: in a session that lasts it
//! would be a difference of the sides, and with new connections it is what rounds vary by.

use anyhow::{Context, Result};
use brunt_engine::RunObserver;
use brunt_load::{Plan, Round};
use brunt_record::Run;
use brunt_report::side_name;

use crate::session::SessionOptions;
use crate::side_server::SideCommands;
use crate::signals::Interrupts;

/// The servers that are compared.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sides<'a> {
    pub(crate) plans: &'a [Plan],
    pub(crate) commands: &'a [SideCommands],
    pub(crate) interrupts: &'a Interrupts,
}

impl Sides<'_> {
    /// Measures a round of a side.
    pub(crate) fn round(
        &self,
        side: usize,
        round: &Round,
        observer: &mut dyn RunObserver,
    ) -> Result<Run> {
        let interrupts = self.interrupts;
        let (plan, commands) = (&self.plans[side], &self.commands[side]);
        let server = commands.start(plan, interrupts)?;
        let run = commands.warm_up(interrupts).and_then(|()| {
            let options = SessionOptions::default();
            interrupts.in_session(plan.clone(), options, |session| {
                Ok(session.round(round, observer)?)
            })
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
        Ok(run)
    }

    fn name(&self, side: usize) -> String {
        format!("{} ({})", side_name(side), self.plans[side].target.url)
    }
}
