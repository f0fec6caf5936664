//! The `brunt` binary: arguments in, exit code out.

mod args;
mod commands;
mod compare;
mod dropin;
mod executor;
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

use brunt_judge::{ComparisonOutcome, EndedEarly, Judged, Sweep, Verdict};
use brunt_report::Experiment;
use commands::{Arguments, Command};

#[global_allocator]
static HEAP: brunt_io::heap::Heap = brunt_io::heap::Heap;

/// An objective was missed, no request succeeded, or the server failed.
const EXIT_MISSED: u8 = 1;
/// Wrong usage, set-up failed before anything was measured, or a report could not be written.
const EXIT_SETUP: u8 = 2;
/// The result is not trustworthy: an invariant is broken.
const EXIT_INVALID: u8 = 3;
/// A comparison says nothing of a server: neither that it differs nor that it does not.
const EXIT_UNDECIDED: u8 = 4;
/// Interrupted by a signal; what was measured is reported all the same.
const EXIT_INTERRUPTED: u8 = 130;

/// What a run that was reported in full exits with, unless a signal cut it short.
fn exit_code(judged: &Judged<'_>) -> ExitCode {
    if !judged.is_valid() {
        ExitCode::from(EXIT_INVALID)
    } else if matches!(
        judged.judgement.verdict,
        Verdict::NoSuccess | Verdict::ServerFailed
    ) || judged.objectives().iter().any(|outcome| !outcome.is_met)
    {
        ExitCode::from(EXIT_MISSED)
    } else {
        ExitCode::SUCCESS
    }
}

/// What an experiment exits with, as it is made and from its file.
fn experiment_exit_code(experiment: &Experiment) -> ExitCode {
    let is_every_round = |sweep: &Sweep, verdict| {
        let mut rounds = sweep.rounds.iter();
        rounds.all(|round| round.record.verdict == verdict)
    };
    match experiment {
        // A sweep of which no round is worth anything has failed.
        Experiment::Sweep(it) if is_every_round(it, Verdict::Invalid) => EXIT_INVALID.into(),
        Experiment::Sweep(it) if is_every_round(it, Verdict::NoSuccess) => EXIT_MISSED.into(),
        Experiment::Capacity(it) if !it.result().has_passed() => EXIT_MISSED.into(),
        Experiment::Comparison(it) if it.ended_early == Some(EndedEarly::Interrupted) => {
            EXIT_INTERRUPTED.into()
        }
        Experiment::Comparison(it) => match it.outcome() {
            ComparisonOutcome::Passed => ExitCode::SUCCESS,
            ComparisonOutcome::Failed => EXIT_MISSED.into(),
            ComparisonOutcome::Undecided => EXIT_UNDECIDED.into(),
        },
        Experiment::Sweep(_) | Experiment::Capacity(_) => ExitCode::SUCCESS,
    }
}

/// Runs the load that was typed without a command.
fn run(arguments: &Arguments, given: &refusals::Given) -> anyhow::Result<ExitCode> {
    let load = &arguments.load;
    let url = habits::only_url(load)?;
    let plan = arguments.typed(given).plan(url, None)?;
    match (&load.script, &load.sessions) {
        (Some(path), _) => script::run(load, path, plan),
        (None, Some(path)) => sessions::run(load, path, plan),
        (None, None) => run::load(load, plan),
    }
}

fn main() -> ExitCode {
    // The first reading is the origin of the run's clock.
    brunt_io::clock::now_ns();
    session::outlive_file_limit();
    if let Err(error) = session::fit_address_space() {
        message::print(&error);
        return ExitCode::from(EXIT_SETUP);
    }
    if let Some(called) = dropin::Called::here() {
        return dropin::run(&called);
    }
    let (arguments, given) = Arguments::read(std::env::args_os()).unwrap_or_else(|error| {
        let typed = habits::typed();
        if error.kind() == clap::error::ErrorKind::DisplayHelp && habits::is_short(&typed) {
            message::output(include_str!("help/short.txt"));
            message::exit_with(0)
        }
        message::exit_with_usage(&habits::explain(error, &typed))
    });
    let outcome = match arguments.command {
        Some(Command::Serve(serve)) => serve::run(&serve),
        Some(Command::Compare(compare)) => compare::run(&compare, &given),
        Some(Command::Sweep(sweep)) => executor::sweep(*sweep, &given, None),
        Some(Command::Find(find)) => executor::find(&find, &given, None),
        Some(Command::Tcp(tcp)) => {
            plan::of_tcp(&tcp, &given).and_then(|plan| run::load(&tcp.load, plan))
        }
        Some(Command::Report(report)) => stored::report(&report, &given),
        Some(Command::Merge(merge)) => stored::merge(&merge),
        Some(Command::Fleet(fleet)) => fleet::run(*fleet, &given),
        Some(Command::Agent(agent)) => fleet::serve(&agent),
        None if let Some(kind) = &arguments.generate => generate::run(kind),
        None => run(&arguments, &given),
    };
    let code = outcome.unwrap_or_else(|error| {
        message::print(&format_args!("{error:#}"));
        ExitCode::from(match session::is_interrupt(&error) {
            true => EXIT_INTERRUPTED,
            false => EXIT_SETUP,
        })
    });
    if message::has_output_failed() {
        ExitCode::from(EXIT_SETUP)
    } else {
        code
    }
}
