//! Caddy as a child process, with TLS and a certificate from files.

use std::net::SocketAddr;
use std::process::Command;

use tempfile::TempDir;

use super::certificates::Identity;
use super::foreign::{body, free_address, program, start_accepting};
use super::process::Process;
use super::wait_for;

/// A Caddy of the test's own.
#[derive(Debug)]
pub(crate) struct Caddy {
    address: SocketAddr,
    _process: Process,
    directory: TempDir,
}

impl Caddy {
    /// Starts one with the certificate that `issue` gives for its address.
    pub(crate) fn start(issue: impl FnOnce(SocketAddr) -> Identity) -> Self {
        let address = free_address();
        let directory = tempfile::tempdir().expect("a temporary directory");
        let write = |name: &str, text: &str| {
            std::fs::write(directory.path().join(name), text).expect("the directory is ours");
        };
        write("100.html", &body());
        write("Caddyfile", &configuration(address, &issue(address)));
        let mut command = Command::new(program("caddy"));
        command
            .current_dir(directory.path())
            .env("HOME", directory.path())
            .env_remove("XDG_CONFIG_HOME")
            .env_remove("XDG_DATA_HOME")
            .args(["run", "--adapter", "caddyfile", "--config", "Caddyfile"]);
        Self {
            address,
            _process: start_accepting(command, address),
            directory,
        }
    }

    /// The URL of a 100-byte file.
    pub(crate) fn url(&self) -> String {
        format!("https://{}/100.html", self.address)
    }

    /// Waits until it has logged this many requests, and fails when it logs more.
    pub(crate) fn wait_until_logged(&self, version: &str, requests: u64) {
        wait_for("Caddy logs its requests", || {
            (self.logged(version) >= requests).then_some(())
        });
        assert_eq!(self.logged(version), requests, "{version}");
    }

    /// How many requests it has logged with this version, such as `HTTP/2.0`.
    pub(crate) fn logged(&self, version: &str) -> u64 {
        let log = std::fs::read_to_string(self.directory.path().join("access.log"));
        let words = format!(r#""proto":"{version}""#);
        let log = log.unwrap_or_default();
        log.lines().filter(|line| line.contains(&words)).count() as u64
    }
}

fn configuration(address: SocketAddr, identity: &Identity) -> String {
    let (certificate, key) = (identity.certificate.display(), identity.key.display());
    format!(
        "{{
            admin off
            auto_https disable_redirects
            servers {{
                protocols h1 h2 h3
            }}
        }}
        https://{address} {{
            bind {ip}
            tls {certificate} {key}
            root * .
            file_server
            log {{
                output file access.log {{
                    roll_disabled
                }}
                format json
            }}
        }}
        ",
        ip = address.ip(),
    )
}
