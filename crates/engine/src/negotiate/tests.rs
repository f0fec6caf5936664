//! Servers of every kind, and what is negotiated with them.

use std::net::SocketAddr;
use std::num::NonZeroU32;
use std::path::PathBuf;
use std::time::Duration;

use brunt_io::backend::Peer;
use brunt_io::tls_config;
use brunt_io::tls_peer::{self, Authority, Identity, serve};
use brunt_load::{ClientIdentity, HttpChoice, RequestSet, RequestSpec, Target, TlsVersion};
use brunt_proto::tls::{ALPN_HTTP1, ALPN_HTTP2, ServerOptions, ServerSide};

use super::*;

/// Beyond any delay of a busy machine.
const LONG_NS: u64 = 20_000_000_000;
/// What must not come is waited for as long.
const SHORT_NS: u64 = 30_000_000;

const BOTH: &[&[u8]] = &[ALPN_HTTP2, ALPN_HTTP1];

fn many(count: u32) -> NonZeroU32 {
    NonZeroU32::new(count).unwrap()
}

fn plan(url: &str, http: HttpChoice) -> Plan {
    let target = Target::parse(url, None).expect("a URL");
    let requests = RequestSet::one(RequestSpec::get(&target.path));
    let mut plan = Plan::bare(target, requests);
    plan.load.connections = many(1);
    plan.connection.protocol = http.into();
    plan.load.stop.duration_ns = Some(1);
    plan.limits.setup_timeout_ns = Some(LONG_NS);
    plan.limits.connect_timeout_ns = LONG_NS;
    plan
}

/// The plan, carried out at this address.
fn negotiate_with(plan: &Plan, address: SocketAddr) -> Result<Negotiated, NegotiateError> {
    let patience = Duration::from_nanos(LONG_NS);
    Negotiation {
        plan,
        link: Link::connect(&Peer::Tcp(address), patience).unwrap(),
        deadline: Deadline::after(plan.limits.connect_timeout_ns),
        refusal_ns: LONG_NS,
    }
    .run(tls_config::for_target(plan).unwrap())
}

/// What a negotiation that fails says.
fn refusal(plan: &Plan, address: SocketAddr) -> String {
    negotiate_with(plan, address).unwrap_err().to_string()
}

/// Refuses a message without these words.
fn expect_words(message: &str, words: &[&str]) {
    assert!(
        words.iter().all(|words| message.contains(words)),
        "{message}"
    );
}

/// An authority that the plans trust, and a server certified by it.
struct World {
    authority: Authority,
    server: Identity,
    directory: tempfile::TempDir,
}

impl World {
    fn new() -> Self {
        let authority = Authority::new("trusted");
        let world = Self {
            server: authority.identity("127.0.0.1"),
            directory: tempfile::tempdir().unwrap(),
            authority,
        };
        world.file("roots.pem", &world.authority.pem());
        world
    }

    fn file(&self, name: &str, text: &str) -> PathBuf {
        let path = self.directory.path().join(name);
        std::fs::write(&path, text).unwrap();
        path
    }

    fn plan(&self, http: HttpChoice) -> Plan {
        let mut plan = plan("https://127.0.0.1/", http);
        plan.connection.tls.roots = Some(self.directory.path().join("roots.pem").into());
        plan
    }

    /// A server that speaks these protocols, and gives these bytes when the handshake is complete.
    fn serve(&self, alpn: &[&[u8]], bytes: Vec<u8>) -> SocketAddr {
        serve_tls(self.server.options(alpn), bytes)
    }
}

fn serve_tls(options: ServerOptions, bytes: Vec<u8>) -> SocketAddr {
    let side = ServerSide::new(options).unwrap();
    serve(move |mut peer| {
        if peer.secure(&side) {
            peer.give(&bytes);
        }
        peer.wait();
    })
}

fn serve_clear(bytes: &'static [u8]) -> SocketAddr {
    serve(move |mut peer| {
        peer.give(bytes);
        peer.wait();
    })
}

/// A SETTINGS frame (RFC 9113 section 6.5), with a limit of streams.
fn settings(streams_max: Option<u32>) -> Vec<u8> {
    const MAX_CONCURRENT_STREAMS: [u8; 2] = [0, 3];
    match streams_max {
        None => vec![0, 0, 0, 4, 0, 0, 0, 0, 0],
        Some(count) => [
            &[0, 0, 6, 4, 0, 0, 0, 0, 0][..],
            &MAX_CONCURRENT_STREAMS,
            &count.to_be_bytes(),
        ]
        .concat(),
    }
}

#[test]
fn what_is_negotiated_over_tls() {
    let none_at_all: &[&[u8]] = &[];
    let world = World::new();
    let (auto, only1, only2) = (HttpChoice::AUTO, HttpChoice::HTTP1, HttpChoice::HTTP2);
    let (http1, http2) = (Protocol::HTTP1, Protocol::HTTP2);
    let no_h2 = Some("the server's ALPN offers no h2");
    let few = Some("the server allows 10 streams per connection");
    // (asked for, the server's ALPN and SETTINGS, --streams, --pipeline; protocol, depth, note)
    let cases = [
        (auto, BOTH, None, 1, 1, http2, 1, None),
        (auto, BOTH, Some(100), 10, 1, http2, 10, None),
        (auto, BOTH, Some(100), 8, 4, http2, 8, None),
        (auto, &BOTH[1..], None, 8, 4, http1, 4, no_h2),
        (auto, BOTH, Some(10), 100, 1, http2, 10, few),
        (only2, &BOTH[..1], Some(100), 100, 1, http2, 100, None),
        (only1, BOTH, None, 1, 1, http1, 1, None),
        (only1, none_at_all, None, 1, 8, http1, 8, None),
        (auto, &BOTH[1..], None, 1, 1, http1, 1, no_h2),
        (auto, none_at_all, None, 8, 1, http1, 1, no_h2),
        (auto, &BOTH[1..], None, 1, 4, http1, 4, no_h2),
    ];
    for (http, alpn, streams_max, streams, pipeline, protocol, depth, note) in cases {
        let case = format!("{http:?} {alpn:?} {streams_max:?} {streams} {pipeline}");
        let mut plan = world.plan(http);
        (plan.traffic.streams, plan.traffic.pipeline) = (many(streams), many(pipeline));
        let bytes = if protocol == Protocol::HTTP2 {
            settings(streams_max)
        } else {
            Vec::new()
        };
        let negotiated = negotiate_with(&plan, world.serve(alpn, bytes)).expect(&case);
        let found = (negotiated.protocol, negotiated.depth);
        assert_eq!(found, (protocol, depth), "{case}");
        assert_eq!(negotiated.note.as_deref(), note, "{case}");
        let is_http2 = negotiated.tls.expect(&case).client.alpn == Some(ALPN_HTTP2);
        assert_eq!(is_http2, protocol == Protocol::HTTP2, "{case}");
    }
}

#[test]
fn what_is_negotiated_in_clear_text() {
    let mut plan = plan("http://h/", HttpChoice::AUTO);
    plan.traffic.pipeline = many(3);
    // A server that says nothing is not waited for.
    let negotiated = negotiate_with(&plan, serve_clear(b"")).unwrap();
    let found = (negotiated.protocol, negotiated.depth);
    assert_eq!(found, (Protocol::HTTP1, 3));
    assert!(negotiated.tls.is_none() && negotiated.note.is_none());

    let mut plan = self::plan("http://h/", HttpChoice::HTTP2);
    plan.traffic.streams = many(7);
    let address = serve(|mut peer| {
        peer.give(&settings(Some(5)));
        peer.wait();
    });
    let negotiated = negotiate_with(&plan, address).unwrap();
    let found = (negotiated.protocol, negotiated.depth);
    assert_eq!(found, (Protocol::HTTP2, 5));
    assert!(negotiated.tls.is_none());
}

#[test]
fn tls_is_described() {
    let world = World::new();
    let mut plan = world.plan(HttpChoice::HTTP1);
    plan.connection.tls.version_max = TlsVersion::Tls12;
    plan.connection.tls.cipher_suites = vec!["TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256".to_owned()];
    plan.connection.tls.groups = vec!["secp256r1".to_owned()];
    plan.connection.tls.resumption = true;
    plan.connection.tls.insecure = true;
    plan.connection.tls.server_name = Some("other.example".to_owned());
    let negotiated = negotiate_with(&plan, world.serve(BOTH, Vec::new())).unwrap();
    assert_eq!(
        negotiated.tls.unwrap().description,
        DescribedTls {
            version: "TLS 1.2".to_owned(),
            cipher_suite: "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256".to_owned(),
            group: Some("secp256r1".to_owned()),
        }
    );
}

#[test]
fn a_certificate_for_the_server_is_shown() {
    let world = World::new();
    for (http, bytes) in [
        (HttpChoice::HTTP1, Vec::new()),
        (HttpChoice::HTTP2, settings(None)),
    ] {
        for version in [TlsVersion::Tls12, TlsVersion::Tls13] {
            let serve = || {
                let mut options = world.server.options(BOTH);
                options.client_roots = Some(vec![world.authority.certificate()]);
                serve_tls(options, bytes.clone())
            };
            let mut plan = world.plan(http);
            plan.connection.tls.version_max = version;
            let message = refusal(&plan, serve());
            expect_words(&message, &["alert", "--cert"]);

            let own = world.authority.identity("client.example");
            plan.connection.tls.identity = Some(ClientIdentity {
                certificate: world.file("own.pem", &own.certificate_pem).into(),
                key: world.file("own.key", &own.key_pem).into(),
            });
            let negotiated = negotiate_with(&plan, serve()).unwrap();
            assert!(negotiated.tls.is_some());

            let strange = Authority::new("strange").identity("client.example");
            plan.connection.tls.identity = Some(ClientIdentity {
                certificate: world.file("own.pem", &strange.certificate_pem).into(),
                key: world.file("own.key", &strange.key_pem).into(),
            });
            let message = refusal(&plan, serve());
            assert!(message.contains("alert"), "{http:?} {version:?}: {message}");
        }
    }
}

#[test]
fn servers_that_are_not_trusted() {
    let world = World::new();
    let mut plan = world.plan(HttpChoice::AUTO);
    let untrusted = Authority::new("strange").identity("127.0.0.1");
    let other_name = world.authority.identity("example.org");
    let expired = world.authority.expired("127.0.0.1");
    for (server, words, remedy) in [
        (
            &untrusted,
            "issuer that is not among the trusted roots",
            "give its root with --cacert FILE, or take",
        ),
        (
            &other_name,
            "is for example.org and not for 127.0.0.1",
            "; ask for a name that it has with --sni NAME, or take",
        ),
        (
            &expired,
            "expired on 2000-01-01",
            "expired on 2000-01-01; take",
        ),
    ] {
        let address = serve_tls(server.options(BOTH), settings(None));
        let message = refusal(&plan, address);
        assert!(
            message.starts_with("127.0.0.1 is not trusted: the certificate")
                && message.contains(words)
                && message.ends_with(&format!("{remedy} any certificate with -k")),
            "{message}"
        );
    }
    plan.connection.tls.server_name = Some("example.org".to_owned());
    let address = serve_tls(other_name.options(BOTH), settings(None));
    assert!(negotiate_with(&plan, address).is_ok());
}

#[test]
fn nothing_is_negotiated_over_tls() {
    let world = World::new();
    let none_at_all: &[&[u8]] = &[];
    // (asked for, the server's ALPN, what it gives, --pipeline, words)
    let (auto, only1, only2) = (HttpChoice::AUTO, HttpChoice::HTTP1, HttpChoice::HTTP2);
    let no_http2 = "127.0.0.1 does not offer HTTP/2 (ALPN); leave out --http2";
    let no_http1 = "127.0.0.1 does not offer HTTP/1.1 (ALPN); leave out --http1";
    let other = "127.0.0.1 chose HTTP/2 and does not speak it (it answers in HTTP/1.1); use \
                 --http1";
    let streams = "HTTP/2 is spoken with 127.0.0.1; use --streams 4, or --http1 with --pipeline 4";
    let no_stream = "SETTINGS_MAX_CONCURRENT_STREAMS is 0";
    let bad_request = b"HTTP/1.1 400 Bad Request\r\n\r\n".to_vec();
    let cases = [
        (only2, &BOTH[1..], Vec::new(), 1, no_http2),
        (only2, none_at_all, Vec::new(), 1, no_http2),
        (only1, &BOTH[..1], Vec::new(), 1, no_http1),
        (auto, BOTH, bad_request, 1, other),
        (auto, BOTH, settings(Some(0)), 1, no_stream),
        (auto, BOTH, settings(None), 4, streams),
    ];
    for (http, alpn, bytes, pipeline, words) in cases {
        let mut plan = world.plan(http);
        plan.traffic.pipeline = many(pipeline);
        let message = refusal(&plan, world.serve(alpn, bytes));
        assert!(message.contains(words), "{http:?} {alpn:?}: {message}");
    }
}

#[test]
fn no_version_in_common() {
    let world = World::new();
    let mut plan = world.plan(HttpChoice::AUTO);
    plan.connection.tls.version_min = TlsVersion::Tls13;
    let mut options = world.server.options(BOTH);
    options.version_max = Version::Tls12;
    let message = refusal(&plan, serve_tls(options, Vec::new()));
    expect_words(&message, &["protocol_version", "--tls-min"]);
}

#[test]
fn servers_that_do_not_speak_tls() {
    let world = World::new();
    let mut plan = world.plan(HttpChoice::AUTO);
    let answer = b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n";
    let message = refusal(&plan, serve_clear(answer));
    let words = "127.0.0.1 does not speak TLS; use http:// in place of https://";
    assert_eq!(message, words);

    let closes = serve(|mut peer| {
        peer.take(&mut Vec::new());
    });
    let message = refusal(&plan, closes);
    expect_words(&message, &["lost during the TLS handshake", "right port?"]);

    plan.limits.connect_timeout_ns = SHORT_NS;
    let message = refusal(&plan, serve(tls_peer::Peer::wait));
    expect_words(
        &message,
        &["did not complete the TLS handshake within 30 ms"],
    );
}

#[test]
fn no_http2_in_clear_text() {
    let answers: [(&[u8], &str); 4] = [
        (
            b"HTTP/1.1 400 Bad Request\r\n\r\n",
            "h does not speak HTTP/2 in clear text (it answers in HTTP/1.1); leave out --http2, \
             or use https://",
        ),
        (
            b"SSH-2.0-OpenSSH_9.6\r\n",
            "h does not speak HTTP/2 in clear text (",
        ),
        (
            b"\x15\x03\x03\x00\x02\x02\x46",
            "h speaks TLS; use https:// in place of http://",
        ),
        (b"", "(it closes the connection)"),
    ];
    let mut plan = plan("http://h/", HttpChoice::HTTP2);
    for (answer, words) in answers {
        let address = serve(move |mut peer| {
            peer.take(&mut Vec::new());
            peer.give(answer);
        });
        let message = refusal(&plan, address);
        assert!(message.contains(words), "{words}: {message}");
    }
    plan.limits.connect_timeout_ns = SHORT_NS;
    let message = refusal(&plan, serve_clear(b""));
    expect_words(
        &message,
        &["did not complete the exchange of HTTP/2 settings within 30 ms"],
    );
}

#[test]
fn datagrams_without_bytes_are_passed_over() {
    let server = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    let mut plan = plan("https://h/", HttpChoice::HTTP3);
    plan.connection.tls.insecure = true;
    plan.limits.connect_timeout_ns = 10 * SHORT_NS;
    let address = server.local_addr().unwrap();
    let side = tls_config::for_target(&plan).unwrap().unwrap();
    let silent = move || {
        let (_, client) = server.recv_from(&mut [0; 2_048]).unwrap();
        server.send_to(&[], client).unwrap();
        // The next one is what was not answered, sent again.
        server.recv_from(&mut [0; 2_048]).unwrap();
        server.send_to(&[], client).unwrap();
        let _ = server.recv_from(&mut [0; 2_048]);
    };
    brunt_io::threads::spawn("silent", silent).unwrap();
    let message = quic::negotiate(&plan, side, &Peer::Udp(address))
        .unwrap_err()
        .to_string();
    assert!(message.contains("within 300 ms"), "{message}");
}

#[test]
fn simulated_servers_speak_what_is_asked_for() {
    for (url, http, protocol, depth) in [
        ("http://h/", HttpChoice::AUTO, Protocol::HTTP1, 1),
        ("https://h/", HttpChoice::AUTO, Protocol::HTTP2, 9),
        ("http://h/", HttpChoice::HTTP2, Protocol::HTTP2, 9),
        ("https://h/", HttpChoice::HTTP1, Protocol::HTTP1, 1),
    ] {
        let mut plan = plan(url, http);
        plan.traffic.streams = many(9);
        let negotiated = Negotiated::unasked(&plan).unwrap();
        assert_eq!(
            (negotiated.protocol, negotiated.depth),
            (protocol, depth),
            "{url} {http:?}"
        );
    }
    let mut plan = plan("https://h/", HttpChoice::HTTP2);
    plan.traffic.pipeline = many(2);
    assert!(Negotiated::unasked(&plan).is_err());
}

#[test]
fn a_connection_of_http_2_carries_a_request_per_number_of_a_stream() {
    let streams = Protocol::HTTP2.depth.units_per_connection_max;
    assert_eq!(streams, brunt_proto::http2::STREAMS_MAX);
}
