//! nghttpd, the HTTP/2 server of nghttp2, as a child process. It tells of every frame.

use std::net::SocketAddr;
use std::process::Command;

use rustix::process::Signal;
use tempfile::TempDir;

use super::certificates::Identity;
use super::foreign::{body, free_address, program, start_accepting};
use super::process::Process;

/// An nghttpd of the test's own, for one run.
#[derive(Debug)]
pub(crate) struct Nghttpd {
    address: SocketAddr,
    is_secure: bool,
    process: Process,
    _directory: TempDir,
}

/// What an nghttpd saw and did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Frames {
    pub(crate) requests: u64,
    /// Heads and trailers of replies.
    pub(crate) heads: u64,
}

impl Nghttpd {
    /// Starts one in clear text.
    pub(crate) fn start(options: &[&str]) -> Self {
        Self::start_at(free_address(), None, options)
    }

    /// Starts one with TLS, and the certificate that `issue` gives for its address.
    pub(crate) fn start_secure(
        issue: impl FnOnce(SocketAddr) -> Identity,
        options: &[&str],
    ) -> Self {
        let address = free_address();
        Self::start_at(address, Some(issue(address)), options)
    }

    fn start_at(address: SocketAddr, identity: Option<Identity>, options: &[&str]) -> Self {
        let directory = tempfile::tempdir().expect("a temporary directory");
        std::fs::write(directory.path().join("100.html"), body()).expect("it is ours");
        let mut command = Command::new(program("nghttpd"));
        command
            .arg("-v")
            .args(options)
            .arg("-d")
            .arg(directory.path());
        command.args(["-a", &address.ip().to_string()]);
        match &identity {
            Some(identity) => {
                command.arg(address.port().to_string());
                command.arg(&identity.key).arg(&identity.certificate)
            }
            None => command.arg("--no-tls").arg(address.port().to_string()),
        };
        Self {
            address,
            is_secure: identity.is_some(),
            process: start_accepting(command, address),
            _directory: directory,
        }
    }

    /// The URL of a 100-byte file.
    pub(crate) fn url(&self) -> String {
        let scheme = if self.is_secure { "https" } else { "http" };
        format!("{scheme}://{}/100.html", self.address)
    }

    /// Ends it, and counts what it told.
    pub(crate) fn end(self) -> Frames {
        self.process.signal(Signal::TERM);
        let printed = self.process.wait().stdout;
        let count =
            |words: &str| printed.lines().filter(|line| line.contains(words)).count() as u64;
        Frames {
            requests: count("recv HEADERS frame"),
            heads: count("send HEADERS frame"),
        }
    }
}
