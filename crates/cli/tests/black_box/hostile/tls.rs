//! Hostile servers of TLS: handshakes that stall or break at each flight, and sessions that do.

use std::io::{self, Read as _, Write};
use std::sync::{Arc, OnceLock};

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ServerConfig, ServerConnection, Stream};

use crate::support::certificates::{Authority, Identity};
use crate::support::hostile::Step::{self, Do, Flood, Read, Say, Wait};
use crate::support::hostile::{Peer, Serve};

use super::{Behaviour, brief, check_all, patient};

const ANSWER: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
/// The head of an answer that goes on.
const LARGE: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 1000000000\r\n\r\n";

/// An authority, and what the servers show.
struct Shown {
    trusted: Authority,
    _strange: Authority,
    good: Identity,
    strange: Identity,
}

fn shown() -> &'static Shown {
    static SHOWN: OnceLock<Shown> = OnceLock::new();
    SHOWN.get_or_init(|| {
        let trusted = Authority::new();
        let stranger = Authority::new();
        let address = ([127, 0, 0, 1], 0).into();
        Shown {
            good: trusted.server(address),
            strange: stranger.server(address),
            _strange: stranger,
            trusted,
        }
    })
}

/// The configuration of a server that shows this chain, and chooses one of these protocols.
fn config(identity: &Identity, further: usize, alpn: &[u8]) -> Arc<ServerConfig> {
    let certificate = CertificateDer::from_pem_file(&identity.certificate).expect("a certificate");
    let key = PrivateKeyDer::from_pem_file(&identity.key).expect("a key");
    let chain = vec![certificate; 1 + further];
    let provider = rustls::crypto::aws_lc_rs::default_provider();
    let config = ServerConfig::builder_with_provider(Arc::new(provider))
        .with_safe_default_protocol_versions()
        .expect("versions")
        .with_no_client_auth()
        .with_single_cert(chain, key);
    let mut config = config.expect("they belong together");
    config.alpn_protocols = vec![alpn.to_vec()];
    Arc::new(config)
}

fn good() -> Arc<ServerConfig> {
    config(&shown().good, 0, b"http/1.1")
}

/// A session, and what it is spoken over.
struct Secure<'a> {
    peer: &'a mut Peer,
    session: ServerConnection,
}

impl<'a> Secure<'a> {
    /// Completes the handshake.
    fn new(peer: &'a mut Peer, config: Arc<ServerConfig>) -> io::Result<Self> {
        let mut session = ServerConnection::new(config).expect("a session");
        while session.is_handshaking() {
            session.complete_io(&mut peer.stream)?;
        }
        Ok(Self { peer, session })
    }

    fn stream(&mut self) -> Stream<'_, ServerConnection, std::net::TcpStream> {
        Stream::new(&mut self.session, &mut self.peer.stream)
    }

    fn read_request(&mut self) -> io::Result<()> {
        let mut last = [0; 4];
        while last != *b"\r\n\r\n" {
            last.rotate_left(1);
            self.stream().read_exact(&mut last[3..])?;
        }
        Ok(())
    }

    fn say(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.stream().write_all(bytes)?;
        self.stream().flush()
    }
}

/// Takes the handshake and a request.
fn secured(peer: &mut Peer) -> io::Result<Secure<'_>> {
    let mut secure = Secure::new(peer, good())?;
    secure.read_request()?;
    Ok(secure)
}

/// Answers every request.
fn quiet() -> Serve {
    let config = good();
    Arc::new(move |peer| {
        let mut secure = Secure::new(peer, Arc::clone(&config))?;
        loop {
            secure.read_request()?;
            secure.say(ANSWER)?;
        }
    })
}

/// What a server that shows this says to the client's first flight.
fn flight(peer: &mut Peer, config: Arc<ServerConfig>) -> io::Result<Vec<u8>> {
    let mut session = ServerConnection::new(config).expect("a session");
    while !session.wants_write() {
        if session.read_tls(&mut peer.stream)? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        session.process_new_packets().expect("a first flight");
    }
    let mut bytes = Vec::new();
    while session.wants_write() {
        session.write_tls(&mut bytes)?;
    }
    Ok(bytes)
}

/// How much of its flight a server sends: more each time.
fn part(peer: &mut Peer) -> io::Result<Vec<u8>> {
    let mut bytes = flight(peer, good())?;
    let end = peer.number as usize * 211 % bytes.len();
    bytes.truncate(end);
    Ok(bytes)
}

fn hello(peer: &mut Peer) -> io::Result<()> {
    let mut header = [0; 5];
    peer.stream.read_exact(&mut header)?;
    let length = usize::from(u16::from_be_bytes([header[3], header[4]]));
    peer.stream.read_exact(&mut vec![0; length])
}

fn cut(peer: &mut Peer) -> io::Result<()> {
    let bytes = part(peer)?;
    peer.stream.write_all(&bytes)
}

fn stall(peer: &mut Peer) -> io::Result<()> {
    cut(peer)?;
    peer.follow(&[Wait])
}

fn break_off(peer: &mut Peer) -> io::Result<()> {
    cut(peer)?;
    peer.reset();
    Ok(())
}

fn flip(peer: &mut Peer) -> io::Result<()> {
    let mut bytes = flight(peer, good())?;
    let at = (6 + peer.number as usize * 101) % bytes.len();
    bytes[at] ^= 0x40;
    peer.stream.write_all(&bytes)?;
    peer.follow(&[Read])
}

fn show(peer: &mut Peer, config: Arc<ServerConfig>) -> io::Result<()> {
    let bytes = flight(peer, config)?;
    peer.stream.write_all(&bytes)?;
    peer.follow(&[Read])
}

/// Sends this as it is, after a request over TLS.
fn raw(peer: &mut Peer, bytes: &[u8], then: Step) -> io::Result<()> {
    secured(peer)?;
    peer.stream.write_all(bytes)?;
    peer.follow(&[then])
}

fn update_keys(peer: &mut Peer) -> io::Result<()> {
    let mut secure = secured(peer)?;
    loop {
        secure
            .session
            .refresh_traffic_keys()
            .map_err(io::Error::other)?;
        secure.session.write_tls(&mut secure.peer.stream)?;
    }
}

/// A server that knows no protocol of the client's refuses it.
fn other_protocol(peer: &mut Peer) -> io::Result<()> {
    Secure::new(peer, config(&shown().good, 0, b"nonsense")).map(drop)
}

fn tickets(peer: &mut Peer, count: usize) -> io::Result<()> {
    let mut config = Arc::unwrap_or_clone(good());
    config.send_tls13_tickets = count;
    config.ticketer = rustls::crypto::aws_lc_rs::Ticketer::new().expect("a ticketer");
    let mut secure = Secure::new(peer, Arc::new(config))?;
    loop {
        secure.read_request()?;
        secure.say(ANSWER)?;
    }
}

pub(super) fn behaviours() -> Vec<Behaviour> {
    let cut_short = &["handshake_cut"];
    let late = &["handshake_timed_out"];
    let broken = &["tls_failed"];
    vec![
        patient("tls: silence after the hello", late, vec![Do(hello), Wait]),
        brief("tls: a close after the hello", cut_short, vec![Do(hello)]),
        brief(
            "tls: a flight that is reset everywhere",
            cut_short,
            vec![Do(break_off)],
        ),
        patient(
            "tls: a flight that stalls everywhere",
            late,
            vec![Do(stall)],
        ),
        brief(
            "tls: a flight with wrong bits",
            &[
                "tls_failed",
                "tls_alert",
                "tls_certificate",
                "handshake_cut",
                "handshake_timed_out",
            ],
            vec![Do(flip)],
        ),
        brief(
            "tls: an answer in clear text",
            broken,
            vec![Do(hello), Say(ANSWER.to_vec()), Read],
        ),
        brief(
            "tls: a record too large",
            broken,
            vec![Do(hello), Say(vec![0x16, 3, 3, 0xff, 0xff]), Flood(vec![2])],
        ),
        brief(
            "tls: empty records without end",
            broken,
            vec![Do(hello), Flood(vec![0x16, 3, 3, 0, 0])],
        ),
        brief(
            "tls: warnings without end",
            &["tls_failed", "tls_alert"],
            vec![Do(hello), Flood(vec![0x15, 3, 3, 0, 2, 1, 90])],
        ),
        brief(
            "tls: a message of 16 MB",
            broken,
            vec![
                Do(hello),
                Say(vec![0x16, 3, 3, 0x40, 0, 2, 0xff, 0xff, 0xff]),
                Flood(vec![3]),
            ],
        ),
        brief(
            "tls: a chain of 200 certificates",
            &["tls_failed", "tls_certificate"],
            vec![Do(|peer| {
                show(peer, config(&shown().good, 200, b"http/1.1"))
            })],
        ),
        brief(
            "tls: a stranger's certificate",
            &["tls_certificate"],
            vec![Do(|peer| {
                show(peer, config(&shown().strange, 0, b"http/1.1"))
            })],
        ),
        brief(
            "tls: no common protocol",
            &["tls_alert", "other_protocol"],
            vec![Do(other_protocol)],
        ),
        brief("tls: 200 tickets", &[], vec![Do(|peer| tickets(peer, 200))]),
        // They come as one flight, whose messages lie across the ends of records. rustls gives back
        // nothing of its input while a handshake message in it is incomplete, so that a session
        // would have to keep the whole flight: it ends at our bound of 256 KiB, and rustls' own
        // connections end at 64 KiB. A server that leaves first, with an alert unread, resets.
        brief(
            "tls: 2,000 tickets",
            &["tls_broken", "idle_reset", "reset"],
            vec![Do(|peer| tickets(peer, 2_000))],
        ),
        brief(
            "tls: a body cut without notice",
            &["truncated_body"],
            vec![Do(|peer| secured(peer)?.say(LARGE))],
        ),
        brief(
            "tls: clear text in a session",
            &["tls_broken"],
            vec![Do(|peer| raw(peer, ANSWER, Read))],
        ),
        patient(
            "tls: a record that stalls",
            &["timed_out"],
            vec![Do(|peer| raw(peer, &[0x17, 3, 3, 0x40, 0, 1, 2, 3], Wait))],
        ),
        brief(
            "tls: empty records in a session without end",
            &["tls_broken"],
            vec![Do(|peer| raw(peer, &[], Flood(vec![0x17, 3, 3, 0, 0])))],
        ),
        patient(
            "tls: new keys without end",
            &["timed_out", "tls_broken"],
            vec![Do(update_keys)],
        ),
    ]
}

fn check(backend: &str) {
    let options = format!("--http1 {}", shown().trusted.trusted());
    check_all(backend, "https", &options, quiet, behaviours());
}

#[test]
fn tls_on_uring() {
    check("uring");
}

#[test]
fn tls_on_epoll() {
    check("epoll");
}
