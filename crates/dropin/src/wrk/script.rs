//! Scripts of wrk's: loaded before the run, told of its outcome after it.

use std::num::NonZeroU32;

use brunt_engine::verbatim_requests;
use brunt_load::{Plan, RequestGenerator, RequestSet};
use brunt_measure::Run;
use brunt_script::{Flavour, Outcome, Script, ScriptError, ScriptOptions, ScriptTarget, Summary};

use super::plan::typed_headers;
use super::{Counts, Options, Program, distribution, rates};
use crate::Ending;

/// A script that is ready for the run of a command line.
#[derive(Debug)]
pub struct Scripted {
    script: Script,
    /// Whether Lua is asked for requests or told of responses.
    is_asked: bool,
}

impl Scripted {
    /// Loads the script of the command line, if any, and fits `plan` to the requests that it makes.
    ///
    /// # Errors
    ///
    /// It cannot be loaded, fails before the run, or its first request is none: nothing is run.
    pub fn load(options: &Options, plan: &mut Plan) -> Result<Option<Self>, Ending> {
        let Some(path) = &options.script else {
            return Ok(None);
        };
        let url = &options.url;
        let script = Script::load(&ScriptOptions {
            path: path.clone(),
            target: ScriptTarget {
                scheme: url.scheme.clone(),
                host: url.host.clone(),
                port: url.port.clone(),
                path: url.path.clone(),
                url: url.typed.clone(),
            },
            is_resolved: true,
            headers: typed_headers(options),
            method: None,
            body: None,
            arguments: options.arguments[1..].to_vec(),
            workers: options.threads.get() as usize,
            flavour: match options.program {
                Program::Wrk => Flavour::Wrk,
                Program::Wrk2 => Flavour::Wrk2,
            },
        });
        let script = script.map_err(|error| match error {
            ScriptError::Load { message } => {
                Ending::error(&format!("{}: {message}", path.display()), 1)
            }
            error => Ending::error(&error.to_string(), 1),
        })?;
        let is_asked = fit(plan, &script)?;
        Ok(Some(Self { script, is_asked }))
    }

    /// What makes the requests of each worker; none where they are those of the plan.
    ///
    /// # Errors
    ///
    /// As Lua words it.
    pub fn generators(&mut self) -> Result<Vec<Box<dyn RequestGenerator>>, Ending> {
        let generators = self.script.generators();
        let generators = generators.map_err(|error| Ending::error(&error.to_string(), 1))?;
        // A script may send the same request to other addresses.
        let is_elsewhere = generators.iter().any(|it| it.address().is_some());
        Ok(if self.is_asked || is_elsewhere {
            generators
        } else {
            Vec::new()
        })
    }

    /// Calls `done`, and before it what forks of wrk call in each thread.
    ///
    /// # Errors
    ///
    /// As Lua words it.
    pub fn finish(&mut self, run: &Run) -> Result<(), ScriptError> {
        let torn_down = self.script.teardown();
        let done = self.script.done(outcome(run));
        torn_down.and(done)
    }
}

/// Why a function of the script ended the run, if one did.
pub fn script_error(run: &Run) -> Option<String> {
    let mut generators = run.workers().filter_map(|worker| worker.generator.as_ref());
    generators.find_map(|generator| generator.error.clone())
}

/// Fits the plan to the requests of the script; whether Lua is to be asked for each.
fn fit(plan: &mut Plan, script: &Script) -> Result<bool, Ending> {
    let first = verbatim_requests(script.first_request());
    let first = first.map_err(|error| Ending::error(&error.to_string(), 1))?;
    plan.pipeline = u32::try_from(first.len())
        .ok()
        .and_then(NonZeroU32::new)
        .unwrap_or(NonZeroU32::MIN);
    let mut first = first.into_iter();
    let only = first.next().filter(|_| first.next().is_none());
    match (script.constant_request(), only) {
        (Some(_), Some(request)) => {
            plan.requests = RequestSet::one(request);
            Ok(false)
        }
        _ => Ok(true),
    }
}

/// What `done` of a script is told of `run`: counts, latencies in microseconds, and the rates of
/// the workers.
pub fn outcome(run: &Run) -> Outcome {
    let counts = Counts::of(run);
    let mut response = run.latencies.response.clone();
    response.merge(&run.latencies.response_error);
    Outcome {
        summary: Summary {
            duration_us: counts.duration_ns / 1_000,
            requests: counts.requests,
            bytes: counts.bytes,
            connect_errors: counts.connect,
            read_errors: counts.read,
            write_errors: 0,
            status_errors: counts.status,
            timeouts: counts.timeout,
        },
        latency: distribution::of_us(&response),
        requests: rates::per_thread(run),
    }
}
