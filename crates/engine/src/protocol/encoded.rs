//! What a run sends, in the protocol that was negotiated: the one place that chooses protocol and
//! workload.

use std::sync::Arc;

use brunt_load::{Plan, Spoken};
use brunt_proto::tls::ClientSide;
use brunt_record::Protocol;

use super::http1::{Http1, Http1Requests};
use super::http2::{Http2, Http2Requests};
use super::http3::{Http3, Http3Requests};
use super::messages::{EncodedMessages, Messages};
use super::unread::Unread;
use super::websocket::{EncodedWebSocket, WebSocket};
use super::{ClientProtocol, EncodeError};
use crate::workload::{Attempts, Requests, StreamPayload, Streams, Workload};

/// What a run is over each protocol.
pub(crate) trait ForProtocol {
    /// What comes out.
    type Outcome;

    /// Does it with workers that speak `protocol` for a `workload`, each with clones.
    fn run<P: ClientProtocol, W: Workload>(self, protocol: P, workload: W) -> Self::Outcome;
}

/// The requests of a run, encoded once for all workers.
#[derive(Clone, Debug)]
pub(crate) enum EncodedRequests {
    Http1(Arc<Http1Requests>),
    Http2(Arc<Http2Requests>),
    Http3(Arc<Http3Requests>),
    Messages(Arc<EncodedMessages>),
    WebSocket(Arc<EncodedWebSocket>),
    Streams(Arc<StreamPayload>),
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
        Ok(match &plan.spoken {
            Spoken::Http(_) if protocol == Protocol::HTTP2 => {
                Self::Http2(Arc::new(Http2Requests::new(plan, depth)?))
            }
            Spoken::Http(_) if protocol == Protocol::HTTP3 => {
                Self::Http3(Arc::new(Http3Requests::new(plan, depth, side)?))
            }
            Spoken::Http(_) => Self::Http1(Arc::new(Http1Requests::new(plan, depth)?)),
            Spoken::Messages(exchange) => {
                let messages = EncodedMessages::new(plan, exchange, depth, clock_origin_unix_ns)?;
                Self::Messages(Arc::new(messages))
            }
            Spoken::WebSocket(exchange) => {
                let messages = EncodedWebSocket::new(plan, exchange, depth, clock_origin_unix_ns)?;
                Self::WebSocket(Arc::new(messages))
            }
            Spoken::Streams(streams) => Self::Streams(Arc::new(StreamPayload::new(*streams))),
            Spoken::Connections => Self::Connections,
        })
    }

    /// Does `what` with the protocol of the requests.
    pub(crate) fn run<W: ForProtocol>(&self, what: W) -> W::Outcome {
        match self {
            Self::Http1(requests) => what.run(Http1::new(Arc::clone(requests)), Requests),
            Self::Http2(requests) => what.run(Http2::new(Arc::clone(requests)), Requests),
            Self::Http3(requests) => what.run(Http3::new(Arc::clone(requests)), Requests),
            Self::Messages(messages) => what.run(Messages::new(Arc::clone(messages)), Requests),
            Self::WebSocket(messages) => what.run(WebSocket::new(Arc::clone(messages)), Requests),
            Self::Streams(payload) => what.run(Unread, Streams::new(Arc::clone(payload))),
            Self::Connections => what.run(Unread, Attempts),
        }
    }

    /// Bytes of one request: in HTTP/1.1 a closing one where every request closes, else an ordinary
    /// one; in HTTP/2 of any but the first of a connection. Of messages the longest, of streams
    /// what they send at a time.
    pub(crate) fn bytes(&self, every_one_closes: bool) -> usize {
        match self {
            Self::Http1(requests) => requests.bytes(every_one_closes),
            Self::Http2(requests) => requests.bytes(),
            Self::Http3(requests) => requests.bytes(),
            Self::Messages(messages) => messages.bytes(),
            Self::WebSocket(messages) => messages.bytes(),
            Self::Streams(payload) => payload.bytes(),
            Self::Connections => 0,
        }
    }

    /// The part of [`bytes`](Self::bytes) that holds further copies of a request that may follow
    /// itself on a connection.
    pub(crate) fn copies_bytes(&self) -> usize {
        match self {
            Self::Http1(requests) => requests.copies_bytes(),
            Self::Http2(_)
            | Self::Http3(_)
            | Self::Messages(_)
            | Self::WebSocket(_)
            | Self::Streams(_)
            | Self::Connections => 0,
        }
    }

    /// Bytes that each connection has beside those at most: of a request that is filled in, and of
    /// such as follow each other and do not lie so.
    pub(crate) fn own_bytes(&self) -> usize {
        match self {
            Self::Http1(requests) => requests.own_bytes(),
            Self::Http2(_)
            | Self::Http3(_)
            | Self::Messages(_)
            | Self::WebSocket(_)
            | Self::Streams(_)
            | Self::Connections => 0,
        }
    }

    /// Bytes that are held of them.
    pub(crate) fn held_bytes(&self) -> usize {
        match self {
            Self::Http1(requests) => requests.held_bytes(),
            Self::Http2(requests) => requests.held_bytes(),
            Self::Http3(requests) => requests.held_bytes(),
            Self::Messages(messages) => messages.held_bytes(),
            Self::WebSocket(messages) => messages.held_bytes(),
            Self::Streams(payload) => payload.bytes(),
            Self::Connections => 0,
        }
    }
}
