//! Which HTTP is spoken, and how TLS below it.

use std::path::PathBuf;

/// Which HTTP is spoken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum HttpChoice {
    /// Over TLS what the server chooses (ALPN, RFC 7301) from HTTP/2 and HTTP/1.1; in clear text
    /// HTTP/1.1.
    #[default]
    Auto,
    /// HTTP/1.1.
    Http1,
    /// HTTP/2; in clear text by prior knowledge (RFC 9113 section 3.3).
    Http2,
}

/// A version of TLS, oldest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum TlsVersion {
    /// TLS 1.2 (RFC 5246).
    Tls12,
    /// TLS 1.3 (RFC 8446).
    Tls13,
}

/// A client certificate with its key: two PEM files, or one that holds both.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientIdentity {
    /// The certificate, followed by those that lead to its root.
    pub certificate: PathBuf,
    /// Its private key (PKCS #8, PKCS #1 or SEC 1).
    pub key: PathBuf,
}

/// How TLS is spoken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsSpec {
    /// Host name to ask for (SNI, RFC 6066) and to verify; absent: the target's host. An IP address
    /// is verified and not asked for.
    pub server_name: Option<String>,
    /// Whether the name is asked for; a server that is not asked chooses its certificate by itself.
    pub asks_by_name: bool,
    /// PEM file with the roots to trust; absent: the system's.
    pub roots: Option<PathBuf>,
    /// Further roots to trust, X.509 in DER. With any, the system's do not count.
    pub roots_der: Vec<Vec<u8>>,
    /// For servers that ask for a certificate.
    pub identity: Option<ClientIdentity>,
    /// Takes any certificate.
    pub insecure: bool,
    /// Oldest version offered.
    pub version_min: TlsVersion,
    /// Newest version offered, not older than the oldest.
    pub version_max: TlsVersion,
    /// Cipher suites offered, by the names of the IANA registry, in this order; empty: all.
    pub cipher_suites: Vec<String>,
    /// Key exchange groups offered, by the names of the IANA registry, in this order; empty: all
    /// but those that are hybrid with a post-quantum one.
    pub groups: Vec<String>,
    /// Whether a connection may resume the session of an earlier one of its worker.
    pub resumption: bool,
}

impl Default for TlsSpec {
    fn default() -> Self {
        Self {
            server_name: None,
            asks_by_name: true,
            roots: None,
            roots_der: Vec::new(),
            identity: None,
            insecure: false,
            version_min: TlsVersion::Tls12,
            version_max: TlsVersion::Tls13,
            cipher_suites: Vec::new(),
            groups: Vec::new(),
            resumption: false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn by_default_certificates_are_verified_and_handshakes_are_full() {
        let spec = TlsSpec::default();
        assert!(!spec.insecure);
        assert!(!spec.resumption);
        assert_eq!((&spec.roots, &spec.server_name), (&None, &None));
        assert!(spec.roots_der.is_empty());
        assert!(spec.cipher_suites.is_empty() && spec.groups.is_empty());
        assert!(spec.version_min <= spec.version_max);
        assert_eq!(HttpChoice::default(), HttpChoice::Auto);
    }

    #[test]
    fn versions_are_ordered_by_age() {
        assert!(TlsVersion::Tls12 < TlsVersion::Tls13);
    }
}
