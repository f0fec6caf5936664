//! Versions, cipher suites and key exchange groups by the names of the IANA registries.

use rustls::crypto::aws_lc_rs::{ALL_CIPHER_SUITES, ALL_KX_GROUPS};
use rustls::{CipherSuite, NamedGroup, ProtocolVersion};

/// A version of TLS, oldest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Version {
    /// TLS 1.2 (RFC 5246).
    Tls12,
    /// TLS 1.3 (RFC 8446).
    Tls13,
}

impl Version {
    /// The version as people write it: `TLS 1.3`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Tls12 => "TLS 1.2",
            Self::Tls13 => "TLS 1.3",
        }
    }

    pub(super) fn of(protocol: ProtocolVersion) -> Option<Self> {
        match protocol {
            ProtocolVersion::TLSv1_2 => Some(Self::Tls12),
            ProtocolVersion::TLSv1_3 => Some(Self::Tls13),
            _ => None,
        }
    }
}

/// Every cipher suite that can be asked for, in the order in which they are offered.
pub fn cipher_suite_names() -> impl Iterator<Item = &'static str> {
    ALL_CIPHER_SUITES
        .iter()
        .map(|suite| cipher_suite_name(suite.suite()))
}

/// Every key exchange group that can be asked for.
pub fn group_names() -> impl Iterator<Item = &'static str> {
    ALL_KX_GROUPS.iter().map(|group| group_name(group.name()))
}

/// The registry's name of a cipher suite.
pub(super) fn cipher_suite_name(suite: CipherSuite) -> &'static str {
    match suite {
        CipherSuite::TLS13_AES_128_GCM_SHA256 => "TLS_AES_128_GCM_SHA256",
        CipherSuite::TLS13_AES_256_GCM_SHA384 => "TLS_AES_256_GCM_SHA384",
        CipherSuite::TLS13_CHACHA20_POLY1305_SHA256 => "TLS_CHACHA20_POLY1305_SHA256",
        other => other.as_str().unwrap_or("unknown"),
    }
}

/// The registry's name of a key exchange group.
pub(super) fn group_name(group: NamedGroup) -> &'static str {
    match group {
        NamedGroup::X25519 => "x25519",
        NamedGroup::secp256r1MLKEM768 => "SecP256r1MLKEM768",
        other => other.as_str().unwrap_or("unknown"),
    }
}
