//! Echo servers of others as child processes: Python's `websockets` and Node's `ws`.

use std::net::SocketAddr;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;
use tempfile::TempDir;

use super::foreign::{free_address, start_accepting};
use super::process::Process;
use super::wait_for;

/// Bytes of a message that takes several reads.
const LONG_BYTES: usize = 100_000;

/// What runs a server, and the server: it gets host, port and the file that it writes its counts to
/// whenever a client leaves: of messages, and of the codes of Close frames.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Program {
    interpreter: &'static str,
    library: &'static str,
    name: &'static str,
    text: &'static str,
}

/// `python3-websockets` of Debian.
pub(crate) const PYTHON: Program = Program {
    interpreter: "/usr/bin/python3",
    library: "/usr/lib/python3/dist-packages/websockets",
    name: "server.py",
    text: include_str!("websocket_server.py"),
};

/// `node-ws` of Debian.
pub(crate) const NODE: Program = Program {
    interpreter: "/usr/bin/node",
    library: "/usr/share/nodejs/ws",
    name: "server.js",
    text: include_str!("websocket_server.js"),
};

/// A WebSocket server of the test's own.
#[derive(Debug)]
pub(crate) struct WebSocketServer {
    address: SocketAddr,
    _process: Process,
    directory: TempDir,
}

impl WebSocketServer {
    /// Starts one.
    pub(crate) fn start(program: &Program) -> Self {
        for path in [program.interpreter, program.library] {
            assert!(
                Path::new(path).exists(),
                "{path} is missing; `cargo xtask servers` installs it, or says how"
            );
        }
        let address = free_address();
        let directory = tempfile::tempdir().expect("a temporary directory");
        let script = directory.path().join(program.name);
        std::fs::write(&script, program.text).expect("the directory is ours");
        let long = directory.path().join("long");
        std::fs::write(long, [b'x'; LONG_BYTES]).expect("the directory is ours");
        let mut command = Command::new(program.interpreter);
        command
            .arg(script)
            .arg(address.ip().to_string())
            .arg(address.port().to_string())
            .arg(directory.path().join("count"));
        Self {
            address,
            _process: start_accepting(command, address),
            directory,
        }
    }

    /// The URL of the server.
    pub(crate) fn url(&self) -> String {
        format!("ws://{}/", self.address)
    }

    /// A file with a message that takes several reads.
    pub(crate) fn long_message(&self) -> PathBuf {
        self.directory.path().join("long")
    }

    /// Waits until so many messages have come and clients left, and expects that there are no more,
    /// and that all left in the ordinary way, but for those that were still being opened.
    pub(crate) fn expect(&self, messages: u64, clients: RangeInclusive<u64>) {
        let counted = || -> Option<(u64, u64, u64)> {
            let text = std::fs::read_to_string(self.directory.path().join("count"));
            let counts: Value = serde_json::from_str(&text.ok()?).ok()?;
            let codes = counts["codes"].as_object()?;
            let left = codes.values().filter_map(Value::as_u64).sum();
            let well = codes.get("1000").and_then(Value::as_u64).unwrap_or(0);
            Some((counts["count"].as_u64()?, left, well))
        };
        let (count, left, well) = wait_for("the server's clients leave", || {
            counted().filter(|&(count, left, _)| count >= messages && left >= *clients.start())
        });
        assert_eq!(count, messages);
        let opening_most = clients.end() - clients.start();
        assert!(left - well <= opening_most, "{well} of {left}");
        assert!(clients.contains(&left), "{left} of {clients:?}");
    }
}
