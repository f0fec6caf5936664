//! How TLS is spoken below a protocol.

use serde::{Deserialize, Serialize};

use crate::secret::PlanFile;
use crate::stored_bytes::{BytesToStore, StoredBytes};

pub use brunt_proto::tls::Version as TlsVersion;

/// A client certificate with its key: two PEM files, or one that holds both.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClientIdentity {
    /// The certificate, followed by those that lead to its root.
    pub certificate: PlanFile,
    /// The private key of the certificate (PKCS #8, PKCS #1 or SEC 1).
    pub key: PlanFile,
}

/// How TLS is spoken.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TlsSpec {
    /// Host name to ask for (SNI, RFC 6066) and to verify; absent: the target's host. An IP address
    /// is verified and not asked for.
    pub server_name: Option<String>,
    /// Whether the name is asked for; a server that is not asked chooses its certificate by itself.
    pub asks_by_name: bool,
    /// PEM file with the roots to trust; absent: the system's.
    pub roots: Option<PlanFile>,
    /// Further roots to trust, X.509 in DER. With any, the system's do not count.
    #[serde(
        default,
        skip_serializing_if = "Vec::is_empty",
        serialize_with = "serialize_roots",
        deserialize_with = "deserialize_roots"
    )]
    pub roots_der: Vec<Vec<u8>>,
    /// The certificate of the client, for servers that ask for one.
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

fn serialize_roots<S: serde::Serializer>(
    roots: &[Vec<u8>],
    serializer: S,
) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(roots.iter().map(|root| BytesToStore(root)))
}

fn deserialize_roots<'de, D: serde::Deserializer<'de>>(
    deserializer: D,
) -> Result<Vec<Vec<u8>>, D::Error> {
    let roots = Vec::<StoredBytes>::deserialize(deserializer)?;
    Ok(roots.into_iter().map(|StoredBytes(root)| root).collect())
}

impl TlsSpec {
    /// The name that a server on `host` is asked for, and its certificate verified against.
    pub fn name_for<'a>(&'a self, host: &'a str) -> &'a str {
        self.server_name.as_deref().unwrap_or(host)
    }

    /// The files that it needs.
    pub(crate) fn files(&self) -> impl Iterator<Item = &PlanFile> {
        let identity = self.identity.iter();
        let identity = identity.flat_map(|identity| [&identity.certificate, &identity.key]);
        self.roots.iter().chain(identity)
    }
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
    }

    #[test]
    fn versions_are_ordered_by_age() {
        assert!(TlsVersion::Tls12 < TlsVersion::Tls13);
    }
}
