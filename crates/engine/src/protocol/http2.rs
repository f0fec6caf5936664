//! HTTP/2 in a worker: a stream per request, responses in any order.

use std::sync::Arc;

use brunt_load::Plan;
use brunt_measure::{Answer, FailureKind, Issue};
use brunt_proto::Limits;
use brunt_proto::http2::{Client, ConnectionError, Event, KnownHead, Request, Template};

use super::error::{EncodeError, number_in_list};
use super::{Broken, Capacity, ClientProtocol, Ending, Next, Out, Progress, ProtocolEvent};
use crate::backend::PayloadId;
use crate::failure;

/// Bytes of frames that may wait behind a send, beside the heads of requests: bodies, of which the
/// client holds back what is over 128 KiB, and answers to what the server asks.
const WAITING_BYTES_MAX: usize = 512 * 1024;

/// The requests of a run, encoded once for all workers.
#[derive(Debug)]
pub(crate) struct Http2Requests {
    templates: Vec<Template>,
    depth: u32,
}

impl Http2Requests {
    /// Encodes what the plan says, of which up to `depth` are to be in flight per connection.
    pub(super) fn new(plan: &Plan, depth: u32) -> Result<Self, EncodeError> {
        let requests: Vec<Request<'_>> = plan
            .requests
            .requests()
            .iter()
            .map(|request| Request {
                method: &request.method,
                scheme: plan.target.scheme.name(),
                authority: &plan.target.authority,
                path: &request.path,
                headers: &request.headers,
                body: &request.body,
            })
            .collect();
        let templates =
            Template::list(&requests).map_err(|(index, reason)| EncodeError::Http2 {
                number: number_in_list(plan, index),
                reason,
            })?;
        Ok(Self { templates, depth })
    }

    /// Bytes of the largest request, of any but the first of a connection.
    pub(super) fn bytes(&self) -> usize {
        let bytes = self.templates.iter().map(Template::request_bytes);
        bytes.max().unwrap_or(0)
    }

    /// Bytes that are held of them.
    pub(super) fn held_bytes(&self) -> usize {
        self.templates.iter().map(Template::held_bytes).sum()
    }

    fn bytes_max(&self) -> usize {
        let bytes = self.templates.iter().map(Template::request_bytes_max);
        bytes.max().unwrap_or(0)
    }
}

/// HTTP/2 (RFC 9113), as one worker speaks it.
#[derive(Clone, Debug)]
pub(crate) struct Http2 {
    requests: Arc<Http2Requests>,
    /// The head that came last, since others are often equal to it.
    known: KnownHead,
    limits: Limits,
    waiting_bytes_max: usize,
}

impl Http2 {
    pub(super) fn new(requests: Arc<Http2Requests>) -> Self {
        Self {
            waiting_bytes_max: WAITING_BYTES_MAX + requests.bytes_max() * requests.depth as usize,
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
    fn request(&self, connection: &mut Client, next: Next, out: &mut Out) -> u32 {
        connection.request(&self.requests.templates, next.request.0, &mut out.bytes)
    }

    #[inline]
    fn receive(
        &mut self,
        connection: &mut Client,
        bytes: &[u8],
        received_ns: u64,
        _places: &[Issue],
        out: &mut Out,
    ) -> Result<Progress, Broken> {
        let progress = connection
            .receive(
                bytes,
                received_ns,
                &self.requests.templates,
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
            connection.resume(&self.requests.templates, &mut out.bytes);
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
        self.waiting_bytes_max
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
