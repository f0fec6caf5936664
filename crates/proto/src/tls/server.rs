//! What all server sessions share.

use std::fmt;
use std::sync::Arc;

use rustls::crypto::aws_lc_rs::Ticketer;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::{NoServerSessionStorage, WebPkiClientVerifier};
use rustls::{RootCertStore, ServerConfig};

use super::error::ConfigError;
use super::provider;
use super::provider::Version;

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
#[derive(Clone)]
pub struct ServerSide {
    pub(crate) config: Arc<ServerConfig>,
}

impl fmt::Debug for ServerSide {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("ServerSide").finish_non_exhaustive()
    }
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
        provider.kx_groups = rustls::crypto::aws_lc_rs::ALL_KX_GROUPS.to_vec();
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
