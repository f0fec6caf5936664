//! brunt in place of tcpkali.

use std::io;
use std::net::ToSocketAddrs;
use std::process::ExitCode;

use anyhow::Result;
use brunt_dropin::tcpkali::{self, Options};
use brunt_engine::RunObserver;
use brunt_io::files::{self, FileError};
use brunt_load::Target;
use brunt_record::{RequestLog, Run};

use super::tcpkali_listen::Listening;
use super::tcpkali_live::Live;
use super::{EXIT_FAILED, cpus, job, open_outputs, print};
use crate::args::fresh_seed;
use crate::message;
use crate::request::BODY_BYTES_MAX;
use crate::run::FrontEnd;
use crate::session::is_interrupt;

/// Runs the command line `words` of tcpkali, which was called `name`.
pub(super) fn run(name: &str, words: &[String]) -> Result<ExitCode> {
    let options = Options::parse(name, words)?;
    let read = &mut |path: &std::path::Path| {
        files::read_file(path, BODY_BYTES_MAX).map_err(|error| match error {
            FileError::Input(error) => error,
            error => io::Error::other(error),
        })
    };
    if options.servers.is_empty()
        && let Some(listening) = Listening::start(&options)?
    {
        return listening.run(&options);
    }
    let plan = options.plan(cpus(), fresh_seed(), read)?;
    let has_markers = tcpkali::has_markers(&plan);
    let pipeline = open_outputs(options.brunt_report.as_deref())?;
    let targets = std::iter::once(&plan.target).chain(&plan.further_targets);
    message::print_lines(&targets.map(destinations).collect::<String>());
    let mut tcpkali = Tcpkali {
        options: &options,
        has_markers,
        listening: Listening::start(&options)?,
        live: Live::new(&options, tcpkali::has_replies(&plan))?,
    };
    pipeline.run(job(plan), &mut tcpkali)
}

/// The text of a run, and the listening side beside it.
struct Tcpkali<'a> {
    options: &'a Options,
    has_markers: bool,
    listening: Option<Listening>,
    live: Live,
}

impl FrontEnd for Tcpkali<'_> {
    fn observer(&mut self) -> Option<&mut dyn RunObserver> {
        Some(&mut self.live)
    }

    fn end(&mut self, run: Option<&Run>) {
        self.live.end(self.options, run);
    }

    fn failed(&mut self, error: anyhow::Error) -> Result<ExitCode> {
        if is_interrupt(&error) {
            return Err(error);
        }
        message::print(&format_args!("{error:#}"));
        message::print_lines(&tcpkali::not_connected(self.options));
        Ok(ExitCode::from(EXIT_FAILED))
    }

    fn report(&mut self, run: &Run, _log: &RequestLog) -> Result<()> {
        let taken = self.listening.take().map(Listening::end).transpose()?;
        let taken = taken.unwrap_or_default();
        print(&tcpkali::report(self.options, self.has_markers, run, taken));
        Ok(())
    }
}

/// The addresses of the server, line by line. The run says what is wrong with its name.
fn destinations(target: &Target) -> String {
    let addresses = (target.host.as_str(), target.port).to_socket_addrs();
    let addresses = addresses.into_iter().flatten();
    addresses
        .map(|address| tcpkali::destination(&address))
        .collect()
}
