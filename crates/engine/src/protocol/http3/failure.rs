//! From errors of HTTP/3 and QUIC to the kinds that are counted.

use brunt_proto::http3::{Ended, ErrorCode};
use brunt_proto::quic::{self, Lost};
use brunt_record::FailureKind;

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
    use quic::ErrorCode as Code;
    match code {
        Code::NoError => FailureKind::QuicClosedNoError,
        Code::InternalError => FailureKind::QuicClosedInternalError,
        Code::FlowControlError => FailureKind::QuicClosedFlowControlError,
        Code::StreamLimitError => FailureKind::QuicClosedStreamLimitError,
        Code::StreamStateError => FailureKind::QuicClosedStreamStateError,
        Code::FinalSizeError => FailureKind::QuicClosedFinalSizeError,
        Code::FrameEncodingError => FailureKind::QuicClosedFrameEncodingError,
        Code::TransportParameterError => FailureKind::QuicClosedTransportParameterError,
        Code::ConnectionIdLimitError => FailureKind::QuicClosedConnectionIdLimitError,
        Code::ProtocolViolation => FailureKind::QuicClosedProtocolViolation,
        Code::ApplicationError => FailureKind::QuicClosedApplicationError,
        Code::KeyUpdateError => FailureKind::QuicClosedKeyUpdateError,
        Code::AeadLimitReached => FailureKind::QuicClosedAeadLimitReached,
        Code::NoViablePath => FailureKind::QuicClosedNoViablePath,
        Code::Tls(_) => FailureKind::QuicClosedTlsAlert,
        Code::ConnectionRefused
        | Code::InvalidToken
        | Code::CryptoBufferExceeded
        | Code::Other(_) => FailureKind::QuicClosedOtherCode,
    }
}

fn of_application(code: ErrorCode) -> FailureKind {
    match code {
        ErrorCode::NoError => FailureKind::Http3ClosedNoError,
        ErrorCode::GeneralProtocolError => FailureKind::Http3ClosedGeneralProtocolError,
        ErrorCode::InternalError => FailureKind::Http3ClosedInternalError,
        ErrorCode::StreamCreationError => FailureKind::Http3ClosedStreamCreationError,
        ErrorCode::ClosedCriticalStream => FailureKind::Http3ClosedClosedCriticalStream,
        ErrorCode::FrameUnexpected => FailureKind::Http3ClosedFrameUnexpected,
        ErrorCode::FrameError => FailureKind::Http3ClosedFrameError,
        ErrorCode::ExcessiveLoad => FailureKind::Http3ClosedExcessiveLoad,
        ErrorCode::IdError => FailureKind::Http3ClosedIdError,
        ErrorCode::SettingsError => FailureKind::Http3ClosedSettingsError,
        ErrorCode::MissingSettings => FailureKind::Http3ClosedMissingSettings,
        ErrorCode::MessageError => FailureKind::Http3ClosedMessageError,
        ErrorCode::QpackDecompressionFailed => FailureKind::QpackClosedDecompressionFailed,
        ErrorCode::QpackEncoderStreamError => FailureKind::QpackClosedEncoderStreamError,
        ErrorCode::QpackDecoderStreamError => FailureKind::QpackClosedDecoderStreamError,
        ErrorCode::RequestRejected
        | ErrorCode::RequestCancelled
        | ErrorCode::RequestIncomplete
        | ErrorCode::ConnectError
        | ErrorCode::VersionFallback
        | ErrorCode::Other(_) => FailureKind::Http3ClosedOtherCode,
    }
}

/// The kind of a stream that the server reset.
pub(super) fn of_reset(code: ErrorCode) -> FailureKind {
    match code {
        ErrorCode::NoError => FailureKind::Http3ResetNoError,
        ErrorCode::GeneralProtocolError => FailureKind::Http3ResetGeneralProtocolError,
        ErrorCode::InternalError => FailureKind::Http3ResetInternalError,
        ErrorCode::ExcessiveLoad => FailureKind::Http3ResetExcessiveLoad,
        ErrorCode::RequestCancelled => FailureKind::Http3ResetRequestCancelled,
        ErrorCode::RequestIncomplete => FailureKind::Http3ResetRequestIncomplete,
        ErrorCode::MessageError => FailureKind::Http3ResetMessageError,
        ErrorCode::ConnectError => FailureKind::Http3ResetConnectError,
        ErrorCode::VersionFallback => FailureKind::Http3ResetVersionFallback,
        ErrorCode::StreamCreationError
        | ErrorCode::ClosedCriticalStream
        | ErrorCode::FrameUnexpected
        | ErrorCode::FrameError
        | ErrorCode::IdError
        | ErrorCode::SettingsError
        | ErrorCode::MissingSettings
        | ErrorCode::RequestRejected
        | ErrorCode::QpackDecompressionFailed
        | ErrorCode::QpackEncoderStreamError
        | ErrorCode::QpackDecoderStreamError
        | ErrorCode::Other(_) => FailureKind::Http3ResetOtherCode,
    }
}
