//! Errors of TLS. Their messages say what to change.

use rustls::{AlertDescription, InvalidMessage};
use thiserror::Error;

use super::certificate::{self, CertificateFault, CertificateObjection};
use super::provider::{Version, cipher_suite_names, group_names};

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

/// Why a session failed.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum TlsError {
    /// The peer's certificate did not pass.
    #[error("the certificate {0}")]
    Certificate(CertificateObjection),
    /// The peer ended the session with an alert (RFC 8446 section 6).
    #[error("the peer sent the alert {0}")]
    Alert(String),
    /// There is no application protocol that both sides speak (RFC 7301 section 3.2).
    #[error("the two sides have no application protocol (ALPN) in common")]
    NoCommonProtocol,
    /// The peer broke the rules of TLS, or there is nothing that both sides can do.
    #[error("{0}")]
    Broken(String),
}

impl From<rustls::Error> for TlsError {
    fn from(error: rustls::Error) -> Self {
        match error {
            rustls::Error::InvalidCertificate(error) => {
                Self::Certificate(certificate::objection(&error))
            }
            rustls::Error::NoCertificatesPresented => Self::Certificate(CertificateObjection {
                fault: CertificateFault::Other,
                words: "is missing: the peer sent none".to_owned(),
            }),
            rustls::Error::NoApplicationProtocol
            | rustls::Error::AlertReceived(AlertDescription::NoApplicationProtocol) => {
                Self::NoCommonProtocol
            }
            rustls::Error::AlertReceived(alert) => Self::Alert(alert_words(alert)),
            rustls::Error::InvalidMessage(InvalidMessage::InvalidContentType) => {
                Self::Broken("the peer does not speak TLS: what it sent is no record".to_owned())
            }
            other => Self::Broken(other.to_string()),
        }
    }
}

/// The registry's name of an alert, and what it mostly means.
fn alert_words(alert: AlertDescription) -> String {
    let Some(camel) = alert.as_str() else {
        return format!("number {}", u8::from(alert));
    };
    let name = snake_case(camel);
    let meaning = match alert {
        AlertDescription::HandshakeFailure => {
            ": it can do none of the versions, cipher suites and groups offered, or asks for more"
        }
        AlertDescription::ProtocolVersion => ": it speaks none of the versions of TLS offered",
        AlertDescription::CertificateRequired => ": it asks for a client certificate",
        AlertDescription::UnrecognisedName => ": it does not know the server name asked for",
        AlertDescription::BadCertificate
        | AlertDescription::CertificateUnknown
        | AlertDescription::CertificateExpired
        | AlertDescription::UnknownCA => ": it does not accept the certificate shown to it",
        _ => "",
    };
    name + meaning
}

/// `UnknownCA` as `unknown_ca`.
fn snake_case(camel: &str) -> String {
    let mut snake = String::with_capacity(camel.len() + 4);
    let mut after_lower = false;
    for character in camel.chars() {
        if character.is_ascii_uppercase() && after_lower {
            snake.push('_');
        }
        after_lower = character.is_ascii_lowercase();
        snake.push(character.to_ascii_lowercase());
    }
    snake
}

fn listed(names: impl Iterator<Item = &'static str>) -> String {
    names.collect::<Vec<_>>().join(", ")
}
