//! Why there is no run.

use std::io;

use brunt_load::GeneratorError;
use brunt_probe::server::WatchError;
use brunt_probe::server_count::ServerCountError;
use brunt_record::{FailureKind, SetUp, counted};
use thiserror::Error;

/// Why there is no run.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum RunError {
    /// A signal came before anything was measured, or before a simulation was complete.
    #[error("interrupted before there was a measurement: there is nothing to report")]
    Interrupted,
    /// The start of its load came before it was ready.
    #[error(
        "the load was to start {:.1} s before all was ready for it: let it start later, or open \
         fewer connections (-c)", *late_ns as f64 / 1e9
    )]
    StartMissed {
        /// By how much, nanoseconds.
        late_ns: u64,
    },
    /// Set-up ended without a connection.
    #[error(
        "{} could be opened in set-up: {}; {}",
        none_of(*connections),
        what_failed(set_up),
        remedy(set_up)
    )]
    NoConnection {
        /// Asked for.
        connections: u32,
        /// What failed.
        set_up: Box<SetUp>,
    },
    /// A worker could not be started.
    #[error("cannot start worker {worker}: {reason}")]
    Start {
        /// Its number.
        worker: u32,
        /// The system's reason.
        reason: io::Error,
    },
    /// The server cannot be watched as asked.
    #[error(transparent)]
    Watch(#[from] WatchError),
    /// The server's own count cannot be read.
    #[error(transparent)]
    ServerCount(#[from] ServerCountError),
    /// The thread that reads the evidence could not be started.
    #[error("cannot start the thread that watches machine and server: {0}")]
    Observer(io::Error),
    /// A worker's backend failed.
    #[error("worker {worker} failed: {reason}")]
    Worker {
        /// Its number.
        worker: u32,
        /// The system's reason.
        reason: io::Error,
    },
    /// What makes the requests ended the run before anything was measured.
    #[error(transparent)]
    Generator(GeneratorError),
    /// A plan whose requests a generator made has none here.
    #[error(
        "the requests of this plan were made by a script or from a log of sessions, which a plan \
         does not hold; give what makes them again (`set_generators`)"
    )]
    NoGenerator,
    /// What makes the requests did not return.
    #[error(
        "worker {worker} is still in a function of the script, long after the end of the run: \
         there is no result; let the function return"
    )]
    LeftBehind {
        /// Its number.
        worker: u32,
    },
    /// What was prepared in a simulation is to be run on this machine.
    #[error("what was prepared in a simulation runs in that alone (`run_in`)")]
    OfSimulation,
    /// A worker panicked: a bug.
    #[error("worker {worker} panicked; this is a bug in brunt")]
    Panic {
        /// Its number.
        worker: u32,
    },
}

fn none_of(connections: u32) -> String {
    match connections {
        1 => "no connection".to_owned(),
        _ => format!("none of the {connections} connections"),
    }
}

fn what_failed(set_up: &SetUp) -> String {
    let attempts: u64 = set_up.failures.iter().map(|(_, count)| count).sum();
    match set_up.main_failure() {
        None => format!(
            "no attempt was answered within {:.1} s",
            set_up.waited_ns.unwrap_or(0) as f64 / 1e9
        ),
        Some((kind, count)) if count == attempts => {
            let failed = counted(attempts, "attempt", "attempts");
            format!("{failed} failed, all with `{}`", kind.label())
        }
        Some((kind, count)) => format!(
            "{attempts} attempts failed, {count} of them with `{}`",
            kind.label()
        ),
    }
}

/// What to do about it.
fn remedy(set_up: &SetUp) -> &'static str {
    match set_up.main_failure().map(|(kind, _)| kind) {
        Some(FailureKind::ConnectRefused | FailureKind::ConnectUnreachable) => {
            "is the server still running, and its port open to this machine?"
        }
        Some(FailureKind::ConnectTimedOut) | None => {
            "the server does not take connections as fast as they come, or at all: use fewer (-c), \
             open them more slowly (--connection-rate), or wait longer (--connect-timeout)"
        }
        Some(FailureKind::HandshakeTimedOut) => {
            "the server takes connections and does not complete handshakes: use fewer (-c), open \
             them more slowly (--connection-rate), or wait longer (--connect-timeout)"
        }
        Some(FailureKind::ConnectNoPort) => {
            "use fewer connections (-c), or offer more local addresses (--source-address)"
        }
        Some(FailureKind::ConnectNoDescriptor) => {
            "use fewer connections (-c), or raise the limit of open files (ulimit -n)"
        }
        Some(_) => "see the server's log for why it ends connections before they are of use",
    }
}
