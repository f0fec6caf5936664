//! brunt in place of tcpkali: its text, and what is said while a run begins.

use std::io;
use std::net::ToSocketAddrs;
use std::process::ExitCode;

use anyhow::Result;
use brunt_dropin::tcpkali::{self, TcpkaliOptions};
use brunt_engine::{Phase, Progress, RunObserver};
use brunt_io::files::{self, FileError};
use brunt_load::Target;

use super::{EXIT_FAILED, cpus, job, open_outputs, print};
use crate::args::fresh_seed;
use crate::message;
use crate::request::BODY_BYTES_MAX;
use crate::session::is_interrupt;

/// Runs the command line `words` of tcpkali, which was called `name`.
pub(super) fn run(name: &str, words: &[String]) -> Result<ExitCode> {
    let options = TcpkaliOptions::parse(name, words)?;
    let read = &mut |path: &std::path::Path| {
        files::read_file(path, BODY_BYTES_MAX).map_err(|error| match error {
            FileError::Input(error) => error,
            error => io::Error::other(error),
        })
    };
    let plan = options.plan(cpus(), fresh_seed(), read)?;
    let has_markers = tcpkali::has_markers(&plan);
    let pipeline = open_outputs(options.brunt_report.as_deref())?;
    let targets = std::iter::once(&plan.target).chain(&plan.further_targets);
    message::print_lines(&targets.map(destinations).collect::<String>());
    let mut ramp = Ramp {
        connections: options.connections,
        is_over: false,
    };
    let mut measured = match pipeline.measure(job(plan), || (), Some(&mut ramp)) {
        Err(error) if !is_interrupt(&error) => {
            message::print(&format_args!("{error:#}"));
            message::print_lines(&tcpkali::not_connected(&options));
            return Ok(ExitCode::from(EXIT_FAILED));
        }
        measured => measured?,
    };
    print(&tcpkali::report(&options, has_markers, &measured.run));
    measured.write(Ok(()))?;
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

/// Says when all connections are open.
struct Ramp {
    connections: u32,
    is_over: bool,
}

impl RunObserver for Ramp {
    fn progress(&mut self, phase: Phase, _progress: &Progress) {
        if phase > Phase::SetUp && !self.is_over {
            self.is_over = true;
            message::print_lines(&tcpkali::ramped_up(self.connections));
        }
    }
}
