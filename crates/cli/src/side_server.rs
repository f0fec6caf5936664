//! The server of a compared side that is started for each of its rounds, and ended after it.

use std::net::{TcpStream, ToSocketAddrs};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use anyhow::{Result, anyhow, bail};
use brunt_engine::RunError;
use brunt_io::tls_config::PageTls;
use brunt_io::{clock, threads};
use brunt_load::{Plan, Target};
use brunt_record::counted;
use brunt_report::side_name;

use crate::commands::CompareArguments;
use crate::message;
use crate::signals::Interrupts;
use brunt_io::process_group::{Ended, ProcessGroup};

/// Limit of one question whether a server is ready.
const ASK_NS: u64 = 1_000_000_000;
/// Pause between two.
const PAUSE_NS: u64 = 20_000_000;
/// How long the kernel may take to give back the port of a server that has ended.
const FREED_NS: u64 = 3_000_000_000;
/// Limit of a `--stop` command; then its server is ended all the same.
const STOP_NS: u64 = 30_000_000_000;
/// Addresses of a name that are tried.
const ADDRESSES_MAX: usize = 8;

/// What is run for a side, each only if it is given.
#[derive(Clone, Debug, Default)]
pub(crate) struct SideCommands {
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
pub(crate) struct SideServer<'a> {
    commands: &'a SideCommands,
    group: ProcessGroup,
    interrupts: &'a Interrupts,
}

impl SideCommands {
    /// What is typed for each of `sides`.
    pub(crate) fn of_sides(arguments: &CompareArguments, sides: usize) -> Result<Vec<Self>> {
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
    pub(crate) fn warm_up(&self, interrupts: &Interrupts) -> Result<()> {
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
    pub(crate) fn start<'a>(
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
            let tls = PageTls::new(&plan.tls, &plan.target.host);
            let answer = unless_interrupted(server.interrupts, move || match page {
                None => connect(&target),
                Some(page) => brunt_probe::ask(&page, &tls, ASK_NS).map_err(|it| it.to_string()),
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
    pub(crate) fn stop(self) -> Result<()> {
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
