//! `brunt compare URL URL...`: which of several servers is faster, from rounds in turns.

use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, Result, anyhow, bail};
use brunt_engine::{Rounds, RunError};
use brunt_experiment::compare;
use brunt_io::cpu::usable_cpus;
use brunt_load::{Plan, Round, Target};
use brunt_measure::Run;
use brunt_report::ComparedSides;

use crate::args::{CompareArguments, FormatName, LoadArguments};
use crate::output::{is_standard, print, terminal_style};
use crate::plan::{Load, default_workers, faults};
use crate::progress::Line;
use crate::session::Wanted;
use crate::signals::{Interrupts, Second};
use crate::{EXIT_INTERRUPTED, list, message};

/// Lengths of a round's window and warm-up where none is typed.
const WINDOW_NS: u64 = 2_000_000_000;
const WARMUP_NS: u64 = 500_000_000;
/// Most servers: each keeps its connections open while the others have their turns.
const SIDES_MAX: usize = 26;

/// Measures in turns, and prints what that shows.
pub(crate) fn run(arguments: &CompareArguments) -> Result<ExitCode> {
    let plans = plans(&arguments.load)?;
    let output = &arguments.load.output;
    let file = match &output.output {
        Some(path) if !is_standard(path) => Some((path, open(path)?)),
        _ => None,
    };
    let interrupts = Interrupts::listen(Second::Ends)?;
    match measure(arguments, plans, &interrupts) {
        Ok(runs) => {
            let sides = ComparedSides(&runs);
            let is_json = output.format == Some(FormatName::Json) || output.output.is_some();
            if let Some((path, mut file)) = file {
                let json = sides.json()?;
                let written = file
                    .set_len(0)
                    .and_then(|()| file.write_all(json.as_bytes()));
                written.with_context(|| format!("cannot write to {}", path.display()))?;
                if !output.quiet {
                    print(sides.text(&terminal_style()).as_bytes())?;
                }
            } else if is_json {
                print(sides.json()?.as_bytes())?;
            } else {
                print(sides.text(&terminal_style()).as_bytes())?;
            }
            Ok(ExitCode::SUCCESS)
        }
        Err(error) => {
            if let Some((path, file)) = file {
                abandon(path, &file);
            }
            if matches!(error.downcast_ref(), Some(RunError::Interrupted)) {
                message::print(&"interrupted: a part of the rounds is no comparison");
                return Ok(ExitCode::from(EXIT_INTERRUPTED));
            }
            Err(error)
        }
    }
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
        (!arguments.fault.is_empty(), "--fault"),
        (!output.objective.is_empty(), "--objective"),
        (output.hdr_log.is_some(), "--hdr-log"),
        (output.hgrm.is_some(), "--hgrm"),
        (output.latency, "--latency"),
    ] {
        if is_given {
            bail!("{option} is about a single run; leave it out, or run brunt without compare");
        }
    }
    match output.format {
        None | Some(FormatName::Text | FormatName::Json) => Ok(()),
        Some(FormatName::Csv | FormatName::Markdown) => {
            Err(anyhow!("a comparison has the forms text and json"))
        }
    }
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
) -> Result<Vec<Vec<Run>>> {
    let quiet = arguments.load.output.quiet;
    let pairs = arguments.pairs.get() as usize;
    let first = plans.first().context("there are no plans")?.clone();
    let round_ns = first.warmup_ns + first.stop.duration_ns.unwrap_or(0);
    let rounds = (pairs * plans.len()) as u64;
    let mut line = Line::of_comparison(quiet, &first, round_ns.saturating_mul(rounds));
    let round = Round::of(&first);
    let runs = in_sessions(interrupts, plans.into_iter(), Vec::new(), &mut |sides| {
        Ok(compare(sides, &round, pairs, &mut line)?)
    });
    line.clear();
    runs
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

fn open(path: &Path) -> Result<File> {
    let file = File::options()
        .write(true)
        .create(true)
        .truncate(false)
        .open(path);
    file.with_context(|| format!("cannot write to {}", path.display()))
}

/// There is nothing to write: an empty file goes.
fn abandon(path: &Path, file: &File) {
    if file
        .metadata()
        .is_ok_and(|metadata| metadata.len() == 0 && metadata.is_file())
    {
        // Should it not go away, it is empty.
        let _ = std::fs::remove_file(path);
    }
}
