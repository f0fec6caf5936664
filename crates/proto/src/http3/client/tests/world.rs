//! A server of HTTP/3 on quinn-proto, and a network that loses, repeats and holds back datagrams,
//! in virtual time.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::net::SocketAddr;
use std::sync::{Arc, LazyLock};
use std::time::{Duration, Instant};

use bytes::{Bytes, BytesMut};
use quinn_proto::crypto::rustls::QuicServerConfig;
use quinn_proto::{
    Connection, ConnectionHandle, DatagramEvent, Dir, Endpoint, EndpointConfig, ReadError,
    ServerConfig, StreamEvent, StreamId, TransportConfig, VarInt,
};
use rcgen::{CertificateParams, KeyPair, PKCS_ED25519};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};

use super::super::{Client, Ended, Event};
use crate::Limits;
use crate::http3::frame::{self, Kind};
use crate::http3::head::KnownHead;
use crate::http3::qpack;
use crate::http3::request::{RequestPart, RequestReader};
use crate::quic::{ClientTransport, TransportOptions};
use crate::tls::{ALPN_HTTP3, ClientOptions, ClientSide};

pub(super) const MS: u64 = 1_000_000;
/// One way through the network.
const WAY_NS: u64 = MS;
/// So much longer where a datagram is held back.
const HELD_BACK_NS: u64 = 3 * MS;
/// A world that takes longer has come to a stop.
const END_NS: u64 = 600_000 * MS;

/// What happens to datagrams, by chance.
#[derive(Clone, Copy)]
pub(super) struct Faults {
    pub(super) seed: u64,
    pub(super) lost: f64,
    pub(super) repeated: f64,
    pub(super) held_back: f64,
}

impl Faults {
    pub(super) const NONE: Self = Self {
        seed: 0,
        lost: 0.0,
        repeated: 0.0,
        held_back: 0.0,
    };
}

/// How the server is set up.
#[derive(Clone, Copy)]
pub(super) struct Behaviour {
    pub(super) window_bytes: u32,
    pub(super) streams_max: u32,
    pub(super) idle_ms: Option<u32>,
    pub(super) is_trusted: bool,
    pub(super) alpn: &'static [u8],
}

impl Default for Behaviour {
    fn default() -> Self {
        Self {
            window_bytes: 1 << 20,
            streams_max: 100,
            idle_ms: None,
            is_trusted: true,
            alpn: ALPN_HTTP3,
        }
    }
}

/// A datagram on its way.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct OnItsWay {
    at_ns: u64,
    number: u64,
    is_for_server: bool,
    bytes: Vec<u8>,
}

#[derive(Default)]
pub(super) struct Network {
    on_their_way: BinaryHeap<Reverse<OnItsWay>>,
    state: u64,
    number: u64,
    pub(super) lost: u64,
    pub(super) repeated: u64,
    pub(super) held_back: u64,
    pub(super) delivered_to_client_bytes: u64,
    /// Of all datagrams that were sent, in order.
    pub(super) sizes: Vec<usize>,
}

impl Network {
    /// A number from 0 to 1 (xorshift64*).
    fn draw(&mut self) -> f64 {
        self.state ^= self.state >> 12;
        self.state ^= self.state << 25;
        self.state ^= self.state >> 27;
        (self.state.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 11) as f64 / (1_u64 << 53) as f64
    }

    fn send(&mut self, faults: Faults, now_ns: u64, is_for_server: bool, bytes: &[u8]) {
        self.sizes.push(bytes.len());
        if self.draw() < faults.lost {
            self.lost += 1;
            return;
        }
        let is_repeated = self.draw() < faults.repeated;
        self.repeated += u64::from(is_repeated);
        for _ in 0..1 + u32::from(is_repeated) {
            let is_held_back = self.draw() < faults.held_back;
            self.held_back += u64::from(is_held_back);
            self.number += 1;
            let at_ns = now_ns + WAY_NS + if is_held_back { HELD_BACK_NS } else { 0 };
            self.on_their_way.push(Reverse(OnItsWay {
                at_ns,
                number: self.number,
                is_for_server,
                bytes: bytes.to_vec(),
            }));
        }
    }
}

/// The server, with its one connection.
pub(super) struct Server {
    endpoint: Endpoint,
    connection: Option<(ConnectionHandle, Connection)>,
    requests: HashMap<StreamId, Request>,
    control: Option<StreamId>,
    /// Bytes of the bodies of requests that are complete and have one.
    pub(super) bodies: Vec<u64>,
    /// Codes with which the client stopped replies.
    pub(super) stopped: Vec<u64>,
    /// The code with which the client closed the connection.
    pub(super) closed_with: Option<u64>,
}

#[derive(Default)]
struct Request {
    reader: RequestReader,
    path: String,
    body_bytes: u64,
    unsent: Bytes,
    ends: bool,
}

pub(super) struct World {
    pub(super) client: Client,
    pub(super) server: Server,
    pub(super) network: Network,
    pub(super) events: Vec<Event>,
    pub(super) ended: Option<Ended>,
    pub(super) overhead_bytes: u64,
    pub(super) now_ns: u64,
    faults: Faults,
    origin: Instant,
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

fn server_config(behaviour: Behaviour) -> ServerConfig {
    let (certificate, key) = &*IDENTITY;
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let mut tls = rustls::ServerConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&rustls::version::TLS13])
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(
            vec![certificate.clone()],
            PrivateKeyDer::from(PrivatePkcs8KeyDer::from(key.clone())),
        )
        .unwrap();
    tls.alpn_protocols = vec![behaviour.alpn.to_vec()];
    let crypto = QuicServerConfig::try_from(tls).unwrap();
    let mut config = ServerConfig::with_crypto(Arc::new(crypto));
    let mut transport = TransportConfig::default();
    let idle = behaviour.idle_ms.map(|ms| VarInt::from_u32(ms).into());
    transport
        .max_concurrent_bidi_streams(VarInt::from_u32(behaviour.streams_max))
        .stream_receive_window(VarInt::from_u32(behaviour.window_bytes))
        .receive_window(VarInt::from_u32(behaviour.window_bytes))
        .max_idle_timeout(idle)
        .mtu_discovery_config(None);
    config.transport_config(Arc::new(transport));
    config
}

fn client(depth: u32, behaviour: Behaviour, origin: Instant) -> Client {
    let mut options = ClientOptions::new("localhost");
    options.roots = match behaviour.is_trusted {
        true => vec![IDENTITY.0.clone()],
        false => {
            let key = KeyPair::generate().unwrap();
            let params = CertificateParams::new(vec!["other".to_owned()]).unwrap();
            vec![params.self_signed(&key).unwrap().der().clone()]
        }
    };
    options.alpn = vec![ALPN_HTTP3.to_vec()];
    let side = ClientSide::new(options).unwrap();
    let transport = ClientTransport::new(&side, TransportOptions::default(), origin).unwrap();
    Client::open(&transport, depth, [7; 32], 0).unwrap()
}

impl World {
    pub(super) fn new(depth: u32, faults: Faults, behaviour: Behaviour) -> Self {
        let origin = origin();
        let config = Arc::new(server_config(behaviour));
        let endpoint = EndpointConfig::default();
        Self {
            client: client(depth, behaviour, origin),
            server: Server {
                endpoint: Endpoint::new(Arc::new(endpoint), Some(config), true, Some([9; 32])),
                connection: None,
                requests: HashMap::new(),
                control: None,
                bodies: Vec::new(),
                stopped: Vec::new(),
                closed_with: None,
            },
            network: Network {
                state: faults.seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1,
                ..Network::default()
            },
            events: Vec::new(),
            ended: None,
            overhead_bytes: 0,
            now_ns: 0,
            faults,
            origin,
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
        let arrival_ns = self.network.on_their_way.peek();
        let arrival_ns = arrival_ns.map_or(u64::MAX, |Reverse(datagram)| datagram.at_ns);
        arrival_ns
            .min(self.client.deadline_ns())
            .min(self.server_deadline_ns())
    }

    fn server_deadline_ns(&mut self) -> u64 {
        let connection = self.server.connection.as_mut();
        let at = connection.and_then(|(_, connection)| connection.poll_timeout());
        at.map_or(u64::MAX, |at| {
            at.saturating_duration_since(self.origin).as_nanos() as u64
        })
    }

    /// Sends what there is to be sent, and sees to what happens next.
    pub(super) fn step(&mut self) {
        let next_ns = self.next_ns();
        assert!(next_ns < END_NS, "something happens: {:?}", self.events);
        self.now_ns = self.now_ns.max(next_ns);
        let now = self.origin + Duration::from_nanos(self.now_ns);
        while let Some(Reverse(datagram)) = self.network.on_their_way.peek() {
            if datagram.at_ns > self.now_ns {
                break;
            }
            let Some(Reverse(datagram)) = self.network.on_their_way.pop() else {
                break;
            };
            if datagram.is_for_server {
                let out = self.server.receive(&datagram.bytes, now);
                for bytes in out {
                    self.network.send(self.faults, self.now_ns, false, &bytes);
                }
            } else {
                self.network.delivered_to_client_bytes += datagram.bytes.len() as u64;
                self.client.receive(&datagram.bytes, None, self.now_ns);
            }
        }
        if self.client.deadline_ns() <= self.now_ns {
            self.client.expire(self.now_ns);
        }
        if self.server_deadline_ns() <= self.now_ns
            && let Some((_, connection)) = &mut self.server.connection
        {
            connection.handle_timeout(now);
        }
        self.server.serve(now);
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
        let now = self.origin + Duration::from_nanos(self.now_ns);
        let mut out = Vec::new();
        while let Some(sent) = self.client.transmit(self.now_ns, &mut out) {
            for datagram in out.chunks(sent.segment_bytes.get().into()) {
                self.network.send(self.faults, self.now_ns, true, datagram);
            }
            out.clear();
        }
        let Some((_, connection)) = &mut self.server.connection else {
            return;
        };
        while let Some(transmit) = connection.poll_transmit(now, 10, &mut out) {
            let segment = transmit.segment_size.unwrap_or(transmit.size);
            for datagram in out.chunks(segment) {
                self.network.send(self.faults, self.now_ns, false, datagram);
            }
            out.clear();
        }
    }
}

impl Server {
    /// Takes a datagram; gives what answers it at once.
    fn receive(&mut self, datagram: &[u8], now: Instant) -> Vec<Vec<u8>> {
        let client: SocketAddr = ([192, 0, 2, 7], 7).into();
        let mut answer = Vec::new();
        let bytes = BytesMut::from(datagram);
        let event = self
            .endpoint
            .handle(now, client, None, None, bytes, &mut answer);
        match event {
            Some(DatagramEvent::NewConnection(incoming)) => {
                let accepted = self.endpoint.accept(incoming, now, &mut answer, None);
                match accepted {
                    Ok(connection) => self.connection = Some(connection),
                    Err(error) if error.response.is_some() => return vec![answer],
                    Err(_) => {}
                }
            }
            Some(DatagramEvent::ConnectionEvent(_, event)) => {
                if let Some((_, connection)) = &mut self.connection {
                    connection.handle_event(event);
                }
            }
            Some(DatagramEvent::Response(_)) => return vec![answer],
            None => {}
        }
        Vec::new()
    }

    fn serve(&mut self, now: Instant) {
        let Some((handle, mut connection)) = self.connection.take() else {
            return;
        };
        while let Some(event) = connection.poll_endpoint_events() {
            if let Some(answer) = self.endpoint.handle_event(handle, event) {
                connection.handle_event(answer);
            }
        }
        while let Some(event) = connection.poll() {
            match event {
                quinn_proto::Event::Connected => {
                    let control = connection.streams().open(Dir::Uni).unwrap();
                    let mut opening = Vec::new();
                    frame::write_control_opening(&mut opening, &[]);
                    connection.send_stream(control).write(&opening).unwrap();
                    self.control = Some(control);
                }
                quinn_proto::Event::Stream(StreamEvent::Opened { dir }) => {
                    while let Some(id) = connection.streams().accept(dir) {
                        if dir == Dir::Bi {
                            self.requests.insert(id, Request::default());
                            self.read(&mut connection, id, now);
                        }
                    }
                }
                quinn_proto::Event::Stream(StreamEvent::Readable { id }) => {
                    self.read(&mut connection, id, now);
                }
                quinn_proto::Event::Stream(StreamEvent::Writable { id }) => {
                    if let Some(request) = self.requests.get_mut(&id) {
                        request.write(&mut connection, id);
                    }
                }
                quinn_proto::Event::Stream(StreamEvent::Stopped { id, error_code }) => {
                    self.stopped.push(error_code.into_inner());
                    let _ = connection.send_stream(id).reset(error_code);
                }
                quinn_proto::Event::ConnectionLost {
                    reason: quinn_proto::ConnectionError::ApplicationClosed(close),
                } => self.closed_with = Some(close.error_code.into_inner()),
                _ => {}
            }
        }
        self.connection = Some((handle, connection));
    }

    fn read(&mut self, connection: &mut Connection, id: StreamId, now: Instant) {
        let Some(request) = self.requests.get_mut(&id) else {
            return;
        };
        let mut stream = connection.recv_stream(id);
        let Ok(mut chunks) = stream.read(true) else {
            return;
        };
        let is_complete = loop {
            match chunks.next(usize::MAX) {
                Ok(Some(chunk)) => request.take(&chunk.bytes),
                Ok(None) => break true,
                Err(ReadError::Blocked) => break false,
                Err(ReadError::Reset(_)) => {
                    drop(chunks);
                    self.requests.remove(&id);
                    return;
                }
            }
        };
        let _ = chunks.finalize();
        if is_complete {
            assert_eq!(request.reader.end(), Ok(()));
            if request.body_bytes > 0 {
                self.bodies.push(request.body_bytes);
            }
            self.answer(connection, id, now);
        }
    }

    /// Does what the path says: a reply with so many bytes, as a rule.
    fn answer(&mut self, connection: &mut Connection, id: StreamId, now: Instant) {
        let Some(request) = self.requests.get_mut(&id) else {
            return;
        };
        let what = request.path.trim_start_matches('/').to_owned();
        let (what, number) = match what.rsplit_once('-') {
            Some((what, number)) if number.parse::<u32>().is_ok() => {
                (what.to_owned(), number.parse().unwrap())
            }
            _ => (what, 0),
        };
        let code = VarInt::from_u32(number);
        let mut reply = Vec::new();
        match what.as_str() {
            "silent" => return,
            "empty" => {}
            "reset" => {
                connection.send_stream(id).reset(code).unwrap();
                return;
            }
            "close" => {
                connection.close(now, code, Bytes::from_static(b"as asked"));
                return;
            }
            "go-away" => {
                frame::write_go_away(&mut reply, number.into());
                let control = self.control.unwrap();
                connection.send_stream(control).write(&reply).unwrap();
                return;
            }
            "data-first" => frame::write_header(&mut reply, Kind::Data, 0),
            bytes => {
                let bytes: usize = bytes.parse().unwrap();
                frame::write_head(&mut reply, |out| {
                    qpack::encode_field(out, b":status", b"200", false);
                    let length = bytes.to_string();
                    qpack::encode_field(out, b"content-length", length.as_bytes(), false);
                });
                frame::write_header(&mut reply, Kind::Data, bytes as u64);
                reply.resize(reply.len() + bytes, b'.');
            }
        }
        (request.unsent, request.ends) = (reply.into(), true);
        request.write(connection, id);
    }
}

impl Request {
    fn take(&mut self, mut bytes: &[u8]) {
        while let Some(part) = self.reader.receive(&mut bytes, 10_000).unwrap() {
            match part {
                RequestPart::Head(section) => {
                    let mut path = Vec::new();
                    let mut scratch = Vec::new();
                    qpack::decode::<qpack::Bytes>(section, &mut scratch, |(name, value), _| {
                        if name == b":path" {
                            path = value.to_vec();
                        }
                    })
                    .unwrap();
                    self.path = String::from_utf8(path).unwrap();
                }
                RequestPart::Content(content) => self.body_bytes += content.len() as u64,
                RequestPart::Trailers(_) | RequestPart::Framing => {}
            }
        }
    }

    fn write(&mut self, connection: &mut Connection, id: StreamId) {
        let mut stream = connection.send_stream(id);
        while !self.unsent.is_empty() {
            let written = stream.write_chunks(std::slice::from_mut(&mut self.unsent));
            if written.is_err() {
                return;
            }
        }
        if std::mem::take(&mut self.ends) {
            let _ = stream.finish();
        }
    }
}
