//! From errors of HTTP/3 and QUIC to the kinds that are counted.

use brunt_proto::http3::{Ended, ErrorCode};
use brunt_proto::quic::{self, Lost};
use brunt_record::FailureKind;

use crate::failure::of_code;

/// Alerts of TLS about a certificate (RFC 8446 section 6.2): bad, unsupported, revoked, expired,
/// unknown, of an unknown authority.
const OF_CERTIFICATES: [u8; 6] = [42, 43, 44, 45, 46, 48];
/// The alert of a server, or of a client, that has none of the protocols.
const NO_APPLICATION_PROTOCOL: u8 = 120;

/// The kind of a handshake that failed.
pub(super) fn of_handshake(ended: &Ended) -> FailureKind {
    use quic::ErrorCode::{ConnectionRefused, Tls};
    match ended {
        Ended::Broken(_) => FailureKind::OtherProtocol,
        Ended::Lost(lost) => match lost {
            Lost::Version => FailureKind::QuicVersion,
            Lost::Closed {
                code: Tls(NO_APPLICATION_PROTOCOL),
                ..
            }
            | Lost::Broken {
                code: Tls(NO_APPLICATION_PROTOCOL),
                ..
            } => FailureKind::OtherProtocol,
            Lost::Closed { code: Tls(_), .. } => FailureKind::TlsAlert,
            Lost::Closed {
                code: ConnectionRefused,
                ..
            } => FailureKind::QuicRefused,
            Lost::Broken {
                code: Tls(alert), ..
            } if OF_CERTIFICATES.contains(alert) => FailureKind::TlsCertificate,
            Lost::Broken { code: Tls(_), .. } => FailureKind::TlsFailed,
            Lost::Broken { .. } => FailureKind::QuicFailed,
            Lost::Closed { .. } | Lost::ClosedAbove { .. } | Lost::Reset | Lost::Here => {
                FailureKind::HandshakeCut
            }
            Lost::Idle => FailureKind::HandshakeTimedOut,
        },
    }
}

/// The kind of the requests in flight on a connection that the server closed, or that idled for too
/// long; absent where it broke a rule in place of that.
pub(super) fn of_close(ended: &Ended) -> Option<FailureKind> {
    match ended {
        Ended::Lost(Lost::Closed { code, .. }) => Some(of_transport(*code)),
        Ended::Lost(Lost::ClosedAbove { code, .. }) => Some(of_application(ErrorCode::of(*code))),
        Ended::Lost(Lost::Idle) => Some(FailureKind::QuicIdle),
        Ended::Lost(Lost::Reset | Lost::Here) => Some(FailureKind::Reset),
        Ended::Lost(Lost::Version | Lost::Broken { .. }) | Ended::Broken(_) => None,
    }
}

/// The kind of the requests in flight on a connection whose server broke a rule.
pub(super) fn of_broken(ended: &Ended) -> FailureKind {
    match ended {
        Ended::Broken(_) => FailureKind::Http3Error,
        Ended::Lost(_) => FailureKind::QuicError,
    }
}

fn of_transport(code: quic::ErrorCode) -> FailureKind {
    if let quic::ErrorCode::Tls(_) = code {
        return FailureKind::QuicClosedTlsAlert;
    }
    of_code("QUIC closed", code, FailureKind::QuicClosedOtherCode)
}

fn of_application(code: ErrorCode) -> FailureKind {
    of_code("closed", code, FailureKind::Http3ClosedOtherCode)
}

/// The kind of a stream that the server reset.
pub(super) fn of_reset(code: ErrorCode) -> FailureKind {
    of_code("stream reset", code, FailureKind::Http3ResetOtherCode)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_have_the_kinds_that_name_them() {
        let named = |kind: FailureKind| kind.label().rsplit(": ").next().unwrap_or_default();
        let mut kinds = std::collections::BTreeSet::new();
        for code in (0x100..=0x110).chain(0x200..=0x202).map(ErrorCode::of) {
            for kind in [of_application(code), of_reset(code)] {
                assert!(
                    [code.to_string().as_str(), "another code of HTTP/3"].contains(&named(kind))
                );
                kinds.insert(kind);
            }
        }
        for code in (0..=0x10).map(quic::ErrorCode::of) {
            let kind = of_transport(code);
            assert!([code.to_string().as_str(), "another code"].contains(&named(kind)));
            kinds.insert(kind);
        }
        kinds.insert(of_transport(quic::ErrorCode::of(0x128)));
        let all = FailureKind::ALL.iter().map(|kind| format!("{kind:?}"));
        let prefixes = ["Http3Reset", "Http3Closed", "QpackClosed", "QuicClosed"];
        let of_codes = all.filter(|name| prefixes.iter().any(|prefix| name.starts_with(prefix)));
        assert_eq!(of_codes.count(), kinds.len());
    }
}
