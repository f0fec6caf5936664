//! The way to a broker: where it is, who we are there, and what is not done in the open.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, ToSocketAddrs};
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

use brunt_io::backend::Peer;
use brunt_io::blocking::{Deadline, Link, LinkError};
use brunt_io::tls_config::PageTls;
use brunt_io::{clock, threads};
use brunt_load::{ClientIdentity, PlanFile, Target, TlsSpec};
use serde_json::json;
use thiserror::Error;

use crate::agent::AllowedTarget;
use crate::chunks::CHUNK_BYTES_MAX;
use crate::nats::{ConnectionInput, FromServer, Message};

/// The port of NATS.
const PORT: u16 = 4_222;
/// Longest wait for a broker that does not take connections yet.
const CONNECT_NS: u64 = 10_000_000_000;
/// Longest wait for a connection, and for what is exchanged on it before it is of use.
const OPEN_NS: u64 = 5_000_000_000;
/// From one attempt to connect to the next.
const RETRY_NS: u64 = 250_000_000;
/// How often it is looked whether somebody still wants a connection.
const LOOK: Duration = Duration::from_millis(50);
/// From one ping of NATS to the next: a broker that is gone is noticed after two.
const PING_NS: u64 = 2_000_000_000;
/// A broker that takes nothing for so long is gone.
const SEND_NS: u64 = 900_000_000;
/// Longest wait for the last messages to arrive at the broker.
const FLUSH_NS: u64 = 200_000_000;
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
        /// What is known of that.
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
        if is_whole {
            Ok(Self {
                user: user.to_owned(),
                password: password.to_owned(),
            })
        } else {
            Err(CredentialsError)
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

/// What a URL of a broker says.
struct Place {
    is_secure: bool,
    host: String,
    port: u16,
}

/// Why an attempt to connect failed.
struct Failed {
    reason: String,
    /// Another one would fail, too.
    is_final: bool,
}

impl Failed {
    fn now(reason: impl ToString) -> Self {
        Self {
            reason: reason.to_string(),
            is_final: false,
        }
    }

    fn finally(reason: impl ToString) -> Self {
        Self {
            is_final: true,
            ..Self::now(reason)
        }
    }
}

impl Broker {
    /// Whether it may be spoken to as it is given.
    ///
    /// # Errors
    ///
    /// It may not.
    pub fn check(&self) -> Result<(), BrokerError> {
        let place = self.place()?;
        let is_known = self.credentials.is_some() || self.identity.is_some();
        if place.is_here() || self.allows_open || (place.is_secure && is_known) {
            Ok(())
        } else {
            Err(BrokerError::Open { host: place.host })
        }
    }

    fn place(&self) -> Result<Place, BrokerError> {
        let no_url = || BrokerError::Url(self.url.clone());
        let (scheme, rest) = self.url.split_once("://").unwrap_or(("nats", &self.url));
        let is_secure = match scheme {
            "nats" => false,
            "tls" => true,
            _ => return Err(no_url()),
        };
        if rest.contains('@') {
            return Err(BrokerError::SecretInUrl);
        }
        let rest = rest.strip_suffix('/').unwrap_or(rest);
        let AllowedTarget { host, port } = rest.parse().map_err(|_| no_url())?;
        Ok(Place {
            is_secure,
            host,
            port: port.unwrap_or(PORT),
        })
    }

    /// Connects, hears `subject`, and waits a while for a broker that is not there yet: no longer
    /// than `limit_ns`. Absent: `is_over` said before that nobody wants it.
    pub(crate) fn connect(
        &self,
        name: &'static str,
        subject: String,
        limit_ns: Option<u64>,
        mut is_over: impl FnMut() -> bool,
    ) -> Result<Option<Connected>, BrokerError> {
        self.check()?;
        let limit_ns = limit_ns.map_or(CONNECT_NS, |limit_ns| limit_ns.min(CONNECT_NS));
        let deadline = Deadline::after(limit_ns);
        let mut connected = Connected {
            broker: self.clone(),
            name,
            subject,
            open: None,
            attempt: None,
            retry_ns: 0,
            payload_bytes_max: CHUNK_BYTES_MAX,
            refusal: None,
        };
        let mut last = format!("it does not answer within {} s", limit_ns as f64 / 1e9);
        while connected.open.is_none() {
            let failed = connected.reconnect(LOOK);
            let is_final = failed.as_ref().is_some_and(|failure| failure.is_final);
            last = failed.map_or(last, |failure| failure.reason);
            if is_final || deadline.left().is_err() {
                let (url, reason) = (self.url.clone(), last);
                return Err(BrokerError::Connect { url, reason });
            }
            if is_over() {
                return Ok(None);
            }
        }
        Ok(Some(connected))
    }

    fn tls(&self) -> TlsSpec {
        let identity = self.identity.clone();
        TlsSpec {
            roots: self.roots.clone().map(PlanFile::At),
            identity: identity.map(|(certificate, key)| ClientIdentity {
                certificate: PlanFile::At(certificate),
                key: PlanFile::At(key),
            }),
            ..TlsSpec::default()
        }
    }

    /// Makes a connection that hears `subject`.
    fn open(&self, name: &str, subject: &str) -> Result<Open, Failed> {
        let place = self.place().map_err(Failed::finally)?;
        let mut failed = Failed::now("its name has no address");
        for address in place.addresses().map_err(Failed::now)? {
            match self.open_at(&place, address, name, subject) {
                Ok(open) => return Ok(open),
                Err(reason) => failed = reason,
            }
        }
        Err(failed)
    }

    fn open_at(
        &self,
        place: &Place,
        address: SocketAddr,
        name: &str,
        subject: &str,
    ) -> Result<Open, Failed> {
        let deadline = Deadline::after(OPEN_NS);
        let link = Link::connect(&Peer::Tcp(address), Duration::from_nanos(OPEN_NS));
        let mut open = Open {
            link: link.map_err(Failed::now)?,
            received: ConnectionInput::default(),
            payload_bytes_max: 0,
            ping_due_ns: 0,
            pings: 0,
        };
        let Some(FromServer::Info(info)) = open.next(deadline).map_err(Failed::now)? else {
            return Err(Failed::now("it does not greet as a NATS server does"));
        };
        let is_secure = place.is_secure || info.tls_required;
        if is_secure {
            // What came before is not the server's, as far as anybody can tell.
            if !open.received.is_empty() {
                return Err(Failed::finally("it goes on in clear text"));
            }
            // The host of a page is verified as that of a broker is.
            let page = Target::parse(&place.page(), None).map_err(Failed::finally)?;
            let side = PageTls::new(&self.tls(), &page.host).side(&page);
            let Some(side) = side.map_err(Failed::finally)? else {
                return Err(Failed::finally("there is no way to speak TLS with it"));
            };
            let secured = open.link.secure(&side, deadline);
            secured.map_err(|error| Failed::finally(worded(&error)))?;
        }
        open.payload_bytes_max = info.max_payload;
        let mut asked = json!({
            "verbose": false, "pedantic": false, "tls_required": is_secure, "name": name,
            "lang": "rust", "version": env!("CARGO_PKG_VERSION"), "protocol": 1, "echo": false,
            "headers": false, "no_responders": false,
        });
        if let Some(Credentials { user, password }) = &self.credentials {
            asked["user"] = json!(user);
            asked["pass"] = json!(password);
        }
        let greeting = format!("CONNECT {asked}\r\nPING\r\n");
        open.pings = 1;
        open.send(greeting.as_bytes()).map_err(Failed::now)?;
        while open.pings > 0 {
            match open.next(deadline).map_err(Failed::now)? {
                Some(FromServer::Refused(reason)) => return Err(Failed::finally(reason)),
                Some(_) => {}
                None => return Err(Failed::now("it does not answer")),
            }
        }
        let subscription = format!("SUB {subject} 1\r\n");
        open.send(subscription.as_bytes()).map_err(Failed::now)?;
        Ok(open)
    }
}

impl Place {
    /// Whether it names this machine.
    fn is_here(&self) -> bool {
        let is_loopback = |address: IpAddr| address.is_loopback();
        self.host == "localhost" || self.host.parse().is_ok_and(is_loopback)
    }

    /// Of a page there.
    fn page(&self) -> String {
        if self.host.contains(':') {
            format!("https://[{}]:{}/", self.host, self.port)
        } else {
            format!("https://{}:{}/", self.host, self.port)
        }
    }

    /// In clear text a name of this machine is not looked up: what it resolves to may be elsewhere.
    fn addresses(&self) -> std::io::Result<Vec<SocketAddr>> {
        if self.host == "localhost" && !self.is_secure {
            let here: [IpAddr; 2] = [Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into()];
            return Ok(here.map(|ip| SocketAddr::new(ip, self.port)).to_vec());
        }
        Ok((&*self.host, self.port).to_socket_addrs()?.collect())
    }
}

/// A connection to a broker, which is made again where it is lost.
pub(crate) struct Connected {
    broker: Broker,
    name: &'static str,
    /// What is heard.
    subject: String,
    open: Option<Open>,
    /// An attempt to connect, in a thread of its own: a name may take long to be resolved.
    attempt: Option<Receiver<Result<Open, Failed>>>,
    /// When another one may be made.
    retry_ns: u64,
    payload_bytes_max: usize,
    /// What the broker refuses, in its words.
    pub(crate) refusal: Option<String>,
}

impl Connected {
    /// Sends a message; where there is no way, it is lost, and said again by those who need it.
    pub(crate) fn send(&mut self, subject: &str, bytes: &[u8]) {
        let Some(open) = self
            .open
            .as_mut()
            .filter(|limits| bytes.len() <= limits.payload_bytes_max)
        else {
            return;
        };
        let mut framed = format!("PUB {subject} {}\r\n", bytes.len()).into_bytes();
        framed.extend_from_slice(bytes);
        framed.extend_from_slice(b"\r\n");
        if open.send(&framed).is_err() {
            self.lost();
        }
    }

    /// The next message, if one comes within this time.
    pub(crate) fn next(&mut self, pause: Duration) -> Option<Message> {
        let Some(open) = &mut self.open else {
            self.reconnect(pause);
            return None;
        };
        let pause_ns = u64::try_from(pause.as_nanos()).unwrap_or(u64::MAX);
        let next = open.ping();
        match next.and_then(|()| open.next(Deadline::after(pause_ns))) {
            Ok(Some(FromServer::Message(message))) => return Some(message),
            Ok(Some(FromServer::Refused(reason)))
                if reason.to_ascii_lowercase().contains("permissions") =>
            {
                self.refusal = Some(reason);
            }
            Ok(_) => {}
            Err(_) => self.lost(),
        }
        None
    }

    /// Whether there is a connection now.
    pub(crate) fn is_up(&self) -> bool {
        self.open.is_some()
    }

    /// Waits for the last messages to arrive.
    pub(crate) fn flush(&mut self) {
        let Some(open) = &mut self.open else {
            return;
        };
        let deadline = Deadline::after(FLUSH_NS);
        open.pings = 1;
        let mut outcome = open.send(b"PING\r\n").map(|()| Some(FromServer::Pong));
        while open.pings > 0 && matches!(outcome, Ok(Some(_))) {
            outcome = open.next(deadline);
        }
    }

    /// Bytes of a chunk that fits into a message, in Base64.
    pub(crate) fn chunk_bytes(&self) -> usize {
        let payload = self.payload_bytes_max.saturating_sub(ENVELOPE_BYTES);
        (payload / 4 * 3).clamp(1, CHUNK_BYTES_MAX)
    }

    fn lost(&mut self) {
        self.open = None;
        self.retry_ns = clock::now_ns().saturating_add(RETRY_NS);
    }

    /// Tries for this long to have a connection again. Gives why an attempt failed.
    fn reconnect(&mut self, pause: Duration) -> Option<Failed> {
        let Some(attempt) = &self.attempt else {
            let pause_ns = self.retry_ns.saturating_sub(clock::now_ns());
            if pause_ns > 0 {
                threads::sleep(pause_ns.min(pause.as_nanos() as u64));
                return None;
            }
            let (sender, attempt) = channel();
            let (broker, name, subject) = (self.broker.clone(), self.name, self.subject.clone());
            let body = move || {
                // Nobody may wait for it any more.
                let _ = sender.send(broker.open(name, &subject));
            };
            self.attempt = Some(attempt);
            return threads::spawn("brunt-broker", body).err().map(Failed::now);
        };
        let outcome = match attempt.recv_timeout(pause) {
            Err(RecvTimeoutError::Timeout) => return None,
            Err(RecvTimeoutError::Disconnected) => Err(Failed::now("the attempt ended")),
            Ok(outcome) => outcome,
        };
        self.attempt = None;
        match outcome {
            Ok(open) => {
                self.payload_bytes_max = open.payload_bytes_max;
                self.open = Some(open);
                None
            }
            Err(failed) => {
                self.lost();
                Some(failed)
            }
        }
    }
}

/// A connection of which the broker knows who we are.
struct Open {
    link: Link,
    received: ConnectionInput,
    payload_bytes_max: usize,
    ping_due_ns: u64,
    /// Pings without an answer.
    pings: u32,
}

impl Open {
    fn send(&mut self, bytes: &[u8]) -> Result<(), String> {
        let sent = self.link.send(bytes, Deadline::after(SEND_NS));
        sent.map_err(|error| worded(&error))
    }

    /// What comes before the deadline and is not seen to here; and each answer to a ping.
    fn next(&mut self, deadline: Deadline) -> Result<Option<FromServer>, String> {
        loop {
            match self.received.next().map_err(|error| error.to_string())? {
                Some(FromServer::Ping) => self.send(b"PONG\r\n")?,
                Some(FromServer::Pong) => {
                    self.pings = 0;
                    return Ok(Some(FromServer::Pong));
                }
                Some(event) => return Ok(Some(event)),
                None => {
                    let more = self.link.receive(self.received.buffer(), deadline);
                    match more {
                        Ok(true) => {}
                        Ok(false) => return Err("it ended the connection".to_owned()),
                        Err(LinkError::Timeout) => return Ok(None),
                        Err(error) => return Err(worded(&error)),
                    }
                }
            }
        }
    }

    /// Asks whether the broker is there, where that is due.
    fn ping(&mut self) -> Result<(), String> {
        let now_ns = clock::now_ns();
        if now_ns < self.ping_due_ns {
            return Ok(());
        }
        if self.pings > 1 {
            return Err("it is silent".to_owned());
        }
        self.ping_due_ns = now_ns.saturating_add(PING_NS);
        self.pings += 1;
        self.send(b"PING\r\n")
    }
}

fn worded(error: &LinkError) -> String {
    match error {
        LinkError::Timeout => "it does not answer".to_owned(),
        LinkError::Lost(error) => error.to_string(),
        LinkError::NotTls => "it does not speak TLS".to_owned(),
        LinkError::Tls(error) => error.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead, BufReader, Write};
    use std::net::TcpListener;

    use brunt_io::threads;

    use super::*;

    fn broker(url: &str) -> Broker {
        Broker {
            url: url.to_owned(),
            ..Broker::default()
        }
    }

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
                credentials: is_known.then(|| credentials.clone()),
                ..broker(url)
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
            ("nats://127.0.0.1:7", &["127.0.0.1"]),
        ] {
            let place = broker(url).place().expect("a URL");
            let addresses = place.addresses().expect("they are known");
            assert!(addresses.iter().all(|address| address.port() == 7));
            let found: Vec<String> = addresses
                .iter()
                .map(|address| address.ip().to_string())
                .collect();
            assert_eq!(found, hosts, "{url}");
        }
    }

    #[test]
    fn brokers_that_a_broker_names_are_not_spoken_to() {
        let [trusted, other] = [(); 2].map(|()| TcpListener::bind("127.0.0.1:0").expect("free"));
        other.set_nonblocking(true).expect("ours");
        let place = |listener: &TcpListener| listener.local_addr().expect("bound");
        let named = place(&other);
        let broker = Broker {
            credentials: Some("me:it".parse().expect("credentials")),
            ..broker(&format!("nats://{}", place(&trusted)))
        };
        // It greets once, names another one, and then turns away whoever comes.
        let turned_away = threads::spawn("broker", move || {
            let (mut stream, _) = trusted.accept().expect("ours");
            let info = format!(
                "INFO {{\"server_id\":\"a\",\"version\":\"2.10.0\",\"max_payload\":1048576,\
                 \"connect_urls\":[\"{named}\"]}}\r\n"
            );
            stream.write_all(info.as_bytes()).expect("it listens");
            let mut reader = BufReader::new(stream.try_clone().expect("a descriptor"));
            let mut line = String::new();
            while !line.starts_with("PING") {
                line.clear();
                reader.read_line(&mut line).expect("it speaks");
            }
            stream.write_all(b"PONG\r\n").expect("it listens");
            drop((stream, reader));
            for _ in 0..4 {
                drop(trusted.accept().expect("ours"));
            }
        });
        let turned_away = turned_away.expect("a thread");
        let connected = broker.connect("test", "a".to_owned(), None, || false);
        let mut connected = connected.expect("it greets").expect("nobody gave up");
        while !turned_away.is_finished() {
            connected.next(Duration::from_millis(5));
        }
        turned_away.join().expect("no panic");
        let accepted = other.accept().map(|(_, from)| from);
        assert!(accepted.is_err(), "{accepted:?}");
    }

    #[test]
    fn what_is_no_broker_is_refused() {
        let check = |url: &str| broker(url).check().expect_err("it is none");
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
