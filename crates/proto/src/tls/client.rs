//! What all client sessions of a run share.

use std::fmt;
use std::sync::Arc;

use rustls::client::{Resumption, WebPkiServerVerifier};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, KeyLog, RootCertStore};

use super::error::ConfigError;
use super::names::Version;
use super::provider;
use super::resumption::Store;
use super::verifier::{Anything, Remembering};

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
#[derive(Clone)]
pub struct ClientSide {
    pub(crate) config: Arc<ClientConfig>,
    pub(crate) server_name: ServerName<'static>,
    verifier: Option<Arc<Remembering>>,
    resumption: bool,
}

impl fmt::Debug for ClientSide {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("ClientSide")
            .field("server_name", &self.server_name)
            .field("resumption", &self.resumption)
            .finish_non_exhaustive()
    }
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
        let (builder, verifier) = if options.insecure {
            let verifier = Arc::new(Anything(provider));
            (builder.with_custom_certificate_verifier(verifier), None)
        } else {
            let mut store = RootCertStore::empty();
            store.add_parsable_certificates(options.roots.iter().cloned());
            let webpki = WebPkiServerVerifier::builder_with_provider(Arc::new(store), provider)
                .build()
                .map_err(|_| ConfigError::NoRoots)?;
            let verifier = Arc::new(Remembering::new(webpki, options.roots.into()));
            let shared = Arc::clone(&verifier);
            (
                builder.with_custom_certificate_verifier(shared),
                Some(verifier),
            )
        };
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
        let verifier = self
            .verifier
            .as_ref()
            .map(|known| Arc::new(known.separate()));
        if let Some(verifier) = &verifier {
            let verifier = Arc::clone(verifier);
            config.dangerous().set_certificate_verifier(verifier);
        }
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
