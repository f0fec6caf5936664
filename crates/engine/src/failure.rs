//! From errno and parser errors to the kinds that are counted.

use std::fmt::Display;
use std::io;

use brunt_io::backend::HandshakeFailure;
use brunt_load::RequestFailure;
use brunt_proto::http1::ReplyError;
use brunt_proto::http2::frame::ErrorCode;
use brunt_proto::messages::ScanError;
use brunt_proto::websocket::{ClientError, CloseCode, HandshakeError};
use brunt_record::FailureKind;

/// The kind of a failed connection attempt.
pub(crate) fn of_connect(errno: i32) -> FailureKind {
    match errno {
        libc::ECONNREFUSED | libc::ENOENT => FailureKind::ConnectRefused,
        libc::ETIMEDOUT => FailureKind::ConnectTimedOut,
        libc::EHOSTUNREACH | libc::ENETUNREACH => FailureKind::ConnectUnreachable,
        libc::EADDRNOTAVAIL => FailureKind::ConnectNoPort,
        libc::EMFILE | libc::ENFILE | libc::ENOBUFS | libc::ENOMEM => {
            FailureKind::ConnectNoDescriptor
        }
        _ => FailureKind::ConnectOther,
    }
}

/// The kind of an attempt that could not begin.
pub(crate) fn of_open(error: &io::Error) -> FailureKind {
    error
        .raw_os_error()
        .map_or(FailureKind::ConnectNoDescriptor, of_connect)
}

/// The kind of a failed TLS handshake.
pub(crate) fn of_handshake(reason: HandshakeFailure) -> FailureKind {
    match reason {
        HandshakeFailure::Cut => FailureKind::HandshakeCut,
        HandshakeFailure::Alert => FailureKind::TlsAlert,
        HandshakeFailure::Certificate => FailureKind::TlsCertificate,
        HandshakeFailure::OtherProtocol => FailureKind::OtherProtocol,
        HandshakeFailure::Broken => FailureKind::TlsFailed,
    }
}

/// The kind of a failed send or receive while a request was in flight.
pub(crate) fn of_socket(errno: i32) -> FailureKind {
    match errno {
        libc::EPROTO => FailureKind::TlsBroken,
        // An open datagram socket also learns that nobody listens (ICMP).
        libc::ECONNRESET | libc::EPIPE | libc::ECONNABORTED | libc::ECONNREFUSED => {
            FailureKind::Reset
        }
        _ => FailureKind::SocketError,
    }
}

/// The kind of a request's failure, as generators of requests get it.
pub(crate) fn for_generators(kind: FailureKind) -> RequestFailure {
    match kind {
        FailureKind::TimedOut => RequestFailure::TimedOut,
        FailureKind::Reset
        | FailureKind::ClosedBeforeReply
        | FailureKind::TruncatedHead
        | FailureKind::TruncatedBody
        | FailureKind::TruncatedReply
        | FailureKind::Unanswered
        | FailureKind::TlsBroken
        | FailureKind::SocketError => RequestFailure::ConnectionLost,
        _ => RequestFailure::Unreadable,
    }
}

/// The kind of a reply that could not be read.
pub(crate) fn of_reply(error: ReplyError) -> FailureKind {
    match error {
        ReplyError::MalformedHead => FailureKind::MalformedHead,
        ReplyError::TlsAlert => FailureKind::TlsExpected,
        ReplyError::HeadTooLarge => FailureKind::HeadTooLarge,
        ReplyError::TooManyHeaders => FailureKind::TooManyHeaders,
        ReplyError::UnsupportedVersion => FailureKind::UnsupportedVersion,
        ReplyError::BadContentLength => FailureKind::BadContentLength,
        ReplyError::BadTransferEncoding => FailureKind::BadTransferEncoding,
        ReplyError::BadChunk => FailureKind::BadChunk,
        ReplyError::TrailersTooLarge => FailureKind::TrailersTooLarge,
        ReplyError::BadInterim => FailureKind::BadInterim,
        ReplyError::TruncatedHead => FailureKind::TruncatedHead,
        ReplyError::TruncatedBody => FailureKind::TruncatedBody,
    }
}

/// The kind of a reply to a message that is not framed as it should be.
pub(crate) fn of_scan(error: ScanError) -> FailureKind {
    match error {
        ScanError::WrongEcho { .. } => FailureKind::WrongEcho,
        ScanError::Truncated => FailureKind::TruncatedReply,
        ScanError::Length { .. } => FailureKind::BadLength,
        ScanError::Resp(_) => FailureKind::MalformedReply,
    }
}

/// The kind of what a server of WebSocket does wrong, or refuses.
pub(crate) fn of_websocket(error: &ClientError) -> FailureKind {
    match error {
        ClientError::Handshake(HandshakeError::Refused { .. }) => FailureKind::UpgradeRefused,
        ClientError::Handshake(_) => FailureKind::OtherProtocol,
        ClientError::Frame(_) => FailureKind::WebSocketError,
    }
}

/// The kind of a message that was not answered before a server of WebSocket closed.
pub(crate) fn of_close(code: Option<CloseCode>) -> FailureKind {
    match code.map(CloseCode::number) {
        None => FailureKind::CloseWithoutCode,
        Some(1000) => FailureKind::CloseNormal,
        Some(1001) => FailureKind::CloseGoingAway,
        Some(1002) => FailureKind::CloseProtocolError,
        Some(1003) => FailureKind::CloseUnsupportedData,
        Some(1007) => FailureKind::CloseInvalidText,
        Some(1008) => FailureKind::ClosePolicy,
        Some(1009) => FailureKind::CloseTooBig,
        Some(1011) => FailureKind::CloseServerError,
        Some(1012) => FailureKind::CloseRestart,
        Some(1013) => FailureKind::CloseTryLater,
        Some(_) => FailureKind::CloseOtherCode,
    }
}

/// The kind of a stream of HTTP/2 that the server reset.
pub(crate) fn of_reset(code: ErrorCode) -> FailureKind {
    of_code("stream reset", code, FailureKind::StreamOtherCode)
}

/// The kind of an end for which a code was given; `other` where the code has no kind of its own.
pub(crate) fn of_code(end: &str, code: impl Display, other: FailureKind) -> FailureKind {
    FailureKind::labelled(&format!("{end}: {code}")).unwrap_or(other)
}
