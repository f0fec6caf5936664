//! What all connections of a run speak, negotiated on one connection before it: TLS, the protocol
//! above it, and how many requests may be in flight. Nothing here sends a request of the run.

mod error;
mod http2;
pub(crate) mod quic;
#[cfg(test)]
mod tests;
mod websocket;

use brunt_load::{Plan, Spoken};
use brunt_proto::tls::{self, ClientSide, TlsError, Version};
use brunt_record::{NegotiatedTls as DescribedTls, Protocol};

pub use self::error::NegotiateError;
use brunt_io::blocking::{Deadline, Link, LinkError, closed};
use brunt_io::virtual_machine::VirtualMachine;

use crate::backends::TlsClient;

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
            plan.spoken.preferred()
        } else {
            plan.spoken.in_clear_text()
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
                refuse_pipeline(plan, protocol)?;
                Some(self.exchange_settings(tls.is_some())?)
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
            .map_err(|error| self.failed(TLS, error))?;
        // The client library ends the handshake when a server chooses what was not offered.
        let chosen = self.plan.spoken.chosen(session.alpn.as_deref());
        let protocol = chosen.ok_or_else(|| NegotiateError::NotOffered {
            server: self.server(),
            protocol: self.plan.spoken.preferred(),
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
            LinkError::Tls(reason @ TlsError::NoCommonProtocol) => {
                match self.plan.spoken.protocols() {
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
    match (plan.pipeline.get(), plan.streams.get()) {
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
