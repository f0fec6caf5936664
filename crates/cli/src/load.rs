//! `brunt [URL]`: a run of the load that was typed, on a server or on brunt's own.

use std::process::ExitCode;

use anyhow::Result;
use brunt_io::cpu::usable_cpus;
use brunt_load::{LoadModel, Placement, Plan};
use brunt_server::{Running, TlsOptions};

use crate::args::LoadArguments;
use crate::output::Destination;
use crate::plan::{own_target, refuse_useless_seed, set_workers};
use crate::run::{Job, Pipeline};
use crate::serve::{self, Halves};

/// Runs the load of `plan`, which was typed as `arguments`.
pub(crate) fn run(arguments: &LoadArguments, mut plan: Plan) -> Result<ExitCode> {
    let carries_http = plan.spoken.preferred().carries_http;
    if carries_http {
        refuse_useless_seed(arguments, plan.requests.draws_numbers())?;
    }
    let pipeline = Pipeline::open(Destination::open(&arguments.output)?)?;
    let is_own = carries_http && !arguments.has_server();
    let own_server = is_own.then(|| own_server(arguments, &mut plan));
    let own_server = own_server.transpose()?;
    let (job, mut line) = Job::typed(arguments, plan)?;
    pipeline.run(Job { own_server, ..job }, &mut line)
}

/// Starts brunt's own server, and has the plan load it.
fn own_server(arguments: &LoadArguments, plan: &mut Plan) -> Result<Running> {
    let halves = Halves::of(usable_cpus(), arguments.threads.is_none());
    let http3 = arguments.protocol.http3;
    // QUIC has no clear text.
    let tls = http3.then(TlsOptions::default);
    let server = serve::own_server(&halves, serve::backend_of(arguments.backend), tls, http3)?;
    let address = server.address().to_string();
    plan.target = own_target(plan.target.scheme.name(), &address)?;
    let workers = |model: &LoadModel| brunt_engine::default_workers(model, halves.workers);
    set_workers(plan, arguments, workers);
    if let Some(cpus) = halves.of_workers {
        plan.placement = Placement::Bound(cpus);
    }
    plan.tls.roots_der = server
        .certificates()
        .iter()
        .map(|der| der.to_vec())
        .collect();
    Ok(server)
}
