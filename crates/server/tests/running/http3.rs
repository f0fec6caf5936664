//! The running server over HTTP/3, with brunt's client of it over plain sockets. Servers and
//! clients that are not ours check both of them elsewhere.

use std::io::ErrorKind;
use std::net::UdpSocket;
use std::num::NonZeroU64;
use std::time::Duration;

use brunt_io::clock;
use brunt_proto::http3::{
    Client, Ended, ErrorCode, Event, KnownHead, Reply, Request, StreamFailure, Template,
};
use brunt_proto::quic::{self, ClientTransport, Lost, TransportOptions};
use brunt_proto::tls::{ALPN_HTTP3, ClientOptions, ClientSide};
use brunt_proto::{BodiesWanted, Limits};
use brunt_server::{
    BackendKind, Counters, Http2Options, ListenAddress, ServeOptions, Running, TlsOptions, start,
};

use crate::{BACKENDS, LIMIT_NS, MS, letters};

fn serve(backend: Option<BackendKind>, change: impl FnOnce(&mut ServeOptions)) -> Running {
    crate::serve(|options| {
        options.backend = backend;
        options.tls = Some(TlsOptions::default());
        options.http3 = true;
        change(options);
    })
}

/// A client on a socket of its own.
struct Loader {
    socket: UdpSocket,
    client: Client,
    known: KnownHead,
    /// When a server that is waited for hangs.
    until_ns: u64,
}

/// How a request ended.
#[derive(Debug)]
enum Outcome {
    Answered(Reply, Vec<u8>),
    Failed(StreamFailure),
    GoneAway,
    Ended(Ended),
}

/// The code with which the server closed a connection.
fn code_of(ended: &Ended) -> u64 {
    match ended {
        Ended::Lost(Lost::ClosedAbove { code, .. }) => *code,
        other => panic!("{other}"),
    }
}

impl Outcome {
    fn code(&self) -> u64 {
        match self {
            Self::Ended(ended) => code_of(ended),
            other => panic!("{other:?}"),
        }
    }
}

impl Loader {
    fn connect(server: &Running) -> Self {
        Self::try_connect(server).unwrap()
    }

    fn try_connect(server: &Running) -> Result<Self, Ended> {
        let ListenAddress::Tcp(address) = server.address() else {
            panic!("an address with a port")
        };
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        socket.connect(address).unwrap();
        let mut options = ClientOptions::new("localhost");
        options.roots = server.certificates().to_vec();
        options.alpn = vec![ALPN_HTTP3.to_vec()];
        let side = ClientSide::new(options).unwrap();
        let origin = clock::origin();
        let transport = ClientTransport::new(&side, TransportOptions::default(), origin).unwrap();
        let now_ns = clock::now_ns();
        let mut loader = Self {
            socket,
            client: Client::open(&transport, 100, [1; 32], now_ns).unwrap(),
            known: KnownHead::default(),
            until_ns: now_ns + LIMIT_NS,
        };
        while !loader.client.is_ready() {
            loader.turn();
            loader.event()?;
        }
        Ok(loader)
    }

    fn limits() -> Limits {
        Limits {
            bodies: BodiesWanted {
                from_status: 0,
                bytes_max: u32::MAX,
                heads: false,
            },
            ..Limits::default()
        }
    }

    fn event(&mut self) -> Result<Option<Event>, Ended> {
        let (limits, known) = (Self::limits(), &mut self.known);
        self.client.event(clock::now_ns(), &limits, known)
    }

    /// Sends what there is, and takes what comes until a timer is due.
    fn turn(&mut self) {
        let mut out = Vec::new();
        while let Some(sent) = self.client.transmit(clock::now_ns(), &mut out) {
            for datagram in out.chunks(sent.segment_bytes.get().into()) {
                // A server that is gone is found out by what it sent before.
                let _ = self.socket.send(datagram);
            }
            out.clear();
        }
        let now_ns = clock::now_ns();
        assert!(now_ns < self.until_ns, "the server hangs");
        let left_ns = self.client.deadline_ns().saturating_sub(now_ns);
        let patience = Duration::from_nanos(left_ns.clamp(MS, 100 * MS));
        self.socket.set_read_timeout(Some(patience)).unwrap();
        let mut buffer = [0; 65_535];
        match self.socket.recv(&mut buffer) {
            Ok(length) => {
                let datagram = &buffer[..length];
                self.client.receive(datagram, None, clock::now_ns());
            }
            Err(error)
                if matches!(
                    error.kind(),
                    ErrorKind::WouldBlock | ErrorKind::ConnectionRefused
                ) => {}
            Err(error) => panic!("{error}"),
        }
        let now_ns = clock::now_ns();
        if self.client.deadline_ns() <= now_ns {
            self.client.expire(now_ns);
        }
    }

    fn request(&mut self, method: &str, path: &str, body: &[u8]) -> u32 {
        let template = Template::new(&Request {
            method,
            scheme: "https",
            authority: "localhost",
            path,
            headers: &[],
            body,
        });
        self.client.request(&template.unwrap().of_worker())
    }

    /// What comes next.
    fn outcome(&mut self) -> Outcome {
        loop {
            match self.event() {
                Ok(Some(Event::Reply { reply, .. })) => {
                    let body = self.client.take_body().unwrap_or_default();
                    return Outcome::Answered(reply, body.bytes);
                }
                Ok(Some(Event::Failed { why, .. })) => return Outcome::Failed(why),
                Ok(Some(Event::GoAway { .. })) => return Outcome::GoneAway,
                Ok(Some(Event::Ready)) => {}
                Ok(None) => self.turn(),
                Err(ended) => return Outcome::Ended(ended),
            }
        }
    }

    fn ask(&mut self, method: &str, path: &str, body: &[u8]) -> Outcome {
        self.request(method, path, body);
        self.outcome()
    }

    fn answered(&mut self, method: &str, path: &str, body: &[u8]) -> (Reply, Vec<u8>) {
        match self.ask(method, path, body) {
            Outcome::Answered(reply, body) => (reply, body),
            other => panic!("{path}: {other:?}"),
        }
    }
}

#[test]
fn routes_answer_as_over_the_other_protocols() {
    for backend in BACKENDS {
        let server = serve(backend, |_| {});
        let mut loader = Loader::connect(&server);
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
            let (reply, body) = loader.answered(method, path, &vec![b'x'; body_bytes]);
            assert_eq!(reply.status, status, "{method} {path}");
            assert!(body == expected, "{method} {path}: {}", body.len());
        }
        let (reply, text) = loader.answered("GET", "/nowhere", b"");
        assert_eq!((reply.status, text.is_empty()), (404, false));
        let (reply, _) = loader.answered("GET", "/interim/5", b"");
        assert_eq!((reply.status, reply.interim), (200, 5));
        let (reply, text) = loader.answered("GET", "/routes", b"");
        assert_eq!(reply.status, 200);
        assert!(text.starts_with(b"/ "));
        let before_ns = clock::now_ns();
        loader.answered("GET", "/delay/30ms", b"");
        assert!(clock::now_ns() - before_ns >= 30 * MS);
        let (_, counters) = loader.answered("GET", "/counters", b"");
        let counters: Counters = serde_json::from_slice(&counters).unwrap();
        assert_eq!((counters.requests, counters.replies), (14, 14));
        assert_eq!(counters.requests_by_method["POST"], 1);
        assert_eq!(
            (counters.replies_by_status[&200], counters.replies_interim),
            (11, 5)
        );
        assert_eq!(counters.replies_delayed, 1);
        assert_eq!(
            (counters.connections_http3, counters.connections_live),
            (1, 1)
        );
        assert!(counters.bytes_received > 1 << 20 && counters.bytes_sent > 3 << 20);
        let totals = server.stop().unwrap();
        assert_eq!((totals.requests, totals.counters_requests), (14, 1));
        assert_eq!(totals.bytes_sent, counters.bytes_sent);
        assert_eq!(totals.connections_live, 0);
        let ended = loop {
            loader.turn();
            if let Err(ended) = loader.event() {
                break ended;
            }
        };
        assert_eq!(code_of(&ended), ErrorCode::NoError.number());
    }
}

#[test]
fn answers_of_streams_do_not_wait_for_each_other() {
    let server = serve(None, |_| {});
    let mut loader = Loader::connect(&server);
    let late = loader.request("GET", "/delay/50ms", b"");
    for _ in 0..50 {
        loader.request("GET", "/bytes/100", b"");
    }
    for _ in 0..50 {
        let Outcome::Answered(reply, body) = loader.outcome() else {
            panic!("an answer");
        };
        assert_eq!((reply.status, body.len()), (200, 100));
    }
    assert_eq!((loader.client.in_flight(), late), (1, 0));
    assert!(matches!(loader.outcome(), Outcome::Answered(..)));
}

#[test]
fn faults_have_the_codes_of_the_rfc() {
    let reset = StreamFailure::Reset;
    let server = serve(None, |_| {});
    for (path, expected) in [
        ("/reset-stream", reset(ErrorCode::InternalError)),
        ("/reset-stream/77", reset(ErrorCode::Other(77))),
        ("/refuse", StreamFailure::NotProcessed),
        ("/truncate/1000", reset(ErrorCode::InternalError)),
    ] {
        let mut loader = Loader::connect(&server);
        let Outcome::Failed(why) = loader.ask("GET", path, b"") else {
            panic!("{path}");
        };
        assert_eq!(why, expected, "{path}");
        loader.answered("GET", "/", b"");
    }
    for (path, expected) in [
        ("/random-close/100", ErrorCode::NoError),
        ("/reset", ErrorCode::InternalError),
    ] {
        let mut loader = Loader::connect(&server);
        let outcome = loader.ask("GET", path, b"");
        assert_eq!(outcome.code(), expected.number(), "{path}");
    }
    let totals = server.stop().unwrap();
    assert_eq!((totals.requests, totals.faults, totals.replies), (10, 6, 4));
    for kind in ["stream_reset", "refused", "truncated", "closed", "reset"] {
        assert!(totals.faults_by_kind.contains_key(kind), "{kind}");
    }
}

#[test]
fn a_connection_ends_behind_goaway() {
    let server = serve(None, |options| {
        options.http2 = Http2Options {
            requests_max: NonZeroU64::new(3),
            ..Http2Options::default()
        };
    });
    let mut loader = Loader::connect(&server);
    for _ in 0..2 {
        loader.answered("GET", "/", b"");
    }
    loader.request("GET", "/", b"");
    assert!(matches!(loader.outcome(), Outcome::GoneAway));
    assert!(matches!(loader.outcome(), Outcome::Answered(..)));
    assert!(loader.client.is_spent());
    assert_eq!(loader.outcome().code(), ErrorCode::NoError.number());
    // The request itself is not taken in, and the code comes at the end.
    let mut loader = Loader::connect(&server);
    loader.request("GET", "/goaway/321", b"");
    let mut has_failed = false;
    let code = loop {
        match loader.outcome() {
            Outcome::GoneAway => {}
            Outcome::Failed(StreamFailure::NotProcessed) => has_failed = true,
            ended => break ended.code(),
        }
    };
    assert_eq!((has_failed, code), (true, 321));
    assert_eq!(server.stop().unwrap().goaways, 2);
}

#[test]
fn what_is_one_too_many_is_refused_and_idle_connections_end() {
    let server = serve(None, |options| {
        options.connections_max = 1;
        options.idle_timeout_ns = Some(300 * MS);
    });
    let mut first = Loader::connect(&server);
    let Err(Ended::Lost(Lost::Closed { code, .. })) = Loader::try_connect(&server) else {
        panic!("a refusal");
    };
    assert_eq!(code, quic::ErrorCode::ConnectionRefused);
    let Outcome::Ended(ended) = first.outcome() else {
        panic!("an idle connection ends");
    };
    assert_eq!(ended, Ended::Lost(Lost::Idle));
    // The server learns of it by its own clock.
    let mut third = loop {
        if let Ok(loader) = Loader::try_connect(&server) {
            break loader;
        }
    };
    third.answered("GET", "/", b"");
    let totals = server.stop().unwrap();
    assert!(totals.accepts_failed >= 1);
    assert_eq!(totals.connections_accepted, 2);
    assert_eq!(totals.connections_timed_out, 1);
}

#[test]
fn http3_needs_tls_and_a_port() {
    let mut options = ServeOptions::new(ListenAddress::Tcp("127.0.0.1:0".parse().unwrap()));
    options.http3 = true;
    let refused = start(&options).unwrap_err();
    assert!(refused.to_string().contains("needs TLS"), "{refused}");
}
