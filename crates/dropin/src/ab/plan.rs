//! From ab's options to a plan of brunt's.

use std::io;
use std::num::NonZeroU64;

use brunt_engine::verbatim_requests;
use brunt_load::{HttpChoice, Placement, Plan, RequestSet, Reuse, Scheme, Stop, Target, TlsSpec};

use super::options::Options;
use super::request::request;
use crate::Ending;
use crate::ending::strerror;

const SECOND_NS: u64 = 1_000_000_000;
/// ab begins at once.
const SETUP_TIMEOUT_NS: u64 = 10 * SECOND_NS;

/// Replies that `-v` prints, at most.
const REPLIES_PRINTED_MAX: u32 = 10_000;

/// A plan with what is sent over and over.
#[derive(Clone, Debug)]
pub struct Planned {
    /// The plan.
    pub plan: Plan,
    /// The bytes of each request.
    pub request: Vec<u8>,
}

impl Options {
    /// Host and port that connections go to.
    pub(super) fn server(&self) -> (&str, u16) {
        match &self.proxy {
            Some(proxy) => (&proxy.host, proxy.port),
            None => (&self.url.host, self.url.port),
        }
    }

    /// How the program ends when the file of the body cannot be read.
    pub fn unread(&self, error: &io::Error) -> Ending {
        let path = self.body.iter().map(|file| file.path.display().to_string());
        let path: String = path.collect();
        let reason = strerror(error);
        let line = if error.kind() == io::ErrorKind::IsADirectory {
            format!("ab: Could not read POST data file: {reason}")
        } else {
            format!("ab: Could not open POST data file ({path}): {reason}")
        };
        Ending::error(&line, 1)
    }

    /// The plan that does what the command line asks for, with this body.
    ///
    /// # Errors
    ///
    /// There is no such load.
    pub fn plan(&self, body: &[u8]) -> Result<Planned, Ending> {
        let request = request(self, body);
        let requests = verbatim_requests(&request);
        let requests = requests.map_err(|error| Ending::error(&format!("brunt: {error}"), 1))?;
        let [only] = &requests[..] else {
            return Err(Ending::error(
                "brunt: a header line holds another request",
                1,
            ));
        };
        let (host, port) = self.server();
        let scheme = if self.url.is_secure {
            Scheme::Https
        } else {
            Scheme::Http
        };
        let url = &self.url;
        let target = Target {
            url: format!("{}://{}{}", scheme.name(), url.authority, url.path),
            scheme,
            host: host.to_owned(),
            port,
            authority: url.authority.clone(),
            path: url.path.clone(),
            unix_socket: None,
        };
        let mut plan = Plan::new(target, RequestSet::one(only.clone()));
        plan.connections = self.concurrency;
        plan.placement = Placement::Given;
        plan.oversubscribe = true;
        plan.spoken = HttpChoice::HTTP1.into();
        plan.tls = TlsSpec {
            // ab shakes hands with a proxy, too, for the host of the URL.
            server_name: (plan.target.host != url.host).then(|| url.host.clone()),
            ..self.tls()?
        };
        if !self.keep_alive {
            plan.reuse = Reuse::Requests(NonZeroU64::MIN);
        }
        plan.stop = Stop {
            duration_ns: self.time_limit_s.map(|s| u64::from(s) * SECOND_NS),
            requests: Some(self.requests.into()),
        };
        plan.logged_requests_max = self.requests.into();
        plan.logged_responses_max = if self.prints_replies() {
            REPLIES_PRINTED_MAX
        } else {
            1
        };
        plan.warmup_ns = 0;
        plan.halves_warmup = false;
        plan.sends_again = false;
        plan.timeout_ns = u64::from(self.timeout_s.max(1)) * SECOND_NS;
        plan.drain_limit_ns = plan.timeout_ns;
        plan.setup_timeout_ns = Some(SETUP_TIMEOUT_NS);
        if let Some(source) = &self.source {
            let address = source.parse().map_err(|_| {
                let line = format!("brunt: -B takes an address, and `{source}` is none");
                Ending::error(&line, 1)
            })?;
            plan.source_addresses = vec![address];
        }
        Ok(Planned { plan, request })
    }
}
