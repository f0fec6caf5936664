//! From weighttp's options to a plan of brunt's.

use std::io;
use std::net::ToSocketAddrs;
use std::num::NonZeroU64;

use brunt_load::{HttpChoice, Plan, RequestSet, Reuse, Scheme, Stop, Target};

use super::options::{Options, Proxy, wrong};
use crate::Ending;
use crate::ending::strerror;
use crate::libraries::at_least_1;
use crate::request::{basic, only_request};

const SECOND_NS: u64 = 1_000_000_000;
/// weighttp begins at once.
const SETUP_TIMEOUT_NS: u64 = 10 * SECOND_NS;

impl Options {
    /// How the program ends when there is no such load: with help, as where the command line is
    /// wrong.
    fn error(&self, message: &str) -> Ending {
        wrong(self.form, self.is_quiet, message)
    }

    /// How the program ends when the file of the body cannot be read.
    pub fn unread(&self, reason: &io::Error) -> Ending {
        let path = self.body.iter().map(|path| path.display().to_string());
        let path: String = path.collect();
        let code = reason.raw_os_error().unwrap_or(0);
        self.error(&format!("open({path}): ({code}) {}", strerror(reason)))
    }

    /// The bytes of each request, with this body.
    fn request(&self, body: &[u8]) -> Vec<u8> {
        let is_proxied = matches!(self.proxy, Some(Proxy::Host(..)));
        let path = match &*self.path {
            _ if is_proxied => &*self.url,
            "" => "/",
            path => path,
        };
        let mut head = format!("{} {path} HTTP/1.1\r\n", self.method());
        let mut line = |line: &str| {
            head.push_str(line);
            head.push_str("\r\n");
        };
        let host = self.header("host:");
        match host {
            Some(typed) => line(typed),
            None if self.port == 80 => line(&format!("Host: {}", self.host)),
            None => line(&format!("Host: {}:{}", self.host, self.port)),
        }
        if !self.keep_alive {
            line("Connection: close");
        }
        if self.body.is_some() {
            let has = |name| self.header(name).is_some();
            if !has("transfer-encoding:") && !has("content-length:") {
                line(&format!("Content-Length: {}", body.len()));
            }
            match &self.content_type {
                Some(typed) => line(&format!("Content-Type: {typed}")),
                None if !has("content-type:") => line("Content-Type: text/plain"),
                None => {}
            }
        }
        for typed in &self.headers {
            if Some(typed.as_str()) != host {
                line(typed);
            }
        }
        for (name, user) in [
            ("Authorization", &self.user),
            ("Proxy-Authorization", &self.proxy_user),
        ] {
            if let Some(user) = user {
                line(&format!("{name}: {}", basic(user)));
            }
        }
        if self.header("user-agent:").is_none() {
            line("User-Agent: weighttp/0.5");
        }
        for cookie in &self.cookies {
            line(&format!("Cookie: {cookie}"));
        }
        line("");
        let mut request = head.into_bytes();
        if self.body.is_some() {
            request.extend_from_slice(body);
        }
        request
    }

    /// The plan that does what the command line asks for, with this body.
    ///
    /// # Errors
    ///
    /// There is no such load.
    pub fn plan(&self, body: &[u8]) -> Result<Plan, Ending> {
        let only = only_request(&self.request(body));
        let only = only.map_err(|reason| self.error(&reason.to_string()))?;
        let mut plan = Plan::bare(self.target()?, RequestSet::one(only));
        plan.connections = at_least_1(self.clients);
        plan.workers = at_least_1(self.threads);
        plan.spoken = HttpChoice::HTTP1.into();
        plan.pipeline = at_least_1(self.pipeline);
        if !self.keep_alive {
            plan.reuse = Reuse::Requests(NonZeroU64::MIN);
        }
        plan.stop = Stop {
            duration_ns: self.limit_s.map(|s| s.saturating_mul(SECOND_NS)),
            requests: Some(self.requests),
        };
        plan.logged_requests_max = self.requests;
        plan.timeout_ns = self.cutoff_s.max(1).saturating_mul(SECOND_NS);
        plan.drain_limit_ns = plan.timeout_ns;
        plan.setup_timeout_ns = Some(SETUP_TIMEOUT_NS);
        for typed in &self.sources {
            let message = format!("could not resolve local bind address: {typed}");
            let address = typed.parse().map_err(|_| self.error(&message))?;
            plan.source_addresses.push(address);
        }
        Ok(plan)
    }

    /// Where connections go.
    fn target(&self) -> Result<Target, Ending> {
        let authority = if self.port == 80 {
            self.host.clone()
        } else {
            format!("{}:{}", self.host, self.port)
        };
        let path = if self.path.is_empty() {
            "/"
        } else {
            &self.path
        };
        let target = |host: String, port| Target {
            url: format!("http://{authority}{path}"),
            scheme: Scheme::Http,
            host,
            port,
            authority: authority.clone(),
            path: path.to_owned(),
            unix_socket: None,
        };
        let (host, port) = match &self.proxy {
            Some(Proxy::Socket(path)) => {
                return Ok(Target {
                    unix_socket: Some(path.clone()),
                    ..target(self.host.clone(), self.port)
                });
            }
            Some(Proxy::Host(host, port)) => (host, *port),
            None => (&self.host, self.port),
        };
        let host = host.trim_start_matches('[').trim_end_matches(']');
        // Of all addresses, the first of the kind that was asked for.
        let mut addresses = (host, port).to_socket_addrs().into_iter().flatten();
        let address = addresses.find(|address| address.is_ipv6() == self.is_ipv6);
        let address =
            address.ok_or_else(|| self.error(&format!("could not resolve hostname: {host}")))?;
        Ok(target(address.ip().to_string(), port))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::weighttp::Form;

    fn options(words: &[&str]) -> Options {
        let words: Vec<String> = words.iter().map(|&word| word.to_owned()).collect();
        Options::parse(Form::Json, &words).expect("good")
    }

    #[test]
    fn the_plan_is_what_the_options_say() {
        let words = ["-n9", "-c4", "-t2", "-K3", "-a", "5", "127.0.0.1:81/"];
        let plan = options(&words).plan(b"").expect("good");
        assert_eq!(
            (
                plan.connections.get(),
                plan.workers.get(),
                plan.pipeline.get()
            ),
            (4, 2, 3)
        );
        assert_eq!(plan.stop.requests, Some(9));
        assert_eq!(plan.stop.duration_ns, Some(5 * SECOND_NS));
        assert_eq!(
            (plan.reuse, plan.logged_requests_max),
            (Reuse::Unlimited, 9)
        );
        assert_eq!((&*plan.target.host, plan.target.port), ("127.0.0.1", 81));
        let plan = options(&["-n1", "-X", "/run/s", "h/"])
            .plan(b"")
            .expect("good");
        assert_eq!(plan.target.unix_socket, Some("/run/s".into()));
        assert_eq!(plan.reuse, Reuse::Requests(NonZeroU64::MIN));
    }
}
