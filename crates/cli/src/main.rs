//! The program `brunt`: arguments become a plan, the plan a run, the run a report.
//!
//! After `main`, open `args` (the options of a run), `plan` (what they make of a plan) and `run`.

mod args;
mod commands;
mod compare;
mod dropin;
mod executor;
mod exit;
mod fleet;
mod generate;
mod habits;
mod message;
mod objectives;
mod output;
mod plan;
mod progress;
mod redact;
mod refusals;
mod request;
mod run;
mod script;
mod serve;
mod session;
mod sessions;
mod stored;
mod values;

use std::process::ExitCode;

use commands::Command;

#[global_allocator]
static HEAP: brunt_io::heap::Heap = brunt_io::heap::Heap;

fn main() -> ExitCode {
    // The first reading is the origin of the run's clock.
    brunt_io::clock::now_ns();
    session::outlive_file_limit();
    if let Err(error) = session::fit_address_space() {
        return exit_code(Err(error));
    }
    match dropin::Called::here() {
        Some(called) => dropin::run(&called),
        None => exit_code(command()),
    }
}

/// Does what the command line asks for.
fn command() -> anyhow::Result<ExitCode> {
    let (arguments, given) = habits::arguments();
    match arguments.command {
        Some(Command::Serve(serve)) => serve::run(&serve),
        Some(Command::Compare(compare)) => compare::run(&compare, &given),
        Some(Command::Sweep(sweep)) => executor::sweep(*sweep, &given, None),
        Some(Command::Find(find)) => executor::find(*find, &given, None),
        Some(Command::Tcp(tcp)) => run::load(&tcp.load, plan::of_tcp(&tcp, &given)?),
        Some(Command::Report(report)) => stored::report(&report, &given),
        Some(Command::Merge(merge)) => stored::merge(&merge),
        Some(Command::Fleet(fleet)) => fleet::run(*fleet, &given),
        Some(Command::Agent(agent)) => fleet::serve(&agent),
        None if let Some(kind) = &arguments.generate => generate::run(kind),
        None => {
            let load = &arguments.load;
            let url = habits::only_url(load)?;
            let plan = arguments.typed(&given).plan(url)?;
            match (&load.script, &load.sessions) {
                (Some(path), _) => script::run(load, path, plan),
                (None, Some(path)) => sessions::run(load, path, plan),
                (None, None) => run::load(load, plan),
            }
        }
    }
}

/// What a command exits with, once its error is printed.
fn exit_code(outcome: anyhow::Result<ExitCode>) -> ExitCode {
    let code = outcome.unwrap_or_else(|error| {
        message::print(&format_args!("{error:#}"));
        ExitCode::from(if session::is_interrupt(&error) {
            exit::INTERRUPTED
        } else {
            exit::SETUP
        })
    });
    if message::has_output_failed() {
        ExitCode::from(exit::SETUP)
    } else {
        code
    }
}
