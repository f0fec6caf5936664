//! A worker in virtual time, with brunt's client of HTTP/3. Servers and clients that are not ours
//! check both of them elsewhere.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::io;
use std::net::SocketAddr;
use std::num::{NonZeroU16, NonZeroU64};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use brunt_io::backend::Payloads;
use brunt_io::clock;
use brunt_io::listener::DatagramListener;
use brunt_io::transport::{self as kind, OutgoingDatagrams, ReceivedDatagrams};
use brunt_proto::http3::{
    Client, Ended, ErrorCode, Event, KnownHead, Reply, Request, StreamFailure, Template,
};
use brunt_proto::quic::{self, ClientTransport, Lost, TransportOptions};
use brunt_proto::tls::{ALPN_HTTP3, ClientOptions, ClientSide};
use brunt_proto::{BodiesWanted, Limits};

use super::session;
use super::worker::{Http3Worker, transport};
use crate::counters::{Counters, Shared};
use crate::http2::Http2Options;
use crate::pattern::pattern_byte;
use crate::tls::{Secure, TlsOptions};
use crate::worker::WorkerSettings;

const SECOND_NS: u64 = 1_000_000_000;
const MS: u64 = 1_000_000;
/// Datagrams that pass before a world has come to a stop.
const DATAGRAMS_MAX: usize = 100_000;

/// Datagrams, with the addresses of clients.
type Datagrams = VecDeque<(SocketAddr, Vec<u8>)>;

#[derive(Default)]
struct Wire {
    now_ns: u64,
    arrivals: Datagrams,
    sent: Datagrams,
}

/// The server's socket.
#[derive(Default)]
struct ServerSocket {
    exchange: Rc<RefCell<Wire>>,
    payloads: Payloads,
    received: Vec<u8>,
}

impl DatagramListener for ServerSocket {
    fn now_ns(&self) -> u64 {
        self.exchange.borrow().now_ns
    }

    fn send(&mut self, to: SocketAddr, outgoing: OutgoingDatagrams) {
        let sent = &mut self.exchange.borrow_mut().sent;
        let datagrams = outgoing.bytes.chunks(outgoing.segment_bytes.get().into());
        sent.extend(datagrams.map(|bytes| (to, bytes.to_vec())));
        self.payloads.recycle::<kind::Datagram>(outgoing);
    }

    fn take_buffer(&mut self) -> Vec<u8> {
        self.payloads.take_buffer()
    }

    fn wait(&mut self, _until_ns: Option<u64>) -> io::Result<()> {
        Ok(())
    }

    fn next_arrival(&mut self) -> Option<SocketAddr> {
        let (from, bytes) = self.exchange.borrow_mut().arrivals.pop_front()?;
        self.received = bytes;
        Some(from)
    }

    fn received(&self) -> ReceivedDatagrams<'_> {
        ReceivedDatagrams {
            bytes: &self.received,
            segment_bytes: NonZeroU16::new(self.received.len() as u16).unwrap(),
            ..ReceivedDatagrams::NONE
        }
    }
}

/// A worker with its clients, each of which has a port.
struct Site {
    worker: Http3Worker<ServerSocket>,
    exchange: Rc<RefCell<Wire>>,
    shared: Arc<Shared>,
    transport: ClientTransport,
    clients: Vec<Client>,
    known: KnownHead,
    /// When the worker goes on, if nothing comes before.
    next_ns: Option<u64>,
}

/// How a request ended.
#[derive(Debug)]
enum RequestOutcome {
    Answered(Reply, Vec<u8>),
    Failed(StreamFailure),
    GoneAway,
    Ended(Ended),
}

impl RequestOutcome {
    /// The code with which the server closed the connection.
    fn code(&self) -> u64 {
        match self {
            Self::Ended(Ended::Lost(Lost::ClosedAbove { code, .. })) => *code,
            other => panic!("{other:?}"),
        }
    }
}

fn settings(connections_max: u32) -> WorkerSettings {
    WorkerSettings {
        connections_max,
        spin: false,
        is_tls: true,
        idle_timeout_ns: None,
        input_bytes_max: 1 << 30,
        output_bytes_max: 1 << 30,
        http2: Http2Options::default(),
    }
}

impl Site {
    fn new(settings: WorkerSettings) -> Self {
        let secure = Secure::new(&TlsOptions::default(), None).unwrap();
        let mut options = ClientOptions::new("localhost");
        options.roots = secure.certificates.clone();
        options.alpn = vec![ALPN_HTTP3.to_vec()];
        let side = ClientSide::new(options).unwrap();
        let origin = clock::origin();
        let of_server = transport(&secure.http3, &settings, origin).unwrap();
        let of_client = ClientTransport::new(&side, TransportOptions::default(), origin);
        let (end, shared) = (ServerSocket::default(), Arc::new(Shared::new(1)));
        let exchange = Rc::clone(&end.exchange);
        Self {
            worker: Http3Worker::new(end, &of_server, &shared, 0, settings),
            exchange,
            shared,
            transport: of_client.unwrap(),
            clients: Vec::new(),
            known: KnownHead::default(),
            next_ns: None,
        }
    }

    fn now_ns(&self) -> u64 {
        self.exchange.borrow().now_ns
    }

    fn counters(&self) -> Counters {
        self.shared.totals()
    }

    /// Another client, which has sent nothing; gives its number.
    fn join(&mut self) -> usize {
        let number = self.clients.len();
        let seed = [number as u8 + 1; 32];
        let client = Client::open(&self.transport, 100, seed, self.now_ns()).unwrap();
        self.clients.push(client);
        number
    }

    fn event(&mut self, number: usize) -> Result<Option<Event>, Ended> {
        let limits = Limits {
            bodies: BodiesWanted {
                from_status: 0,
                bytes_max: u32::MAX,
                heads: false,
            },
            ..Limits::default()
        };
        let now_ns = self.now_ns();
        self.clients[number].event(now_ns, &limits, &mut self.known)
    }

    /// What a client has to send once it has seen what came.
    fn outgoing(&mut self, number: usize) -> Datagrams {
        while let Ok(Some(_)) = self.event(number) {}
        let now_ns = self.now_ns();
        let client = &mut self.clients[number];
        let mut all = Datagrams::new();
        let mut bytes = Vec::new();
        while let Some(sent) = client.transmit(now_ns, &mut bytes) {
            let datagrams = bytes.chunks(sent.segment_bytes.get().into());
            all.extend(datagrams.map(|bytes| (address(number), bytes.to_vec())));
            bytes.clear();
        }
        all
    }

    /// The server takes these datagrams; gives what it sends.
    fn deliver(&mut self, datagrams: Datagrams) -> Datagrams {
        self.exchange.borrow_mut().arrivals.extend(datagrams);
        self.next_ns = self.worker.settle().unwrap();
        std::mem::take(&mut self.exchange.borrow_mut().sent)
    }

    /// Carries what a client has to send to the server and its answers back; whether there were
    /// answers, and whether there was anything.
    fn step(&mut self, number: usize) -> (bool, bool) {
        let outgoing = self.outgoing(number);
        let has_sent = !outgoing.is_empty();
        let answers = self.deliver(outgoing);
        let has_answers = !answers.is_empty();
        let now_ns = self.now_ns();
        for (to, bytes) in answers {
            if to == address(number) {
                self.clients[number].receive(&bytes, None, now_ns);
            }
        }
        (has_answers, has_sent || has_answers)
    }

    /// Carries datagrams between a client and the server until there are none.
    fn carry(&mut self, number: usize) {
        for _ in 0..DATAGRAMS_MAX {
            if !self.step(number).0 {
                return;
            }
        }
        panic!("it comes to no rest");
    }

    /// What comes next of what a client asked for, however long that takes.
    fn outcome(&mut self, number: usize) -> RequestOutcome {
        for _ in 0..DATAGRAMS_MAX {
            match self.event(number) {
                Ok(Some(Event::Reply { reply, .. })) => {
                    let body = self.clients[number].take_body().unwrap_or_default();
                    return RequestOutcome::Answered(reply, body.bytes);
                }
                Ok(Some(Event::Failed { why, .. })) => return RequestOutcome::Failed(why),
                Ok(Some(Event::GoAway { .. })) => return RequestOutcome::GoneAway,
                Ok(Some(Event::Ready)) => {}
                Err(ended) => return RequestOutcome::Ended(ended),
                Ok(None) if self.step(number).1 => {}
                Ok(None) => {
                    let deadline_ns = self.clients[number].deadline_ns();
                    let now_ns = self.next_ns.unwrap_or(u64::MAX).min(deadline_ns);
                    self.exchange.borrow_mut().now_ns = now_ns;
                    if deadline_ns <= now_ns {
                        self.clients[number].expire(now_ns);
                    }
                }
            }
        }
        panic!("it comes to no end");
    }

    fn request(&mut self, number: usize, method: &str, path: &str, body: &[u8]) -> u32 {
        let template = Template::new(&Request {
            method,
            scheme: "https",
            authority: "localhost",
            path,
            headers: &[],
            body,
        });
        self.clients[number].request(&template.unwrap().of_worker())
    }

    fn ask(&mut self, number: usize, path: &str) -> RequestOutcome {
        self.request(number, "GET", path, b"");
        self.outcome(number)
    }

    fn answered(
        &mut self,
        number: usize,
        method: &str,
        path: &str,
        body: &[u8],
    ) -> (Reply, Vec<u8>) {
        self.request(number, method, path, body);
        match self.outcome(number) {
            RequestOutcome::Answered(reply, body) => (reply, body),
            other => panic!("{path}: {other:?}"),
        }
    }

    fn pass(&mut self, ns: u64) {
        self.exchange.borrow_mut().now_ns += ns;
        self.worker.settle().unwrap();
    }

    /// A client that is connected.
    fn connect(&mut self) -> usize {
        let number = self.join();
        self.carry(number);
        number
    }

    fn is_ready(&self, number: usize) -> bool {
        self.clients[number].is_ready()
    }
}

fn address(number: usize) -> SocketAddr {
    SocketAddr::from(([192, 0, 2, 1], 1_000 + number as u16))
}

fn letters(bytes: u64) -> Vec<u8> {
    (0..bytes).map(pattern_byte).collect()
}

#[test]
fn lone_initials_hold_some_places_for_as_long_as_a_handshake_may_take() {
    let mut site = Site::new(settings(8));
    for _ in 0..10 {
        let number = site.join();
        let lone = site.outgoing(number);
        site.deliver(lone);
    }
    // Some places are kept for clients that can be reached.
    let honest = [(); 2].map(|()| site.connect());
    assert!(honest.iter().all(|&number| site.is_ready(number)));
    assert_eq!(site.counters().connections_accepted, 2);
    let late = site.connect();
    assert!(!site.is_ready(late));
    site.pass(10 * SECOND_NS - 1);
    assert_eq!(site.counters().handshakes_failed, 0);
    site.pass(1);
    assert_eq!(site.counters().handshakes_failed, 6);
    for _ in 0..6 {
        let number = site.connect();
        assert!(site.is_ready(number));
    }
}

#[test]
fn windows_grow_within_the_room_for_input() {
    // Clients, and the largest window that they come to.
    for (clients, input_bytes_max, largest_bytes) in
        [(1, 1 << 30, 2 << 20), (100, 8 << 20, 64 << 10)]
    {
        let settings = WorkerSettings {
            input_bytes_max,
            ..settings(200)
        };
        let mut site = Site::new(settings);
        for _ in 0..clients {
            let number = site.connect();
            site.request(number, "POST", "/", &vec![b'x'; 4_000_000 / clients]);
            site.carry(number);
            assert_eq!(site.clients[number].in_flight(), 0);
        }
        let windows = site.worker.window_bytes();
        let all: usize = windows.iter().sum();
        assert!(2 * all <= input_bytes_max, "{all}");
        assert!(windows.iter().max() >= Some(&largest_bytes), "{windows:?}");
        let first_bytes = session::bytes_at_first(&settings);
        assert!(windows.iter().min() >= Some(&first_bytes), "{windows:?}");
    }
}

#[test]
fn routes_answer_as_over_the_other_protocols() {
    let mut site = Site::new(settings(8));
    let client = site.connect();
    for (method, path, body_bytes, status, expected) in [
        ("GET", "/", 0, 200, vec![]),
        ("POST", "/", 1 << 20, 200, vec![]),
        ("GET", "/bytes/3", 0, 200, letters(3)),
        ("GET", "/bytes/3m", 0, 200, letters(3 << 20)),
        ("HEAD", "/bytes/3m", 0, 200, vec![]),
        ("GET", "/bytes/0", 0, 200, vec![]),
        ("GET", "/chunked/50k", 0, 200, letters(50 << 10)),
        ("GET", "/chunked/0", 0, 200, vec![]),
        ("GET", "/status/204", 0, 204, vec![]),
        ("PUT", "/status/503", 5, 503, vec![]),
    ] {
        let (reply, body) = site.answered(client, method, path, &vec![b'x'; body_bytes]);
        assert_eq!(reply.status, status, "{method} {path}");
        assert!(body == expected, "{method} {path}: {}", body.len());
    }
    let (reply, text) = site.answered(client, "GET", "/nowhere", b"");
    assert_eq!((reply.status, text.is_empty()), (404, false));
    let (reply, _) = site.answered(client, "GET", "/interim/5", b"");
    assert_eq!((reply.status, reply.interim), (200, 5));
    let (reply, text) = site.answered(client, "GET", "/routes", b"");
    assert_eq!(reply.status, 200);
    assert!(text.starts_with(b"/ "));
    let before_ns = site.now_ns();
    site.answered(client, "GET", "/delay/30ms", b"");
    assert_eq!(site.now_ns() - before_ns, 30 * MS);
    let (_, counters) = site.answered(client, "GET", "/counters", b"");
    let counters: Counters = serde_json::from_slice(&counters).unwrap();
    assert_eq!((counters.requests, counters.replies), (14, 14));
    assert_eq!(counters.requests_by_method["POST"], 1);
    let replies = (counters.replies_by_status[&200], counters.replies_interim);
    assert_eq!((replies, counters.replies_delayed), ((11, 5), 1));
    let connections = (counters.connections_http3, counters.connections_live);
    assert_eq!(connections, (1, 1));
    assert!(counters.bytes_received > 1 << 20 && counters.bytes_sent > 3 << 20);
    site.shared.stop.store(true, Ordering::Relaxed);
    site.worker.run().unwrap();
    let totals = site.counters();
    assert_eq!((totals.requests, totals.counters_requests), (14, 1));
    assert_eq!(totals.bytes_sent, counters.bytes_sent);
    assert_eq!(totals.connections_live, 0);
    assert_eq!(site.outcome(client).code(), ErrorCode::NoError.number());
}

#[test]
fn answers_of_streams_do_not_wait_for_each_other() {
    let mut site = Site::new(settings(8));
    let client = site.connect();
    site.request(client, "GET", "/delay/50ms", b"");
    for _ in 0..50 {
        site.request(client, "GET", "/bytes/100", b"");
    }
    for in_flight in (0..=50).rev() {
        let RequestOutcome::Answered(reply, body) = site.outcome(client) else {
            panic!("an answer");
        };
        let body_bytes = if in_flight == 0 { 0 } else { 100 };
        assert_eq!((reply.status, body.len()), (200, body_bytes));
        assert_eq!(site.clients[client].in_flight(), in_flight);
    }
}

#[test]
fn faults_have_the_codes_of_the_rfc() {
    let reset = StreamFailure::Reset;
    let mut site = Site::new(settings(8));
    for (path, expected) in [
        ("/reset-stream", reset(ErrorCode::InternalError)),
        ("/reset-stream/77", reset(ErrorCode::Other(77))),
        ("/refuse", StreamFailure::NotProcessed),
        ("/truncate/1000", reset(ErrorCode::InternalError)),
    ] {
        let client = site.connect();
        let RequestOutcome::Failed(why) = site.ask(client, path) else {
            panic!("{path}");
        };
        assert_eq!(why, expected, "{path}");
        site.answered(client, "GET", "/", b"");
    }
    for (path, expected) in [
        ("/random-close/100", ErrorCode::NoError),
        ("/reset", ErrorCode::InternalError),
    ] {
        let client = site.connect();
        assert_eq!(site.ask(client, path).code(), expected.number(), "{path}");
    }
    let totals = site.counters();
    assert_eq!((totals.requests, totals.faults, totals.replies), (10, 6, 4));
    for kind in ["stream_reset", "refused", "truncated", "closed", "reset"] {
        assert!(totals.faults_by_kind.contains_key(kind), "{kind}");
    }
}

#[test]
fn a_connection_ends_behind_goaway() {
    let mut settings = settings(8);
    settings.http2.requests_max = NonZeroU64::new(3);
    let mut site = Site::new(settings);
    let client = site.connect();
    for _ in 0..2 {
        site.answered(client, "GET", "/", b"");
    }
    assert!(matches!(site.ask(client, "/"), RequestOutcome::GoneAway));
    assert!(matches!(site.outcome(client), RequestOutcome::Answered(..)));
    assert!(site.clients[client].is_spent());
    assert_eq!(site.outcome(client).code(), ErrorCode::NoError.number());
    // The request itself is not taken in, and the code comes at the end.
    let client = site.connect();
    site.request(client, "GET", "/goaway/321", b"");
    let mut has_failed = false;
    let code = loop {
        match site.outcome(client) {
            RequestOutcome::GoneAway => {}
            RequestOutcome::Failed(StreamFailure::NotProcessed) => has_failed = true,
            ended => break ended.code(),
        }
    };
    assert_eq!((has_failed, code), (true, 321));
    assert_eq!(site.counters().goaways, 2);
}

#[test]
fn what_is_one_too_many_is_refused_and_idle_connections_end() {
    let mut site = Site::new(WorkerSettings {
        idle_timeout_ns: Some(300 * MS),
        ..settings(1)
    });
    let first = site.connect();
    let second = site.join();
    let RequestOutcome::Ended(Ended::Lost(Lost::Closed { code, .. })) = site.outcome(second) else {
        panic!("a refusal");
    };
    assert_eq!(code, quic::ErrorCode::ConnectionRefused);
    let RequestOutcome::Ended(ended) = site.outcome(first) else {
        panic!("an idle connection ends");
    };
    assert_eq!(ended, Ended::Lost(Lost::Idle));
    // The server learns of it by its own clock.
    site.pass(SECOND_NS);
    let third = site.connect();
    site.answered(third, "GET", "/", b"");
    let totals = site.counters();
    assert_eq!((totals.accepts_failed, totals.connections_accepted), (1, 2));
    assert_eq!(totals.connections_timed_out, 1);
}
