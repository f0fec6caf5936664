//! nginx as a child process, with a configuration of its own in a temporary directory.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;

use tempfile::TempDir;

use super::certificates::Identity;
use super::foreign::{body, free_address, program, start_accepting};
use super::process::Process;
use super::{http, wait_for};

/// Replies after which the location `/replaced/` closes a connection.
pub(crate) const KEEPALIVE_REQUESTS: u64 = 100;

/// Bytes of the body of `/large`.
pub(crate) const LARGE_BYTES: u64 = 1 << 20;

/// A further server of an nginx, on an address of its own.
#[derive(Clone, Debug)]
pub(crate) struct Site {
    pub(crate) address: SocketAddr,
    /// Whether it speaks HTTP/2: in clear text alone, over TLS beside HTTP/1.1.
    pub(crate) http2: bool,
    /// Certificate and key with which the site speaks TLS; absent: clear text.
    pub(crate) identity: Option<Identity>,
    /// Versions of TLS, by nginx's names. Older ones of nginx do not speak TLS 1.3 unless asked to.
    pub(crate) versions: &'static str,
    /// Further lines of its configuration.
    pub(crate) lines: String,
}

/// An nginx of the test's own.
#[derive(Debug)]
pub(crate) struct Nginx {
    address: SocketAddr,
    /// Requests for the status, which nginx counts like all others.
    status_requests: u64,
    process: Process,
    directory: TempDir,
}

impl Site {
    /// A site in clear text.
    pub(crate) fn clear(http2: bool) -> Self {
        Self {
            address: free_address(),
            http2,
            identity: None,
            versions: "TLSv1.2 TLSv1.3",
            lines: String::new(),
        }
    }

    /// A site over TLS, with the certificate that `issue` gives for its address.
    pub(crate) fn secure(http2: bool, issue: impl FnOnce(SocketAddr) -> Identity) -> Self {
        let site = Self::clear(http2);
        let identity = Some(issue(site.address));
        Self { identity, ..site }
    }

    /// This site with further lines of configuration.
    pub(crate) fn with(self, lines: &str) -> Self {
        let lines = lines.to_owned();
        Self { lines, ..self }
    }

    /// The URL of `path`.
    pub(crate) fn url(&self, path: &str) -> String {
        let scheme = match self.identity {
            Some(_) => "https",
            None => "http",
        };
        format!("{scheme}://{}{path}", self.address)
    }

    fn configuration(&self, http2_has_line: bool) -> String {
        let (word, line) = match (self.http2, http2_has_line) {
            (false, _) => ("", ""),
            (true, false) => (" http2", ""),
            (true, true) => ("", "http2 on;"),
        };
        let address = self.address;
        let (lines, versions) = (&self.lines, self.versions);
        let Some(identity) = &self.identity else {
            return format!(
                "server {{ listen {address}{word} backlog=4096; {line} root .; {lines} }}"
            );
        };
        let (certificate, key) = (identity.certificate.display(), identity.key.display());
        format!(
            "server {{
                listen {address} ssl{word} backlog=4096;
                {line}
                root .;
                ssl_certificate {certificate};
                ssl_certificate_key {key};
                ssl_protocols {versions};
                {lines}
            }}"
        )
    }
}

impl Nginx {
    /// Starts one on an address of its own.
    pub(crate) fn start() -> Self {
        Self::start_sites(&[])
    }

    /// Starts one on an address of its own, with further sites. It counts the requests of all of
    /// them together. Bodies of 100 bytes and of 1 MiB are there, as `/100.html` and `/large`.
    pub(crate) fn start_sites(sites: &[Site]) -> Self {
        let program = program("nginx");
        let directory = tempfile::tempdir().expect("a temporary directory");
        let address = free_address();
        let write = |name: &str, text: &str| {
            std::fs::write(directory.path().join(name), text).expect("the directory is ours");
        };
        write("100.html", &body());
        write("large", &"x".repeat(LARGE_BYTES as usize));
        write(
            "nginx.conf",
            &configuration(address, sites, http2_has_line(&program)),
        );
        let mut command = Command::new(program);
        command
            .arg("-p")
            .arg(directory.path())
            .args(["-c", "nginx.conf", "-e", "stderr"]);
        Self {
            address,
            status_requests: 0,
            process: start_accepting(command, address),
            directory,
        }
    }

    /// How many requests to its sites were logged with this version, such as `HTTP/2.0`.
    pub(crate) fn logged(&self, version: &str) -> u64 {
        self.logged_requests()
            .filter(|(spoken, _)| spoken == version)
            .count() as u64
    }

    /// How many requests to its sites were logged with each path and query.
    pub(crate) fn logged_by_path(&self) -> BTreeMap<String, u64> {
        let mut paths = BTreeMap::new();
        for (_, path) in self.logged_requests() {
            *paths.entry(path).or_default() += 1;
        }
        paths
    }

    /// Version, and path with query, of each request to its sites.
    fn logged_requests(&self) -> impl Iterator<Item = (String, String)> {
        let log = std::fs::read_to_string(self.directory.path().join("access.log"));
        let log = log.expect("nginx opened it");
        let lines: Vec<(String, String)> = log
            .lines()
            .filter_map(|line| line.split_once(' '))
            .map(|(version, path)| (version.to_owned(), path.to_owned()))
            .collect();
        lines.into_iter()
    }

    /// The address that speaks HTTP/1.1 in clear text.
    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// The URL of a 100-byte file.
    pub(crate) fn url(&self) -> String {
        format!("http://{}/100.html", self.address)
    }

    /// The URL of its status, which is itself among the requests that it counts.
    pub(crate) fn url_status(&self) -> String {
        format!("http://{}/status", self.address)
    }

    /// The process id of nginx.
    pub(crate) fn id(&self) -> u32 {
        self.process.id()
    }

    /// The URL of the 100-byte file, where nginx closes connections after `KEEPALIVE_REQUESTS`.
    pub(crate) fn url_replaced(&self) -> String {
        format!("http://{}/replaced/100.html", self.address)
    }

    /// Requests received until now, those for the status left out.
    pub(crate) fn requests(&mut self) -> u64 {
        self.status().1
    }

    /// Requests received when it has seen the end of every connection but the one that asks, those
    /// for the status left out.
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

/// Whether HTTP/2 has a line of its own, from version 1.25.1 on, or is a word of `listen`.
fn http2_has_line(program: &Path) -> bool {
    let printed = Command::new(program).arg("-v").output();
    let printed = String::from_utf8(printed.expect("nginx runs").stderr).expect("ASCII");
    // nginx version: nginx/1.22.1 (some distribution)
    let version = printed.split_whitespace().nth(2);
    let version = version.and_then(|word| word.strip_prefix("nginx/"));
    let numbers: Vec<u32> = version
        .unwrap_or_else(|| panic!("no version of nginx: {printed}"))
        .split('.')
        .map_while(|number| number.parse().ok())
        .collect();
    numbers >= vec![1, 25, 1]
}

fn configuration(address: SocketAddr, sites: &[Site], http2_has_line: bool) -> String {
    let sites: String = sites
        .iter()
        .map(|site| site.configuration(http2_has_line))
        .collect();
    format!(
        "daemon off;
        master_process off;
        worker_processes 1;
        pid nginx.pid;
        error_log stderr crit;
        events {{ worker_connections 4096; }}
        http {{
            log_format version '$server_protocol $request_uri';
            access_log access.log version;
            client_body_temp_path client_body;
            proxy_temp_path proxy;
            fastcgi_temp_path fastcgi;
            uwsgi_temp_path uwsgi;
            scgi_temp_path scgi;
            keepalive_requests 100000000;
            server {{
                listen {address} backlog=4096;
                access_log off;
                root .;
                location /replaced/ {{
                    alias ./;
                    keepalive_requests {KEEPALIVE_REQUESTS};
                }}
                location = /status {{ stub_status; }}
            }}
            {sites}
        }}"
    )
}
