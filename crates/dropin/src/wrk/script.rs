//! Scripts of wrk's: loaded before the run, given its outcome after it.

use std::num::NonZeroU32;
use std::sync::Arc;

use brunt_load::{
    HttpChoice, Interrupt, Plan, RequestGenerator, RequestSet, RequestTextError, verbatim_requests,
};
use brunt_record::{GENERATED_NAMES_MAX, Run};
use brunt_script::{Flavour, Outcome, Script, ScriptError, ScriptOptions, ScriptTarget, Summary};

use super::plan::typed_headers;
use super::report::{Counts, of_us, per_thread};
use super::{Program, WrkOptions};
use crate::Ending;

/// Longer texts do not stand for the requests of a script.
const SHOWN_BYTES_MAX: usize = 1 << 20;

/// A script that is ready for a run.
#[derive(Debug)]
pub struct Scripted {
    script: Script,
    /// Whether Lua is asked for requests or shown responses.
    is_asked: bool,
}

impl Scripted {
    /// Has `load` load the script of the command line, if any, and fits `plan` to the requests that
    /// it makes.
    ///
    /// # Errors
    ///
    /// It cannot be loaded, fails before the run, or its first request is none: nothing is run.
    pub fn load(
        options: &WrkOptions,
        plan: &mut Plan,
        load: impl FnOnce(&ScriptOptions) -> Result<Script, ScriptError>,
    ) -> Result<Option<Self>, Ending> {
        let Some(path) = &options.script else {
            return Ok(None);
        };
        let url = &options.url;
        Self::of(
            plan,
            &ScriptOptions {
                path: path.clone(),
                text: None,
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
                workers: options.threads().get() as usize,
                flavour: match options.program {
                    Program::Wrk => Flavour::Wrk,
                    Program::Wrk2 => Flavour::Wrk2,
                },
                names_max: GENERATED_NAMES_MAX,
            },
            load,
        )
        .map(Some)
    }

    /// Has `load` load a script, and fits `plan` to the requests that it makes.
    ///
    /// # Errors
    ///
    /// As those of [`Self::load`].
    pub fn of(
        plan: &mut Plan,
        options: &ScriptOptions,
        load: impl FnOnce(&ScriptOptions) -> Result<Script, ScriptError>,
    ) -> Result<Self, Ending> {
        let script = load(options).map_err(|error| match error {
            ScriptError::Load { message } => {
                Ending::error(&format!("{}: {message}", options.path.display()), 1)
            }
            error => error.into(),
        })?;
        Self::fit(script, plan).map_err(|error| Ending::error(&error.to_string(), 1))
    }

    /// Fits `plan` to the requests of a script that is loaded.
    ///
    /// # Errors
    ///
    /// The text of its first request is none that can be sent.
    pub fn fit(script: Script, plan: &mut Plan) -> Result<Self, RequestTextError> {
        let requests = verbatim_requests(script.first_request())?;
        plan.workers.held_beside_bytes = script.held_bytes();
        let depth = u32::try_from(requests.len()).ok().and_then(NonZeroU32::new);
        plan.traffic.pipeline = depth.unwrap_or(NonZeroU32::MIN);
        // What a script makes is the text of HTTP/1.1.
        plan.connection.protocol = HttpChoice::HTTP1.into();
        let is_asked = script.constant_request().is_none() || requests.len() != 1;
        // Where Lua is asked for each request, the first one stands for them in reports. It is kept
        // as often as it may be in flight, so it is not to be long then.
        let bytes = script.first_request().len().saturating_mul(requests.len());
        if let Some(first) = requests.into_iter().next()
            && (!is_asked || bytes <= SHOWN_BYTES_MAX)
        {
            plan.traffic.requests = RequestSet::one(first);
        }
        Ok(Self { script, is_asked })
    }

    /// What makes the requests of each worker; none where they are those of the plan.
    ///
    /// # Errors
    ///
    /// As Lua words it.
    pub fn generators(&mut self) -> Result<Vec<Box<dyn RequestGenerator>>, ScriptError> {
        let mut generators = self.script.generators()?;
        // A script may send the same request to other addresses.
        let is_elsewhere = generators.iter().any(|one| one.address().is_some());
        if !self.is_asked && !is_elsewhere {
            generators.clear();
        }
        Ok(generators)
    }

    /// The script.
    pub fn script(&self) -> &Script {
        &self.script
    }

    /// What ends a call of [`Self::tear_down`] or [`Self::done`] from another thread.
    pub fn interrupter(&self) -> Arc<dyn Interrupt> {
        self.script.interrupter()
    }

    /// Calls what forks of wrk call in each thread when the load is over.
    ///
    /// # Errors
    ///
    /// As Lua words it.
    pub fn tear_down(&mut self) -> Result<(), ScriptError> {
        self.script.teardown()
    }

    /// Calls `done` with the outcome of a run.
    ///
    /// # Errors
    ///
    /// As Lua words it.
    pub fn done(&mut self, outcome: Outcome) -> Result<(), ScriptError> {
        self.script.done(outcome)
    }
}

impl From<ScriptError> for Ending {
    fn from(error: ScriptError) -> Self {
        Self::error(&error.to_string(), 1)
    }
}

/// Why a function of the script ended the run, if one did.
pub fn script_error(run: &Run) -> Option<String> {
    let mut generators = run.workers().filter_map(|worker| worker.generator.as_ref());
    generators.find_map(|generator| generator.error.clone())
}

/// What `done` of a script is given of `run`: counts, latencies in microseconds, and the rates of
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
        latency: of_us(&response),
        requests: per_thread(run),
    }
}
