//! The running server over HTTP/2 and TLS, with clients that are not ours: h2, and rustls itself.

use std::future::Future;
use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::time::Duration;

use brunt_server::{Identity, Running, TlsOptions, TlsVersion};
use h2::Reason;
use h2::client::{Connection, SendRequest};
use http::Request;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_rustls::TlsConnector;

use crate::{BACKENDS, LIMIT_NS, letters, serve, stream_to, wait_for};

/// How a client speaks TLS: trusting the server's certificate, offering `alpn`, as `identity`.
pub(crate) fn client(
    server: &Running,
    alpn: &[&str],
    identity: Option<(Vec<CertificateDer<'static>>, PrivateKeyDer<'static>)>,
) -> Arc<ClientConfig> {
    let mut roots = RootCertStore::empty();
    roots.add(server.certificates()[0].clone()).unwrap();
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let builder = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots);
    let mut config = match identity {
        Some((certificates, key)) => builder.with_client_auth_cert(certificates, key).unwrap(),
        None => builder.with_no_client_auth(),
    };
    config.alpn_protocols = alpn.iter().map(|name| name.as_bytes().to_vec()).collect();
    Arc::new(config)
}

pub(crate) type Secured = StreamOwned<ClientConnection, TcpStream>;

/// A connection after its handshake, in which the client asks for the server by `name`.
pub(crate) fn secure(
    socket: TcpStream,
    config: &Arc<ClientConfig>,
    name: &str,
) -> io::Result<Secured> {
    let name = ServerName::try_from(name.to_owned()).unwrap();
    let session = ClientConnection::new(Arc::clone(config), name).map_err(io::Error::other)?;
    let mut stream = StreamOwned::new(session, socket);
    while stream.conn.is_handshaking() {
        stream.conn.complete_io(&mut stream.sock)?;
    }
    Ok(stream)
}

fn connect(server: &Running) -> TcpStream {
    stream_to(server.address())
}

type Sender = SendRequest<&'static [u8]>;

/// Speaks HTTP/2 on a socket.
async fn handshake<S: AsyncRead + AsyncWrite + Send + Unpin + 'static>(socket: S) -> Sender {
    let mut builder = h2::client::Builder::new();
    let handshake = builder.initial_window_size(1 << 20).handshake(socket);
    let (sender, connection): (Sender, Connection<_, _>) = handshake.await.unwrap();
    tokio::spawn(connection);
    sender
}

/// Runs an exchange over HTTP/2, over TLS where the server speaks it.
fn converse<F: Future>(server: &Running, exchange: impl FnOnce(Sender) -> F) -> F::Output {
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    let exchange = async {
        let socket = connect(server);
        socket.set_nonblocking(true).unwrap();
        let socket = tokio::net::TcpStream::from_std(socket).unwrap();
        if server.certificates().is_empty() {
            return exchange(handshake(socket).await).await;
        }
        let connector = TlsConnector::from(client(server, &["h2"], None));
        let secured = connector.connect("localhost".try_into().unwrap(), socket);
        let socket = secured.await.unwrap();
        assert_eq!(socket.get_ref().1.alpn_protocol(), Some(&b"h2"[..]));
        exchange(handshake(socket).await).await
    };
    let limit = Duration::from_nanos(LIMIT_NS);
    let runtime = runtime.enable_all().build().unwrap();
    runtime.block_on(async { tokio::time::timeout(limit, exchange).await.unwrap() })
}

/// Status and body of the reply to a GET.
async fn get(server: &Running, sender: &Sender, path: &str) -> Result<(u16, Vec<u8>), h2::Error> {
    let mut sender = sender.clone().ready().await?;
    let uri = format!("http://{}{path}", server.address());
    let request = Request::builder().uri(uri).body(()).unwrap();
    let (reply, _) = sender.send_request(request, true)?;
    let reply = reply.await?;
    let status = reply.status().as_u16();
    let (mut stream, mut body) = (reply.into_body(), Vec::new());
    while let Some(piece) = stream.data().await {
        let piece = piece?;
        body.extend_from_slice(&piece);
        stream.flow_control().release_capacity(piece.len())?;
    }
    stream.trailers().await?;
    Ok((status, body))
}

/// Runs the test on each backend, in clear text and over TLS.
fn each(test: impl Fn(&Running)) {
    for backend in BACKENDS {
        for is_secure in [false, true] {
            let server = serve(|options| {
                options.backend = backend;
                options.tls = is_secure.then(TlsOptions::default);
            });
            test(&server);
            server.stop().unwrap();
        }
    }
}

/// Status and bytes of the body, or the code of the reset.
type Expected = Result<(u16, u64), Reason>;

#[test]
fn answers_come_as_documented_over_http2() {
    let cases: [(&str, Expected); 21] = [
        ("/", Ok((200, 0))),
        ("/bytes/100", Ok((200, 100))),
        ("/bytes/5m", Ok((200, 5 << 20))),
        ("/chunked/5", Ok((200, 5))),
        ("/chunked/1m", Ok((200, 1 << 20))),
        ("/status/204", Ok((204, 0))),
        ("/status/503", Ok((503, 0))),
        ("/delay/1ms", Ok((200, 0))),
        ("/stall/1ms/2ms", Ok((200, 0))),
        ("/drift/0ms/1ms/1s", Ok((200, 0))),
        ("/locked/1ms", Ok((200, 0))),
        ("/compute/1ms", Ok((200, 0))),
        ("/limit/1", Ok((200, 0))),
        ("/limit/1", Ok((429, 0))),
        ("/interim/2", Ok((200, 0))),
        ("/refuse-after/1", Ok((200, 0))),
        ("/random-close/0", Ok((200, 0))),
        ("/truncate/10", Err(Reason::INTERNAL_ERROR)),
        ("/reset-stream/8", Err(Reason::CANCEL)),
        ("/refuse", Err(Reason::REFUSED_STREAM)),
        ("/random-refuse/100", Err(Reason::REFUSED_STREAM)),
    ];
    each(|server| {
        converse(server, |sender| async move {
            for (path, expected) in cases {
                let got = get(server, &sender, path).await;
                let got = got.map_err(|error| error.reason().unwrap());
                let expected = expected.map(|(status, bytes)| (status, letters(bytes)));
                assert!(got == expected, "{path}");
            }
        });
        let totals = server.counters();
        assert_eq!((totals.requests, totals.faults), (21, 4));
        assert_eq!(totals.replies, 17);
    });
}

/// Asks over HTTP/1.1 and reads to the end of the connection.
fn ask(stream: &mut Secured, path: &str) -> Vec<u8> {
    let request = format!("GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).unwrap();
    let mut reply = Vec::new();
    stream.read_to_end(&mut reply).unwrap();
    let end = reply
        .windows(4)
        .position(|four| four == b"\r\n\r\n")
        .unwrap();
    reply.split_off(end + 4)
}

#[test]
fn http_1_1_is_spoken_over_tls() {
    for backend in BACKENDS {
        for version in [TlsVersion::Tls12, TlsVersion::Tls13] {
            let server = serve(|options| {
                options.backend = backend;
                options.tls = Some(TlsOptions {
                    version_min: version,
                    version_max: version,
                    ..TlsOptions::default()
                });
            });
            let config = client(&server, &["http/1.1"], None);
            for name in ["localhost", "127.0.0.1", "localhost"] {
                let mut stream = secure(connect(&server), &config, name).unwrap();
                assert_eq!(stream.conn.alpn_protocol(), Some(&b"http/1.1"[..]));
                let body = ask(&mut stream, "/bytes/300k");
                assert!(body == letters(300 << 10), "{name}");
            }
            let totals = server.stop().unwrap();
            // The third one knew the first one's session.
            assert_eq!((totals.requests, totals.handshakes_resumed), (3, 1));
            assert_eq!((totals.connections_http2, totals.handshakes_failed), (0, 0));
        }
    }
}

#[test]
fn what_is_offered_can_be_chosen() {
    let server = serve(|options| {
        options.tls = Some(TlsOptions {
            alpn: vec!["http/1.1".to_owned()],
            tickets: false,
            ..TlsOptions::default()
        });
    });
    let config = client(&server, &["h2", "http/1.1"], None);
    for _ in 0..2 {
        let mut stream = secure(connect(&server), &config, "localhost").unwrap();
        assert_eq!(stream.conn.alpn_protocol(), Some(&b"http/1.1"[..]));
        assert_eq!(ask(&mut stream, "/bytes/3"), b"abc");
    }
    // Nothing in common.
    let config = client(&server, &["h2"], None);
    assert!(secure(connect(&server), &config, "localhost").is_err());
    let totals = server.stop().unwrap();
    assert_eq!((totals.requests, totals.handshakes_resumed), (2, 0));
    assert_eq!(totals.connections_accepted, 2);
    assert_eq!(totals.handshakes_failed, 1);
    assert_eq!(totals.accepts_failed, 0);
}

#[test]
fn clients_may_have_to_show_a_certificate() {
    let key = rcgen::KeyPair::generate().unwrap();
    let params = rcgen::CertificateParams::new(["client".to_owned()]).unwrap();
    let certificate = params.self_signed(&key).unwrap();
    let roots = vec![certificate.der().clone()];
    // The server's own certificate is given, too.
    let own_key = rcgen::KeyPair::generate().unwrap();
    let params = rcgen::CertificateParams::new(["server.test".to_owned()]).unwrap();
    let own = params.self_signed(&own_key).unwrap();
    let identity = Identity::Given {
        certificates: vec![own.der().clone()],
        key: PrivateKeyDer::try_from(own_key.serialize_der()).unwrap(),
    };
    let server = serve(|options| {
        options.tls = Some(TlsOptions {
            identity,
            client_roots: Some(roots.clone()),
            ..TlsOptions::default()
        });
    });
    assert_eq!(server.certificates(), [own.der().clone()]);
    let key = PrivateKeyDer::try_from(key.serialize_der()).unwrap();
    let config = client(&server, &[], Some((roots, key)));
    let mut stream = secure(connect(&server), &config, "server.test").unwrap();
    assert_eq!(ask(&mut stream, "/bytes/3"), b"abc");
    // Without one, the client's own part of the handshake is complete before the alert comes.
    let config = client(&server, &[], None);
    let refused = secure(connect(&server), &config, "server.test").and_then(|mut stream| {
        stream.write_all(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")?;
        stream.read_exact(&mut [0; 1])
    });
    assert!(refused.is_err());
    let totals = wait_for(&server, |totals| totals.handshakes_failed > 0);
    assert_eq!((totals.requests, totals.handshakes_failed), (1, 1));
    server.stop().unwrap();
}
