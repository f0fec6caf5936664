//! A server of HTTP/3, and a network without faults, in virtual time.

use std::collections::{HashMap, VecDeque};
use std::sync::LazyLock;
use std::time::Instant;

use rcgen::{CertificateParams, DnType, KeyPair, PKCS_ED25519};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};

use super::super::{Client, Ended, Event};
use crate::Limits;
use crate::fields::reply::KnownHead;
use crate::http3::frame::{self, Kind};
use crate::http3::message::{RequestPart, RequestReader};
use crate::http3::qpack;
use crate::http3::server::{self, RequestRead, Server};
use crate::quic::{ClientTransport, Lost, ServerTransport, TransportOptions};
use crate::tls::{ALPN_HTTP3, ClientOptions, ClientSide, ServerOptions, ServerSide};

pub(super) const MS: u64 = 1_000_000;
/// One way through the network.
const WAY_NS: u64 = MS;
/// A world that takes longer has come to a stop.
const END_NS: u64 = 36_000_000 * MS;
/// Where the client is.
const CLIENT: ([u8; 4], u16) = ([192, 0, 2, 7], 7);

/// How the server is set up.
#[derive(Clone, Copy)]
pub(super) struct Behaviour {
    pub(super) window_bytes: u32,
    pub(super) streams_max: u32,
    pub(super) idle_ms: Option<u32>,
    pub(super) is_trusted: bool,
    pub(super) alpn: &'static [u8],
    pub(super) connections_max: u32,
}

impl Default for Behaviour {
    fn default() -> Self {
        Self {
            window_bytes: 1 << 20,
            streams_max: 100,
            idle_ms: None,
            is_trusted: true,
            alpn: ALPN_HTTP3,
            connections_max: 1,
        }
    }
}

/// A datagram on its way.
struct OnItsWay {
    at_ns: u64,
    is_for_server: bool,
    bytes: Vec<u8>,
}

/// Datagrams arrive in the order in which they were sent.
#[derive(Default)]
pub(super) struct Network {
    on_their_way: VecDeque<OnItsWay>,
    pub(super) delivered_to_client_bytes: u64,
}

impl Network {
    fn send(&mut self, now_ns: u64, is_for_server: bool, bytes: &[u8]) {
        self.on_their_way.push_back(OnItsWay {
            at_ns: now_ns + WAY_NS,
            is_for_server,
            bytes: bytes.to_vec(),
        });
    }
}

/// The server, with its one connection.
pub(super) struct Application {
    server: Server,
    requests: HashMap<u64, SentRequest>,
    is_over: bool,
    /// Bytes of the bodies of requests that are complete and have one.
    pub(super) bodies: Vec<u64>,
    /// Codes with which the client stopped replies.
    pub(super) stopped: Vec<u64>,
    /// The code with which the client closed the connection.
    pub(super) closed_with: Option<u64>,
}

#[derive(Default)]
struct SentRequest {
    reader: RequestReader,
    path: String,
    body_bytes: u64,
    unsent: Vec<u8>,
    ends: bool,
}

pub(super) struct World {
    pub(super) client: Client,
    pub(super) server: Application,
    pub(super) network: Network,
    pub(super) events: Vec<Event>,
    pub(super) ended: Option<Ended>,
    pub(super) overhead_bytes: u64,
    pub(super) now_ns: u64,
    known: KnownHead,
}

/// A certificate for localhost, and its key. All its signatures have one length.
static IDENTITY: LazyLock<(CertificateDer<'static>, Vec<u8>)> = LazyLock::new(|| {
    let key = KeyPair::generate_for(&PKCS_ED25519).unwrap();
    let params = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
    let certificate = params.self_signed(&key).unwrap().der().clone();
    (certificate, key.serialize_der())
});

#[expect(clippy::disallowed_methods, reason = "any instant does")]
fn origin() -> Instant {
    Instant::now()
}

fn of_server(behaviour: Behaviour, origin: Instant) -> ServerTransport {
    let (certificate, key) = &*IDENTITY;
    let key = PrivateKeyDer::from(PrivatePkcs8KeyDer::from(key.clone()));
    let side = ServerSide::new(ServerOptions {
        alpn: vec![behaviour.alpn.to_vec()],
        ..ServerOptions::new(vec![certificate.clone()], key)
    });
    let options = TransportOptions {
        stream_window_bytes: behaviour.window_bytes.into(),
        connection_window_bytes: behaviour.window_bytes.into(),
        streams_max: behaviour.streams_max,
        idle_timeout_ns: behaviour.idle_ms.map(|ms| u64::from(ms) * MS),
        ..TransportOptions::default()
    };
    ServerTransport::new(&side.unwrap(), options, origin).unwrap()
}

fn of_client(behaviour: Behaviour, origin: Instant) -> ClientTransport {
    let mut options = ClientOptions::new("localhost");
    options.roots = if behaviour.is_trusted {
        vec![IDENTITY.0.clone()]
    } else {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new(vec!["other".to_owned()]).unwrap();
        let name = &mut params.distinguished_name;
        name.push(DnType::CommonName, "somebody else");
        vec![params.self_signed(&key).unwrap().der().clone()]
    };
    options.alpn = vec![ALPN_HTTP3.to_vec()];
    let side = ClientSide::new(options).unwrap();
    ClientTransport::new(&side, TransportOptions::default(), origin).unwrap()
}

impl World {
    pub(super) fn new(depth: u32, behaviour: Behaviour) -> Self {
        let origin = origin();
        let of_client = of_client(behaviour, origin);
        let of_server = of_server(behaviour, origin);
        Self {
            client: Client::open(&of_client, depth, [7; 32], 0).unwrap(),
            server: Application {
                server: Server::new(&of_server, behaviour.connections_max, [9; 32]),
                requests: HashMap::new(),
                is_over: false,
                bodies: Vec::new(),
                stopped: Vec::new(),
                closed_with: None,
            },
            network: Network::default(),
            events: Vec::new(),
            ended: None,
            overhead_bytes: 0,
            now_ns: 0,
            known: KnownHead::default(),
        }
    }

    /// Goes on until `is_done`.
    pub(super) fn run_until(&mut self, is_done: impl Fn(&Self) -> bool) {
        while !is_done(self) {
            assert_eq!(self.ended, None);
            self.step();
        }
    }

    /// Goes on until the connection is over, and gives why.
    pub(super) fn run_until_ended(&mut self) -> Ended {
        loop {
            if let Some(ended) = self.ended.take() {
                return ended;
            }
            self.step();
        }
    }

    /// Goes on until nothing is on its way.
    pub(super) fn settle(&mut self) {
        let until_ns = self.now_ns + 200 * MS;
        while self.now_ns < until_ns && self.next_ns() < until_ns {
            self.step();
        }
    }

    fn next_ns(&mut self) -> u64 {
        self.transmit();
        let arrival_ns = self.network.on_their_way.front();
        let arrival_ns = arrival_ns.map_or(u64::MAX, |datagram| datagram.at_ns);
        arrival_ns
            .min(self.client.deadline_ns())
            .min(self.server.server.deadline_ns(0))
    }

    /// Sends what there is to be sent, and sees to what happens next.
    pub(super) fn step(&mut self) {
        let next_ns = self.next_ns();
        assert!(next_ns < END_NS, "something happens: {:?}", self.events);
        self.now_ns = self.now_ns.max(next_ns);
        let now_ns = self.now_ns;
        let is_there = |datagram: &mut OnItsWay| datagram.at_ns <= now_ns;
        while let Some(datagram) = self.network.on_their_way.pop_front_if(is_there) {
            if datagram.is_for_server {
                let mut answer = Vec::new();
                let (server, from) = (&mut self.server.server, CLIENT.into());
                server.receive(from, &datagram.bytes, None, now_ns, &mut answer);
                if !answer.is_empty() {
                    self.network.send(now_ns, false, &answer);
                }
            } else {
                self.network.delivered_to_client_bytes += datagram.bytes.len() as u64;
                self.client.receive(&datagram.bytes, None, self.now_ns);
            }
        }
        if self.client.deadline_ns() <= self.now_ns {
            self.client.expire(self.now_ns);
        }
        if self.server.server.deadline_ns(0) <= self.now_ns {
            self.server.server.expire(0, self.now_ns);
        }
        self.server.serve(self.now_ns);
        loop {
            let (limits, known) = (Limits::default(), &mut self.known);
            match self.client.event(self.now_ns, &limits, known) {
                Ok(Some(event)) => self.events.push(event),
                Ok(None) => break,
                Err(ended) => {
                    self.ended.get_or_insert(ended);
                    break;
                }
            }
        }
        self.overhead_bytes += self.client.take_overhead();
        self.transmit();
    }

    fn transmit(&mut self) {
        let mut out = Vec::new();
        while let Some(sent) = self.client.transmit(self.now_ns, &mut out) {
            for datagram in out.chunks(sent.segment_bytes.get().into()) {
                self.network.send(self.now_ns, true, datagram);
            }
            out.clear();
        }
        while let Some((_, sent)) = self.server.server.transmit(0, self.now_ns, &mut out) {
            for datagram in out.chunks(sent.segment_bytes.get().into()) {
                self.network.send(self.now_ns, false, datagram);
            }
            out.clear();
        }
    }
}

impl Application {
    fn serve(&mut self, now_ns: u64) {
        let Self {
            server,
            requests,
            is_over,
            bodies,
            stopped,
            closed_with,
        } = self;
        let Some(connection) = server.connection(0).filter(|_| !*is_over) else {
            return;
        };
        loop {
            match connection.event(now_ns, &[]) {
                Ok(None) => return,
                Ok(Some(server::ServerEvent::Ready)) => {}
                Ok(Some(server::ServerEvent::Readable { stream })) => {
                    let request = requests.entry(stream).or_default();
                    match request.read(connection, stream, now_ns) {
                        RequestRead::More => {}
                        RequestRead::Complete => {
                            bodies.extend(Some(request.body_bytes).filter(|&bytes| bytes > 0));
                            request.answer(connection, stream, now_ns);
                        }
                        RequestRead::Reset => {
                            requests.remove(&stream);
                        }
                        RequestRead::Failed(error) => panic!("{error}"),
                    }
                }
                Ok(Some(server::ServerEvent::Writable { stream })) => {
                    if let Some(request) = requests.get_mut(&stream) {
                        request.write(connection, stream);
                    }
                }
                Ok(Some(server::ServerEvent::Stopped { code, .. })) => stopped.push(code),
                Err(ended) => {
                    *is_over = true;
                    if let Ended::Lost(Lost::ClosedAbove { code, .. }) = ended {
                        *closed_with = Some(code);
                    }
                    return;
                }
            }
        }
    }
}

impl SentRequest {
    fn read(
        &mut self,
        connection: &mut server::ServerConnection,
        stream: u64,
        now_ns: u64,
    ) -> RequestRead {
        let Self {
            reader,
            path,
            body_bytes,
            ..
        } = self;
        connection.read(stream, reader, 10_000, now_ns, |part| {
            match part {
                RequestPart::Head(section) => {
                    let mut scratch = Vec::new();
                    qpack::decode::<qpack::Bytes>(section, &mut scratch, |(name, value), _| {
                        if name == b":path" {
                            *path = String::from_utf8(value.to_vec()).unwrap();
                        }
                    })
                    .unwrap();
                }
                RequestPart::Content(content) => *body_bytes += content.len() as u64,
                RequestPart::Trailers(_) | RequestPart::Framing => {}
            }
            None
        })
    }

    /// Does what the path says: a reply with so many bytes, as a rule.
    fn answer(&mut self, connection: &mut server::ServerConnection, stream: u64, now_ns: u64) {
        let what = self.path.trim_start_matches('/').to_owned();
        let (what, number) = match what.rsplit_once('-') {
            Some((what, number)) if number.parse::<u64>().is_ok() => {
                (what.to_owned(), number.parse().unwrap())
            }
            _ => (what, 0),
        };
        match what.as_str() {
            "silent" => return,
            "empty" => {}
            "reset" => return connection.reset(stream, number),
            "close" => return connection.close(number, "as asked", now_ns),
            "go-away" => return connection.go_away(number),
            "data-first" => frame::write_header(&mut self.unsent, Kind::Data, 0),
            bytes => {
                let bytes: usize = bytes.parse().unwrap();
                frame::write_head(&mut self.unsent, |out| {
                    qpack::encode_field(out, b":status", b"200", false);
                    let length = bytes.to_string();
                    qpack::encode_field(out, b"content-length", length.as_bytes(), false);
                });
                frame::write_header(&mut self.unsent, Kind::Data, bytes as u64);
                self.unsent.resize(self.unsent.len() + bytes, b'.');
            }
        }
        self.ends = true;
        self.write(connection, stream);
    }

    fn write(&mut self, connection: &mut server::ServerConnection, stream: u64) {
        while !self.unsent.is_empty() {
            match connection.write(stream, &self.unsent) {
                0 => return,
                count => drop(self.unsent.drain(..count)),
            }
        }
        if std::mem::take(&mut self.ends) {
            connection.finish(stream);
        }
    }
}
