//! `--sessions`: users of a log, each with a connection of its own.

use std::num::NonZeroU32;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Context, Result, bail};
use brunt_load::sessions::{LoggedSteps, Replay, SessionLog, SessionReplay, SessionTexts};
use brunt_load::{
    HttpChoice, Plan, RequestGenerator, RequestSet, RequestSpec, Target, ThinkSpread,
};
use brunt_proto::http1::Request;

use crate::args::LoadArguments;
use crate::habits;
use crate::list::read_list;
use crate::origin::Origin;
use crate::output::Destination;
use crate::plan::Load;
use crate::progress::Line;
use crate::redact::without_query;
use crate::run::{Job, Pipeline};

/// The sessions of a log, ready to be replayed.
struct Ready {
    steps: LoggedSteps,
    texts: Arc<SessionTexts>,
    first: RequestSpec,
}

/// Replays the sessions of the log at `path`.
pub(crate) fn run(arguments: &LoadArguments, path: &Path) -> Result<ExitCode> {
    let url = habits::only_url(arguments)?.context("--sessions needs a URL")?;
    let target = Target::parse(url, arguments.unix_socket.clone())?;
    let load = Load::new(arguments, Some(&target))?;
    let ready = ready(arguments, path, &target, load.request())
        .with_context(|| format!("--sessions {}", path.display()))?;
    let mut plan = load.plan(arguments, target, NonZeroU32::MIN, None);
    fit(&mut plan, &ready);
    let pipeline = Pipeline::open(Destination::open(&arguments.output)?)?;
    let mut line = Line::new(&arguments.output, &arguments.part.own(&plan)?);
    let job = Job {
        part: arguments.part.of(&plan)?,
        generators: generators(&ready, plan.workers.get()),
        ..Job::new(plan, Origin::new(&arguments.output))
    };
    pipeline.run(job, &mut line)
}

fn ready(
    arguments: &LoadArguments,
    path: &Path,
    target: &Target,
    common: &RequestSpec,
) -> Result<Ready> {
    let think_time = arguments.think_time.unwrap_or_default();
    if think_time.spread != ThinkSpread::Fixed {
        bail!("the pauses of sessions are not random; give --think-time a TIME alone");
    }
    let log = SessionLog::parse(&read_list(path, "the sessions")?)?;
    let mut texts = SessionTexts::default();
    for logged in log.requests() {
        let spec = &logged.request;
        let text = Request {
            method: &spec.method,
            path: &spec.path,
            host: &target.authority,
            headers: &common.headers,
            body: &spec.body,
            close: false,
        };
        let text = text.encode();
        let text = text.with_context(|| format!("line {}", logged.line))?;
        let name = spec.name();
        texts.add(
            text,
            match arguments.output.redact {
                true => without_query(&name),
                false => &name,
            },
        );
    }
    let first = log.requests().next().context("there is no session")?;
    Ok(Ready {
        steps: LoggedSteps::new(&log, think_time.mean_ns),
        first: RequestSpec {
            headers: common.headers.clone(),
            ..first.request.clone()
        },
        texts: Arc::new(texts),
    })
}

/// Fits the plan to sessions, the first request of which stands for all in reports.
fn fit(plan: &mut Plan, ready: &Ready) {
    plan.requests = RequestSet::one(ready.first.clone());
    plan.spoken = HttpChoice::HTTP1.into();
    plan.pipeline = NonZeroU32::new(ready.steps.requests_max()).unwrap_or(NonZeroU32::MIN);
    // Pauses are those of the sessions.
    plan.think_time_ns = 0;
}

/// What replays the sessions, one for each worker.
fn generators(ready: &Ready, workers: u32) -> Vec<Box<dyn RequestGenerator>> {
    let replay = Replay {
        reconnects: true,
        ..Replay::default()
    };
    let of_worker = |worker| {
        let source = Box::new(ready.steps.clone());
        let texts = Arc::clone(&ready.texts);
        let (replay, _) = SessionReplay::new(source, texts, replay, (worker, workers));
        Box::new(replay) as Box<dyn RequestGenerator>
    };
    (0..workers).map(of_worker).collect()
}
