//! From ab's options to a plan of brunt's.

use std::io;
use std::num::NonZeroU64;

use brunt_load::{
    ClientIdentity, HttpChoice, Plan, RequestSet, Reuse, Scheme, Stop, Target, TlsSpec, TlsVersion,
};

use super::options::Options;
use crate::Ending;
use crate::ending::strerror;
use crate::libraries::at_least_1;
use crate::libraries::{SUITES, SUITES_OF_1_3, iana_suite};
use crate::request::{basic, only_request};

const SECOND_NS: u64 = 1_000_000_000;
/// ab begins at once.
const SETUP_TIMEOUT_NS: u64 = 10 * SECOND_NS;

/// Replies that `-v` prints, at most.
const REPLIES_PRINTED_MAX: u32 = 10_000;

const AGENT: &str = "ApacheBench/2.3";
/// Words for many suites at once.
const GROUPS: [&str; 12] = [
    "ALL",
    "DEFAULT",
    "HIGH",
    "ECDHE",
    "EECDH",
    "kECDHE",
    "kEECDH",
    "AES",
    "AESGCM",
    "TLSv1.2",
    "aRSA",
    "COMPLEMENTOFDEFAULT",
];

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
            Some((host, port)) => (host, *port),
            None => (&self.url.host, self.url.port),
        }
    }

    /// How the program ends when the file of the body cannot be read.
    pub fn unread(&self, error: &io::Error) -> Ending {
        let path = self.body.iter().map(|path| path.display().to_string());
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
        let only = only_request(&request);
        let only = only.map_err(|error| Ending::error(&format!("brunt: {error}"), 1))?;
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
        let mut plan = Plan::bare(target, RequestSet::one(only));
        plan.connections = at_least_1(self.concurrency.into());
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

    /// The name that is asked for in the handshake.
    pub(super) fn server_name(&self) -> Option<&str> {
        let is_address = self.url.host.parse::<std::net::IpAddr>().is_ok();
        (!is_address && !self.no_server_name).then_some(&self.url.host)
    }

    /// How TLS is spoken.
    ///
    /// # Errors
    ///
    /// Versions or cipher suites that brunt does not have.
    fn tls(&self) -> Result<TlsSpec, Ending> {
        let (version_min, version_max) = self.versions()?;
        let identity = self.identity.as_ref().map(|file| ClientIdentity {
            certificate: file.clone().into(),
            key: file.clone().into(),
        });
        Ok(TlsSpec {
            insecure: true,
            asks_by_name: !self.no_server_name,
            identity,
            version_min,
            version_max,
            cipher_suites: self.suites(version_max)?,
            ..TlsSpec::default()
        })
    }

    fn versions(&self) -> Result<(TlsVersion, TlsVersion), Ending> {
        use TlsVersion::{Tls12, Tls13};
        // What ab does not know it takes as all.
        match self.tls_protocol.as_deref().map(str::to_ascii_uppercase) {
            Some(name) if name == "TLS1.2" => Ok((Tls12, Tls12)),
            Some(name) if name == "TLS1.3" => Ok((Tls13, Tls13)),
            Some(name) if name == "TLS1" || name == "TLS1.1" || name == "SSL3" => {
                let line = format!(
                    "brunt: -f {name}: brunt speaks TLS 1.2 and 1.3, since RFC 8996 has retired \
                     what is older; give -f TLS1.2"
                );
                Err(Ending::error(&line, 1))
            }
            _ => Ok((Tls12, Tls13)),
        }
    }

    /// The suites of `-Z`, in its order; empty for all.
    fn suites(&self, newest: TlsVersion) -> Result<Vec<String>, Ending> {
        let Some(typed) = &self.cipher_suites else {
            return Ok(Vec::new());
        };
        let words = || typed.split([':', ',', ' ']);
        let mut suites: Vec<&str> = Vec::new();
        for word in words() {
            let is_many = GROUPS.contains(&word);
            let meant = SUITES.into_iter().filter(|&suite| is_many || suite == word);
            suites.extend(
                meant
                    .filter(|suite| !suites.contains(suite))
                    .collect::<Vec<_>>(),
            );
        }
        for without in words().filter_map(|word| word.strip_prefix(['!', '-'])) {
            suites.retain(|suite| *suite != without);
        }
        if suites.is_empty() {
            let line = format!(
                "brunt: -Z {typed}: brunt has none of these for TLS 1.2; give some of {}",
                SUITES.join(":")
            );
            return Err(Ending::error(&line, 1));
        }
        let of_1_3 = SUITES_OF_1_3.into_iter().map(str::to_owned);
        let of_1_3 = of_1_3.filter(|_| newest == TlsVersion::Tls13);
        Ok(of_1_3.chain(suites.into_iter().map(iana_suite)).collect())
    }
}

/// The bytes of each request: of a run with this body, which is sent where the options name a file.
fn request(options: &Options, body: &[u8]) -> Vec<u8> {
    let target = match &options.proxy {
        Some(_) => &options.url.typed,
        None => &options.url.path,
    };
    let mut head = format!("{} {target} HTTP/1.0\r\n", options.method());
    let mut line = |name: &str, value: &str| {
        head.push_str(name);
        head.push_str(": ");
        head.push_str(value);
        head.push_str("\r\n");
    };
    if options.keep_alive {
        line("Connection", "Keep-Alive");
    }
    if let Some(cookie) = &options.cookie {
        line("Cookie", cookie);
    }
    for (field, user) in &options.users {
        line(field, &basic(user));
    }
    if options.body.is_some() {
        line("Content-length", &body.len().to_string());
        line("Content-type", &options.content_type);
    }
    for typed in &options.headers {
        head.push_str(typed);
        head.push_str("\r\n");
    }
    let is_typed = |name: &str| {
        let mut typed = options.headers.iter();
        typed.any(|typed| {
            let start = typed.get(..name.len());
            start.is_some_and(|start| start.eq_ignore_ascii_case(name))
        })
    };
    for (name, value) in [
        ("Host:", options.url.authority.as_str()),
        ("User-Agent:", AGENT),
        ("Accept:", "*/*"),
    ] {
        if !is_typed(name) {
            head.push_str(&format!("{name} {value}\r\n"));
        }
    }
    head.push_str("\r\n");
    let mut request = head.into_bytes();
    if options.body.is_some() {
        request.extend_from_slice(body);
    }
    request
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::getopt::tests::words;

    fn spec(line: &str) -> Result<TlsSpec, Ending> {
        let words = words(line);
        Options::parse("ab", &words).expect(line).tls()
    }

    #[test]
    fn versions_and_suites_are_taken_as_openssl_names_them() {
        use TlsVersion::{Tls12, Tls13};
        for (line, versions, suites) in [
            ("https://h/", (Tls12, Tls13), 0),
            ("-f TLS1.2 https://h/", (Tls12, Tls12), 0),
            ("-f tls1.3 https://h/", (Tls13, Tls13), 0),
            ("-f ALL https://h/", (Tls12, Tls13), 0),
            ("-f SSL2 https://h/", (Tls12, Tls13), 0),
            (
                "-f TLS1.2 -Z ECDHE-RSA-AES128-GCM-SHA256:AES128-SHA https://h/",
                (Tls12, Tls12),
                1,
            ),
            (
                "-Z HIGH:!ECDHE-RSA-AES128-GCM-SHA256 https://h/",
                (Tls12, Tls13),
                8,
            ),
        ] {
            let spec = spec(line).expect(line);
            assert_eq!((spec.version_min, spec.version_max), versions, "{line}");
            assert_eq!(spec.cipher_suites.len(), suites, "{line}");
            assert!(spec.insecure && spec.asks_by_name);
        }
        let spec = spec("-I -E f.pem https://h/").expect("good");
        assert!(!spec.asks_by_name);
        let identity = spec.identity.expect("given");
        assert_eq!(identity.key, "f.pem".into());
    }

    #[test]
    fn what_brunt_does_not_have_is_said() {
        for (line, words) in [
            (
                "-f TLS1.1 https://h/",
                "brunt: -f TLS1.1: brunt speaks TLS 1.2",
            ),
            (
                "-Z AES128-SHA https://h/",
                "brunt: -Z AES128-SHA: brunt has none",
            ),
        ] {
            let ending = spec(line).expect_err(line);
            assert!(ending.stderr.starts_with(words), "{ending:?}");
        }
    }
}
