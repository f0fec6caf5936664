//! One connection's TLS session: bytes in, plain text and bytes to send out.

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use rustls::client::{ClientConnectionData, UnbufferedClientConnection};
use rustls::server::{ServerConnectionData, UnbufferedServerConnection};
use rustls::unbuffered::{
    ConnectionState, EncodeError, EncryptError, UnbufferedConnectionCommon, UnbufferedStatus,
};
use rustls::{CommonState, HandshakeKind};

use super::error::TlsError;
use super::provider::{self, Version};
use super::sides::{ClientSide, ServerSide};

/// Plain text in one record at most (RFC 8446 section 5.1).
const RECORD_BYTES_MAX: usize = 16 * 1024;
/// What a record adds to its plain text at most, of the cipher suites offered: header, explicit
/// nonce, tag (TLS 1.2 with AES-GCM).
const RECORD_OVERHEAD_MAX: usize = 5 + 8 + 16;
/// Bytes kept of incomplete records and handshake messages at most. A handshake message has up to
/// 64 KiB here, and may come in records of which each holds little of it.
const KEPT_BYTES_MAX: usize = 256 * 1024;

/// Memory for the time of one call, shared by any number of sessions.
#[derive(Debug, Default)]
pub struct Scratch {
    incoming: Vec<u8>,
}

/// What a handshake negotiated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Negotiated {
    /// The version of TLS.
    pub version: Version,
    /// The cipher suite's name in the IANA registry.
    pub cipher_suite: &'static str,
    /// The key exchange group's name in the IANA registry. Absent where a resumed session of TLS
    /// 1.2 needed none.
    pub group: Option<&'static str>,
    /// The application protocol (RFC 7301), where one was chosen.
    pub alpn: Option<Vec<u8>>,
    /// An earlier session was resumed.
    pub is_resumed: bool,
}

/// One connection's session.
pub struct Session {
    connection: Connection,
    /// An incomplete record or handshake message. Without capacity while empty.
    kept: Vec<u8>,
    is_ended: bool,
    /// An error was given: rustls must not be asked again.
    is_over: bool,
}

enum Connection {
    Client(UnbufferedClientConnection),
    Server(UnbufferedServerConnection),
}

/// Either side of rustls, so that both are driven by the same code.
trait Records<Data>: Deref<Target = UnbufferedConnectionCommon<Data>> {
    fn process<'c, 'i>(&'c mut self, incoming: &'i mut [u8]) -> UnbufferedStatus<'c, 'i, Data>;
}

impl Records<ClientConnectionData> for UnbufferedClientConnection {
    fn process<'c, 'i>(
        &'c mut self,
        incoming: &'i mut [u8],
    ) -> UnbufferedStatus<'c, 'i, ClientConnectionData> {
        self.process_tls_records(incoming)
    }
}

impl Records<ServerConnectionData> for UnbufferedServerConnection {
    fn process<'c, 'i>(
        &'c mut self,
        incoming: &'i mut [u8],
    ) -> UnbufferedStatus<'c, 'i, ServerConnectionData> {
        self.process_tls_records(incoming)
    }
}

impl fmt::Debug for Session {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Session")
            .field("is_handshaking", &self.is_handshaking())
            .field("kept_bytes", &self.kept.len())
            .field("is_ended", &self.is_ended)
            .finish_non_exhaustive()
    }
}

impl Session {
    /// A client's session. Its first bytes to send come from a [`Session::receive`] without bytes.
    ///
    /// # Errors
    ///
    /// None that the options do not bring about.
    pub fn client(side: &ClientSide) -> Result<Self, TlsError> {
        let config = Arc::clone(&side.config);
        let connection = UnbufferedClientConnection::new(config, side.server_name.clone())?;
        Ok(Self::new(Connection::Client(connection)))
    }

    /// A server's session.
    ///
    /// # Errors
    ///
    /// None that the options do not bring about.
    pub fn server(side: &ServerSide) -> Result<Self, TlsError> {
        let connection = UnbufferedServerConnection::new(Arc::clone(&side.config))?;
        Ok(Self::new(Connection::Server(connection)))
    }

    fn new(connection: Connection) -> Self {
        Self {
            connection,
            kept: Vec::new(),
            is_ended: false,
            is_over: false,
        }
    }

    /// Takes bytes of the peer, cut anywhere: appends plain text to `plain` and what must be sent,
    /// the alert for an error included, to `out`.
    ///
    /// # Errors
    ///
    /// The session is over; plain text that came before that is in `plain`. Certificates and alerts
    /// are told apart from the rest.
    pub fn receive(
        &mut self,
        bytes: &[u8],
        scratch: &mut Scratch,
        plain: &mut Vec<u8>,
        out: &mut Vec<u8>,
    ) -> Result<(), TlsError> {
        self.check()?;
        let incoming = &mut scratch.incoming;
        incoming.clear();
        incoming.extend_from_slice(&self.kept);
        incoming.extend_from_slice(bytes);
        let progress = match &mut self.connection {
            Connection::Client(connection) => drive(connection, incoming, plain, out),
            Connection::Server(connection) => drive(connection, incoming, plain, out),
        };
        let kept = std::mem::take(&mut self.kept);
        let progress = progress.inspect_err(|_| self.is_over = true)?;
        self.is_ended |= progress.is_ended;
        let rest = &incoming[progress.taken..];
        if rest.len() > KEPT_BYTES_MAX {
            self.is_over = true;
            let why = format!("a handshake message has more than {KEPT_BYTES_MAX} bytes");
            return Err(TlsError::Broken(why));
        }
        if !self.is_ended && !rest.is_empty() {
            self.kept = kept;
            self.kept.clear();
            self.kept.reserve_exact(rest.len());
            self.kept.extend_from_slice(rest);
        }
        Ok(())
    }

    fn check(&self) -> Result<(), TlsError> {
        if self.is_over {
            return Err(TlsError::Broken("the session is over".to_owned()));
        }
        Ok(())
    }

    /// Appends the records that carry `plain` to `out`, each of at most 16 KiB of it. The handshake
    /// must be complete.
    ///
    /// # Errors
    ///
    /// The handshake is not complete, or the session is over: it is from now on.
    pub fn send(&mut self, plain: &[u8], out: &mut Vec<u8>) -> Result<(), TlsError> {
        if plain.is_empty() {
            return Ok(());
        }
        let records = plain.len().div_ceil(RECORD_BYTES_MAX);
        let room = plain.len() + records * RECORD_OVERHEAD_MAX;
        self.write(Some(plain), room, out)
    }

    /// Ends the session: appends a `close_notify` to `out`, if the handshake was complete.
    pub fn close(mut self, out: &mut Vec<u8>) {
        if self.is_handshaking() {
            return;
        }
        // A session that failed sends no alert.
        let _ = self.write(None, RECORD_OVERHEAD_MAX + 2, out);
    }

    /// Appends the records of `plain`, or else a `close_notify`.
    fn write(
        &mut self,
        plain: Option<&[u8]>,
        room: usize,
        out: &mut Vec<u8>,
    ) -> Result<(), TlsError> {
        self.check()?;
        let kept = &mut self.kept;
        let written = match &mut self.connection {
            Connection::Client(connection) => put(connection, kept, plain, room, out),
            Connection::Server(connection) => put(connection, kept, plain, room, out),
        };
        written.inspect_err(|_| self.is_over = true)
    }

    fn common(&self) -> &CommonState {
        match &self.connection {
            Connection::Client(connection) => connection,
            Connection::Server(connection) => connection,
        }
    }

    /// Whether the handshake is not complete yet.
    pub fn is_handshaking(&self) -> bool {
        self.common().is_handshaking()
    }

    /// Whether the peer's `close_notify` came: no more plain text will.
    pub fn is_ended(&self) -> bool {
        self.is_ended
    }

    /// Bytes of an incomplete record that are kept.
    pub fn kept_bytes(&self) -> usize {
        self.kept.len()
    }

    #[cfg(test)]
    pub(super) fn kept_capacity(&self) -> usize {
        self.kept.capacity()
    }

    /// Whether an earlier session was resumed. Not known before the handshake is complete.
    pub fn is_resumed(&self) -> bool {
        self.common().handshake_kind() == Some(HandshakeKind::Resumed)
    }

    /// The application protocol that was chosen (RFC 7301).
    pub fn alpn(&self) -> Option<&[u8]> {
        self.common().alpn_protocol()
    }

    /// What the handshake negotiated. Absent before it is complete.
    pub fn negotiated(&self) -> Option<Negotiated> {
        let common = self.common();
        if common.is_handshaking() {
            return None;
        }
        let suite = common.negotiated_cipher_suite()?;
        Some(Negotiated {
            version: Version::of(common.protocol_version()?)?,
            cipher_suite: provider::cipher_suite_name(suite.suite()),
            group: common
                .negotiated_key_exchange_group()
                .map(|group| provider::group_name(group.name())),
            alpn: common.alpn_protocol().map(<[u8]>::to_vec),
            is_resumed: self.is_resumed(),
        })
    }
}

struct Progress {
    taken: usize,
    is_ended: bool,
}

/// Has rustls take what it can of `incoming`.
fn drive<Data>(
    connection: &mut impl Records<Data>,
    incoming: &mut [u8],
    plain: &mut Vec<u8>,
    out: &mut Vec<u8>,
) -> Result<Progress, rustls::Error> {
    let mut progress = Progress {
        taken: 0,
        is_ended: false,
    };
    loop {
        let UnbufferedStatus { mut discard, state } =
            connection.process(&mut incoming[progress.taken..]);
        let mut is_blocked = false;
        match state {
            Ok(ConnectionState::ReadTraffic(mut traffic)) => {
                while let Some(record) = traffic.next_record() {
                    let record = record?;
                    plain.extend_from_slice(record.payload);
                    discard += record.discard;
                }
            }
            Ok(ConnectionState::EncodeTlsData(mut data)) => {
                append(out, 0, |room| data.encode(room).map_err(shortage))?;
            }
            Ok(ConnectionState::TransmitTlsData(data)) => data.done(),
            Ok(ConnectionState::PeerClosed) => progress.is_ended = true,
            // Early data is not asked for.
            Ok(_) => is_blocked = true,
            Err(error) => {
                progress.taken += discard;
                put_alerts(connection, &mut incoming[progress.taken..], out);
                return Err(error);
            }
        }
        progress.taken += discard;
        if is_blocked {
            return Ok(progress);
        }
    }
}

/// Appends the alert that reports an error to the peer.
fn put_alerts<Data>(connection: &mut impl Records<Data>, rest: &mut [u8], out: &mut Vec<u8>) {
    while connection.wants_write() {
        let Ok(ConnectionState::EncodeTlsData(mut data)) = connection.process(rest).state else {
            return;
        };
        if append(out, 0, |room| data.encode(room).map_err(shortage)).is_err() {
            return;
        }
    }
}

/// Has rustls write the records of `plain`, or else a `close_notify`, behind the contents of `out`,
/// once it is ready to.
fn put<Data>(
    connection: &mut impl Records<Data>,
    kept: &mut [u8],
    plain: Option<&[u8]>,
    room: usize,
    out: &mut Vec<u8>,
) -> Result<(), TlsError> {
    loop {
        // What is kept was looked at, and is incomplete: nothing of it is taken now.
        match connection.process(kept).state? {
            ConnectionState::WriteTraffic(mut traffic) => {
                return Ok(append(out, room, |room| match plain {
                    Some(plain) => traffic.encrypt(plain, room),
                    None => traffic.queue_close_notify(room),
                })?);
            }
            ConnectionState::EncodeTlsData(mut data) => {
                append(out, 0, |room| data.encode(room).map_err(shortage))?;
            }
            ConnectionState::TransmitTlsData(data) => data.done(),
            ConnectionState::PeerClosed => {}
            _ => {
                return Err(TlsError::Broken(
                    "nothing can be sent in this state".to_owned(),
                ));
            }
        }
    }
}

/// Calls `write` with `room` bytes behind the contents of `out`, or as many as it then asks for.
fn append(
    out: &mut Vec<u8>,
    mut room: usize,
    mut write: impl FnMut(&mut [u8]) -> Result<usize, EncryptError>,
) -> Result<(), rustls::Error> {
    let start = out.len();
    loop {
        out.resize(start + room, 0);
        match write(&mut out[start..]) {
            Ok(written) => {
                out.truncate(start + written);
                return Ok(());
            }
            Err(EncryptError::InsufficientSize(error)) if error.required_size > room => {
                room = error.required_size;
            }
            Err(_) => {
                out.truncate(start);
                return Err(rustls::Error::EncryptError);
            }
        }
    }
}

/// The error as one of encryption, which writes no plain text.
fn shortage(error: EncodeError) -> EncryptError {
    match error {
        EncodeError::InsufficientSize(error) => EncryptError::InsufficientSize(error),
        EncodeError::AlreadyEncoded => EncryptError::EncryptExhausted,
    }
}
