//! `--sessions`: users of a log, each with a connection of its own.

use std::num::NonZeroU32;
use std::ops::Range;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Context, Result, anyhow};
use brunt_fleet::SessionsText;
use brunt_load::sessions::{LoggedSteps, Replay, SessionLog, SessionReplay, SessionTexts};
use brunt_load::{
    HttpChoice, Plan, RequestGenerator, RequestRef, RequestSet, RequestSpec, ThinkSpread,
};
use brunt_proto::http1::Request;

use crate::args::LoadArguments;
use crate::output::{Destination, NOT_OF_RUN};
use crate::plan::{refuse_useless_seed, set_workers};
use crate::redact::without_query;
use crate::request::read_list;
use crate::run::{Job, Pipeline};

/// The sessions of a log, ready to be replayed.
struct Ready {
    steps: LoggedSteps,
    texts: Arc<SessionTexts>,
    first: RequestSpec,
}

/// Replays the sessions of the log at `path`, by the plan that was typed.
pub(crate) fn run(arguments: &LoadArguments, path: &Path, mut plan: Plan) -> Result<ExitCode> {
    refuse_useless_seed(arguments, false)?;
    set_workers(&mut plan, arguments, |_| NonZeroU32::MIN);
    let (_, ready) = fitted(arguments, path, &mut plan)?;
    let generators = generators(&ready, 0..plan.workers.count.get(), plan.workers.count);
    let pipeline = Pipeline::open(Destination::open(&arguments.output, NOT_OF_RUN)?)?;
    let (job, line) = Job::typed(arguments, plan)?;
    pipeline.run(job.generated(generators), line)
}

/// The sessions of a log for the agents of a fleet, to which `plan` is fitted.
pub(crate) fn of_fleet(
    arguments: &LoadArguments,
    path: &Path,
    plan: &mut Plan,
) -> Result<SessionsText> {
    Ok(fitted(arguments, path, plan)?.0)
}

/// The sessions of the log at `path`, the first request of which stands for all in the reports of
/// `plan`.
fn fitted(
    arguments: &LoadArguments,
    path: &Path,
    plan: &mut Plan,
) -> Result<(SessionsText, Ready)> {
    let request = plan.traffic.requests.first().map(RequestRef::to_spec);
    let named = || format!("--sessions {}", path.display());
    let think_time = arguments.think_time.unwrap_or_default();
    if think_time.spread != ThinkSpread::Fixed {
        let error =
            anyhow!("the pauses of sessions are not random; give --think-time a TIME alone");
        return Err(error.context(named()));
    }
    let text = SessionsText {
        log: read_list(path, "the sessions").with_context(named)?,
        think_ns: think_time.mean_ns,
        headers: request.map(|request| request.headers).unwrap_or_default(),
        hides_queries: arguments.output.redact,
    };
    let ready = ready(&text, &plan.target.authority).with_context(named)?;
    plan.traffic.requests = RequestSet::one(ready.first.clone());
    plan.connection.protocol = HttpChoice::HTTP1.into();
    plan.traffic.pipeline = NonZeroU32::new(ready.steps.requests_max()).unwrap_or(NonZeroU32::MIN);
    // Pauses are those of the sessions.
    plan.traffic.think_time_ns = 0;
    Ok((text, ready))
}

/// What replays the sessions that came with `plan`, one for each of these of its workers.
pub(crate) fn of_agent(
    text: &SessionsText,
    plan: &Plan,
    workers: Range<u32>,
) -> Result<Vec<Box<dyn RequestGenerator>>> {
    let ready = ready(text, &plan.target.authority).context("the sessions cannot be replayed")?;
    Ok(generators(&ready, workers, plan.workers.count))
}

fn ready(sessions: &SessionsText, authority: &str) -> Result<Ready> {
    let log = SessionLog::parse(&sessions.log)?;
    let mut texts = SessionTexts::default();
    for logged in log.requests() {
        let line = || format!("line {}", logged.line);
        let mut spec = logged.request.clone();
        spec.fill_in_nothing().with_context(line)?;
        let text = Request {
            method: &spec.method,
            path: &spec.path,
            host: authority,
            headers: &sessions.headers,
            body: &spec.body,
            close: false,
        };
        let text = text.encode().with_context(line)?;
        let name = spec.name();
        let shown = if sessions.hides_queries {
            without_query(&name)
        } else {
            &name
        };
        texts.add(text, shown);
    }
    let first = log.requests().next().context("there is no session")?;
    Ok(Ready {
        steps: LoggedSteps::new(&log, sessions.think_ns),
        first: RequestSpec {
            headers: sessions.headers.clone(),
            ..first.request.clone()
        },
        texts: Arc::new(texts),
    })
}

/// What replays the sessions, one for each of these workers of so many.
fn generators(
    ready: &Ready,
    workers: Range<u32>,
    of: NonZeroU32,
) -> Vec<Box<dyn RequestGenerator>> {
    let replay = Replay {
        reconnects: true,
        ..Replay::default()
    };
    let of_worker = |worker| {
        let source = Box::new(ready.steps.clone());
        let texts = Arc::clone(&ready.texts);
        let (replay, _) = SessionReplay::new(source, texts, replay, worker, of.get());
        Box::new(replay) as Box<dyn RequestGenerator>
    };
    workers.map(of_worker).collect()
}
