//! How the server speaks TLS, and the certificate that it makes itself.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use brunt_proto::tls::{ALPN_HTTP3, ConfigError, ServerOptions, ServerSide, Version};
use pem::{EncodeConfig, LineEnding, Pem};
use rcgen::{CertificateParams, DistinguishedName, DnType, KeyPair, SanType};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};

/// How the server speaks TLS.
#[derive(Debug)]
pub struct TlsOptions {
    /// The certificate and key that the server shows to its clients.
    pub identity: Identity,
    /// Clients must show a certificate that leads to one of these; absent: none is asked for.
    pub client_roots: Option<Vec<CertificateDer<'static>>>,
    /// Application protocols that it offers, preferred first (RFC 7301). Which of HTTP/1.1 and
    /// HTTP/2 a connection speaks is decided by its first bytes nonetheless.
    pub alpn: Vec<String>,
    /// Oldest version spoken.
    pub version_min: Version,
    /// Newest version spoken.
    pub version_max: Version,
    /// Whether clients are given tickets with which they can resume a session.
    pub tickets: bool,
}

impl Default for TlsOptions {
    /// A certificate of its own, h2 and http/1.1, every version, tickets.
    fn default() -> Self {
        Self {
            identity: Identity::SelfSigned,
            client_roots: None,
            alpn: vec!["h2".to_owned(), "http/1.1".to_owned()],
            version_min: Version::Tls12,
            version_max: Version::Tls13,
            tickets: true,
        }
    }
}

/// A certificate and its key.
#[derive(Debug)]
pub enum Identity {
    /// Made at the start and signed by itself (ECDSA P-256, SHA-256): for localhost, 127.0.0.1,
    /// ::1 and the address that the server listens on.
    SelfSigned,
    /// Given.
    Given {
        /// The chain, own certificate first.
        certificates: Vec<CertificateDer<'static>>,
        /// The key of the first one.
        key: PrivateKeyDer<'static>,
    },
}

/// Why there is no certificate to show.
#[derive(Debug, thiserror::Error)]
pub enum IdentityError {
    /// No certificate could be made.
    #[error("no certificate could be made")]
    SelfSigned(#[source] rcgen::Error),
    /// TLS cannot be set up with it.
    #[error(transparent)]
    Config(#[from] ConfigError),
}

/// What all workers need to speak TLS.
#[derive(Clone, Debug)]
pub(crate) struct Secure {
    pub(crate) side: ServerSide,
    /// The side for HTTP/3.
    pub(crate) http3: ServerSide,
    /// The chain that clients see, own certificate first.
    pub(crate) certificates: Vec<CertificateDer<'static>>,
}

impl Secure {
    /// Prepares it for a server at this address, if it has one.
    pub(crate) fn new(
        options: &TlsOptions,
        address: Option<IpAddr>,
    ) -> Result<Self, IdentityError> {
        let (certificates, key) = match &options.identity {
            Identity::SelfSigned => self_signed(address).map_err(IdentityError::SelfSigned)?,
            Identity::Given { certificates, key } => (certificates.clone(), key.clone_key()),
        };
        let side = |alpn: Vec<Vec<u8>>| {
            ServerSide::new(ServerOptions {
                alpn,
                client_roots: options.client_roots.clone(),
                version_min: options.version_min,
                version_max: options.version_max,
                tickets: options.tickets,
                ..ServerOptions::new(certificates.clone(), key.clone_key())
            })
        };
        let names = options.alpn.iter().map(|name| name.as_bytes().to_vec());
        Ok(Self {
            side: side(names.collect())?,
            http3: side(vec![ALPN_HTTP3.to_vec()])?,
            certificates,
        })
    }
}

/// A certificate that is its own root, and its key.
fn self_signed(
    address: Option<IpAddr>,
) -> Result<(Vec<CertificateDer<'static>>, PrivateKeyDer<'static>), rcgen::Error> {
    let key = KeyPair::generate_for(&rcgen::PKCS_ECDSA_P256_SHA256)?;
    let mut params = CertificateParams::new(["localhost".to_owned()])?;
    let mut addresses = vec![
        IpAddr::from(Ipv4Addr::LOCALHOST),
        IpAddr::from(Ipv6Addr::LOCALHOST),
    ];
    addresses.extend(address.filter(|address| !address.is_unspecified()));
    addresses.sort();
    addresses.dedup();
    let names = addresses.into_iter().map(SanType::IpAddress);
    params.subject_alt_names.extend(names);
    let mut name = DistinguishedName::new();
    name.push(DnType::CommonName, "brunt serve");
    params.distinguished_name = name;
    let certificate = params.self_signed(&key)?;
    let key = PrivateKeyDer::try_from(key.serialize_der())
        .map_err(|_| rcgen::Error::CouldNotParseKeyPair)?;
    Ok((vec![certificate.into()], key))
}

/// Certificates as PEM.
pub(crate) fn to_pem(certificates: &[CertificateDer<'static>]) -> String {
    let config = EncodeConfig::new().set_line_ending(LineEnding::LF);
    let blocks = certificates.iter().map(|certificate| {
        let block = Pem::new("CERTIFICATE", certificate.as_ref());
        pem::encode_config(&block, config)
    });
    blocks.collect()
}

#[cfg(test)]
mod tests {
    use rustls::pki_types::pem::PemObject;

    use super::*;

    #[test]
    fn a_certificate_is_the_same_in_pem() {
        let (certificates, key) = self_signed(Some([10, 1, 2, 3].into())).unwrap();
        let pem = to_pem(&certificates);
        assert!(pem.lines().all(|line| line.len() <= 64));
        let read = CertificateDer::pem_slice_iter(pem.as_bytes()).collect::<Result<Vec<_>, _>>();
        assert_eq!(read.unwrap(), certificates);
        let identity = Identity::Given { certificates, key };
        let options = TlsOptions {
            identity,
            ..TlsOptions::default()
        };
        assert!(Secure::new(&options, None).is_ok());
    }
}
