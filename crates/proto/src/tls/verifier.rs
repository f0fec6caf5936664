//! Verifiers of server certificates: one that remembers its last result, one that accepts any.

use std::sync::{Arc, Mutex, PoisonError};

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{WebPkiServerVerifier, verify_server_name};
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{CertificateError, DigitallySignedStruct, Error, SignatureScheme};

use super::certificate::{SelfSigned, is_authority, is_self_signed};

/// Verifies chains as the web does, and remembers the last one that passed, for the second in which
/// it did: the thousands of connections of a run show the same chain, and going through it again
/// would cost a good part of a handshake. The signature of each handshake is always verified.
#[derive(Debug)]
pub(super) struct Remembering {
    webpki: Arc<WebPkiServerVerifier>,
    roots: Arc<[CertificateDer<'static>]>,
    last: Mutex<Option<Verified>>,
}

/// A chain that passed.
#[derive(Debug)]
struct Verified {
    /// The second of the check: no chain counts as valid in a second in which it expired.
    second: u64,
    chain: Vec<CertificateDer<'static>>,
    ocsp_response: Vec<u8>,
    server_name: ServerName<'static>,
}

impl Remembering {
    /// `roots` are those that `webpki` trusts.
    pub(super) fn new(
        webpki: Arc<WebPkiServerVerifier>,
        roots: Arc<[CertificateDer<'static>]>,
    ) -> Self {
        Self {
            webpki,
            roots,
            last: Mutex::new(None),
        }
    }

    /// A verifier of the same kind with a memory of its own.
    pub(super) fn separate(&self) -> Self {
        Self::new(Arc::clone(&self.webpki), Arc::clone(&self.roots))
    }
}

impl Verified {
    fn is(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> bool {
        self.second == now.as_secs()
            && self.server_name == *server_name
            && self.ocsp_response == ocsp_response
            && self
                .chain
                .split_first()
                .is_some_and(|(first, others)| first == end_entity && others == intermediates)
    }
}

impl ServerCertVerifier for Remembering {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        let is_known = last.as_ref().is_some_and(|verified| {
            verified.is(end_entity, intermediates, server_name, ocsp_response, now)
        });
        if is_known {
            return Ok(ServerCertVerified::assertion());
        }
        let verified = self
            .webpki
            .verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now)
            .or_else(|error| match error {
                // What `openssl req -x509` makes: valid now, and an authority by its own word. As
                // one of the roots it is trusted all the same.
                Error::InvalidCertificate(reason)
                    if is_authority(&reason)
                        && self.roots.iter().any(|root| root == end_entity) =>
                {
                    verify_server_name(&ParsedCertificate::try_from(end_entity)?, server_name)?;
                    Ok(ServerCertVerified::assertion())
                }
                other => Err(other),
            })
            .map_err(|error| match error {
                Error::InvalidCertificate(CertificateError::UnknownIssuer)
                    if is_self_signed(end_entity) =>
                {
                    SelfSigned.into_error().into()
                }
                other => other,
            })?;
        let chain = std::iter::once(end_entity).chain(intermediates);
        *last = Some(Verified {
            second: now.as_secs(),
            chain: chain
                .map(|certificate| certificate.clone().into_owned())
                .collect(),
            ocsp_response: ocsp_response.to_vec(),
            server_name: server_name.to_owned(),
        });
        Ok(verified)
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.webpki
            .verify_tls12_signature(message, certificate, signature)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.webpki
            .verify_tls13_signature(message, certificate, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.webpki.supported_verify_schemes()
    }
}

/// Takes any certificate, but not a handshake that its key did not sign.
#[derive(Debug)]
pub(super) struct Anything(pub(super) Arc<CryptoProvider>);

impl ServerCertVerifier for Anything {
    fn verify_server_cert(
        &self,
        _end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.0.signature_verification_algorithms;
        verify_tls12_signature(message, certificate, signature, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.0.signature_verification_algorithms;
        verify_tls13_signature(message, certificate, signature, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}
