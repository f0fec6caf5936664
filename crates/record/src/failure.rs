//! The kinds of failure: what went wrong with a connection or a request, as data to be counted.

use std::collections::BTreeMap;

use brunt_protocols::FailureFamily;
use serde::{Deserialize, Serialize};

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

macro_rules! failure_kinds {
    ($($(#[doc = $doc:literal])+ $variant:ident, $scope:ident, $label:literal;)+) => {
        /// Why a connection attempt, a connection or a request failed.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
        #[serde(rename_all = "snake_case")]
        pub enum FailureKind { $($(#[doc = $doc])+ $variant,)+ }

        impl FailureKind {
            /// Every kind, in declaration order.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)+];

            /// What the failure happened to.
            pub fn scope(self) -> FailureScope {
                match self { $(Self::$variant => FailureScope::$scope,)+ }
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
    TlsAlert, Connect, "TLS alert from server";
    /// The server's certificate did not pass.
    TlsCertificate, Connect, "certificate refused";
    /// The TLS handshake failed otherwise.
    TlsFailed, Connect, "TLS handshake failed";
    /// The server negotiated another protocol (ALPN) than on the connection made before the run,
    /// or answered HTTP/2 by something else.
    OtherProtocol, Connect, "another protocol negotiated";
    /// The server answered the upgrade to WebSocket with another status than 101.
    UpgradeRefused, Connect, "upgrade refused";
    /// The server answered the first message of a connection by an error.
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
    Reset, Request, "connection reset";
    /// The connection was closed before the first byte of the reply.
    ClosedBeforeReply, Request, "closed before reply";
    /// The connection was closed inside the reply's head.
    TruncatedHead, Request, "head cut short";
    /// The reply ended inside its body; in HTTP/1.1 with the connection.
    TruncatedBody, Request, "body cut short";
    /// The reply's body has more bytes than its head tells (HTTP/2).
    LongBody, Request, "HTTP/2 body too long";
    /// The reply's head is not HTTP.
    MalformedHead, Request, "malformed head";
    /// The server answered a request in clear text by an alert of TLS: it wants https.
    TlsExpected, Request, "server wants https";
    /// The reply's head is over the size limit.
    HeadTooLarge, Request, "head too large";
    /// The reply has more header fields than the limit.
    TooManyHeaders, Request, "too many header fields";
    /// The reply's version is neither HTTP/1.0 nor HTTP/1.1.
    UnsupportedVersion, Request, "unsupported version";
    /// Content-Length is malformed, out of range or contradicts itself.
    BadContentLength, Request, "bad Content-Length";
    /// Transfer-Encoding is not one that can be framed.
    BadTransferEncoding, Request, "bad Transfer-Encoding";
    /// The chunked framing is malformed.
    BadChunk, Request, "bad chunk";
    /// The trailers are over the size limit.
    TrailersTooLarge, Request, "trailers too large";
    /// More interim (1xx) replies than the limit, or a switch of protocols that was not asked for.
    BadInterim, Request, "bad interim reply";
    /// What came back is not what was sent, where an echo is expected.
    WrongEcho, Request, "wrong echo";
    /// The length that a message states is out of range.
    BadLength, Request, "bad message length";
    /// The reply to a message is not of the protocol that it is framed by.
    MalformedReply, Request, "malformed reply";
    /// The connection ended in the middle of the reply to a message.
    TruncatedReply, Request, "reply cut short";
    /// The connection ended with the reply to an earlier pipelined request, or was given up because
    /// another stream had no reply in time; this request was not answered.
    Unanswered, Request, "not answered";
    /// The server said that it did not process the request (GOAWAY, RFC 9113 section 6.8).
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
    Http2Error, Request, "HTTP/2 connection error";
    /// The server broke the rules of WebSocket.
    WebSocketError, Request, "WebSocket protocol error";
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
    TlsBroken, Request, "TLS broken";
    /// Any other error of the socket while the request was in flight.
    SocketError, Request, "socket error";
}

impl FailureKind {
    /// Whether the failure is that of an attempt to connect, on the server's side or on the way to
    /// it, and not for want of something on this machine.
    pub fn is_refusal(self) -> bool {
        self.scope() == FailureScope::Connect
            && !matches!(self, Self::ConnectNoPort | Self::ConnectNoDescriptor)
    }

    /// Whether the reply was not what the protocol allows.
    pub fn is_malformed(self) -> bool {
        matches!(
            self,
            Self::MalformedHead
                | Self::HeadTooLarge
                | Self::TooManyHeaders
                | Self::UnsupportedVersion
                | Self::BadContentLength
                | Self::BadTransferEncoding
                | Self::BadChunk
                | Self::TrailersTooLarge
                | Self::BadInterim
                | Self::LongBody
                | Self::Http2Error
                | Self::WrongEcho
                | Self::BadLength
                | Self::MalformedReply
                | Self::WebSocketError
        )
    }

    /// Whether the failure can happen over protocols of this family alone.
    pub fn is_of(self, family: FailureFamily) -> bool {
        match family {
            FailureFamily::Http2 => self.is_of_http2(),
            FailureFamily::WebSocket => self.is_of_websocket(),
            FailureFamily::Framing => self.is_of_messages(),
            FailureFamily::Message => self == Self::TruncatedReply,
        }
    }

    /// Whether the failure can happen to messages over TCP alone.
    fn is_of_messages(self) -> bool {
        matches!(
            self,
            Self::WrongEcho | Self::BadLength | Self::MalformedReply | Self::OpeningRefused
        )
    }

    /// Whether the failure can happen over WebSocket alone.
    fn is_of_websocket(self) -> bool {
        matches!(
            self,
            Self::UpgradeRefused
                | Self::WebSocketError
                | Self::CloseNormal
                | Self::CloseGoingAway
                | Self::CloseProtocolError
                | Self::CloseUnsupportedData
                | Self::CloseWithoutCode
                | Self::CloseInvalidText
                | Self::ClosePolicy
                | Self::CloseTooBig
                | Self::CloseServerError
                | Self::CloseRestart
                | Self::CloseTryLater
                | Self::CloseOtherCode
        )
    }

    /// Whether the failure can happen over HTTP/2 alone.
    fn is_of_http2(self) -> bool {
        matches!(
            self,
            Self::LongBody
                | Self::NotProcessed
                | Self::StreamNoError
                | Self::StreamProtocolError
                | Self::StreamInternalError
                | Self::StreamFlowControlError
                | Self::StreamSettingsTimeout
                | Self::StreamClosed
                | Self::StreamFrameSizeError
                | Self::StreamRefused
                | Self::StreamCancelled
                | Self::StreamCompressionError
                | Self::StreamConnectError
                | Self::StreamEnhanceYourCalm
                | Self::StreamInadequateSecurity
                | Self::StreamHttp11Required
                | Self::StreamOtherCode
                | Self::Http2Error
        )
    }

    /// Whether the failure can happen over TLS alone.
    pub fn is_of_tls(self) -> bool {
        matches!(
            self,
            Self::TlsAlert | Self::TlsCertificate | Self::TlsFailed | Self::TlsBroken
        )
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

    /// How many failures happened to requests, where attempts to connect are requests
    /// (`are_attempts`) or not.
    pub fn of_requests(&self, are_attempts: bool) -> u64 {
        let of_attempts = match are_attempts {
            true => self.total(FailureScope::Connect),
            false => 0,
        };
        self.total(FailureScope::Request)
            .saturating_add(of_attempts)
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
        for (own, theirs) in self.0.iter_mut().zip(&other.0) {
            *own = own.saturating_add(*theirs);
        }
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

#[cfg(feature = "schema")]
impl schemars::JsonSchema for FailureCounts {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "FailureCounts".into()
    }

    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({
            "description": "How often each kind of failure occurred, without those that did not.",
            "type": "object",
            "propertyNames": generator.subschema_for::<FailureKind>(),
            "additionalProperties": generator.subschema_for::<u64>(),
        })
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
    fn kinds_of_a_protocol_say_so() {
        for &kind in FailureKind::ALL {
            let label = kind.label();
            let names_http2 = ["stream reset", "GOAWAY", "HTTP/2"];
            let names_http2 = names_http2.iter().any(|word| label.contains(word));
            assert_eq!(kind.is_of_http2(), names_http2, "{label}");
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
