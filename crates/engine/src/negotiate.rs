//! What all connections of a run speak, negotiated on one connection before it: TLS, the protocol
//! above it, and how many requests may be in flight. Nothing here sends a request of the run.

pub(crate) mod quic;
#[cfg(test)]
mod tests;

use brunt_io::blocking::{Deadline, Link, LinkError, closed};
use brunt_io::clock;
use brunt_io::tls_config::remedy;
use brunt_io::virtual_machine::VirtualMachine;
use brunt_load::{Plan, ProtocolSpec, WebSocketExchange};
use brunt_proto::http1::ReplyError;
use brunt_proto::http2::{Client, ConnectionError, KnownHead, Progress};
use brunt_proto::tls::{self, ClientSide, TlsError, Version};
use brunt_proto::{Limits, websocket};
use brunt_record::{NegotiatedTls as DescribedTls, Protocol};
use thiserror::Error;

use crate::protocol::{TlsClient, offer_of};

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
    pub(crate) client: TlsClient,
    /// For the report.
    pub(crate) description: DescribedTls,
}

impl NegotiatedTls {
    /// With a server that is to choose this protocol (ALPN), where it chooses any.
    fn new(side: ClientSide, protocol: Protocol, description: DescribedTls) -> Self {
        let alpn = protocol.alpn.map(str::as_bytes);
        Self {
            client: TlsClient { side, alpn },
            description,
        }
    }
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
        refuse_pipeline(plan, protocol)?;
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
            .map_err(|reason| no_session(&plan.target.authority, &reason))?;
        negotiated.tls = side.zip(session).map(|(side, session)| {
            NegotiatedTls::new(side, negotiated.protocol, describe(&session))
        });
        Ok(negotiated)
    }

    /// Absent in clear text.
    pub(crate) fn tls_client(&self) -> Option<TlsClient> {
        self.tls.as_ref().map(|tls| tls.client.clone())
    }
}

/// What is said where a server allows `depth` requests in flight, fewer than were `asked` for.
fn allowed_note(protocol: Protocol, depth: u32, asked: u32) -> Option<String> {
    let many = protocol.depth.many;
    (depth < asked).then(|| format!("the server allows {depth} {many} per connection"))
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
    Negotiation {
        plan,
        link,
        deadline,
        refusal_ns: REFUSAL_NS,
    }
    .run(side)
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
        refuse_pipeline(plan, protocol)?;
        let asked = plan.depth_over(protocol);
        let mut depth = asked;
        match spec {
            _ if protocol.depth.is_settled => {
                depth = asked.min(self.exchange_settings(tls.is_some())?);
            }
            ProtocolSpec::WebSocket(exchange) => self.upgrade(exchange)?,
            _ => self.listen_for_refusal(tls.as_ref())?,
        }
        let note = match spec.preferred().alpn {
            Some(name) if tls.is_some() && protocol != spec.preferred() => {
                Some(format!("the server's ALPN offers no {name}"))
            }
            _ => allowed_note(protocol, depth, asked),
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
            .map_err(|error| link_failed(self.plan, TLS, error))?;
        // The client library ends the handshake when a server chooses what was not offered.
        let chosen = self
            .plan
            .connection
            .protocol
            .chosen(session.alpn.as_deref());
        let protocol = chosen.ok_or_else(|| {
            let preferred = self.plan.connection.protocol.preferred();
            not_offered(self.server(), preferred)
        })?;
        let tls = NegotiatedTls::new(side, protocol, describe(&session));
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
            Ok(false) => Err(link_failed(self.plan, TLS, LinkError::Lost(closed()))),
            Err(error) => Err(link_failed(self.plan, TLS, error)),
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

    /// Host and port, as in the URL.
    fn server(&self) -> &str {
        &self.plan.target.authority
    }
}

/// The connection before the run came to its end in this step.
fn link_failed(plan: &Plan, step: &str, error: LinkError) -> NegotiateError {
    let server = &plan.target.authority[..];
    NegotiateError(match error {
        LinkError::Timeout => format!(
            "{server} did not complete {step} within {} ms; is it the right port? A slow \
             server needs a longer --connect-timeout",
            plan.limits.connect_timeout_ns / 1_000_000
        ),
        LinkError::Lost(reason) => format!(
            "the connection to {server} was lost during {step} ({reason}); is it the right port?"
        ),
        LinkError::NotTls => {
            format!("{server} does not speak TLS; use http:// in place of https://")
        }
        LinkError::Tls(TlsError::Certificate(reason)) => format!(
            "{server} is not trusted: the certificate {reason}; {}",
            remedy(reason.fault)
        ),
        LinkError::Tls(reason) => {
            let protocols = plan.connection.protocol.protocols();
            return match (reason, protocols) {
                (TlsError::NoCommonProtocol, [only]) if only.version_option.is_some() => {
                    not_offered(server, *only)
                }
                (reason, _) => no_session(server, &reason),
            };
        }
    })
}

/// Pipelining is HTTP/1.1's: where `protocol` has streams, a plan that asks for it alone is
/// refused.
/// One that says how many streams there are, too, has a depth for either.
pub(crate) fn refuse_pipeline(plan: &Plan, protocol: Protocol) -> Result<(), NegotiateError> {
    match (plan.traffic.pipeline.get(), plan.traffic.streams.get()) {
        (1, _) | (_, 2..) => Ok(()),
        _ if !protocol.depth.is_settled => Ok(()),
        (depth, _) => Err(NegotiateError(format!(
            "--pipeline is for HTTP/1.1, and {} is spoken with {}; use {} {depth}, or --http1 with \
             --pipeline {depth}",
            protocol.name, plan.target.authority, protocol.depth.option
        ))),
    }
}

fn describe(session: &tls::Negotiated) -> DescribedTls {
    DescribedTls {
        version: session.version.as_str().to_owned(),
        cipher_suite: session.cipher_suite.to_owned(),
        group: session.group.map(str::to_owned),
    }
}

/// Why the run and the server cannot come to terms, in words.
#[derive(Debug, Error)]
#[error("{0}")]
pub struct NegotiateError(String);

/// The TLS handshake failed, by an alert or by what cannot be negotiated.
fn no_session(server: &str, reason: &TlsError) -> NegotiateError {
    NegotiateError(format!(
        "no TLS session with {server}: {reason}; what is offered can be changed with --cert, \
         --sni, --tls-min and --tls-max"
    ))
}

/// A version of HTTP was asked for, and the server does not have it.
fn not_offered(server: &str, protocol: Protocol) -> NegotiateError {
    let (name, option) = (protocol.name, protocol.version_option.unwrap_or_default());
    NegotiateError(format!(
        "{server} does not offer {name} (ALPN); leave out {option}"
    ))
}

/// The step that is HTTP/2's own (RFC 9113 section 3.4).
const SETTINGS: &str = "the exchange of HTTP/2 settings";
/// Bytes of a server's answer that are kept to see what it speaks in place of HTTP/2.
const ANSWER_BYTES_MAX: usize = 16;
/// First two bytes of an alert in TLS (RFC 8446 section 5.1).
const TLS_ALERT: &[u8] = &[21, 3];
/// How a response of HTTP/1.1 begins.
const HTTP1: &[u8] = b"HTTP/1.";

impl Negotiation<'_> {
    /// Sends the client's first frames of HTTP/2 and waits for the server's. Gives how many
    /// requests may be in flight.
    fn exchange_settings(&mut self, is_tls: bool) -> Result<u32, NegotiateError> {
        // The client reads replies by what was asked: nothing is.
        let requests = &[];
        let (limits, mut known) = (Limits::default(), KnownHead::default());
        let mut client = Client::new(self.plan.traffic.streams.get(), self.plan.connection.http2);
        let (mut frames, mut received, mut answer) = (Vec::new(), Vec::new(), Vec::new());
        client.open(&mut frames);
        loop {
            self.exchange(&mut frames, &mut received)
                .map_err(|error| match error {
                    LinkError::Lost(_) if !is_tls => {
                        self.not_http2(is_tls, &answer, "it closes the connection")
                    }
                    LinkError::Timeout if !is_tls && answer.starts_with(TLS_ALERT) => {
                        self.not_http2(is_tls, &answer, "it sends an alert")
                    }
                    // It refuses the client: see `listen_for_refusal`.
                    LinkError::Tls(_) => link_failed(self.plan, TLS, error),
                    _ => link_failed(self.plan, SETTINGS, error),
                })?;
            let room = ANSWER_BYTES_MAX - answer.len();
            answer.extend_from_slice(&received[..received.len().min(room)]);
            let mut rest = &received[..];
            loop {
                let now_ns = clock::now_ns();
                let outcome =
                    client.receive(rest, now_ns, requests, &limits, &mut known, &mut frames);
                let Progress { consumed, event } = outcome.map_err(|reason| match reason {
                    ConnectionError::NotHttp2 => {
                        self.not_http2(is_tls, &answer, "it sends something else")
                    }
                    reason => self.not_http2(is_tls, &answer, &reason.to_string()),
                })?;
                if client.is_ready() {
                    let allowed = client.peer_streams_max().unwrap_or(u32::MAX);
                    return match allowed {
                        0 => Err(NegotiateError(format!(
                            "{} allows no requests in HTTP/2 (its SETTINGS_MAX_CONCURRENT_STREAMS \
                             is 0); use --http1",
                            self.server()
                        ))),
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

    /// The server does something else than to answer in HTTP/2: that its `answer` tells, or
    /// `instead`.
    fn not_http2(&self, is_tls: bool, answer: &[u8], instead: &str) -> NegotiateError {
        let server = self.server();
        let instead = if answer.starts_with(HTTP1) {
            "it answers in HTTP/1.1"
        } else {
            instead
        };
        NegotiateError(if is_tls {
            format!("{server} chose HTTP/2 and does not speak it ({instead}); use --http1")
        } else if answer.starts_with(TLS_ALERT) {
            format!("{server} speaks TLS; use https:// in place of http://")
        } else {
            format!(
                "{server} does not speak HTTP/2 in clear text ({instead}); leave out --http2, or \
                 use https://"
            )
        })
    }
}

/// The step that is WebSocket's own (RFC 6455 section 4).
const UPGRADE: &str = "the upgrade to WebSocket";
/// What the key of the one handshake before the run is made from.
const NONCE: [u8; 16] = *b"brunt negotiates";
/// The mask of the one frame that is sent before the run.
const ZERO_MASK: websocket::MaskKey = [0; 4];

/// What to type where a server refuses an upgrade, if that can be told.
fn advice(reason: &websocket::ClientError) -> &'static str {
    use websocket::HandshakeError::{NotHttp, Refused};
    let websocket::ClientError::Handshake(reason) = reason else {
        return "";
    };
    match reason {
        NotHttp(ReplyError::TlsAlert) => "; use wss:// in place of ws://",
        Refused {
            status: 300..=399,
            location: Some(_),
        } => "; redirects are not followed: give that URL",
        Refused { status: 400, .. } => {
            "; where the server speaks TLS, use wss:// in place of ws://"
        }
        Refused { status: 401, .. } => "; give credentials with -u USER:PASSWORD, or with -H",
        Refused { status: 403, .. } => {
            "; a server that asks where a page is from wants -H 'Origin: https://HOST'"
        }
        _ => "",
    }
}

impl Negotiation<'_> {
    /// Upgrades the connection to WebSocket, and says that it closes.
    fn upgrade(&mut self, exchange: &WebSocketExchange) -> Result<(), NegotiateError> {
        let refused = |reason: websocket::ClientError| {
            NegotiateError(format!(
                "{} does not speak WebSocket at this URL: {reason}{}",
                self.plan.target.authority,
                advice(&reason)
            ))
        };
        let offer =
            offer_of(self.plan, exchange).map_err(|reason| NegotiateError(reason.to_string()))?;
        let limits = Limits::default();
        let settings = websocket::Settings {
            offer: &offer,
            limits: &limits,
        };
        let mut client = websocket::WebSocketClient::default();
        let (mut out, mut received) = (Vec::new(), Vec::new());
        client.open(&offer, NONCE, &mut out);
        loop {
            self.exchange(&mut out, &mut received)
                .map_err(|error| link_failed(self.plan, UPGRADE, error))?;
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
