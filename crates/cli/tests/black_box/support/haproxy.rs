//! haproxy as a child process: TLS, HTTP/2 and HTTP/1.1 in front, and replies of its own.

use std::io::{Read, Write};
use std::net::SocketAddr;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;

use super::certificates::Identity;
use super::foreign::{body, free_address, program, start_accepting};
use super::process::Process;
use super::{PATIENCE, wait_for};

/// A haproxy of the test's own.
#[derive(Debug)]
pub(crate) struct Haproxy {
    address: SocketAddr,
    /// Where it answers questions.
    socket: PathBuf,
    _process: Process,
    _directory: TempDir,
}

impl Haproxy {
    /// Starts one with the certificate that `issue` gives for its address.
    pub(crate) fn start(issue: impl FnOnce(SocketAddr) -> Identity) -> Self {
        Self::start_limited(issue, "")
    }

    /// Starts one that has further limits of time in its defaults, one a line.
    pub(crate) fn start_limited(issue: impl FnOnce(SocketAddr) -> Identity, limits: &str) -> Self {
        let address = free_address();
        let directory = tempfile::tempdir().expect("a temporary directory");
        let file = directory.path().join("haproxy.cfg");
        let socket = directory.path().join("status");
        let text = configuration(address, &socket, &issue(address), limits);
        std::fs::write(&file, text).expect("the directory is ours");
        let mut command = Command::new(program("haproxy"));
        command.args(["-db", "-q", "-f"]).arg(file);
        Self {
            address,
            socket,
            _process: start_accepting(command, address),
            _directory: directory,
        }
    }

    /// The URL that is loaded.
    pub(crate) fn url(&self) -> String {
        format!("https://{}/", self.address)
    }

    /// Replies sent, when it has seen the end of every connection. Connections without a request
    /// are among the requests that it counts, but not among these.
    pub(crate) fn settled(&self) -> u64 {
        let [replies] = self.counted(["hrsp_2xx"]);
        replies
    }

    /// These figures, when it has seen the end of every connection.
    pub(crate) fn counted<const N: usize>(&self, names: [&str; N]) -> [u64; N] {
        wait_for("haproxy sees its clients leave", || {
            let table = self.table();
            let of = |name: &str| figure(&table, name);
            (of("scur") == 0).then(|| names.map(of))
        })
    }

    /// The figures of haproxy, as comma-separated values.
    fn table(&self) -> String {
        // It gets its name after haproxy has begun to accept.
        let mut stream = wait_for("haproxy's socket is there", || {
            UnixStream::connect(&self.socket).ok()
        });
        let bound = stream.set_read_timeout(Some(PATIENCE));
        bound.expect("it is not zero");
        stream.write_all(b"show stat\n").expect("haproxy reads");
        let mut table = String::new();
        stream.read_to_string(&mut table).expect("ASCII");
        table
    }
}

/// A figure of the frontend that is loaded, from the table of all.
fn figure(table: &str, name: &str) -> u64 {
    let mut lines = table.lines().map(|line| line.split(','));
    let mut names = lines.next().expect("a head");
    let column = names.position(|column| column == name);
    let row = lines.find(|row| row.clone().take(2).eq(["loaded", "FRONTEND"]));
    let figure = row
        .zip(column)
        .and_then(|(mut row, column)| row.nth(column));
    let number = figure.and_then(|figure| figure.parse().ok());
    number.unwrap_or_else(|| panic!("no {name}: {table}"))
}

fn configuration(address: SocketAddr, socket: &Path, identity: &Identity, limits: &str) -> String {
    format!(
        "global
    maxconn 4096
    stats socket {socket}
defaults
    mode http
    timeout client 60s
    timeout connect 60s
    timeout server 60s
{limits}
frontend loaded
    bind {address} ssl crt {both} alpn h2,http/1.1
    http-request return status 200 content-type text/plain string \"{body}\"
",
        socket = socket.display(),
        both = identity.both.display(),
        body = body().trim_end(),
    )
}
