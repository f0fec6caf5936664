//! `brunt sweep`: how a server scales, from rounds at several values of one setting.

use std::num::{NonZeroU32, NonZeroU64};
use std::process::ExitCode;

use anyhow::{Context, Result, anyhow, bail};
use brunt_experiment::{is_within_session, plan_at, sweep_order};
use brunt_io::clock;
use brunt_judge::{ExperimentKind, Judged, RoundRecord, Sweep, SweepAxis, SweepPlan, SweepRound};
use brunt_load::{Plan, RequestRef, RequestSet, Stop};
use brunt_record::{Environment, counted};
use brunt_report::Experiment;

use crate::args::{LoadArguments, fresh_seed};
use crate::commands::{SweepArguments, SweepPreset};
use crate::executor::{self, AskedFleet, Course, Executor};
use crate::habits;
use crate::output::Destination;
use crate::progress::{Doing, Line};
use crate::redact::environment;
use crate::refusals::{self, Given};
use crate::values::{SWEEP_OPTIONS, Varied, of_option, varied};

/// Length of a round's window where none is typed, and of the window of the warm-up.
const WINDOW_NS: u64 = 1_000_000_000;
const WARMUP_WINDOW_NS: u64 = 200_000_000;

/// Measures, in this process or by a fleet, and prints what that shows.
pub(crate) fn run(
    mut arguments: SweepArguments,
    given: &Given,
    fleet: Option<AskedFleet<'_>>,
) -> Result<ExitCode> {
    let (plan, mut sweep_plan) = planned(&mut arguments, given)?;
    let typed = &arguments.typed.load;
    let destination = Destination::of_experiment(&typed.output)?;
    let is_preset = arguments.preset.is_some();
    executor::run(typed, fleet, destination, plan, |plan, executor| {
        check(executor, plan, &mut sweep_plan, is_preset)?;
        Ok(Sweep {
            kind: ExperimentKind::Sweep,
            format: Sweep::FORMAT,
            brunt_version: env!("CARGO_PKG_VERSION").to_owned(),
            plan: sweep_plan,
            load: None,
            environment: environment(),
            broke_off: None,
            rounds: Vec::new(),
        })
    })
}

impl Course for Sweep {
    fn doing(&self) -> Doing {
        Doing::Sweep
    }

    fn is_one_session(&self) -> bool {
        is_within_session(self.plan.varied)
    }

    fn environment(&mut self) -> &mut Environment {
        &mut self.environment
    }

    /// The warm-up, then the rounds.
    fn measure(&mut self, plan: &Plan, executor: &mut Executor<'_>, line: &mut Line) -> Result<()> {
        let order = sweep_order(&self.plan);
        let begun_ns = clock::now_ns();
        // As long as the rounds so far, or by plan before there are any.
        let planned_ns = self.plan.round_warmup_ns + self.plan.window_ns.unwrap_or(WINDOW_NS);
        let left_ns = |done: usize| {
            let elapsed_ns = clock::now_ns().saturating_sub(begun_ns);
            let each_ns = elapsed_ns.checked_div(done as u64).unwrap_or(planned_ns);
            each_ns.saturating_mul((order.len() - done) as u64)
        };
        line.expect(left_ns(0), plan.connections.get());
        let warm = Plan {
            stop: Stop {
                duration_ns: Some(WARMUP_WINDOW_NS),
                requests: None,
            },
            ..plan.clone()
        };
        let run = executor.round(&warm, line)?;
        self.environment.add(&run);
        self.load = Some(Plan {
            stop: plan.stop,
            ..run.plan
        });
        let client = self.environment.client.as_ref();
        let ports = client.and_then(|client| client.ports_available);
        for (done, &(round, value)) in order.iter().enumerate() {
            executor.settle(ports)?;
            let plan = plan_at(plan, &self.plan, value);
            line.expect(left_ns(done), plan.connections.get());
            let run = executor.round(&plan, line).with_context(|| {
                let axis = self.plan.varied.name();
                format!("the round of {value} {axis} could not be measured")
            })?;
            self.rounds.push(SweepRound {
                value,
                round,
                record: RoundRecord::of(&Judged::of(&run)),
            });
        }
        Ok(())
    }

    fn has_rounds(&self) -> bool {
        !self.rounds.is_empty()
    }

    fn break_off(&mut self, error: anyhow::Error) -> anyhow::Error {
        self.broke_off = Some(format!("{error:#}"));
        let rounds = counted(self.rounds.len() as u64, "round", "rounds");
        error.context(format!("the sweep broke off after {rounds}"))
    }

    fn experiment(self) -> Experiment {
        Experiment::Sweep(self)
    }
}

/// Whether every round can be made. A preset leaves out the values at which it cannot.
fn check(
    executor: &Executor<'_>,
    plan: &Plan,
    sweep_plan: &mut SweepPlan,
    is_preset: bool,
) -> Result<()> {
    let mut failed = None;
    let mut values = sweep_plan.values.clone();
    values.retain(|&value| {
        let outcome = executor.check(&plan_at(plan, sweep_plan, value));
        let is_good = outcome.is_ok();
        failed = failed.take().or(outcome.err().map(|error| (value, error)));
        is_good
    });
    if let Some((value, error)) = failed.filter(|_| !is_preset || values.is_empty()) {
        let axis = sweep_plan.varied.name();
        return Err(error.context(format!("the round of {value} {axis} cannot be made")));
    }
    sweep_plan.values = values;
    Ok(())
}

/// The load at the largest value, and what is varied of it.
fn planned(arguments: &mut SweepArguments, given: &Given) -> Result<(Plan, SweepPlan)> {
    given.refuse(refusals::EXPERIMENT)?;
    given.refuse(refusals::SWEEP)?;
    habits::only_url(&arguments.typed.load)?;
    let varied = what_varies(arguments, given)?;
    if varied.axis == SweepAxis::Rate && arguments.typed.load.stages.is_some() {
        bail!("a rate is varied, and --stages has rates of its own; leave one of them out");
    }
    if varied.axis == SweepAxis::Streams {
        // Several streams are a matter of HTTP/2 and HTTP/3.
        let protocol = &mut arguments.typed.load.protocol;
        protocol.http2 |= !(protocol.http1 || protocol.http3);
    }
    let load = &arguments.typed.load;
    if !load.has_server() {
        bail!("give the URL of the server, as in brunt sweep -c 1..1000:10 URL");
    }
    let typed = arguments.typed.typed(given);
    let mut plan = typed.plan(load.url.as_deref(), None)?;
    load.set_window(&mut plan, WINDOW_NS);
    plan.warmup_ns = load.warmup.unwrap_or(Plan::WARMUP_NS_DEFAULT);
    if varied.axis == SweepAxis::BodyBytes && !plan.spoken.preferred().carries_http {
        bail!("--body-size is about requests of HTTP; vary something else");
    }
    if let (SweepAxis::BodyBytes, Some(&most)) = (varied.axis, varied.values.last())
        && let Some(mut request) = plan.requests.first().map(RequestRef::to_spec)
    {
        if load.method.is_none() {
            request.method = "POST".to_owned();
        }
        request.body = vec![b'x'; most as usize];
        plan.requests = RequestSet::one(request);
    }
    let sweep_plan = SweepPlan {
        url: plan.target.url.clone(),
        varied: varied.axis,
        values: varied.values,
        rounds: arguments.rounds.get(),
        // What else is random follows from the same seed.
        seed: (!arguments.fixed_order).then(|| load.seed.unwrap_or_else(fresh_seed)),
        window_ns: plan.stop.duration_ns,
        warmup_ns: plan.warmup_ns,
        round_warmup_ns: arguments.round_warmup,
    };
    Ok((plan, sweep_plan))
}

/// The one setting that has several values.
fn what_varies(arguments: &mut SweepArguments, given: &Given) -> Result<Varied> {
    if let Some(preset) = arguments.preset {
        let (values, window_ns) = match preset {
            SweepPreset::Quick => ("connections=1..256:x2", WINDOW_NS / 2),
            SweepPreset::Classic => ("connections=1..1000:10", WINDOW_NS),
        };
        let varied = varied(values).map_err(|error| anyhow!(error))?;
        arguments.typed.load.duration = Some(window_ns);
        set_largest(&mut arguments.typed.load, &varied)?;
        return Ok(varied);
    }
    let mut all = arguments.vary.clone();
    all.extend(arguments.body_size.clone());
    for (id, axis) in SWEEP_OPTIONS {
        let typed = given.text(id).and_then(|typed| of_option(axis, typed));
        all.extend(typed.transpose().map_err(|error| anyhow!(error))?);
    }
    match <[Varied; 1]>::try_from(all) {
        Ok([only]) => {
            set_largest(&mut arguments.typed.load, &only)?;
            Ok(only)
        }
        Err(none) if none.is_empty() => bail!(
            "nothing is varied; give one option several values, as in -c 1..1000:10, or a --preset"
        ),
        Err(_) => bail!("one setting is varied at a time; give only one option several values"),
    }
}

/// Has the load be that at the largest value.
fn set_largest(load: &mut LoadArguments, varied: &Varied) -> Result<()> {
    let most = varied.values.last().copied().context("no values")?;
    let count = NonZeroU32::new(most as u32);
    match varied.axis {
        SweepAxis::Connections => load.connections = count,
        SweepAxis::Rate => load.rate = Some(most),
        SweepAxis::Workers => load.threads = count,
        SweepAxis::Streams => load.protocol.streams = count,
        SweepAxis::Requests => load.requests = NonZeroU64::new(most as u64),
        SweepAxis::BodyBytes => {}
    }
    Ok(())
}
