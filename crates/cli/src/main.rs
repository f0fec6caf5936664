//! The `brunt` binary: arguments in, exit code out.

mod address_space;
mod agent;
mod args;
mod broker_args;
mod command_line;
mod compare;
mod compare_sides;
mod compare_stored;
mod compared;
mod dropin;
mod environment;
mod executor;
mod experiment_help;
mod fail_if;
mod find;
mod fleet;
mod fleet_args;
mod fleet_executor;
mod fleet_kept;
mod generate;
mod habits;
mod intervals;
mod last_calls;
mod list;
mod load;
mod merge;
mod message;
mod messages;
mod objectives;
mod origin;
mod output;
mod output_args;
mod part_args;
mod peer;
mod plan;
mod program_help;
mod progress;
mod protocol;
mod protocol_args;
mod redact;
mod refusals;
mod replace;
mod report;
mod request;
mod run;
mod script;
mod serve;
mod serve_args;
mod serve_tcp_args;
mod server_software;
mod session;
mod sessions;
mod side_server;
mod signals;
mod source;
mod spoken;
mod stored;
mod sweep;
mod sweep_values;
mod tcp;
mod tcp_args;
mod tcp_streams;
mod time_wait;
mod values;
mod websocket;
mod websocket_args;

use std::process::ExitCode;

use args::{Arguments, Command};

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
fn exit_code(judged: &brunt_judge::Judged<'_>) -> ExitCode {
    if !judged.is_valid() {
        ExitCode::from(EXIT_INVALID)
    } else if matches!(
        judged.judgement.verdict,
        brunt_judge::Verdict::NoSuccess | brunt_judge::Verdict::ServerFailed
    ) || judged.objectives().iter().any(|outcome| !outcome.is_met)
    {
        ExitCode::from(EXIT_MISSED)
    } else {
        ExitCode::SUCCESS
    }
}

fn main() -> ExitCode {
    // The first reading is the origin of the run's clock.
    brunt_io::clock::now_ns();
    signals::outlive_file_limit();
    if let Err(error) = address_space::fit() {
        message::print(&error);
        return ExitCode::from(EXIT_SETUP);
    }
    if let Some(called) = dropin::Called::here() {
        return dropin::run(&called);
    }
    let mut words: Vec<_> = std::env::args_os().collect();
    if sweep_values::is_sweep(&words) {
        words = sweep_values::rewritten(words);
    }
    let (arguments, given) = Arguments::read(words.into_iter()).unwrap_or_else(|error| {
        let typed = habits::typed();
        if error.kind() == clap::error::ErrorKind::DisplayHelp && habits::is_short(&typed) {
            message::exit_with_help(program_help::SHORT_HELP)
        }
        message::exit_with_usage(&habits::explain(error, &typed))
    });
    let outcome = match arguments.command {
        Some(Command::Serve(serve)) => serve::run(&serve),
        Some(Command::Compare(compare)) => compare::run(&compare, &given),
        Some(Command::Sweep(sweep)) => sweep::run(*sweep, &given, None),
        Some(Command::Find(find)) => find::run(&find, &given, None),
        Some(Command::Tcp(tcp)) => tcp::run(&tcp, &given),
        Some(Command::Report(report)) => report::run(&report, &given),
        Some(Command::Merge(merge)) => merge::run(&merge),
        Some(Command::Fleet(fleet)) => fleet::run(*fleet, &given),
        Some(Command::Agent(agent)) => agent::run(&agent),
        None if let Some(kind) = &arguments.generate => generate::run(kind),
        None if websocket::is_meant(&arguments.load, &given) => {
            websocket::run(&arguments.load, &arguments.websocket, &given)
        }
        None => match (&arguments.load.script, &arguments.load.sessions) {
            (Some(path), _) => script::run(&arguments.load, path),
            (None, Some(path)) => sessions::run(&arguments.load, path),
            (None, None) => load::run(&arguments.load),
        },
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
