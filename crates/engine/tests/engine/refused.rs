//! Servers that refuse handshakes of QUIC, some or all.

use std::collections::HashMap;
use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use brunt_load::{HttpChoice, Plan, Target};
use brunt_proto::http3::Server;
use brunt_proto::quic::{ServerTransport, TransportOptions};
use brunt_proto::tls::{ServerOptions, ServerSide};
use brunt_record::{FailureKind, Run};
use brunt_server::{ListenAddress, Running, ServeOptions, TlsOptions};
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};

use crate::common::{Kind, choice, expect_valid, failures, lifetime, many, plan, run, trust};

const DATAGRAM_BYTES_MAX: usize = 65_535;
/// How often those who forward datagrams look whether they are still wanted.
const LOOK: Duration = Duration::from_millis(20);

/// A server that refuses every handshake.
fn refusing(origin: Instant) -> Server {
    let key = rcgen::KeyPair::generate().expect("a key");
    let params = rcgen::CertificateParams::new(vec!["localhost".to_owned()]).expect("parameters");
    let certificate = params.self_signed(&key).expect("a certificate");
    let key = PrivateKeyDer::from(PrivatePkcs8KeyDer::from(key.serialize_der()));
    let options = ServerOptions {
        alpn: vec![b"h3".to_vec()],
        ..ServerOptions::new(vec![certificate.der().clone()], key)
    };
    let side = ServerSide::new(options).expect("a server's side");
    let transport = ServerTransport::new(&side, TransportOptions::default(), origin);
    Server::new(&transport.expect("a transport"), 0, [3; 32])
}

/// Stands before a server of HTTP/3. What each client sends first is refused; the rest goes on to
/// that server.
struct Gate {
    address: SocketAddr,
    refused: Arc<AtomicU64>,
    is_over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Gate {
    fn before(server: SocketAddr) -> Self {
        let front = UdpSocket::bind("127.0.0.1:0").expect("a socket");
        front.set_read_timeout(Some(LOOK)).expect("a time-out");
        let address = front.local_addr().expect("an address");
        let (refused, is_over) = (
            Arc::new(AtomicU64::new(0)),
            Arc::new(AtomicBool::new(false)),
        );
        let (counted, ends) = (Arc::clone(&refused), Arc::clone(&is_over));
        let thread = std::thread::spawn(move || stand(&front, server, &counted, &ends));
        Self {
            address,
            refused,
            is_over,
            thread: Some(thread),
        }
    }

    fn refused(&self) -> u64 {
        self.refused.load(Ordering::Relaxed)
    }
}

impl Drop for Gate {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

fn stand(front: &UdpSocket, server: SocketAddr, refused: &AtomicU64, is_over: &AtomicBool) {
    let mut refusing = refusing(Instant::now());
    let mut back: HashMap<SocketAddr, UdpSocket> = HashMap::new();
    let mut buffer = vec![0; DATAGRAM_BYTES_MAX];
    std::thread::scope(|scope| {
        while !is_over.load(Ordering::Relaxed) {
            let Ok((bytes, client)) = front.recv_from(&mut buffer) else {
                continue;
            };
            if let Some(back) = back.get(&client) {
                let _ = back.send(&buffer[..bytes]);
                continue;
            }
            let mut answer = Vec::new();
            refusing.receive(client, &buffer[..bytes], None, 0, &mut answer);
            assert!(!answer.is_empty(), "it refuses");
            refused.fetch_add(1, Ordering::Relaxed);
            let _ = front.send_to(&answer, client);
            let socket = UdpSocket::bind("127.0.0.1:0").expect("a socket");
            socket.connect(server).expect("a connected socket");
            socket.set_read_timeout(Some(LOOK)).expect("a time-out");
            let replies = socket.try_clone().expect("the same socket");
            back.insert(client, socket);
            scope.spawn(move || {
                let mut buffer = vec![0; DATAGRAM_BYTES_MAX];
                while !is_over.load(Ordering::Relaxed) {
                    if let Ok(bytes) = replies.recv(&mut buffer) {
                        let _ = front.send_to(&buffer[..bytes], client);
                    }
                }
            });
        }
    });
}

/// A server of HTTP/3 as `change` has it, and its address.
fn serve(change: impl FnOnce(&mut ServeOptions)) -> (Running, SocketAddr) {
    let mut options = ServeOptions::new(ListenAddress::Tcp(([127, 0, 0, 1], 0).into()));
    options.tls = Some(TlsOptions::default());
    options.http3 = true;
    change(&mut options);
    let serving = brunt_server::start(&options).expect("a server");
    let ListenAddress::Tcp(address) = *serving.address() else {
        panic!("it has a port");
    };
    (serving, address)
}

/// Loads `address`, which is that of `serving` or of what stands before it.
fn load(kind: Kind, address: SocketAddr, serving: &Running) -> Run {
    let mut plan: Plan = plan("http://127.0.0.1/", choice(kind));
    plan.target = Target::parse(&format!("https://{address}/"), None).expect("a URL");
    plan.connection.protocol = HttpChoice::HTTP3.into();
    trust(&mut plan, serving);
    plan.load.connections = many(4);
    run(plan)
}

fn one_refusal_is_no_failure(kind: Kind) {
    let (serving, server) = serve(|_| {});
    let gate = Gate::before(server);
    let run = load(kind, gate.address, &serving);
    expect_valid(&run, "a refusal each");
    assert_eq!(failures(&run), []);
    let quic = lifetime(&run).quic;
    assert_eq!(quic.handshakes_retried, 4);
    // The connection before the run was refused once, too.
    assert_eq!(gate.refused(), 5);
    assert!(lifetime(&run).replies.total() > 0);
    drop(gate);
    serving.stop().expect("it stops");
}

fn what_is_refused_again_is_a_failure(kind: Kind) {
    let (serving, server) = serve(|options| options.connections_max = 2);
    let run = load(kind, server, &serving);
    expect_valid(&run, "refused for good");
    let (counts, failed) = (lifetime(&run), failures(&run));
    let [(FailureKind::QuicRefused, refused)] = failed[..] else {
        panic!("{failed:?}");
    };
    assert!(refused > 0);
    assert!(counts.quic.handshakes_retried >= refused, "{counts:?}");
    assert!(counts.replies.total() > 0);
    serving.stop().expect("it stops");
}

crate::common::on_both_kernels![
    one_refusal_is_no_failure,
    what_is_refused_again_is_a_failure
];
