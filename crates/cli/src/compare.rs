//! `brunt compare URL URL...`: which of several servers is faster, from rounds in turns.

use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use brunt_engine::{Rounds, RunError};
use brunt_experiment::compare;
use brunt_io::cpu::usable_cpus;
use brunt_load::{Plan, Round, Target};
use brunt_measure::{
    ChangeLimit, Compared, ComparedRounds, ComparedSide, ComparisonKind, Judged, RoundRecord, Run,
    SIDES_MAX,
};
use brunt_report::Experiment;

use crate::args::{CompareArguments, LoadArguments};
use crate::environment::environment;
use crate::output::{Destination, print};
use crate::plan::{Load, default_workers, faults};
use crate::progress::Line;
use crate::session::Wanted;
use crate::signals::{Interrupts, Second};
use crate::{EXIT_INTERRUPTED, EXIT_MISSED, list, message};

/// The quantiles of the response time that are compared at equal rates.
const QUANTILES: [f64; 2] = [0.5, 0.99];
/// Lengths of a round's window and warm-up where none is typed.
const WINDOW_NS: u64 = 2_000_000_000;
const WARMUP_NS: u64 = 500_000_000;

/// Measures in turns, and prints what that shows.
pub(crate) fn run(arguments: &CompareArguments) -> Result<ExitCode> {
    if arguments.load.schema {
        print(brunt_report::COMPARISON_SCHEMA.as_bytes())?;
        return Ok(ExitCode::SUCCESS);
    }
    let plans = plans(&arguments.load)?;
    let is_closed = plans.iter().all(|plan| plan.model.schedule().is_none());
    check_limits(&arguments.fail_if, is_closed)?;
    let destination = Destination::of_experiment(&arguments.load.output)?;
    let interrupts = Interrupts::listen(Second::Reports)?;
    match measure(arguments, plans, &interrupts) {
        Ok(compared) => {
            let exceeded = brunt_report::exceeded_limits(&compared);
            destination.write_experiment(&Experiment::Comparison(compared))?;
            for words in &exceeded {
                message::print(&format_args!("exceeded {words}"));
            }
            Ok(match exceeded.is_empty() {
                true => ExitCode::SUCCESS,
                false => ExitCode::from(EXIT_MISSED),
            })
        }
        Err(error) => {
            destination.abandon();
            if matches!(error.downcast_ref(), Some(RunError::Interrupted)) {
                message::print(&"interrupted: a part of the rounds is no comparison");
                return Ok(ExitCode::from(EXIT_INTERRUPTED));
            }
            Err(error)
        }
    }
}

/// Throughput is compared in a closed loop, and response times at equal rates.
fn check_limits(limits: &[ChangeLimit], is_closed: bool) -> Result<()> {
    for limit in limits {
        match (limit.compared, is_closed) {
            (Compared::SuccessesPerS, false) => bail!(
                "--fail-if: with -r the rate is given; limit a response time, as in 'p99 > +5%'"
            ),
            (Compared::ResponseQuantile(_), true) => bail!(
                "--fail-if: response times are compared at equal rates; give one with -r, or limit \
                 the rate, as in 'rate < -5%'"
            ),
            _ => {}
        }
    }
    Ok(())
}

/// What is compared: with a schedule also the quantiles that have a limit.
fn compared(plan: &Plan, limits: &[ChangeLimit]) -> Vec<Compared> {
    if plan.model.schedule().is_none() {
        return vec![Compared::SuccessesPerS];
    }
    let mut all: Vec<Compared> = QUANTILES.map(Compared::ResponseQuantile).into();
    for limit in limits {
        if !all.contains(&limit.compared) {
            all.push(limit.compared);
        }
    }
    all
}

/// One plan per server, alike but for the target.
fn plans(arguments: &LoadArguments) -> Result<Vec<Plan>> {
    let urls: Vec<&String> = arguments.url.iter().chain(&arguments.behind_url).collect();
    if !(2..=SIDES_MAX).contains(&urls.len()) {
        bail!("give the URLs of 2 to {SIDES_MAX} servers, as in brunt compare URL URL");
    }
    refuse(arguments)?;
    urls.into_iter().map(|url| plan(arguments, url)).collect()
}

/// What says nothing of several rounds.
fn refuse(arguments: &LoadArguments) -> Result<()> {
    let output = &arguments.output;
    for (is_given, option) in [
        (arguments.diagnose, "--diagnose"),
        (arguments.extend, "--extend"),
        (arguments.requests.is_some(), "--requests"),
        (arguments.script.is_some(), "--script"),
        (arguments.sessions.is_some(), "--sessions"),
        (!arguments.fault.is_empty(), "--fault"),
        (arguments.script.is_some(), "--script"),
        (!output.objective.is_empty(), "--objective"),
        (output.hdr_log.is_some(), "--hdr-log"),
        (output.hgrm.is_some(), "--hgrm"),
        (output.latency, "--latency"),
    ] {
        if is_given {
            bail!("{option} is about a single run; leave it out, or run brunt without compare");
        }
    }
    Ok(())
}

fn plan(arguments: &LoadArguments, url: &str) -> Result<Plan> {
    let target = Target::parse(url, arguments.unix_socket.clone())?;
    let listed = list::read(arguments, Some(target))?;
    let target = listed
        .target
        .with_context(|| format!("{url} is no target"))?;
    let load = Load::new(arguments, Some(&target))?.with_list(listed.requests);
    let workers = default_workers(&load.model, usable_cpus());
    let mut plan = load.plan(arguments, target, workers, None);
    if arguments.duration.is_none() && arguments.stages.is_none() {
        plan.stop.duration_ns = Some(WINDOW_NS);
    }
    plan.warmup_ns = arguments.warmup.unwrap_or(WARMUP_NS);
    plan.halves_warmup = false;
    Ok(plan)
}

fn measure(
    arguments: &CompareArguments,
    plans: Vec<Plan>,
    interrupts: &Interrupts,
) -> Result<ComparedRounds> {
    let quiet = arguments.load.output.quiet;
    let pairs = arguments.pairs.get() as usize;
    let first = plans.first().context("there are no plans")?.clone();
    let round_ns = first.warmup_ns + first.stop.duration_ns.unwrap_or(0);
    let rounds = (pairs * plans.len()) as u64;
    let mut line = Line::of_comparison(quiet, &first, round_ns.saturating_mul(rounds));
    let round = Round::of(&first);
    let mut found = ComparedRounds {
        kind: ComparisonKind::Comparison,
        format: ComparedRounds::FORMAT,
        brunt_version: env!("CARGO_PKG_VERSION").to_owned(),
        load: None,
        environment: environment(),
        compared: compared(&first, &arguments.fail_if),
        limits: arguments.fail_if.clone(),
        sides: plans
            .iter()
            .map(|plan| ComparedSide {
                url: plan.target.url.clone(),
                rounds: Vec::with_capacity(pairs),
                capacity: None,
            })
            .collect(),
    };
    let measured = in_sessions(interrupts, plans.into_iter(), Vec::new(), &mut |sides| {
        let mut taken = |side: usize, run: &Run| {
            if side == 0 {
                found.environment.add(run);
                found.load.get_or_insert_with(|| run.plan.clone());
            }
            let record = RoundRecord::of(&Judged::of(run));
            found.sides[side].rounds.push(record);
        };
        Ok(compare(sides, &round, pairs, &mut line, &mut taken)?)
    });
    line.clear();
    measured.map(|()| found)
}

/// Does `body` while each plan has its session.
fn in_sessions<T>(
    interrupts: &Interrupts,
    mut plans: std::vec::IntoIter<Plan>,
    mut opened: Vec<&mut dyn Rounds>,
    body: &mut dyn FnMut(&mut [&mut dyn Rounds]) -> Result<T>,
) -> Result<T> {
    let Some(plan) = plans.next() else {
        return body(&mut opened);
    };
    interrupts.in_session(plan, faults(&[]), false, Wanted::Whole, |session| {
        let mut sides: Vec<&mut dyn Rounds> = Vec::with_capacity(opened.len() + 1);
        for side in &mut opened {
            sides.push(&mut **side);
        }
        sides.push(session);
        in_sessions(interrupts, plans, sides, body)
    })
}
