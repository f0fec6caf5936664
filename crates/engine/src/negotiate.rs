//! What all connections of a run speak, negotiated on one connection before it: TLS, the protocol
//! above it, and how many requests may be in flight. Nothing here sends a request of the run.

pub(crate) mod quic;
#[cfg(test)]
mod tests;

use std::io;

use brunt_io::blocking::{Deadline, Link, LinkError, closed};
use brunt_io::clock;
use brunt_io::tls_config::remedy;
use brunt_io::virtual_machine::VirtualMachine;
use brunt_load::{Plan, ProtocolSpec, WebSocketExchange};
use brunt_proto::http1::ReplyError;
use brunt_proto::http2::{
    Client, ConnectionError, KnownHead, Progress, Request, RequestError, Template,
};
use brunt_proto::tls::{self, CertificateObjection, ClientSide, TlsError, Version};
use brunt_proto::{Limits, websocket};
use brunt_record::{NegotiatedTls as DescribedTls, Protocol};
use thiserror::Error;

use crate::protocol::{ProtocolError, TlsClient, offer_of};

/// How long a server of TLS 1.3 is listened to for the refusal of a client whose handshake is
/// complete, nanoseconds. Most servers say something at once: a refusal or session tickets.
const REFUSAL_NS: u64 = 200_000_000;
/// A step of getting to know a server. Each protocol has its own beside it.
const TLS: &str = "the TLS handshake";

/// What a run and its server have negotiated.
#[derive(Clone, Debug)]
pub(crate) struct Negotiated {
    /// What all connections speak.
    pub(crate) protocol: Protocol,
    /// Why it is not what was preferred, or what the server restricts it by.
    pub(crate) note: Option<String>,
    /// Absent in clear text.
    pub(crate) tls: Option<NegotiatedTls>,
    /// Requests in flight per connection: pipelined in HTTP/1.1, streams in HTTP/2.
    pub(crate) depth: u32,
}

/// TLS as negotiated.
#[derive(Clone, Debug)]
pub(crate) struct NegotiatedTls {
    /// What all sessions share.
    side: ClientSide,
    /// The protocol that the server chose (ALPN), or HTTP/1.1 where it chose none; absent where
    /// none is offered.
    alpn: Option<&'static [u8]>,
    /// For the report.
    pub(crate) description: DescribedTls,
}

impl Negotiated {
    /// Without a question to the server: it speaks what is preferred over TLS, and what is spoken
    /// in clear text else.
    pub(crate) fn unasked(plan: &Plan) -> Result<Self, NegotiateError> {
        let protocol = if plan.target.scheme.is_secure() {
            plan.connection.protocol.preferred()
        } else {
            plan.connection.protocol.in_clear_text()
        };
        if protocol.depth.is_settled {
            refuse_pipeline(plan, protocol)?;
        }
        Ok(Self {
            protocol,
            note: None,
            tls: None,
            depth: plan.depth_over(protocol),
        })
    }

    /// With the servers of `machine`, over TLS with `side` where that is given.
    pub(crate) fn simulated_in(
        plan: &Plan,
        side: Option<ClientSide>,
        machine: &mut impl VirtualMachine,
    ) -> Result<Self, NegotiateError> {
        let mut negotiated = Self::unasked(plan)?;
        if let Some(most) = machine.streams_max()
            && negotiated.protocol.depth.is_settled
        {
            negotiated.depth = negotiated.depth.min(most.max(1));
        }
        let alpn = negotiated.protocol.alpn.map(str::as_bytes);
        let session = machine
            .negotiate(&plan.connection.protocol, alpn, side.as_ref())
            .map_err(|reason| {
                let server = plan.target.authority.clone();
                NegotiateError::Handshake { server, reason }
            })?;
        negotiated.tls = side.zip(session).map(|(side, session)| NegotiatedTls {
            side,
            alpn,
            description: describe(&session),
        });
        Ok(negotiated)
    }

    /// Absent in clear text.
    pub(crate) fn tls_client(&self) -> Option<TlsClient> {
        self.tls.as_ref().map(|tls| TlsClient {
            side: tls.side.clone(),
            alpn: tls.alpn,
        })
    }
}

/// Negotiates TLS and a protocol over a connection that is just open, and closes it.
///
/// # Errors
///
/// The server does not speak what was asked for, or not within the deadline.
pub(crate) fn negotiate(
    plan: &Plan,
    side: Option<ClientSide>,
    link: Link,
    deadline: Deadline,
) -> Result<Negotiated, NegotiateError> {
    let negotiation = Negotiation {
        plan,
        link,
        deadline,
        refusal_ns: REFUSAL_NS,
    };
    negotiation.run(side)
}

/// A negotiation with the server, on one connection.
struct Negotiation<'a> {
    plan: &'a Plan,
    link: Link,
    deadline: Deadline,
    refusal_ns: u64,
}

impl Negotiation<'_> {
    fn run(mut self, side: Option<ClientSide>) -> Result<Negotiated, NegotiateError> {
        let negotiated = self.negotiate(side)?;
        self.link.close(self.deadline);
        Ok(negotiated)
    }

    fn negotiate(&mut self, side: Option<ClientSide>) -> Result<Negotiated, NegotiateError> {
        let plan = self.plan;
        let spec = &plan.connection.protocol;
        let (protocol, tls) = match side {
            Some(side) => {
                let (protocol, tls) = self.secure(side)?;
                (protocol, Some(tls))
            }
            None => (spec.in_clear_text(), None),
        };
        let asked = plan.depth_over(protocol);
        let allowed = match spec {
            _ if protocol.depth.is_settled => {
                refuse_pipeline(plan, protocol)?;
                Some(self.exchange_settings(tls.is_some())?)
            }
            ProtocolSpec::WebSocket(exchange) => {
                self.upgrade(exchange)?;
                None
            }
            _ => {
                self.listen_for_refusal(tls.as_ref())?;
                None
            }
        };
        let depth = asked.min(allowed.unwrap_or(u32::MAX));
        let refused = spec.preferred().alpn.filter(|_| {
            // It was offered, and not chosen.
            tls.is_some() && protocol != spec.preferred()
        });
        let note = match refused {
            Some(name) => Some(
                match (plan.traffic.streams.get(), plan.traffic.pipeline.get()) {
                    (2.., 1) => {
                        let instead = "one request at a time per connection";
                        format!("the server's ALPN offers no {name}; {instead}")
                    }
                    _ => format!("the server's ALPN offers no {name}"),
                },
            ),
            None => (depth < asked).then(|| {
                let many = protocol.depth.many;
                format!("the server allows {depth} {many} per connection")
            }),
        };
        Ok(Negotiated {
            protocol,
            note,
            tls,
            depth,
        })
    }

    /// Makes the TLS handshake, in which the server chooses the protocol.
    fn secure(&mut self, side: ClientSide) -> Result<(Protocol, NegotiatedTls), NegotiateError> {
        let session = self
            .link
            .secure(&side, self.deadline)
            .map_err(|error| self.failed(TLS, error))?;
        // The client library ends the handshake when a server chooses what was not offered.
        let chosen = self
            .plan
            .connection
            .protocol
            .chosen(session.alpn.as_deref());
        let protocol = chosen.ok_or_else(|| NegotiateError::NotOffered {
            server: self.server(),
            protocol: self.plan.connection.protocol.preferred(),
            has_chosen_none: true,
        })?;
        let tls = NegotiatedTls {
            side,
            alpn: protocol.alpn.map(str::as_bytes),
            description: describe(&session),
        };
        Ok((protocol, tls))
    }

    /// A server of TLS 1.3 that wants a client certificate says so when the client's side of the
    /// handshake is complete (RFC 8446 section 4.4.2.4). Over HTTP/2 its SETTINGS are waited for;
    /// here nothing need come.
    fn listen_for_refusal(&mut self, tls: Option<&NegotiatedTls>) -> Result<(), NegotiateError> {
        if tls.is_none_or(|tls| tls.description.version != Version::Tls13.as_str()) {
            return Ok(());
        }
        let deadline = self.deadline.or_after(self.refusal_ns);
        match self.link.receive(&mut Vec::new(), deadline) {
            Ok(true) | Err(LinkError::Timeout) => Ok(()),
            Ok(false) => Err(self.failed(TLS, LinkError::Lost(closed()))),
            Err(error) => Err(self.failed(TLS, error)),
        }
    }

    /// Sends what is in `out`, which is empty then, and receives at least one byte.
    fn exchange(&mut self, out: &mut Vec<u8>, received: &mut Vec<u8>) -> Result<(), LinkError> {
        received.clear();
        self.link.send(out, self.deadline)?;
        out.clear();
        if self.link.receive(received, self.deadline)? {
            Ok(())
        } else {
            Err(LinkError::Lost(closed()))
        }
    }

    fn failed(&self, step: &'static str, error: LinkError) -> NegotiateError {
        let server = self.server();
        match error {
            LinkError::Timeout => NegotiateError::Timeout {
                server,
                step,
                limit_ms: self.plan.limits.connect_timeout_ns / 1_000_000,
            },
            LinkError::Lost(reason) => NegotiateError::Lost {
                server,
                step,
                reason,
            },
            LinkError::NotTls => NegotiateError::NotTls { server },
            LinkError::Tls(TlsError::Certificate(reason)) => {
                NegotiateError::Certificate { server, reason }
            }
            LinkError::Tls(reason @ TlsError::NoCommonProtocol) => {
                match self.plan.connection.protocol.protocols() {
                    [only] if only.version_option.is_some() => NegotiateError::NotOffered {
                        server,
                        protocol: *only,
                        has_chosen_none: false,
                    },
                    _ => NegotiateError::Handshake { server, reason },
                }
            }
            LinkError::Tls(reason) => NegotiateError::Handshake { server, reason },
        }
    }

    /// Host and port, as in the URL.
    fn server(&self) -> String {
        self.plan.target.authority.clone()
    }
}

/// Pipelining is HTTP/1.1's: where `protocol` has streams, a plan that asks for it alone is
/// refused.
/// One that says how many streams there are, too, has a depth for either.
pub(crate) fn refuse_pipeline(plan: &Plan, protocol: Protocol) -> Result<(), NegotiateError> {
    match (plan.traffic.pipeline.get(), plan.traffic.streams.get()) {
        (1, _) | (_, 2..) => Ok(()),
        (depth, _) => Err(NegotiateError::Pipeline {
            server: plan.target.authority.clone(),
            protocol,
            depth,
        }),
    }
}

fn describe(session: &tls::Negotiated) -> DescribedTls {
    DescribedTls {
        version: session.version.as_str().to_owned(),
        cipher_suite: session.cipher_suite.to_owned(),
        group: session.group.map(str::to_owned),
    }
}

/// Why the run and the server cannot come to terms.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum NegotiateError {
    /// The server's certificate does not pass.
    #[error("{server} is not trusted: the certificate {reason}; {}", remedy(reason.fault))]
    Certificate {
        /// Host and port.
        server: String,
        /// What is wrong with it.
        reason: CertificateObjection,
    },
    /// The TLS handshake failed otherwise.
    #[error(
        "no TLS session with {server}: {reason}; what is offered can be changed with --cert, \
         --sni, --tls-min and --tls-max"
    )]
    Handshake {
        /// Host and port.
        server: String,
        /// An alert, or what cannot be negotiated.
        reason: TlsError,
    },
    /// An https URL, and a server that answers in clear text.
    #[error("{server} does not speak TLS; use http:// in place of https://")]
    NotTls {
        /// Host and port.
        server: String,
    },
    /// An http URL, and a server that answers as one of TLS does.
    #[error("{server} speaks TLS; use https:// in place of http://")]
    IsTls {
        /// Host and port.
        server: String,
    },
    /// The connection was closed or lost before it could be used.
    #[error("the connection to {server} was lost during {step} ({reason}); is it the right port?")]
    Lost {
        /// Host and port.
        server: String,
        /// During what, in words.
        step: &'static str,
        /// The system's reason.
        reason: io::Error,
    },
    /// The server takes too long.
    #[error(
        "{server} did not complete {step} within {limit_ms} ms; is it the right port? A slow \
         server needs a longer --connect-timeout"
    )]
    Timeout {
        /// Host and port.
        server: String,
        /// During what, in words.
        step: &'static str,
        /// The limit of a connection attempt.
        limit_ms: u64,
    },
    /// A version of HTTP was asked for, and the server does not have it.
    #[error(
        "{server} does not offer {} ({}); leave out {}{}",
        protocol.name,
        said(*protocol, *has_chosen_none),
        protocol.version_option.unwrap_or_default(),
        instead(*protocol)
    )]
    NotOffered {
        /// Host and port.
        server: String,
        /// What was asked for.
        protocol: Protocol,
        /// The server chose no protocol, rather than to refuse this one.
        has_chosen_none: bool,
    },
    /// Pipelining was asked for, and a protocol is spoken that has streams.
    #[error(
        "--pipeline is for HTTP/1.1, and {name} is spoken with {server}; use {option} {depth}, or \
         --http1 with --pipeline {depth}",
        name = protocol.name,
        option = protocol.depth.option
    )]
    Pipeline {
        /// Host and port.
        server: String,
        /// What is spoken.
        protocol: Protocol,
        /// Asked for.
        depth: u32,
    },
    /// What only this protocol can fail at, as it says it.
    #[error(transparent)]
    Protocol(ProtocolError),
}

fn of_protocol(error: impl Into<ProtocolError>) -> NegotiateError {
    NegotiateError::Protocol(error.into())
}

/// What a server says in ALPN of a version of HTTP that it does not have.
fn said(protocol: Protocol, has_chosen_none: bool) -> String {
    match protocol.alpn.filter(|_| protocol.needs_alpn) {
        None => "ALPN".to_owned(),
        Some(_) if has_chosen_none => "ALPN: it chose none".to_owned(),
        Some(name) => format!("ALPN: it refuses {name}"),
    }
}

/// What is spoken with a server that does not name this version of HTTP.
fn instead(protocol: Protocol) -> &'static str {
    if protocol.needs_alpn {
        ", and HTTP/1.1 is spoken"
    } else {
        ""
    }
}

/// The step that is HTTP/2's own (RFC 9113 section 3.4).
const SETTINGS: &str = "the exchange of HTTP/2 settings";
/// Bytes of a server's answer that are kept to see what it speaks in place of HTTP/2.
const ANSWER_BYTES_MAX: usize = 16;
/// First two bytes of an alert in TLS (RFC 8446 section 5.1).
const TLS_ALERT: &[u8] = &[21, 3];

/// Why HTTP/2 is not spoken with a server.
#[derive(Debug, Error)]
enum Http2Error {
    /// HTTP/2 was asked for in clear text, and the server answers by something else.
    #[error(
        "{server} does not speak HTTP/2 in clear text ({instead}); leave out --http2, or use \
         https://"
    )]
    NotInClearText { server: String, instead: String },
    /// HTTP/2 was negotiated, and the server breaks its rules.
    #[error("{server} chose HTTP/2 and sends something else ({reason}); use --http1")]
    Broken {
        server: String,
        reason: ConnectionError,
    },
    /// The server takes no requests.
    #[error(
        "{server} allows no requests in HTTP/2 (its SETTINGS_MAX_CONCURRENT_STREAMS is 0); use \
         --http1"
    )]
    NoStreams { server: String },
    /// The request cannot be put into HTTP/2.
    #[error("the request cannot be sent in HTTP/2: {0}")]
    Request(RequestError),
}

impl Negotiation<'_> {
    /// Sends the client's first frames of HTTP/2 and waits for the server's. Gives how many
    /// requests may be in flight.
    fn exchange_settings(&mut self, is_tls: bool) -> Result<u32, NegotiateError> {
        let target = &self.plan.target;
        // The client reads replies by what was asked. Nothing is.
        let template = Template::new(&Request {
            method: "GET",
            scheme: target.scheme.name(),
            authority: &target.authority,
            path: "/",
            headers: &[],
            body: &[],
        });
        let template = template.map_err(|reason| of_protocol(Http2Error::Request(reason)))?;
        let (limits, mut known) = (Limits::default(), KnownHead::default());
        let mut client = Client::new(self.plan.traffic.streams.get(), self.plan.connection.http2);
        let (mut frames, mut received, mut answer) = (Vec::new(), Vec::new(), Vec::new());
        client.open(&mut frames);
        loop {
            self.exchange(&mut frames, &mut received)
                .map_err(|error| self.no_settings(is_tls, &answer, error))?;
            let room = ANSWER_BYTES_MAX - answer.len();
            answer.extend_from_slice(&received[..received.len().min(room)]);
            let mut rest = &received[..];
            loop {
                let now_ns = clock::now_ns();
                let outcome = client.receive(
                    rest,
                    now_ns,
                    std::slice::from_ref(&template),
                    &limits,
                    &mut known,
                    &mut frames,
                );
                let Progress { consumed, event } =
                    outcome.map_err(|error| self.other_than_http2(is_tls, &answer, error))?;
                if client.is_ready() {
                    let allowed = client.peer_streams_max().unwrap_or(u32::MAX);
                    return match allowed {
                        0 => Err(of_protocol(Http2Error::NoStreams {
                            server: self.server(),
                        })),
                        _ => Ok(allowed),
                    };
                }
                rest = &rest[consumed..];
                if event.is_none() {
                    break;
                }
            }
        }
    }

    /// The connection ended, or the time was up, before the server's SETTINGS came.
    fn no_settings(&self, is_tls: bool, answer: &[u8], error: LinkError) -> NegotiateError {
        if !is_tls && let Some(error) = self.known_answer(answer) {
            return error;
        }
        match error {
            LinkError::Lost(_) if !is_tls => of_protocol(Http2Error::NotInClearText {
                server: self.server(),
                instead: "it closes the connection".to_owned(),
            }),
            // It refuses the client: see `listen_for_refusal`.
            LinkError::Tls(_) => self.failed(TLS, error),
            _ => self.failed(SETTINGS, error),
        }
    }

    /// The server's first frames are none.
    fn other_than_http2(
        &self,
        is_tls: bool,
        answer: &[u8],
        reason: ConnectionError,
    ) -> NegotiateError {
        let server = self.server();
        if is_tls {
            return of_protocol(Http2Error::Broken { server, reason });
        }
        let instead = match reason {
            ConnectionError::NotHttp2 => "it sends something else".to_owned(),
            reason => reason.to_string(),
        };
        self.known_answer(answer)
            .unwrap_or_else(|| of_protocol(Http2Error::NotInClearText { server, instead }))
    }

    /// What a server speaks that answers HTTP/2 in clear text like this, if it is to be seen.
    fn known_answer(&self, answer: &[u8]) -> Option<NegotiateError> {
        let server = self.server();
        if answer.starts_with(TLS_ALERT) {
            Some(NegotiateError::IsTls { server })
        } else if answer.starts_with(b"HTTP/1.") {
            let instead = "it answers in HTTP/1.1".to_owned();
            Some(of_protocol(Http2Error::NotInClearText { server, instead }))
        } else {
            None
        }
    }
}

/// The step that is WebSocket's own (RFC 6455 section 4).
const UPGRADE: &str = "the upgrade to WebSocket";
/// What the key of the one handshake before the run is made from.
const NONCE: [u8; 16] = *b"brunt negotiates";
/// The mask of the one frame that is sent before the run.
const ZERO_MASK: websocket::MaskKey = [0; 4];

/// Why WebSocket is not spoken with a server.
#[derive(Debug, Error)]
enum WebSocketError {
    /// The server does not agree to it.
    #[error(
        "{server} does not speak WebSocket at this URL: {reason}{}",
        advice(reason)
    )]
    Refused {
        server: String,
        reason: websocket::ClientError,
    },
    /// The upgrade cannot be asked for.
    #[error(transparent)]
    Offer(websocket::OfferError),
}

/// What to type where a server refuses an upgrade, if that can be told.
fn advice(reason: &websocket::ClientError) -> &'static str {
    let (status, location) = match reason {
        websocket::ClientError::Handshake(websocket::HandshakeError::NotHttp(
            ReplyError::TlsAlert,
        )) => return "; use wss:// in place of ws://",
        websocket::ClientError::Handshake(websocket::HandshakeError::Refused {
            status,
            location,
        }) => (status, location),
        _ => return "",
    };
    match status {
        300..=399 if location.is_some() => "; redirects are not followed: give that URL",
        400 => "; where the server speaks TLS, use wss:// in place of ws://",
        401 => "; give credentials with -u USER:PASSWORD, or with -H",
        403 => "; a server that asks where a page is from wants -H 'Origin: https://HOST'",
        _ => "",
    }
}

impl Negotiation<'_> {
    /// Upgrades the connection to WebSocket, and says that it closes.
    fn upgrade(&mut self, exchange: &WebSocketExchange) -> Result<(), NegotiateError> {
        let refused = |reason: websocket::ClientError| {
            of_protocol(WebSocketError::Refused {
                server: self.plan.target.authority.clone(),
                reason,
            })
        };
        let offer = offer_of(self.plan, exchange)
            .map_err(|reason| of_protocol(WebSocketError::Offer(reason)))?;
        let limits = Limits::default();
        let settings = websocket::Settings {
            offer: &offer,
            limits: &limits,
        };
        let mut client = websocket::Client::default();
        let (mut out, mut received) = (Vec::new(), Vec::new());
        client.open(&offer, NONCE, &mut out);
        loop {
            self.exchange(&mut out, &mut received)
                .map_err(|error| self.failed(UPGRADE, error))?;
            let progress = client
                .receive(&received, settings, ZERO_MASK, &mut out, |_| {})
                .map_err(refused)?;
            if progress.event == Some(websocket::ClientEvent::Open) {
                client.close(Some(websocket::CloseCode::NORMAL), ZERO_MASK, &mut out);
                // It is closed anyway.
                let _ = self.link.send(&out, self.deadline);
                return Ok(());
            }
        }
    }
}
