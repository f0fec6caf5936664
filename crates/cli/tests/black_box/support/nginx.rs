//! nginx as a child process, with a configuration of its own in a temporary directory.

use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::Command;
use std::sync::atomic::{AtomicU8, Ordering};

use tempfile::TempDir;

use super::process::Process;
use super::{http, wait_for};

/// Where nginx may be beside the search path, which often lacks these.
const DIRECTORIES: [&str; 2] = ["/usr/sbin", "/usr/local/sbin"];

/// Replies after which the location `/replaced/` closes a connection.
pub(crate) const KEEPALIVE_REQUESTS: u64 = 100;

/// An nginx of the test's own.
#[derive(Debug)]
pub(crate) struct Nginx {
    address: SocketAddr,
    /// Requests for the status, which nginx counts like all others.
    status_requests: u64,
    process: Process,
    _directory: TempDir,
}

impl Nginx {
    /// Starts one on an address of its own.
    pub(crate) fn start() -> Self {
        let program = program();
        let directory = tempfile::tempdir().expect("a temporary directory");
        let address = free_address();
        let body = "x".repeat(99) + "\n";
        let write = |name: &str, text: &str| {
            std::fs::write(directory.path().join(name), text).expect("the directory is ours");
        };
        write("100.html", &body);
        write("nginx.conf", &configuration(address));
        let mut command = Command::new(program);
        command
            .arg("-p")
            .arg(directory.path())
            .args(["-c", "nginx.conf", "-e", "stderr"]);
        let mut process = Some(Process::start(command));
        wait_for("nginx accepts", || {
            if process.as_mut().is_some_and(|nginx| !nginx.is_running())
                && let Some(ended) = process.take()
            {
                panic!("nginx ended at once: {}", ended.wait().stderr);
            }
            TcpStream::connect(address).ok()
        });
        Self {
            address,
            status_requests: 0,
            process: process.expect("it is running"),
            _directory: directory,
        }
    }

    /// The URL of a 100-byte file.
    pub(crate) fn url(&self) -> String {
        format!("http://{}/100.html", self.address)
    }

    /// The URL of its status, which is itself among the requests that it counts.
    pub(crate) fn url_status(&self) -> String {
        format!("http://{}/status", self.address)
    }

    /// Its process id.
    pub(crate) fn id(&self) -> u32 {
        self.process.id()
    }

    /// The URL of the same file, where connections are closed after `KEEPALIVE_REQUESTS`.
    pub(crate) fn url_replaced(&self) -> String {
        format!("http://{}/replaced/100.html", self.address)
    }

    /// Requests received until now, those for the status left out.
    pub(crate) fn requests(&mut self) -> u64 {
        self.status().1
    }

    /// The same when it has seen the end of every connection but the one that asks.
    pub(crate) fn settled(&mut self) -> u64 {
        wait_for("nginx sees its clients leave", || {
            let (active, requests) = self.status();
            (active == 1).then_some(requests)
        })
    }

    /// Waits until it has received at least `requests`.
    pub(crate) fn wait_for_requests(&mut self, requests: u64) {
        wait_for("load begins", || {
            (self.requests() >= requests).then_some(())
        });
    }

    /// Active connections, and requests without those for the status.
    fn status(&mut self) -> (u64, u64) {
        let status = http::get(self.address, "/status");
        self.status_requests += 1;
        let numbers: Vec<u64> = status
            .split_whitespace()
            .filter_map(|word| word.parse().ok())
            .collect();
        // Active; accepted, handled, requests; reading, writing, waiting.
        assert_eq!(numbers.len(), 7, "{status}");
        (numbers[0], numbers[3] - self.status_requests)
    }
}

fn program() -> PathBuf {
    let search_path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&search_path)
        .chain(DIRECTORIES.map(PathBuf::from))
        .map(|directory| directory.join("nginx"))
        .find(|path| path.is_file())
        .expect("nginx is not installed; `cargo xtask servers` installs it, or says how")
}

/// An address of loopback that no other test uses, with a free port. Clients connect from
/// 127.0.0.x, so that none of theirs can take the port before nginx does.
fn free_address() -> SocketAddr {
    static NEXT: AtomicU8 = AtomicU8::new(1);
    let [_, _, high, low] = std::process::id().to_be_bytes();
    let own = Ipv4Addr::new(
        127,
        64 | (high & 63),
        low,
        NEXT.fetch_add(1, Ordering::Relaxed),
    );
    let listener = TcpListener::bind((own, 0)).expect("a free port");
    listener.local_addr().expect("it is bound")
}

fn configuration(address: SocketAddr) -> String {
    format!(
        "daemon off;
        master_process off;
        worker_processes 1;
        pid nginx.pid;
        error_log stderr crit;
        events {{ worker_connections 4096; }}
        http {{
            access_log off;
            client_body_temp_path client_body;
            proxy_temp_path proxy;
            fastcgi_temp_path fastcgi;
            uwsgi_temp_path uwsgi;
            scgi_temp_path scgi;
            keepalive_requests 100000000;
            server {{
                listen {address} backlog=4096;
                root .;
                location /replaced/ {{
                    alias ./;
                    keepalive_requests {KEEPALIVE_REQUESTS};
                }}
                location = /status {{ stub_status; }}
            }}
        }}"
    )
}
