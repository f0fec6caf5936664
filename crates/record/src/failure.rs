//! The kinds of failure: what went wrong with a connection or a request, as data to be counted.

use std::collections::BTreeMap;

use brunt_load::Work;
use serde::{Deserialize, Serialize};

use crate::merged::Merge;

/// What a failure happened to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FailureScope {
    /// An attempt to open a connection; no request was involved.
    Connect,
    /// An open connection with no request in flight.
    Connection,
    /// One request that was sent.
    Request,
}

/// What several kinds of failure have in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Nature {
    /// The server closed or reset the connection while it owed a reply, or in the middle of it.
    Cut,
    /// The reply was not what the protocol allows.
    Malformed,
    /// The failure is one of TLS.
    Tls,
}

macro_rules! failure_kinds {
    (@one $type:ident) => { None };
    (@one $type:ident $value:ident) => { Some($type::$value) };
    ($($(#[doc = $doc:literal])+
       $variant:ident, $scope:ident $(by $nature:ident)?,
       $label:literal;)+) => {
        /// Why a connection attempt, a connection or a request failed.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(rename_all = "snake_case")]
        pub enum FailureKind { $($(#[doc = $doc])+ $variant,)+ }

        impl FailureKind {
            /// Every kind, in declaration order.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)+];

            /// What the failure happened to.
            pub fn scope(self) -> FailureScope {
                match self { $(Self::$variant => FailureScope::$scope,)+ }
            }

            fn nature(self) -> Option<Nature> {
                match self {
                    $(Self::$variant => failure_kinds!(@one Nature $($nature)?),)+
                }
            }

            /// Words for people, lower case.
            pub fn label(self) -> &'static str {
                match self { $(Self::$variant => $label,)+ }
            }
        }
    };
}

failure_kinds! {
    /// The target answered the connection attempt with a reset (ECONNREFUSED).
    ConnectRefused, Connect, "connection refused";
    /// No answer to the connection attempt within `--connect-timeout`.
    ConnectTimedOut, Connect, "connect timed out";
    /// The connection was there, and its TLS handshake or the server's HTTP/2 settings not complete
    /// within `--connect-timeout`.
    HandshakeTimedOut, Connect, "handshake timed out";
    /// The kernel found no route (EHOSTUNREACH, ENETUNREACH).
    ConnectUnreachable, Connect, "target unreachable";
    /// No free local port (EADDRNOTAVAIL): a limit of this machine, not of the server.
    ConnectNoPort, Connect, "no free local port";
    /// No descriptor or memory for a socket (EMFILE, ENFILE, ENOBUFS): a limit of this machine.
    ConnectNoDescriptor, Connect, "no free descriptor";
    /// Any other error of the connection attempt.
    ConnectOther, Connect, "connect failed otherwise";
    /// The server closed or reset the connection before the TLS handshake or the exchange of
    /// HTTP/2 settings was complete.
    HandshakeCut, Connect, "closed in handshake";
    /// The server ended the TLS handshake with an alert.
    TlsAlert, Connect by Tls, "TLS alert from server";
    /// The server's certificate did not pass.
    TlsCertificate, Connect by Tls, "certificate refused";
    /// The TLS handshake failed otherwise.
    TlsFailed, Connect by Tls, "TLS handshake failed";
    /// The server negotiated another protocol (ALPN) than on the connection made before the run,
    /// or answered HTTP/2 by something else.
    OtherProtocol, Connect, "another protocol negotiated";
    /// The server answered the upgrade to WebSocket with another status than 101.
    UpgradeRefused, Connect, "upgrade refused";
    /// The server speaks no version of QUIC that brunt does (RFC 9000 section 6).
    QuicVersion, Connect, "QUIC version not spoken";
    /// The server refused the connection (CONNECTION_REFUSED, RFC 9000 section 20.1).
    QuicRefused, Connect, "refused: CONNECTION_REFUSED";
    /// The handshake of QUIC failed otherwise.
    QuicFailed, Connect, "QUIC handshake failed";
    /// The server answered the first message of a connection by an error, or by closing it.
    OpeningRefused, Connect, "first message refused";
    /// Bytes came that no request had asked for.
    UnexpectedBytes, Connection, "unasked bytes";
    /// An idle connection was reset.
    IdleReset, Connection, "idle connection reset";
    /// The server ended a one-way stream while the load went on.
    StreamEnded, Connection, "stream ended by the server";
    /// A one-way stream was reset, or its connection lost otherwise.
    StreamReset, Connection, "stream cut by a reset";
    /// No complete reply within `--timeout`.
    TimedOut, Request, "timed out";
    /// The connection was reset while the request was in flight (ECONNRESET, EPIPE).
    Reset, Request by Cut, "connection reset";
    /// The connection was closed before the first byte of the reply.
    ClosedBeforeReply, Request by Cut, "closed before reply";
    /// The connection was closed inside the reply's head.
    TruncatedHead, Request by Cut, "head cut short";
    /// The reply ended inside its body; in HTTP/1.1 with the connection.
    TruncatedBody, Request by Cut, "body cut short";
    /// The reply's body has more bytes than its head tells (HTTP/2, HTTP/3).
    LongBody, Request by Malformed, "body too long";
    /// A call of gRPC failed: its reply is complete, with a status below 400, and has no
    /// `grpc-status` in its trailers, or in a head that nothing follows.
    CallNoStatus, Request, "gRPC: no status";
    /// A call of gRPC failed with CANCELLED: `grpc-status` says so, as in all that follow.
    CallCancelled, Request, "gRPC: CANCELLED";
    /// A call of gRPC failed with UNKNOWN, or with what is not a code of gRPC.
    CallUnknown, Request, "gRPC: UNKNOWN";
    /// A call of gRPC failed with INVALID_ARGUMENT.
    CallInvalidArgument, Request, "gRPC: INVALID_ARGUMENT";
    /// A call of gRPC failed with DEADLINE_EXCEEDED.
    CallDeadlineExceeded, Request, "gRPC: DEADLINE_EXCEEDED";
    /// A call of gRPC failed with NOT_FOUND.
    CallNotFound, Request, "gRPC: NOT_FOUND";
    /// A call of gRPC failed with ALREADY_EXISTS.
    CallAlreadyExists, Request, "gRPC: ALREADY_EXISTS";
    /// A call of gRPC failed with PERMISSION_DENIED.
    CallPermissionDenied, Request, "gRPC: PERMISSION_DENIED";
    /// A call of gRPC failed with RESOURCE_EXHAUSTED.
    CallResourceExhausted, Request, "gRPC: RESOURCE_EXHAUSTED";
    /// A call of gRPC failed with FAILED_PRECONDITION.
    CallFailedPrecondition, Request, "gRPC: FAILED_PRECONDITION";
    /// A call of gRPC failed with ABORTED.
    CallAborted, Request, "gRPC: ABORTED";
    /// A call of gRPC failed with OUT_OF_RANGE.
    CallOutOfRange, Request, "gRPC: OUT_OF_RANGE";
    /// A call of gRPC failed with UNIMPLEMENTED.
    CallUnimplemented, Request, "gRPC: UNIMPLEMENTED";
    /// A call of gRPC failed with INTERNAL.
    CallInternal, Request, "gRPC: INTERNAL";
    /// A call of gRPC failed with UNAVAILABLE.
    CallUnavailable, Request, "gRPC: UNAVAILABLE";
    /// A call of gRPC failed with DATA_LOSS.
    CallDataLoss, Request, "gRPC: DATA_LOSS";
    /// A call of gRPC failed with UNAUTHENTICATED.
    CallUnauthenticated, Request, "gRPC: UNAUTHENTICATED";
    /// The reply's head is not HTTP.
    MalformedHead, Request by Malformed, "malformed head";
    /// The server answered a request in clear text by an alert of TLS: it wants https.
    TlsExpected, Request, "server wants https";
    /// The reply's head is over the size limit.
    HeadTooLarge, Request by Malformed, "head too large";
    /// The reply has more header fields than the limit.
    TooManyHeaders, Request by Malformed, "too many header fields";
    /// The reply's version is neither HTTP/1.0 nor HTTP/1.1.
    UnsupportedVersion, Request by Malformed, "unsupported version";
    /// Content-Length is malformed, out of range or contradicts itself.
    BadContentLength, Request by Malformed, "bad Content-Length";
    /// Transfer-Encoding is not one that can be framed.
    BadTransferEncoding, Request by Malformed, "bad Transfer-Encoding";
    /// The chunked framing is malformed.
    BadChunk, Request by Malformed, "bad chunk";
    /// The trailers are over the size limit.
    TrailersTooLarge, Request by Malformed, "trailers too large";
    /// More interim (1xx) replies than the limit, or a switch of protocols that was not asked for.
    BadInterim, Request by Malformed, "bad interim reply";
    /// What came back is not what was sent, where an echo is expected.
    WrongEcho, Request by Malformed, "wrong echo";
    /// The length that a message states is out of range.
    BadLength, Request by Malformed, "bad message length";
    /// The reply to a message is not of the protocol that it is framed by.
    MalformedReply, Request by Malformed, "malformed reply";
    /// The connection ended in the middle of the reply to a message.
    TruncatedReply, Request by Cut, "reply cut short";
    /// The connection ended with the reply to an earlier pipelined request, or was given up because
    /// another stream had no reply in time; this request was not answered.
    Unanswered, Request, "not answered";
    /// The server said that it did not process the request (GOAWAY, RFC 9113 section 6.8, RFC 9114
    /// section 5.2; H3_REQUEST_REJECTED).
    NotProcessed, Request, "not processed (GOAWAY)";
    /// The stream was reset with NO_ERROR before its reply was complete (RFC 9113 section 7, as
    /// all that follow).
    StreamNoError, Request, "stream reset: NO_ERROR";
    /// The stream was reset with PROTOCOL_ERROR.
    StreamProtocolError, Request, "stream reset: PROTOCOL_ERROR";
    /// The stream was reset with INTERNAL_ERROR.
    StreamInternalError, Request, "stream reset: INTERNAL_ERROR";
    /// The stream was reset with FLOW_CONTROL_ERROR.
    StreamFlowControlError, Request, "stream reset: FLOW_CONTROL_ERROR";
    /// The stream was reset with SETTINGS_TIMEOUT.
    StreamSettingsTimeout, Request, "stream reset: SETTINGS_TIMEOUT";
    /// The stream was reset with STREAM_CLOSED.
    StreamClosed, Request, "stream reset: STREAM_CLOSED";
    /// The stream was reset with FRAME_SIZE_ERROR.
    StreamFrameSizeError, Request, "stream reset: FRAME_SIZE_ERROR";
    /// The stream was reset with REFUSED_STREAM: the request was not processed.
    StreamRefused, Request, "stream reset: REFUSED_STREAM";
    /// The stream was reset with CANCEL.
    StreamCancelled, Request, "stream reset: CANCEL";
    /// The stream was reset with COMPRESSION_ERROR.
    StreamCompressionError, Request, "stream reset: COMPRESSION_ERROR";
    /// The stream was reset with CONNECT_ERROR.
    StreamConnectError, Request, "stream reset: CONNECT_ERROR";
    /// The stream was reset with ENHANCE_YOUR_CALM.
    StreamEnhanceYourCalm, Request, "stream reset: ENHANCE_YOUR_CALM";
    /// The stream was reset with INADEQUATE_SECURITY.
    StreamInadequateSecurity, Request, "stream reset: INADEQUATE_SECURITY";
    /// The stream was reset with HTTP_1_1_REQUIRED.
    StreamHttp11Required, Request, "stream reset: HTTP_1_1_REQUIRED";
    /// The stream was reset with an unknown code.
    StreamOtherCode, Request, "stream reset: unknown code";
    /// The server broke the rules of HTTP/2, or said that brunt did (GOAWAY with an error).
    Http2Error, Request by Malformed, "HTTP/2 connection error";
    /// The stream was reset with H3_NO_ERROR (RFC 9114 section 8.1, as
    /// all that follow).
    Http3ResetNoError, Request, "stream reset: H3_NO_ERROR";
    /// The stream was reset with H3_GENERAL_PROTOCOL_ERROR.
    Http3ResetGeneralProtocolError, Request, "stream reset: H3_GENERAL_PROTOCOL_ERROR";
    /// The stream was reset with H3_INTERNAL_ERROR.
    Http3ResetInternalError, Request, "stream reset: H3_INTERNAL_ERROR";
    /// The stream was reset with H3_EXCESSIVE_LOAD.
    Http3ResetExcessiveLoad, Request, "stream reset: H3_EXCESSIVE_LOAD";
    /// The stream was reset with H3_REQUEST_CANCELLED.
    Http3ResetRequestCancelled, Request, "stream reset: H3_REQUEST_CANCELLED";
    /// The stream was reset with H3_REQUEST_INCOMPLETE.
    Http3ResetRequestIncomplete, Request, "stream reset: H3_REQUEST_INCOMPLETE";
    /// The stream was reset with H3_MESSAGE_ERROR.
    Http3ResetMessageError, Request, "stream reset: H3_MESSAGE_ERROR";
    /// The stream was reset with H3_CONNECT_ERROR.
    Http3ResetConnectError, Request, "stream reset: H3_CONNECT_ERROR";
    /// The stream was reset with H3_VERSION_FALLBACK.
    Http3ResetVersionFallback, Request, "stream reset: H3_VERSION_FALLBACK";
    /// The stream was reset with another code.
    Http3ResetOtherCode, Request, "stream reset: another code of HTTP/3";
    /// The server closed the connection with H3_NO_ERROR.
    Http3ClosedNoError, Request, "closed: H3_NO_ERROR";
    /// The server closed the connection with H3_GENERAL_PROTOCOL_ERROR.
    Http3ClosedGeneralProtocolError, Request, "closed: H3_GENERAL_PROTOCOL_ERROR";
    /// The server closed the connection with H3_INTERNAL_ERROR.
    Http3ClosedInternalError, Request, "closed: H3_INTERNAL_ERROR";
    /// The server closed the connection with H3_STREAM_CREATION_ERROR.
    Http3ClosedStreamCreationError, Request, "closed: H3_STREAM_CREATION_ERROR";
    /// The server closed the connection with H3_CLOSED_CRITICAL_STREAM.
    Http3ClosedClosedCriticalStream, Request, "closed: H3_CLOSED_CRITICAL_STREAM";
    /// The server closed the connection with H3_FRAME_UNEXPECTED.
    Http3ClosedFrameUnexpected, Request, "closed: H3_FRAME_UNEXPECTED";
    /// The server closed the connection with H3_FRAME_ERROR.
    Http3ClosedFrameError, Request, "closed: H3_FRAME_ERROR";
    /// The server closed the connection with H3_EXCESSIVE_LOAD.
    Http3ClosedExcessiveLoad, Request, "closed: H3_EXCESSIVE_LOAD";
    /// The server closed the connection with H3_ID_ERROR.
    Http3ClosedIdError, Request, "closed: H3_ID_ERROR";
    /// The server closed the connection with H3_SETTINGS_ERROR.
    Http3ClosedSettingsError, Request, "closed: H3_SETTINGS_ERROR";
    /// The server closed the connection with H3_MISSING_SETTINGS.
    Http3ClosedMissingSettings, Request, "closed: H3_MISSING_SETTINGS";
    /// The server closed the connection with H3_MESSAGE_ERROR.
    Http3ClosedMessageError, Request, "closed: H3_MESSAGE_ERROR";
    /// The server closed the connection with QPACK_DECOMPRESSION_FAILED.
    QpackClosedDecompressionFailed, Request, "closed: QPACK_DECOMPRESSION_FAILED";
    /// The server closed the connection with QPACK_ENCODER_STREAM_ERROR.
    QpackClosedEncoderStreamError, Request, "closed: QPACK_ENCODER_STREAM_ERROR";
    /// The server closed the connection with QPACK_DECODER_STREAM_ERROR.
    QpackClosedDecoderStreamError, Request, "closed: QPACK_DECODER_STREAM_ERROR";
    /// The server closed the connection with another code of HTTP/3.
    Http3ClosedOtherCode, Request, "closed: another code of HTTP/3";
    /// The server broke the rules of HTTP/3.
    Http3Error, Request by Malformed, "HTTP/3 connection error";
    /// The server closed the connection with NO_ERROR of QUIC (RFC 9000 section
    /// 20.1, as all that follow).
    QuicClosedNoError, Request, "QUIC closed: NO_ERROR";
    /// The server closed the connection with INTERNAL_ERROR.
    QuicClosedInternalError, Request, "QUIC closed: INTERNAL_ERROR";
    /// The server closed the connection with FLOW_CONTROL_ERROR.
    QuicClosedFlowControlError, Request, "QUIC closed: FLOW_CONTROL_ERROR";
    /// The server closed the connection with STREAM_LIMIT_ERROR.
    QuicClosedStreamLimitError, Request, "QUIC closed: STREAM_LIMIT_ERROR";
    /// The server closed the connection with STREAM_STATE_ERROR.
    QuicClosedStreamStateError, Request, "QUIC closed: STREAM_STATE_ERROR";
    /// The server closed the connection with FINAL_SIZE_ERROR.
    QuicClosedFinalSizeError, Request, "QUIC closed: FINAL_SIZE_ERROR";
    /// The server closed the connection with FRAME_ENCODING_ERROR.
    QuicClosedFrameEncodingError, Request, "QUIC closed: FRAME_ENCODING_ERROR";
    /// The server closed the connection with TRANSPORT_PARAMETER_ERROR.
    QuicClosedTransportParameterError, Request, "QUIC closed: TRANSPORT_PARAMETER_ERROR";
    /// The server closed the connection with CONNECTION_ID_LIMIT_ERROR.
    QuicClosedConnectionIdLimitError, Request, "QUIC closed: CONNECTION_ID_LIMIT_ERROR";
    /// The server closed the connection with PROTOCOL_VIOLATION.
    QuicClosedProtocolViolation, Request, "QUIC closed: PROTOCOL_VIOLATION";
    /// The server closed the connection with APPLICATION_ERROR.
    QuicClosedApplicationError, Request, "QUIC closed: APPLICATION_ERROR";
    /// The server closed the connection with KEY_UPDATE_ERROR.
    QuicClosedKeyUpdateError, Request, "QUIC closed: KEY_UPDATE_ERROR";
    /// The server closed the connection with AEAD_LIMIT_REACHED.
    QuicClosedAeadLimitReached, Request, "QUIC closed: AEAD_LIMIT_REACHED";
    /// The server closed the connection with NO_VIABLE_PATH.
    QuicClosedNoViablePath, Request, "QUIC closed: NO_VIABLE_PATH";
    /// The server closed the connection with an alert of TLS (CRYPTO_ERROR).
    QuicClosedTlsAlert, Request, "QUIC closed: CRYPTO_ERROR";
    /// The server closed the connection with another code of QUIC.
    QuicClosedOtherCode, Request, "QUIC closed: another code";
    /// The server broke the rules of QUIC.
    QuicError, Request by Malformed, "QUIC connection error";
    /// Nothing came for as long as the server lets a connection of QUIC idle.
    QuicIdle, Request, "QUIC idle time-out";
    /// Bytes of a reply did not come in time, and the window was full of what came behind them.
    QuicWithheld, Request, "QUIC bytes missing";
    /// The server broke the rules of WebSocket.
    WebSocketError, Request by Malformed, "WebSocket protocol error";
    /// The server closed with 1000: the purpose is fulfilled (RFC 6455 section 7.4.1, as all that
    /// follow).
    CloseNormal, Request, "closed: 1000 normal";
    /// The server closed with 1001: it goes away.
    CloseGoingAway, Request, "closed: 1001 going away";
    /// The server closed with 1002: brunt broke the protocol.
    CloseProtocolError, Request, "closed: 1002 protocol error";
    /// The server closed with 1003: it does not take messages of this kind.
    CloseUnsupportedData, Request, "closed: 1003 unsupported data";
    /// The server closed without a code.
    CloseWithoutCode, Request, "closed without a code";
    /// The server closed with 1007: a text is not what it says.
    CloseInvalidText, Request, "closed: 1007 invalid text";
    /// The server closed with 1008: a message is against its policy.
    ClosePolicy, Request, "closed: 1008 policy";
    /// The server closed with 1009: a message is too big.
    CloseTooBig, Request, "closed: 1009 too big";
    /// The server closed with 1011: it failed.
    CloseServerError, Request, "closed: 1011 server error";
    /// The server closed with 1012: it restarts.
    CloseRestart, Request, "closed: 1012 restart";
    /// The server closed with 1013: it is to be tried again later.
    CloseTryLater, Request, "closed: 1013 try again later";
    /// The server closed with another code.
    CloseOtherCode, Request, "closed: another code";
    /// A TLS record could not be decrypted, or the server sent an alert, while the request was
    /// in flight.
    TlsBroken, Request by Tls, "TLS broken";
    /// Any other error of the socket while the request was in flight.
    SocketError, Request, "socket error";
}

impl FailureKind {
    /// The kind with this label; absent where none has it.
    pub fn labelled(label: &str) -> Option<Self> {
        let mut kinds = Self::ALL.iter().copied();
        kinds.find(|kind| kind.label() == label)
    }

    /// Whether the failure is that of an attempt to connect, on the server's side or on the way to
    /// it, and not for want of something on this machine.
    pub fn is_refusal(self) -> bool {
        self.scope() == FailureScope::Connect
            && !matches!(self, Self::ConnectNoPort | Self::ConnectNoDescriptor)
    }

    /// Whether the server closed or reset the connection while it owed a reply, or in the middle of
    /// it.
    pub fn is_cut(self) -> bool {
        self.nature() == Some(Nature::Cut)
    }

    /// Whether the reply was not what the protocol allows.
    pub fn is_malformed(self) -> bool {
        self.nature() == Some(Nature::Malformed)
    }

    /// Whether the failure can happen over TLS alone.
    pub fn is_of_tls(self) -> bool {
        self.nature() == Some(Nature::Tls)
    }
}

/// Failures counted by kind. Serialises as a map that holds the kinds that occurred.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FailureCounts([u64; FailureKind::ALL.len()]);

impl Default for FailureCounts {
    fn default() -> Self {
        Self([0; FailureKind::ALL.len()])
    }
}

impl FailureCounts {
    /// Counts one failure.
    pub fn add(&mut self, kind: FailureKind) {
        self.0[kind as usize] += 1;
    }

    /// How often `kind` occurred.
    pub fn get(&self, kind: FailureKind) -> u64 {
        self.0[kind as usize]
    }

    /// How many failures happened to things of `scope`.
    pub fn total(&self, scope: FailureScope) -> u64 {
        self.iter()
            .filter(|(kind, _)| kind.scope() == scope)
            .fold(0, |sum, (_, count)| sum.saturating_add(count))
    }

    /// How many failures happened to requests: where connections are for nothing else, attempts to
    /// connect are requests.
    pub fn of_requests(&self, work: Work) -> u64 {
        let mut total = self.total(FailureScope::Request);
        if work == Work::Connects {
            total.merge(&self.total(FailureScope::Connect));
        }
        total
    }

    /// The kinds that occurred, with their counts.
    pub fn iter(&self) -> impl Iterator<Item = (FailureKind, u64)> + '_ {
        FailureKind::ALL
            .iter()
            .map(|&kind| (kind, self.get(kind)))
            .filter(|&(_, count)| count > 0)
    }

    /// Adds the counts of `other`.
    pub fn merge(&mut self, other: &Self) {
        self.0[..].merge(&other.0);
    }
}

impl Serialize for FailureCounts {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.iter())
    }
}

impl<'de> Deserialize<'de> for FailureCounts {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut counts = Self::default();
        for (kind, count) in BTreeMap::<FailureKind, u64>::deserialize(deserializer)? {
            counts.0[kind as usize] = count;
        }
        Ok(counts)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_has_its_own_place_and_words() {
        let mut counts = FailureCounts::default();
        for (place, &kind) in FailureKind::ALL.iter().enumerate() {
            assert_eq!(kind as usize, place);
            assert!(
                FailureKind::ALL[..place]
                    .iter()
                    .all(|other| other.label() != kind.label())
            );
            (0..=place).for_each(|_| counts.add(kind));
        }
        for (place, &kind) in FailureKind::ALL.iter().enumerate() {
            assert_eq!(counts.get(kind), place as u64 + 1);
        }
        let scopes = [
            FailureScope::Connect,
            FailureScope::Connection,
            FailureScope::Request,
        ];
        let all: u64 = counts.iter().map(|(_, count)| count).sum();
        assert_eq!(
            scopes.map(|scope| counts.total(scope)).iter().sum::<u64>(),
            all
        );
    }

    #[test]
    fn kinds_of_tls_say_so() {
        for &kind in FailureKind::ALL {
            let label = kind.label();
            let names_tls = label.contains("TLS") || label.contains("certificate");
            assert_eq!(kind.is_of_tls(), names_tls, "{label}");
        }
    }

    #[test]
    fn the_stored_form_names_the_kinds_that_occurred() {
        let mut counts = FailureCounts::default();
        counts.add(FailureKind::TimedOut);
        counts.add(FailureKind::ConnectRefused);
        let text = serde_json::to_string(&counts).expect("counts serialise");
        assert_eq!(text, r#"{"connect_refused":1,"timed_out":1}"#);
        assert_eq!(
            serde_json::from_str::<FailureCounts>(&text).expect("its own form"),
            counts
        );
        assert!(serde_json::from_str::<FailureCounts>(r#"{"no_such_kind":1}"#).is_err());
    }
}
