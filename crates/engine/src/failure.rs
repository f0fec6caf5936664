//! From errno and parser errors to the kinds that are counted, and why there is no run.

use std::fmt::Display;
use std::io;

use brunt_io::backend::HandshakeFailure;
use brunt_load::{GeneratorError, RequestFailure};
use brunt_probe::server::WatchError;
use brunt_probe::server_count::ServerCountError;
use brunt_proto::http1::ReplyError;
use brunt_proto::http2::frame::ErrorCode;
use brunt_proto::messages::ScanError;
use brunt_proto::websocket::{ClientError, CloseCode, HandshakeError};
use brunt_record::{FailureKind, SetUp, counted};
use thiserror::Error;

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
        FailureKind::Unanswered | FailureKind::TlsBroken | FailureKind::SocketError => {
            RequestFailure::ConnectionLost
        }
        kind if kind.is_cut() => RequestFailure::ConnectionLost,
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
    let Some(code) = code else {
        return FailureKind::CloseWithoutCode;
    };
    let words = format!("closed: {} ", code.number());
    let mut kinds = FailureKind::ALL.iter().copied();
    let named = kinds.find(|kind| kind.label().starts_with(&words));
    named.unwrap_or(FailureKind::CloseOtherCode)
}

/// The kind of a stream of HTTP/2 that the server reset.
pub(crate) fn of_reset(code: ErrorCode) -> FailureKind {
    of_code("stream reset", code, FailureKind::StreamOtherCode)
}

/// The kind of an end for which a code was given; `other` where the code has no kind of its own.
pub(crate) fn of_code(end: &str, code: impl Display, other: FailureKind) -> FailureKind {
    FailureKind::labelled(&format!("{end}: {code}")).unwrap_or(other)
}

/// Why there is no run.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum RunError {
    /// A signal came before anything was measured, or before a simulation was complete.
    #[error("interrupted before there was a measurement: there is nothing to report")]
    Interrupted,
    /// The start of its load came before it was ready.
    #[error(
        "the load was to start {:.1} s before all was ready for it: let it start later, or open \
         fewer connections (-c)", *late_ns as f64 / 1e9
    )]
    StartMissed {
        /// By how much, nanoseconds.
        late_ns: u64,
    },
    /// Set-up ended without a connection.
    #[error(
        "{} could be opened in set-up: {}; {}",
        none_of(set_up.asked),
        what_failed(set_up),
        remedy(set_up)
    )]
    NoConnection {
        /// What failed.
        set_up: Box<SetUp>,
    },
    /// The server cannot be watched as asked.
    #[error(transparent)]
    Watch(#[from] WatchError),
    /// The server's own count cannot be read.
    #[error(transparent)]
    ServerCount(#[from] ServerCountError),
    /// The thread that reads the evidence could not be started.
    #[error("cannot start the thread that watches machine and server: {0}")]
    Observer(io::Error),
    /// A worker could not be started, its backend failed, or it panicked.
    #[error("worker {worker} failed: {reason}")]
    Worker {
        /// Its number.
        worker: u32,
        /// The system's reason, as a rule.
        reason: io::Error,
    },
    /// What makes the requests ended the run before anything was measured.
    #[error(transparent)]
    Generator(GeneratorError),
    /// A plan whose requests a generator made has none here.
    #[error(
        "the requests of this plan were made by a script or from a log of sessions, which a plan \
         does not hold; give what makes them again (`set_generators`)"
    )]
    NoGenerator,
    /// What makes the requests did not return.
    #[error(
        "worker {worker} is still in a function of the script, long after the end of the run: \
         there is no result; let the function return"
    )]
    LeftBehind {
        /// Its number.
        worker: u32,
    },
    /// What was prepared in a simulation is to be run on this machine.
    #[error("what was prepared in a simulation runs in that alone (`run_in`)")]
    OfSimulation,
}

fn none_of(connections: u32) -> String {
    match connections {
        1 => "no connection".to_owned(),
        _ => format!("none of the {connections} connections"),
    }
}

fn what_failed(set_up: &SetUp) -> String {
    let attempts: u64 = set_up.failures.iter().map(|(_, count)| count).sum();
    match set_up.main_failure() {
        None => format!(
            "no attempt was answered within {:.1} s",
            set_up.waited_ns.unwrap_or(0) as f64 / 1e9
        ),
        Some((kind, count)) if count == attempts => {
            let failed = counted(attempts, "attempt", "attempts");
            format!("{failed} failed, all with `{}`", kind.label())
        }
        Some((kind, count)) => format!(
            "{attempts} attempts failed, {count} of them with `{}`",
            kind.label()
        ),
    }
}

/// What to do about it.
fn remedy(set_up: &SetUp) -> &'static str {
    match set_up.main_failure().map(|(kind, _)| kind) {
        Some(FailureKind::ConnectRefused | FailureKind::ConnectUnreachable) => {
            "is the server still running, and its port open to this machine?"
        }
        Some(FailureKind::ConnectTimedOut | FailureKind::HandshakeTimedOut) | None => {
            "the server does not take connections as fast as they come, or at all: use fewer (-c), \
             open them more slowly (--connection-rate), or wait longer (--connect-timeout)"
        }
        Some(FailureKind::ConnectNoPort) => {
            "use fewer connections (-c), or offer more local addresses (--source-address)"
        }
        Some(FailureKind::ConnectNoDescriptor) => {
            "use fewer connections (-c), or raise the limit of open files (ulimit -n)"
        }
        Some(_) => "see the server's log for why it ends connections before they are of use",
    }
}
