//! The server, watched from outside while the run lasts: its processes on this machine, or its
//! threads in this process.

mod container;
pub(crate) mod listener;
mod own_threads;
pub(crate) mod proc_files;
mod processes;

use std::collections::{BTreeMap, BTreeSet};

use brunt_io::backend::Peer;
use brunt_io::{clock, threads as io_threads};
use brunt_load::Watch;
use brunt_record::{ServerEvidence, ServerScope};
use thiserror::Error;

use self::own_threads::OwnThreads;
use self::processes::ProcessWatch;
use crate::route::is_own;

pub use self::container::ContainerError;

/// Why what was asked for cannot be watched.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum WatchError {
    /// There is no such process.
    #[error(
        "there is no process {pid} to watch (or /proc hides it); give --watch a process id or name \
         that `ps -e` lists"
    )]
    NoProcess {
        /// As typed.
        pid: u32,
    },
    /// No process has this name.
    #[error(
        "no process is named `{name}` (or /proc hides it); give --watch a name as `ps -e` lists \
         it, or a process id"
    )]
    NoProcessNamed {
        /// As typed.
        name: String,
    },
    /// No process is in this control group.
    #[error(
        "no process is in the control group `{group}` (or /proc hides it); /proc/PID/cgroup has \
         the path of a process's group, and in a container brunt sees others only with --pid host"
    )]
    EmptyCgroup {
        /// Its path.
        group: String,
    },
    /// No process is in this container.
    #[error(
        "no process is in the container `{name}` (or /proc hides it): is it running, and on this \
         machine? In a container brunt sees others only with --pid host"
    )]
    EmptyContainer {
        /// Its id or name, as typed.
        name: String,
    },
    /// It is not known which container is meant.
    #[error(transparent)]
    Container(#[from] ContainerError),
}

/// What was found to watch.
#[derive(Debug)]
pub struct Found {
    /// How it is watched; absent: it is not.
    pub watch: Option<ServerWatch>,
    /// Why it is not, where it could have been.
    pub missing: Option<String>,
}

impl Found {
    fn watch(means: Means) -> Self {
        Self {
            watch: Some(ServerWatch { means }),
            missing: None,
        }
    }
}

/// Watches the server.
///
/// The calls come in this order: `begin_idle` and `end_idle` (and `discard_idle`) before the load,
/// `begin` and `end` at the window's edges, `refresh` and `sample` between them. All may be left
/// out but the last one.
#[derive(Debug)]
pub struct ServerWatch {
    means: Means,
}

#[derive(Debug)]
enum Means {
    Processes(Box<ProcessWatch>),
    OwnThreads(OwnThreads),
}

impl ServerWatch {
    /// Looks for the server. `own_server`: it is the reference server within this process.
    ///
    /// With [`Watch::Auto`], what cannot be watched is no error.
    pub fn find(watch: &Watch, peer: &Peer, own_server: bool) -> Result<Found, WatchError> {
        let means = match watch {
            Watch::Off => {
                return Ok(Found {
                    watch: None,
                    missing: None,
                });
            }
            Watch::Auto => {
                let found = if own_server {
                    OwnThreads::find()
                        .map(Means::OwnThreads)
                        .ok_or_else(|| "its threads are not to be seen in /proc".to_owned())
                } else {
                    auto(peer).map(|watch| Means::Processes(Box::new(watch)))
                };
                return Ok(match found {
                    Ok(means) => Found::watch(means),
                    Err(missing) => Found {
                        watch: None,
                        missing: Some(missing),
                    },
                });
            }
            Watch::Process(pid) => processes(watch, WatchError::NoProcess { pid: *pid })?,
            Watch::Named(name) => {
                let name = name.clone();
                processes(watch, WatchError::NoProcessNamed { name })?
            }
            Watch::Cgroup(group) => {
                let group = group.clone();
                processes(watch, WatchError::EmptyCgroup { group })?
            }
            Watch::Container(name) => {
                let name = name.clone();
                processes(watch, WatchError::EmptyContainer { name })?
            }
        };
        Ok(Found::watch(means))
    }

    /// The connections are open, and there is no load: first reading of what the server uses then.
    pub fn begin_idle(&mut self, now_ns: u64) {
        match &mut self.means {
            Means::Processes(watch) => watch.begin_idle(now_ns),
            Means::OwnThreads(watch) => watch.begin_idle(now_ns),
        }
    }

    /// There is still no load, some milliseconds later: second reading of it.
    pub fn end_idle(&mut self, now_ns: u64) {
        match &mut self.means {
            Means::Processes(watch) => watch.end_idle(now_ns),
            Means::OwnThreads(watch) => watch.end_idle(now_ns),
        }
    }

    /// The load began before the second reading ended: what was read says nothing.
    pub fn discard_idle(&mut self) {
        match &mut self.means {
            Means::Processes(watch) => watch.discard_idle(),
            Means::OwnThreads(watch) => watch.discard_idle(),
        }
    }

    /// The window begins.
    pub fn begin(&mut self, now_ns: u64) {
        match &mut self.means {
            Means::Processes(watch) => watch.begin(now_ns),
            Means::OwnThreads(watch) => watch.begin(now_ns),
        }
    }

    /// A reading of what may end before the next sample, to be called ten times per second.
    pub fn refresh(&mut self) {
        match &mut self.means {
            Means::Processes(watch) => watch.refresh(),
            // Threads of this process live as long as it does.
            Means::OwnThreads(_) => {}
        }
    }

    /// A reading within the window, to be called once per second.
    pub fn sample(&mut self, now_ns: u64) {
        match &mut self.means {
            Means::Processes(watch) => watch.sample(now_ns),
            Means::OwnThreads(watch) => watch.sample(now_ns),
        }
    }

    /// The window ends. What could not be read of processes is added to `missing`.
    pub fn end(self, now_ns: u64, missing: &mut BTreeMap<String, String>) -> ServerEvidence {
        match self.means {
            Means::Processes(watch) => watch.end(now_ns, missing),
            Means::OwnThreads(watch) => watch.end(now_ns),
        }
    }
}

/// CPUs that the server's processes use over `interval_ns` from now on. Absent where they are not
/// to be seen.
pub fn cpus_used_now(scope: &ServerScope, interval_ns: u64) -> Option<f64> {
    let ServerScope::Processes { pids, .. } = scope else {
        return None;
    };
    let mut watch = ProcessWatch::new(pids, Origin::Pids(pids.clone()))?;
    watch.begin_idle(clock::now_ns());
    io_threads::sleep(interval_ns);
    watch.end_idle(clock::now_ns());
    watch.idle_cpus_used()
}

/// Where the server is, for those who choose CPUs beside it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Whereabouts {
    /// Not on this machine, or not to be seen on it.
    Elsewhere,
    /// On this machine: the CPUs that its threads may use, one set for each thread; none where its
    /// threads are not to be seen.
    Here(Vec<BTreeSet<u32>>),
}

/// Looks where the server is. Gives also what is found on the way, where `watch` asks for that to
/// be watched: the same as [`ServerWatch::find`] would find.
pub fn whereabouts(watch: &Watch, peer: &Peer) -> (Whereabouts, Option<ServerWatch>) {
    let origin = match named(watch) {
        Ok(Some(origin)) => origin,
        Ok(None) => {
            if let Peer::Tcp(address) | Peer::Udp(address) = peer
                && !is_own(address.ip())
            {
                return (Whereabouts::Elsewhere, None);
            }
            Origin::Listener(peer.clone())
        }
        // Whoever looks for what to watch says why.
        Err(_) => return (Whereabouts::Here(Vec::new()), None),
    };
    let Some(processes) = ProcessWatch::new(&origin.pids(), origin) else {
        return (Whereabouts::Here(Vec::new()), None);
    };
    let here = Whereabouts::Here(processes.affinities());
    let is_watched = *watch != Watch::Off;
    let means = Means::Processes(Box::new(processes));
    (here, is_watched.then_some(ServerWatch { means }))
}

/// How the processes that `watch` names are found; absent where it names none.
fn named(watch: &Watch) -> Result<Option<Origin>, ContainerError> {
    Ok(Some(match watch {
        Watch::Process(pid) => Origin::Pids(vec![*pid]),
        Watch::Named(name) => Origin::Named(name.clone()),
        Watch::Cgroup(path) => Origin::Cgroup(path.clone()),
        Watch::Container(name) => Origin::Container {
            name: name.clone(),
            id: container::id(name)?,
        },
        Watch::Auto | Watch::Off => return Ok(None),
    }))
}

/// The processes that `watch` names, or `none`.
fn processes(watch: &Watch, none: WatchError) -> Result<Means, WatchError> {
    let origin = named(watch)?;
    let found = origin.and_then(|origin| ProcessWatch::new(&origin.pids(), origin));
    Ok(Means::Processes(Box::new(found.ok_or(none)?)))
}

/// The processes behind the listening socket, or why they cannot be watched.
fn auto(peer: &Peer) -> Result<ProcessWatch, String> {
    if let Peer::Tcp(address) | Peer::Udp(address) = peer
        && !is_own(address.ip())
    {
        return Err(format!(
            "{} is not an address of this machine: give --watch container:NAME for a container \
             here",
            address.ip()
        ));
    }
    let pids = listener::listening_pids(peer)?;
    ProcessWatch::new(&pids, Origin::Listener(peer.clone()))
        .ok_or_else(|| "the server's process ended while it was looked at".to_owned())
}

/// What the server used before the load began.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct IdleUse {
    /// When the server was read first, and the CPU that it had used until then.
    first: Option<(u64, u64)>,
    cpus_used: Option<f64>,
}

impl IdleUse {
    /// First reading: CPU until `now_ns`, where known.
    pub(super) fn begin(&mut self, now_ns: u64, cpu_ns: Option<u64>) {
        self.first = cpu_ns.map(|cpu_ns| (now_ns, cpu_ns));
    }

    /// Second reading.
    pub(super) fn end(&mut self, now_ns: u64, cpu_ns: Option<u64>) {
        self.cpus_used = self
            .first
            .zip(cpu_ns)
            .and_then(|((then_ns, before_ns), ns)| {
                let interval_ns = now_ns.checked_sub(then_ns).filter(|&ns| ns > 0)?;
                Some(ns.saturating_sub(before_ns) as f64 / interval_ns as f64)
            });
    }

    /// Nothing is known of it: load began before the second reading ended.
    pub(super) fn discard(&mut self) {
        *self = Self::default();
    }

    /// CPUs used between the two; absent without both.
    pub(super) fn cpus_used(&self) -> Option<f64> {
        self.cpus_used
    }
}

/// How the processes were found, and how others are looked for once one of them has ended.
#[derive(Clone, Debug)]
pub(super) enum Origin {
    /// They hold the socket that listens here.
    Listener(Peer),
    /// They have this name.
    Named(String),
    /// They are in the control group with this path.
    Cgroup(String),
    /// They are in this container.
    Container {
        /// Its id or name, as typed.
        name: String,
        /// Its id.
        id: String,
    },
    /// They were named by their ids: nothing takes their place.
    Pids(Vec<u32>),
}

impl Origin {
    /// The processes that are to be found now.
    pub(super) fn pids(&self) -> Vec<u32> {
        match self {
            Self::Listener(peer) => listener::listening_pids(peer).unwrap_or_default(),
            Self::Named(name) => proc_files::pids_named(name),
            Self::Cgroup(path) => proc_files::pids_in_cgroup(path),
            Self::Container { id, .. } => proc_files::pids_in_container(id),
            Self::Pids(pids) => pids.clone(),
        }
    }

    /// How they were found, in words.
    pub(super) fn words(&self) -> String {
        match self {
            Self::Listener(Peer::Tcp(address)) => format!("listening on port {}", address.port()),
            Self::Listener(Peer::Udp(address)) => {
                format!("listening on UDP port {}", address.port())
            }
            Self::Listener(Peer::Unix(path)) => format!("listening on {}", path.display()),
            Self::Named(name) => format!("--watch {name}"),
            Self::Cgroup(path) => format!("--watch cgroup:{path}"),
            Self::Container { name, .. } => format!("--watch container:{name}"),
            Self::Pids(pids) => {
                let pids: Vec<_> = pids.iter().map(u32::to_string).collect();
                format!("--watch {}", pids.join(" "))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};

    fn missing(watch: &Watch, peer: &Peer) -> String {
        // A child that another test starts holds every socket until it runs its program.
        let found = (0..1_000)
            .map(|_| ServerWatch::find(watch, peer, false).unwrap())
            .find(|found| found.watch.is_none());
        found.unwrap().missing.unwrap()
    }

    #[test]
    fn a_server_in_this_very_process_is_not_watched() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let peer = Peer::Tcp(listener.local_addr().unwrap());
        let words = missing(&Watch::Auto, &peer);
        assert!(words.contains("brunt itself"), "{words}");
    }

    #[test]
    fn what_processes_use_now_is_read() {
        let scope = |pid| ServerScope::Processes {
            pids: vec![pid],
            found_by: String::new(),
        };
        let is_over = Arc::new(AtomicBool::new(false));
        let seen = Arc::clone(&is_over);
        let busy = io_threads::spawn("busy", move || {
            while !seen.load(Ordering::Relaxed) {
                std::hint::spin_loop();
            }
        });
        // Other programs may have the CPUs for a while.
        let mut readings = (0..100).map(|_| cpus_used_now(&scope(std::process::id()), 20_000_000));
        assert!(readings.any(|used| used.is_some_and(|used| used >= 0.2)));
        is_over.store(true, Ordering::Relaxed);
        busy.unwrap().join().unwrap();
        assert_eq!(cpus_used_now(&scope(u32::MAX), 1), None);
        assert_eq!(cpus_used_now(&ServerScope::OwnThreads, 1), None);
    }

    #[test]
    fn what_is_elsewhere_is_told() {
        // Of a network for documentation (RFC 5737), and of none.
        let peer = Peer::Tcp("192.0.2.1:80".parse().unwrap());
        let words = missing(&Watch::Auto, &peer);
        assert!(
            words.contains("192.0.2.1") && words.contains("--watch container"),
            "{words}"
        );

        let words = missing(&Watch::Auto, &Peer::Unix("/nonexistent/socket".into()));
        assert!(words.contains("/nonexistent/socket"), "{words}");
    }

    #[test]
    fn a_server_is_here_by_its_address_or_by_what_is_watched() {
        // Of a network for documentation (RFC 5737).
        let remote = Peer::Tcp("192.0.2.1:80".parse().unwrap());
        let (found, watch) = whereabouts(&Watch::Auto, &remote);
        assert!(found == Whereabouts::Elsewhere && watch.is_none());
        let own = Watch::Process(std::process::id());
        let (Whereabouts::Here(affinities), Some(_)) = whereabouts(&own, &remote) else {
            panic!("this process is on this machine");
        };
        let allowed: BTreeSet<u32> = brunt_io::cpu::allowed_cpus().unwrap().into_iter().collect();
        assert!(affinities.contains(&allowed), "{affinities:?}");
        // Local, and nobody is to be seen.
        let socket = Peer::Unix("/nonexistent/socket".into());
        for watch in [Watch::Auto, Watch::Off] {
            let (found, watch) = whereabouts(&watch, &socket);
            assert!(found == Whereabouts::Here(Vec::new()) && watch.is_none());
        }
    }

    #[test]
    fn what_was_asked_for_and_is_wrong_is_an_error() {
        let peer = Peer::Unix("/nonexistent/socket".into());
        for (watch, words) in [
            (Watch::Process(u32::MAX), "4294967295"),
            (Watch::Process(0), "process 0"),
            (Watch::Named("no such process name".to_owned()), "`ps -e`"),
            (
                Watch::Cgroup("/no/such.slice".to_owned()),
                "`/no/such.slice`",
            ),
        ] {
            let message = ServerWatch::find(&watch, &peer, false)
                .unwrap_err()
                .to_string();
            assert!(message.contains(words), "{message}");
        }
    }

    #[test]
    fn not_to_watch_needs_no_reason() {
        let peer = Peer::Unix("/nonexistent/socket".into());
        let found = ServerWatch::find(&Watch::Off, &peer, false).unwrap();
        assert!(found.watch.is_none() && found.missing.is_none());
    }

    #[test]
    fn idle_use_needs_two_readings_apart() {
        for (first, second, cpus_used) in [
            ((100, Some(50)), (200, Some(60)), Some(0.1)),
            ((100, Some(50)), (200, Some(250)), Some(2.0)),
            ((100, Some(50)), (200, Some(40)), Some(0.0)),
            ((100, Some(50)), (100, Some(60)), None),
            ((100, None), (200, Some(60)), None),
            ((100, Some(50)), (200, None), None),
        ] {
            let mut idle = IdleUse::default();
            idle.begin(first.0, first.1);
            idle.end(second.0, second.1);
            assert_eq!(idle.cpus_used(), cpus_used, "{first:?} {second:?}");
            idle.discard();
            assert_eq!(idle.cpus_used(), None);
        }
    }
}
