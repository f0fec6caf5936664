//! What a run sends, in the protocol that was negotiated: the one place that chooses protocol and
//! workload. Where nothing is requested, what takes the place of a protocol.

use std::io;
use std::sync::Arc;

use brunt_io::backend::ClientBackend;
use brunt_io::tls::Tls;
use brunt_io::transport::{Datagram, Stream};
use brunt_load::{Plan, ProtocolSpec};
use brunt_proto::tls::ClientSide;
use brunt_record::{Protocol, RequestTiming};

use super::http1::{Http1, Http1Requests};
use super::http2::{Http2, Http2Requests};
use super::http3::{Http3, Http3Requests};
use super::messages::{EncodedMessages, Messages};
use super::websocket::{EncodedWebSocket, WebSocket};
use super::{
    Backends, Broken, ClientProtocol, EncodeError, NewWorker, Next, Out, Sizes, Taken, TlsClient,
};
use crate::workload::{Attempts, Requests, Streams, Workload, stream_payload};

/// What a run is over each protocol.
pub(crate) trait ForProtocol<M> {
    /// What comes out.
    type Outcome;

    /// Does it with workers that speak `protocol` for a `workload`, each with clones, on backends
    /// that `make` gives.
    fn run<B, P, W>(self, make: MakeBackend<M, B>, protocol: P, workload: W) -> Self::Outcome
    where
        B: ClientBackend<Transport = P::Transport> + 'static,
        P: ClientProtocol,
        W: Workload;
}

/// Makes the backend of a worker.
pub(crate) type MakeBackend<M, B> = Box<dyn Fn(NewWorker<'_, M>) -> io::Result<B> + Send + Sync>;

/// The requests of a run, encoded once for all workers, and what each of them begins with.
#[derive(Clone, Debug)]
pub(crate) enum EncodedRequests {
    Http1(Http1),
    Http2(Http2),
    Http3(Http3),
    Messages(Messages),
    WebSocket(WebSocket),
    Streams(Arc<[u8]>),
    Connections,
}

impl EncodedRequests {
    /// Encodes what the plan says, of which up to `depth` are to be in flight per connection, over
    /// TLS with `side` where that is given. The run's clock began `clock_origin_unix_ns` after
    /// 1970.
    pub(crate) fn new(
        plan: &Plan,
        protocol: Protocol,
        depth: u32,
        side: Option<&ClientSide>,
        clock_origin_unix_ns: u64,
    ) -> Result<Self, EncodeError> {
        let timeout_ns = plan.limits.timeout_ns;
        Ok(match &plan.connection.protocol {
            ProtocolSpec::Http(_) if protocol == Protocol::HTTP2 => {
                Self::Http2(Http2::new(Http2Requests::new(plan, depth)?, timeout_ns))
            }
            ProtocolSpec::Http(_) if protocol == Protocol::HTTP3 => Self::Http3(Http3::new(
                Http3Requests::new(plan, depth, side)?,
                timeout_ns,
            )),
            ProtocolSpec::Http(_) => Self::Http1(Http1::new(Http1Requests::new(plan, depth)?)),
            ProtocolSpec::Messages(exchange) => {
                let messages = EncodedMessages::new(plan, exchange, depth, clock_origin_unix_ns)?;
                Self::Messages(Messages::new(messages))
            }
            ProtocolSpec::WebSocket(exchange) => {
                let messages = EncodedWebSocket::new(plan, exchange, depth, clock_origin_unix_ns)?;
                Self::WebSocket(WebSocket::new(messages))
            }
            ProtocolSpec::Streams(streams) => Self::Streams(stream_payload(*streams)),
            ProtocolSpec::Connections => Self::Connections,
        })
    }

    pub(crate) fn sizes(&self) -> Sizes {
        match self {
            Self::Http1(protocol) => protocol.requests.sizes(),
            Self::Http2(protocol) => protocol.requests.sizes(),
            Self::Http3(protocol) => protocol.requests.sizes(),
            Self::Messages(protocol) => protocol.encoded.sizes(),
            Self::WebSocket(protocol) => protocol.encoded.sizes(),
            Self::Streams(payload) => Sizes::of(payload.len(), payload.len()),
            Self::Connections => Sizes::default(),
        }
    }

    /// Does `what` with the protocol of the requests on these backends. TLS is around those of
    /// streams, where it is spoken over them.
    pub(crate) fn run<M: 'static, S, D, F: ForProtocol<M>>(
        &self,
        backends: Backends<M, S, D>,
        tls: Option<TlsClient>,
        what: F,
    ) -> F::Outcome
    where
        S: ClientBackend<Transport = Stream> + 'static,
        D: ClientBackend<Transport = Datagram> + 'static,
    {
        let Backends { streams, datagrams } = backends;
        match (self, tls) {
            (Self::Http3(protocol), _) => what.run(Box::new(datagrams), protocol.clone(), Requests),
            (_, None) => self.run_on(Box::new(streams), what),
            (_, Some(TlsClient { side, alpn })) => {
                let make = move |worker: NewWorker<'_, M>| {
                    Ok(Tls::client(streams(worker)?, side.clone(), alpn))
                };
                self.run_on(Box::new(make), what)
            }
        }
    }

    fn run_on<M, B, F: ForProtocol<M>>(&self, make: MakeBackend<M, B>, what: F) -> F::Outcome
    where
        B: ClientBackend<Transport = Stream> + 'static,
    {
        match self {
            Self::Http1(protocol) => what.run(make, protocol.clone(), Requests),
            Self::Http2(protocol) => what.run(make, protocol.clone(), Requests),
            Self::Http3(_) => unreachable!("HTTP/3 is over datagrams"),
            Self::Messages(protocol) => what.run(make, protocol.clone(), Requests),
            Self::WebSocket(protocol) => what.run(make, protocol.clone(), Requests),
            Self::Streams(payload) => what.run(make, Unread, Streams::new(Arc::clone(payload))),
            Self::Connections => what.run(make, Unread, Attempts),
        }
    }
}

/// What is said on the connections of one-way streams, and of those that are opened and closed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Unread;

impl ClientProtocol for Unread {
    type Transport = Stream;
    type Connection = ();

    const IN_ORDER: bool = true;

    fn connection(&self) {}

    fn open(&mut self, _connection: &mut (), _out: &mut Out, _now_ns: u64) -> bool {
        true
    }

    fn close(&mut self, _connection: &mut ()) -> u64 {
        0
    }

    /// What is in flight is one attempt at a time, or nothing.
    fn request(&mut self, _connection: &mut (), _next: Next, _out: &mut Out) -> u32 {
        0
    }

    fn receive(
        &mut self,
        _connection: &mut (),
        bytes: &[u8],
        _received_ns: u64,
        _places: &[RequestTiming],
        _out: &mut Out,
    ) -> Result<Taken, Broken> {
        Ok(Taken::without_event(bytes.len()))
    }

    fn unread_bytes(&self, _connection: &()) -> u64 {
        u64::MAX
    }

    fn abandon(&mut self, _connection: &mut ()) -> Option<(u32, u64)> {
        Some((0, 0))
    }

    fn may_still_hear(&self, _connection: &()) -> bool {
        true
    }
}
