//! nghttpx, the proxy of nghttp2, as a child process: HTTP/2 in front, HTTP/1.1 behind.

use std::net::SocketAddr;
use std::process::Command;

use super::certificates::Identity;
use super::foreign::{free_address, program, start_accepting};
use super::process::Process;

/// An nghttpx of the test's own.
#[derive(Debug)]
pub(crate) struct Nghttpx {
    /// Where it speaks HTTP/2 and HTTP/1.1 over TLS.
    secure: SocketAddr,
    /// Where it speaks both in clear text.
    clear: SocketAddr,
    _process: Process,
}

impl Nghttpx {
    /// Starts one before a server at `behind`, with the certificate that `issue` gives.
    pub(crate) fn start(
        behind: SocketAddr,
        issue: impl FnOnce(SocketAddr) -> Identity,
        options: &[&str],
    ) -> Self {
        let (secure, clear) = (free_address(), free_address());
        let identity = issue(secure);
        let place = |address: SocketAddr| format!("{},{}", address.ip(), address.port());
        let mut command = Command::new(program("nghttpx"));
        command
            .args([
                "--conf=/dev/null",
                "--single-process",
                "--no-ocsp",
                "-LERROR",
            ])
            .arg(format!("--frontend={}", place(secure)))
            .arg(format!("--frontend={};no-tls", place(clear)))
            .arg(format!("--backend={}", place(behind)))
            .args(options)
            .arg(&identity.key)
            .arg(&identity.certificate);
        Self {
            secure,
            clear,
            _process: start_accepting(command, secure),
        }
    }

    /// The URL of `path` over TLS.
    pub(crate) fn url_secure(&self, path: &str) -> String {
        format!("https://{}{path}", self.secure)
    }

    /// The URL of `path` in clear text.
    pub(crate) fn url_clear(&self, path: &str) -> String {
        format!("http://{}{path}", self.clear)
    }
}
