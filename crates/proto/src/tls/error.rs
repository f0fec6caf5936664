//! Errors of TLS, and why a certificate fails verification. Their messages say what to change.

use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;

use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{AlertDescription, CertificateError, InvalidMessage, OtherError};
use thiserror::Error;

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
            rustls::Error::InvalidCertificate(error) => Self::Certificate(objection(&error)),
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

/// Names of a certificate shown in words at most.
const NAMES_MAX: usize = 5;
/// Bytes of one of them at most.
const NAME_BYTES_MAX: usize = 80;

/// The certificate's issuer is itself, and it is not among the roots.
#[derive(Debug)]
pub(super) struct SelfSigned;

impl fmt::Display for SelfSigned {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("is self-signed and not among the trusted roots")
    }
}

impl std::error::Error for SelfSigned {}

impl SelfSigned {
    pub(super) fn into_error(self) -> CertificateError {
        CertificateError::Other(OtherError(Arc::new(self)))
    }
}

/// What is to be changed for a certificate to pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CertificateFault {
    /// The roots: its issuer is none of them, or it is itself what would have to be one.
    Issuer,
    /// The name asked for: it is for others.
    Name,
    /// The certificate itself: it has expired, names nothing, is for another purpose.
    Other,
}

/// Why a certificate does not pass.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{words}")]
pub struct CertificateObjection {
    /// What is to be changed.
    pub fault: CertificateFault,
    /// What is wrong, to follow "the certificate".
    pub words: String,
}

/// Whether a private key in PEM is encrypted (RFC 5958; RFC 1421 section 4.6.1.1): it cannot be
/// used as it is.
pub fn is_encrypted_key(pem: &[u8]) -> bool {
    const MARKS: [&[u8]; 2] = [
        b"-----BEGIN ENCRYPTED PRIVATE KEY-----",
        b"Proc-Type: 4,ENCRYPTED",
    ];
    MARKS
        .iter()
        .any(|mark| pem.windows(mark.len()).any(|bytes| bytes == *mark))
}

/// Why a certificate does not pass.
fn objection(error: &CertificateError) -> CertificateObjection {
    use CertificateFault::{Issuer, Name, Other};
    let (fault, words) = match error {
        CertificateError::ExpiredContext { not_after, .. } => {
            (Other, format!("expired on {}", date(*not_after)))
        }
        CertificateError::Expired => (Other, "has expired".to_owned()),
        CertificateError::NotValidYetContext { not_before, .. } => {
            (Other, format!("is not valid before {}", date(*not_before)))
        }
        CertificateError::NotValidForNameContext {
            expected,
            presented,
        } => {
            let fault = if presented.is_empty() { Other } else { Name };
            (fault, wrong_name(expected, presented))
        }
        CertificateError::NotValidForName => (Name, "is for another name".to_owned()),
        CertificateError::UnknownIssuer => (
            Issuer,
            "is signed by an issuer that is not among the trusted roots (or the peer left out an \
             intermediate certificate)"
                .to_owned(),
        ),
        CertificateError::BadEncoding => (Other, "is not encoded as X.509 demands".to_owned()),
        // The trusted root of its issuer's name has another key.
        CertificateError::BadSignature => {
            (Issuer, "is not signed by the key of its issuer".to_owned())
        }
        CertificateError::InvalidPurposeContext { .. } | CertificateError::InvalidPurpose => {
            (Other, "is for another purpose".to_owned())
        }
        CertificateError::Other(OtherError(why)) if why.is::<SelfSigned>() => {
            (Issuer, why.to_string())
        }
        error if is_authority(error) => (
            Issuer,
            "is that of an authority (CA:TRUE), which passes for a server only as a root itself"
                .to_owned(),
        ),
        CertificateError::UnsupportedSignatureAlgorithmContext { .. }
        | CertificateError::UnsupportedSignatureAlgorithmForPublicKeyContext { .. } => (
            Issuer,
            "is signed in a way that does not fit the trusted root of its issuer's name".to_owned(),
        ),
        other => (Other, format!("does not pass: {other}")),
    };
    CertificateObjection { fault, words }
}

/// Whether the only objection is that the certificate is an authority's: it is valid now.
pub(super) fn is_authority(error: &CertificateError) -> bool {
    let CertificateError::Other(OtherError(why)) = error else {
        return false;
    };
    matches!(why.downcast_ref(), Some(webpki::Error::CaUsedAsEndEntity))
}

fn wrong_name(expected: &ServerName<'_>, presented: &[String]) -> String {
    let expected = expected.to_str();
    if presented.is_empty() {
        return format!("names no host or address (subjectAltName), so it is not for {expected}");
    }
    let mut names: Vec<String> = presented
        .iter()
        .take(NAMES_MAX)
        .map(|name| bare(name))
        .collect();
    if presented.len() > NAMES_MAX {
        names.push(format!("{} more", presented.len() - NAMES_MAX));
    }
    format!("is for {} and not for {expected}", names.join(", "))
}

/// `DnsName("a.example")` as `a.example`, shortened, and addresses as they are written.
fn bare(name: &str) -> String {
    let inner = name
        .split_once('(')
        .and_then(|(_, inner)| inner.strip_suffix(')'))
        .unwrap_or(name)
        .trim_matches('"');
    if let Ok(address) = inner.parse::<IpAddr>() {
        return address.to_string();
    }
    inner
        .chars()
        .flat_map(char::escape_default)
        .take(NAME_BYTES_MAX)
        .collect()
}

/// The day of `time` in the Gregorian calendar, UTC, as `2026-01-31`.
fn date(time: UnixTime) -> String {
    // Years are counted from March, so that a leap day is the last day of one; 400 of them, an
    // era, have 146,097 days. 1970-01-01 is 719,468 days after 0000-03-01.
    let days = time.as_secs() / 86_400 + 719_468;
    let (era, day_of_era) = (days / 146_097, days % 146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = (month_from_march + 2) % 12 + 1;
    let year = era * 400 + year_of_era + u64::from(month <= 2);
    format!("{year:04}-{month:02}-{day:02}")
}

/// Whether issuer and subject of a certificate are the same (RFC 5280 section 4.1). What is not a
/// certificate is not self-signed.
pub(super) fn is_self_signed(certificate: &CertificateDer<'_>) -> bool {
    let parsed = webpki::EndEntityCert::try_from(certificate);
    parsed.is_ok_and(|parsed| parsed.issuer() == parsed.subject())
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn days_are_those_of_the_calendar() {
        let table = [
            (0, "1970-01-01"),
            (951_782_400, "2000-02-29"),
            (951_868_800, "2000-03-01"),
            (1_735_689_599, "2024-12-31"),
            (1_735_689_600, "2025-01-01"),
            (4_107_542_400, "2100-03-01"),
        ];
        for (seconds, day) in table {
            let time = UnixTime::since_unix_epoch(Duration::from_secs(seconds));
            assert_eq!(date(time), day);
        }
    }
}
