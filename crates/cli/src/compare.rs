//! `brunt compare`: which of several servers is faster, from rounds in turns, from a search for the
//! capacity of each in turns, or from stored runs.

use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use brunt_engine::RunObserver;
use brunt_experiment::{capacity_plan, compare, turns};
use brunt_io::clock;
use brunt_judge::{
    Compared, ComparedRounds, ComparedSide, Course, EndedEarly, PAIRS_MAX, SIDES_MAX, pairs_least,
};
use brunt_load::{Plan, Round};
use brunt_record::{Run, counted};
use brunt_report::{Experiment, side_name};

use crate::args::{AnyLoadArguments, fresh_seed};
use crate::commands::CompareArguments;
use crate::compared::{check_limits, compared, labels, new_comparison};
use crate::find::{self, Search};
use crate::output::Destination;
use crate::progress::{Doing, Line};
use crate::refusals::{self, Given};
use crate::run::{Pipeline, interrupted};
use crate::session::{SessionOptions, is_interrupt};
use crate::side_server::{SideCommands, SideServer};
use crate::signals::Interrupts;
use crate::{compare_stored, experiment_exit_code, message};

/// Lengths of a round's window and warm-up where none is typed.
const WINDOW_NS: u64 = 2_000_000_000;
const WARMUP_NS: u64 = 500_000_000;
/// Pairs of rounds where none are typed: more, where so many figures take more.
const PAIRS: usize = 10;
/// How often pairs so far are looked at with --until-decided: each time at twice as many.
const LOOKS: usize = 4;

/// Measures in turns or reads what is stored, and prints what that shows.
pub(crate) fn run(arguments: &CompareArguments, given: &Given) -> Result<ExitCode> {
    let typed = &arguments.typed.load;
    let mut urls: Vec<&String> = typed.url.iter().chain(&typed.behind_url).collect();
    // Servers that are started one after the other may have one address.
    if let [only] = urls[..] {
        urls = vec![only; arguments.start.len().max(1)];
    }
    if compare_stored::are_stored(&urls)? {
        // Everything is read before an output file is touched, which may be one of them.
        let compared = compare_stored::read(arguments, given, &urls)?;
        let destination = Destination::of_comparison(&typed.output)?;
        return report(compared, |found| destination.write_experiment(found));
    }
    let is_search = !typed.output.objective.is_empty();
    let plans = plans(arguments, given, &urls, is_search)?;
    let is_closed = plans.iter().all(|plan| plan.model.schedule().is_none());
    check_limits(&arguments.fail_if, is_closed, is_search)?;
    let commands = SideCommands::of_sides(arguments, plans.len())?;
    let named = sides_of(arguments, &plans)?;
    let figures = compared(!is_closed, &arguments.fail_if);
    let looks = arguments.until_decided.map_or(1, |_| LOOKS);
    let pairs = pairs(arguments, figures.len() * (plans.len() - 1) * looks)?;
    let pipeline = Pipeline::open(Destination::of_comparison(&typed.output)?)?;
    let sides = Sides {
        plans: &plans,
        commands: &commands,
        interrupts: &pipeline.interrupts,
    };
    let measured = match is_search {
        true => search(arguments, named, sides),
        false => measure(arguments, named, sides, figures, pairs),
    };
    match measured {
        Ok(compared) => report(compared, |found| pipeline.report(found)),
        Err(error) if is_interrupt(&error) => interrupted(match is_search {
            true => "interrupted: a part of the searches is not a comparison",
            false => "interrupted before a pair of rounds was complete",
        }),
        Err(error) => Err(error),
    }
}

/// Has what was found written, and prints the limits that were exceeded or could not be judged.
fn report(
    compared: ComparedRounds,
    write: impl FnOnce(&Experiment) -> Result<()>,
) -> Result<ExitCode> {
    let exceeded = brunt_report::exceeded_limits(&compared);
    let not_judged = brunt_report::limits_not_judged(&compared);
    let open = brunt_report::limits_open(&compared);
    let experiment = Experiment::Comparison(compared);
    let code = experiment_exit_code(&experiment);
    write(&experiment)?;
    for (outcome, limits) in [
        ("exceeded", exceeded),
        ("not judged", not_judged),
        ("open", open),
    ] {
        for words in limits {
            message::print(&format_args!("{outcome} {words}"));
        }
    }
    Ok(code)
}

/// How many pairs of rounds are to count, where so many figures are compared at once.
fn pairs(arguments: &CompareArguments, figures: usize) -> Result<usize> {
    let least = pairs_least(figures);
    let Some(typed) = arguments.pairs else {
        return Ok(PAIRS.max(least));
    };
    let typed = typed.get() as usize;
    if typed < least {
        bail!(
            "--pairs {typed}: {} compared at once, which takes {least} to {PAIRS_MAX} pairs: with \
             fewer, chance alone shows a difference too often",
            counted(figures as u64, "figure is", "figures are")
        );
    }
    Ok(typed)
}

/// One plan per server, alike but for the target.
fn plans(
    arguments: &CompareArguments,
    given: &Given,
    urls: &[&String],
    is_search: bool,
) -> Result<Vec<Plan>> {
    if !(2..=SIDES_MAX).contains(&urls.len()) {
        bail!(
            "give the URLs of 2 to {SIDES_MAX} servers, as in brunt compare URL URL, or two stored \
             runs and more"
        );
    }
    given.refuse(refusals::EXPERIMENT)?;
    given.refuse(refusals::COMPARE)?;
    if is_search {
        given.refuse(refusals::SEARCH)?;
    }
    let load = &arguments.typed.load;
    let most_per_s = arguments.search.max_rate;
    find::check_rates(load.rate.filter(|_| is_search), most_per_s)?;
    let urls = urls.iter();
    urls.map(|url| match is_search {
        true => find::plan(&arguments.typed, given, url, most_per_s),
        false => plan(&arguments.typed, given, url),
    })
    .collect()
}

fn plan(typed: &AnyLoadArguments, given: &Given, url: &str) -> Result<Plan> {
    let mut plan = typed.typed(given).plan(Some(url), None)?;
    typed.load.set_window(&mut plan, WINDOW_NS);
    plan.warmup_ns = typed.load.warmup.unwrap_or(WARMUP_NS);
    plan.halves_warmup = false;
    Ok(plan)
}

/// The sides, of which nothing is measured yet.
fn sides_of(arguments: &CompareArguments, plans: &[Plan]) -> Result<Vec<ComparedSide>> {
    let urls: Vec<&str> = plans.iter().map(|plan| &*plan.target.url).collect();
    let labels = labels(arguments, &urls)?.into_iter();
    let sides = labels.zip(urls).map(|(label, url)| ComparedSide {
        label,
        url: url.to_owned(),
        server: None,
        rounds: Vec::new(),
        capacity: None,
        single_run: None,
    });
    Ok(sides.collect())
}

/// Makes the rounds of all sides in turns. What was complete when a signal came is the result.
fn measure(
    arguments: &CompareArguments,
    named: Vec<ComparedSide>,
    sides: Sides<'_>,
    figures: Vec<Compared>,
    pairs: usize,
) -> Result<ComparedRounds> {
    let output = &arguments.typed.load.output;
    let plans = sides.plans;
    let first = plans.first().context("there are no plans")?;
    let round_ns = first.warmup_ns + first.stop.duration_ns.unwrap_or(0);
    let rounds = |pairs: usize| (pairs * plans.len()) as u64;
    let expected_ns = round_ns.saturating_mul(rounds(pairs));
    let expected_ns = arguments.until_decided.unwrap_or(expected_ns);
    let mut line = Line::of_experiment(output, first, Doing::Comparison);
    line.expect_left(expected_ns);
    let round = Round::of(first);
    let mut found = new_comparison(figures, &arguments.fail_if);
    found.sides = named;
    let seed = arguments.typed.load.seed.unwrap_or_else(fresh_seed);
    let begun_ns = clock::now_ns();
    let is_over = |limit_ns| clock::now_ns().saturating_sub(begun_ns) >= limit_ns;
    let mut done = 0;
    let mut look = |found: &mut ComparedRounds, number: usize| {
        let pairs = (pairs << number).min(PAIRS_MAX);
        found.pairs_planned = u32::try_from(pairs).ok();
        // The first look takes what it takes: with fewer pairs nothing can be said.
        let may_go_on = || number == 0 || !arguments.until_decided.is_some_and(is_over);
        let seed = seed.wrapping_add(number as u64);
        compare(found, pairs, seed, &may_go_on, &mut |side, pairs| {
            let run = sides.round(side, &round, &mut line);
            done += 1;
            line.expect_rounds(done, rounds(pairs));
            run
        })
    };
    found.looks = arguments.until_decided.and(u32::try_from(LOOKS).ok());
    let mut measured = look(&mut found, 0);
    if let Some(limit_ns) = arguments.until_decided {
        for number in 1..LOOKS {
            let is_open = matches!(measured, Ok(Course::Done)) && !found.are_limits_decided();
            if !is_open || is_over(limit_ns) {
                break;
            }
            measured = look(&mut found, number);
        }
    }
    line.clear();
    found.ended_early = match measured {
        Ok(Course::ClientLimited) => Some(EndedEarly::ClientLimited),
        Ok(_) => None,
        Err(error) if is_interrupt(&error) && found.pairs() > 0 => Some(EndedEarly::Interrupted),
        Err(error) => return Err(error),
    };
    Ok(found)
}

/// Searches for the capacities of all sides, step by step in turns.
fn search(
    arguments: &CompareArguments,
    named: Vec<ComparedSide>,
    sides: Sides<'_>,
) -> Result<ComparedRounds> {
    let load = &arguments.typed.load;
    let asked = find::asked(load)?;
    let most_per_s = arguments.search.max_rate;
    let plans = sides.plans;
    let first = plans.first().context("there are no plans")?;
    let mut found = new_comparison(vec![Compared::CapacityPerS], &arguments.fail_if);
    found.sides = named;
    let of_side = |plan: &Plan| {
        let wanted = capacity_plan(plan, asked.clone(), load.rate, most_per_s, None);
        Search::new(plan, wanted, found.environment.clone())
    };
    let mut searches: Vec<Search> = plans.iter().map(of_side).collect();
    let left_ns = |searches: &[Search]| searches.iter().map(Search::expected_ns).sum();
    let mut line = Line::of_experiment(&load.output, first, Doing::Search);
    line.expect_left(left_ns(&searches));
    // Each turn has a step of every side that has no result yet.
    for side in turns(plans.len(), usize::MAX) {
        let mut measure = |plan: &Plan| sides.round(side, &Round::of(plan), &mut line);
        let step = searches[side].step(&mut measure);
        step.inspect_err(|_| line.clear())?;
        line.expect_left(left_ns(&searches));
        if searches.iter().all(Search::is_done) {
            break;
        }
    }
    line.clear();
    if let Some(first) = searches.first() {
        found.environment.clone_from(&first.capacity.environment);
        found.load.clone_from(&first.capacity.load);
    }
    for (side, search) in found.sides.iter_mut().zip(searches) {
        side.server.clone_from(&search.capacity.environment.server);
        side.capacity = Some(search.capacity);
    }
    Ok(found)
}

// The rounds of compared servers each have a session of their own. How connections fall on the
// threads and processes of a server stays for as long as they are open: in a session that lasts it
// would be a difference of the sides, and with new connections it is what rounds vary by.

/// The servers that are compared.
#[derive(Clone, Copy, Debug)]
struct Sides<'a> {
    plans: &'a [Plan],
    commands: &'a [SideCommands],
    interrupts: &'a Interrupts,
}

impl Sides<'_> {
    /// Measures a round of a side.
    fn round(&self, side: usize, round: &Round, observer: &mut dyn RunObserver) -> Result<Run> {
        let interrupts = self.interrupts;
        let (plan, commands) = (&self.plans[side], &self.commands[side]);
        let server = commands.start(plan, interrupts)?;
        let run = commands.warm_up(interrupts).and_then(|()| {
            let options = SessionOptions::default();
            interrupts.in_session(plan.clone(), options, |session| {
                Ok(session.round(round, observer)?)
            })
        });
        let stopped = server.map_or(Ok(()), SideServer::stop);
        let run = run.with_context(|| {
            let url = &plan.target.url;
            format!("a round of {} ({url}) failed", side_name(side))
        })?;
        stopped?;
        Ok(run)
    }
}
