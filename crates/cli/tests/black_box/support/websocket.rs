//! Echo servers of others as child processes: Python's `websockets` and Node's `ws`.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;

use super::foreign::{free_address, start_accepting};
use super::process::Process;
use super::wait_for;

/// Bytes of a message that takes several reads.
const LONG_BYTES: usize = 100_000;

/// What runs a server, and the server: it gets host, port and the file that it writes its count of
/// messages to whenever a client leaves.
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
    text: r#"
import asyncio, sys, websockets

count = 0

async def echo(connection, path=None):
    global count
    try:
        async for message in connection:
            count += 1
            await connection.send(message)
    except websockets.ConnectionClosed:
        pass
    with open(sys.argv[3], "w") as file:
        file.write(str(count))

async def main():
    async with websockets.serve(echo, sys.argv[1], int(sys.argv[2]), compression=None):
        await asyncio.Future()

asyncio.run(main())
"#,
};

/// `node-ws` of Debian.
pub(crate) const NODE: Program = Program {
    interpreter: "/usr/bin/node",
    library: "/usr/share/nodejs/ws",
    name: "server.js",
    text: r#"
const fs = require("fs");
const { WebSocketServer } = require("/usr/share/nodejs/ws");

let count = 0;
const [host, port, file] = process.argv.slice(2);
new WebSocketServer({ host, port: Number(port) }).on("connection", (socket) => {
    socket.on("message", (data, isBinary) => {
        count += 1;
        socket.send(data, { binary: isBinary });
    });
    socket.on("error", () => {});
    socket.on("close", () => fs.writeFileSync(file, String(count)));
});
"#,
};

/// One of the test's own.
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

    /// Its URL.
    pub(crate) fn url(&self) -> String {
        format!("ws://{}/", self.address)
    }

    /// A file with a message that takes several reads.
    pub(crate) fn long_message(&self) -> PathBuf {
        self.directory.path().join("long")
    }

    /// Waits until it has counted so many messages, and fails when it counts more.
    pub(crate) fn wait_until_counted(&self, messages: u64) {
        let counted = || {
            let text = std::fs::read_to_string(self.directory.path().join("count"));
            text.ok()?.parse::<u64>().ok()
        };
        wait_for("the server counts its messages", || {
            counted().filter(|count| *count >= messages)
        });
        assert_eq!(counted(), Some(messages));
    }
}
