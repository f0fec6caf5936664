//! redis-server as a child process, which counts the commands that it takes.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;

use super::PATIENCE;
use super::foreign::{free_address, program, start_accepting};
use super::process::Process;

/// A redis-server of the test's own, which stores nothing.
#[derive(Debug)]
pub(crate) struct Redis {
    address: SocketAddr,
    socket: PathBuf,
    _process: Process,
    _directory: TempDir,
}

impl Redis {
    pub(crate) fn start() -> Self {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let socket = directory.path().join("redis.sock");
        let address = free_address();
        let mut command = Command::new(program("redis-server"));
        command
            .args(["--bind", &address.ip().to_string()])
            .args(["--port", &address.port().to_string()])
            .arg("--unixsocket")
            .arg(&socket)
            .arg("--dir")
            .arg(directory.path())
            .args(["--save", "", "--appendonly", "no", "--daemonize", "no"]);
        Self {
            address,
            socket,
            _process: start_accepting(command, address),
            _directory: directory,
        }
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// The Unix socket of the server.
    pub(crate) fn socket(&self) -> &Path {
        &self.socket
    }

    /// How often a command was called, by its own count.
    pub(crate) fn calls(&self, command: &str) -> u64 {
        let text = self.ask("INFO commandstats\r\n");
        let head = format!("cmdstat_{command}:calls=");
        let line = text.lines().find_map(|line| line.strip_prefix(&*head));
        let digits = line.and_then(|line| line.split(',').next());
        digits.map_or(0, |digits| digits.parse().expect("a count"))
    }

    /// Sends a command, and waits for a line of its reply.
    pub(crate) fn tell(&self, command: &str) {
        let mut stream = TcpStream::connect(self.address).expect("redis listens");
        stream.set_read_timeout(Some(PATIENCE)).expect("a limit");
        let command = format!("{command}\r\n");
        stream.write_all(command.as_bytes()).expect("it reads");
        let mut first = [0];
        stream.read_exact(&mut first).expect("a reply");
        assert!(
            b"+:".contains(&first[0]),
            "{command} is answered by an error"
        );
    }

    /// The bulk string that answers a command.
    fn ask(&self, command: &str) -> String {
        let mut stream = TcpStream::connect(self.address).expect("redis listens");
        stream.set_read_timeout(Some(PATIENCE)).expect("a limit");
        stream.write_all(command.as_bytes()).expect("it reads");
        let mut reply = Vec::new();
        let mut part = [0; 4096];
        loop {
            let count = stream.read(&mut part).expect("a reply");
            reply.extend_from_slice(&part[..count]);
            let text = String::from_utf8_lossy(&reply);
            if let Some((head, rest)) = text.split_once("\r\n") {
                let length: usize = head[1..].parse().expect("a bulk string");
                if rest.len() >= length {
                    return rest.to_owned();
                }
            }
        }
    }
}
