//! From ab's options to a plan of brunt's.

use std::io;
use std::num::NonZeroU64;

use brunt_load::{ClientIdentity, Plan, Reuse, Scheme, Target, TlsSpec, TlsVersion};

use super::options::AbOptions;
use crate::Ending;
use crate::ending::strerror;
use crate::libraries::{SECOND_NS, SUITES, SUITES_OF_1_3, at_least_1, iana_suite};
use crate::request::{self, basic, line_of, only_request};

/// Replies that `-v` prints, at most.
const REPLIES_PRINTED_MAX: u32 = 10_000;

const AGENT: &str = "ApacheBench/2.3";
/// Words for many suites at once.
const GROUPS: &str = "ALL DEFAULT HIGH ECDHE EECDH kECDHE kEECDH AES AESGCM TLSv1.2 aRSA \
                      COMPLEMENTOFDEFAULT";

/// A plan with what is sent over and over.
#[derive(Clone, Debug)]
pub struct Planned {
    /// The plan.
    pub plan: Plan,
    /// The bytes of each request.
    pub request: Vec<u8>,
}

impl AbOptions {
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
        let request = self.request(body);
        let only = only_request(&request).map_err(Ending::of_brunt)?;
        let (host, port) = self.server();
        let url = &self.url;
        let scheme = if url.is_secure {
            Scheme::Https
        } else {
            Scheme::Http
        };
        let target = Target {
            host: host.to_owned(),
            port,
            ..request::target(scheme, &url.authority, &url.path)
        };
        let mut plan = request::plan(target, only);
        plan.load.connections = at_least_1(self.concurrency.into());
        plan.connection.tls = TlsSpec {
            // ab shakes hands with a proxy, too, for the host of the URL.
            server_name: (plan.target.host != url.host).then(|| url.host.clone()),
            ..self.tls()?
        };
        if !self.keep_alive {
            plan.traffic.reuse = Reuse::Requests(NonZeroU64::MIN);
        }
        plan.load.stop.duration_ns = self.time_limit_s.map(|s| u64::from(s) * SECOND_NS);
        plan.load.stop.requests = Some(self.requests.into());
        plan.observation.logged_requests_max = self.requests.into();
        plan.observation.logged_responses_max = if self.prints_replies() {
            REPLIES_PRINTED_MAX
        } else {
            1
        };
        plan.limits.timeout_ns = u64::from(self.timeout_s.max(1)) * SECOND_NS;
        plan.load.drain_limit_ns = plan.limits.timeout_ns;
        if let Some(source) = &self.source {
            let wrong =
                |_| Ending::of_brunt(format!("-B takes an address, and `{source}` is none"));
            plan.connection
                .source_addresses
                .push(source.parse().map_err(wrong)?);
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
                Err(Ending::of_brunt(format!(
                    "-f {name}: brunt speaks TLS 1.2 and 1.3, since RFC 8996 has retired what is \
                     older; give -f TLS1.2"
                )))
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
            let is_meant =
                |suite: &str| GROUPS.split(' ').any(|group| group == word) || suite == word;
            let is_new = |suite: &&str| is_meant(suite) && !suites.contains(suite);
            suites.extend(SUITES.into_iter().filter(is_new).collect::<Vec<_>>());
        }
        for without in words().filter_map(|word| word.strip_prefix(['!', '-'])) {
            suites.retain(|suite| *suite != without);
        }
        if suites.is_empty() {
            return Err(Ending::of_brunt(format!(
                "-Z {typed}: brunt has none of these for TLS 1.2; give some of {}",
                SUITES.join(":")
            )));
        }
        let of_1_3 = SUITES_OF_1_3.into_iter().map(str::to_owned);
        let of_1_3 = of_1_3.filter(|_| newest == TlsVersion::Tls13);
        Ok(of_1_3.chain(suites.into_iter().map(iana_suite)).collect())
    }

    /// The bytes of each request: of a run with this body, which is sent where the options name a
    /// file.
    fn request(&self, body: &[u8]) -> Vec<u8> {
        let path = match &self.proxy {
            Some(_) => &self.url.typed,
            None => &self.url.path,
        };
        let mut lines = vec![format!("{} {path} HTTP/1.0", self.method())];
        lines.extend(self.keep_alive.then(|| "Connection: Keep-Alive".to_owned()));
        lines.extend(self.cookie.iter().map(|cookie| format!("Cookie: {cookie}")));
        let users = self.users.iter();
        lines.extend(users.map(|(field, user)| format!("{field}: {}", basic(user))));
        let body = self.body.as_ref().map(|_| body);
        if let Some(body) = body {
            lines.push(format!("Content-length: {}", body.len()));
            lines.push(format!("Content-type: {}", self.content_type));
        }
        lines.extend_from_slice(&self.headers);
        for (name, value) in [
            ("Host:", self.url.authority.as_str()),
            ("User-Agent:", AGENT),
            ("Accept:", "*/*"),
        ] {
            if line_of(&self.headers, name).is_none() {
                lines.push(format!("{name} {value}"));
            }
        }
        request::text(&lines, body.unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::getopt::tests::words;

    fn spec(line: &str) -> Result<TlsSpec, Ending> {
        let words = words(line);
        AbOptions::parse("ab", &words).expect(line).tls()
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
