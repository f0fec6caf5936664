//! `brunt compare`: which of several servers is faster, from rounds in turns, or from stored runs,
//! of which each is compared with the first.

use std::net::{TcpStream, ToSocketAddrs};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use brunt_engine::RunObserver;
use brunt_experiment::{ComparisonCourse, LOOKS, NextRound, compared, differences};
use brunt_io::process_group::{Ended, ProcessGroup};
use brunt_io::tls_config::PageTls;
use brunt_io::{clock, threads};
use brunt_judge::{
    ChangeLimit, Compared, ComparedRounds, Judged, PAIRS_MAX, RoundRecord, SIDES_MAX, SingleRun,
    pairs_least,
};
use brunt_load::{Plan, Target};
use brunt_record::{Run, ServerDescription, counted};
use brunt_report::{Experiment, PhaseLength, side_name};

use crate::args::{AnyLoadArguments, fresh_seed};
use crate::commands::CompareArguments;
use crate::executor::{conclude, make_rounds};
use crate::output::{Destination, NOT_OF_COMPARISON, is_standard};
use crate::progress::Line;
use crate::redact::{environment, redact};
use crate::refusals::{self, Given};
use crate::run::Pipeline;
use crate::session::{Interrupts, SessionOptions};
use crate::stored::{self, refuse_standard_twice, shown};
use crate::{exit, message, objectives};

/// Lengths of a round's window and warm-up where none is typed.
const WINDOW_NS: u64 = 2_000_000_000;
const WARMUP_NS: u64 = 500_000_000;
/// Pairs of rounds where none are typed: more, where so many figures take more.
const PAIRS: usize = 10;

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
        let experiment = Experiment::Comparison(compared);
        Destination::open(&typed.output, NOT_OF_COMPARISON)?.write_experiment(&experiment)?;
        objectives::announce_limits(&experiment);
        return Ok(exit::of_experiment(&experiment));
    }
    let plans = plans(arguments, given, &urls)?;
    let is_closed = plans
        .iter()
        .all(|plan| plan.load.model.schedule().is_none());
    check_limits(&arguments.fail_if, is_closed)?;
    let starts = SideStart::of_sides(arguments, plans.len())?;
    let figures = compared(!is_closed, &arguments.fail_if);
    let looks = arguments.until_decided.map_or(1, |_| LOOKS as usize);
    let pairs = pairs(arguments, figures.len() * (plans.len() - 1) * looks)?;
    let urls: Vec<&str> = plans.iter().map(|plan| &*plan.target.url).collect();
    let found = new_comparison(figures, arguments, &urls)?;
    let pipeline = Pipeline::open(Destination::open(&typed.output, NOT_OF_COMPARISON)?)?;
    let sides = Sides {
        plans: &plans,
        starts: &starts,
        interrupts: &pipeline.interrupts,
    };
    let seed = typed.seed.unwrap_or_else(fresh_seed);
    let until_ns = arguments.until_decided;
    let mut course = ComparisonCourse::new(found, plans.clone(), pairs, seed, until_ns);
    let mut line = Line::of_experiment(&typed.output, &plans[0], "compare", PhaseLength::Planned);
    let outcome = make_rounds(&mut course, &mut line, |next, line| sides.round(next, line));
    conclude(pipeline, outcome, Experiment::Comparison(course.finish()))
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
fn plans(arguments: &CompareArguments, given: &Given, urls: &[&String]) -> Result<Vec<Plan>> {
    if !(2..=SIDES_MAX).contains(&urls.len()) {
        bail!(
            "give the URLs of 2 to {SIDES_MAX} servers, as in brunt compare URL URL, or two stored \
             runs and more"
        );
    }
    given.refuse(&[refusals::EXPERIMENT, refusals::COMPARE])?;
    let of_url = |url: &&String| plan(&arguments.typed, given, url);
    urls.iter().map(of_url).collect()
}

fn plan(typed: &AnyLoadArguments, given: &Given, url: &str) -> Result<Plan> {
    let mut plan = typed.typed(given).plan(Some(url))?;
    typed.load.set_lengths(&mut plan, WINDOW_NS, WARMUP_NS);
    plan.load.halves_warmup = false;
    Ok(plan)
}

// The rounds of compared servers each have a session of their own. How connections fall on the
// threads and processes of a server stays for as long as they are open: in a session that lasts it
// would be a difference of the sides, and with new connections it is what rounds vary by.

/// The servers that are compared.
#[derive(Clone, Copy, Debug)]
struct Sides<'a> {
    plans: &'a [Plan],
    starts: &'a [SideStart],
    interrupts: &'a Interrupts,
}

impl Sides<'_> {
    /// Measures a round of a side.
    fn round(&self, next: NextRound, observer: &mut dyn RunObserver) -> Result<Run> {
        let (interrupts, side) = (self.interrupts, next.side);
        let plan = &self.plans[side];
        let server = self.starts[side].server(plan, interrupts)?;
        let options = SessionOptions::default();
        let run = interrupts.in_session(plan.clone(), options, |session| {
            Ok(session.round(&next.plan.load, observer)?)
        });
        if let Some(server) = server {
            server.stop();
        }
        run.with_context(|| {
            let url = &plan.target.url;
            format!("a round of {} ({url}) failed", side_name(side))
        })
    }
}

/// Limit of one question whether a server is ready.
const ASK_NS: u64 = 1_000_000_000;
/// Pause between two.
const PAUSE_NS: u64 = 20_000_000;
/// How long the kernel may take to give back the port of a server that has ended: where that used
/// io_uring, seconds on a busy machine.
const FREED_NS: u64 = 15_000_000_000;
/// The thread that asks.
const ASKING: &str = "brunt-ready";
/// Addresses of a name that are tried.
const ADDRESSES_MAX: usize = 8;

/// How the server of a side is started, if brunt starts it.
#[derive(Clone, Debug, Default)]
struct SideStart {
    name: String,
    command: Option<String>,
    /// The page that answers when the server is ready; absent: a connection to it is taken.
    ready: Option<Target>,
    ready_limit_ns: u64,
}

/// A server that was started for a round.
#[derive(Debug)]
struct SideServer<'a> {
    name: &'a str,
    group: ProcessGroup,
    interrupts: &'a Interrupts,
}

impl SideStart {
    /// What is typed for each of `sides`.
    fn of_sides(arguments: &CompareArguments, sides: usize) -> Result<Vec<Self>> {
        for (option, typed) in [("--start", &arguments.start), ("--ready", &arguments.ready)] {
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
            let (name, command) = (side_name(side), given(&arguments.start, side));
            let ready = given(&arguments.ready, side);
            if ready.is_some() && command.is_none() {
                bail!("--ready is given for {name}, which has no --start; leave it out there");
            }
            Ok(Self {
                command,
                ready: ready.map(|url| Target::parse(&url, None)).transpose()?,
                ready_limit_ns: arguments.ready_timeout,
                name,
            })
        };
        (0..sides).map(of_side).collect()
    }

    /// Starts the server of `plan` and waits until it is ready; absent where it runs already.
    fn server<'a>(
        &'a self,
        plan: &Plan,
        interrupts: &'a Interrupts,
    ) -> Result<Option<SideServer<'a>>> {
        let Some(command) = &self.command else {
            return Ok(None);
        };
        let name = &self.name;
        let is_free = || {
            let target = plan.target.clone();
            let taken = interrupts.unless_came(ASKING, move || connect(&target).is_ok())?;
            Ok((!taken).then_some(()))
        };
        if until(FREED_NS, is_free)?.is_none() {
            bail!(
                "somebody takes connections at {} before the server of {name} is started; end it, \
                 and have --start end on SIGTERM what it leaves behind",
                plan.target.url
            );
        }
        let group = ProcessGroup::start(command);
        let server = SideServer {
            name,
            group: group.with_context(|| format!("cannot run --start of {name}"))?,
            interrupts,
        };
        if let Err(error) = self.wait_until_ready(plan, &server) {
            server.show_tail();
            server.end();
            return Err(error);
        }
        Ok(Some(server))
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
            let answer = server.interrupts.unless_came(ASKING, move || match page {
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

impl SideServer<'_> {
    /// Ends the server, after its round; says so where it has ended by itself in it.
    fn stop(self) {
        // A command that ends well has left a server behind.
        if let Some(ended) = self.group.ended()
            && ended != Ended::Code(0)
        {
            self.show_tail();
            let name = self.name;
            message::print(&format_args!("the server of {name} {ended} in its round"));
        }
        self.end();
    }

    /// Ends the server. After a signal, too: only a second one has no time for that.
    fn end(self) {
        self.group.end(|| self.interrupts.came_again());
    }

    /// Shows what its command wrote last.
    fn show_tail(&self) {
        let tail = self.group.tail();
        if !tail.trim().is_empty() {
            let name = self.name;
            message::print(&format_args!("--start of {name} wrote to standard error:"));
            message::print_lines(tail.trim_end());
        }
    }
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

/// Throughput is compared in a closed loop, response times at equal rates.
fn check_limits(limits: &[ChangeLimit], is_closed: bool) -> Result<()> {
    for limit in limits {
        let reason = match limit.compared {
            Compared::SuccessesPerS if !is_closed => {
                "with -r the rate is given; limit a response time, as in 'p99 > +5%'"
            }
            Compared::ResponseQuantile(_) if is_closed => {
                "response times are compared at equal rates; give one with -r, or limit the rate, \
                 as in 'rate < -5%'"
            }
            _ => continue,
        };
        bail!("--fail-if: {reason}");
    }
    Ok(())
}

/// A comparison of the sides at `urls`, of which nothing is measured yet.
fn new_comparison(
    figures: Vec<Compared>,
    arguments: &CompareArguments,
    urls: &[&str],
) -> Result<ComparedRounds> {
    let sides = labels(arguments, urls)?.into_iter().zip(urls);
    let sides = sides.map(|(label, &url)| (label, url.to_owned()));
    let limits = arguments.fail_if.clone();
    Ok(brunt_experiment::comparison(
        figures,
        limits,
        sides,
        environment(),
    ))
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
/// Differences that a message names.
const NAMED_MAX: usize = 8;

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
        check_comparable(first, &shown(files[0]), other, &shown(file))?;
    }
    let has_schedule = first.plan.load.model.schedule().is_some();
    check_limits(&arguments.fail_if, !has_schedule)?;
    let figures = compared(has_schedule, &arguments.fail_if);
    let urls: Vec<String> = runs.iter().map(|run| run.plan.urls()).collect();
    let urls: Vec<&str> = urls.iter().map(String::as_str).collect();
    let mut found = new_comparison(figures, arguments, &urls)?;
    found.environment.machine = first.first().machine.clone().unwrap_or_default();
    found.environment.add(first);
    found.load = Some(first.plan.clone());
    for ((run, file), side) in runs.iter().zip(files).zip(&mut found.sides) {
        let judged = Judged::of(run);
        side.server = ServerDescription::of(run);
        side.rounds.push(RoundRecord::of(&judged));
        side.single_run = Some(SingleRun::of(&judged, shown(file)));
    }
    Ok(found)
}

/// Runs are compared that had the same load, by the same client on the same machine.
fn check_comparable(first: &Run, first_name: &str, other: &Run, other_name: &str) -> Result<()> {
    let ids =
        |run: &Run| -> Vec<String> { run.agents.iter().map(|agent| agent.id.clone()).collect() };
    if ids(first) == ids(other) {
        bail!("{first_name} and {other_name} hold the same run; give two that were made apart");
    }
    let differences = differences(first, other)?;
    if differences.is_empty() {
        return Ok(());
    }
    let mut named = differences[..differences.len().min(NAMED_MAX)].join("; ");
    if let Some(more @ 1..) = differences.len().checked_sub(NAMED_MAX) {
        named.push_str(&format!("; and {more} more"));
    }
    let command = first.first().command.as_ref();
    let command = command.map(|words| format!(" ({first_name}: {})", words.join(" ")));
    bail!(
        "{first_name} and {other_name} cannot be compared: {named}. repeat one of them as the \
         other was made{}",
        command.unwrap_or_default()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

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
