//! What all sessions of one side share: their configuration, and of clients the verifier of server
//! certificates and the sessions that later connections may resume.

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{
    ClientSessionStore, Resumption, Tls12ClientSessionValue, Tls13ClientSessionValue,
    WebPkiServerVerifier, verify_server_name,
};
use rustls::crypto::aws_lc_rs::{ALL_KX_GROUPS, Ticketer};
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::server::{NoServerSessionStorage, ParsedCertificate, WebPkiClientVerifier};
use rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, Error, KeyLog, NamedGroup,
    RootCertStore, ServerConfig, SignatureScheme,
};

use super::error::{SelfSigned, is_authority, is_self_signed};
use super::provider::{self, ConfigError, Version};

/// How clients speak TLS.
#[derive(Debug)]
pub struct ClientOptions {
    /// Host name or IP address to verify the certificate for. A host name is also asked for (SNI,
    /// RFC 6066). An IPv6 address may be in brackets.
    pub server_name: String,
    /// Whether a host name is asked for.
    pub asks_by_name: bool,
    /// Certificates to trust. Those that cannot be parsed are left out; not used when `insecure`.
    pub roots: Vec<CertificateDer<'static>>,
    /// Takes any certificate. That its key signed the handshake is verified all the same.
    pub insecure: bool,
    /// Certificate chain, own first, and key, for servers that ask for them.
    pub identity: Option<(Vec<CertificateDer<'static>>, PrivateKeyDer<'static>)>,
    /// Oldest version offered.
    pub version_min: Version,
    /// Newest version offered.
    pub version_max: Version,
    /// Cipher suites offered, in this order, by the names of the IANA registry; empty: all.
    pub cipher_suites: Vec<String>,
    /// Key exchange groups offered, in this order, by the names of the IANA registry; a key share
    /// is sent for the first. Empty: x25519, secp256r1, secp384r1.
    pub groups: Vec<String>,
    /// Whether a session may resume an earlier one.
    pub resumption: bool,
    /// Application protocols offered, preferred first (RFC 7301). A server that chooses another one
    /// breaks the session.
    pub alpn: Vec<Vec<u8>>,
    /// Gets the keys of every session, for tools that read recorded traffic.
    pub key_log: Option<Arc<dyn KeyLog>>,
}

impl ClientOptions {
    /// Clients that trust nobody yet and offer everything but resumption.
    pub fn new(server_name: impl Into<String>) -> Self {
        Self {
            server_name: server_name.into(),
            asks_by_name: true,
            roots: Vec::new(),
            insecure: false,
            identity: None,
            version_min: Version::Tls12,
            version_max: Version::Tls13,
            cipher_suites: Vec::new(),
            groups: Vec::new(),
            resumption: false,
            alpn: Vec::new(),
            key_log: None,
        }
    }
}

/// What all client sessions share. A clone shares the verified chain and the sessions to resume,
/// too; see [`ClientSide::separate`].
#[derive(Clone, Debug)]
pub struct ClientSide {
    pub(crate) config: Arc<ClientConfig>,
    pub(crate) server_name: ServerName<'static>,
    verifier: Arc<Verifier>,
    resumption: bool,
}

impl ClientSide {
    /// Prepares what sessions need.
    ///
    /// # Errors
    ///
    /// A name that is not known, a certificate or key that cannot be used, or options that leave
    /// nothing to offer.
    pub fn new(options: ClientOptions) -> Result<Self, ConfigError> {
        let server_name = parse_server_name(&options.server_name)?;
        let versions = provider::versions(options.version_min, options.version_max)?;
        let provider = provider::provider(&versions, &options.cipher_suites, &options.groups)?;
        let provider = Arc::new(provider);
        let builder = ClientConfig::builder_with_provider(Arc::clone(&provider))
            .with_protocol_versions(&versions)
            .map_err(|_| ConfigError::NothingLeft)?
            .dangerous();
        let chains = if options.insecure {
            None
        } else {
            Some(Chains::new(options.roots, &provider)?)
        };
        let verifier = Arc::new(Verifier { provider, chains });
        let builder = builder.with_custom_certificate_verifier(verifier.clone());
        let mut config = match options.identity {
            Some((chain, key)) => builder
                .with_client_auth_cert(chain, key)
                .map_err(|error| ConfigError::Identity(error.to_string()))?,
            None => builder.with_no_client_auth(),
        };
        config.alpn_protocols = options.alpn;
        config.enable_sni = options.asks_by_name;
        config.resumption = resumption(options.resumption);
        if let Some(key_log) = options.key_log {
            config.key_log = key_log;
        }
        Ok(Self {
            config: Arc::new(config),
            server_name,
            verifier,
            resumption: options.resumption,
        })
    }

    /// A copy with a memory of its own for sessions and verified certificates: for a worker that
    /// shares nothing that it writes.
    pub fn separate(&self) -> Self {
        let mut config = ClientConfig::clone(&self.config);
        config.resumption = resumption(self.resumption);
        let verifier = Arc::new(self.verifier.separate());
        config
            .dangerous()
            .set_certificate_verifier(verifier.clone());
        Self {
            config: Arc::new(config),
            server_name: self.server_name.clone(),
            verifier,
            resumption: self.resumption,
        }
    }
}

fn resumption(is_on: bool) -> Resumption {
    if is_on {
        Resumption::store(Arc::new(Store::default()))
    } else {
        Resumption::disabled()
    }
}

fn parse_server_name(name: &str) -> Result<ServerName<'static>, ConfigError> {
    let bare = name
        .strip_prefix('[')
        .and_then(|inner| inner.strip_suffix(']'))
        .unwrap_or(name);
    ServerName::try_from(bare.to_owned()).map_err(|_| ConfigError::ServerName(name.to_owned()))
}

/// Verifies that the key of a certificate signed the handshake, and its chain where that matters.
#[derive(Debug)]
struct Verifier {
    provider: Arc<CryptoProvider>,
    /// Absent: any certificate is taken.
    chains: Option<Chains>,
}

/// Verifies chains as the web does, and remembers the last one that passed, for the second in which
/// it did: the thousands of connections of a run show the same chain, and going through it again
/// would cost a good part of a handshake.
#[derive(Debug)]
struct Chains {
    webpki: Arc<WebPkiServerVerifier>,
    /// Those that `webpki` trusts.
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

impl Verifier {
    /// A verifier of the same kind with a memory of its own.
    fn separate(&self) -> Self {
        Self {
            provider: Arc::clone(&self.provider),
            chains: self.chains.as_ref().map(|chains| Chains {
                webpki: Arc::clone(&chains.webpki),
                roots: Arc::clone(&chains.roots),
                last: Mutex::new(None),
            }),
        }
    }
}

impl Chains {
    fn new(
        roots: Vec<CertificateDer<'static>>,
        provider: &Arc<CryptoProvider>,
    ) -> Result<Self, ConfigError> {
        let mut store = RootCertStore::empty();
        store.add_parsable_certificates(roots.iter().cloned());
        let provider = Arc::clone(provider);
        let webpki = WebPkiServerVerifier::builder_with_provider(Arc::new(store), provider)
            .build()
            .map_err(|_| ConfigError::NoRoots)?;
        Ok(Self {
            webpki,
            roots: roots.into(),
            last: Mutex::new(None),
        })
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

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let Some(chains) = &self.chains else {
            return Ok(ServerCertVerified::assertion());
        };
        let mut last = chains.last.lock().unwrap_or_else(PoisonError::into_inner);
        let is_known = last.as_ref().is_some_and(|verified| {
            verified.is(end_entity, intermediates, server_name, ocsp_response, now)
        });
        if is_known {
            return Ok(ServerCertVerified::assertion());
        }
        let verified = chains
            .webpki
            .verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now)
            .or_else(|error| match error {
                // What `openssl req -x509` makes: valid now, and an authority by its own word. As
                // one of the roots it is trusted all the same.
                Error::InvalidCertificate(reason)
                    if is_authority(&reason)
                        && chains.roots.iter().any(|root| root == end_entity) =>
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
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls12_signature(message, certificate, signature, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls13_signature(message, certificate, signature, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider
            .signature_verification_algorithms
            .supported_schemes()
    }
}

/// Tickets kept. Each is used once, and servers mostly give two per connection; so this bounds how
/// many connections can be opened at once before new tickets come.
const TICKETS_MAX: usize = 1_024;

/// The sessions of one server. All sessions of a client ask for the same server name, so it is not
/// looked at.
#[derive(Debug, Default)]
struct Store(Mutex<Sessions>);

#[derive(Debug, Default)]
struct Sessions {
    /// TLS 1.3, oldest first.
    tickets: VecDeque<Tls13ClientSessionValue>,
    tls12: Option<Tls12ClientSessionValue>,
    group: Option<NamedGroup>,
}

impl Store {
    fn sessions(&self) -> MutexGuard<'_, Sessions> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ClientSessionStore for Store {
    fn set_kx_hint(&self, _server: ServerName<'static>, group: NamedGroup) {
        self.sessions().group = Some(group);
    }

    fn kx_hint(&self, _server: &ServerName<'_>) -> Option<NamedGroup> {
        self.sessions().group
    }

    fn set_tls12_session(&self, _server: ServerName<'static>, session: Tls12ClientSessionValue) {
        self.sessions().tls12 = Some(session);
    }

    fn tls12_session(&self, _server: &ServerName<'_>) -> Option<Tls12ClientSessionValue> {
        self.sessions().tls12.clone()
    }

    fn remove_tls12_session(&self, _server: &ServerName<'static>) {
        self.sessions().tls12 = None;
    }

    fn insert_tls13_ticket(&self, _server: ServerName<'static>, ticket: Tls13ClientSessionValue) {
        let tickets = &mut self.sessions().tickets;
        if tickets.len() == TICKETS_MAX {
            tickets.pop_front();
        }
        tickets.push_back(ticket);
    }

    fn take_tls13_ticket(&self, _server: &ServerName<'static>) -> Option<Tls13ClientSessionValue> {
        self.sessions().tickets.pop_back()
    }
}

/// How servers speak TLS.
#[derive(Debug)]
pub struct ServerOptions {
    /// The chain that is shown, own certificate first.
    pub certificates: Vec<CertificateDer<'static>>,
    /// The private key of the certificate.
    pub key: PrivateKeyDer<'static>,
    /// Application protocols spoken, preferred first (RFC 7301). A client that offers only others
    /// is refused; empty: whatever a client offers, none is chosen.
    pub alpn: Vec<Vec<u8>>,
    /// Clients must show a certificate that leads to one of these; absent: none is asked for.
    pub client_roots: Option<Vec<CertificateDer<'static>>>,
    /// Oldest version spoken.
    pub version_min: Version,
    /// Newest version spoken.
    pub version_max: Version,
    /// Whether clients are given tickets with which they can resume a session. They hold all that
    /// is needed: the server keeps nothing.
    pub tickets: bool,
}

impl ServerOptions {
    /// Servers that speak every version, ask for no certificate and give tickets.
    pub fn new(certificates: Vec<CertificateDer<'static>>, key: PrivateKeyDer<'static>) -> Self {
        Self {
            certificates,
            key,
            alpn: Vec::new(),
            client_roots: None,
            version_min: Version::Tls12,
            version_max: Version::Tls13,
            tickets: true,
        }
    }
}

/// What all server sessions share, with those of its clones.
#[derive(Clone, Debug)]
pub struct ServerSide {
    pub(crate) config: Arc<ServerConfig>,
}

impl ServerSide {
    /// Prepares what sessions need.
    ///
    /// # Errors
    ///
    /// A certificate or key that cannot be used, no root where client certificates are asked for,
    /// or an oldest version that is newer than the newest.
    pub fn new(options: ServerOptions) -> Result<Self, ConfigError> {
        let identity = |error: &dyn fmt::Display| ConfigError::Identity(error.to_string());
        let versions = provider::versions(options.version_min, options.version_max)?;
        let mut provider = provider::provider(&versions, &[], &[])?;
        // A server takes whatever group a client offers.
        provider.kx_groups = ALL_KX_GROUPS.to_vec();
        let provider = Arc::new(provider);
        let builder = ServerConfig::builder_with_provider(Arc::clone(&provider))
            .with_protocol_versions(&versions)
            .map_err(|_| ConfigError::NothingLeft)?;
        let builder = match options.client_roots {
            Some(certificates) => {
                let mut roots = RootCertStore::empty();
                roots.add_parsable_certificates(certificates);
                let verifier =
                    WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider)
                        .build()
                        .map_err(|_| ConfigError::NoRoots)?;
                builder.with_client_cert_verifier(verifier)
            }
            None => builder.with_no_client_auth(),
        };
        let mut config = builder
            .with_single_cert(options.certificates, options.key)
            .map_err(|error| identity(&error))?;
        config.alpn_protocols = options.alpn;
        config.session_storage = Arc::new(NoServerSessionStorage {});
        if options.tickets {
            config.ticketer = Ticketer::new().map_err(|error| identity(&error))?;
        } else {
            config.send_tls13_tickets = 0;
        }
        Ok(Self {
            config: Arc::new(config),
        })
    }
}
