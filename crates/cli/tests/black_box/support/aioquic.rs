//! A server of HTTP/3 on aioquic of PyPI, as a child process.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;

use super::certificates::Identity;
use super::foreign::{free_address, of_pypi};
use super::process::Process;
use super::wait_for;

/// A server of the test's own.
#[derive(Debug)]
pub(crate) struct Aioquic {
    address: SocketAddr,
    _process: Process,
    directory: TempDir,
}

impl Aioquic {
    /// Starts one with the certificate that `issue` gives for its address.
    pub(crate) fn start(issue: impl FnOnce(SocketAddr) -> Identity) -> Self {
        let address = free_address();
        let directory = tempfile::tempdir().expect("a temporary directory");
        let own = Path::new(env!("CARGO_MANIFEST_DIR"));
        let identity = issue(address);
        let mut command = Command::new(of_pypi("aioquic-1.7.2", "python3"));
        command
            .arg(own.join("tests/black_box/support/aioquic_server.py"))
            .args([address.ip().to_string(), address.port().to_string()])
            .args([&identity.certificate, &identity.key])
            .arg(log(&directory));
        let process = Process::start(command);
        wait_for("aioquic is ready", || {
            log(&directory).exists().then_some(())
        });
        Self {
            address,
            _process: process,
            directory,
        }
    }

    /// The URL of `path`.
    pub(crate) fn url(&self, path: &str) -> String {
        format!("https://{}{path}", self.address)
    }

    /// How many requests it has answered: lines of its log that begin with `words`.
    pub(crate) fn answered(&self, words: &str) -> u64 {
        let log = std::fs::read_to_string(log(&self.directory)).unwrap_or_default();
        log.lines().filter(|line| line.starts_with(words)).count() as u64
    }
}

fn log(directory: &TempDir) -> PathBuf {
    directory.path().join("requests.log")
}
