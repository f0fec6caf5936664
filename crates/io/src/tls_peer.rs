//! For tests: a certificate authority, and servers of one connection or of all, over TLS or not.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::time::Duration;

use brunt_proto::tls::{Scratch, ServerOptions, ServerSide, Session};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};

use crate::threads;

/// No test waits this long: it bounds one that fails.
const PATIENCE: Duration = Duration::from_secs(30);

/// Signs certificates.
pub struct Authority(CertifiedIssuer<'static, KeyPair>);

/// A certificate and its key.
pub struct Identity {
    /// The certificate.
    pub certificate: CertificateDer<'static>,
    /// The certificate as PEM.
    pub certificate_pem: String,
    /// The key as PEM.
    pub key_pem: String,
    key: KeyPair,
}

impl Authority {
    /// An authority of this name.
    pub fn new(name: &str) -> Self {
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        Self(CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap())
    }

    /// The certificate.
    pub fn certificate(&self) -> CertificateDer<'static> {
        self.0.der().clone()
    }

    /// The certificate as PEM.
    pub fn pem(&self) -> String {
        self.0.pem()
    }

    /// Certifies a server of this host name or address.
    pub fn identity(&self, name: &str) -> Identity {
        self.certify(CertificateParams::new([name.to_owned()]).unwrap())
    }

    /// Certifies a server of this host name or address with a certificate that was valid until
    /// 2000-01-01.
    pub fn expired(&self, name: &str) -> Identity {
        let mut params = CertificateParams::new([name.to_owned()]).unwrap();
        params.not_after = rcgen::date_time_ymd(2000, 1, 1);
        self.certify(params)
    }

    fn certify(&self, params: CertificateParams) -> Identity {
        let key = KeyPair::generate().unwrap();
        let certificate = params.signed_by(&key, &self.0).unwrap();
        Identity {
            certificate: certificate.der().clone(),
            certificate_pem: certificate.pem(),
            key_pem: key.serialize_pem(),
            key,
        }
    }
}

impl Identity {
    /// A server of this identity that speaks these protocols.
    pub fn options(&self, alpn: &[&[u8]]) -> ServerOptions {
        let key = PrivateKeyDer::Pkcs8(self.key.serialize_der().into());
        let mut options = ServerOptions::new(vec![self.certificate.clone()], key);
        options.alpn = alpn.iter().map(|name| name.to_vec()).collect();
        options
    }
}

/// A server's end of a connection.
pub struct Peer {
    socket: TcpStream,
    session: Option<Session>,
    scratch: Scratch,
    /// Plain text that came with the end of the handshake.
    early: Vec<u8>,
}

impl Peer {
    fn new(socket: TcpStream) -> Self {
        socket.set_read_timeout(Some(PATIENCE)).unwrap();
        socket.set_write_timeout(Some(PATIENCE)).unwrap();
        Self {
            socket,
            session: None,
            scratch: Scratch::default(),
            early: Vec::new(),
        }
    }

    /// Makes the TLS handshake. False when it fails; the client got an alert.
    pub fn secure(&mut self, side: &ServerSide) -> bool {
        self.session = Some(Session::server(side).unwrap());
        let mut early = Vec::new();
        while self.session.as_ref().is_some_and(Session::is_handshaking) {
            if !self.take(&mut early) {
                return false;
            }
        }
        self.early = early;
        true
    }

    /// Appends what comes next. False at the end.
    pub fn take(&mut self, plain: &mut Vec<u8>) -> bool {
        if !self.early.is_empty() {
            plain.append(&mut self.early);
            return true;
        }
        let mut buffer = [0; 4_096];
        let count = match self.socket.read(&mut buffer) {
            Ok(0) | Err(_) => return false,
            Ok(count) => count,
        };
        let Some(session) = &mut self.session else {
            plain.extend_from_slice(&buffer[..count]);
            return true;
        };
        let mut out = Vec::new();
        let outcome = session.receive(&buffer[..count], &mut self.scratch, plain, &mut out);
        let sent = self.socket.write_all(&out);
        outcome.is_ok() && sent.is_ok()
    }

    /// Sends; whether the client still takes it makes no difference.
    pub fn give(&mut self, plain: &[u8]) {
        let mut out = Vec::new();
        match &mut self.session {
            Some(session) => session.send(plain, &mut out).unwrap(),
            None => out.extend_from_slice(plain),
        }
        let _ = self.socket.write_all(&out);
    }

    /// Whether the client has said that nothing more comes.
    pub fn is_ended(&self) -> bool {
        self.session.as_ref().is_some_and(Session::is_ended)
    }

    /// Takes all until the client closes, so that nothing given is lost to a reset.
    pub fn wait(mut self) {
        let mut plain = Vec::new();
        while self.take(&mut plain) {
            plain.clear();
        }
    }
}

/// A server that accepts one connection.
pub fn serve(behave: impl FnOnce(Peer) + Send + 'static) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    threads::spawn("peer", move || {
        let (socket, _) = listener.accept().unwrap();
        behave(Peer::new(socket));
    })
    .unwrap();
    address
}

/// A server of all connections, each in a thread.
pub fn serve_all(behave: impl Fn(Peer) + Clone + Send + 'static) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    threads::spawn("peers", move || {
        for socket in listener.incoming().flatten() {
            let behave = behave.clone();
            threads::spawn("peer", move || behave(Peer::new(socket))).unwrap();
        }
    })
    .unwrap();
    address
}
