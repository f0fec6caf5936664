//! HTTP/2 in a worker: a stream per request, responses in any order.

use std::sync::Arc;

use brunt_io::transport::Stream;
use brunt_load::Plan;
use brunt_proto::http2::{Client, ClientSettings, ConnectionError, KnownHead, Template};
use brunt_proto::{BodiesWanted, Body, Limits};
use brunt_record::{FailureKind, RequestTiming};

use super::filled::Parts;
use super::streams::{Patience, event_of};
use super::{
    Aside, Broken, Capacity, ClientProtocol, EncodeError, Next, Out, Sizes, Taken, TimedOut,
};
use crate::failure;

/// Bytes of frames that may wait behind a send, beside the heads of requests: bodies, of which the
/// client holds back what is over 128 KiB, and answers to what the server asks.
const WAITING_BYTES_MAX: usize = 512 * 1024;

/// The requests of a run, encoded once for all workers.
#[derive(Debug)]
pub(crate) struct Http2Requests {
    templates: Vec<Template>,
    depth: u32,
    settings: ClientSettings,
}

impl Http2Requests {
    /// Encodes what the plan says, of which up to `depth` are to be in flight per connection.
    pub(super) fn new(plan: &Plan, depth: u32) -> Result<Self, EncodeError> {
        let parts = plan.traffic.requests.requests().enumerate();
        let parts = parts.map(|(index, request)| Parts::fixed_of(plan, index, request));
        let parts = parts.collect::<Result<Vec<_>, _>>()?;
        let requests: Vec<_> = parts.iter().map(|parts| parts.request(plan)).collect();
        let templates = Template::list(&requests)
            .map_err(|(index, reason)| EncodeError::request(plan, index, reason))?;
        Ok(Self {
            templates,
            depth,
            settings: plan.connection.http2,
        })
    }

    pub(super) fn sizes(&self) -> Sizes {
        let bytes = self.templates.iter().map(Template::request_bytes);
        let held = self.templates.iter().map(Template::held_bytes);
        Sizes::of(bytes.max().unwrap_or(0), held.sum())
    }

    fn bytes_max(&self) -> usize {
        let bytes = self.templates.iter().map(Template::request_bytes_max);
        bytes.max().unwrap_or(0)
    }
}

/// HTTP/2 (RFC 9113), as one worker speaks it.
#[derive(Clone, Debug)]
pub(crate) struct Http2 {
    pub(super) requests: Arc<Http2Requests>,
    /// The head that came last, since others are often equal to it.
    known: KnownHead,
    limits: Limits,
    waiting_bytes_max: usize,
    timeout_ns: u64,
}

/// One connection.
#[derive(Debug)]
pub(crate) struct Http2Connection {
    client: Client,
    patience: Patience,
}

impl Http2Connection {
    fn new(requests: &Http2Requests) -> Self {
        Self {
            client: Client::new(requests.depth, requests.settings),
            patience: Patience::default(),
        }
    }
}

impl Http2 {
    pub(super) fn new(requests: Http2Requests, timeout_ns: u64) -> Self {
        Self {
            waiting_bytes_max: WAITING_BYTES_MAX + requests.bytes_max() * requests.depth as usize,
            requests: Arc::new(requests),
            known: KnownHead::default(),
            limits: Limits::default(),
            timeout_ns,
        }
    }
}

impl ClientProtocol for Http2 {
    type Transport = Stream;
    type Connection = Http2Connection;

    const IN_ORDER: bool = false;

    fn connection(&self) -> Http2Connection {
        Http2Connection::new(&self.requests)
    }

    fn open(&mut self, connection: &mut Http2Connection, out: &mut Out, _now_ns: u64) -> bool {
        *connection = Http2Connection::new(&self.requests);
        connection.client.open(&mut out.bytes);
        false
    }

    fn close(&mut self, connection: &mut Http2Connection) -> u64 {
        let pending_bytes = connection.client.pending_bytes();
        // What it learned of the server takes memory.
        *connection = Http2Connection::new(&self.requests);
        pending_bytes
    }

    fn end_round(&mut self, connection: &mut Http2Connection) -> u64 {
        connection.client.pending_bytes()
    }

    #[inline]
    fn request(&mut self, connection: &mut Http2Connection, next: Next, out: &mut Out) -> u32 {
        let client = &mut connection.client;
        client.request(&self.requests.templates, next.request.0, &mut out.bytes)
    }

    #[inline]
    fn receive(
        &mut self,
        connection: &mut Http2Connection,
        bytes: &[u8],
        received_ns: u64,
        _places: &[RequestTiming],
        out: &mut Out,
    ) -> Result<Taken, Broken> {
        let progress = connection
            .client
            .receive(
                bytes,
                received_ns,
                &self.requests.templates,
                &self.limits,
                &mut self.known,
                &mut out.bytes,
            )
            .map_err(|error| match error {
                ConnectionError::NotHttp2 => FailureKind::OtherProtocol,
                _ => FailureKind::Http2Error,
            })?;
        if progress.event.is_none() {
            let is_shut = connection.client.depth() == 0;
            connection.patience.heard_ns = received_ns;
            connection.patience.note_shut(is_shut, received_ns);
        }
        Ok(Taken {
            consumed: progress.consumed,
            event: progress
                .event
                .map(|event| event_of(event, failure::of_reset)),
        })
    }

    fn abandon(&mut self, connection: &mut Http2Connection) -> Option<(u32, u64)> {
        connection.client.abandon()
    }

    #[inline]
    fn take_aside(&mut self, connection: &mut Http2Connection) -> Aside {
        Aside::of_bytes(connection.client.take_overhead())
    }

    fn may_still_hear(&self, connection: &Http2Connection) -> bool {
        connection.client.has_reset_streams()
    }

    const WRITES_AHEAD: bool = true;

    /// A server that allows no request for as long as one may take is tried on another connection.
    #[inline]
    fn next_timeout_ns(&self, connection: &Http2Connection) -> u64 {
        let Http2Connection { client, patience } = connection;
        patience.shut_until_ns(client.in_flight(), self.timeout_ns)
    }

    /// Late streams are cancelled. Where nothing was heard for as long, nor since one of them was
    /// sent, the connection itself is dead, and the others go with it.
    fn timed_out(
        &mut self,
        connection: &mut Http2Connection,
        now_ns: u64,
        places: &[RequestTiming],
        out: &mut Out,
    ) -> Option<TimedOut> {
        let Http2Connection { client, patience } = connection;
        let in_flight = client.in_flight();
        patience.timed_out(places, self.timeout_ns, now_ns, in_flight, |place| {
            Ok(client.cancel(place, &mut out.bytes))
        })
    }

    #[inline]
    fn resume(&mut self, connection: &mut Http2Connection, out: &mut Out) {
        let client = &mut connection.client;
        if client.wants_resume() {
            client.resume(&self.requests.templates, &mut out.bytes);
        }
    }

    #[inline]
    fn capacity(&self, connection: &Http2Connection) -> Option<Capacity> {
        Some(Capacity {
            depth: connection.client.depth(),
            is_spent: connection.client.is_spent(),
        })
    }

    fn waiting_bytes_max(&self) -> usize {
        self.waiting_bytes_max
    }

    fn take_unexpected(&mut self) -> Option<String> {
        self.known.take_call_message()
    }

    fn want_bodies(&mut self, wanted: BodiesWanted) {
        self.limits.bodies = wanted;
    }

    fn take_body(&mut self, connection: &mut Http2Connection) -> Option<Body> {
        connection.client.take_body()
    }
}
