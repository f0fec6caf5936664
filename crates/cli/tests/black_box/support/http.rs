//! One HTTP request over a blocking socket, for what the servers say about themselves.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::Arc;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};

use super::PATIENCE;

/// The body of the reply to a GET of `path`.
pub(crate) fn get(address: SocketAddr, path: &str) -> String {
    exchange(connect(address), path)
}

fn connect(address: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(address).expect("the server listens");
    stream
        .set_read_timeout(Some(PATIENCE))
        .expect("it is not zero");
    stream
}

/// The body of the reply to a GET of `path` over TLS, from a server whose certificate leads to the
/// one in the file `root`.
pub(crate) fn get_secure(address: SocketAddr, root: &Path, path: &str) -> String {
    let mut roots = RootCertStore::empty();
    let root = CertificateDer::from_pem_file(root).expect("a certificate");
    roots.add(root).expect("a certificate that can be a root");
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("versions of the provider")
        .with_root_certificates(roots)
        .with_no_client_auth();
    let name = ServerName::from(address.ip());
    let session = ClientConnection::new(Arc::new(config), name).expect("a session");
    exchange(StreamOwned::new(session, connect(address)), path)
}

/// The body of the reply to a GET of `path` through a Unix socket.
pub(crate) fn get_unix(socket: &Path, path: &str) -> String {
    let stream = UnixStream::connect(socket).expect("the server listens");
    stream
        .set_read_timeout(Some(PATIENCE))
        .expect("it is not zero");
    exchange(stream, path)
}

fn exchange(mut stream: impl Read + Write, path: &str) -> String {
    let request = format!("GET {path} HTTP/1.1\r\nHost: test\r\nConnection: close\r\n\r\n");
    stream
        .write_all(request.as_bytes())
        .expect("the server reads");
    let mut reply = String::new();
    stream.read_to_string(&mut reply).expect("a reply in UTF-8");
    let (head, body) = reply.split_once("\r\n\r\n").expect("a whole head");
    assert!(head.starts_with("HTTP/1.1 200"), "{path}: {head}");
    body.to_owned()
}
