//! `brunt fleet`: one load made by several agents, and one report of it.

use std::process::ExitCode;

use anyhow::{Result, bail};
use brunt_fleet::{Program, merged};
use brunt_judge::Judged;
use brunt_load::Plan;

use crate::args::LoadArguments;
use crate::commands::{FleetArguments, FleetCommand};
use crate::executor::{AskedFleet, gather};
use crate::fleet_kept::keep;
use crate::output::Destination;
use crate::plan::{self, set_workers};
use crate::progress::Line;
use crate::redact::redact;
use crate::refusals::{self, Given};
use crate::signals::{Interrupts, Second};
use crate::{
    EXIT_INTERRUPTED, EXIT_INVALID, command_line, find, message, objectives, script, sessions,
    sweep,
};

/// Makes the load, and prints the report.
pub(crate) fn run(arguments: FleetArguments, given: &Given) -> Result<ExitCode> {
    given.refuse(refusals::FLEET)?;
    match arguments.command {
        Some(FleetCommand::Tcp(it)) => {
            let plan = plan::of_tcp(&it.command, given)?;
            make((&it.agents, &it.broker), &it.command.load, plan)
        }
        Some(FleetCommand::Sweep(it)) => {
            sweep::run(it.command, given, Some((&it.agents, &it.broker)))
        }
        Some(FleetCommand::Find(it)) => {
            find::run(&it.command, given, Some((&it.agents, &it.broker)))
        }
        None => {
            let typed = &arguments.typed.load;
            // They are for the script, where there is one.
            let further = typed.behind_url.first().filter(|_| typed.script.is_none());
            if let Some(other) = further {
                bail!("one server is loaded at a time; leave out {other}");
            }
            if !typed.has_server() {
                bail!("give the URL of the server: agents have none of their own");
            }
            let plan = arguments
                .typed
                .typed(given)
                .plan(typed.url.as_deref(), None)?;
            make((&arguments.agents, &arguments.broker), typed, plan)
        }
    }
}

/// Makes the load of `plan`, whose workers are as many as the agents have.
fn make(asked: AskedFleet<'_>, typed: &LoadArguments, mut plan: Plan) -> Result<ExitCode> {
    let destination = Destination::open(&typed.output)?;
    let interrupts = Interrupts::listen(Second::Reports)?;
    let program = match (&typed.script, &typed.sessions) {
        (Some(path), _) => {
            let script = script::of_fleet(typed, path, &mut plan, &interrupts)?;
            Some(Program::Script(script))
        }
        (None, Some(path)) => {
            let sessions = sessions::of_fleet(typed, path, &mut plan)?;
            Some(Program::Sessions(sessions))
        }
        (None, None) => None,
    };
    let mut agents = gather(asked, typed, &plan.target, &interrupts)?;
    set_workers(&mut plan, typed, |model| agents.workers(model));
    // It was that of a state for the script, and of one thread.
    plan.held_beside_bytes = plan.held_beside_bytes / 2 * (u64::from(plan.workers.get()) + 1);
    let mut line = Line::new(&typed.output, &plan);
    let outcome = agents.measure(&plan, program.as_ref(), false, &mut line);
    line.clear();
    drop(agents);
    let outcome = outcome?;
    let was_interrupted = outcome.was_interrupted;
    let mut run = match merged(&plan, &outcome) {
        Ok(run) => run,
        Err(error) => {
            // What was measured is not lost for that.
            message::print(&format_args!("{error:#}"));
            keep(&outcome.results, &typed.output)?;
            return Ok(ExitCode::from(EXIT_INVALID));
        }
    };
    if let Some(first) = run.agents.first_mut() {
        // The agents were called without a load: this is how to make it again.
        first.command = command_line::here();
    }
    if let Some(asked) = objectives::asked(&typed.output.objective) {
        run.objectives = asked;
    }
    if typed.output.redact {
        redact(&mut run);
    }
    let code = destination.write(&Judged::of(&run))?;
    Ok(match was_interrupted {
        true => ExitCode::from(EXIT_INTERRUPTED),
        false => code,
    })
}
