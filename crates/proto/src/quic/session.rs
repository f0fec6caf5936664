//! TLS sessions that know whether they resume an earlier one, which those of quinn-proto do not
//! say.

use std::any::Any;
use std::sync::Arc;

use quinn_proto::crypto::{
    self, ExportKeyingMaterialError, HeaderKey, KeyPair, Keys, PacketKey, UnsupportedVersion,
};
use quinn_proto::transport_parameters::TransportParameters;
use quinn_proto::{ConnectError, ConnectionId, Side, TransportError};

/// CertificateVerify (RFC 8446 section 4): part of every handshake that resumes no session, and of
/// no other one.
const CERTIFICATE_VERIFY: u8 = 15;

/// What a client's sessions are made from.
pub(super) struct Client<C>(pub(super) Arc<C>);

impl<C: crypto::ClientConfig> crypto::ClientConfig for Client<C> {
    fn start_session(
        self: Arc<Self>,
        version: u32,
        server_name: &str,
        params: &TransportParameters,
    ) -> Result<Box<dyn crypto::Session>, ConnectError> {
        let of_tls = Arc::clone(&self.0);
        let session = of_tls.start_session(version, server_name, params)?;
        Ok(Box::new(Session::around(session)))
    }
}

/// What a server's sessions are made from.
pub(super) struct Server<C>(pub(super) Arc<C>);

impl<C: crypto::ServerConfig> crypto::ServerConfig for Server<C> {
    fn initial_keys(
        &self,
        version: u32,
        dst_cid: &ConnectionId,
    ) -> Result<Keys, UnsupportedVersion> {
        self.0.initial_keys(version, dst_cid)
    }

    fn retry_tag(&self, version: u32, orig_dst_cid: &ConnectionId, packet: &[u8]) -> [u8; 16] {
        self.0.retry_tag(version, orig_dst_cid, packet)
    }

    fn start_session(
        self: Arc<Self>,
        version: u32,
        params: &TransportParameters,
    ) -> Box<dyn crypto::Session> {
        let of_tls = Arc::clone(&self.0);
        Box::new(Session::around(of_tls.start_session(version, params)))
    }
}

/// Whether the handshake of a connection resumes an earlier session; known when it is complete.
pub(super) fn is_resumed(connection: &quinn_proto::Connection) -> bool {
    let data = connection.crypto_session().handshake_data();
    let kind = data.and_then(|data| data.downcast::<Kind>().ok());
    kind.is_some_and(|kind| *kind == Kind::Resumed)
}

/// The kind of a handshake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Full,
    Resumed,
}

/// A session of TLS whose messages are looked at as they pass.
struct Session {
    tls: Box<dyn crypto::Session>,
    received: Messages,
    sent: Messages,
}

impl Session {
    fn around(tls: Box<dyn crypto::Session>) -> Self {
        Self {
            tls,
            received: Messages::default(),
            sent: Messages::default(),
        }
    }
}

impl crypto::Session for Session {
    fn initial_keys(&self, dst_cid: &ConnectionId, side: Side) -> Keys {
        self.tls.initial_keys(dst_cid, side)
    }

    /// Its kind.
    fn handshake_data(&self) -> Option<Box<dyn Any>> {
        self.tls.handshake_data()?;
        let is_full = self.received.has_verify || self.sent.has_verify;
        Some(Box::new(if is_full { Kind::Full } else { Kind::Resumed }))
    }

    fn peer_identity(&self) -> Option<Box<dyn Any>> {
        self.tls.peer_identity()
    }

    fn early_crypto(&self) -> Option<(Box<dyn HeaderKey>, Box<dyn PacketKey>)> {
        self.tls.early_crypto()
    }

    fn early_data_accepted(&self) -> Option<bool> {
        self.tls.early_data_accepted()
    }

    fn is_handshaking(&self) -> bool {
        self.tls.is_handshaking()
    }

    fn read_handshake(&mut self, buf: &[u8]) -> Result<bool, TransportError> {
        self.received.take(buf);
        self.tls.read_handshake(buf)
    }

    fn transport_parameters(&self) -> Result<Option<TransportParameters>, TransportError> {
        self.tls.transport_parameters()
    }

    fn write_handshake(&mut self, buf: &mut Vec<u8>) -> Option<Keys> {
        let before = buf.len();
        let keys = self.tls.write_handshake(buf);
        self.sent.take(&buf[before..]);
        keys
    }

    fn next_1rtt_keys(&mut self) -> Option<KeyPair<Box<dyn PacketKey>>> {
        self.tls.next_1rtt_keys()
    }

    fn is_valid_retry(&self, orig_dst_cid: &ConnectionId, header: &[u8], payload: &[u8]) -> bool {
        self.tls.is_valid_retry(orig_dst_cid, header, payload)
    }

    fn export_keying_material(
        &self,
        output: &mut [u8],
        label: &[u8],
        context: &[u8],
    ) -> Result<(), ExportKeyingMaterialError> {
        self.tls.export_keying_material(output, label, context)
    }
}

/// The messages of one direction (RFC 8446 section 4): a type, three bytes of length, and so many
/// bytes.
#[derive(Default)]
struct Messages {
    /// The received bytes of the header of the next message.
    header: [u8; 4],
    header_bytes: usize,
    /// What is still to come of the message.
    body_bytes: usize,
    has_verify: bool,
}

impl Messages {
    fn take(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            if self.body_bytes > 0 {
                let taken = self.body_bytes.min(bytes.len());
                self.body_bytes -= taken;
                bytes = &bytes[taken..];
                continue;
            }
            self.header[self.header_bytes] = bytes[0];
            self.header_bytes += 1;
            bytes = &bytes[1..];
            if self.header_bytes == self.header.len() {
                let [kind, high, middle, low] = self.header;
                self.has_verify |= kind == CERTIFICATE_VERIFY;
                self.body_bytes = u32::from_be_bytes([0, high, middle, low]) as usize;
                self.header_bytes = 0;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_told_apart_wherever_their_bytes_are_cut() {
        // ServerHello with bytes that look like CertificateVerify, an empty message, and Finished.
        let resumed = [
            &[2, 0, 0, 5, 15, 15, 15, 15, 15][..],
            &[8, 0, 0, 0],
            &[20, 0, 0, 2, 15, 0],
        ]
        .concat();
        let full = [resumed.as_slice(), &[15, 0, 0, 1, 0, 20, 0, 0, 0]].concat();
        for (messages, has_verify) in [(resumed, false), (full, true)] {
            for cut in 0..=messages.len() {
                let mut read = Messages::default();
                read.take(&messages[..cut]);
                read.take(&messages[cut..]);
                assert_eq!(read.has_verify, has_verify, "cut at {cut}");
            }
        }
    }
}
