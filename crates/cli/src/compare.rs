//! `brunt compare`: which of several servers is faster, from rounds in turns, from a search for the
//! capacity of each in turns, or from stored runs, of which each is compared with the first.

use std::net::{TcpStream, ToSocketAddrs};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail};
use brunt_engine::{RunError, RunObserver};
use brunt_experiment::{capacity_plan, compare, turns};
use brunt_io::process_group::{Ended, ProcessGroup};
use brunt_io::tls_config::PageTls;
use brunt_io::{clock, threads};
use brunt_judge::{
    ChangeLimit, Compared, ComparedRounds, ComparedSide, Course, EndedEarly, ExperimentKind,
    Judged, LimitStands, PAIRS_MAX, RoundRecord, SIDES_MAX, SingleRun, pairs_least,
};
use brunt_load::{Load, Plan, Target};
use brunt_record::{Run, ServerDescription, counted};
use brunt_report::{Experiment, side_name};
use serde_json::{Value, json};

use crate::args::{AnyLoadArguments, fresh_seed};
use crate::commands::CompareArguments;
use crate::executor::{self, Search};
use crate::output::{Destination, NOT_OF_COMPARISON, is_standard};
use crate::progress::{Doing, Line};
use crate::redact::{environment, redact};
use crate::refusals::{self, Given};
use crate::run::{Pipeline, interrupted};
use crate::session::{Interrupts, SessionOptions, is_interrupt};
use crate::stored::{self, refuse_standard_twice, shown};
use crate::{exit, message};

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
    if are_stored(&urls)? {
        // Everything is read before an output file is touched, which may be one of them.
        let compared = read_stored(arguments, given, &urls)?;
        let mut destination = Destination::open(&typed.output, NOT_OF_COMPARISON)?;
        return report(compared, |found| destination.write_experiment(found));
    }
    let is_search = !typed.output.objective.is_empty();
    let plans = plans(arguments, given, &urls, is_search)?;
    let is_closed = plans
        .iter()
        .all(|plan| plan.load.model.schedule().is_none());
    check_limits(&arguments.fail_if, is_closed, is_search)?;
    let commands = SideCommands::of_sides(arguments, plans.len())?;
    let named = sides_of(arguments, &plans)?;
    let figures = compared(!is_closed, &arguments.fail_if);
    let looks = arguments.until_decided.map_or(1, |_| LOOKS);
    let pairs = pairs(arguments, figures.len() * (plans.len() - 1) * looks)?;
    let pipeline = Pipeline::open(Destination::open(&typed.output, NOT_OF_COMPARISON)?)?;
    let sides = Sides {
        plans: &plans,
        commands: &commands,
        interrupts: &pipeline.interrupts,
    };
    let measured = if is_search {
        search(arguments, named, sides)
    } else {
        measure(arguments, named, sides, figures, pairs)
    };
    match measured {
        Ok(compared) => report(compared, |found| pipeline.report(found)),
        Err(error) if is_interrupt(&error) => interrupted(if is_search {
            "interrupted: a part of the searches is not a comparison"
        } else {
            "interrupted before a pair of rounds was complete"
        }),
        Err(error) => Err(error),
    }
}

/// Has what was found written, and prints the limits that were exceeded or could not be judged.
fn report(
    compared: ComparedRounds,
    write: impl FnOnce(&Experiment) -> Result<()>,
) -> Result<ExitCode> {
    let limits = [
        ("exceeded", LimitStands::Exceeded),
        ("not judged", LimitStands::NotJudged),
        ("open", LimitStands::Open),
    ]
    .map(|(outcome, stand)| (outcome, brunt_report::limits_that(&compared, stand)));
    let experiment = Experiment::Comparison(compared);
    let code = exit::of_experiment(&experiment);
    write(&experiment)?;
    for (outcome, limits) in limits {
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
    executor::check_rates(load.rate.filter(|_| is_search), most_per_s)?;
    let urls = urls.iter();
    urls.map(|url| {
        if is_search {
            executor::plan(&arguments.typed, given, url, most_per_s)
        } else {
            plan(&arguments.typed, given, url)
        }
    })
    .collect()
}

fn plan(typed: &AnyLoadArguments, given: &Given, url: &str) -> Result<Plan> {
    let mut plan = typed.typed(given).plan(Some(url), None)?;
    typed.load.set_lengths(&mut plan, WINDOW_NS, WARMUP_NS);
    plan.load.halves_warmup = false;
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
    let round_ns = first.load.warmup_ns + first.load.stop.duration_ns.unwrap_or(0);
    let rounds = |pairs: usize| (pairs * plans.len()) as u64;
    let expected_ns = round_ns.saturating_mul(rounds(pairs));
    let expected_ns = arguments.until_decided.unwrap_or(expected_ns);
    let mut line = Line::of_experiment(output, first, Doing::Comparison);
    line.expect_left(expected_ns);
    let load = first.load.clone();
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
            let run = sides.round(side, &load, &mut line);
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
    let asked = executor::asked(load)?;
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
        let mut measure = |plan: &Plan| sides.round(side, &plan.load, &mut line);
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
    fn round(&self, side: usize, load: &Load, observer: &mut dyn RunObserver) -> Result<Run> {
        let interrupts = self.interrupts;
        let (plan, commands) = (&self.plans[side], &self.commands[side]);
        let server = commands.start(plan, interrupts)?;
        let run = commands.warm_up(interrupts).and_then(|()| {
            let options = SessionOptions::default();
            interrupts.in_session(plan.clone(), options, |session| {
                Ok(session.round(load, observer)?)
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

/// Limit of one question whether a server is ready.
const ASK_NS: u64 = 1_000_000_000;
/// Pause between two.
const PAUSE_NS: u64 = 20_000_000;
/// How long the kernel may take to give back the port of a server that has ended: where that used
/// io_uring, seconds on a busy machine.
const FREED_NS: u64 = 15_000_000_000;
/// Limit of a `--stop` command; then its server is ended all the same.
const STOP_NS: u64 = 30_000_000_000;
/// Addresses of a name that are tried.
const ADDRESSES_MAX: usize = 8;

/// What is run for a side, each only if it is given.
#[derive(Clone, Debug, Default)]
struct SideCommands {
    name: String,
    start: Option<String>,
    /// The page that answers when the server is ready; absent: a connection to it is taken.
    ready: Option<Target>,
    ready_limit_ns: u64,
    warm_up: Option<String>,
    stop: Option<String>,
}

/// A server that was started for a round.
#[derive(Debug)]
struct SideServer<'a> {
    commands: &'a SideCommands,
    group: ProcessGroup,
    interrupts: &'a Interrupts,
}

impl SideCommands {
    /// What is typed for each of `sides`.
    fn of_sides(arguments: &CompareArguments, sides: usize) -> Result<Vec<Self>> {
        for (option, typed) in [
            ("--start", &arguments.start),
            ("--ready", &arguments.ready),
            ("--warmup-command", &arguments.warmup_command),
            ("--stop", &arguments.stop),
        ] {
            if !typed.is_empty() && typed.len() != sides {
                bail!(
                    "{option} is given {}, and there are {sides} URLs; give it once for each, in \
                     their order, and '' where there is none",
                    counted(typed.len() as u64, "time", "times")
                );
            }
        }
        let given = |typed: &[String], side: usize| {
            let word = typed.get(side)?.trim();
            (!word.is_empty()).then(|| word.to_owned())
        };
        let of_side = |side| {
            let start = given(&arguments.start, side);
            let (ready, stop) = (given(&arguments.ready, side), given(&arguments.stop, side));
            let name = side_name(side);
            for (option, typed) in [("--ready", &ready), ("--stop", &stop)] {
                if typed.is_some() && start.is_none() {
                    bail!("{option} is given for {name}, which has no --start; leave it out there");
                }
            }
            let ready = ready.map(|url| Target::parse(&url, None)).transpose()?;
            Ok(Self {
                start,
                ready,
                ready_limit_ns: arguments.ready_timeout,
                warm_up: given(&arguments.warmup_command, side),
                stop,
                name,
            })
        };
        (0..sides).map(of_side).collect()
    }

    /// Runs the warm-up command, if there is one, to its end.
    fn warm_up(&self, interrupts: &Interrupts) -> Result<()> {
        let Some(command) = &self.warm_up else {
            return Ok(());
        };
        self.run("--warmup-command", command, u64::MAX, || interrupts.came())
    }

    /// Runs a command to its end, or until nobody wants it any more.
    fn run(
        &self,
        option: &str,
        command: &str,
        limit_ns: u64,
        is_cancelled: impl Fn() -> bool,
    ) -> Result<()> {
        let name = &self.name;
        let group = ProcessGroup::start(command)
            .map_err(|error| anyhow!("cannot run {option} of {name}: {error}"))?;
        let ended = until(limit_ns, || match group.ended() {
            None if is_cancelled() => Err(RunError::Interrupted.into()),
            ended => Ok(ended),
        });
        let Some(ended) = ended? else {
            show_tail(option, name, &group);
            bail!(
                "{option} of {name} did not end within {} s (`{command}`)",
                limit_ns / 1_000_000_000
            );
        };
        if ended != Ended::Code(0) {
            show_tail(option, name, &group);
            bail!("{option} of {name} {ended} (`{command}`)");
        }
        Ok(())
    }

    /// Starts the server of `plan` and waits until it is ready; absent where it runs already.
    fn start<'a>(
        &'a self,
        plan: &Plan,
        interrupts: &'a Interrupts,
    ) -> Result<Option<SideServer<'a>>> {
        let Some(command) = &self.start else {
            return Ok(None);
        };
        let name = &self.name;
        let is_free = || {
            let target = plan.target.clone();
            let taken = unless_interrupted(interrupts, move || connect(&target).is_ok())?;
            Ok((!taken).then_some(()))
        };
        if until(FREED_NS, is_free)?.is_none() {
            bail!(
                "somebody takes connections at {} before the server of {name} is started; end it, \
                 and give --stop where --start leaves a server behind",
                plan.target.url
            );
        }
        let group = ProcessGroup::start(command)
            .map_err(|error| anyhow!("cannot run --start of {name}: {error}"))?;
        let server = SideServer {
            commands: self,
            group,
            interrupts,
        };
        match self.wait_until_ready(plan, &server) {
            Ok(()) => Ok(Some(server)),
            Err(error) => {
                show_tail("--start", name, &server.group);
                // Why it did not start is what matters.
                let _ = server.end();
                Err(error)
            }
        }
    }

    fn wait_until_ready(&self, plan: &Plan, server: &SideServer<'_>) -> Result<()> {
        let name = &self.name;
        let mut reason = String::new();
        let ready = until(self.ready_limit_ns, || {
            if let Some(ended) = server.group.ended()
                && ended != Ended::Code(0)
            {
                bail!("the server of {name} {ended} before it was ready");
            }
            let (target, page) = (plan.target.clone(), self.ready.clone());
            let tls = PageTls::new(&plan.connection.tls, &plan.target.host);
            let answer = unless_interrupted(server.interrupts, move || match page {
                None => connect(&target),
                Some(page) => {
                    brunt_probe::ask(&page, &tls, ASK_NS).map_err(|error| error.to_string())
                }
            })?;
            Ok(answer.map_err(|error| reason = error).ok())
        });
        if ready?.is_none() {
            bail!(
                "the server of {name} was not ready within {} s (--ready-timeout): {reason}",
                self.ready_limit_ns as f64 / 1e9
            );
        }
        Ok(())
    }
}

/// Looks again and again for something, so long at most.
fn until<T>(limit_ns: u64, mut look: impl FnMut() -> Result<Option<T>>) -> Result<Option<T>> {
    let begun_ns = clock::now_ns();
    loop {
        let found = look()?;
        if found.is_some() || clock::now_ns().saturating_sub(begun_ns) > limit_ns {
            return Ok(found);
        }
        threads::sleep(PAUSE_NS);
    }
}

/// What blocks, in a thread that nobody waits for after a signal.
fn unless_interrupted<T: Send + 'static>(
    interrupts: &Interrupts,
    body: impl FnOnce() -> T + Send + 'static,
) -> Result<T> {
    if interrupts.came() {
        return Err(RunError::Interrupted.into());
    }
    let done = threads::run_unless("brunt-ready", body, || interrupts.came());
    let done = done.map_err(|error| anyhow!("cannot start a thread: {error}"))?;
    done.ok_or_else(|| RunError::Interrupted.into())
}

impl SideServer<'_> {
    /// Ends the server, after its round; says so where it has ended by itself in it.
    fn stop(self) -> Result<()> {
        // A command that ends well has left a server behind.
        if let Some(ended) = self.group.ended()
            && ended != Ended::Code(0)
        {
            let name = &self.commands.name;
            show_tail("--start", name, &self.group);
            message::print(&format_args!("the server of {name} {ended} in its round"));
        }
        self.end()
    }

    /// Ends the server. After a signal, too: only a second one has no time for that.
    fn end(self) -> Result<()> {
        let is_urgent = || self.interrupts.came_again();
        let stopped = match &self.commands.stop {
            Some(command) => self.commands.run("--stop", command, STOP_NS, is_urgent),
            None => Ok(()),
        };
        self.group.end(is_urgent);
        stopped
    }
}

/// Shows what a command wrote last.
fn show_tail(option: &str, name: &str, group: &ProcessGroup) {
    let tail = group.tail();
    if tail.trim().is_empty() {
        return;
    }
    message::print(&format_args!("{option} of {name} wrote to standard error:"));
    message::print_lines(tail.trim_end());
}

/// Whether a connection is taken, or why not.
fn connect(target: &Target) -> Result<(), String> {
    if let Some(path) = &target.unix_socket {
        return UnixStream::connect(path)
            .map(drop)
            .map_err(|error| format!("cannot connect to {}: {error}", path.display()));
    }
    let addresses = (target.host.as_str(), target.port).to_socket_addrs();
    let addresses =
        addresses.map_err(|error| format!("{} has no address: {error}", target.host))?;
    let mut last = format!("{} has no address", target.host);
    for address in addresses.take(ADDRESSES_MAX) {
        match TcpStream::connect_timeout(&address, Duration::from_nanos(ASK_NS)) {
            Ok(_) => return Ok(()),
            Err(error) => last = format!("cannot connect to {address}: {error}"),
        }
    }
    Err(last)
}

/// The quantiles of the response time that are compared at equal rates.
const QUANTILES: [f64; 2] = [0.5, 0.99];

/// Throughput is compared in a closed loop, response times at equal rates, and rates that hold
/// objectives by a search.
fn check_limits(limits: &[ChangeLimit], is_closed: bool, is_search: bool) -> Result<()> {
    for limit in limits {
        match (limit.compared, is_closed) {
            (Compared::CapacityPerS, _) if is_search => {}
            (_, _) if is_search => bail!(
                "--fail-if: with --objective the highest rates that hold are compared; limit them, \
                 as in 'capacity < -5%'"
            ),
            (Compared::ServerCpu, _) => {}
            (Compared::CapacityPerS, _) => bail!(
                "--fail-if: a capacity is searched for with --objective; limit the rate, as in \
                 'rate < -5%', or with -r a response time"
            ),
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

/// What is compared: the throughput of a closed loop, response times at equal rates, and all that
/// has a limit.
fn compared(has_schedule: bool, limits: &[ChangeLimit]) -> Vec<Compared> {
    let mut all = if has_schedule {
        QUANTILES.map(Compared::ResponseQuantile).into()
    } else {
        vec![Compared::SuccessesPerS]
    };
    for limit in limits {
        if !all.contains(&limit.compared) {
            all.push(limit.compared);
        }
    }
    all
}

/// A comparison of which nothing is measured yet.
fn new_comparison(compared: Vec<Compared>, limits: &[ChangeLimit]) -> ComparedRounds {
    ComparedRounds {
        kind: ExperimentKind::Comparison,
        format: ComparedRounds::FORMAT,
        brunt_version: env!("CARGO_PKG_VERSION").to_owned(),
        load: None,
        environment: environment(),
        compared,
        limits: limits.to_vec(),
        pairs_planned: None,
        looks: None,
        ended_early: None,
        sides: Vec::new(),
    }
}

/// What each side is called.
fn labels(arguments: &CompareArguments, urls: &[&str]) -> Result<Vec<Option<String>>> {
    let typed = &arguments.label;
    if !typed.is_empty() && typed.len() != urls.len() {
        bail!(
            "--label is given {}, and {} are compared; give it once for each, in their order",
            counted(typed.len() as u64, "time", "times"),
            urls.len()
        );
    }
    let is_one_url = urls.windows(2).all(|pair| pair[0] == pair[1]);
    let of_side = |side: usize| {
        let started = arguments.start.get(side).filter(|_| is_one_url);
        let label = typed.get(side).or(started)?.trim();
        (!label.is_empty()).then(|| label.to_owned())
    };
    Ok((0..urls.len()).map(of_side).collect())
}

/// Options that have an effect on what is stored already.
const WITH_STORED: &str = "url behind_url fail_if output format label quiet verbose redact";
/// What two plans may differ in: where the server is, how long it was loaded, how long brunt waited
/// for it, and what brunt chooses by itself. What it chose is compared elsewhere, or accused by the
/// verdict.
const MAY_DIFFER: &str = "\
    target.url target.host target.port target.authority target.path target.unix_socket \
    further_targets load.warmup_ns load.halves_warmup load.stop load.drain_limit_ns \
    traffic.requests.first.path connection.tls.server_name connection.tls.roots \
    connection.tls.roots_der connection.source_addresses limits workers.count workers.placement \
    workers.backend workers.held_beside_bytes observation.watch observation.server_counter \
    observation.link_bits_per_s observation.keeps_errors observation.logged_requests_max \
    observation.logged_responses_max";
/// Differences that a message names.
const NAMED_MAX: usize = 8;
/// The kernel does not show quite the same memory after each start.
const MEMORY_DIFFERS: f64 = 0.01;

/// Whether what is to be compared is stored: all of it, or none.
fn are_stored(words: &[&String]) -> Result<bool> {
    let is_stored = |word: &&&String| {
        let path = Path::new(word);
        let is_named_so = path.extension().is_some_and(|ending| ending == "json");
        is_standard(path) || !word.contains("://") && (is_named_so || path.is_file())
    };
    match words.iter().filter(is_stored).count() {
        0 => Ok(false),
        count if count == words.len() => Ok(true),
        _ => bail!(
            "stored runs are compared with stored runs, and servers with servers; store a run of \
             the server with brunt -o FILE.json URL, or give URLs alone"
        ),
    }
}

/// Reads the runs and puts them side by side.
fn read_stored(
    arguments: &CompareArguments,
    given: &Given,
    files: &[&String],
) -> Result<ComparedRounds> {
    if let Some(option) = given.first_besides(WITH_STORED) {
        bail!("{option} is about load that is made, and stored runs are compared; leave it out");
    }
    if !(2..=SIDES_MAX).contains(&files.len()) {
        bail!("give 2 to {SIDES_MAX} stored runs, as in brunt compare OLD.json NEW.json");
    }
    let files: Vec<&Path> = files.iter().map(|file| Path::new(file.as_str())).collect();
    refuse_standard_twice(&files)?;
    let mut runs = Vec::with_capacity(files.len());
    for file in &files {
        let mut run = stored::read(file)?;
        if arguments.typed.load.output.redact {
            redact(&mut run);
        }
        runs.push(run);
    }
    let (first, others) = runs.split_first().context("there are no runs")?;
    for (other, file) in others.iter().zip(&files[1..]) {
        check_comparable(first, other, (files[0], file))?;
    }
    let has_schedule = first.plan.load.model.schedule().is_some();
    check_limits(&arguments.fail_if, !has_schedule, false)?;
    let figures = compared(has_schedule, &arguments.fail_if);
    let mut found = new_comparison(figures, &arguments.fail_if);
    found.environment.machine = first.first().machine.clone().unwrap_or_default();
    found.environment.add(first);
    found.load = Some(first.plan.clone());
    let urls: Vec<String> = runs.iter().map(|run| run.plan.urls()).collect();
    let urls: Vec<&str> = urls.iter().map(String::as_str).collect();
    let labels = labels(arguments, &urls)?;
    for ((run, file), label) in runs.iter().zip(files).zip(labels) {
        let judged = Judged::of(run);
        found.sides.push(ComparedSide {
            label,
            url: run.plan.urls(),
            server: ServerDescription::of(run),
            rounds: vec![RoundRecord::of(&judged)],
            capacity: None,
            single_run: Some(SingleRun::of(&judged, shown(file))),
        });
    }
    Ok(found)
}

/// Runs are compared that had the same load, by the same client on the same machine.
fn check_comparable(first: &Run, other: &Run, (of_first, of_other): (&Path, &Path)) -> Result<()> {
    let (first_name, other_name) = (shown(of_first), shown(of_other));
    let ids =
        |run: &Run| -> Vec<String> { run.agents.iter().map(|agent| agent.id.clone()).collect() };
    if ids(first) == ids(other) {
        bail!("{first_name} and {other_name} hold the same run; give two that were made apart");
    }
    let differences = differences(first, other)?;
    if differences.is_empty() {
        return Ok(());
    }
    let more = differences.len().saturating_sub(NAMED_MAX);
    let mut named = differences;
    named.truncate(NAMED_MAX);
    let mut named = named.join("; ");
    if more > 0 {
        named.push_str(&format!("; and {more} more"));
    }
    let remedy = match &first.first().command {
        Some(words) => format!(
            "repeat one of them as the other was made ({first_name}: {})",
            words.join(" ")
        ),
        None => "repeat one of them as the other was made".to_owned(),
    };
    bail!("{first_name} and {other_name} cannot be compared: {named}. {remedy}")
}

/// In what two runs differ that makes them no comparison, each with both values.
fn differences(first: &Run, other: &Run) -> serde_json::Result<Vec<String>> {
    let mut found = Vec::new();
    let seeded = first.plan.clone().with_seeds_of(&other.plan);
    let (ours, theirs) = (
        view(first, &seeded, other)?,
        view(other, &other.plan, first)?,
    );
    leaves("", &ours, &theirs, &mut found);
    // Those of a script are what it happened to send.
    let mut names = first
        .names
        .iter()
        .zip(&other.names)
        .filter(|_| !first.is_generated());
    if let Some(place) = names.position(|(ours, theirs)| ours.name != theirs.name) {
        let name = |run: &Run| run.names[place].name.to_string();
        let (ours, theirs) = (name(first), name(other));
        let number = place + 1;
        found.push(format!(
            "request {number} of the list is `{ours}` and `{theirs}`"
        ));
    }
    for (ours, theirs) in first.agents.iter().zip(&other.agents) {
        if ours.machine.is_none() || theirs.machine.is_none() {
            found.push("machine is not known of both".to_owned());
        }
    }
    Ok(found)
}

/// What of a run with this plan has to be alike in one that is compared with it.
fn view(run: &Run, plan: &Plan, other: &Run) -> serde_json::Result<Value> {
    // Of each request its path may differ.
    let mut outline = plan.traffic.requests.outline();
    if outline.first.is_some() {
        outline.first_name.clear();
    }
    let mut of_plan = serde_json::to_value(plan)?;
    of_plan["traffic"]["requests"] = serde_json::to_value(outline)?;
    of_plan["traffic"]["order"] = plan.traffic.requests.order().name().into();
    if plan.load.model.name() != other.plan.load.model.name() {
        of_plan["load"]["model"] = plan.load.model.name().into();
    }
    let mut view = json!({
            "plan": of_plan,
            "what is requested": if run.is_generated() {
    "made by a script or a session log"
    } else {
    "those of the plan"
    },
            "the number of requests": if run.is_generated() { 0 } else { run.names.len() },
            "the number of agents": run.agents.len(),
        });
    for (place, agent) in run.agents.iter().enumerate() {
        let beside = other
            .agents
            .get(place)
            .and_then(|agent| agent.machine.as_ref());
        let mut machine = agent.machine.clone().filter(|_| beside.is_some());
        if let (Some(own), Some(beside)) = (&mut machine, beside) {
            let bytes = own.memory_bytes.zip(beside.memory_bytes);
            let is_as_large = |(own, beside): (u64, u64)| {
                own.abs_diff(beside) as f64 <= MEMORY_DIFFERS * own.max(beside) as f64
            };
            own.memory_bytes = own.memory_bytes.filter(|_| !bytes.is_some_and(is_as_large));
        }
        let of = match run.agents.len() {
            1 => String::new(),
            _ => format!("agents[{place}]."),
        };
        view[format!("{of}backend")] = agent.backend.name().into();
        view[format!("{of}machine")] = serde_json::to_value(machine)?;
    }
    Ok(view)
}

/// The leaves of two JSON values that differ.
fn leaves(name: &str, first: &Value, other: &Value, found: &mut Vec<String>) {
    let may_differ = name
        .strip_prefix("plan.")
        .is_some_and(|field| MAY_DIFFER.split(' ').any(|name| name == field));
    if first == other || may_differ {
        return;
    }
    match (first, other) {
        (Value::Object(ours), Value::Object(theirs)) => {
            let names: std::collections::BTreeSet<_> = ours.keys().chain(theirs.keys()).collect();
            for field in names {
                let path = match name {
                    "" => field.clone(),
                    name => format!("{name}.{field}"),
                };
                let null = &Value::Null;
                let (ours, theirs) = (ours.get(field), theirs.get(field));
                leaves(&path, ours.unwrap_or(null), theirs.unwrap_or(null), found);
            }
        }
        _ => found.push(format!("{name} is {first} and {other}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_differs_is_named_leaf_by_leaf() {
        let plan = json!({
            "target": {"url": "http://a/"},
            "load": {
                "model": {"kind": "closed", "connect_per_s": null},
                "connections": 64, "stop": {"duration_ns": 1},
            },
            "traffic": {
                "requests": {"first": {"method": "GET", "path": "/"}, "list": null},
            },
        });
        let found = |change: fn(&mut Value)| {
            let mut other = plan.clone();
            change(&mut other);
            let mut found = Vec::new();
            leaves("plan", &plan, &other, &mut found);
            found
        };
        assert!(found(|_| ()).is_empty());
        let same = found(|plan| {
            plan["target"]["url"] = json!("http://b/x");
            plan["traffic"]["requests"]["first"]["path"] = json!("/x");
            plan["load"]["stop"] = json!({"requests": 7});
        });
        assert!(same.is_empty(), "{same:?}");
        let others = found(|plan| {
            plan["load"]["connections"] = json!(128);
            plan["traffic"]["requests"]["first"]["method"] = json!("POST");
            plan["traffic"]["requests"]["list"] = json!({"requests": 2});
            plan["load"]["model"] = json!({"kind": "open", "schedule": 1});
        });
        assert_eq!(
            others,
            [
                "plan.load.connections is 64 and 128",
                "plan.load.model.kind is \"closed\" and \"open\"",
                "plan.load.model.schedule is null and 1",
                "plan.traffic.requests.first.method is \"GET\" and \"POST\"",
                "plan.traffic.requests.list is null and {\"requests\":2}",
            ]
        );
    }

    #[test]
    fn files_and_servers_are_told_apart() {
        let is = |words: &[&str]| {
            let words: Vec<String> = words.iter().map(|&word| word.to_owned()).collect();
            are_stored(&words.iter().collect::<Vec<_>>())
        };
        assert!(is(&["a.json", "-"]).unwrap());
        assert!(
            is(&["Cargo.toml", "b.json"]).unwrap(),
            "a file that is there"
        );
        assert!(!is(&["http://a/x.json", "localhost:80"]).unwrap());
        assert!(!is(&[]).unwrap());
        let error = is(&["a.json", "http://b/"]).unwrap_err().to_string();
        assert!(error.contains("-o FILE.json"), "{error}");
    }
}
