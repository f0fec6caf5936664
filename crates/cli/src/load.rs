//! `brunt [URL]`: from the arguments to the plan of a run.

use std::process::ExitCode;

use anyhow::Result;
use brunt_io::cpu::usable_cpus;
use brunt_load::{Plan, Scheme, Target};
use brunt_server::{Running, TlsOptions};

use crate::args::LoadArguments;
use crate::habits;
use crate::list;
use crate::origin::Origin;
use crate::output::Destination;
use crate::plan::{Load, backend_choice, refuse_useless_seed};
use crate::progress::Line;
use crate::run::{Job, Pipeline};
use crate::serve;
use crate::serve::Halves;

/// What is asked of brunt's own server. Without work of its own it takes as long for a request as
/// brunt does, and it would be a toss-up which of the two is the limit.
const OWN_PATH: &str = "/compute/10us";

/// Runs the load.
pub(crate) fn run(arguments: &LoadArguments) -> Result<ExitCode> {
    // All that was typed is looked at before anything is opened or started.
    let typed = habits::only_url(arguments)?
        .map(|url| Target::parse_to_fill_in(url, arguments.unix_socket.clone()))
        .transpose()?;
    let listed = list::read(arguments, typed)?;
    if let Some(requests) = &listed.requests {
        refuse_useless_seed(arguments, requests.draws_numbers())?;
    }
    let load = Load::new(arguments, listed.target.as_ref())?.with_list(listed.requests);
    run_on(arguments, listed.target, load)
}

/// Runs a load on a server; absent: the built-in one.
pub(crate) fn run_on(
    arguments: &LoadArguments,
    target: Option<Target>,
    load: Load,
) -> Result<ExitCode> {
    let pipeline = Pipeline::open(Destination::open(&arguments.output)?)?;
    let (plan, own_server) = plan(arguments, target, load)?;
    let mut line = Line::new(&arguments.output, &arguments.part.own(&plan)?);
    let job = Job {
        part: arguments.part.of(&plan)?,
        own_server,
        ..Job::new(plan, Origin::new(&arguments.output))
    };
    pipeline.run(job, &mut line)
}

/// The plan, with the built-in server where it is the target.
fn plan(
    arguments: &LoadArguments,
    target: Option<Target>,
    load: Load,
) -> Result<(Plan, Option<Running>)> {
    let cpus = usable_cpus();
    let backend = backend_choice(arguments.backend);
    let http3 = arguments.protocol.http3;
    let (target, own_server, workers, own_cpus) = match target {
        Some(target) => (target, None, cpus, None),
        None => {
            let halves = Halves::of(cpus, arguments.threads.is_none());
            // QUIC has no clear text.
            let tls = http3.then(TlsOptions::default);
            let scheme = if http3 { Scheme::Https } else { Scheme::Http }.name();
            let backend = serve::backend_of(backend);
            let server = serve::own_server(&halves, backend, false, tls, http3)?;
            let url = format!("{scheme}://{}{OWN_PATH}", server.address());
            let target = Target::parse(&url, None)?;
            (target, Some(server), halves.workers, halves.of_workers)
        }
    };
    let workers = brunt_engine::default_workers(&load.model, workers);
    let mut plan = load.plan(arguments, target, workers, own_cpus);
    let certificates = own_server.iter().flat_map(|server| server.certificates());
    plan.tls.roots_der = certificates.map(|der| der.to_vec()).collect();
    Ok((plan, own_server))
}
