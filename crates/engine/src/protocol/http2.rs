//! HTTP/2 in a worker: a stream per request, responses in any order.

use std::sync::Arc;

use brunt_load::Plan;
use brunt_measure::{Answer, FailureKind};
use brunt_proto::Limits;
use brunt_proto::http2::{
    Client, ConnectionError, Event, KnownHead, Request, RequestError, Template,
};

use super::{
    Broken, Capacity, ClientProtocol, Ending, InFlight, Next, Out, Progress, ProtocolEvent,
};
use crate::backend::PayloadId;
use crate::failure;

/// Bytes of frames that may wait behind a send, beside the heads of requests: bodies, of which the
/// client holds back what is over 128 KiB, and answers to what the server asks.
const WAITING_BYTES_MAX: usize = 512 * 1024;

/// The requests of a run, encoded once for all workers.
#[derive(Debug)]
pub(crate) struct Http2Requests {
    template: Template,
    depth: u32,
}

impl Http2Requests {
    /// Encodes what the plan says, of which up to `depth` are to be in flight per connection.
    pub(super) fn new(plan: &Plan, depth: u32) -> Result<Self, RequestError> {
        let template = Template::new(&Request {
            method: &plan.request.method,
            scheme: plan.target.scheme.name(),
            authority: &plan.target.authority,
            path: &plan.target.path,
            headers: &plan.request.headers,
            body: &plan.request.body,
        })?;
        Ok(Self { template, depth })
    }

    /// Bytes of one request, of any but the first of a connection.
    pub(super) fn bytes(&self) -> usize {
        self.template.request_bytes()
    }
}

/// HTTP/2 (RFC 9113), as one worker speaks it.
#[derive(Clone, Debug)]
pub(crate) struct Http2 {
    requests: Arc<Http2Requests>,
    /// The head that came last, since others are often equal to it.
    known: KnownHead,
    limits: Limits,
}

impl Http2 {
    pub(super) fn new(requests: Arc<Http2Requests>) -> Self {
        Self {
            requests,
            known: KnownHead::default(),
            limits: Limits::default(),
        }
    }
}

impl ClientProtocol for Http2 {
    type Connection = Client;

    const IN_ORDER: bool = false;
    const WRITES_AHEAD: bool = true;

    fn start(&mut self, _add: &mut dyn FnMut(Arc<[u8]>) -> PayloadId) {}

    fn connection(&self) -> Client {
        Client::new(self.requests.depth)
    }

    fn open(&self, connection: &mut Client, out: &mut Out) -> bool {
        *connection = Client::new(self.requests.depth);
        connection.open(&mut out.bytes);
        false
    }

    fn close(&self, connection: &mut Client) -> u64 {
        let pending_bytes = connection.pending_bytes();
        // What it learned of the server takes memory.
        *connection = Client::new(self.requests.depth);
        pending_bytes
    }

    #[inline]
    fn request(&self, connection: &mut Client, _next: Next, out: &mut Out) -> u32 {
        connection.request(&self.requests.template, &mut out.bytes)
    }

    #[inline]
    fn receive(
        &mut self,
        connection: &mut Client,
        bytes: &[u8],
        received_ns: u64,
        _places: &[InFlight],
        out: &mut Out,
    ) -> Result<Progress, Broken> {
        let progress = connection
            .receive(
                bytes,
                received_ns,
                &self.requests.template,
                &self.limits,
                &mut self.known,
                &mut out.bytes,
            )
            .map_err(|error| Broken {
                kind: match error {
                    ConnectionError::NotHttp2 => FailureKind::OtherProtocol,
                    _ => FailureKind::Http2Error,
                },
                unexpected_bytes: 0,
            })?;
        Ok(Progress {
            consumed: progress.consumed,
            event: progress.event.map(event_of),
        })
    }

    fn ended(&self, _connection: &mut Client) -> Ending {
        Ending::Cuts
    }

    fn cancel(&self, connection: &mut Client, place: u32, out: &mut Out) -> u64 {
        connection.cancel(place, &mut out.bytes)
    }

    fn abandon(&self, connection: &mut Client) -> Option<(u32, u64)> {
        connection.abandon()
    }

    #[inline]
    fn resume(&self, connection: &mut Client, out: &mut Out) {
        if connection.wants_resume() {
            connection.resume(&self.requests.template, &mut out.bytes);
        }
    }

    #[inline]
    fn capacity(&self, connection: &Client) -> Option<Capacity> {
        Some(Capacity {
            depth: connection.depth(),
            is_spent: connection.is_spent(),
        })
    }

    #[inline]
    fn take_overhead(&self, connection: &mut Client) -> u64 {
        connection.take_overhead()
    }

    fn may_still_hear(&self, connection: &Client) -> bool {
        connection.has_reset_streams()
    }

    fn waiting_bytes_max(&self) -> usize {
        let requests_bytes =
            self.requests.template.request_bytes_max() * self.requests.depth as usize;
        WAITING_BYTES_MAX + requests_bytes
    }
}

#[inline]
fn event_of(event: Event) -> ProtocolEvent {
    match event {
        Event::Ready => ProtocolEvent::Ready,
        Event::Reply { place, reply } => ProtocolEvent::Done {
            place,
            answer: Answer {
                status: reply.status,
                retry_after: reply.retry_after,
                interim: reply.interim,
                head_bytes: reply.head_bytes,
                body_bytes: reply.body_bytes,
                first_byte_ns: reply.first_byte_ns,
            },
            closes: false,
        },
        Event::Failed {
            place,
            why,
            discarded_bytes,
        } => ProtocolEvent::Failed {
            place,
            kind: failure::of_stream(why),
            discarded_bytes,
        },
        Event::GoAway { .. } => ProtocolEvent::GoAway,
    }
}
