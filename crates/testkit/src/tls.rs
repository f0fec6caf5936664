//! What is spoken with the simulated server, and its side of TLS.
//!
//! What TLS draws at random differs from run to run, but its length does not: the server has one
//! certificate, whose Ed25519 key makes signatures of one length. So no time and no count depends
//! on it.

use std::rc::Rc;

use brunt_proto::tls::{
    ALPN_HTTP1, ALPN_HTTP2, ClientSide, ConfigError, Negotiated, Scratch, ServerOptions,
    ServerSide, Session, TlsError,
};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};

use super::message::Message;
use super::piece::Completes;
use super::served_protocol::ServedProtocol;

/// PKCS #8 of an Ed25519 key (RFC 8410 section 7), up to the key itself.
const KEY_PREFIX: [u8; 16] = [
    0x30, 0x2e, 0x02, 0x01, 0x00, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x04, 0x22, 0x04, 0x20,
];
/// The simulated server's key, which protects nothing.
const KEY: &[u8; 32] = b"simulated servers have no secret";
/// The server's certificate, signed by itself. Clients in a simulation take any.
const CERTIFICATE: &[u8] = include_bytes!("certificate.der");

/// The type of a record.
const CHANGE_CIPHER_SPEC: u8 = 20;

/// What brunt and the simulated server speak.
#[derive(Clone, Debug, Default)]
pub(crate) struct Wire {
    /// The protocol above TCP and TLS.
    pub(crate) served_protocol: ServedProtocol,
    /// What the server offers, over TLS.
    pub(crate) tls: Option<ServerSide>,
}

impl Wire {
    /// The protocol over TLS: the only HTTP that the server offers (ALPN).
    ///
    /// # Errors
    ///
    /// None, unless the TLS library is broken.
    pub(crate) fn secure(served_protocol: ServedProtocol) -> Result<Self, ConfigError> {
        let alpn = match served_protocol {
            ServedProtocol::Http1 | ServedProtocol::WebSocket => Some(ALPN_HTTP1),
            ServedProtocol::Http2 => Some(ALPN_HTTP2),
            ServedProtocol::Messages | ServedProtocol::Streams => None,
        };
        Ok(Self {
            served_protocol,
            tls: Some(server_side(alpn)?),
        })
    }

    /// The server's side of one more connection.
    pub(super) fn server_tls(&self) -> Option<ServerTls> {
        let side = self.tls.as_ref()?;
        Some(ServerTls {
            session: Session::server(side).ok(),
            scratch: Scratch::default(),
            has_begun: false,
        })
    }
}

/// The side of servers that offer this protocol alone (ALPN), or none.
///
/// # Errors
///
/// None, unless the TLS library is broken.
pub(crate) fn server_side(alpn: Option<&[u8]>) -> Result<ServerSide, ConfigError> {
    let key = [KEY_PREFIX.as_slice(), KEY].concat();
    let mut options = ServerOptions::new(
        vec![CertificateDer::from(CERTIFICATE)],
        PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key)),
    );
    options.alpn = alpn.map(<[u8]>::to_vec).into_iter().collect();
    ServerSide::new(options)
}

/// What `client` negotiates with servers of this side, found out in memory.
///
/// # Errors
///
/// There is nothing that both can do.
pub(crate) fn negotiate(client: &ClientSide, side: &ServerSide) -> Result<Negotiated, TlsError> {
    let incomplete = || TlsError::Broken("the handshake does not end".to_owned());
    let (mut client, mut server) = (Session::client(client)?, Session::server(side)?);
    let (mut scratch, mut plain) = (Scratch::default(), Vec::new());
    let (mut to_client, mut to_server) = (Vec::new(), Vec::new());
    // A handshake has up to four flights; the first one waits for nothing.
    for _ in 0..4 {
        client.receive(&to_client, &mut scratch, &mut plain, &mut to_server)?;
        to_client.clear();
        server.receive(&to_server, &mut scratch, &mut plain, &mut to_client)?;
        to_server.clear();
    }
    client.negotiated().ok_or_else(incomplete)
}

/// The server's side of one connection. It ends without a `close_notify`, as many servers do: it
/// has to read on.
#[derive(Debug)]
pub(super) struct ServerTls {
    /// The TLS session; absent when it could not be made.
    session: Option<Session>,
    scratch: Scratch,
    has_begun: bool,
}

impl ServerTls {
    /// Takes bytes of brunt's: appends their plain text, and gives what came before it. Where
    /// nothing comes before the first request, a connection is open for brunt with the server's
    /// last flight: it `opens_with_tls`.
    pub(super) fn receive(
        &mut self,
        bytes: &[u8],
        opens_with_tls: bool,
        plain: &mut Vec<u8>,
    ) -> Option<Message> {
        let mut answer = Vec::new();
        let received = self.session.as_mut().is_some_and(|session| {
            session
                .receive(bytes, &mut self.scratch, plain, &mut answer)
                .is_ok()
        });
        if !received {
            let answer = answer.into();
            return Some(Message::TlsFailed { answer });
        }
        if answer.is_empty() {
            return None;
        }
        let completes = if opens_with_tls && changes_cipher(&answer) {
            Completes::Opening
        } else {
            Completes::Nothing
        };
        Some(Message::Handshake {
            answer: answer.into(),
            is_first: !std::mem::replace(&mut self.has_begun, true),
            completes,
        })
    }

    /// The records that carry `plain`. None where the handshake is not complete.
    pub(super) fn send(&mut self, plain: &[u8]) -> Rc<[u8]> {
        let mut records = Vec::new();
        if let Some(session) = &mut self.session {
            // Before the handshake is complete the server has nothing to say.
            let _ = session.send(plain, &mut records);
        }
        records.into()
    }
}

/// Whether a ChangeCipherSpec is among these records. It comes with a server's last flight, in TLS
/// 1.3 for the sake of middleboxes (RFC 8446 appendix D.4).
fn changes_cipher(mut records: &[u8]) -> bool {
    while let Some((&[kind, _, _, high, low], rest)) = records.split_first_chunk() {
        if kind == CHANGE_CIPHER_SPEC {
            return true;
        }
        let length = usize::from(u16::from_be_bytes([high, low]));
        records = rest.get(length..).unwrap_or_default();
    }
    false
}
