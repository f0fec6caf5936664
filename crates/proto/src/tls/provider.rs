//! The versions, cipher suites and key exchange groups that one side offers, their names in the
//! IANA registries, and why a side cannot be set up.

use std::sync::LazyLock;

use rustls::crypto::aws_lc_rs::{ALL_CIPHER_SUITES, ALL_KX_GROUPS, kx_group};
use rustls::crypto::{CipherSuiteCommon, CryptoProvider, SupportedKxGroup, aws_lc_rs};
use rustls::{
    CipherSuite, NamedGroup, ProtocolVersion, SupportedCipherSuite, SupportedProtocolVersion,
    Tls12CipherSuite, version,
};
use serde::{Deserialize, Serialize};
use thiserror::Error;

/// Groups offered unless others are asked for: those without a post-quantum part, which costs time
/// and bytes that few servers spend.
const DEFAULT_GROUPS: [&dyn SupportedKxGroup; 3] =
    [kx_group::X25519, kx_group::SECP256R1, kx_group::SECP384R1];

/// The cipher suites, in the order in which they are offered.
///
/// TLS 1.2 cannot change keys, so rustls ends its sessions of AES-GCM after 2^24 records. Other
/// clients and servers go on, and to end them would put failures into a measurement that the
/// server has no part in: so there is no such limit here.
static CIPHER_SUITES: LazyLock<Vec<SupportedCipherSuite>> = LazyLock::new(|| {
    ALL_CIPHER_SUITES
        .iter()
        .map(|suite| match suite {
            SupportedCipherSuite::Tls12(suite) => without_limit(suite),
            other => *other,
        })
        .collect()
});

/// The versions from `min` to `max`.
pub(super) fn versions(
    min: Version,
    max: Version,
) -> Result<Vec<&'static SupportedProtocolVersion>, ConfigError> {
    if min > max {
        return Err(ConfigError::Versions(min, max));
    }
    let all = [
        (Version::Tls13, &version::TLS13),
        (Version::Tls12, &version::TLS12),
    ];
    let chosen = all
        .into_iter()
        .filter(|(version, _)| (min..=max).contains(version));
    Ok(chosen.map(|(_, supported)| supported).collect())
}

/// The cryptography on offer: the cipher suites and groups of these names, in this order, or all
/// suites and the default groups where there are none.
pub(super) fn provider(
    versions: &[&'static SupportedProtocolVersion],
    cipher_suites: &[String],
    groups: &[String],
) -> Result<CryptoProvider, ConfigError> {
    let mut provider = aws_lc_rs::default_provider();
    provider.kx_groups = DEFAULT_GROUPS.to_vec();
    provider.cipher_suites = if cipher_suites.is_empty() {
        CIPHER_SUITES.clone()
    } else {
        cipher_suites
            .iter()
            .map(|name| find_cipher_suite(name))
            .collect::<Result<_, _>>()?
    };
    if !groups.is_empty() {
        provider.kx_groups = groups
            .iter()
            .map(|name| find_group(name))
            .collect::<Result<_, _>>()?;
    }
    let is_possible = |version: &&'static SupportedProtocolVersion| {
        let mut suites = provider.cipher_suites.iter();
        let mut groups = provider.kx_groups.iter();
        suites.any(|suite| suite.version() == *version)
            && groups.any(|group| group.usable_for_version(version.version))
    };
    if versions.iter().any(is_possible) {
        Ok(provider)
    } else {
        Err(ConfigError::NothingLeft)
    }
}

/// A copy of the cipher suite that protects any number of records. It lives as long as the program.
fn without_limit(suite: &Tls12CipherSuite) -> SupportedCipherSuite {
    let common = CipherSuiteCommon {
        confidentiality_limit: u64::MAX,
        ..suite.common
    };
    SupportedCipherSuite::Tls12(Box::leak(Box::new(Tls12CipherSuite { common, ..*suite })))
}

/// The one of this name; names have no case.
fn find<T: Copy>(all: &[T], name: &str, name_of: impl Fn(&T) -> &'static str) -> Option<T> {
    let mut all = all.iter();
    all.find(|one| name_of(one).eq_ignore_ascii_case(name))
        .copied()
}

fn find_cipher_suite(name: &str) -> Result<SupportedCipherSuite, ConfigError> {
    find(&CIPHER_SUITES, name, |suite| {
        cipher_suite_name(suite.suite())
    })
    .ok_or_else(|| ConfigError::CipherSuite(name.to_owned()))
}

fn find_group(name: &str) -> Result<&'static dyn SupportedKxGroup, ConfigError> {
    find(ALL_KX_GROUPS, name, |group| group_name(group.name()))
        .ok_or_else(|| ConfigError::Group(name.to_owned()))
}

/// Why a side cannot be set up.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ConfigError {
    /// The server name is neither a host name nor an IP address.
    #[error("{0:?} is neither a host name nor an IP address")]
    ServerName(String),
    /// None of the roots is a certificate that can be trusted.
    #[error("there is no certificate to trust among the roots")]
    NoRoots,
    /// No cipher suite of this name is known.
    #[error(
        "cipher suite {0:?} is not known; known are {known}",
        known = listed(cipher_suite_names())
    )]
    CipherSuite(String),
    /// No key exchange group of this name is known.
    #[error("group {0:?} is not known; known are {known}", known = listed(group_names()))]
    Group(String),
    /// The oldest version is newer than the newest.
    #[error("{} is newer than {}", .0.as_str(), .1.as_str())]
    Versions(Version, Version),
    /// No version has both a cipher suite and a group.
    #[error(
        "no version of TLS that is asked for has one of the cipher suites and one of the groups \
         that are asked for"
    )]
    NothingLeft,
    /// A certificate or its key cannot be used.
    #[error("certificate or key cannot be used: {0}")]
    Identity(String),
}

fn listed(names: impl Iterator<Item = &'static str>) -> String {
    names.collect::<Vec<_>>().join(", ")
}

/// A version of TLS, oldest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Version {
    /// TLS 1.2 (RFC 5246).
    #[serde(rename = "TLS 1.2")]
    Tls12,
    /// TLS 1.3 (RFC 8446).
    #[serde(rename = "TLS 1.3")]
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sessions_that_cannot_change_keys_end_after_no_number_of_records() {
        let versions = versions(Version::Tls12, Version::Tls13).unwrap();
        for names in [
            &[][..],
            &["TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256".to_owned()],
        ] {
            let provider = provider(&versions, names, &[]).unwrap();
            let limits: Vec<u64> = provider
                .cipher_suites
                .iter()
                .filter_map(|suite| match suite {
                    SupportedCipherSuite::Tls12(suite) => Some(suite.common.confidentiality_limit),
                    _ => None,
                })
                .collect();
            assert!(!limits.is_empty());
            assert!(limits.iter().all(|limit| *limit == u64::MAX), "{limits:?}");
        }
    }
}
