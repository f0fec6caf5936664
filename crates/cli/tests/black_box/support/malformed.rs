//! A reference server in the test's own process, whose `/malformed/KIND` break their protocol.

use brunt_server::{ListenAddress, Running, ServeOptions, TlsOptions};
use brunt_testkit::malformed;

/// The server, on a free port of loopback.
#[derive(Debug)]
pub(crate) struct MalformedServer(Running);

impl MalformedServer {
    /// Starts one in clear text.
    pub(crate) fn start() -> Self {
        Self::start_with(|_| {})
    }

    /// Starts one that speaks HTTP/3, too, over TLS.
    pub(crate) fn start_http3() -> Self {
        Self::start_with(|options| {
            options.tls = Some(TlsOptions::default());
            options.http3 = true;
        })
    }

    fn start_with(change: impl FnOnce(&mut ServeOptions)) -> Self {
        malformed::install();
        let mut options = ServeOptions::new(ListenAddress::Tcp(([127, 0, 0, 1], 0).into()));
        change(&mut options);
        Self(brunt_server::start(&options).expect("a server"))
    }

    /// The URL of `path`.
    pub(crate) fn url(&self, path: &str) -> String {
        let scheme = match self.0.certificates() {
            [] => "http",
            _ => "https",
        };
        format!("{scheme}://{}{path}", self.0.address())
    }
}
