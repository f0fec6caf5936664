//! From weighttp's options to a plan of brunt's.

use std::io;
use std::net::ToSocketAddrs;
use std::num::NonZeroU64;

use brunt_load::{Plan, Reuse, Scheme, Target};

use super::options::{Proxy, WeighttpOptions, wrong};
use crate::Ending;
use crate::ending::strerror;
use crate::libraries::{SECOND_NS, at_least_1};
use crate::request::{self, basic, only_request};

impl WeighttpOptions {
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
        let mut lines = vec![format!("{} {path} HTTP/1.1", self.method())];
        let has = |name| self.header(name).is_some();
        let host = self.header("host:");
        let authority = self.authority();
        lines.push(host.map_or_else(|| format!("Host: {authority}"), str::to_owned));
        lines.extend((!self.keep_alive).then(|| "Connection: close".to_owned()));
        let body = self.body.as_ref().map(|_| body);
        if let Some(body) = body {
            if !has("transfer-encoding:") && !has("content-length:") {
                lines.push(format!("Content-Length: {}", body.len()));
            }
            let usual = (!has("content-type:")).then_some("text/plain");
            let kind = self.content_type.as_deref().or(usual);
            lines.extend(kind.map(|kind| format!("Content-Type: {kind}")));
        }
        let others = self
            .headers
            .iter()
            .filter(|line| Some(line.as_str()) != host);
        lines.extend(others.cloned());
        for (name, user) in [
            ("Authorization", &self.user),
            ("Proxy-Authorization", &self.proxy_user),
        ] {
            lines.extend(user.iter().map(|user| format!("{name}: {}", basic(user))));
        }
        lines.extend((!has("user-agent:")).then(|| "User-Agent: weighttp/0.5".to_owned()));
        lines.extend(
            self.cookies
                .iter()
                .map(|cookie| format!("Cookie: {cookie}")),
        );
        request::text(&lines, body.unwrap_or_default())
    }

    /// The server as it is named in `Host`.
    fn authority(&self) -> String {
        match self.port {
            80 => self.host.clone(),
            port => format!("{}:{port}", self.host),
        }
    }

    /// The plan that does what the command line asks for, with this body.
    ///
    /// # Errors
    ///
    /// There is no such load.
    pub fn plan(&self, body: &[u8]) -> Result<Plan, Ending> {
        let only = only_request(&self.request(body));
        let only = only.map_err(|reason| self.error(&reason.to_string()))?;
        let mut plan = request::plan(self.target()?, only);
        plan.load.connections = at_least_1(self.clients);
        plan.workers.count = at_least_1(self.threads);
        plan.traffic.pipeline = at_least_1(self.pipeline);
        if !self.keep_alive {
            plan.traffic.reuse = Reuse::Requests(NonZeroU64::MIN);
        }
        plan.load.stop.duration_ns = self.limit_s.map(|s| s.saturating_mul(SECOND_NS));
        plan.load.stop.requests = Some(self.requests);
        plan.observation.logged_requests_max = self.requests;
        plan.limits.timeout_ns = self.cutoff_s.max(1).saturating_mul(SECOND_NS);
        plan.load.drain_limit_ns = plan.limits.timeout_ns;
        for typed in &self.sources {
            let message = format!("could not resolve local bind address: {typed}");
            let address = typed.parse().map_err(|_| self.error(&message))?;
            plan.connection.source_addresses.push(address);
        }
        Ok(plan)
    }

    /// Where connections go.
    fn target(&self) -> Result<Target, Ending> {
        let path = if self.path.is_empty() {
            "/"
        } else {
            &self.path
        };
        let target = Target {
            host: self.host.clone(),
            port: self.port,
            ..request::target(Scheme::Http, &self.authority(), path)
        };
        let (host, port) = match &self.proxy {
            Some(Proxy::Socket(path)) => {
                let unix_socket = Some(path.clone());
                return Ok(Target {
                    unix_socket,
                    ..target
                });
            }
            Some(Proxy::Host(host, port)) => (host, *port),
            None => (&self.host, self.port),
        };
        let host = host.trim_start_matches('[').trim_end_matches(']');
        // Of all addresses, the first of the kind that was asked for.
        let mut addresses = (host, port).to_socket_addrs().into_iter().flatten();
        let address = addresses.find(|address| address.is_ipv6() == self.is_ipv6);
        let wrong = || self.error(&format!("could not resolve hostname: {host}"));
        let host = address.ok_or_else(wrong)?.ip().to_string();
        Ok(Target {
            host,
            port,
            ..target
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::weighttp::Form;

    fn options(words: &[&str]) -> WeighttpOptions {
        let words: Vec<String> = words.iter().map(|&word| word.to_owned()).collect();
        WeighttpOptions::parse(Form::Json, &words).expect("good")
    }

    #[test]
    fn the_plan_is_what_the_options_say() {
        let words = ["-n9", "-c4", "-t2", "-K3", "-a", "5", "127.0.0.1:81/"];
        let plan = options(&words).plan(b"").expect("good");
        assert_eq!(
            (
                plan.load.connections.get(),
                plan.workers.count.get(),
                plan.traffic.pipeline.get()
            ),
            (4, 2, 3)
        );
        assert_eq!(plan.load.stop.requests, Some(9));
        assert_eq!(plan.load.stop.duration_ns, Some(5 * SECOND_NS));
        assert_eq!(
            (plan.traffic.reuse, plan.observation.logged_requests_max),
            (Reuse::Unlimited, 9)
        );
        assert_eq!((&*plan.target.host, plan.target.port), ("127.0.0.1", 81));
        let plan = options(&["-n1", "-X", "/run/s", "h/"])
            .plan(b"")
            .expect("good");
        assert_eq!(plan.target.unix_socket, Some("/run/s".into()));
        assert_eq!(plan.traffic.reuse, Reuse::Requests(NonZeroU64::MIN));
    }
}
