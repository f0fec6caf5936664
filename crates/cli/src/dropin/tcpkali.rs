//! brunt in place of tcpkali.

use std::io;
use std::net::ToSocketAddrs;
use std::process::ExitCode;

use anyhow::Result;
use brunt_dropin::tcpkali::{self, Options};
use brunt_dropin::verdict_line;
use brunt_engine::RunError;
use brunt_io::files::{self, FileError};
use brunt_judge::Judged;
use brunt_load::Target;

use super::tcpkali_listen::Listening;
use super::tcpkali_live::Live;
use super::{EXIT_FAILED, cpus, destination, explain, measure, print};
use crate::message;
use crate::plan::fresh_seed;
use crate::request::BODY_BYTES_MAX;

/// Runs the command line `words` of tcpkali, which was called `name`.
pub(super) fn run(name: &str, words: &[String]) -> Result<ExitCode> {
    let options = Options::parse(name, words)?;
    let read = &mut |path: &std::path::Path| {
        files::read_file(path, BODY_BYTES_MAX).map_err(|error| match error {
            FileError::Input(error) => error,
            error => io::Error::other(error),
        })
    };
    if options.explains {
        return Ok(explain(&tcpkali::explanation(&options, cpus(), read)?));
    }
    if options.servers.is_empty()
        && let Some(listening) = Listening::start(&options)?
    {
        return listening.run(&options);
    }
    let plan = options.plan(cpus(), fresh_seed(), read)?;
    let has_markers = tcpkali::has_markers(&plan);
    let destination = destination(options.brunt_report.as_deref())?;
    let targets = std::iter::once(&plan.target).chain(&plan.further_targets);
    message::print_lines(&targets.map(destinations).collect::<String>());
    let listening = Listening::start(&options)?;
    let mut live = Live::new(&options, tcpkali::has_replies(&plan))?;
    let run = match measure(plan, Vec::new(), "", &mut live) {
        Ok(run) => run,
        Err(error) => {
            live.end(&options, None);
            destination.abandon();
            if matches!(error.downcast_ref(), Some(RunError::Interrupted)) {
                return Err(error);
            }
            message::print(&format_args!("{error:#}"));
            message::print_lines(&tcpkali::not_connected(&options));
            return Ok(ExitCode::from(EXIT_FAILED));
        }
    };
    live.end(&options, Some(&run));
    let taken = listening
        .map(Listening::end)
        .transpose()?
        .unwrap_or_default();
    print(&tcpkali::report(&options, has_markers, &run, taken));
    let judged = Judged::of(&run);
    message::print(&verdict_line(&judged));
    destination.write(&judged)?;
    Ok(ExitCode::SUCCESS)
}

/// The addresses of the server, line by line. The run says what is wrong with its name.
fn destinations(target: &Target) -> String {
    let addresses = (target.host.as_str(), target.port).to_socket_addrs();
    let addresses = addresses.into_iter().flatten();
    addresses
        .map(|address| tcpkali::destination(&address))
        .collect()
}
