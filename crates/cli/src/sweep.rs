//! `brunt sweep`: how a server scales, from rounds at several values of one setting.

use std::num::NonZeroU32;
use std::process::ExitCode;

use anyhow::{Context, Result, anyhow, bail};
use brunt_experiment::{SweepBench, is_within_session, plan_at, sweep};
use brunt_io::clock;
use brunt_judge::{Sweep, SweepAxis, SweepKind, SweepPlan, SweepRound, Verdict};
use brunt_load::{Plan, RequestRef, RequestSet, Stop};
use brunt_record::{Run, counted};
use brunt_report::Experiment;

use crate::args::{LoadArguments, SweepArguments, SweepPreset};
use crate::broker_args::BrokerArguments;
use crate::environment::environment;
use crate::executor::{Executor, RoundSource};
use crate::fleet_args::AgentsArguments;
use crate::fleet_executor::executor_of;
use crate::output::Destination;
use crate::plan::fresh_seed;
use crate::progress::Line;
use crate::refusals::{self, Given};
use crate::run::{Pipeline, interrupted, was_interrupted};
use crate::sweep_values::{Varied, varied};
use crate::{EXIT_INTERRUPTED, EXIT_INVALID, EXIT_MISSED, habits};

/// Length of a round's window where none is typed, and of the window of the warm-up.
const WINDOW_NS: u64 = 1_000_000_000;
const WARMUP_WINDOW_NS: u64 = 200_000_000;

/// Measures, in this process or by a fleet, and prints what that shows.
pub(crate) fn run(
    mut arguments: SweepArguments,
    given: &Given,
    of_fleet: Option<(&AgentsArguments, &BrokerArguments)>,
) -> Result<ExitCode> {
    let Planned {
        mut plan,
        mut sweep_plan,
    } = planned(&mut arguments, given)?;
    let typed = &arguments.typed.load;
    let output = &typed.output;
    let pipeline = Pipeline::open(Destination::of_experiment(output)?)?;
    let mut executor = executor_of(of_fleet, typed, &plan.target, &pipeline.interrupts)?;
    if typed.threads.is_none() {
        plan.workers = executor.workers(&plan.model).min(plan.connections);
    }
    check(
        &*executor,
        &plan,
        &mut sweep_plan,
        arguments.preset.is_some(),
    )?;
    let mut state = State {
        line: Line::of_sweep(output, &plan, 0),
        sweep: new_sweep(sweep_plan),
        begun_ns: clock::now_ns(),
    };
    let outcome = measure(&mut state, &mut *executor, &plan);
    state.line.clear();
    drop(executor);
    finish(outcome, state.sweep, pipeline)
}

/// Whether every round can be made. A preset leaves out the values at which it cannot.
fn check(
    executor: &dyn Executor,
    plan: &Plan,
    sweep_plan: &mut SweepPlan,
    is_preset: bool,
) -> Result<()> {
    let checked = |value: f64| executor.check(&plan_at(plan, sweep_plan, value));
    let mut failed = None;
    let mut values = sweep_plan.values.clone();
    values.retain(|&value| {
        let outcome = checked(value);
        let is_good = outcome.is_ok();
        failed = failed.take().or(outcome.err().map(|error| (value, error)));
        is_good
    });
    match failed {
        Some((value, error)) if !is_preset || values.is_empty() => {
            let axis = sweep_plan.varied.name();
            Err(error.context(format!("the round of {value} {axis} cannot be made")))
        }
        _ => {
            sweep_plan.values = values;
            Ok(())
        }
    }
}

/// Writes the report of what was measured.
fn finish(outcome: Result<()>, mut sweep: Sweep, pipeline: Pipeline) -> Result<ExitCode> {
    let was_interrupted = match was_interrupted(outcome) {
        Ok(was_interrupted) => was_interrupted,
        Err(error) if sweep.rounds.is_empty() => return Err(error),
        Err(error) => {
            sweep.broke_off = Some(format!("{error:#}"));
            let rounds = counted(sweep.rounds.len() as u64, "round", "rounds");
            pipeline.report(&Experiment::Sweep(sweep))?;
            return Err(error.context(format!("the sweep broke off after {rounds}")));
        }
    };
    if sweep.rounds.is_empty() {
        return interrupted("interrupted before a round was measured");
    }
    let code = exit_code(&sweep);
    pipeline.report(&Experiment::Sweep(sweep))?;
    Ok(if was_interrupted {
        ExitCode::from(EXIT_INTERRUPTED)
    } else {
        code
    })
}

/// A sweep of which no round is worth anything has failed.
pub(crate) fn exit_code(sweep: &Sweep) -> ExitCode {
    let all = |verdict| {
        let mut rounds = sweep.rounds.iter();
        rounds.all(|round| round.record.verdict == verdict)
    };
    if all(Verdict::Invalid) {
        ExitCode::from(EXIT_INVALID)
    } else if all(Verdict::NoSuccess) {
        ExitCode::from(EXIT_MISSED)
    } else {
        ExitCode::SUCCESS
    }
}

/// What was typed, resolved.
struct Planned {
    /// The load at the largest value.
    plan: Plan,
    sweep_plan: SweepPlan,
}

fn planned(arguments: &mut SweepArguments, given: &Given) -> Result<Planned> {
    given.refuse(refusals::EXPERIMENT)?;
    given.refuse(refusals::SWEEP)?;
    habits::refuse_objective(&arguments.typed.load)?;
    if let Some(other) = arguments.typed.load.behind_url.first() {
        bail!("one server is swept at a time; leave out {other}");
    }
    let varied = what_varies(arguments)?;
    if varied.axis == SweepAxis::Rate && arguments.typed.load.stages.is_some() {
        bail!("a rate is varied, and --stages has rates of its own; leave one of them out");
    }
    if varied.axis == SweepAxis::Streams {
        // Several streams are a matter of HTTP/2 and HTTP/3.
        let protocol = &mut arguments.typed.load.protocol;
        protocol.http2 |= !(protocol.http1 || protocol.http3);
    }
    let load = &arguments.typed.load;
    let plan = arguments
        .typed
        .plan(given, load.url.as_deref(), None, WINDOW_NS)?;
    let mut plan =
        plan.context("give the URL of the server, as in brunt sweep -c 1..1000:10 URL")?;
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
    Ok(Planned { plan, sweep_plan })
}

/// The one setting that has several values.
fn what_varies(arguments: &mut SweepArguments) -> Result<Varied> {
    if let Some(preset) = arguments.preset {
        let (values, rounds, window_ns) = match preset {
            SweepPreset::Quick => ("connections=1..256:x2", 3, WINDOW_NS / 2),
            SweepPreset::Classic => ("connections=1..1000:10", 3, WINDOW_NS),
        };
        let varied = varied(values).map_err(|error| anyhow!(error))?;
        let most = varied.values.last().map_or(1, |&most| most as u32);
        arguments.typed.load.connections = NonZeroU32::new(most);
        arguments.typed.load.duration = Some(window_ns);
        arguments.rounds = NonZeroU32::new(rounds).unwrap_or(NonZeroU32::MIN);
        return Ok(varied);
    }
    let all: Vec<&Varied> = arguments.vary.iter().chain(&arguments.body_size).collect();
    match all[..] {
        [only] => {
            let only = only.clone();
            set_largest(&mut arguments.typed.load, &only)?;
            Ok(only)
        }
        [] => bail!(
            "nothing is varied; give one option several values, as in -c 1..1000:10, or a --preset"
        ),
        _ => bail!("one setting is varied at a time; give only one option several values"),
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
        SweepAxis::Requests => load.requests = std::num::NonZeroU64::new(most as u64),
        SweepAxis::BodyBytes => {}
    }
    Ok(())
}

fn new_sweep(plan: SweepPlan) -> Sweep {
    Sweep {
        kind: SweepKind::Sweep,
        format: Sweep::FORMAT,
        brunt_version: env!("CARGO_PKG_VERSION").to_owned(),
        plan,
        load: None,
        environment: environment(),
        broke_off: None,
        rounds: Vec::new(),
    }
}

fn measure(state: &mut State, executor: &mut dyn Executor, plan: &Plan) -> Result<()> {
    if let Some(software) = executor.software(plan)? {
        state.sweep.environment.name_software(software);
    }
    let is_one = is_within_session(state.sweep.plan.varied);
    executor.in_session(plan, is_one, &mut |source| {
        let state = &mut *state;
        all_rounds(&mut Bench { state, source }, plan)
    })
}

/// The warm-up, then the rounds.
fn all_rounds(bench: &mut Bench<'_>, plan: &Plan) -> Result<()> {
    bench.expect(plan);
    let warm = Plan {
        stop: Stop {
            duration_ns: Some(WARMUP_WINDOW_NS),
            requests: None,
        },
        ..plan.clone()
    };
    let run = bench.source.round(&warm, &mut bench.state.line)?;
    let mut load = run.plan.clone();
    load.stop.duration_ns = plan.stop.duration_ns;
    load.stop.requests = plan.stop.requests;
    bench.state.sweep.load = Some(load);
    bench.state.sweep.environment.add(&run);
    let sweep_plan = bench.state.sweep.plan.clone();
    sweep(bench, plan, &sweep_plan)
}

/// How far a sweep is.
struct State {
    line: Line,
    sweep: Sweep,
    begun_ns: u64,
}

/// Who measures and takes the rounds.
struct Bench<'a> {
    state: &'a mut State,
    source: &'a mut dyn RoundSource,
}

impl Bench<'_> {
    /// How long the rest takes: as long as the rounds so far, or by plan before there are any.
    fn expect(&mut self, plan: &Plan) {
        let stored = &self.state.sweep.plan;
        let all = stored.values.len() as u64 * u64::from(stored.rounds);
        let taken = self.state.sweep.rounds.len() as u64;
        let left = all.saturating_sub(taken);
        let of_round_ns = match taken {
            0 => stored.round_warmup_ns + stored.window_ns.unwrap_or(WINDOW_NS),
            taken => clock::now_ns().saturating_sub(self.state.begun_ns) / taken,
        };
        self.state
            .line
            .expect(left.saturating_mul(of_round_ns), plan.connections.get());
    }
}

impl SweepBench for Bench<'_> {
    type Error = anyhow::Error;

    fn measure(&mut self, plan: &Plan, value: f64) -> Result<Run> {
        let client = self.state.sweep.environment.client.as_ref();
        let ports = client.and_then(|client| client.ports_available);
        self.source.settle(ports)?;
        self.expect(plan);
        let axis = self.state.sweep.plan.varied.name();
        let run = self.source.round(plan, &mut self.state.line);
        run.with_context(|| format!("the round of {value} {axis} could not be measured"))
    }

    fn take(&mut self, round: SweepRound) -> Result<()> {
        self.state.sweep.rounds.push(round);
        Ok(())
    }
}
