//! The server, watched from outside while the run lasts: its processes on this machine, or its
//! threads in this process.

mod container;
pub(crate) mod listener;
pub(crate) mod proc_files;
mod processes;

use std::collections::BTreeSet;

use brunt_io::backend::Peer;
use brunt_io::{clock, threads as io_threads};
use brunt_load::Watch;
use brunt_record::ServerScope;
use thiserror::Error;

use crate::route::is_own;

pub use self::container::ContainerError;
pub use self::processes::ServerWatch;

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
#[derive(Debug, Default)]
pub struct Found {
    /// How it is watched; absent: it is not.
    pub watch: Option<ServerWatch>,
    /// Why it is not, where it could have been.
    pub missing: Option<String>,
}

impl ServerWatch {
    /// Looks for the server. `own_server`: it is the reference server within this process.
    ///
    /// With [`Watch::Auto`], what cannot be watched is no error.
    pub fn find(watch: &Watch, peer: &Peer, own_server: bool) -> Result<Found, WatchError> {
        let found = match named(watch)? {
            Some((origin, none)) => {
                let found = Self::new(&origin.pids(), origin);
                Ok(found.ok_or(none)?)
            }
            None if *watch == Watch::Off => return Ok(Found::default()),
            None if own_server => Self::own_threads()
                .ok_or_else(|| "its threads are not to be seen in /proc".to_owned()),
            None => auto(peer),
        };
        let missing = found.as_ref().err().cloned();
        let watch = found.ok();
        Ok(Found { watch, missing })
    }
}

/// CPUs that the server's processes use over `interval_ns` from now on. Absent where they are not
/// to be seen.
pub fn cpus_used_now(scope: &ServerScope, interval_ns: u64) -> Option<f64> {
    let ServerScope::Processes { pids, .. } = scope else {
        return None;
    };
    let mut watch = ServerWatch::new(pids, Origin::Pids(pids.clone()))?;
    watch.begin_idle(clock::now_ns());
    io_threads::sleep(interval_ns);
    watch.end_idle(clock::now_ns());
    watch.idle_cpus_used()
}

/// Where the server is, for those who choose CPUs beside it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ServerMachine {
    /// Not on this machine, or not to be seen on it.
    Other,
    /// On this machine: the CPUs that its threads may use, one set for each thread; none where its
    /// threads are not to be seen.
    Own(Vec<BTreeSet<u32>>),
}

/// Looks where the server is that `watch` names, or that is at `peer`.
pub fn machine_of(watch: &Watch, peer: &Peer) -> ServerMachine {
    let origin = match named(watch) {
        Ok(Some((origin, _))) => origin,
        Ok(None) => {
            if let Peer::Tcp(address) | Peer::Udp(address) = peer
                && !is_own(address.ip())
            {
                return ServerMachine::Other;
            }
            Origin::Listener(peer.clone())
        }
        // Whoever looks for what to watch says why.
        Err(_) => return ServerMachine::Own(Vec::new()),
    };
    let server = ServerWatch::new(&origin.pids(), origin);
    ServerMachine::Own(server.map_or_else(Vec::new, |server| server.affinities()))
}

/// How the processes that `watch` names are found, and the error if none is; absent where it names
/// none.
fn named(watch: &Watch) -> Result<Option<(Origin, WatchError)>, ContainerError> {
    Ok(Some(match watch {
        Watch::Process(pid) => {
            let none = WatchError::NoProcess { pid: *pid };
            (Origin::Pids(vec![*pid]), none)
        }
        Watch::Named(name) => {
            let none = WatchError::NoProcessNamed { name: name.clone() };
            (Origin::Named(name.clone()), none)
        }
        Watch::Cgroup(group) => {
            let group = group.clone();
            (
                Origin::Cgroup(group.clone()),
                WatchError::EmptyCgroup { group },
            )
        }
        Watch::Container(name) => {
            let (id, name) = (container::id(name)?, name.clone());
            let none = WatchError::EmptyContainer { name: name.clone() };
            (Origin::Container { name, id }, none)
        }
        Watch::Auto | Watch::Off => return Ok(None),
    }))
}

/// The processes behind the listening socket, or why they cannot be watched.
fn auto(peer: &Peer) -> Result<ServerWatch, String> {
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
    ServerWatch::new(&pids, Origin::Listener(peer.clone()))
        .ok_or_else(|| "the server's process ended while it was looked at".to_owned())
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
    /// They are threads of this process: the reference server's.
    OwnThreads,
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
            Self::OwnThreads => vec![std::process::id()],
        }
    }

    /// What was watched, of these processes.
    pub(super) fn scope(&self, pids: Vec<u32>) -> ServerScope {
        let found_by = match self {
            Self::OwnThreads => return ServerScope::OwnThreads,
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
        };
        ServerScope::Processes { pids, found_by }
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
        assert_eq!(machine_of(&Watch::Auto, &remote), ServerMachine::Other);
        let own = Watch::Process(std::process::id());
        let ServerMachine::Own(affinities) = machine_of(&own, &remote) else {
            panic!("this process is on this machine");
        };
        let allowed: BTreeSet<u32> = brunt_io::cpu::allowed_cpus().unwrap().into_iter().collect();
        assert!(affinities.contains(&allowed), "{affinities:?}");
        // Local, and nobody is to be seen.
        let socket = Peer::Unix("/nonexistent/socket".into());
        for watch in [Watch::Auto, Watch::Off] {
            let found = machine_of(&watch, &socket);
            assert_eq!(found, ServerMachine::Own(Vec::new()));
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
}
