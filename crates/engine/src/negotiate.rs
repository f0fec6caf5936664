//! What all connections of a run speak, negotiated on one connection before it: TLS, the protocol
//! above it, and how many requests may be in flight. Nothing here sends a request.

mod error;
pub(crate) mod quic;
#[cfg(test)]
mod tests;

use brunt_load::{HttpChoice, Plan, Spoken, WebSocketExchange};
use brunt_proto::Limits;
use brunt_proto::http2::{Client, ConnectionError, KnownHead, Progress, Request, Template};
use brunt_proto::tls::{self, ClientSide, TlsError, Version};
use brunt_proto::websocket;
use brunt_record::{NegotiatedTls as DescribedTls, Protocol};

pub use self::error::{Instead, NegotiateError, Step};
use brunt_io::blocking::{Deadline, Link, LinkError, closed};
use brunt_io::clock;
use brunt_io::virtual_machine::VirtualMachine;

use crate::backends::TlsClient;
use crate::protocol::offer_of;

/// How long a server of TLS 1.3 is listened to for the refusal of a client whose handshake is
/// complete, nanoseconds. Most servers say something at once: a refusal or session tickets.
const REFUSAL_NS: u64 = 200_000_000;
/// Bytes of a server's answer that are kept to see what it speaks in place of HTTP/2.
const ANSWER_BYTES_MAX: usize = 16;
/// What the key of the one handshake before the run is made from.
const NONCE: [u8; 16] = *b"brunt negotiates";
/// The mask of the one frame that is sent before the run.
const ZERO_MASK: websocket::MaskKey = [0; 4];
/// First two bytes of an alert in TLS (RFC 8446 section 5.1).
const TLS_ALERT: &[u8] = &[21, 3];

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
        let protocol = match plan.target.scheme.is_secure() {
            true => plan.spoken.preferred(),
            false => plan.spoken.in_clear_text(),
        };
        if protocol.depth.is_settled {
            refuse_pipeline(plan)?;
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
            .negotiate(&plan.spoken, alpn, side.as_ref())
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
        let spoken = &plan.spoken;
        let (protocol, tls) = match side {
            Some(side) => {
                let (protocol, tls) = self.secure(side)?;
                (protocol, Some(tls))
            }
            None => (spoken.in_clear_text(), None),
        };
        let asked = plan.depth_over(protocol);
        let allowed = match spoken {
            _ if protocol.depth.is_settled => {
                refuse_pipeline(plan)?;
                self.exchange_settings(tls.is_some())?
            }
            Spoken::WebSocket(exchange) => {
                self.upgrade(exchange)?;
                None
            }
            _ => {
                self.listen_for_refusal(tls.as_ref())?;
                None
            }
        };
        let depth = asked.min(allowed.unwrap_or(u32::MAX));
        if depth == 0 {
            return Err(NegotiateError::NoStreams {
                server: self.server(),
            });
        }
        let refused = spoken.preferred().alpn.filter(|_| {
            // It was offered, and not chosen.
            tls.is_some() && protocol != spoken.preferred()
        });
        let note = match refused {
            Some(name) => Some(match (plan.streams.get(), plan.pipeline.get()) {
                (2.., 1) => {
                    let instead = "one request at a time per connection";
                    format!("the server's ALPN offers no {name}; {instead}")
                }
                _ => format!("the server's ALPN offers no {name}"),
            }),
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
            .map_err(|error| self.failed(Step::Tls, error))?;
        // The client library ends the handshake when a server chooses what was not offered.
        let chosen = self.plan.spoken.chosen(session.alpn.as_deref());
        let protocol = chosen.ok_or_else(|| NegotiateError::NoHttp2 {
            server: self.server(),
            alpn: "it chose none",
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
            Ok(false) => Err(self.failed(Step::Tls, LinkError::Lost(closed()))),
            Err(error) => Err(self.failed(Step::Tls, error)),
        }
    }

    /// Upgrades the connection to WebSocket, and says that it closes.
    fn upgrade(&mut self, exchange: &WebSocketExchange) -> Result<(), NegotiateError> {
        let refused = |reason: websocket::ClientError| NegotiateError::Upgrade {
            server: self.plan.target.authority.clone(),
            reason,
        };
        let offer = offer_of(self.plan, exchange)?;
        let limits = Limits::default();
        let settings = websocket::Settings {
            offer: &offer,
            is_strict: exchange.is_strict,
            limits: &limits,
        };
        let mut client = websocket::Client::default();
        let (mut out, mut received) = (Vec::new(), Vec::new());
        client.open(&offer, NONCE, &mut out);
        loop {
            received.clear();
            let exchanged = self
                .link
                .send(&out, self.deadline)
                .and_then(|()| self.link.receive(&mut received, self.deadline));
            out.clear();
            match exchanged {
                Ok(true) => {}
                Ok(false) => return Err(self.failed(Step::Upgrade, LinkError::Lost(closed()))),
                Err(error) => return Err(self.failed(Step::Upgrade, error)),
            }
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

    /// Sends the client's first frames of HTTP/2 and waits for the server's: its limit of streams.
    fn exchange_settings(&mut self, is_tls: bool) -> Result<Option<u32>, NegotiateError> {
        let target = &self.plan.target;
        // The client reads replies by what was asked. Nothing is.
        let template = Template::new(&Request {
            method: "GET",
            scheme: target.scheme.name(),
            authority: &target.authority,
            path: &target.path,
            headers: &[],
            body: &[],
        })?;
        let (limits, mut known) = (Limits::default(), KnownHead::default());
        let mut client = Client::new(self.plan.streams.get(), self.plan.http2);
        let (mut frames, mut received, mut answer) = (Vec::new(), Vec::new(), Vec::new());
        client.open(&mut frames);
        loop {
            received.clear();
            let exchanged = self
                .link
                .send(&frames, self.deadline)
                .and_then(|()| self.link.receive(&mut received, self.deadline));
            frames.clear();
            match exchanged {
                Ok(true) => {}
                Ok(false) => {
                    return Err(self.no_settings(is_tls, &answer, LinkError::Lost(closed())));
                }
                Err(error) => return Err(self.no_settings(is_tls, &answer, error)),
            }
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
                    return Ok(client.peer_streams_max());
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
            LinkError::Lost(_) if !is_tls => NegotiateError::NoClearTextHttp2 {
                server: self.server(),
                instead: Instead::End,
            },
            // It refuses the client: see `await_refusal`.
            LinkError::Tls(_) => self.failed(Step::Tls, error),
            _ => self.failed(Step::Settings, error),
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
            return NegotiateError::BrokenHttp2 { server, reason };
        }
        let instead = Instead::Other(reason);
        self.known_answer(answer)
            .unwrap_or(NegotiateError::NoClearTextHttp2 { server, instead })
    }

    /// What a server speaks that answers HTTP/2 in clear text like this, if it is to be seen.
    fn known_answer(&self, answer: &[u8]) -> Option<NegotiateError> {
        let server = self.server();
        if answer.starts_with(TLS_ALERT) {
            Some(NegotiateError::IsTls { server })
        } else if answer.starts_with(b"HTTP/1.") {
            let instead = Instead::Http1;
            Some(NegotiateError::NoClearTextHttp2 { server, instead })
        } else {
            None
        }
    }

    fn failed(&self, step: Step, error: LinkError) -> NegotiateError {
        let server = self.server();
        match error {
            LinkError::Timeout => NegotiateError::Timeout {
                server,
                step,
                limit_ms: self.plan.connect_timeout_ns / 1_000_000,
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
            LinkError::Tls(reason @ TlsError::NoCommonProtocol) => match self.plan.spoken.http() {
                Some(HttpChoice::Http1) => NegotiateError::NoHttp1 { server },
                Some(HttpChoice::Http2) => NegotiateError::NoHttp2 {
                    server,
                    alpn: "it refuses h2",
                },
                Some(HttpChoice::Auto | HttpChoice::Http3) | None => {
                    NegotiateError::Handshake { server, reason }
                }
            },
            LinkError::Tls(reason) => NegotiateError::Handshake { server, reason },
        }
    }

    /// Host and port, as in the URL.
    fn server(&self) -> String {
        self.plan.target.authority.clone()
    }
}

/// Pipelining is HTTP/1.1's: where HTTP/2 is spoken, a plan that asks for it alone is refused. One
/// that says how many streams there are, too, has a depth for either.
pub(crate) fn refuse_pipeline(plan: &Plan) -> Result<(), NegotiateError> {
    match (plan.pipeline.get(), plan.streams.get()) {
        (1, _) | (_, 2..) => Ok(()),
        (depth, _) => Err(NegotiateError::PipelineInHttp2 {
            server: plan.target.authority.clone(),
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
