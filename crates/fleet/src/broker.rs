//! The way to a broker: where it is, who we are there, and what is not done in the open.

use std::net::IpAddr;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use async_nats::connection::State;
use async_nats::{Client, ConnectErrorKind, ConnectOptions, Event, ServerAddr};
use brunt_io::clock;
use thiserror::Error;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tokio::time::{sleep, timeout};

use crate::chunks::CHUNK_BYTES_MAX;

/// Longest wait for a broker that does not take connections yet.
const CONNECT_NS: u64 = 10_000_000_000;
/// From one attempt to connect to the next.
const RETRY: Duration = Duration::from_millis(250);
/// From one ping of NATS to the next: a broker that is gone is noticed after two.
const PING: Duration = Duration::from_secs(2);
/// Longest wait for room for a message: what is lost is said again.
const SEND: Duration = Duration::from_millis(100);
/// Longest wait for the last messages to leave.
const FLUSH: Duration = Duration::from_millis(200);
/// Messages that wait to be read: what comes beyond them is lost, and said again.
const WAITING_MAX: usize = 4_096;
/// What a message has beside a chunk, at most.
const ENVELOPE_BYTES: usize = 1_024;

/// Why there is no way to a broker.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum BrokerError {
    /// Its URL is none.
    #[error("`{0}` is not a URL of a NATS server; give nats://HOST:PORT or tls://HOST:PORT")]
    Url(String),
    /// What is typed is seen by all users of the machine.
    #[error("leave user and password out of the broker's URL; --nats-credentials names a file")]
    SecretInUrl,
    /// Whoever can speak to the broker could have agents make load.
    #[error(
        "the broker at {host} is not on this machine: it needs tls:// and --nats-credentials or a \
         client certificate; --nats-insecure allows it without"
    )]
    Open {
        /// Where it is.
        host: String,
    },
    /// Nobody there, or it does not want us.
    #[error("cannot connect to the broker at {url}: {reason}")]
    Connect {
        /// As given.
        url: String,
        /// In the library's words.
        reason: String,
    },
    /// It does not let us say or hear what we must.
    #[error("the broker refuses: {0}; see docs/fleet.md for the permissions that are needed")]
    Permission(String),
    /// The system refuses a thread or a descriptor.
    #[error("cannot speak to a broker: {0}")]
    System(String),
}

/// Why a text holds no credentials.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("credentials of a broker are USER:PASSWORD on one line")]
pub struct CredentialsError;

/// A user of a broker.
#[derive(Clone, PartialEq, Eq)]
pub struct Credentials {
    user: String,
    password: String,
}

impl std::fmt::Debug for Credentials {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Credentials").finish_non_exhaustive()
    }
}

impl FromStr for Credentials {
    type Err = CredentialsError;

    fn from_str(text: &str) -> Result<Self, CredentialsError> {
        let (user, password) = text.trim_end().split_once(':').ok_or(CredentialsError)?;
        let is_whole = !user.is_empty() && !password.is_empty() && !text.trim_end().contains('\n');
        match is_whole {
            true => Ok(Self {
                user: user.to_owned(),
                password: password.to_owned(),
            }),
            false => Err(CredentialsError),
        }
    }
}

/// Where a broker is, and who we are there.
#[derive(Clone, Debug, Default)]
pub struct Broker {
    /// nats://HOST:PORT or tls://HOST:PORT.
    pub url: String,
    /// The user.
    pub credentials: Option<Credentials>,
    /// PEM file with roots to trust in place of the system's.
    pub roots: Option<PathBuf>,
    /// PEM files with a certificate of ours and its key.
    pub identity: Option<(PathBuf, PathBuf)>,
    /// A broker elsewhere may be spoken to in clear text and without credentials.
    pub allows_open: bool,
}

/// A connection to a broker.
#[derive(Debug)]
pub(crate) struct Connected {
    pub(crate) client: Client,
    /// What the broker refuses, in its words.
    pub(crate) refusals: UnboundedReceiver<String>,
}

impl Broker {
    /// Whether it may be spoken to as it is given.
    ///
    /// # Errors
    ///
    /// It may not.
    pub fn check(&self) -> Result<(), BrokerError> {
        let address: ServerAddr = self.url.parse().map_err(|_| self.no_url())?;
        if !["nats", "tls"].contains(&address.scheme()) {
            return Err(self.no_url());
        }
        if address.has_user_pass() {
            return Err(BrokerError::SecretInUrl);
        }
        let host = address.host().trim_start_matches('[').trim_end_matches(']');
        if host.is_empty() {
            return Err(self.no_url());
        }
        let is_here = host == "localhost"
            || host
                .parse()
                .is_ok_and(|address: IpAddr| address.is_loopback());
        let is_known = self.credentials.is_some() || self.identity.is_some();
        match is_here || self.allows_open || (address.tls_required() && is_known) {
            true => Ok(()),
            false => Err(BrokerError::Open {
                host: host.to_owned(),
            }),
        }
    }

    /// Where to connect. In clear text a name of this machine is not looked up: what it resolves to
    /// may be elsewhere.
    fn servers(&self) -> Result<Vec<ServerAddr>, BrokerError> {
        let address: ServerAddr = self.url.parse().map_err(|_| self.no_url())?;
        if address.host() != "localhost" || address.tls_required() {
            return Ok(vec![address]);
        }
        let port = address.port();
        let here = ["127.0.0.1", "[::1]"].map(|host| format!("nats://{host}:{port}").parse());
        let here: Result<Vec<ServerAddr>, _> = here.into_iter().collect();
        here.map_err(|_| self.no_url())
    }

    fn no_url(&self) -> BrokerError {
        BrokerError::Url(self.url.clone())
    }

    /// Connects, and waits a while for a broker that is not there yet: no longer than `limit_ns`.
    pub(crate) async fn connect(
        &self,
        name: &str,
        limit_ns: Option<u64>,
    ) -> Result<Connected, BrokerError> {
        self.check()?;
        let limit_ns = limit_ns.map_or(CONNECT_NS, |limit_ns| limit_ns.min(CONNECT_NS));
        let limit = Duration::from_nanos(limit_ns);
        let connected = timeout(limit, self.connect_at_last(name, limit_ns)).await;
        connected.unwrap_or_else(|_| {
            Err(BrokerError::Connect {
                url: self.url.clone(),
                reason: format!("it does not answer within {} s", limit_ns as f64 / 1e9),
            })
        })
    }

    async fn connect_at_last(&self, name: &str, limit_ns: u64) -> Result<Connected, BrokerError> {
        let servers = self.servers()?;
        let (refused, refusals) = unbounded_channel();
        let began_ns = clock::now_ns();
        loop {
            let refused = refused.clone();
            let mut options = ConnectOptions::new()
                .name(name)
                .ping_interval(PING)
                .subscription_capacity(WAITING_MAX)
                // A broker may name others: they are none that we were told to trust.
                .ignore_discovered_servers()
                .require_tls(servers.iter().any(ServerAddr::tls_required))
                .reconnect_delay_callback(|_| RETRY)
                .event_callback(move |event| {
                    let refused = refused.clone();
                    async move {
                        if let Event::ServerError(error) = event {
                            let error = error.to_string();
                            if error.to_ascii_lowercase().contains("permissions") {
                                // Nobody may listen any more.
                                let _ = refused.send(error);
                            }
                        }
                    }
                });
            if let Some(Credentials { user, password }) = &self.credentials {
                options = options.user_and_password(user.clone(), password.clone());
            }
            if let Some(roots) = &self.roots {
                options = options.add_root_certificates(roots.clone());
            }
            if let Some((certificate, key)) = &self.identity {
                options = options.add_client_certificate(certificate.clone(), key.clone());
            }
            let error = match options.connect(servers.as_slice()).await {
                Ok(client) => return Ok(Connected { client, refusals }),
                Err(error) => error,
            };
            let may_come = matches!(
                error.kind(),
                ConnectErrorKind::Io | ConnectErrorKind::TimedOut | ConnectErrorKind::Dns
            );
            if !may_come || clock::now_ns().saturating_sub(began_ns) > limit_ns {
                return Err(BrokerError::Connect {
                    url: self.url.clone(),
                    reason: error.to_string(),
                });
            }
            sleep(RETRY).await;
        }
    }
}

impl Connected {
    /// Sends a message; where there is no way, it is lost, and said again by those who need it.
    pub(crate) async fn send(&self, subject: String, bytes: Vec<u8>) {
        if self.is_up() {
            let _ = timeout(SEND, self.client.publish(subject, bytes.into())).await;
        }
    }

    /// Whether there is a connection now.
    pub(crate) fn is_up(&self) -> bool {
        self.client.connection_state() == State::Connected
    }

    /// Waits for the last messages to leave.
    pub(crate) async fn flush(&self) {
        let _ = timeout(FLUSH, self.client.flush()).await;
    }

    /// Bytes of a chunk that fits into a message, in Base64.
    pub(crate) fn chunk_bytes(&self) -> usize {
        let payload = self.client.max_payload().saturating_sub(ENVELOPE_BYTES);
        (payload / 4 * 3).clamp(1, CHUNK_BYTES_MAX)
    }
}

/// What a thread that speaks to a broker runs on: no thread beside it, but for names that are
/// resolved.
pub(crate) fn runtime() -> Result<Runtime, BrokerError> {
    let runtime = Builder::new_current_thread().enable_all().build();
    runtime.map_err(|error| BrokerError::System(error.to_string()))
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead, BufReader, Write};
    use std::net::TcpListener;

    use brunt_io::threads;

    use super::*;

    #[test]
    fn a_broker_elsewhere_is_spoken_to_in_secret() {
        let credentials: Credentials = "me:it\n".parse().expect("credentials");
        for (url, is_known, may) in [
            ("nats://127.0.0.1:4222", false, true),
            ("127.0.0.1:4222", false, true),
            ("nats://localhost:4222", false, true),
            ("nats://[::1]:4222", false, true),
            ("nats://10.0.0.1:4222", true, false),
            ("tls://10.0.0.1:4222", false, false),
            ("tls://broker.example:4222", true, true),
            ("nats://localhost.example:4222", true, false),
        ] {
            let broker = Broker {
                url: url.to_owned(),
                credentials: is_known.then(|| credentials.clone()),
                ..Broker::default()
            };
            assert_eq!(broker.check().is_ok(), may, "{url}: {:?}", broker.check());
            let open = Broker {
                allows_open: true,
                ..broker
            };
            assert_eq!(open.check(), Ok(()), "{url}");
        }
    }

    #[test]
    fn a_name_of_this_machine_leads_nowhere_else() {
        for (url, hosts) in [
            ("nats://localhost:7", &["127.0.0.1", "::1"][..]),
            ("localhost:7", &["127.0.0.1", "::1"]),
            ("tls://localhost:7", &["localhost"]),
            ("nats://127.0.0.1:7", &["127.0.0.1"]),
        ] {
            let broker = Broker {
                url: url.to_owned(),
                ..Broker::default()
            };
            let servers = broker.servers().expect("a URL");
            let found: Vec<&str> = servers.iter().map(ServerAddr::host).collect();
            assert_eq!(found, hosts, "{url}");
            assert!(servers.iter().all(|server| server.port() == 7));
        }
    }

    #[test]
    fn brokers_that_a_broker_names_are_not_spoken_to() {
        let [trusted, other] = [(); 2].map(|()| TcpListener::bind("127.0.0.1:0").expect("free"));
        other.set_nonblocking(true).expect("ours");
        let place = |listener: &TcpListener| listener.local_addr().expect("bound");
        let (url, named) = (format!("nats://{}", place(&trusted)), place(&other));
        let broker = Broker {
            url,
            credentials: Some("me:it".parse().expect("credentials")),
            ..Broker::default()
        };
        // It greets once, names another one, and then turns away whoever comes.
        let turned_away = threads::spawn("broker", move || {
            let (mut stream, _) = trusted.accept().expect("ours");
            let info = format!(
                "INFO {{\"server_id\":\"a\",\"version\":\"2.10.0\",\"max_payload\":1048576,\
                 \"connect_urls\":[\"{named}\"]}}\r\n"
            );
            stream.write_all(info.as_bytes()).expect("it listens");
            let mut said = BufReader::new(stream.try_clone().expect("a descriptor"));
            let mut line = String::new();
            while !line.starts_with("PING") {
                line.clear();
                said.read_line(&mut line).expect("it speaks");
            }
            stream.write_all(b"PONG\r\n").expect("it listens");
            drop((stream, said));
            for _ in 0..4 {
                drop(trusted.accept().expect("ours"));
            }
        });
        let turned_away = turned_away.expect("a thread");
        let runtime = runtime().expect("one");
        runtime.block_on(async {
            let connected = broker.connect("test", None).await.expect("it greets");
            while !turned_away.is_finished() {
                sleep(Duration::from_millis(5)).await;
            }
            drop(connected);
        });
        turned_away.join().expect("no panic");
        let accepted = other.accept().map(|(_, from)| from);
        assert!(accepted.is_err(), "{accepted:?}");
    }

    #[test]
    fn what_is_no_broker_is_refused() {
        let check = |url: &str| {
            let url = url.to_owned();
            let broker = Broker {
                url,
                ..Broker::default()
            };
            broker.check().expect_err("it is none")
        };
        for wrong in ["http://127.0.0.1", "ws://127.0.0.1", "nats://"] {
            assert!(matches!(check(wrong), BrokerError::Url(_)), "{wrong}");
        }
        assert_eq!(check("nats://me:it@127.0.0.1"), BrokerError::SecretInUrl);
        for wrong in ["", "me", ":it", "me:", "me:it\nmore"] {
            assert!(wrong.parse::<Credentials>().is_err(), "{wrong}");
        }
        let shown = format!("{:?}", "me:hush".parse::<Credentials>());
        assert!(!shown.contains("hush"));
    }
}
