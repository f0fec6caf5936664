//! `brunt agent`: makes its part of the rounds of load that a coordinator asks for.

use std::fmt::Display;
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use brunt_dropin::wrk;
use brunt_fleet::{AgentHost, Generators, Host, NamedBroker, Program, Service};
use brunt_load::{Part, Plan};
use brunt_record::Run;

use crate::commands::AgentArguments;
use crate::origin::Origin;
use crate::session::of_part;
use crate::signals::{Interrupts, Second};
use crate::{EXIT_INTERRUPTED, command_line, message, script, sessions, time_wait};

/// Joins a job, and does its part.
pub(crate) fn run(arguments: &AgentArguments) -> Result<ExitCode> {
    let named = arguments.broker.named()?;
    let NamedBroker { broker, job, .. } =
        named.context("name the broker, as in brunt agent --nats nats://127.0.0.1:4222")?;
    let interrupts = Interrupts::listen(Second::Reports)?;
    let service = Service {
        broker,
        job,
        name: match &arguments.name {
            Some(name) => name.clone(),
            None => brunt_probe::machine::name(),
        },
        allowed: arguments.allow_target.clone(),
        allows_scripts: arguments.allow_scripts,
        wait_ns: arguments.wait,
        keep: arguments.keep.clone(),
    };
    let is_done = brunt_fleet::serve(&service, &interrupts)?;
    Ok(if is_done {
        ExitCode::SUCCESS
    } else {
        ExitCode::from(EXIT_INTERRUPTED)
    })
}

impl Host for Interrupts {
    fn say(&self, words: &dyn Display) {
        message::print(words);
    }

    fn signals(&self) -> u32 {
        self.count()
    }
}

impl AgentHost for Interrupts {
    fn settle(&self, ports: Option<u64>, is_over: &mut dyn FnMut() -> bool) -> bool {
        time_wait::settle(ports, is_over)
    }

    fn generators(
        &self,
        program: &Program,
        plan: &Plan,
        part: Part,
        is_over: &mut dyn FnMut() -> bool,
    ) -> Result<Option<Generators>> {
        let text = match program {
            Program::Script(text) => text,
            Program::Sessions(text) => {
                return Ok(Some(Generators {
                    generators: sessions::of_agent(text, plan, part.workers())?,
                    kept: None,
                }));
            }
        };
        let Some(mut script) = script::of_agent(text, plan, is_over)? else {
            return Ok(None);
        };
        Ok(Some(Generators {
            generators: of_part(script.generators()?, part),
            kept: Some(Box::new(script)),
        }))
    }

    fn complete(&self, run: &mut Run) -> Result<()> {
        if let Some(error) = wrk::script_error(run) {
            bail!("{error}");
        }
        Origin::of_command(command_line::here()).complete(run);
        Ok(())
    }
}
