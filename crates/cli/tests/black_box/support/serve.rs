//! `brunt serve` as a child process.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use brunt_server::{Counters, TcpCounters};

use super::process::{Process, binary, first_lines, with_hangup};
use super::stored::Stored;
use super::{http, wait_for};

/// Attempts to start a server where another was killed, and the pause between them.
const STARTS_MAX: u32 = 50;
const START_PAUSE: Duration = Duration::from_millis(100);
/// The file of a server's certificate.
const CERTIFICATE: &str = "certificate.pem";

/// A reference server of the test's own.
#[derive(Debug)]
pub(crate) struct Serve {
    address: SocketAddr,
    /// The certificate that it made for itself, where it speaks TLS.
    certificate: Option<Stored>,
    process: Process,
}

/// A reference server that serves raw TCP, too.
#[derive(Debug)]
pub(crate) struct ServeTcp {
    /// It speaks HTTP, and has the counters.
    pub(crate) server: Serve,
    /// Where it serves raw TCP.
    pub(crate) address: SocketAddr,
}

/// A reference server on a Unix socket.
#[derive(Debug)]
pub(crate) struct ServeUnix {
    pub(crate) socket: PathBuf,
    _process: Process,
}

impl Serve {
    /// Starts one that has a free port of loopback.
    pub(crate) fn start() -> Self {
        Self::start_with(&[])
    }

    /// Starts one that has a free port of loopback, with further `options`.
    pub(crate) fn start_with(options: &[&str]) -> Self {
        let (process, address) = listening_at("", options);
        Self {
            address,
            certificate: None,
            process,
        }
    }

    /// Starts one over TLS, with a certificate that it makes for itself, and further `options`.
    pub(crate) fn start_secure(options: &[&str]) -> Self {
        let files = Stored::new();
        let secure = ["--tls", "--cert-out", &files.path(CERTIFICATE)];
        let (process, address) = listening_at("https://", &[&secure, options].concat());
        Self {
            address,
            certificate: Some(files),
            process,
        }
    }

    /// Starts one that speaks HTTP/3, and so TLS, with a certificate that nobody is shown.
    pub(crate) fn start_http3() -> (Process, SocketAddr) {
        listening_at("https://", &["--http3"])
    }

    /// Starts one and gives the process and its address, for a test of the process itself.
    pub(crate) fn start_alone() -> (Process, SocketAddr) {
        listening_at("", &[])
    }

    /// The URL of `path`.
    pub(crate) fn url(&self, path: &str) -> String {
        let scheme = match self.certificate {
            Some(_) => "https",
            None => "http",
        };
        format!("{scheme}://{}{path}", self.address)
    }

    /// Where it listens, as in a URL.
    pub(crate) fn address(&self) -> String {
        self.address.to_string()
    }

    /// The file of its certificate.
    pub(crate) fn certificate(&self) -> PathBuf {
        let files = self.certificate.as_ref().expect("a server over TLS");
        files.place(CERTIFICATE)
    }

    /// Kills it (SIGKILL) and gives where it listened.
    pub(crate) fn kill(self) -> SocketAddr {
        self.process.kill();
        self.address
    }

    /// Starts one at `address`, where another was killed. The kernel may take a while to close the
    /// sockets of that one's ring.
    pub(crate) fn start_again(address: SocketAddr) -> Self {
        for _ in 0..STARTS_MAX {
            let (process, [line]) = listening(&["--listen", &address.to_string()]);
            if line.contains(&address.to_string()) {
                return Self {
                    address,
                    certificate: None,
                    process,
                };
            }
            std::thread::sleep(START_PAUSE);
        }
        panic!("no server starts at {address} any more");
    }

    /// The most memory that it has had.
    pub(crate) fn peak_bytes(&self) -> u64 {
        let path = format!("/proc/{}/status", self.id());
        let status = std::fs::read_to_string(path).expect("it runs");
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let kib = line.and_then(|line| line.trim().strip_suffix(" kB"));
        kib.and_then(|kib| kib.parse::<u64>().ok()).expect("a size") * 1024
    }

    /// The process id of the server.
    pub(crate) fn id(&self) -> u32 {
        self.process.id()
    }

    /// The body of the reply to a GET of `path`.
    pub(crate) fn get(&self, path: &str) -> String {
        match &self.certificate {
            Some(_) => http::get_secure(self.address, &self.certificate(), path),
            None => http::get(self.address, path),
        }
    }

    /// What the server has counted until now.
    pub(crate) fn counters(&self) -> Counters {
        parse(&self.get("/counters"))
    }

    /// What the server has counted when it has seen the end of every connection but the one that
    /// asks.
    pub(crate) fn settled(&self) -> Counters {
        wait_for("the server sees its clients leave", || {
            Some(self.counters()).filter(|counters| counters.connections_live == 1)
        })
    }

    /// Waits until it has received at least `requests`.
    pub(crate) fn wait_for_requests(&self, requests: u64) {
        wait_for("load begins", || {
            (self.counters().requests >= requests).then_some(())
        });
    }
}

impl ServeTcp {
    /// Starts one with this `--tcp` and further `options`.
    pub(crate) fn start(service: &str, options: &[&str]) -> Self {
        let any = "127.0.0.1:0";
        let own = ["--listen", any, "--tcp-listen", any, "--tcp", service];
        let (process, [http, raw]) = listening(&[&own, options].concat());
        let address = |line: &str, start: &str| {
            let rest = line.strip_prefix(start)?;
            let address = rest.trim_start_matches("https://").split(' ').next()?;
            address.parse().ok()
        };
        let found = address(&http, "listening on ").zip(address(&raw, "raw TCP on "));
        let Some((http, address)) = found else {
            panic!("`brunt serve` says {http:?} {raw:?}; {}", process.kill());
        };
        let server = Serve {
            address: http,
            certificate: None,
            process,
        };
        Self { server, address }
    }

    /// Starts one over TLS, with a certificate that it makes for itself.
    pub(crate) fn start_secure(service: &str) -> Self {
        let files = Stored::new();
        let mut secure = Self::start(service, &["--tls", "--cert-out", &files.path(CERTIFICATE)]);
        secure.server.certificate = Some(files);
        secure
    }

    /// The file of its certificate.
    pub(crate) fn certificate(&self) -> PathBuf {
        self.server.certificate()
    }

    /// What was received and sent over raw TCP until now.
    pub(crate) fn counters(&self) -> TcpCounters {
        self.server.counters().tcp.expect("raw TCP is served")
    }

    /// What was received and sent over raw TCP when all of its connections are closed.
    pub(crate) fn settled(&self) -> TcpCounters {
        wait_for("the server sees its clients leave", || {
            Some(self.counters()).filter(|counters| counters.connections_live == 0)
        })
    }
}

impl ServeUnix {
    /// Starts one on `socket`, which must not exist.
    pub(crate) fn start(socket: &Path) -> Self {
        let path = socket.to_str().expect("a path in UTF-8");
        let (process, [line]) = listening(&["--unix-socket", path]);
        assert!(line.contains(path), "`brunt serve` says {line:?}");
        Self {
            socket: socket.to_owned(),
            _process: process,
        }
    }

    /// The server's counters, as [`Serve::settled`].
    pub(crate) fn settled(&self) -> Counters {
        wait_for("the server sees its clients leave", || {
            let counters = parse(&http::get_unix(&self.socket, "/counters"));
            Some(counters).filter(|counters| counters.connections_live == 1)
        })
    }
}

/// Starts a server on a free port of loopback and gives its address, which it prints behind
/// `scheme`.
fn listening_at(scheme: &str, options: &[&str]) -> (Process, SocketAddr) {
    let arguments = [&["--listen", "127.0.0.1:0"], options].concat();
    let (process, [line]) = listening(&arguments);
    let address = line
        .strip_prefix("listening on ")
        .and_then(|rest| rest.strip_prefix(scheme))
        .and_then(|rest| rest.split(' ').next())
        .and_then(|address| address.parse().ok());
    let Some(address) = address else {
        panic!("`brunt serve` says {line:?}; {}", process.kill());
    };
    (process, address)
}

/// Starts a server, and gives the first lines that it prints.
fn listening<const N: usize>(arguments: &[&str]) -> (Process, [String; N]) {
    let mut command = binary();
    command.arg("serve").args(["-t", "1"]).args(arguments);
    let (process, stdout) = Process::start_open(with_hangup(&command));
    (process, first_lines(stdout))
}

fn parse(json: &str) -> Counters {
    serde_json::from_str(json).unwrap_or_else(|error| panic!("{error}: {json}"))
}
